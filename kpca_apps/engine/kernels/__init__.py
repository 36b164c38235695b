"""The kernels that `KernelPCA` takes, and what a kernel of one's own is made from."""

from kpca_apps.engine.kernels.base import (
    Kernel,
    KernelRows,
    LinearlyMapped,
    OnColumns,
    Recentred,
    Scaled,
    Sum,
    Wrapped,
)
from kpca_apps.engine.kernels.standard import (
    RBF,
    Cosine,
    Laplacian,
    Linear,
    MeanRBF,
    Polynomial,
    Sigmoid,
)
from kpca_apps.engine.kernels.supplied import FromFunction, Precomputed

__all__ = [
    "RBF",
    "Cosine",
    "FromFunction",
    "Kernel",
    "KernelRows",
    "Laplacian",
    "Linear",
    "LinearlyMapped",
    "MeanRBF",
    "OnColumns",
    "Polynomial",
    "Precomputed",
    "Recentred",
    "Scaled",
    "Sigmoid",
    "Sum",
    "Wrapped",
]
