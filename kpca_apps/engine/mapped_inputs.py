"""Kernels of mapped inputs: k(Ax, Ay), among them (Ax.Ay)^d, and k(x - c, y - c).

Whatever A is, the kernel stays positive semi-definite if k is: it is k on other columns. A may
whiten the columns, weigh directions, keep a few of them, or sample and smooth an image.

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, eq. 69 and footnote 16.
"""

# What `against`, `diagonal`, `describe` and `is_psd` promise is said once, on Kernel.
# ruff: noqa: D102
from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kpca_apps.engine.kernel_algebra import Kernel, KernelRows, as_number, as_table

__all__ = ["LinearlyMapped", "MappedInputs", "Recentred", "Translated"]

Matrix = NDArray[np.float64]


class LinearlyMapped(Kernel):
    """A kernel that sees its rows through a linear map, or an affine one; subclasses say which."""

    kernel: Kernel

    @abstractmethod
    def map_rows(self, X: Matrix) -> Matrix:
        """Return Ax + b for each row x of ``X``, ``(n, d)`` to ``(n, m)``."""

    @abstractmethod
    def pull_back(self, G: Matrix) -> Matrix:
        """Return A'g for each row g of ``G``, ``(n, m)`` to ``(n, d)``: gradients go this way."""

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        inner = self.kernel.against(self.map_rows(Z), dtype)
        return lambda X: inner(self.map_rows(X))

    def diagonal(self, X: Matrix) -> Matrix:
        return self.kernel.diagonal(self.map_rows(X))

    @property
    def is_psd(self) -> bool:
        return self.kernel.is_psd

    def _require_kernel(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ValueError(f"kernel must be a Kernel, got {self.kernel!r}.")


@dataclass(frozen=True)
class MappedInputs(LinearlyMapped):
    """The kernel k(Ax, Ay) for a matrix A; with `Polynomial` inside it is (Ax.Ay)^d.

    A diagonal A is what `ScaledInputs` does at less cost.

    Parameters
    ----------
    kernel : Kernel
        Of the mapped rows.
    matrix : array-like of shape (m, d)
        A.

    References
    ----------
    .. [1] Scholkopf, Smola and Muller (1996), MPI technical report 44, footnote 16.

    Examples
    --------
    >>> from kpca_apps.engine.kernels import Polynomial
    >>> kernel = MappedInputs(Polynomial(2), [[1.0, 1.0]])
    >>> kernel(np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]]))
    array([[36.]])
    """

    kernel: Kernel
    matrix: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        self._require_kernel()
        self._set(matrix=as_table("matrix", self.matrix))

    def map_rows(self, X: Matrix) -> Matrix:
        matrix = np.array(self.matrix)
        if X.shape[1] != matrix.shape[1]:
            raise ValueError(
                f"matrix has {matrix.shape[1]} columns, but the rows have {X.shape[1]}."
            )
        # Values too large are told by whoever uses them, with the name of the kernel.
        with np.errstate(over="ignore", invalid="ignore"):
            mapped: Matrix = X @ matrix.T
        return mapped

    def pull_back(self, G: Matrix) -> Matrix:
        gradients: Matrix = G @ np.array(self.matrix)
        return gradients

    def describe(self) -> str:
        m, d = len(self.matrix), len(self.matrix[0])
        return f"{self.kernel.describe()} of Ax and Ay, A {m} x {d}"


@dataclass(frozen=True)
class Translated(LinearlyMapped):
    """The kernel k(x - c, y - c), which keeps the digits of rows that lie far from 0.

    Parameters
    ----------
    kernel : Kernel
    origin : sequence of d floats
        c.

    Examples
    --------
    >>> from kpca_apps.engine.kernels import Linear
    >>> Translated(Linear(), (1e9, 1e9))(np.array([[1e9 + 1.0, 1e9 - 2.0]]))
    array([[5.]])
    """

    kernel: Kernel
    origin: tuple[float, ...]

    def __post_init__(self) -> None:
        self._require_kernel()
        self._set(origin=tuple(as_number("origin", value) for value in self.origin))

    def map_rows(self, X: Matrix) -> Matrix:
        if X.shape[1] != len(self.origin):
            raise ValueError(
                f"origin has {len(self.origin)} numbers, but the rows have {X.shape[1]} columns."
            )
        moved: Matrix = X - np.array(self.origin)
        return moved

    def pull_back(self, G: Matrix) -> Matrix:
        return G

    def describe(self) -> str:
        return f"{self.kernel.describe()} about a fixed point"


class Recentred(Translated):
    """The translation that a fit makes of its own, for digits alone: no part of a user's kernel."""
