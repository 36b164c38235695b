"""Products with triangular matrices, and squared lengths by a triangular factor: half the work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import get_blas_funcs, qr_multiply

from kpca_apps.system.arrays import Index, Matrix, Values
from kpca_apps.system.blas import one_blas_thread

WIDTH = 128
"""Columns of a factor that are multiplied at once: what lies below them is left out."""


def times_upper(upper: Matrix, dtype: DTypeLike) -> Callable[[Values], Values]:
    """Fix an upper triangular matrix U (p, p) in the map from rows k (b, p) to k U.

    Rows of the ``dtype``, one behind the other in memory that may be written to, are written over.
    """
    # The library reads columns first, and so sees k' and, for U', the same numbers as U.
    factor = np.asfortranarray(upper, dtype)
    (multiply,) = get_blas_funcs(("trmm",), (factor,))

    def product(k: Values) -> Values:
        out: Values = multiply(1.0, factor, k.T, trans_a=1, overwrite_b=k.flags.writeable).T
        return out

    return product


def squared_norms(
    C: Matrix, s: Matrix, beta: Matrix, dtype: DTypeLike
) -> tuple[Index, Callable[[Values], tuple[Values, Values]]]:
    """Fix C (p, q), 1 <= q <= p, s (q,) and beta (p,) in |C'k - s|^2 and beta'k of rows k (b, p).

    Returned are the order in which the p numbers of a row must come, and the map from such rows.
    With C'P = QR, P that order, the first is |RP'k - Q's|^2, and R is upper triangular.
    """
    q = C.shape[1]
    with one_blas_thread():
        # Long rows go first, and columns are exchanged: reflections then leave short rows their
        # digits (Higham, Accuracy and Stability, section 19.4), which neither does alone.
        longest_first = np.argsort(-np.square(C).sum(axis=0), kind="stable")
        rotated, R, order = qr_multiply(
            C.T[longest_first], s[longest_first], mode="right", pivoting=True
        )
    lower, shift, beta = R.T, rotated.astype(dtype), beta[order]
    parts = []
    for first in range(0, q, WIDTH):
        of = slice(first, min(first + WIDTH, q))
        block = lower[first:, of].astype(dtype, order="C")
        if not first:
            block = np.column_stack([beta.astype(dtype), block])
        parts.append((first, block, shift[of]))

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
