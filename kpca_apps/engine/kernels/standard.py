"""The standard kernels, each with its formula.

Kernels are small immutable objects. ``kernel(X, Z)`` is the matrix of kernel values;
``kernel.against(Z)`` does the work that depends on ``Z`` once, for many blocks of rows.

Examples
--------
>>> import numpy as np
>>> X = np.array([[0.0, 0.0], [3.0, 4.0]])
>>> RBF.from_sigma(5.0)(X).round(4)
array([[1.    , 0.6065],
       [0.6065, 1.    ]])
>>> (0.5 * (RBF(0.02) + Linear())).describe()
'0.5 (exp(-0.02 |x - y|^2) + x.y)'

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, section 3 and appendix B.
.. [2] Aguilera and Antonanzas (2019), On kernel principal component analysis, section II.
"""

# `Kernel` documents `against`, `diagonal`, `describe` and `is_psd`.
# ruff: noqa: D102
from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import DTypeLike
from scipy.spatial.distance import cdist

from kpca_apps.engine.kernels.base import (
    LOWEST,
    LOWEST_EXPONENT,
    SINGLE,
    Kernel,
    KernelRows,
    WeightedGradient,
    as_integer,
    as_number,
    power,
    products_with,
    rbf_exponents,
    squared_lengths,
    unit_rows,
    view_exponents,
)
from kpca_apps.system.arrays import Matrix, Values


class DistanceKernel(Kernel):
    """Base class: a kernel that decreases with the distance, from 1 at distance 0."""

    falls_with_distance = True
    gains_from_centring = False

    def diagonal(self, X: Matrix) -> Matrix:
        return np.ones(len(X))

    def _slopes(self, Z: Matrix) -> KernelRows:
        """Return the map from X to k'(s) for fixed Z, where s is the squared distance."""
        raise NotImplementedError

    def weighted_gradient(self, Z: Matrix) -> WeightedGradient:
        slopes, centre = self._slopes(Z), Z.mean(axis=0)
        stacked = np.column_stack([Z - centre, np.ones(len(Z))])

        def rows(X: Matrix, C: Matrix) -> Matrix:
            sums = (C * slopes(X)) @ stacked
            return np.asarray(2.0 * (sums[:, -1:] * (X - centre) - sums[:, :-1]))

        return rows


class ProductKernel(Kernel):
    """Base class: a kernel of the inner product of two rows, with any number of columns."""

    takes_any_vector = True

    def _values(self, products: Values) -> Values:
        """Return the kernel values k(p) of inner products p, computed in place."""
        raise NotImplementedError

    def _slope(self, products: Matrix) -> Matrix:
        """Return the derivatives k'(p) at inner products p."""
        raise NotImplementedError

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        products = products_with(Z, dtype)
        return lambda X: self._values(products(X))

    def diagonal(self, X: Matrix) -> Matrix:
        return self._values(squared_lengths(X))

    def weighted_gradient(self, Z: Matrix) -> WeightedGradient:
        return lambda X, C: (C * self._slope(X @ Z.T)) @ Z

    def diagonal_gradient(self, X: Matrix) -> Matrix:
        return 2.0 * self._slope(squared_lengths(X))[:, None] * X


