"""The cassini problem: linear components, and eight of a Gaussian kernel (Figs. 2 and 3).

Aguilera and Antonanzas' caption says of Fig. 3 that the first component separates the beans from
the circle. It is odd under reflection in the horizontal axis: it separates the two beans from
each other, and the circle lies between them. The circle is found by the third.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import cassini
from kpca_apps.papers.measuring import components, isolines, scree
from kpca_apps.papers.registry import Experiment
from kpca_apps.papers.result import Claim, Outcome, Scatter, close_to, stated

__all__ = ["EXPERIMENT"]

Matrix = NDArray[np.float64]


def run(data: PaperData) -> Outcome:
    """Compare the linear kernel with PCA, and each component with its caption."""
    X, labels = cassini(np.random.default_rng(0))
    linear, gaussian = components(Linear(), X), components(RBF(0.2), X, 10)
    pca = PCA(2).fit(X)
    gap = float(np.abs(np.abs(linear.project(X)) - np.abs(pca.transform(X))).max())
    claims = (
        close_to("Fig. 2: linear kernel PCA is PCA, largest difference", 0.0, gap, 1e-10),
        close_to("Fig. 2: components of the linear kernel", 2.0, float(linear.n_components), 0.0),
        *_captions(gaussian, X, labels),
    )
    axes = pca.components_ * np.sqrt(pca.explained_variance_)[:, None]
    return Outcome(
        claims,
        (
            Scatter("Fig. 2: linear principal axes", "x", "y", X, labels, axes),
            isolines("Fig. 2: isolines of the linear kernel", linear, X, labels),
            isolines("Fig. 3: isolines of exp(-0.2 |x - y|^2)", gaussian.leading(8), X, labels),
            scree("Variances", {"exp(-0.2 |x - y|^2)": gaussian}),
        ),
    )


def parity(subspace: KernelSubspace, X: Matrix, mirror: tuple[float, float]) -> Matrix:
    """Return the correlation of each component with itself at mirrored rows: -1 odd, 1 even."""
    T, M = subspace.project(X), subspace.project(X * np.array(mirror))
    T, M = T - T.mean(axis=0), M - M.mean(axis=0)
    lengths = np.linalg.norm(T, axis=0) * np.linalg.norm(M, axis=0)
    values: Matrix = np.einsum("ij,ij->j", T, M) / lengths
    return values


def _mean_parities(rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """Return the parities in x and in y of the first components, means over 20 draws."""
    found = []
    for _ in range(20):
        X, _labels = cassini(rng)
        subspace = components(RBF(0.2), X, 5)
        found.append([parity(subspace, X, m) for m in ((-1.0, 1.0), (1.0, -1.0))])
    in_x, in_y = np.mean(found, axis=0)
    return in_x, in_y


def _captions(subspace: KernelSubspace, X: Matrix, labels: NDArray[np.intp]) -> tuple[Claim, ...]:
    T = subspace.project(X)
    in_x, in_y = _mean_parities(np.random.default_rng(1))
    circle = (labels == 2).astype(np.float64)
    with_circle = [abs(float(np.corrcoef(T[:, a], circle)[0, 1])) for a in range(4)]
    with_y = abs(float(np.corrcoef(T[:, 0], X[:, 1])[0, 1]))
    return (
        stated(
            "Fig. 3: component 1",
            "separates the beans from the circle",
            f"odd in y (parity {in_y[0]:.2f}), correlation {with_y:.2f} with y and "
            f"{with_circle[0]:.2f} with the circle",
            with_circle[0] > with_y,
            reason="it separates the two beans from each other; component 3 finds the circle",
        ),
        stated(
            "Fig. 3: component 2",
            "divides the clusters vertically",
            f"odd in x (parity {in_x[1]:.2f}, mean of 20 draws)",
            in_x[1] < -0.8,
        ),
        stated(
            "Fig. 3: component 3",
            "identifies the middle circle",
            f"correlation {with_circle[2]:.2f} with the circle",
            with_circle[2] > 0.6,
        ),
        stated(
            "Fig. 3: component 4",
            "splits the data in four",
            f"odd in x and in y (parities {in_x[3]:.2f}, {in_y[3]:.2f})",
            in_x[3] < -0.7 and in_y[3] < -0.7,
        ),
    )


EXPERIMENT = Experiment(
    "cassini",
    "Aguilera and Antonanzas (2019), Figs. 2 and 3",
    "Two beans and a circle, linear and Gaussian kernel",
    (),
    run,
)
