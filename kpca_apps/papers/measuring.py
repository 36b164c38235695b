"""What several experiments measure: projections over a grid, and how well groups are told apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.figures import Curves, Isolines

__all__ = [
    "best_threshold_accuracy",
    "components",
    "isolines",
    "line_accuracy",
    "nearest_mean_accuracy",
    "plane_grid",
    "scree",
    "within_share",
]

Matrix = NDArray[np.float64]
Labels = NDArray[np.intp]

GRID = 60
"""Points of a grid along each side."""


def components(kernel: Kernel, X: Matrix, n_components: int | None = None) -> KernelSubspace:
    """Return the components of centred, exact kernel PCA."""
    return fit_exact(kernel, X, rng=np.random.default_rng(0), n_components=n_components)


def isolines(
    title: str, subspace: KernelSubspace, X: Matrix, labels: Labels, *, margin: float = 0.15
) -> Isolines:
    """Project a grid around rows of the plane.

    Parameters
    ----------
    title : str
    subspace : KernelSubspace
    X : ndarray of shape (n, 2)
    labels : ndarray of int, shape (n,)
    margin : float
        Beyond the rows, as a share of their extent.
    """
    x, y, places = plane_grid(X, margin=margin)
    values = subspace.project(places).T.reshape(-1, GRID, GRID)
    captions = tuple(
        f"component {a + 1}: {variance:.3g}" for a, variance in enumerate(subspace.variances)
    )
    return Isolines(title, x, y, values, X, labels, captions)


def scree(title: str, subspaces: dict[str, KernelSubspace], count: int = 10) -> Curves:
    """Return the leading variances of each subspace over their number."""
    series = {
        name: (np.arange(1.0, len(v) + 1.0), v)
        for name, v in ((n, s.variances[:count]) for n, s in subspaces.items())
    }
    return Curves(title, "component", "variance in feature space", series)


def plane_grid(
    X: Matrix, *, margin: float = 0.15, side: int = GRID
) -> tuple[Matrix, Matrix, Matrix]:
    """Return a grid around rows of the plane: x (w,), y (h,), and its points (h w, 2)."""
    low, high = X.min(axis=0), X.max(axis=0)
    reach = margin * (high - low)
    x, y = (np.linspace(low[j] - reach[j], high[j] + reach[j], side) for j in (0, 1))
    return x, y, np.column_stack([np.tile(x, side), np.repeat(y, side)])


def nearest_mean_accuracy(T: Matrix, labels: Labels) -> float:
    """Return the share of rows whose nearest group mean is that of their own group.

    Examples
    --------
    >>> nearest_mean_accuracy(np.array([[0.0], [1.0], [4.0]]), np.array([0, 0, 1]))
    1.0
    """
    means = np.stack([T[labels == group].mean(axis=0) for group in np.unique(labels)])
    gaps = ((T[:, None] - means) ** 2).sum(axis=2)
    return float(np.mean(np.unique(labels)[gaps.argmin(axis=1)] == labels))


def line_accuracy(T: Matrix, labels: Labels) -> float:
    """Return the share of rows that the least-squares line puts on their group's side.

    Parameters
    ----------
    T : ndarray of shape (n, q)
    labels : ndarray of int, shape (n,)
        Groups 0 and 1.

    Examples
    --------
    >>> line_accuracy(np.array([[0.0], [1.0], [4.0]]), np.array([0, 0, 1]))
    1.0
    """
    columns = np.column_stack([T, np.ones(len(T))])
    fitted = columns @ np.linalg.lstsq(columns, labels.astype(np.float64), rcond=None)[0]
    return float(np.mean((fitted > 0.5) == (labels == 1)))


def within_share(T: Matrix, labels: Labels) -> Matrix:
    """Return the share of each column's variance that lies within groups, shape ``(q,)``."""
    groups = np.unique(labels)
    within = sum(((T[labels == g] - T[labels == g].mean(axis=0)) ** 2).sum(axis=0) for g in groups)
    share: Matrix = within / ((T - T.mean(axis=0)) ** 2).sum(axis=0)
    return share


def best_threshold_accuracy(values: Matrix, labels: Labels) -> float:
    """Return the share of rows that the best cuts of one coordinate put right.

    One cut between each two neighbouring groups, whatever the order of the groups along the
    coordinate; a cut lies between two values, never between two rows of the same one.

    Parameters
    ----------
    values : ndarray of shape (n,)
    labels : ndarray of int, shape (n,)
        Groups 0 to k - 1.

    Examples
    --------
    >>> best_threshold_accuracy(np.array([1.0, 2.0, 3.0, 9.0]), np.array([1, 0, 0, 2]))
    1.0
    """
    order = np.argsort(values, kind="stable")
    k = int(labels.max()) + 1
    hits = np.zeros((len(values) + 1, k))
    hits[1:] = np.cumsum(labels[order][:, None] == np.arange(k), axis=0)
    apart = np.concatenate([[True], np.diff(values[order]) != 0.0, [True]])
    return float(_best_cuts(hits[apart], tuple(range(k))) / len(values))


def _best_cuts(hits: Matrix, groups: tuple[int, ...]) -> float:
    """Return the most rows put right by intervals, one a group, in the best order of groups.

    Row i of ``hits`` counts the rows of each group before the i-th place for a cut.
    """
    states: dict[frozenset[int], Matrix] = {
        frozenset(): np.where(np.arange(len(hits)) == 0, 0.0, -np.inf)
    }
    for _ in groups:
        longer: dict[frozenset[int], Matrix] = {}
        for used, best in states.items():
            for group in set(groups) - used:
                ends = np.maximum.accumulate(best - hits[:, group]) + hits[:, group]
                key = used | {group}
                longer[key] = np.maximum(longer[key], ends) if key in longer else ends
        states = longer
    return float(states[frozenset(groups)][-1])
