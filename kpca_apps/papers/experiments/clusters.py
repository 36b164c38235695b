"""Three Gaussian clusters: the isolines of eight components (Aguilera and Antonanzas, Fig. 1).

The paper's sigma is an inverse width: exp(-0.3 |x - y|^2). Its caption has components 3 to 5 halve
the clusters and 6 to 8 halve them again at right angles. Those six eigenvalues lie so close
together that only the block of six is stable: another draw of the rows turns the components in it.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.engine.kernels import RBF
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import three_clusters
from kpca_apps.papers.measuring import (
    components,
    isolines,
    nearest_mean_accuracy,
    scree,
    within_share,
)
from kpca_apps.papers.registry import Experiment
from kpca_apps.papers.result import Outcome, stated

__all__ = ["EXPERIMENT"]


def run(data: PaperData) -> Outcome:
    """Fit the clusters and judge what the caption says of each component."""
    X, labels = three_clusters(np.random.default_rng(0))
    subspace = components(RBF(0.3), X, 10)
    T, v = subspace.project(X), subspace.variances
    accuracy = nearest_mean_accuracy(T[:, :2], labels)
    inside = within_share(T, labels)
    claims = (
        stated(
            "components 1 and 2 separate the three clusters",
            "nicely",
            f"{accuracy:.3f} of the rows nearest to their own mean; eigenvalue 2 / 3 is "
            f"{v[1] / v[2]:.1f}",
            accuracy == 1.0 and v[1] / v[2] > 2.5,
        ),
        stated(
            "components 3 to 8 split within the clusters",
            "3 to 5 into halves, 6 to 8 at right angles",
            f"at least {inside[2:8].min():.3f} of their variance lies within clusters, "
            f"{inside[:2].max():.3f} at most of that of 1 and 2",
            bool(inside[2:8].min() > 0.95 and inside[:2].max() < 0.2),
            condition="as a block of six: the division after the fifth is not stable, eigenvalue "
            f"5 / 6 is {v[4] / v[5]:.2f} and 8 / 9 is {v[7] / v[8]:.2f}",
        ),
    )
    return Outcome(
        claims,
        (
            isolines("Isolines of the first eight components", subspace.leading(8), X, labels),
            scree("Variances", {"exp(-0.3 |x - y|^2)": subspace}),
        ),
    )


EXPERIMENT = Experiment(
    "clusters", "Aguilera and Antonanzas (2019), Fig. 1", "Three clusters, Gaussian kernel", (), run
)
