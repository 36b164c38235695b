"""Kernels of linearly mapped inputs: k(Ax, Ay), among them (Ax.Ay)^d.

A may whiten the columns, weigh directions, or keep a few of them.

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, eq. 69 and footnote 16.
"""

# What `map_rows`, `pull_back` and `describe` promise is said once, on LinearlyMapped and Kernel.
# ruff: noqa: D102
from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.kernels import Kernel, LinearlyMapped
from kpca_apps.engine.kernels.base import as_number

__all__ = ["MappedInputs", "as_table"]

Matrix = NDArray[np.float64]


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

    def pull_back(self, G: Matrix, d: int) -> Matrix:
        gradients: Matrix = G @ np.array(self.matrix)
        return gradients

    def describe(self) -> str:
        m, d = len(self.matrix), len(self.matrix[0])
        return f"{self.kernel.describe()} of Ax and Ay, A {m} x {d}"


def as_table(name: str, value: Any) -> tuple[tuple[float, ...], ...]:
    """Return ``value`` as rows of floats; raise ValueError unless they are of one length >= 1."""
    rows: tuple[tuple[float, ...], ...] = ()
    with suppress(TypeError):
        rows = tuple(tuple(as_number(name, number) for number in row) for row in value)
    if not rows or not rows[0] or len({len(row) for row in rows}) != 1:
        raise ValueError(f"{name} must be a table of numbers: one or more rows of one length.")
    return rows
