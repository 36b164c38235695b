"""The operator of one group in machine code; `kpca_apps.engine.groups.operator` is the same.

At infinite width the two cuts need no kernel matrix: `project_rows` truncates, `linear_smooth` is
the Tikhonov filter, Theta = X (X'X + rho I)^-1 X'. `rbf_rows` truncates at a finite width; the
filter is no better for one (measured on text at sigma 25: 26.76 dB, and 26.90 at infinite width).

A group of fewer patches than pixels is worked on at the side of the patches: the Gram matrix Z Z'
has the eigenvalues above 0 of Z'Z, and the filter is I - rho (X X' + rho I)^-1.

Patches are centred: the first k rows and n columns of a matrix of which the rest is zero, rows some
times four and one more, columns of the padded size.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.engine.groups.operator import (
    EDGE_FACTOR,
    RIDGE_FACTOR,
    count_components,
    count_steps,
    noise_in_kernel,
)
from kpca_apps.engine.linalg.small_matrices import (
    NO,
    NONE,
    ONE,
    Matrix,
    Scalar,
    Vector,
    eliminate,
    gram_of,
    leading_eigenvectors,
    multiply,
    padded_size,
)
from kpca_apps.engine.preimage.fixed_point import VANISHING
from kpca_apps.system.compiling import compiled, inlined
from kpca_apps.system.registers import fill, load, store, total

EDGE, RIDGE = np.float32(EDGE_FACTOR), np.float32(RIDGE_FACTOR)


@inlined
def project_rows(
    z: Matrix, mean: Vector, k: int, n: int, variance: Scalar, most: Scalar
) -> tuple[Matrix, int, Scalar]:
    """Return the projections of patches on the components above the edge.

    The edge follows the residual variance up to `most` times the variance given. Returned too: how
    many components were kept, and the residual variance per degree of freedom.
    """
    wide, size = z.shape[1], min(k, n)
    gram = np.empty(((size + 3) // 4 * 4, padded_size(size)), z.dtype)
    gram_of(_transpose(z, k, n) if k < n else z, max(k, n), gram)
    trace = np.float32(0)
    for i in range(size):
        trace += gram[i, i]
    per_variance = EDGE * (np.sqrt(np.float32(k)) + np.sqrt(np.float32(n))) ** 2
    values, axes = leading_eigenvectors(gram, size, per_variance * variance)
    q, residual = count_components(values, trace, (k, n), variance, most, per_variance)
    if k < n:
        flat, down = axes.ravel(), axes.shape[1]
        return _smooth_twice(flat, NONE, down, z, mean, (k, len(axes), q)), q, residual
    # Axes are rows of a matrix of some times four.
    for c in range(q, (q + 3) // 4 * 4):
        axes[c] = np.float32(0)
    estimates, zero = np.empty(z.shape, z.dtype), fill(np.float32(0))
    for g in range(k):
        for j in range(0, wide, 8):
            store(estimates, (g, j), load(mean, (j,)))
        for c in range(0, q, 4):
            s0, s1, s2, s3 = zero, zero, zero, zero
            for j in range(0, wide, 8):
                values_here = load(z, (g, j))
                s0 += values_here * load(axes, (c, j))
                s1 += values_here * load(axes, (c + 1, j))
                s2 += values_here * load(axes, (c + 2, j))
                s3 += values_here * load(axes, (c + 3, j))
            s0, s1, s2, s3 = fill(total(s0)), fill(total(s1)), fill(total(s2)), fill(total(s3))
            for j in range(0, wide, 8):
                some = s0 * load(axes, (c, j)) + s1 * load(axes, (c + 1, j))
                rest = s2 * load(axes, (c + 2, j)) + s3 * load(axes, (c + 3, j))
                store(estimates, (g, j), load(estimates, (g, j)) + (some + rest))
    return estimates, q, residual


@inlined
def linear_smooth(
    x: Matrix, z: Matrix, mean: Vector, k: int, n: int, variance: Scalar
) -> tuple[Matrix, Vector]:
    """Return Theta z plus the mean, Theta learned on the pilot's patches x, and the leverages.

    With U'U = X'X + rho I and W = U'^-1 X', Theta is W'W. A leverage is an entry of the diagonal of
    Theta, and 1 / k for the mean.
    """
    wide, size, across = x.shape[1], min(k, n), padded_size(k)
    width = wide + across if k >= n else across + wide + across
    a = np.zeros(((size + 3) // 4 * 4, width), z.dtype)
    gram_of(_transpose(x, k, n) if k < n else x, max(k, n), a)
    if k < n:
        # [X X' | 0 | 0] becomes [X X' | Z | I].
        for g in range(len(a)):
            a[g, across + wide + g] = np.float32(1)
            for j in range(0, wide, 8):
                store(a, (g, across + j), load(z, (g, j)))
    else:
        for i in range(n):
            for g in range(k):
                a[i, wide + g] = x[g, i]
    trace, high = np.float32(0), len(a)
    for i in range(size):
        trace += a[i, i]
    # At least what float32 needs.
    ridge = RIDGE * np.float32(n) * np.float32(variance)
    added = max(ridge, np.float32(2e-6) * trace, np.float32(1e-12))
    for i in range(high):
        a[i, i] += added
    eliminate(a, high, added)
    # The columns behind are W, or U'^-1, where k < n.
    behind = width - across
    leverage: Vector = np.empty(across, z.dtype)
    for g in range(0, across, 8):
        sums = fill(np.float32(0))
        for i in range(size):
            column = load(a, (i, behind + g))
            sums += column * column
        store(leverage, (g,), sums)
    if k < n:
        for g in range(k):
            leverage[g] = max(np.float32(1) - added * leverage[g], np.float32(0))
        # [S | Z | I] became [. | U'^-1 Z | U'^-1], S = U'U.
        solved, rho = np.empty((high, behind), z.dtype), fill(added)
        steps, columns = (behind, width, ONE), (across, behind)
        multiply(a.ravel(), steps, a, high, solved, (NONE, high), columns, NO)
        estimates: Matrix = np.empty(z.shape, z.dtype)
        for j in range(0, wide, 8):
            centre = load(mean, (j,))
            for g in range(k):
                left = load(z, (g, j)) - rho * load(solved, (g, across + j))
                store(estimates, (g, j), left + centre)
    else:
        estimates = _smooth_twice(a.ravel(), wide, width, z, mean, (k, high, n))
    for g in range(k):
        leverage[g] += np.float32(1) / np.float32(k)
    return estimates, leverage[:k]


@compiled
def rbf_rows(
    z: Matrix, mean: Vector, k: int, n: int, variance: Scalar, most: Scalar, bandwidth: Scalar
) -> tuple[Matrix, int, Scalar]:
    """Return pre-images of the projections of patches: `project_rows` at finite width.

    In double precision: what a wide kernel says of near patches is in its last digits.
    """
    x = z[:k, :n].astype(np.float64)
    gram = np.dot(x, x.T)
    square = np.diag(gram).copy()
    c = max(bandwidth * 2.0 * square.sum() / k, 1e-12)
    # The centred kernel (c / 2) exp(-d^2 / c). Centring removes what all entries share, so c / 2
    # is left out from the start.
    means = np.zeros(k)
    for i in range(k):
        _fall_off(gram[i], square, square[i], c)
        means[i] = 0.5 * c * gram[i].sum() / k
    whole = means.sum() / k
    centred = np.zeros((k, padded_size(k)))
    for i in range(k):
        for j in range(k):
            centred[i, j] = 0.5 * c * gram[i, j] + whole - means[i] - means[j]
    slope, floor = noise_in_kernel(variance, n, c)
    per_variance = EDGE_FACTOR * (np.sqrt(k) + np.sqrt(n)) ** 2
    trace = (np.trace(centred) - (k - 1) * floor) / slope
    values, axes = leading_eigenvectors(centred, k, slope * per_variance * variance + floor)
    values = (values - floor) / slope
    q, residual = count_components(values, trace, (k, n), variance, most, per_variance)
    vectors = np.ascontiguousarray(axes[:q, :k])
    expansion = np.dot(vectors.T, vectors) + 1.0 / k
    # Mika's fixed point, begun at the points themselves: a step is z_i = sum_j w_ij x_j, w_ij in
    # proportion to expansion_ij k(z_i, x_j).
    points, weights = x, gram
    for step in range(count_steps(bandwidth)):
        if step:
            weights = np.dot(points, x.T)
        for i in range(k):
            if step:
                _fall_off(weights[i], square, np.sum(points[i] * points[i]), c)
            _normalise(weights[i], expansion[i])
        points = np.dot(weights, x)
    estimates = np.empty_like(z)
    for i in range(k):
        for j in range(n):
            estimates[i, j] = np.float32(points[i, j]) + mean[j]
    return estimates, q, residual


@compiled
def _fall_off(row: Vector, square: Vector, length: Scalar, c: Scalar) -> None:
    """Turn inner products of a point, of squared length given, into exp(-d^2 / c) - 1."""
    scale = -1.0 / (64.0 * c)
    for j in range(len(row)):
        # The series of a 64th, in all digits; beyond e^-40 nothing is left of 1.
        u = max(min(scale * (length + square[j] - 2.0 * row[j]), 0.0), -0.625)
        v = u * (1.0 + u / 3.0 * (1.0 + u / 4.0 * (1.0 + u / 5.0 * (1.0 + u / 6.0)))) / 2.0
        v = u * (1.0 + v)
        for _ in range(6):
            v *= 2.0 + v
        row[j] = v


@compiled
def _normalise(row: Vector, expansion: Vector) -> None:
    """Turn values of the kernel, less 1, into weights of a point."""
    whole, size = 0.0, 0.0
    for j in range(len(row)):
        row[j] = expansion[j] * (1.0 + row[j])
        whole += row[j]
        size += abs(row[j])
    # The sum vanishes between points of weights with both signs: the linear ones stay.
    vanished = not abs(whole) > VANISHING * size
    for j in range(len(row)):
        row[j] = expansion[j] if vanished else row[j] / whole


@inlined
def _transpose(z: Matrix, k: int, n: int) -> Matrix:
    """Return the first k rows of z, of n numbers, as columns, widened by zeros."""
    columns = np.zeros((n, padded_size(k)), z.dtype)
    for g in range(k):
        for i in range(n):
            columns[i, g] = z[g, i]
    return columns


@compiled
def _smooth_twice(
    flat: Vector, start: int, down: int, z: Matrix, mean: Vector, sizes: tuple[int, int, int]
) -> Matrix:
    """Return F'F z plus the mean, F_ig = flat[start + down i + g].

    The sizes are the columns k of F, its rows, some times four, and how many of these F' takes.
    """
    (k, rows, depth), wide = sizes, z.shape[1]
    # At one place, for a product is compiled again at each.
    factor, product, across, along = z, np.empty((rows, wide), z.dtype), down, ONE
    estimates: Matrix = np.empty(z.shape, z.dtype)
    terms = k
    for _ in range(2):
        steps = start, along, across
        multiply(flat, steps, factor, terms, product, (NONE, rows), (NONE, wide), NO)
        factor, product, terms, rows = product, estimates, depth, (k + 3) // 4 * 4
        along, across = across, along
    for j in range(0, wide, 8):
        centre = load(mean, (j,))
        for g in range(k):
            store(estimates, (g, j), load(estimates, (g, j)) + centre)
    return estimates
