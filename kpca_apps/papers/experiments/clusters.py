"""Three Gaussian clusters: the contours of eight components (Fig. 1)."""

from __future__ import annotations

import numpy as np

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.claims import Claims
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import three_clusters
from kpca_apps.papers.measuring import (
    components,
    contours,
    nearest_mean_accuracy,
    scree,
    within_share,
)
from kpca_apps.papers.result import Outcome

judged = Claims("clusters")

DRAWS = 20
KERNEL = "exp(-0.3 |x - y|^2)"


def run(data: PaperData) -> Outcome:
    """Show one draw, and judge what the caption says on many."""
    X, labels = three_clusters(np.random.default_rng(0))
    subspace = components(RBF(0.3), X, 10)
    figures = (
        contours(f"Contours of {KERNEL}, eight components", subspace.leading(8), X, labels),
        scree("Variances", {KERNEL: subspace}),
    )
    draws = [_drawn(np.random.default_rng(draw)) for draw in range(DRAWS)]
    right, ratio, before, inside, fifth, eighth, pair, three, six = np.transpose(draws)
    least = "all" if right.min() == 1.0 else f"at least {right.min():.3f}"
    parted = right.min() == 1.0 and ratio.min() > 2.5
    split = inside.min() > 0.99 and before.max() < 0.1 and six.max() < 30.0
    means = [values.mean() for values in (fifth, three, eighth, six, pair)]
    claims = (
        judged("first two", parted, least, ratio.min(), DRAWS),
        judged("third to eighth", split, inside.min(), before.max(), DRAWS, *means),
    )
    return Outcome(claims, figures)


def _drawn(rng: np.random.Generator) -> tuple[float, ...]:
    """Return what is judged, of one draw."""
    # The share of rows nearest to their own mean on components 1 and 2; eigenvalue 2 over 3; the
    # largest share of variance within clusters of components 1 and 2 and the smallest of 3 to 8;
    # eigenvalues 5 over 6 and 8 over 9; and the angles, in degrees, by which another draw of the
    # rows turns the spaces of components 1 and 2, 3 to 5, and 3 to 8.
    X, labels = three_clusters(rng)
    first, second = (components(RBF(0.3), rows, 9) for rows in (X, three_clusters(rng)[0]))
    T, v = first.project(X), first.variances
    inside = within_share(T, labels)
    return (
        nearest_mean_accuracy(T[:, :2], labels),
        v[1] / v[2],
        inside[:2].max(),
        inside[2:8].min(),
        v[4] / v[5],
        v[7] / v[8],
        *(largest_angle(first, second, slice(*part)) for part in ((0, 2), (2, 5), (2, 8))),
    )


def largest_angle(first: KernelSubspace, second: KernelSubspace, part: slice) -> float:
    """Return the largest angle in feature space between some components of two fits, in degrees."""
    K = first.kernel(first.points, second.points)
    cross = first.weights[:, part].T @ K @ second.weights[:, part]
    cosine = np.linalg.svd(cross, compute_uv=False).min()
    return float(np.degrees(np.arccos(min(cosine, 1.0))))
