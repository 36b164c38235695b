"""Kernels made of another: of linearly mapped inputs, k(Ax, Ay), and iterated ones."""

# What `against`, `diagonal`, `map_rows` and the like promise stands on Kernel and
# LinearlyMapped.
# ruff: noqa: D102
from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kpca_apps.engine.kernels import RBF, Kernel, KernelRows, LinearlyMapped, Scaled, Wrapped
from kpca_apps.engine.kernels.base import WeightedGradient, as_number, squared_lengths
from kpca_apps.system.arrays import Matrix, Values


@dataclass(frozen=True)
class MappedInputs(LinearlyMapped):
    """The kernel k(Ax, Ay) for a matrix A (m, d); with `Polynomial` inside it is (Ax.Ay)^d.

    A may whiten the columns, weigh directions, or keep a few of them; a diagonal one is what
    `ScaledInputs` does at less cost.
    """

    # Scholkopf, Smola and Muller (1996), eq. 69 and footnote 16.
    kernel: Kernel
    matrix: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        self._require_kernel()
        self._set(matrix=_as_table("matrix", self.matrix))

    def map_rows(self, X: Matrix) -> Matrix:
        matrix = np.array(self.matrix)
        if X.shape[1] != matrix.shape[1]:
            raise ValueError(
                f"matrix has {matrix.shape[1]} columns, but the rows have {X.shape[1]}."
            )
        # Values too large are reported by whoever uses them, with the name of the kernel.
        with np.errstate(over="ignore", invalid="ignore"):
            mapped: Matrix = X @ matrix.T
        return mapped

    def pull_back(self, G: Matrix, d: int) -> Matrix:
        gradients: Matrix = G @ np.array(self.matrix)
        return gradients

    def describe(self) -> str:
        m, d = len(self.matrix), len(self.matrix[0])
        return f"{self.kernel.describe()} of Ax and Ay, A {m} x {d}"


@dataclass(frozen=True)
class Iterated(Wrapped):
    """The iterated kernel over a sample: the mean over points z (m, d) of k(x, z) k(z, y).

    The kernel inside may be indefinite, as `Sigmoid` is: this one has distances and reconstruction
    errors. A few hundred points are enough; all are stored with a model.
    """

    # Two rows are alike if the kernel finds them alike to the same third points; sum_ij c_i c_j
    # k2(x_i, x_j) is the integral of (sum_i c_i k(x_i, z))^2. (The report writes positive; where
    # the integral operator of k has a null space, semi-definite is what remains true.) Scholkopf,
    # Smola and Muller (1996), eq. 73-74.
    kernel: Kernel
    points: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        self._require_kernel()
        self._set(points=_as_table("points", self.points))

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        points = np.array(self.points)
        inner = self.kernel.against(points)
        columns = np.ascontiguousarray(inner(Z).T / len(points), dtype=dtype)

        def rows(X: Matrix) -> Values:
            # Values too large are reported by whoever uses them, with the name of the kernel.
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


def iterated_gaussian(gamma: float, n_features: int) -> Scaled:
    """Return exp(-gamma |x - y|^2) iterated over all of R^d: a Gaussian again, of half the gamma.

    Components do not change with the factor before it, and projections by its root alone.
    """
    # int exp(-g |x - z|^2) exp(-g |z - y|^2) dz = (pi / (2 g))^(d/2) exp(-g/2 |x - y|^2): the same,
    # eq. 73. Over the rows' own distribution, as in `Iterated`, it is no longer Gaussian.
    gamma = as_number("gamma", gamma, above=0.0)
    factor = math.inf
    with suppress(OverflowError):
        factor = (math.pi / (2.0 * gamma)) ** (0.5 * n_features)
    return Scaled(factor, RBF(0.5 * gamma))


def _as_table(name: str, value: Any) -> tuple[tuple[float, ...], ...]:
    """Return ``value`` as rows of floats; raise ValueError unless they are of one length >= 1."""
    rows: tuple[tuple[float, ...], ...] = ()
    with suppress(TypeError):
        rows = tuple(tuple(as_number(name, number) for number in row) for row in value)
    if not rows or not rows[0] or len({len(row) for row in rows}) != 1:
        raise ValueError(f"{name} must be a table of numbers: one or more rows of one length.")
    return rows
