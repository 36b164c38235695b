"""Kernels that a user brings: a function, a kernel of a Gaussian process, a Gram matrix."""

# What `against`, `diagonal` and `describe` promise is said on Kernel.
# ruff: noqa: D102
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import eigvalsh

from kpca_apps.engine.kernels.base import Kernel, KernelRows
from kpca_apps.system.arrays import Matrix, Values


@dataclass(frozen=True, eq=False)
class FromFunction(Kernel):
    """A kernel given as a function of two rows, or as one of `sklearn.gaussian_process.kernels`.

    It is taken to be positive semi-definite. A function is called once for each pair of rows.
    """

    function: Callable[..., Any]

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        # Kernels are imported for images, too, which need nothing of scikit-learn.
        from sklearn.metrics.pairwise import pairwise_kernels

        def rows(X: Matrix) -> Values:
            # A copy: a function may hand out what it keeps, and values are written over.
            return np.array(pairwise_kernels(X, Z, metric=self.function), dtype)

        return rows

    def diagonal(self, X: Matrix) -> Matrix:
        if hasattr(self.function, "diag"):
            return np.asarray(self.function.diag(X), np.float64)
        return np.array([self.function(row, row) for row in X], np.float64)

    def describe(self) -> str:
        return getattr(self.function, "__name__", str(self.function))


@dataclass(frozen=True, eq=False)
class Precomputed(Kernel):
    """Kernel values given instead of rows.

    The points of a fit are the numbers of its rows, (n, 1); another row is the values of its kernel
    with all of them, (n,), of which the value with itself is not known.
    """

    gram: NDArray[np.float64]

    @cached_property  # asked for at each step of a fit, and as dear as all of it
    def is_psd(self) -> bool:
        # A share of the largest eigenvalue that rounding may leave below 0.
        least, *_ = eigvalsh(self.gram, subset_by_index=[0, 0])
        return bool(least > -1e-8 * np.trace(self.gram))

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        columns = Z[:, 0].astype(np.intp)

        def rows(X: Matrix) -> Values:
            values = self.gram[X[:, 0].astype(np.intp)] if X.shape[1] == 1 else X
            return np.asarray(values[:, columns], dtype)

        return rows

    def diagonal(self, X: Matrix) -> Matrix:
        if X.shape[1] != 1:
            raise ValueError(
                "With kernel='precomputed' the kernel of a new row with itself is not known, which "
                "its reconstruction error needs: give the rows and a kernel, or a function."
            )
        return self.gram.diagonal()[X[:, 0].astype(np.intp)]

    def describe(self) -> str:
        return "precomputed"
