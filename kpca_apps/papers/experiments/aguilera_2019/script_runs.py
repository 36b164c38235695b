"""Runs of the authors' public script that did not reach the paper: tanh kernels, and a ring.

tanh is indefinite: its components are features, but no distance belongs to them; the script drops
those of negative eigenvalues. Left out are its runs on iris, which show nothing new, and times
beside two packages of R, which do not run here.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.engine.kernels import RBF, Sigmoid
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import parabola, rings, three_clusters
from kpca_apps.papers.measuring import components, contours
from kpca_apps.papers.methods.mercer import mercer_check
from kpca_apps.papers.result import Experiment, Outcome, stated


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
    claims = (
        stated(
            "tanh kernels are indefinite",
            "some eigenvalues may be negative",
            f"{check.describe()}; negative share {check.negative_share:.2f}",
            not check.is_psd,
            source="1996 report, B.2",
        ),
    )
    zeros = np.zeros(len(curve), dtype=np.intp)
    return Outcome(
        claims,
        (
            contours("tanh(x.y) on the parabola", on_curve, curve, zeros),
            contours("tanh(2 x.y + 1) on three clusters", on_clusters, tight, labels),
            contours("exp(-0.1 |x - y|^2) on a ring", on_ring, ring, nowhere),
        ),
    )


EXPERIMENT = Experiment(
    "script-runs",
    "Aguilera and Antonanzas (2019), their public script",
    "Tanh kernels on the parabola and on clusters; a ring",
    (),
    run,
    "Kernels and numbers of rows are those of the authors' public script, the rows are drawn from "
    "our own generator. Components of tanh are ordered by the modulus of their eigenvalues and "
    "scaled by its root, as the 1996 report says.",
)
