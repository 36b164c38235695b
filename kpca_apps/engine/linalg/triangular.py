"""Squared lengths of products with a matrix, by its triangular factor: about half the work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import qr

from kpca_apps.system.arrays import Matrix, Values
from kpca_apps.system.blas import one_blas_thread

WIDTH = 128
"""Columns of a factor that are multiplied at once: what lies below them is left out."""


def squared_norms(
    C: Matrix, s: Matrix, beta: Matrix, dtype: DTypeLike
) -> Callable[[Values], tuple[Values, Values]]:
    """Fix C (p, q), 1 <= q <= p, s (q,) and beta (p,) in |C'k - s|^2 and beta'k of rows k (b, p).

    With C' = QR the first is |Rk - Q's|^2, and R is upper triangular. The factorisation is stable
    whatever the condition of C.
    """
    p, q = C.shape
    with one_blas_thread():
        # Q's is what the factorisation makes of a further column s. Long rows go first: reflections
        # then leave short ones their digits (Higham, Accuracy and Stability, section 19.4).
        rows = np.column_stack([C.T, s])[np.argsort(-np.square(C).sum(axis=0), kind="stable")]
        R = qr(rows, mode="r", check_finite=False, overwrite_a=True)[0]
    lower, shift = R[:, :p].T, R[:, p].astype(dtype)
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

    return norms
