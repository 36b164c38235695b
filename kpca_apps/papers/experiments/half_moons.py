"""Two half moons, exp(-0.01 |x - y|^2) and exp(-2 |x - y|^2) (Fig. 4).

How well moons are distinguished is measured twice, as the caption does not say how: by the nearest
mean of two components, and by the line of least squares through them. The authors' script hands the
class label to kernel PCA as a third column, which separates the moons for it; both are measured.
"""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from kpca_apps.engine.kernels import RBF
from kpca_apps.papers.claims import Claims
from kpca_apps.papers.data import Labels, PaperData
from kpca_apps.papers.drawn import half_moons
from kpca_apps.papers.figures import Scatter, Table
from kpca_apps.papers.measuring import components, line_accuracy, nearest_mean_accuracy, scree
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix

judged = Claims("half-moons")

DRAWS = 20
WIDE, NARROW = "exp(-0.01 |x - y|^2)", "exp(-2 |x - y|^2)"
WAYS = (
    "PCA",
    *(f"{kernel}{label}" for label in ("", ", label as third column") for kernel in (WIDE, NARROW)),
)


def run(data: PaperData) -> Outcome:
    """Show one draw, and judge what the caption says on many."""
    X, labels = half_moons(np.random.default_rng(0))
    narrow, wide = components(RBF(2.0), X, 2), components(RBF(0.01), X, 10)
    pca = PCA(2).fit(X)
    figures = (
        Scatter("Rows and linear principal axes", "x", "y", X, labels, pca.components_),
        Scatter(WIDE, "component 1", "component 2", wide.project(X)[:, :2], labels),
        scree("Scree plot, sigma 0.01", {WIDE: wide}),
        Scatter(NARROW, "component 1", "component 2", narrow.project(X), labels),
    )
    drawn = [_shape(half_moons(np.random.default_rng(draw))[0]) for draw in range(DRAWS)]
    right = np.mean([_accuracies(*half_moons(np.random.default_rng(d))) for d in range(DRAWS)], 0)
    table = Table(
        f"Share of the rows put right, mean of {DRAWS} draws",
        ("two components of", "nearest mean", "best line"),
        tuple(
            (name, *(f"{share:.3f}" for share in row))
            for name, row in zip(WAYS, right, strict=True)
        ),
    )
    note = "The label is no part of the data here; the authors' script includes it."
    return Outcome(_judge(np.array(drawn), right), figures, (table,), (note,))


def _shape(X: Matrix) -> tuple[float, ...]:
    """Return the share of two components at .01, eigenvalue 2 over 3, correlations with PCA."""
    wide = components(RBF(0.01), X)
    P, W = PCA(2).fit_transform(X), wide.project(X)
    same = [abs(float(np.corrcoef(P[:, a], W[:, a])[0, 1])) for a in (0, 1)]
    share = float(wide.variances[:2].sum() / wide.variances.sum())
    return share, float(wide.variances[1] / wide.variances[2]), *same


def _accuracies(X: Matrix, labels: Labels) -> Matrix:
    """Return both measures of how well the moons are separated, for each of `WAYS`."""
    Y = np.column_stack([X, labels])
    planes = [PCA(2).fit_transform(X)]
    planes += [components(RBF(g), Z, 2).project(Z) for Z in (X, Y) for g in (0.01, 2.0)]
    return np.array([(nearest_mean_accuracy(T, labels), line_accuracy(T, labels)) for T in planes])


def _judge(shapes: Matrix, right: Matrix) -> tuple[Claim, ...]:
    share, elbow, *same = shapes.min(axis=0)
    but = ""
    if right[2, 1] < right[1, 1]:
        but = (
            "by the nearest mean only; by a straight line 0.01 does better, and PCA as well as 0.01"
        )
    return (
        judged("elbow", share > 0.97 and elbow > 6.0, share, elbow, DRAWS),
        judged("shape", min(same) < 0.999, *same),
        judged("narrow", right[2, 0] > right[1, 0], right, but),
    )
