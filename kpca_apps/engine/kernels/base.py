"""Kernel base class, and combinations of kernels.

A sum of kernels is a kernel. So are a kernel times a positive factor, and a kernel of some columns
or of linearly mapped rows.
"""

# `Kernel` documents `against`, `diagonal`, `describe` and the properties.
# ruff: noqa: D102
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, Self, cast

import numpy as np
from numpy.typing import DTypeLike
from scipy.spatial.distance import cdist

from kpca_apps.names import shown
from kpca_apps.options import is_number
from kpca_apps.system.arrays import Matrix, Values

# A kernel with its second argument fixed: rows ``(b, d)`` to kernel values ``(b, m)``.
KernelRows = Callable[[Matrix], Values]
# Rows ``(b, d)`` and coefficients ``(b, m)`` to gradients ``(b, d)``.
WeightedGradient = Callable[[Matrix, Matrix], Matrix]

# Below this, exp(x) is denormal and numpy's exp slows down by a factor of 40.
LOWEST_EXPONENT = -700.0
SINGLE = np.dtype(np.float32)

LOWEST = {SINGLE: -87.0, np.dtype(np.float64): LOWEST_EXPONENT}  # lowest exponent by type
# Half squared length above which a distance computed from products has lost 3 of 16 digits
# (float32: 5 of 7).
FAR = {SINGLE: 80.0, np.dtype(np.float64): 1e3}
CENTRE_ROWS = 64  # number of points whose median is the centre of distances
_KINDS: dict[str, type[Kernel]] = {}  # kernel classes by name, for model files


