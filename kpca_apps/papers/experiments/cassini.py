"""The cassini problem: linear components, and eight of a Gaussian kernel (Figs. 2 and 3)."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.claims import Claims
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import cassini
from kpca_apps.papers.figures import Scatter
from kpca_apps.papers.measuring import components, contours, scree
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix

judged = Claims("cassini")

DRAWS = 20
ODD = -0.8  # parity below which a component counts as odd; exact symmetry would give -1


def run(data: PaperData) -> Outcome:
    """Compare the linear kernel with PCA, and each component with its caption."""
    X, labels = cassini(np.random.default_rng(0))
    linear, gaussian = components(Linear(), X), components(RBF(0.2), X, 10)
    pca = PCA(2).fit(X)
    gap = float(np.abs(np.abs(linear.project(X)) - np.abs(pca.transform(X))).max())
    claims = (
        judged.near("linear gap", gap),
        judged.near("linear count", float(linear.n_components)),
        *_captions(),
    )
    axes = pca.components_ * np.sqrt(pca.explained_variance_)[:, None]
    return Outcome(
        claims,
        (
            Scatter("Fig. 2: linear principal axes", "x", "y", X, labels, axes),
            contours("Fig. 2: contours of the linear kernel", linear, X, labels),
            contours("Fig. 3: contours of exp(-0.2 |x - y|^2)", gaussian.leading(8), X, labels),
            scree("Variances", {"exp(-0.2 |x - y|^2)": gaussian}),
        ),
        notes=(
            "In brackets: the correlation of a component with itself at mirrored rows; -1 where it "
            f"changes its sign in the mirror, 1 where it stays. All are means of {DRAWS} draws.",
        ),
    )


def parity(subspace: KernelSubspace, X: Matrix, mirror: tuple[float, float]) -> Matrix:
    """Return the correlation of each component with itself at mirrored rows: -1 odd, 1 even."""
    T, M = subspace.project(X), subspace.project(X * np.array(mirror))
    T, M = T - T.mean(axis=0), M - M.mean(axis=0)
    lengths = np.linalg.norm(T, axis=0) * np.linalg.norm(M, axis=0)
    values: Matrix = np.einsum("ij,ij->j", T, M) / lengths
    return values


def _over_draws(rng: np.random.Generator) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Return means over draws for each of the first components, shapes ``(4,)``.

    The parities in x and in y, and the moduli of the correlations with y and with the circle.
    """
    found = []
    for _ in range(DRAWS):
        X, labels = cassini(rng)
        subspace = components(RBF(0.2), X, 4)
        beside = np.column_stack([X[:, 1], labels == 2])
        alike = np.abs(np.corrcoef(subspace.project(X).T, beside.T)[:4, 4:])
        found.append([parity(subspace, X, m) for m in ((-1.0, 1.0), (1.0, -1.0))] + list(alike.T))
    in_x, in_y, with_y, with_circle = np.mean(found, axis=0)
    return in_x, in_y, with_y, with_circle


def _captions() -> tuple[Claim, ...]:
    """Judge each component by its parities: -1 if it changes its sign in the mirror."""
    in_x, in_y, with_y, with_circle = _over_draws(np.random.default_rng(1))
    found = with_circle[2] > 0.6 and with_circle.argmax() == 2
    return (
        judged("component 1", with_circle[0] > with_y[0], in_y[0], with_y[0], with_circle[0]),
        judged("component 2", in_x[1] < ODD, in_x[1]),
        judged("component 3", found, with_circle[2], np.delete(with_circle, 2).max()),
        judged("component 4", max(in_x[3], in_y[3]) < ODD, in_x[3], in_y[3]),
    )
