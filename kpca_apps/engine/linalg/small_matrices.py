"""Small dense linear algebra for one group of patches, compiled, in vector registers.

A group is a matrix of about 50 patches by 50 pixels, and an image has tens of thousands of groups.
Rows are padded with zeros to whole pairs of registers (`padded_size`), and products keep sums for
four rows by two registers. At this size, products are as fast as BLAS on large matrices. BLAS and
LAPACK are not called, as compiling the calls is slow.

Eigenpairs: Householder reduction to tridiagonal form, Sturm counts for the eigenvalues above the
edge, inverse iteration for their vectors (Golub & Van Loan 2013, sections 8.3 and 8.4). Eigenvalues
below the edge cost nothing beyond the reduction. Counts at 32 shifts, and eight inverse iterations,
run side by side in register lanes, since each is one long chain of divisions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.system.compiling import compiled, inlined
from kpca_apps.system.registers import (
    WIDTH,
    each,
    fill,
    load,
    store,
    total,
    where_above,
    where_longer,
)

Matrix = NDArray[np.floating]
Vector = NDArray[np.floating]
Scalar = float | np.float32

PAIR = 2 * WIDTH  # number of values in two registers
SHIFTS = 4 * WIDTH  # number of shifts at which eigenvalues are counted at once
# Number of times that the interval of an eigenvalue is cut into nine.
SECTIONS = 4
INVERSE_ITERATIONS = 2
NEGLIGIBLE = 1e-9  # entries below this share of the trace count as zero in float32
TINY = 1e-30
# Typed constants, as the compiler would compile a function again for each Python constant.
NONE: Any = np.int64(0)
ONE: Any = np.int64(1)
NO: Any = np.bool_(False)
YES: Any = np.bool_(True)
# Start vectors of inverse iteration.
STARTS = np.random.default_rng(0).uniform(0.5, 1.5, (128, WIDTH)).astype(np.float32)


@compiled
def padded_size(n: int) -> int:
    """Round a length up to a multiple of two registers."""
    return (n + PAIR - 1) // PAIR * PAIR


@compiled
def multiply(
    a: Matrix,
    steps: tuple[int, int, int],
    b: Matrix,
    depth: int,
    out: Matrix,
    rows: tuple[int, int],
    columns: tuple[int, int],
    subtract: bool,
) -> None:
    """Write sum_g a_gi b_gj over g < depth to out[i, j], or subtract the sum from out[i, j].

    a_gi is entry start + g along + i across of `a`, row by row; steps are (start, along, across).
    The number of rows is a multiple of four, the number of columns of sixteen.
    """
    start, along, across = steps
    for i in range(rows[0], rows[1], 4):
        for j in range(columns[0], columns[1], PAIR):
            s0 = fill(out.dtype.type(0), PAIR)
            s1, s2, s3 = s0, s0, s0
            at = start + i * across
            for g in range(depth):
                row = load(b, (g, j), PAIR)
                s0 += each(a, (NONE, at), PAIR) * row
                s1 += each(a, (NONE, at + across), PAIR) * row
                s2 += each(a, (NONE, at + 2 * across), PAIR) * row
                s3 += each(a, (NONE, at + 3 * across), PAIR) * row
                at += along
            if subtract:
                s0 = load(out, (i, j), PAIR) - s0
                s1 = load(out, (i + 1, j), PAIR) - s1
                s2 = load(out, (i + 2, j), PAIR) - s2
                s3 = load(out, (i + 3, j), PAIR) - s3
            store(out, (i, j), s0)
            store(out, (i + 1, j), s1)
            store(out, (i + 2, j), s2)
            store(out, (i + 3, j), s3)


@compiled
def gram_of(rows: Matrix, depth: int, out: Matrix) -> None:
    """Write Z'Z to the first columns of `out`, where Z is the first `depth` rows of `rows`."""
    # Compute the upper triangle in blocks, and mirror it.
    wide, high = rows.shape[1], len(out)
    for i in range(0, high, PAIR):
        below = i, min(i + PAIR, high)
        multiply(rows, (NONE, wide, ONE), rows, depth, out, below, (i, wide), NO)
    for i in range(PAIR, high):
        for j in range(i // PAIR * PAIR):
            out[i, j] = out[j, i]


@compiled
def eliminate(a: Matrix, n: int, least: Scalar) -> None:
    """Turn [S | B] in place into [U | U'^-1 B], where S = U'U is symmetric.

    S has n rows, a multiple of four, and no eigenvalue below `least`; only its upper triangle is
    used.
    """
    number = a.dtype.type
    width, least = a.shape[1], number(least)
    for i in range(0, n, 4):
        first = i // PAIR * PAIR
        multiply(a, (NONE, width, ONE), a, i, a, (i, i + 4), (first, width), YES)
        for r in range(i, i + 4):
            # Exact pivots are at least `least`; rounding may give less.
            scale = fill(number(1) / np.sqrt(max(a[r, r], least)))
            for j in range(first, width, WIDTH):
                store(a, (r, j), scale * load(a, (r, j)))
            for s in range(r + 1, i + 4):
                share = each(a, (r, s))
                for j in range(first, width, WIDTH):
                    store(a, (s, j), load(a, (s, j)) - share * load(a, (r, j)))


@compiled
def _tridiagonalise(
    a: Matrix, n: int, diagonal: Vector, beside: Vector, factor: Vector, work: Matrix
) -> None:
    """Reduce a symmetric matrix `a` to tridiagonal form by Householder reflections.

    Reflections run from the last row up, so that the remaining matrix starts at column 0. Reflector
    j (its vector in row j of a, its 2 / v'v in factor[j]) acts on the first j coordinates;
    beside[j] couples coordinates j - 1 and j.
    """
    number = a.dtype.type
    v, p, product = work[0], work[1], work[2]
    zero = fill(number(0))
    for j in range(0, work.shape[1], WIDTH):
        store(v, (j,), zero)
        store(p, (j,), zero)
    trace = number(0)
    for i in range(n):
        trace += a[i, i]
    negligible = number(NEGLIGIBLE) * trace
    negligible *= negligible
    for j in range(n - 1, 1, -1):
        vj, pj = each(v, (j,)), each(p, (j,))
        for i in range(0, j + 1, WIDTH):
            store(a, (j, i), load(a, (j, i)) - vj * load(p, (i,)) - pj * load(v, (i,)))
        diagonal[j] = a[j, j]
        last = a[j, j - 1]
        for i in range(j - 1, padded_size(j)):
            a[j, i] = number(0)
        sums = zero
        for i in range(0, j, WIDTH):
            sums += load(a, (j, i)) * load(a, (j, i))
        square = total(sums)
        scale = number(0)
        beside[j] = last
        if square > negligible:
            norm = np.sqrt(square + last * last)
            beside[j] = -norm if last > 0 else norm
            a[j, j - 1] = last - beside[j]
            share = fill(number(1) / norm)
            for i in range(0, j, WIDTH):
                store(a, (j, i), share * load(a, (j, i)))
            scale = norm / (norm + abs(last))
        else:
            for i in range(0, j, WIDTH):
                store(a, (j, i), zero)
        factor[j] = scale
        # Columns from j on are no longer read, so updating them is harmless.
        inner = fill(number(0), PAIR)
        for k in range(0, j, PAIR):
            sums = fill(number(0), PAIR)
            vk, pk = load(v, (k,), PAIR), load(p, (k,), PAIR)
            for i in range(j):
                row = load(a, (i, k), PAIR) - each(v, (i,), PAIR) * pk - each(p, (i,), PAIR) * vk
                store(a, (i, k), row)
                sums += each(a, (j, i), PAIR) * row
            store(product, (k,), sums)
            inner += sums * load(a, (j, k), PAIR)
        half, times = fill(number(0.5) * scale * scale * total(inner)), fill(scale)
        for i in range(0, padded_size(j), WIDTH):
            u = load(a, (j, i))
            store(p, (i,), times * load(product, (i,)) - half * u)
            store(v, (i,), u)
    if n > 1:
        diagonal[1] = a[1, 1] - 2 * v[1] * p[1]
        beside[1] = a[1, 0] - v[1] * p[0] - p[1] * v[0]
    diagonal[0] = a[0, 0] - 2 * v[0] * p[0]
    beside[0] = number(0)


@compiled
def _count_above(diagonal: Vector, squares: Vector, n: int, shifts: Vector, counts: Vector) -> None:
    """Count eigenvalues above each of 32 shifts: positive pivots of T - shift (Sturm sequence)."""
    number = diagonal.dtype.type
    zero, one = fill(number(0), SHIFTS), fill(number(1), SHIFTS)
    tiny = fill(number(TINY), SHIFTS)
    away = zero - tiny
    shift, pivot, count = load(shifts, (0,), SHIFTS), one, zero
    for i in range(n):
        pivot = each(diagonal, (i,), SHIFTS) - shift - each(squares, (i,), SHIFTS) / pivot
        pivot = where_longer(tiny, pivot, away, pivot)
        count = where_above(pivot, zero, count + one, count)
    store(counts, (0,), count)


@compiled
def _eigenvalues_above(diagonal: Vector, beside: Vector, n: int, edge: Scalar) -> Vector:
    """Return the eigenvalues above `edge`, largest first."""
    number = diagonal.dtype.type
    squares = np.empty(len(diagonal), diagonal.dtype)
    edge = number(edge)
    top = edge
    for i in range(n):
        squares[i] = beside[i] * beside[i]
        after = abs(beside[i + 1]) if i + 1 < n else number(0)
        top = max(top, diagonal[i] + abs(beside[i]) + after)
    ends = np.empty(SHIFTS + 1, diagonal.dtype)
    shifts, above = np.empty(SHIFTS, diagonal.dtype), np.empty(SHIFTS, diagonal.dtype)
    counts = np.empty(SHIFTS, diagonal.dtype)
    # Place the shifts densely near `edge`, as the largest eigenvalue may be 1000 times `edge`.
    for t in range(SHIFTS + 1):
        share = number(t) / number(SHIFTS)
        ends[t] = edge + (top - edge) * share * share * share
    _count_above(diagonal, squares, n, ends, above)
    count = int(above[0])
    values = np.empty(count, diagonal.dtype)
    lows, highs = np.empty(4, diagonal.dtype), np.empty(4, diagonal.dtype)
    for first in range(0, count, 4):
        for e in range(4):
            c = min(first + e, count - 1)
            t = 0
            while t + 1 < SHIFTS and above[t + 1] > c:
                t += 1
            lows[e], highs[e] = ends[t], ends[t + 1]
        for _ in range(SECTIONS):
            for e in range(4):
                step = (highs[e] - lows[e]) * number(1 / (WIDTH + 1))
                for t in range(WIDTH):
                    shifts[WIDTH * e + t] = lows[e] + step * number(t + 1)
            _count_above(diagonal, squares, n, shifts, counts)
            for e in range(4):
                c, low = min(first + e, count - 1), lows[e]
                high = highs[e]
                for t in range(WIDTH):
                    if counts[WIDTH * e + t] > c:
                        low = shifts[WIDTH * e + t]
                for t in range(WIDTH - 1, -1, -1):
                    if counts[WIDTH * e + t] <= c:
                        high = shifts[WIDTH * e + t]
                lows[e], highs[e] = low, high
        for c in range(first, min(first + 4, count)):
            values[c] = number(0.5) * (lows[c - first] + highs[c - first])
    return values


@compiled
def _solve_shifted(
    diagonal: Vector, beside: Vector, n: int, shifts: Vector, x: Matrix, upper: Matrix
) -> None:
    """Overwrite x with (T - shift)^-1 x, one shift for each of eight columns.

    Gaussian elimination with pivoting; x and T have two more rows, zero in x.
    """
    number = diagonal.dtype.type
    zero, one = fill(number(0)), fill(number(1))
    shift = load(shifts, (0,))
    small = fill(number(1e-7)) * shift + fill(number(TINY))
    here, right = each(diagonal, (0,)) - shift, each(beside, (1,))
    mine = load(x, (0, 0))
    for i in range(n - 1):
        below, next_right = each(beside, (i + 1,)), each(beside, (i + 2,))
        next_here, following = each(diagonal, (i + 1,)) - shift, load(x, (i + 1, 0))
        # Swap rows if the lower row starts with the larger number.
        pivot = where_longer(below, here, below, where_longer(small, here, small, here))
        inverse = one / pivot
        times = inverse * where_longer(below, here, here, below)
        second = where_longer(below, here, next_here, right)
        third = where_longer(below, here, next_right, zero)
        value = where_longer(below, here, following, mine)
        mine = where_longer(below, here, mine, following) - times * value
        new = where_longer(below, here, right, next_here) - times * second
        right = where_longer(below, here, zero, next_right) - times * third
        here = new
        store(x, (i, 0), value)
        store(upper, (i, 0), inverse)
        store(upper, (i, WIDTH), second)
        store(upper, (i, 2 * WIDTH), third)
    one_below = mine / where_longer(small, here, small, here)
    two_below = zero
    store(x, (n - 1, 0), one_below)
    for i in range(n - 2, -1, -1):
        value = load(x, (i, 0)) - load(upper, (i, WIDTH)) * one_below
        value = (value - load(upper, (i, 2 * WIDTH)) * two_below) * load(upper, (i, 0))
        store(x, (i, 0), value)
        one_below, two_below = value, one_below


@inlined
def _orthonormalise(vectors: Matrix, c: int) -> None:
    """Orthonormalise row c against the rows before it."""
    number = vectors.dtype.type
    width = vectors.shape[1]
    zero = fill(number(0))
    for b in range(c):
        sums = zero
        for i in range(0, width, WIDTH):
            sums += load(vectors, (b, i)) * load(vectors, (c, i))
        share = fill(total(sums))
        for i in range(0, width, WIDTH):
            store(vectors, (c, i), load(vectors, (c, i)) - share * load(vectors, (b, i)))
    sums = zero
    for i in range(0, width, WIDTH):
        sums += load(vectors, (c, i)) * load(vectors, (c, i))
    scale = fill(number(1) / np.sqrt(max(total(sums), number(TINY))))
    for i in range(0, width, WIDTH):
        store(vectors, (c, i), scale * load(vectors, (c, i)))


@compiled
def _reflect_back(vectors: Matrix, a: Matrix, n: int, factor: Vector) -> None:
    """Transform eigenvectors of the tridiagonal form into eigenvectors of the matrix."""
    zero = fill(vectors.dtype.type(0))
    for c in range(0, len(vectors), 4):
        for j in range(2, n):
            s0, s1, s2, s3 = zero, zero, zero, zero
            for i in range(0, j, WIDTH):
                u = load(a, (j, i))
                s0 += u * load(vectors, (c, i))
                s1 += u * load(vectors, (c + 1, i))
                s2 += u * load(vectors, (c + 2, i))
                s3 += u * load(vectors, (c + 3, i))
            scale = factor[j]
            s0, s1 = fill(scale * total(s0)), fill(scale * total(s1))
            s2, s3 = fill(scale * total(s2)), fill(scale * total(s3))
            for i in range(0, j, WIDTH):
                u = load(a, (j, i))
                store(vectors, (c, i), load(vectors, (c, i)) - s0 * u)
                store(vectors, (c + 1, i), load(vectors, (c + 1, i)) - s1 * u)
                store(vectors, (c + 2, i), load(vectors, (c + 2, i)) - s2 * u)
                store(vectors, (c + 3, i), load(vectors, (c + 3, i)) - s3 * u)


@inlined
def leading_eigenvectors(a: Matrix, n: int, edge: Scalar) -> tuple[Vector, Matrix]:
    """Return the q eigenvalues of a symmetric matrix above `edge`, and their eigenvectors.

    The eigenvalues are in decreasing order. The matrix has n rows, padded with zeros, and is
    overwritten. The eigenvectors are the first q rows of a matrix as wide as `a`.
    """
    width = a.shape[1]
    # Leave zeros at the end, since registers are read beyond the last entry.
    work = np.zeros((6, width + 2 * WIDTH), a.dtype)
    diagonal, beside, factor = work[0], work[1], work[2]
    _tridiagonalise(a, n, diagonal, beside, factor, work[3:])
    values = _eigenvalues_above(diagonal, beside, n, edge)
    count = len(values)
    vectors = np.zeros(((count + 3) // 4 * 4, width), a.dtype)
    x, upper = np.empty((n, WIDTH), a.dtype), np.empty((n, 3 * WIDTH), a.dtype)
    shifts = np.empty(WIDTH, a.dtype)
    for first in range(0, count, WIDTH):
        end = min(first + WIDTH, count)
        for t in range(WIDTH):
            shifts[t] = values[min(first + t, count - 1)]
        for i in range(n):
            for t in range(WIDTH):
                x[i, t] = STARTS[i % len(STARTS), t]
        for _ in range(INVERSE_ITERATIONS):
            _solve_shifted(diagonal, beside, n, shifts, x, upper)
            for c in range(first, end):
                for i in range(n):
                    vectors[c, i] = x[i, c - first]
                _orthonormalise(vectors, c)
                for i in range(n):
                    x[i, c - first] = vectors[c, i]
    _reflect_back(vectors, a, n, factor)
    return values, vectors
