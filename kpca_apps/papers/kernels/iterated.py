"""Iterated kernels: k2(x, y) = int k(x, z) k(z, y) dz, admissible for every symmetric k.

Two rows are alike in the iterated kernel if the kernel finds them alike to the same third points.
Positive semi-definiteness comes for free, k indefinite or not: sum_ij c_i c_j k2(x_i, x_j) is the
integral of (sum_i c_i k(x_i, z))^2. (The report writes positive; where the integral operator of k
has a null space, semi-definite is what remains true.)

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, eq. 73-74.
"""

# What `against`, `diagonal`, `describe` and `is_psd` promise is said once, on Kernel.
# ruff: noqa: D102
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kpca_apps.engine.kernels import Kernel, KernelRows, Wrapped
from kpca_apps.engine.kernels.base import Values, WeightedGradient
from kpca_apps.engine.kernels.products import squared_lengths
from kpca_apps.papers.kernels.mapped import as_table

__all__ = ["Iterated"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Iterated(Wrapped):
    """The iterated kernel over a sample: the mean over points z of k(x, z) k(z, y).

    The integral is taken over the distribution the points are drawn from. A kernel that is
    indefinite, such as `Sigmoid`, becomes one that has distances and reconstruction errors.

    Parameters
    ----------
    kernel : Kernel
        Symmetric; it need not be positive semi-definite.
    points : array-like of shape (m, d)
        The points z; a few hundred are enough, and all are stored with a model.

    References
    ----------
    .. [1] Scholkopf, Smola and Muller (1996), MPI technical report 44, eq. 73.

    Examples
    --------
    >>> from kpca_apps.engine.kernels import Linear
    >>> kernel = Iterated(Linear(), [[1.0, 0.0], [0.0, 2.0]])
    >>> kernel(np.array([[1.0, 1.0]]), np.array([[2.0, 3.0]]))
    array([[7.]])
    """

    kernel: Kernel
    points: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        self._require_kernel()
        self._set(points=as_table("points", self.points))

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        points = np.array(self.points)
        inner = self.kernel.against(points)
        columns = np.ascontiguousarray(inner(Z).T / len(points), dtype=dtype)

        def rows(X: Matrix) -> Values:
            # Values too large are told by whoever uses them, with the name of the kernel.
            with np.errstate(over="ignore", invalid="ignore"):
                values: Values = inner(X).astype(dtype, copy=False) @ columns
            return values

        return rows

    def diagonal(self, X: Matrix) -> Matrix:
        return squared_lengths(self.kernel(X, np.array(self.points))) / len(self.points)

    @property
    def is_psd(self) -> bool:
        return True

    def weighted_gradient(self, Z: Matrix) -> WeightedGradient:
        points = np.array(self.points)
        inner, known = self.kernel.weighted_gradient(points), self.kernel(Z, points)
        return lambda X, C: inner(X, C @ known / len(points))

    def diagonal_gradient(self, X: Matrix) -> Matrix:
        points = np.array(self.points)
        inner = self.kernel.weighted_gradient(points)
        return inner(X, 2.0 / len(points) * self.kernel(X, points))

    def describe(self) -> str:
        return f"mean over {len(self.points)} points z of k(x, z) k(z, y), k = " + (
            self.kernel.describe()
        )
