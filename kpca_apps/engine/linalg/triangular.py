"""Products with triangular matrices, and squared lengths through a triangular factor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import get_blas_funcs, qr_multiply

from kpca_apps.system.arrays import Index, Matrix, Values
from kpca_apps.system.blas import one_blas_thread

WIDTH = 128  # number of columns of a factor multiplied at once


def times_upper(upper: Matrix, dtype: DTypeLike) -> Callable[[Values], Values]:
    """Return the map from rows k (b, p), which are overwritten, to k U for upper triangular U."""
    # In BLAS's column order, the memory of k is k', so U'k' is computed in place.
    factor = np.asfortranarray(upper, dtype)
    (multiply,) = get_blas_funcs(("trmm",), (factor,))

    def product(k: Values) -> Values:
        return np.asarray(multiply(1.0, factor, k.T, trans_a=1, overwrite_b=k.flags.writeable).T)

    return product


def squared_norms(
    C: Matrix, s: Matrix, beta: Matrix, dtype: DTypeLike
) -> tuple[Index, Callable[[Values], tuple[Values, Values]]]:
    """Return the map from rows k (b, p) to |C'k - s|^2 and beta'k, and the order of k's columns.

    C is (p, q), 1 <= q <= p, s (q,), beta (p,). With C'P = QR, P the returned column order, the
    squared length is |RP'k - Q's|^2, and R is upper triangular.
    """
    q = C.shape[1]
    with one_blas_thread():
        # Sorting long rows first and pivoting columns preserve the digits of short rows (Higham,
        # Accuracy and Stability, section 19.4).
        longest_first = np.argsort(-np.square(C).sum(axis=0), kind="stable")
        rotated, R, order = qr_multiply(
            C.T[longest_first], s[longest_first], mode="right", pivoting=True
        )
    lower, shift, beta = R.T, rotated.astype(dtype), beta[order]
    parts = []
    for first in range(0, q, WIDTH):
        span = slice(first, min(first + WIDTH, q))
        block = lower[first:, span].astype(dtype, order="C")
        if not first:
            block = np.column_stack([beta.astype(dtype), block])
        parts.append((first, block, shift[span]))

    def norms(k: Values) -> tuple[Values, Values]:
        squares, along = None, None
        for first, block, of_shift in parts:
            t = k[:, first:] @ block
            if along is None:
                along, t = t[:, 0], t[:, 1:]
            t -= of_shift
            of_part = np.einsum("ij,ij->i", t, t)
            squares = of_part if squares is None else np.add(squares, of_part, out=squares)
        assert squares is not None and along is not None
        return squares, along

    return order, norms
