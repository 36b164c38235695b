"""The mean of RBF kernels of several widths over several views of a table, computed as one."""

# What `against`, `describe` and the properties promise is said on Kernel.
# ruff: noqa: D102
from __future__ import annotations

import math
import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from kpca_apps.engine.kernels.base import (
    KernelRows,
    Matrix,
    Values,
    WeightedGradient,
    as_integer,
    as_number,
)
from kpca_apps.engine.kernels.products import (
    LOWEST,
    LOWEST_EXPONENT,
    rbf_exponents,
    sum_of_powers,
)
from kpca_apps.engine.kernels.standard import OfDistance

__all__ = ["MeanRBF"]


@dataclass(frozen=True)
class MeanRBF(OfDistance):
    """The mean of exp(-p gamma |x_v - y_v|^2) over integers p and views v of the columns.

    Several widths at little more than the price of one: the exponential is taken once, the other
    widths are its integer powers. (A mean of kernels on views of a table is a kernel: Scholkopf,
    Smola and Muller 1996, MPI technical report 44, B.7.)

    Parameters
    ----------
    gamma : float > 0
        As of `RBF`.
    powers : increasing tuple of int >= 1
        The p.
    n_views : int >= 1
        Views that a row holds side by side, each of as many columns.
    """

    gamma: float
    powers: tuple[int, ...] = (1, 3)
    n_views: int = 1

    def __post_init__(self) -> None:
        self._set(gamma=as_number("gamma", self.gamma, above=0.0))
        self._set(powers=tuple(as_integer("powers", p, at_least=1) for p in self.powers))
        self._set(n_views=as_integer("n_views", self.n_views, at_least=1))
        if not self.powers or list(self.powers) != sorted(set(self.powers)):
            raise ValueError(f"powers must be increasing integers >= 1, got {self.powers!r}.")

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        # With c one over the number of terms, P the largest power and w = c^(1/P) u, c u^p is
        # c^(1 - p/P) w^p: the last term needs no factor, which saves a pass over the values.
        largest, c = self.powers[-1], 1.0 / (len(self.powers) * self.n_views)
        factors = tuple(c ** (1.0 - p / largest) for p in self.powers[:-1])
        lowest, shift = LOWEST[np.dtype(dtype)] / largest, math.log(c) / largest
        views, m, room = self._views(Z), len(Z), threading.local()
        exponents = [rbf_exponents(Z[:, v], self.gamma, lowest, dtype, shift) for v in views]

        def rows(X: Matrix) -> Values:
            if X.shape[1] != Z.shape[1]:
                raise ValueError(f"The kernel compares {Z.shape[1]} columns, got {X.shape[1]}.")
            total = np.empty((len(X), m), dtype=dtype)
            # Memory used again from call to call, by each thread its own: to get it can take
            # longest.
            beside = getattr(room, "values", None)
            if beside is None or beside.shape[1:] != total.shape:
                beside = room.values = np.empty((2, *total.shape), dtype=dtype)
            for number, (view, of_view) in enumerate(zip(views, exponents, strict=True)):
                values = of_view(X[:, view], beside[0])
                np.exp(values, out=values)
                out = beside[1] if number else total
                term = sum_of_powers(values, self.powers, factors, out)
                if number:
                    total += term
            return total

        return rows

    def weighted_gradient(self, Z: Matrix) -> WeightedGradient:
        views = self._views(Z)
        if len(views) == 1:
            return super().weighted_gradient(Z)
        of_view = MeanRBF(self.gamma, self.powers)
        parts = [of_view.weighted_gradient(Z[:, v]) for v in views]
        return lambda X, C: np.hstack(
            [part(X[:, v], C) / self.n_views for v, part in zip(views, parts, strict=True)]
        )

    def _slopes(self, Z: Matrix) -> KernelRows:
        """Fix Z in k'(s) of one view."""
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
