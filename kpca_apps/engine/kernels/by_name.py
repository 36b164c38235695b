"""Kernels from the names and numbers of scikit-learn, and widths chosen without labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from scipy.spatial.distance import pdist

from kpca_apps.engine.kernels import (
    RBF,
    Cosine,
    FromFunction,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from kpca_apps.engine.landmarks import uniform_landmarks
from kpca_apps.engine.rows import SampleRows
from kpca_apps.system.arrays import Matrix

COMPARED_ROWS = 500
"""Rows whose distances a width is chosen from."""

MEDIAN_SAMPLE = 2_000
"""Numbers that say about where the median of more is."""

KernelName = Literal["rbf", "laplacian", "poly", "linear", "cosine", "sigmoid", "precomputed"]
KERNEL_NAMES = frozenset(get_args(KernelName))
KernelLike = KernelName | Kernel | Callable[..., Any]


def resolved_kernel(
    kernel: KernelLike,
    X: SampleRows,
    rng: np.random.Generator,
    *,
    gamma: float | None = None,
    sigma: float | None = None,
    degree: int = 3,
    coef0: float = 1.0,
) -> Kernel:
    """Return the kernel that a name and its numbers stand for; widths not given come from ``X``."""
    if sigma is not None and (kernel != "rbf" or gamma is not None):
        raise ValueError("sigma is for kernel='rbf', and instead of gamma: give one of them.")
    if isinstance(kernel, Kernel):
        if gamma is not None:
            raise ValueError("gamma is part of the kernel object: do not give it twice.")
        return kernel
    if callable(kernel):
        return FromFunction(kernel)
    if sigma is not None:
        return RBF.from_sigma(sigma)
    if kernel in ("rbf", "laplacian"):
        if gamma is None and kernel == "rbf":
            gamma = 1.0 / median_squared_distance(X, rng)
        elif gamma is None:
            gamma = 1.0 / _median_distance(X, rng, "cityblock", COMPARED_ROWS)
        return RBF(float(gamma)) if kernel == "rbf" else Laplacian(float(gamma))
    gamma = 1.0 / X.shape[1] if gamma is None else float(gamma)
    if kernel == "poly":
        return Polynomial(degree, gamma, coef0)
    if kernel == "sigmoid":
        return Sigmoid(gamma, coef0)
    return Linear() if kernel == "linear" else Cosine()


def median_squared_distance(
    X: SampleRows, rng: np.random.Generator, *, rows: int = COMPARED_ROWS
) -> float:
    """Return the median of the squared distances, other than 0, among at most ``rows`` rows drawn.

    One over it is the usual first choice of gamma: it does not depend on the units of the data. 1
    where all rows are the same: then the kernel is constant whatever its width.
    """
    return _median_distance(X, rng, "sqeuclidean", rows)


def _median_distance(
    X: SampleRows, rng: np.random.Generator, metric: Literal["sqeuclidean", "cityblock"], rows: int
) -> float:
    """Return the median of the distances other than 0, or refuse values that have none."""
    drawn = X[uniform_landmarks(len(X), rows, rng)]
    distances = pdist(drawn, metric)
    # A denormal distance would make gamma infinite; it is as good as none.
    least = np.finfo(np.float64).tiny
    if not distances.min(initial=np.inf) > least:
        distances = distances[distances > least]
    if distances.size:
        with np.errstate(over="ignore"):
            median = _median(distances)
        if median < np.inf:
            return median
    elif (drawn == drawn[0]).all():
        return 1.0
    size = "large" if distances.size else "small"
    done = "squared" if metric == "sqeuclidean" else "added up"
    raise ValueError(f"Values of the rows are too {size} to be {done}: scale the columns first.")


def _median(values: Matrix) -> float:
    """Return the median of many numbers (n,): of those alone that lie about a sample's median."""
    # Floyd and Rivest (1975), Expected time bounds for selection, CACM 18, 165-172.
    n, step = len(values), len(values) // MEDIAN_SAMPLE
    if step > 1:
        sample = np.sort(values[::step])
        middle, margin = len(sample) // 2, 3 * math.isqrt(len(sample))
        low, high = sample[middle - margin], sample[min(middle + margin, len(sample) - 1)]
        below = int(np.count_nonzero(values < low))
        # By their places, which takes a quarter of the time that a mask does.
        inside = values.take(np.flatnonzero((values >= low) & (values <= high)))
        first, last = (n - 1) // 2 - below, n // 2 - below
        if 0 <= first and last < len(inside):
            inside.partition((first, last))
            return float(0.5 * (inside[first] + inside[last]))
    return float(np.median(values))
