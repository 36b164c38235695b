"""What a kernel is, and how kernels combine into kernels.

A kernel says how alike two rows are. Sums, positive multiples, restrictions to some columns and
rescaled inputs of kernels are kernels again, so that a mean of kernels over several views of a
table is used like any other kernel.

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, eq. 69 and B.7.
"""

# What `against`, `adding`, `diagonal`, `describe` and `is_psd` promise is said once, on Kernel.
# ruff: noqa: D102
from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["Kernel", "KernelRows", "OnColumns", "Scaled", "ScaledInputs", "Sum"]

Matrix = NDArray[np.float64]
Values = NDArray[Any]
KernelRows = Callable[[Matrix], Values]
"""A kernel with its second argument fixed: rows ``(b, d)`` to kernel values ``(b, m)``."""
AddRows = Callable[[Matrix, Values, Values], None]
"""The same, added to a total ``(b, m)``, with room ``(2, b, m)`` for what is made on the way."""


class Kernel(ABC):
    """A symmetric function of two rows that measures how alike they are.

    Subclasses are frozen dataclasses whose fields are numbers, strings, kernels or tuples of
    them, Python's own whatever was given (numpy's scalars and arrays are converted); that is what
    makes them comparable, printable and storable without further code.
    """

    @abstractmethod
    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        """Fix the second argument, doing all work that depends on it once.

        Parameters
        ----------
        Z : ndarray of shape (m, d)
            The points every later row is compared with.
        dtype : numpy.float64 or numpy.float32
            Of the values, and of the products they are taken from. Rows are float64 in either
            case, for what cancels is taken away before anything is rounded.

        Returns
        -------
        callable
            Maps rows ``(b, d)`` to a new array of kernel values ``(b, m)``. It may be called
            from several threads at once.
        """

    def adding(self, Z: Matrix, dtype: DTypeLike, factor: float) -> AddRows:
        """Fix the second argument of a kernel that is one of several to be added up.

        Parameters
        ----------
        Z, dtype
            As in `against`.
        factor : float
            What the values are multiplied by.

        Returns
        -------
        callable
            Takes rows ``(b, d)``, an array ``(b, m)`` that the values times the factor are added
            to, and an array ``(2, b, m)`` whose values do not matter.
        """
        rows = self.against(Z, dtype)

        def add(X: Matrix, total: Values, room: Values) -> None:
            values = rows(X)
            values *= factor
            total += values

        return add

    @abstractmethod
    def diagonal(self, X: Matrix) -> Matrix:
        """Return k(x, x) for each row x of ``X``, shape ``(n,)``."""

    @abstractmethod
    def describe(self) -> str:
        """Return the formula of the kernel on one line."""

    @property
    def is_psd(self) -> bool:
        """Whether every Gram matrix of the kernel is positive semi-definite."""
        return True

    def __call__(self, X: Matrix, Z: Matrix | None = None) -> Matrix:
        """Return the matrix of k(x, z), shape ``(n, m)``; ``Z`` is ``X`` unless given."""
        for table in (X, X if Z is None else Z):
            if np.ndim(table) != 2:
                raise ValueError(
                    f"A kernel compares the rows of two tables; got an array of shape "
                    f"{np.shape(table)}: write x[None] for a single row x."
                )
        return self.against(X if Z is None else Z)(X)

    def __add__(self, other: object) -> Kernel:
        if not isinstance(other, Kernel):
            return NotImplemented
        return Sum((*_terms(self), *_terms(other)))

    def __rmul__(self, factor: object) -> Kernel:
        if not isinstance(factor, Real):
            return NotImplemented
        return Scaled(float(factor), self)

    def _set(self, **values: object) -> None:
        """Replace fields while the kernel is made; afterwards it is frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Sum(Kernel):
    """The sum of several kernels, k(x, y) = sum_i k_i(x, y): their images side by side (B.7).

    A component of a sum combines features of all its kernels. To choose a number of components for
    each kernel instead, put several `KernelPCA` side by side by scikit-learn's ``FeatureUnion``.
    """

    kernels: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        self._set(kernels=tuple(self.kernels))
        if not self.kernels or not all(isinstance(k, Kernel) for k in self.kernels):
            raise ValueError("kernels must be one or more kernels.")

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        return _summed(self, Z, dtype)

    def adding(self, Z: Matrix, dtype: DTypeLike, factor: float) -> AddRows:
        terms = [kernel.adding(Z, dtype, factor) for kernel in self.kernels]

        def add(X: Matrix, total: Values, room: Values) -> None:
            for term in terms:
                term(X, total, room)

        return add

    def diagonal(self, X: Matrix) -> Matrix:
        total = np.zeros(len(X))
        for kernel in self.kernels:
            total += kernel.diagonal(X)
        return total

    def describe(self) -> str:
        return " + ".join(kernel.describe() for kernel in self.kernels)

    @property
    def is_psd(self) -> bool:
        return all(kernel.is_psd for kernel in self.kernels)


@dataclass(frozen=True)
class Scaled(Kernel):
    """A kernel times a number that is not negative: with sums, kernels form a cone (B.7)."""

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        self._set(factor=as_number("factor", self.factor, at_least=0.0))
        _check_kernel(self.kernel)

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        return _summed(self, Z, dtype)

    def adding(self, Z: Matrix, dtype: DTypeLike, factor: float) -> AddRows:
        return self.kernel.adding(Z, dtype, factor * self.factor)

    def diagonal(self, X: Matrix) -> Matrix:
        return self.factor * self.kernel.diagonal(X)

    def describe(self) -> str:
        return f"{self.factor:g} ({self.kernel.describe()})"

    @property
    def is_psd(self) -> bool:
        return self.kernel.is_psd


@dataclass(frozen=True)
class OnColumns(Kernel):
    """A kernel that sees the columns ``start`` to ``stop - 1`` only.

    Views of a table stacked side by side each get their own kernel this way.
    """

    kernel: Kernel
    start: int
    stop: int

    def __post_init__(self) -> None:
        _check_kernel(self.kernel)
        self._set(start=as_integer("start", self.start, at_least=0))
        self._set(stop=as_integer("stop", self.stop, at_least=self.start + 1))

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        inner = self.kernel.against(self._part(Z), dtype)
        return lambda X: inner(self._part(X))

    def adding(self, Z: Matrix, dtype: DTypeLike, factor: float) -> AddRows:
        inner = self.kernel.adding(self._part(Z), dtype, factor)
        return lambda X, total, room: inner(self._part(X), total, room)

    def diagonal(self, X: Matrix) -> Matrix:
        return self.kernel.diagonal(self._part(X))

    def describe(self) -> str:
        return f"[columns {self.start}:{self.stop}] {self.kernel.describe()}"

    @property
    def is_psd(self) -> bool:
        return self.kernel.is_psd

    def _part(self, X: Matrix) -> Matrix:
        if X.shape[1] < self.stop:
            raise ValueError(
                f"The kernel reads columns {self.start}:{self.stop}, "
                f"but the rows have {X.shape[1]} columns."
            )
        return X[:, self.start : self.stop]


@dataclass(frozen=True)
class ScaledInputs(Kernel):
    """A kernel on columns multiplied by the square roots of ``scale``: k(D^1/2 x, D^1/2 y).

    For a kernel of the inner product this is k(x.Dy), D the diagonal matrix of ``scale`` (1996
    report, eq. 69); for a kernel of the distance it weighs the squared difference in column j by
    ``scale[j]``.
    """

    kernel: Kernel
    scale: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_kernel(self.kernel)
        self._set(scale=tuple(as_number("scale", value, at_least=0.0) for value in self.scale))
        if not self.scale:
            raise ValueError("scale must hold one number for each column.")

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        inner = self.kernel.against(self._scaled(Z), dtype)
        return lambda X: inner(self._scaled(X))

    def diagonal(self, X: Matrix) -> Matrix:
        return self.kernel.diagonal(self._scaled(X))

    def describe(self) -> str:
        return f"{self.kernel.describe()} with columns weighted"

    @property
    def is_psd(self) -> bool:
        return self.kernel.is_psd

    def _scaled(self, X: Matrix) -> Matrix:
        if X.shape[1] != len(self.scale):
            raise ValueError(
                f"scale has {len(self.scale)} numbers, but the rows have {X.shape[1]} columns."
            )
        return X * np.sqrt(self.scale)


def as_number(
    name: str, value: Any, *, above: float = -math.inf, at_least: float = -math.inf
) -> float:
    """Return ``value`` as a float; raise ValueError unless it is a finite number in the range."""
    number = math.nan
    if not isinstance(value, bool) and isinstance(value, Real):
        with suppress(OverflowError):
            number = float(value)
    if not (math.isfinite(number) and number > above and number >= at_least):
        bound = f" > {above:g}" if above > -math.inf else ""
        bound += f" >= {at_least:g}" if at_least > -math.inf else ""
        raise ValueError(f"{name} must be a finite number{bound}, got {value!r}.")
    return number


def as_integer(name: str, value: Any, *, at_least: int) -> int:
    """Return ``value`` as an int; raise ValueError unless it is an integer >= ``at_least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise ValueError(f"{name} must be an integer >= {at_least}, got {value!r}.")
    return int(value)