@dataclass(frozen=True)
class RBF(DistanceKernel):
    """The Gaussian kernel ``exp(-gamma |x - y|^2)``.

    Parameters
    ----------
    gamma : float > 0
        Inverse squared width, in units of 1 / (squared distance). Aguilera and Antonanzas (2019)
        call it gamma in eq. 3 and sigma in their figures, as R's kernlab does; sigma in eq. 62 of
        the 1996 report and in `from_sigma` is a width.
    """

    takes_any_vector = True

    gamma: float

    def __post_init__(self) -> None:
        self._set_fields(gamma=as_number("gamma", self.gamma, above=0.0))

    @classmethod
    def from_sigma(cls, sigma: float) -> RBF:
        """Return the kernel ``exp(-|x - y|^2 / (2 sigma^2))``; sigma is a distance."""
        squared = as_number("sigma", sigma, above=0.0) * float(sigma)
        if not np.finfo(np.float64).tiny <= squared < np.inf:
            raise ValueError(f"sigma = {sigma:g} cannot be squared: scale the columns first.")
        return cls(0.5 / squared)

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        exponents = rbf_exponents(Z, self.gamma, LOWEST[np.dtype(dtype)], dtype)

        def rows(X: Matrix) -> Values:
            values = exponents(X)
            return np.exp(values, out=values)

        return rows

    def _slopes(self, Z: Matrix) -> KernelRows:
        values = self.against(Z)
        return lambda X: -self.gamma * values(X)

    def describe(self) -> str:
        return f"exp(-{self.gamma:.6g} |x - y|^2)"


@dataclass(frozen=True)
class Laplacian(DistanceKernel):
    """The kernel exp(-gamma r) of the Manhattan or Euclidean distance r.

    Parameters
    ----------
    gamma : float > 0
        Inverse width, in units of 1 / distance.
    distance : {"manhattan", "euclidean"}
        "manhattan" is scikit-learn's ``laplacian_kernel``. "euclidean" is kernlab's ``laplacedot``
        (its sigma is gamma here) and the Laplace kernel of Aguilera and Antonanzas (2019, Table I).
    """

    takes_any_vector = True

    gamma: float
    distance: Literal["manhattan", "euclidean"] = "manhattan"

    def __post_init__(self) -> None:
        self._set_fields(gamma=as_number("gamma", self.gamma, above=0.0))
        if self.distance not in ("euclidean", "manhattan"):
            raise ValueError(f"distance must be 'euclidean' or 'manhattan', got {self.distance!r}.")

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        metric = "euclidean" if self.distance == "euclidean" else "cityblock"
        lowest = LOWEST[np.dtype(dtype)]

        # Use cdist: distances computed from inner products lose half of their digits near 0.
        def rows(X: Matrix) -> Values:
            values: Matrix = cdist(X, Z, metric)
            values *= -self.gamma
            np.maximum(values, lowest, out=values)
            narrow: Values = values.astype(dtype, copy=False)
            return np.exp(narrow, out=narrow)

        return rows

    def _slopes(self, Z: Matrix) -> KernelRows:
        values = self.against(Z)

        def slopes(X: Matrix) -> Matrix:
            distances = cdist(X, Z)
            apart = distances > 0.0
            return np.where(apart, -0.5 * self.gamma * values(X) / np.where(apart, distances, 1), 0)

        return slopes

    def weighted_gradient(self, Z: Matrix) -> WeightedGradient:
        if self.distance == "euclidean":
            return super().weighted_gradient(Z)
        values = self.against(Z)

        def rows(X: Matrix, C: Matrix) -> Matrix:
            weights = -self.gamma * C * values(X)
            signs = (np.sign(X[:, [j]] - Z[:, j]) for j in range(X.shape[1]))
            return np.column_stack([np.einsum("ij,ij->i", weights, s) for s in signs])

        return rows

    def describe(self) -> str:
        bars = "|x - y|" if self.distance == "euclidean" else "|x - y|_1"
        return f"exp(-{self.gamma:.6g} {bars})"


@dataclass(frozen=True)
class Polynomial(ProductKernel):
    """The kernel (gamma x.y + coef0)^degree.

    Its features are the monomials of the columns: with coef0 = 0 those of exactly this degree (1996
    report, eq. 22), otherwise those up to this degree (eq. 61).
    """

    degree: int
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        self._set_fields(degree=as_integer("degree", self.degree, at_least=1))
        self._set_fields(gamma=as_number("gamma", self.gamma, above=0.0))
        self._set_fields(coef0=as_number("coef0", self.coef0, at_least=0.0))

    def _values(self, products: Values) -> Values:
        products *= self.gamma
        products += self.coef0
        return power(products, self.degree)

    def _slope(self, products: Matrix) -> Matrix:
        base = self.gamma * products + self.coef0
        return np.asarray(self.degree * self.gamma * base ** (self.degree - 1))

    def describe(self) -> str:
        return f"({self.gamma:.6g} x.y + {self.coef0:.6g})^{self.degree}"