class Kernel(ABC):
    """Base class: a symmetric function of two rows that measures their similarity.

    Subclasses are frozen dataclasses whose fields are numbers, strings, kernels or tuples of these,
    as Python's own types (numpy scalars and arrays are converted). So kernels can be compared,
    printed and stored without further code. A custom kernel needs `against`, `diagonal` and
    `describe`, gradients for pre-images by descent, and a unique class name, which model files use.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        namesake = _KINDS.get(cls.__name__)
        if namesake is not None and namesake.__module__ != cls.__module__:
            raise ValueError(
                f"A kernel named {cls.__name__} is defined in {namesake.__module__}: choose "
                "another name."
            )
        _KINDS[cls.__name__] = cls

    @abstractmethod
    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        """Return the map from X to k(x, z) for fixed Z.

        Parameters
        ----------
        Z : ndarray of shape (m, d)
            The points with which rows are compared.
        dtype : numpy.float64 or numpy.float32
            Type of the values, and of the products from which they are computed. Rows are always
            float64, and differences are taken before rounding.

        Returns
        -------
        callable
            Maps rows ``(b, d)`` to a new array of kernel values ``(b, m)``; several threads may
            call it at once.
        """

    @abstractmethod
    def diagonal(self, X: Matrix) -> Matrix:
        """Return k(x, x) for each row x of ``X``, shape ``(n,)``."""

    @abstractmethod
    def describe(self) -> str:
        """Return the formula of the kernel in one line."""

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that this kernel consists of."""
        return ()

    @property
    def is_psd(self) -> bool:
        """Whether all Gram matrices of the kernel are positive semi-definite."""
        return all(part.is_psd for part in self.parts)

    @property
    def falls_with_distance(self) -> bool:
        """Whether similarity falls with distance."""
        return False

    @property
    def takes_any_vector(self) -> bool:
        """Whether the kernel accepts vectors with any number of entries."""
        return False

    @property
    def gains_from_centring(self) -> bool | None:
        """Whether centring the rows first reduces rounding errors.

        False for functions of x - y, which gain nothing; None if rows must not be centred.
        """
        return None

    @property
    def is_differentiable(self) -> bool:
        """Whether `weighted_gradient` is implemented for the kernel and its parts."""
        is_known = type(self).weighted_gradient is not Kernel.weighted_gradient
        return is_known and all(part.is_differentiable for part in self.parts)

    def weighted_gradient(self, Z: Matrix) -> WeightedGradient:
        """Return the map (X, C) -> sum_j c_j grad_x k(x, z_j) for fixed points Z.

        At a kink of the kernel (`Laplacian` at z_j, `Cosine` at 0) the term is 0.
        """
        raise ValueError(f"No gradient is known for {self.describe()}: use preimage='ridge'.")

    def diagonal_gradient(self, X: Matrix) -> Matrix:
        """Return the gradient of k(x, x) at each row, shape ``(n, d)``."""
        return np.zeros_like(X)

    def __call__(self, X: Matrix, Z: Matrix | None = None) -> Matrix:
        """Return the matrix of k(x, z), shape ``(n, m)``; ``Z`` defaults to ``X``."""
        for table in (X, X if Z is None else Z):
            if np.ndim(table) != 2:
                raise ValueError(
                    f"A kernel compares the rows of two tables; got an array of shape "
                    f"{np.shape(table)}: write x[None] for a single row x."
                )
        return self.against(X if Z is None else Z)(X)

    def __sklearn_clone__(self) -> Self:
        """Return the kernel itself, as kernels are immutable."""
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; nested kernels' parameters as ``outer__inner``."""
        params = {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}
        for name, value in [*params.items()] if deep else ():
            if isinstance(value, Kernel):
                params |= {f"{name}__{own}": inner for own, inner in value.get_params().items()}
        return params

    def with_params(self, **params: Any) -> Kernel:
        """Return a kernel with changed parameters, named as in `get_params`."""
        changed: dict[str, Any] = {}
        for name, value in params.items():
            own, _, inner = name.partition("__")
            known = self.get_params(deep=False)
            if own not in known or (inner and not isinstance(known[own], Kernel)):
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}: it has {', '.join(known)}."
                )
            kernel = changed.get(own, known[own])
            changed[own] = kernel.with_params(**{inner: value}) if inner else value
        return cast(Kernel, replace(cast(Any, self), **changed))

    def __add__(self, other: object) -> Kernel:
        if not isinstance(other, Kernel):
            return NotImplemented
        return Sum((*_terms(self), *_terms(other)))

    def __rmul__(self, factor: object) -> Kernel:
        if not isinstance(factor, Real):
            return NotImplemented
        return Scaled(float(factor), self)

    def require_psd(self, what: str, instead: str = "choose another kernel") -> None:
        """Raise ValueError if the kernel is indefinite; ``what`` names the method that fails."""
        if not self.is_psd:
            raise ValueError(
                f"{what} needs a positive semi-definite kernel, and {self.describe()} is "
                f"indefinite: {instead}."
            )

    def _set_fields(self, **values: object) -> None:
        """Set fields of the frozen dataclass; for `__post_init__` only."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


class Cone(Kernel):
    """A non-negative combination of kernels.

    (Scholkopf, Smola and Muller 1996, MPI technical report 44, B.7.)
    """

    @property
    def falls_with_distance(self) -> bool:
        return all(part.falls_with_distance for part in self.parts)

    @property
    def takes_any_vector(self) -> bool:
        return all(part.takes_any_vector for part in self.parts)

    @property
    def gains_from_centring(self) -> bool | None:
        gains = {part.gains_from_centring for part in self.parts}
        return None if None in gains else True in gains


@dataclass(frozen=True)
class Sum(Cone):
    """The sum of kernels, k(x, y) = sum_i k_i(x, y) [1]_.

    A component of a sum combines features of all kernels. To choose a number of components for
    each kernel instead, combine several `KernelPCA` in scikit-learn's ``FeatureUnion``.

    References
    ----------
    .. [1] Scholkopf, Smola and Muller (1996), MPI technical report 44, B.7.
    """

    kernels: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        self._set_fields(kernels=tuple(self.kernels))
        if not self.kernels or not all(isinstance(k, Kernel) for k in self.kernels):
            raise ValueError("kernels must be one or more kernels.")

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        first, *others = [kernel.against(Z, dtype) for kernel in self.kernels]

        def rows(X: Matrix) -> Values:
            total = first(X)
            for term in others:
                total += term(X)
            return total

        return rows

    def diagonal(self, X: Matrix) -> Matrix:
        return np.asarray(np.sum([kernel.diagonal(X) for kernel in self.kernels], axis=0))

    def describe(self) -> str:
        return " + ".join(kernel.describe() for kernel in self.kernels)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.kernels

    def weighted_gradient(self, Z: Matrix) -> WeightedGradient:
        parts = [kernel.weighted_gradient(Z) for kernel in self.kernels]
        return lambda X, C: np.sum([part(X, C) for part in parts], axis=0)

    def diagonal_gradient(self, X: Matrix) -> Matrix:
        return np.asarray(np.sum([kernel.diagonal_gradient(X) for kernel in self.kernels], axis=0))


class Wrapped(Kernel):
    """A kernel built on one other kernel."""

    kernel: Kernel

    def _require_kernel(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ValueError(f"kernel must be a Kernel, got {self.kernel!r}.")

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)


@dataclass(frozen=True)
class Scaled(Cone, Wrapped):
    """A kernel times a non-negative factor."""

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        self._set_fields(factor=as_number("factor", self.factor, at_least=0.0))
        self._require_kernel()

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        inner = self.kernel.against(Z, dtype)

        def rows(X: Matrix) -> Values:
            values = inner(X)
            values *= self.factor
            return values

        return rows

    def diagonal(self, X: Matrix) -> Matrix:
        return self.factor * self.kernel.diagonal(X)

    def describe(self) -> str:
        return f"{self.factor:g} ({self.kernel.describe()})"

    def weighted_gradient(self, Z: Matrix) -> WeightedGradient:
        inner = self.kernel.weighted_gradient(Z)
        return lambda X, C: self.factor * inner(X, C)

    def diagonal_gradient(self, X: Matrix) -> Matrix:
        return self.factor * self.kernel.diagonal_gradient(X)


class LinearlyMapped(Wrapped):
    """A kernel of affinely mapped rows, k(Ax + b, Ay + b)."""

    @abstractmethod
    def map_rows(self, X: Matrix) -> Matrix:
        """Return Ax + b for each row x of ``X``, ``(n, d)`` to ``(n, m)``."""

    @abstractmethod
    def pull_back(self, G: Matrix, d: int) -> Matrix:
        """Turn gradients ``(n, m)`` with respect to Ax + b into gradients ``(n, d)`` for x."""

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        inner = self.kernel.against(self.map_rows(Z), dtype)
        return lambda X: inner(self.map_rows(X))

    def diagonal(self, X: Matrix) -> Matrix:
        return self.kernel.diagonal(self.map_rows(X))

    @property
    def gains_from_centring(self) -> bool | None:
        return self.kernel.gains_from_centring

    def weighted_gradient(self, Z: Matrix) -> WeightedGradient:
        inner = self.kernel.weighted_gradient(self.map_rows(Z))
        return lambda X, C: self.pull_back(inner(self.map_rows(X), C), X.shape[1])

    def diagonal_gradient(self, X: Matrix) -> Matrix:
        return self.pull_back(self.kernel.diagonal_gradient(self.map_rows(X)), X.shape[1])


@dataclass(frozen=True)
class OnColumns(LinearlyMapped):
    """A kernel of the columns ``start`` to ``stop - 1``."""

    kernel: Kernel
    start: int
    stop: int

    def __post_init__(self) -> None:
        self._require_kernel()
        self._set_fields(start=as_integer("start", self.start, at_least=0))
        self._set_fields(stop=as_integer("stop", self.stop, at_least=self.start + 1))

    def map_rows(self, X: Matrix) -> Matrix:
        if X.shape[1] < self.stop:
            raise ValueError(
                f"The kernel reads columns {self.start}:{self.stop}, "
                f"but the rows have {X.shape[1]} columns."
            )
        return X[:, self.start : self.stop]

    def pull_back(self, G: Matrix, d: int) -> Matrix:
        return np.pad(G, ((0, 0), (self.start, d - self.stop)))

    def describe(self) -> str:
        return f"[columns {self.start}:{self.stop}] {self.kernel.describe()}"


@dataclass(frozen=True)
class Recentred(LinearlyMapped):
    """The kernel k(x - c, y - c), where c is ``origin``."""

    kernel: Kernel
    origin: tuple[float, ...]

    def __post_init__(self) -> None:
        self._require_kernel()
        self._set_fields(origin=tuple(as_number("origin", value) for value in self.origin))

    def map_rows(self, X: Matrix) -> Matrix:
        if X.shape[1] != len(self.origin):
            raise ValueError(
                f"origin has {len(self.origin)} numbers, but the rows have {X.shape[1]} columns."
            )
        return np.asarray(X - np.array(self.origin))

    def pull_back(self, G: Matrix, d: int) -> Matrix:
        return G

    def describe(self) -> str:
        return f"{self.kernel.describe()} about a fixed point"


def as_number(
    name: str, value: Any, *, above: float = -math.inf, at_least: float = -math.inf
) -> float:
    """Return ``value`` as a float; raise ValueError if it is not finite or out of range."""
    number = float(value) if is_number(value) else math.nan
    if not (number > above and number >= at_least):
        bound = f" > {above:g}" if above > -math.inf else ""
        bound += f" >= {at_least:g}" if at_least > -math.inf else ""
        raise ValueError(f"{name} must be a finite number{bound}, got {shown(value)}.")
    return number


def as_integer(name: str, value: Any, *, at_least: int) -> int:
    """Return ``value`` as an int; raise ValueError if it is not an integer >= ``at_least``."""
    if not is_number(value, at_least, whole=True):
        raise ValueError(f"{name} must be an integer >= {at_least}, got {shown(value)}.")
    return int(value)


def _terms(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, Sum) else (kernel,)


def rbf_exponents(
    Z: Matrix, gamma: float, lowest: float, dtype: DTypeLike = np.float64
) -> KernelRows:
    """Return the map from X to -gamma |x - z|^2 for fixed Z, clipped below at ``lowest``."""
    exponents = view_exponents(Z, gamma, lowest, dtype)
    return lambda X: exponents(X)(0, None)


def view_exponents(
    Z: Matrix,
    gamma: float,
    lowest: float,
    dtype: DTypeLike = np.float64,
    shift: float = 0.0,
    n_views: int = 1,
) -> Callable[[Matrix], Callable[[int, Values | None], Values]]:
    """Return the map from X to shift - gamma |x_v - z_v|^2 for views v, equal blocks of columns.

    Rows (b, d) map to a function of a view number and an output array or None. That function
    returns the exponents ``(b, m)``, clipped below at ``lowest``.

    With xs = sqrt(2 gamma)(x - centre) and h = |xs|^2 / 2 the exponent is the product of the rows
    [xs, -h, 1] and [zs, 1, shift - h']. Large lengths cancel in that product, so rows far from the
    centre are compared by differences instead.
    """
    with np.errstate(over="ignore"):  # an infinite centre makes all rows far
        centre = np.median(Z[:: 1 + len(Z) // CENTRE_ROWS], axis=0)
    scale, d = np.sqrt(2.0 * gamma), Z.shape[1] // n_views
    far_from = FAR[np.dtype(dtype)]

    def scaled(X: Matrix) -> tuple[Values, Values]:
        """Return [xs, 1, 1] (b, views, d + 2) in `dtype`, and h = |xs|^2 / 2 (b, views)."""
        # Convert a contiguous array: to convert while copying into `padded` is far slower.
        xs = (X - centre).astype(dtype, copy=False)
        xs *= scale
        by_view = xs.reshape(len(X), n_views, d)
        padded = np.empty((len(X), n_views, d + 2), dtype=dtype)
        padded[..., :d], padded[..., d:] = by_view, 1.0
        return padded, 0.5 * np.einsum("ivj,ivj->iv", by_view, by_view)

    with np.errstate(over="ignore", invalid="ignore"):
        right, lengths = scaled(Z)
        right[..., -1] = shift - lengths
    right_columns = np.ascontiguousarray(right.transpose(1, 2, 0))
    reach = np.sqrt(lengths.max(axis=0, initial=0.0))

    def rows(X: Matrix) -> Callable[[int, Values | None], Values]:
        with np.errstate(over="ignore", invalid="ignore"):
            left, h = scaled(X)
            np.negative(h, out=left[..., -2])
            farthest = h.max(axis=0, initial=0.0)
            # Where this bound on distances (triangle inequality) holds, no value is below `lowest`.
            within = (np.sqrt(farthest) + reach) ** 2 <= shift - lowest

        def view_values(v: int, out: Values | None) -> Values:
            with np.errstate(over="ignore", invalid="ignore"):
                values: Values = np.matmul(left[:, v], right_columns[v], out=out)
                if not farthest[v] <= far_from:
                    far, columns = ~(h[:, v] <= far_from), slice(v * d, (v + 1) * d)
                    values[far] = shift - gamma * cdist(
                        X[far, columns], Z[:, columns], "sqeuclidean"
                    )
            return values if within[v] else np.maximum(values, lowest, out=values)

        return view_values

    return rows


def power(values: Values, exponent: int, out: Values | None = None) -> Values:
    """Return ``values`` to a small integer power, faster than numpy's pow."""
    if exponent == 1:
        return np.positive(values, out=out)
    result: Values = np.multiply(values, values, out=out)
    for _ in range(exponent - 2):
        result *= values
    return result


def products_with(Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
    """Return the map from X to the inner products x.z for fixed Z."""
    columns = np.ascontiguousarray(Z.T, dtype=dtype)
    return lambda X: np.asarray(np.ascontiguousarray(X, dtype=dtype) @ columns)


def squared_lengths(X: Values) -> Values:
    """Return |x|^2 for each row."""
    return np.asarray(np.einsum("ij,ij->i", X, X))


def unit_rows(X: Matrix) -> Matrix:
    """Return the rows scaled to length 1; rows of zeros stay zeros."""
    # Scale rows to about 1 first, as squares may over- or underflow.
    largest = np.abs(X).max(axis=1, keepdims=True, initial=0.0)
    near_one = X / np.where(largest > 0.0, largest, 1.0)
    lengths = np.sqrt(squared_lengths(near_one))[:, None]
    return np.asarray(near_one / np.where(lengths > 0.0, lengths, 1.0))
