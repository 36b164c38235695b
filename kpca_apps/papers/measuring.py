"""Measurements shared by several experiments."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import NearestCentroid

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.linalg.gram import centre_in_place
from kpca_apps.engine.plan import FitOptions
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.data import Labels
from kpca_apps.papers.figures import Contours, Curves
from kpca_apps.system.arrays import Matrix

GRID = 60  # number of grid points along each side
SMOOTHING = 0.75  # filter width in pixels that gives digits the variance in Mika et al. (1998)


def components(kernel: Kernel, X: Matrix, n_components: int | None = None) -> KernelSubspace:
    """Return the components of centred, exact kernel PCA."""
    return fit_exact(kernel, X, rng=np.random.default_rng(0), options=FitOptions(n_components))


def centred(K: Matrix) -> Matrix:
    """Return a centred copy of a Gram matrix."""
    gram = K.copy()
    centre_in_place(gram)
    return gram


def contours(title: str, subspace: KernelSubspace, X: Matrix, labels: Labels) -> Contours:
    """Return contours of the components on a grid around the rows of X, points in the plane."""
    x, y, places = plane_grid(X)
    values = subspace.project(places).T.reshape(-1, GRID, GRID)
    captions = tuple(
        f"component {a + 1}: {variance:.3g}" for a, variance in enumerate(subspace.variances)
    )
    return Contours(title, x, y, values, X, labels, captions)


def scree(title: str, name: str, subspace: KernelSubspace) -> Curves:
    """Return a curve of the components' variances against their numbers 1, 2, ..., q."""
    series = {name: (np.arange(1.0, subspace.n_components + 1.0), subspace.variances)}
    return Curves(title, "component", "variance in feature space", series)


def plane_grid(X: Matrix, *, side: int = GRID) -> tuple[Matrix, Matrix, Matrix]:
    """Return a grid around points X (n, 2): its x (w,), its y (h,), and its points (h w, 2)."""
    low, high = X.min(axis=0), X.max(axis=0)
    reach = 0.15 * (high - low)
    x, y = (np.linspace(low[j] - reach[j], high[j] + reach[j], side) for j in (0, 1))
    return x, y, np.column_stack([np.tile(x, side), np.repeat(y, side)])


def smoothed_digits(X: Matrix) -> Matrix:
    """Return smoothed 16 x 16 images, as if on white paper (-1)."""
    images = X.reshape(-1, 16, 16)
    filtered = gaussian_filter(images, (0.0, SMOOTHING, SMOOTHING), mode="constant", cval=-1.0)
    return np.asarray(filtered.reshape(len(X), 256))


def nearest_mean_accuracy(T: Matrix, labels: Labels) -> float:
    """Return the share of rows whose nearest group mean is that of their own group."""
    return float(NearestCentroid().fit(T, labels).score(T, labels))


def line_accuracy(T: Matrix, labels: Labels) -> float:
    """Return the share of rows whose label, 0 or 1, a least-squares fit predicts."""
    fitted = LinearRegression().fit(T, labels).predict(T)
    return float(np.mean((fitted > 0.5) == labels))


def within_share(T: Matrix, labels: Labels) -> Matrix:
    """Return the within-group share of each column's variance, shape ``(q,)``."""
    groups = np.unique(labels)
    within = sum(((T[labels == g] - T[labels == g].mean(axis=0)) ** 2).sum(axis=0) for g in groups)
    return np.asarray(within / ((T - T.mean(axis=0)) ** 2).sum(axis=0))


def best_threshold_accuracy(values: Matrix, labels: Labels) -> float:
    """Return the largest share of rows that thresholds on one coordinate classify correctly.

    Groups 0 to k - 1 may have any order along the coordinate. One threshold, between distinct
    values, separates each pair of neighbouring groups.
    """
    order = np.argsort(values, kind="stable")
    k = int(labels.max()) + 1
    hits = np.zeros((len(values) + 1, k))  # number of rows of each group before each threshold
    hits[1:] = np.cumsum(labels[order][:, None] == np.arange(k), axis=0)
    hits = hits[np.concatenate([[True], np.diff(values[order]) != 0.0, [True]])]

    def right(groups: tuple[int, ...]) -> float:
        best = np.where(np.arange(len(hits)) == 0, 0.0, -np.inf)
        for group in groups:
            best = np.maximum.accumulate(best - hits[:, group]) + hits[:, group]
        return float(best[-1])

    return max(map(right, permutations(range(k)))) / len(values)