@dataclass(frozen=True)
class Linear(ProductKernel):
    """The inner product x.y, which makes kernel PCA ordinary PCA.

    The non-zero eigenvalues of C = 1/n sum_i (x_i - mean)(x_i - mean)' are those of K~/n, K~ the
    centred Gram matrix. An eigenvector alpha of K~ gives v = sum_i alpha_i (x_i - mean) (1996
    report, eq. 1-3 and footnote 3).
    """

    gains_from_centring = True

    def _values(self, products: Values) -> Values:
        return products

    def _slope(self, products: Matrix) -> Matrix:
        return np.ones_like(products)

    def describe(self) -> str:
        return "x.y"


@dataclass(frozen=True)
class Cosine(Kernel):
    """The cosine ``x.y / (|x| |y|)`` of the angle between two rows; 0 for a row of zeros."""

    takes_any_vector = True

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        products = products_with(unit_rows(Z), dtype)
        return lambda X: products(unit_rows(X))

    def diagonal(self, X: Matrix) -> Matrix:
        return squared_lengths(unit_rows(X))

    def weighted_gradient(self, Z: Matrix) -> WeightedGradient:
        directions = unit_rows(Z)

        def rows(X: Matrix, C: Matrix) -> Matrix:
            lengths = np.sqrt(squared_lengths(X))[:, None]
            own = unit_rows(X)
            pull = C @ directions
            pull -= np.einsum("ij,ij->i", pull, own)[:, None] * own
            return np.where(lengths > 0.0, pull / np.where(lengths > 0, lengths, 1), 0)

        return rows

    def describe(self) -> str:
        return "x.y / (|x| |y|)"


@dataclass(frozen=True)
class Sigmoid(ProductKernel):
    """The indefinite kernel tanh(gamma x.y + coef0).

    Its feature space has directions of negative squared length (1996 report, eq. 63 and B.2):
    components are normalised by ``1 / sqrt(|eigenvalue|)``. `reconstruction_error` raises, as the
    error would not be a distance.
    """

    is_psd = False

    gamma: float
    coef0: float = 0.0

    def __post_init__(self) -> None:
        self._set_fields(gamma=as_number("gamma", self.gamma, above=0.0))
        self._set_fields(coef0=as_number("coef0", self.coef0))

    def _values(self, products: Values) -> Values:
        products *= self.gamma
        products += self.coef0
        return np.tanh(products, out=products)

    def _slope(self, products: Matrix) -> Matrix:
        return np.asarray(self.gamma * (1.0 - self._values(products) ** 2))

    def describe(self) -> str:
        return f"tanh({self.gamma:.6g} x.y + {self.coef0:.6g})"


