"""Runs of the authors' public script that did not reach the paper: tanh kernels, and a ring.

tanh is indefinite: its components are features, but no distance belongs to them; the script drops
those of negative eigenvalues. Left out are its runs on iris, which show nothing new, and times
beside two packages of R, which do not run here.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.engine.kernels import RBF, Sigmoid
from kpca_apps.papers.claims import Claims
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import parabola, rings, three_clusters
from kpca_apps.papers.measuring import components, contours
from kpca_apps.papers.methods.mercer import mercer_check
from kpca_apps.papers.result import Outcome

judged = Claims("script-runs")


def run(data: PaperData) -> Outcome:
    """Fit the three, and say how indefinite tanh is."""
    rng = np.random.default_rng(0)
    curve = parabola(rng, 250)
    tight, labels = three_clusters(rng, 250, radius=np.sqrt(3.0), deviation=0.25)
    ring, nowhere = rings(rng, (1.0,), 0.1, 500)
    on_curve = components(Sigmoid(1.0, 0.0), curve, 3)
    on_clusters = components(Sigmoid(2.0, 1.0), tight, 3)
    on_ring = components(RBF(0.1), ring, 4)
    check = mercer_check(Sigmoid(2.0, 1.0)(tight))
    claims = (judged("tanh", not check.is_psd, check.describe(), check.negative_share),)
    zeros = np.zeros(len(curve), dtype=np.intp)
    return Outcome(
        claims,
        (
            contours("tanh(x.y) on the parabola", on_curve, curve, zeros),
            contours("tanh(2 x.y + 1) on three clusters", on_clusters, tight, labels),
            contours("exp(-0.1 |x - y|^2) on a ring", on_ring, ring, nowhere),
        ),
    )