def as_table(name: str, value: Any) -> tuple[tuple[float, ...], ...]:
    """Return ``value`` as rows of floats; raise ValueError unless they are of one length >= 1."""
    rows: tuple[tuple[float, ...], ...] = ()
    with suppress(TypeError):
        rows = tuple(tuple(as_number(name, number) for number in row) for row in value)
    if not rows or not rows[0] or len({len(row) for row in rows}) != 1:
        raise ValueError(f"{name} must be a table of numbers: one or more rows of one length.")
    return rows


def _check_kernel(value: object) -> None:
    if not isinstance(value, Kernel):
        raise ValueError(f"kernel must be a Kernel, got {value!r}.")


class _Room(threading.local):
    """Memory used again from call to call, by each thread its own.

    To get that much anew can take longer than to fill it.
    """

    def __init__(self) -> None:
        self._values: Values = np.empty((2, 0, 0))

    def beside(self, total: Values) -> Values:
        """Return an array of two times the shape of a total."""
        if self._values.shape[1:] != total.shape:
            self._values = np.empty((2, *total.shape), dtype=total.dtype)
        return self._values


def _summed(kernel: Kernel, Z: Matrix, dtype: DTypeLike) -> KernelRows:
    """Fix the second argument of a sum: terms are added to one array as they come."""
    add, m, room = kernel.adding(Z, dtype, 1.0), len(Z), _Room()

    def rows(X: Matrix) -> Values:
        total = np.zeros((len(X), m), dtype=dtype)
        add(X, total, room.beside(total))
        return total

    return rows


def _terms(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, Sum) else (kernel,)
