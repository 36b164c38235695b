"""Kernels from the names and numbers that scikit-learn's users know them by."""

from __future__ import annotations

import numpy as np

from kpca_apps.engine.kernels import (
    RBF,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from kpca_apps.engine.kernels.bandwidth import median_squared_distance
from kpca_apps.engine.rows import SampleRows

__all__ = ["KERNEL_NAMES", "resolved_kernel"]

KERNEL_NAMES = {"rbf", "laplacian", "poly", "linear", "cosine", "sigmoid"}


def resolved_kernel(
    kernel: str | Kernel,
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
    if sigma is not None:
        return RBF.from_sigma(sigma)
    if kernel in ("rbf", "laplacian"):
        if gamma is None:
            power = 1.0 if kernel == "rbf" else 0.5
            gamma = median_squared_distance(X, rng) ** -power
        return RBF(float(gamma)) if kernel == "rbf" else Laplacian(float(gamma))
    gamma = 1.0 / X.shape[1] if gamma is None else float(gamma)
    if kernel == "poly":
        return Polynomial(degree, gamma, coef0)
    if kernel == "sigmoid":
        return Sigmoid(gamma, coef0)
    return Linear() if kernel == "linear" else Cosine()
