"""Kernels from scikit-learn's names and parameters."""

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

COMPARED_ROWS = 500  # number of rows drawn to estimate a kernel width
KernelName = Literal["rbf", "laplacian", "poly", "linear", "cosine", "sigmoid", "precomputed"]
KERNEL_NAMES = frozenset(get_args(KernelName))
KernelLike = KernelName | Kernel | Callable[..., Any]
# Distances whose median is 1 / gamma.
METRICS: dict[str, Literal["sqeuclidean", "cityblock"]] = {
    "rbf": "sqeuclidean",
    "laplacian": "cityblock",
}


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
    """Return the kernel for a name and parameters."""
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
        gamma = 1.0 / median_distance(X, rng, METRICS[kernel])
    gamma = 1.0 / X.shape[1] if gamma is None else float(gamma)
    kernels: dict[str, Callable[[], Kernel]] = {
        "rbf": lambda: RBF(gamma),
        "laplacian": lambda: Laplacian(gamma),
        "poly": lambda: Polynomial(degree, gamma, coef0),
        "sigmoid": lambda: Sigmoid(gamma, coef0),
        "linear": Linear,
        "cosine": Cosine,
    }
    return kernels[kernel]()


def median_distance(
    X: SampleRows,
    rng: np.random.Generator,
    metric: Literal["sqeuclidean", "cityblock"] = "sqeuclidean",
) -> float:
    """Return the median of the non-zero (squared) distances between drawn rows.

    Its reciprocal is the usual default of gamma. The result is 1 if all rows are equal. Raises
    ValueError if values over- or underflow.
    """
    drawn = X[uniform_landmarks(len(X), COMPARED_ROWS, rng)]
    distances = pdist(drawn, metric)
    # Denormal distances count as zero, as they would make gamma infinite.
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