@dataclass(frozen=True)
class MeanRBF(DistanceKernel):
    """The mean of ``exp(-p gamma |x_v - y_v|^2)`` over integers p and views v of the columns.

    Several widths cost little more than a single width: the exponential is computed once, and the
    other widths are its integer powers. (A mean of kernels on views is a kernel: Scholkopf, Smola
    and Muller 1996, MPI technical report 44, B.7.)

    Parameters
    ----------
    gamma : float > 0
        As for `RBF`.
    powers : increasing tuple of int >= 1
        The values of p.
    n_views : int >= 1
        Number of views in a row, blocks of equally many columns.
    """

    gamma: float
    powers: tuple[int, ...] = (1, 3)
    n_views: int = 1

    def __post_init__(self) -> None:
        self._set_fields(gamma=as_number("gamma", self.gamma, above=0.0))
        self._set_fields(powers=tuple(as_integer("powers", p, at_least=1) for p in self.powers))
        self._set_fields(n_views=as_integer("n_views", self.n_views, at_least=1))
        if not self.powers or list(self.powers) != sorted(set(self.powers)):
            raise ValueError(f"powers must be increasing integers >= 1, got {self.powers!r}.")

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        # Let u be the exponential, c = 1 / (number of terms), P the largest power and w = c^(1/P)
        # u. Then c u^p is c^(1 - p/P) w^p, so the last term needs no factor, which saves a pass
        # over the values.
        largest, c = self.powers[-1], 1.0 / (len(self.powers) * self.n_views)
        factors = tuple(c ** (1.0 - p / largest) for p in self.powers[:-1])
        steps = [high - low for low, high in pairwise((0, *self.powers))]
        lowest, shift = LOWEST[np.dtype(dtype)] / largest, math.log(c) / largest
        self._views(Z)
        m, room = len(Z), threading.local()
        add_views = None
        if np.dtype(dtype) == SINGLE and self.powers == (1, 3):
            # Import here, as only this kernel needs the compiler.
            from kpca_apps.engine.kernels.exponentials import add_first_and_third

            add_views = add_first_and_third
        clipped = -math.inf if add_views else lowest
        bounds = np.float32(lowest), np.float32(factors[0] if factors else 0.0)
        exponents = view_exponents(Z, self.gamma, clipped, dtype, shift, self.n_views)

        def rows(X: Matrix) -> Values:
            if X.shape[1] != Z.shape[1]:
                raise ValueError(f"The kernel compares {Z.shape[1]} columns, got {X.shape[1]}.")
            total = np.empty((len(X), m), dtype=dtype)
            # Reuse one buffer per thread, as allocation is slow.
            beside = getattr(room, "values", None)
            if beside is None or beside.shape[1:] != total.shape:
                beside = room.values = np.empty((2, *total.shape), dtype=dtype)
            view_exponents_of = exponents(X)
            for number in range(self.n_views):
                values = view_exponents_of(number, beside[0])
                if add_views:
                    add_views(values, *bounds, total, not number)
                    continue
                np.exp(values, out=values)
                # Evaluate the sum of powers by Horner's rule.
                term = power(values, steps[-1], beside[1] if number else total)
                for step, factor in zip(reversed(steps[:-1]), reversed(factors), strict=True):
                    term += factor
                    for _ in range(step):
                        term *= values
                if number:
                    total += term
            return total

        return rows

    def weighted_gradient(self, Z: Matrix) -> WeightedGradient:
        views = self._views(Z)
        if len(views) == 1:
            return super().weighted_gradient(Z)
        parts = [MeanRBF(self.gamma, self.powers).weighted_gradient(Z[:, v]) for v in views]
        return lambda X, C: np.hstack(
            [part(X[:, v], C) / self.n_views for v, part in zip(views, parts, strict=True)]
        )

    def _slopes(self, Z: Matrix) -> KernelRows:
        """Return the map from rows X to the slopes k'(s) at the squared distances s of X from Z."""
        exponents = rbf_exponents(Z, self.gamma, LOWEST_EXPONENT / self.powers[-1])
        n = len(self.powers)

        def slopes(X: Matrix) -> Matrix:
            e = exponents(X)
            total = np.zeros_like(e)
            for p in self.powers:
                total -= p * self.gamma / n * np.exp(p * e)
            return total

        return slopes

    def _views(self, Z: Matrix) -> list[slice]:
        width, rest = divmod(Z.shape[1], self.n_views)
        if rest:
            raise ValueError(f"{Z.shape[1]} columns are not {self.n_views} views of as many.")
        return [slice(v * width, (v + 1) * width) for v in range(self.n_views)]

    @property
    def takes_any_vector(self) -> bool:
        return self.n_views == 1

    def describe(self) -> str:
        widths = ", ".join(str(value) for value in self.powers)
        formula = f"mean over p in ({widths}) of exp(-p {self.gamma:.6g} |x - y|^2)"
        return formula if self.n_views == 1 else f"{formula}, over {self.n_views} views"
