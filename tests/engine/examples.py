"""Kernels, data and paths of reference results shared by the engine's tests."""

from pathlib import Path
from typing import Any

import numpy as np

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import (
    RBF,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    MeanRBF,
    OnColumns,
    Polynomial,
    Sigmoid,
)
from kpca_apps.engine.plan import FitOptions
from kpca_apps.engine.subspace import KernelSubspace

ORACLES = Path(__file__).resolve().parents[1] / "oracles"

DISTANCE_KERNELS: dict[str, Kernel] = {
    "rbf": RBF(0.3),
    "multiscale": MeanRBF(0.2),
    "multiscale-1-2-5": MeanRBF(0.1, (1, 2, 5)),
    "multiscale-2": MeanRBF(0.1, (2,)),
    "laplacian": Laplacian(0.4, "euclidean"),
    "laplacian-manhattan": Laplacian(0.4, "manhattan"),
    "mean-over-views": MeanRBF(0.2, (1, 3), 2),
    "views": 0.5 * (OnColumns(MeanRBF(0.2), 0, 2) + OnColumns(RBF(0.1), 2, 4)),
}

PSD_KERNELS: dict[str, Kernel] = {
    **DISTANCE_KERNELS,
    "polynomial": Polynomial(3, 0.5, 1.0),
    "homogeneous": Polynomial(2),
    "linear": Linear(),
    "cosine": Cosine(),
    "sum": RBF(0.3) + 2.0 * Linear(),
}

KERNELS: dict[str, Kernel] = {**PSD_KERNELS, "sigmoid": Sigmoid(0.1, -0.5)}


def normal_rows(n: int, d: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def curved_rows(n: int, d: int = 12) -> np.ndarray:
    """Return rows near a curved five-dimensional surface."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(n, 5))
    turned = np.sin(latent @ rng.normal(size=(5, d))) + (latent @ rng.normal(size=(5, d))) ** 2 / 9
    return turned + 0.1 * rng.normal(size=(n, d))


def exact(
    kernel: Kernel, X: np.ndarray, n_components: int | None = None, **options: Any
) -> KernelSubspace:
    """Fit all rows exactly with a fixed seed."""
    rng = np.random.default_rng(0)
    return fit_exact(kernel, X, rng=rng, options=FitOptions(n_components, **options))
