"""The Gram matrix: built in blocks of rows, centred without a second matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kpca_apps.engine.blocks import map_row_blocks
from kpca_apps.engine.kernels import Kernel

__all__ = ["centre_in_place", "gram_matrix"]

Matrix = NDArray[np.float64]
Values = NDArray[Any]


def gram_matrix(
    kernel: Kernel, X: Matrix, dtype: DTypeLike = np.float64, *, n_jobs: int | None = None
) -> Values:
    """Return K with K_ij = k(x_i, x_j), shape ``(n, n)``.

    Raises
    ------
    ValueError
        If values of the kernel overflow; no solver is to be trusted with them.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gram = map_row_blocks(kernel.against(X, dtype), X, n_jobs=n_jobs)
        finite = np.isfinite(gram.sum(axis=0)).all()
    if not finite:
        raise ValueError(
            f"The kernel {kernel.describe()} overflows on these rows: scale the columns first."
        )
    return gram


def centre_in_place(K: Values) -> None:
    """Turn K into HKH, H = I - 11'/n, in the memory of K.

    Examples
    --------
    >>> K = np.array([[4.0, 2.0], [2.0, 4.0]])
    >>> centre_in_place(K)
    >>> K
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    means = K.mean(axis=0)
    K -= means
    K -= means[:, None]
    K += means.mean()
