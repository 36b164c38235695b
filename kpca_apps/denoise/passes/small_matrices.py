"""Small dense linear algebra for one group of patches, compiled.

A group is a matrix of some 50 patches by some 50 pixels, an image has tens of thousands of groups,
and only the few eigenpairs above an edge are wanted. With `numpy.linalg.eigh` in the place of
`leading_eigenvectors` a whole image takes 1.7 times as long (192 x 192, presets fast and balanced,
one thread, alternating runs). A Cholesky factor and matrix products of our own are gone: LAPACK
took .97 to 1.05 times as long as the one, BLAS .8 to .9 times as long as the others.

Eigenpairs: Householder reduction to tridiagonal form, Sturm counts and bisection for the
eigenvalues above the edge, inverse iteration for their vectors (Golub & Van Loan 2013, sections
8.3 and 8.4): what lies below the edge costs nothing beyond the reduction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.system.compiling import compiled

Matrix = NDArray[np.floating]
Vector = NDArray[np.floating]
Scalar = float | np.float32

BISECTIONS = 22
INVERSE_ITERATIONS = 2
# Entries below this share of the trace are zero already, as far as float32 can tell.
NEGLIGIBLE = np.float32(1e-9)
TINY = np.float32(1e-30)


@compiled
def padded_size(n: int) -> int:
    """Round a length up to a multiple of 8."""
    return (n + 7) // 8 * 8


@compiled
def _tridiagonalise(
    a: Matrix, n: int, diagonal: Vector, beside: Vector, factor: Vector, work: Vector
) -> None:
    """Reduce a symmetric a to tridiagonal form by Householder reflections.

    From the last row up, so that what is left always starts at column 0, where vectors are
    aligned. Reflector j (its vector in row j of a, its 2 / v'v in factor[j]) acts on the first
    j coordinates; beside[j] couples coordinates j - 1 and j.
    """
    trace = np.float32(0)
    for i in range(n):
        trace += a[i, i]
    negligible = (NEGLIGIBLE * trace) ** 2
    for j in range(n - 1, 1, -1):
        diagonal[j] = a[j, j]
        v = a[j]
        square = np.float32(0)
        for i in range(j - 1):
            square += v[i] * v[i]
        last = v[j - 1]
        factor[j] = np.float32(0)
        beside[j] = last
        if square <= negligible:
            continue
        norm = np.sqrt(square + last * last)
        beside[j] = -norm if last > 0 else norm
        v[j - 1] = last - beside[j]
        for i in range(j):
            v[i] /= norm
        scale = norm / (norm + abs(last))
        factor[j] = scale
        width = (j + 7) // 8 * 8
        for i in range(j, width):
            v[i] = np.float32(0)
        _reflect(a, v[:width], scale, work[:width], j)
    if n > 1:
        diagonal[1] = a[1, 1]
        beside[1] = a[1, 0]
    diagonal[0] = a[0, 0]
    beside[0] = np.float32(0)


@compiled
def _reflect(a: Matrix, v: Vector, scale: Scalar, p: Vector, n: int) -> None:
    """Apply H = I - scale v v' to both sides of the leading n x n block of a."""
    width = v.shape[0]
    for j in range(width):
        p[j] = np.float32(0)
    i = 0
    while i + 3 < n:
        v0, v1, v2, v3 = v[i], v[i + 1], v[i + 2], v[i + 3]
        a0, a1, a2, a3 = a[i], a[i + 1], a[i + 2], a[i + 3]
        for j in range(width):
            p[j] += (v0 * a0[j] + v1 * a1[j]) + (v2 * a2[j] + v3 * a3[j])
        i += 4
    while i < n:
        v0, a0 = v[i], a[i]
        for j in range(width):
            p[j] += v0 * a0[j]
        i += 1
    half = np.float32(0)
    for j in range(width):
        half += p[j] * v[j]
    half *= np.float32(0.5) * scale * scale
    for j in range(width):
        p[j] = scale * p[j] - half * v[j]
    for i in range(n):
        vi, pi, to = v[i], p[i], a[i]
        for j in range(width):
            to[j] -= vi * p[j] + pi * v[j]


@compiled
def _count_above(diagonal: Vector, beside: Vector, n: int, shift: Scalar) -> int:
    """Count eigenvalues above a shift: positive pivots of T - shift (Sturm sequence)."""
    count = 0
    pivot = np.float32(1)
    for i in range(n):
        pivot = diagonal[i] - shift - beside[i] * beside[i] / pivot
        if abs(pivot) < TINY:
            pivot = -TINY
        if pivot > 0:
            count += 1
    return count


@compiled
def _eigenvalues_above(
    diagonal: Vector, beside: Vector, n: int, edge: Scalar, values: Vector
) -> int:
    """Fill values with the eigenvalues above an edge, largest first; return their number."""
    top = edge
    for i in range(n):
        after = abs(beside[i + 1]) if i + 1 < n else np.float32(0)
        top = max(top, diagonal[i] + abs(beside[i]) + after)
    count = _count_above(diagonal, beside, n, edge)
    ceiling = top
    for c in range(count):
        low, high = edge, ceiling
        for _ in range(BISECTIONS):
            middle = np.float32(0.5) * (low + high)
            if _count_above(diagonal, beside, n, middle) > c:
                low = middle
            else:
                high = middle
        values[c] = np.float32(0.5) * (low + high)
        ceiling = high
    return count


@compiled
def _inverse_iteration(
    diagonal: Vector, beside: Vector, n: int, value: Scalar, x: Vector, lu: Matrix
) -> None:
    """Overwrite x with a solution of (T - value) x = x; Gaussian elimination with pivoting."""
    u0, u1, u2 = lu[0], lu[1], lu[2]
    small = np.float32(1e-7) * (np.float32(abs(diagonal[0])) + TINY)
    here, right = diagonal[0] - value, (beside[1] if n > 1 else np.float32(0))
    for i in range(n - 1):
        below, next_here = beside[i + 1], diagonal[i + 1] - value
        next_right = beside[i + 2] if i + 2 < n else np.float32(0)
        if abs(below) > abs(here):
            u0[i], u1[i], u2[i] = below, next_here, next_right
            m = here / below
            here, right = right - m * next_here, -m * next_right
            x[i], x[i + 1] = x[i + 1], x[i] - m * x[i + 1]
        else:
            if abs(here) < small:
                here = small
            u0[i], u1[i], u2[i] = here, right, np.float32(0)
            m = below / here
            here, right = next_here - m * right, next_right
            x[i + 1] -= m * x[i]
    u0[n - 1] = here if abs(here) >= small else small
    x[n - 1] /= u0[n - 1]
    if n > 1:
        x[n - 2] = (x[n - 2] - u1[n - 2] * x[n - 1]) / u0[n - 2]
    for i in range(n - 3, -1, -1):
        x[i] = (x[i] - u1[i] * x[i + 1] - u2[i] * x[i + 2]) / u0[i]


@compiled
def _orthonormalise(vectors: Matrix, c: int, n: int) -> None:
    """Make row c of unit length and orthogonal to the rows before it."""
    x = vectors[c]
    largest = TINY
    for i in range(n):
        largest = max(largest, abs(x[i]))
    scale = np.float32(1) / largest
    for i in range(n):
        x[i] *= scale
    for b in range(c):
        y = vectors[b]
        dot = np.float32(0)
        for i in range(n):
            dot += x[i] * y[i]
        for i in range(n):
            x[i] -= dot * y[i]
    square = np.float32(0)
    for i in range(n):
        square += x[i] * x[i]
    scale = np.float32(1) / np.sqrt(max(square, TINY))
    for i in range(n):
        x[i] *= scale


@compiled
def leading_eigenvectors(given: Matrix, edge: Scalar) -> tuple[Vector, Matrix]:
    """Return the eigenvalues (q,) of a symmetric matrix above an edge, largest first, with vectors.

    Those are the rows of a matrix (q, n).
    """
    n = len(given)
    # Rows are widened by zeros to whole vector registers, and stay so.
    a = np.zeros((n, padded_size(n)), given.dtype)
    a[:, :n] = given
    work = np.zeros((7, a.shape[1]), given.dtype)
    diagonal, beside, factor = work[0], work[1], work[2]
    values = np.zeros(n, given.dtype)
    count = 0
    if np.trace(given) > edge:
        _tridiagonalise(a, n, diagonal, beside, factor, work[3])
        count = _eigenvalues_above(diagonal, beside, n, edge, values)
    vectors = np.zeros((count, n), given.dtype)
    for c in range(count):
        x = vectors[c]
        for i in range(n):
            x[i] = np.float32(1) + np.float32(0.37) * np.float32((i * (c + 3)) % 7)
        for _ in range(INVERSE_ITERATIONS):
            _inverse_iteration(diagonal, beside, n, values[c], x, work[4:7])
            _orthonormalise(vectors, c, n)
    for x in vectors:
        # From the tridiagonal form back to the matrix it came from, a reflection after the other.
        for j in range(2, n):
            scale = factor[j]
            if scale == 0:
                continue
            v = a[j]
            dot = np.float32(0)
            for i in range(j):
                dot += v[i] * x[i]
            dot *= scale
            for i in range(j):
                x[i] -= dot * v[i]
    return values[:count], vectors
