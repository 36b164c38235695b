"""Kernels supplied by a user: a function, a Gaussian process kernel, a Gram matrix."""

# `Kernel` documents `against`, `diagonal` and `describe`.
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
    """A kernel given as a function of two rows or a `sklearn.gaussian_process.kernels` object.

    The kernel must be positive semi-definite. A function is called once per pair of rows.
    """

    function: Callable[..., Any]

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        # Import here, as image denoising uses kernels without scikit-learn.
        from sklearn.metrics.pairwise import pairwise_kernels

        def rows(X: Matrix) -> Values:
            # Copy, as the caller overwrites the values.
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
    """A kernel given by the matrix of its values between the rows of a fit.

    The points of a fit are row numbers (n, 1). A new row is given by its kernel values with all
    fitted rows, (n,); its kernel value with itself is unknown.
    """

    gram: NDArray[np.float64]

    @cached_property  # as expensive as a fit
    def is_psd(self) -> bool:
        # Rounding may leave eigenvalues slightly below 0.
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
