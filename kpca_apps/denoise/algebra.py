"""Small dense linear algebra for one group of patches, compiled, in float32.

A group is a matrix of some 50 patches by some 50 pixels, and an image has tens of thousands of
groups: calls to LAPACK, and eigenpairs nobody looks at, would take most of the time. Rows are
padded to whole vector registers (`padded_size`); padding is zero and stays zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.compiled import compiled

__all__ = ["add_product", "cholesky", "gram_of_columns", "padded_size", "solve_lower"]

Matrix = NDArray[np.float32]


@compiled
def padded_size(n: int) -> int:
    """Round a length up to a multiple of 8.

    >>> padded_size(49), padded_size(64)
    (56, 64)
    """
    return (n + 7) // 8 * 8


@compiled
def add_product(a: Matrix, b: Matrix, out: Matrix, rows: int, inner: int) -> None:
    """Add a b to out, for the first `rows` rows of a and its first `inner` columns."""
    width = out.shape[1]
    for i in range(rows):
        to = out[i]
        p = 0
        while p + 7 < inner:
            a0, a1, a2, a3 = a[i, p], a[i, p + 1], a[i, p + 2], a[i, p + 3]
            a4, a5, a6, a7 = a[i, p + 4], a[i, p + 5], a[i, p + 6], a[i, p + 7]
            b0, b1, b2, b3 = b[p], b[p + 1], b[p + 2], b[p + 3]
            b4, b5, b6, b7 = b[p + 4], b[p + 5], b[p + 6], b[p + 7]
            for j in range(width):
                to[j] += (
                    (a0 * b0[j] + a1 * b1[j])
                    + (a2 * b2[j] + a3 * b3[j])
                    + (a4 * b4[j] + a5 * b5[j])
                    + (a6 * b6[j] + a7 * b7[j])
                )
            p += 8
        while p < inner:
            a0, b0 = a[i, p], b[p]
            for j in range(width):
                to[j] += a0 * b0[j]
            p += 1


@compiled
def gram_of_columns(a: Matrix, at: Matrix, gram: Matrix, rows: int, columns: int) -> None:
    """Write a'a over the first `rows` rows; `at` is a transposed, `gram` is padded and square.

    Blocks of eight columns right of the diagonal are computed, then mirrored.
    """
    width = gram.shape[1]
    for i in range(columns):
        to = gram[i]
        start = i // 8 * 8
        for j in range(start, width):
            to[j] = np.float32(0)
        p = 0
        while p + 7 < rows:
            a0, a1, a2, a3 = at[i, p], at[i, p + 1], at[i, p + 2], at[i, p + 3]
            a4, a5, a6, a7 = at[i, p + 4], at[i, p + 5], at[i, p + 6], at[i, p + 7]
            b0, b1, b2, b3 = a[p], a[p + 1], a[p + 2], a[p + 3]
            b4, b5, b6, b7 = a[p + 4], a[p + 5], a[p + 6], a[p + 7]
            for j in range(start, width):
                to[j] += (
                    (a0 * b0[j] + a1 * b1[j])
                    + (a2 * b2[j] + a3 * b3[j])
                    + (a4 * b4[j] + a5 * b5[j])
                    + (a6 * b6[j] + a7 * b7[j])
                )
            p += 8
        while p < rows:
            a0, b0 = at[i, p], a[p]
            for j in range(start, width):
                to[j] += a0 * b0[j]
            p += 1
    for i in range(columns):
        for j in range(i):
            gram[i, j] = gram[j, i]


@compiled
def cholesky(a: Matrix, n: int) -> None:
    """Overwrite the upper triangle of a positive definite a with U, a = U'U.

    The diagonal receives 1 / U_ii.
    Right-looking: row i of U is subtracted from all rows below it, a vector at a time.
    """
    width = a.shape[1]
    for i in range(n):
        root = np.float32(1) / np.sqrt(a[i, i])
        for j in range(i + 1, width):
            a[i, j] *= root
        a[i, i] = root
        for r in range(i + 1, n):
            factor = a[i, r]
            start = r // 8 * 8
            for j in range(start, width):
                a[r, j] -= factor * a[i, j]


@compiled
def solve_lower(u: Matrix, b: Matrix, n: int) -> None:
    """Overwrite the n rows of b with inv(U') b, U from `cholesky`."""
    width = b.shape[1]
    for i in range(n):
        to = b[i]
        p = 0
        while p + 7 < i:
            a0, a1, a2, a3 = u[p, i], u[p + 1, i], u[p + 2, i], u[p + 3, i]
            a4, a5, a6, a7 = u[p + 4, i], u[p + 5, i], u[p + 6, i], u[p + 7, i]
            b0, b1, b2, b3 = b[p], b[p + 1], b[p + 2], b[p + 3]
            b4, b5, b6, b7 = b[p + 4], b[p + 5], b[p + 6], b[p + 7]
            for j in range(width):
                to[j] -= (
                    (a0 * b0[j] + a1 * b1[j])
                    + (a2 * b2[j] + a3 * b3[j])
                    + (a4 * b4[j] + a5 * b5[j])
                    + (a6 * b6[j] + a7 * b7[j])
                )
            p += 8
        while p < i:
            a0, b0 = u[p, i], b[p]
            for j in range(width):
                to[j] -= a0 * b0[j]
            p += 1
        scale = u[i, i]
        for j in range(width):
            to[j] *= scale
