"""Kernels for `KernelPCA`, and base classes for writing other kernels."""

from kpca_apps.engine.kernels.base import Kernel as Kernel
from kpca_apps.engine.kernels.base import KernelRows as KernelRows
from kpca_apps.engine.kernels.base import LinearlyMapped as LinearlyMapped
from kpca_apps.engine.kernels.base import OnColumns as OnColumns
from kpca_apps.engine.kernels.base import Recentred as Recentred
from kpca_apps.engine.kernels.base import Scaled as Scaled
from kpca_apps.engine.kernels.base import Sum as Sum
from kpca_apps.engine.kernels.base import Wrapped as Wrapped
from kpca_apps.engine.kernels.standard import RBF as RBF
from kpca_apps.engine.kernels.standard import Cosine as Cosine
from kpca_apps.engine.kernels.standard import Laplacian as Laplacian
from kpca_apps.engine.kernels.standard import Linear as Linear
from kpca_apps.engine.kernels.standard import MeanRBF as MeanRBF
from kpca_apps.engine.kernels.standard import Polynomial as Polynomial
from kpca_apps.engine.kernels.standard import Sigmoid as Sigmoid
from kpca_apps.engine.kernels.supplied import FromFunction as FromFunction
from kpca_apps.engine.kernels.supplied import Precomputed as Precomputed
