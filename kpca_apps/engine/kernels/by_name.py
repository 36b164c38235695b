"""Kernels from the names and numbers of scikit-learn, and widths chosen without labels."""

from __future__ import annotations

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

COMPARED_ROWS = 500
"""Rows whose distances a width is chosen from."""

KernelName = Literal["rbf", "laplacian", "poly", "linear", "cosine", "sigmoid", "precomputed"]
KERNEL_NAMES = frozenset(get_args(KernelName))
KernelLike = KernelName | Kernel | Callable[..., Any]
METRICS: dict[str, Literal["sqeuclidean", "cityblock"]] = {
    "rbf": "sqeuclidean",
    "laplacian": "cityblock",
}
"""Whose median is one over gamma where none is given."""


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
    if gamma is None and kernel in METRICS:
        gamma = 1.0 / _median_distance(X, rng, METRICS[kernel])
    gamma = 1.0 / X.shape[1] if gamma is None else float(gamma)
    made: dict[str, Callable[[], Kernel]] = {
        "rbf": lambda: RBF(gamma),
        "laplacian": lambda: Laplacian(gamma),
        "poly": lambda: Polynomial(degree, gamma, coef0),
        "sigmoid": lambda: Sigmoid(gamma, coef0),
        "linear": Linear,
        "cosine": Cosine,
    }
    return made[kernel]()


def median_squared_distance(X: SampleRows, rng: np.random.Generator) -> float:
    """Return the median of the squared distances, other than 0, among some rows drawn.

    One over it is the usual first choice of gamma: it does not depend on the units of the data. 1
    where all rows are the same: then the kernel is constant whatever its width.
    """
    return _median_distance(X, rng, "sqeuclidean")


def _median_distance(
    X: SampleRows, rng: np.random.Generator, metric: Literal["sqeuclidean", "cityblock"]
) -> float:
    """Return the median of the distances other than 0, or refuse values that have none."""
    drawn = X[uniform_landmarks(len(X), COMPARED_ROWS, rng)]
    distances = pdist(drawn, metric)
    # A denormal distance would make gamma infinite; it is as good as none.
    least = np.finfo(np.float64).tiny
    if not distances.min(initial=np.inf) > least:
        distances = distances[distances > least]
    if distances.size:
        with np.errstate(over="ignore"):
            median = float(np.median(distances))
        if median < np.inf:
            return median
    elif (drawn == drawn[0]).all():
        return 1.0
    size = "large" if distances.size else "small"
    done = "squared" if metric == "sqeuclidean" else "added up"
    raise ValueError(f"Values of the rows are too {size} to be {done}: scale the columns first.")
