"""Compiled version of `kpca_apps.engine.groups.operator`.

`truncate_rows` projects patches on leading components. `linear_smooth` is the Tikhonov filter
Theta = X (X'X + rho I)^-1 X'.

A group with fewer patches than pixels uses the smaller Gram matrix Z Z', which has the non-zero
eigenvalues of Z'Z; the filter is then I - rho (X X' + rho I)^-1.

Patches are centred. They fill the first k rows and n columns of a matrix padded with zeros: rows to
a multiple of four plus one, columns to `padded_size`.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.engine.groups.operator import (
    EDGE_FACTOR,
    RIDGE_FACTOR,
    STEPS,
    count_components,
    is_narrow,
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
from kpca_apps.system.registers import each, fill, load, store, total, where_above

EDGE, RIDGE = np.float32(EDGE_FACTOR), np.float32(RIDGE_FACTOR)


@inlined
def linear_smooth(
    x: Matrix, z: Matrix, mean: Vector, k: int, n: int, variance: Scalar
) -> tuple[Matrix, Vector]:
    """Filter z: return Theta z + mean, and leverages. Theta is learned on a pilot estimate, x.

    With U'U = X'X + rho I and W = U'^-1 X', Theta = W'W. The leverage of a patch is the diagonal
    entry of Theta, plus 1 / k for the mean.
    """
    wide, size, across = x.shape[1], min(k, n), padded_size(k)
    width = wide + across if k >= n else across + wide + across
    a = np.zeros(((size + 3) // 4 * 4, width), z.dtype)
    gram_of(_transpose(x, k, n) if k < n else x, max(k, n), a)
    if k < n:
        # Extend [X X' | 0 | 0] to [X X' | Z | I].
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
    # Use at least the ridge that keeps a float32 matrix positive definite.
    ridge = RIDGE * np.float32(n) * np.float32(variance)
    added = max(ridge, np.float32(2e-6) * trace, np.float32(1e-12))
    for i in range(high):
        a[i, i] += added
    eliminate(a, high, added)
    # The last columns hold W, or U'^-1 if k < n; the docstring defines W and U.
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
        # Elimination turned [S | Z | I] into [. | U'^-1 Z | U'^-1], with S = U'U.
        solved, rho = np.empty((high, behind), z.dtype), fill(added)
        steps, columns = (behind, width, ONE), (across, behind)
        multiply(a, steps, a, high, solved, (NONE, high), columns, NO)
        estimates: Matrix = np.empty(z.shape, z.dtype)
        for j in range(0, wide, 8):
            for g in range(k):
                store(estimates, (g, j), load(z, (g, j)) - rho * load(solved, (g, across + j)))
    else:
        estimates = _smooth_twice(a, wide, width, z, (k, high, n))
    _add_to_rows(estimates, k, mean)
    for g in range(k):
        leverage[g] += np.float32(1) / np.float32(k)
    return estimates, leverage[:k]


@inlined
def truncate_rows(
    z: Matrix, mean: Vector, k: int, n: int, variance: Scalar, most: Scalar, bandwidth: Scalar
) -> tuple[Matrix, int, Scalar]:
    """Return pre-images of patches projected on the components that noise cannot explain.

    Noise is taken to have the residual variance, at most `most` times the given variance. Also
    return the number of components and the residual variance per degree of freedom. If the kernel
    is too wide for the group (`is_narrow`), pre-images are the linear projections.
    """
    wide, across, high = z.shape[1], padded_size(k), (k + 3) // 4 * 4
    zero, one, share = np.float32(0), np.float32(1), np.float32(1) / np.float32(k)
    sums, inside = fill(zero), np.zeros(across, z.dtype)
    for g in range(k):
        inside[g] = one
        for j in range(0, wide, 8):
            sums += load(z, (g, j)) * load(z, (g, j))
    c = np.float32(2 * bandwidth * n) * variance
    narrow, size, slope, floor = is_narrow(c, total(sums) * share), min(k, n), one, zero
    columns, weights = _transpose(z, k, n), np.empty((high, across), z.dtype)
    if narrow:
        size = k
        gram = np.zeros((high, across), z.dtype)
        _write_rbf(z, columns, k, n, c, inside, weights)
        _centre(weights, k, np.float32(0.5) * c, inside, gram)
        of_noise = noise_in_kernel(np.float32(bandwidth), c)
        slope, floor = np.float32(of_noise[0]), np.float32(of_noise[1])
    else:
        gram = np.empty(((size + 3) // 4 * 4, padded_size(size)), z.dtype)
        gram_of(columns if k < n else z, max(k, n), gram)
    trace = zero
    for i in range(size):
        trace += gram[i, i]
    if narrow:
        trace = (trace - np.float32(k - 1) * floor) / slope
    edge = np.sqrt(np.float32(k)) + np.sqrt(np.float32(n))
    edge *= EDGE * edge
    values, axes = leading_eigenvectors(gram, size, slope * edge * variance + floor)
    if narrow:
        for i in range(len(values)):
            values[i] = (values[i] - floor) / slope
    q, residual = count_components(values, trace, (k, n), variance, most, edge)
    if narrow:
        estimates = _fixed_point(z, columns, (k, n), c, inside, weights, axes, q)
    else:
        # For k >= n, the axes A are over pixels: get Z A'A as the transpose of A'A Z'.
        points, sizes = z if k < n else columns, (size, len(axes), q)
        estimates = _smooth_twice(axes, NONE, axes.shape[1], points, sizes)
        if k >= n:
            estimates = _transpose(estimates, n, k)
    _add_to_rows(estimates, k, mean)
    return estimates, q, residual


@compiled
def _centre(weights: Matrix, k: int, half: Scalar, inside: Vector, out: Matrix) -> None:
    """Write the centred kernel (c / 2) exp(-d^2 / c) of k patches; `half` is c / 2.

    The weights are the exponential minus 1, as centring removes constants.
    """
    across, share = weights.shape[1], np.float32(1) / np.float32(k)
    means, whole = np.zeros(across, weights.dtype), np.float32(0)
    for i in range(k):
        sums = fill(np.float32(0))
        for j in range(0, across, 8):
            sums += load(weights, (i, j))
        means[i] = total(sums) * share
        whole += means[i] * share
    for i in range(k):
        height = fill(whole - means[i])
        for j in range(0, across, 8):
            centred = load(weights, (i, j)) - load(means, (j,)) + height
            store(out, (i, j), fill(half) * load(inside, (j,)) * centred)


@compiled
def _fixed_point(
    z: Matrix, columns: Matrix, shape: tuple[int, int], c: Scalar, inside: Vector,
    weights: Matrix, axes: Matrix, q: int,
) -> Matrix:  # fmt: skip
    """Return Mika's fixed point of k patches projected on the first q axes.

    It is iterated from the patches: z_i = sum_j w_ij x_j, with w_ij proportional to
    expansion_ij k(z_i, x_j).
    """
    (k, n), wide, (high, across) = shape, z.shape[1], weights.shape
    zero, one, share = np.float32(0), np.float32(1), np.float32(1) / np.float32(k)
    expansion = np.zeros((high, across), z.dtype)
    gram_of(axes, q, expansion)
    points = np.zeros((high, wide), z.dtype)
    for step in range(STEPS):
        if step:
            _write_rbf(points, columns, k, n, c, inside, weights)
        for i in range(k):
            sums, sizes = fill(zero), fill(zero)
            for j in range(0, across, 8):
                linear = (load(expansion, (i, j)) + fill(share)) * load(inside, (j,))
                weight = linear * (load(weights, (i, j)) + fill(one))
                store(weights, (i, j), weight)
                sums += weight
                sizes += where_above(weight, fill(zero), weight, fill(zero) - weight)
            factor = total(sums)
            # A sum of weights of both signs may vanish: then keep the linear weights.
            if abs(factor) > np.float32(VANISHING) * total(sizes):
                factor = one / factor
                for j in range(0, across, 8):
                    store(weights, (i, j), fill(factor) * load(weights, (i, j)))
            else:
                for j in range(k):
                    weights[i, j] = expansion[i, j] + share
        multiply(weights, (NONE, ONE, across), z, k, points, (NONE, high), (NONE, wide), NO)
    return points


@compiled
def _write_rbf(
    points: Matrix, columns: Matrix, k: int, n: int, c: Scalar, inside: Vector, out: Matrix
) -> None:
    """Write exp(-d^2 / c) - 1 between k points and the columns of a matrix; 0 in the padding."""
    number = points.dtype.type
    scale, zero = fill(number(-1.0 / 64.0) / c), fill(number(0))
    one, two, least = fill(number(1)), fill(number(2)), fill(number(-0.625))
    for i in range(k):
        for j in range(0, columns.shape[1], 8):
            square = zero
            for a in range(n):
                d = load(columns, (a, j)) - each(points, (i, a))
                square += d * d
            # Clip the exponent at -40; u is a 64th of it, and v = expm1(u) by a Taylor series. Then
            # apply v(2 + v) = (1 + v)^2 - 1 six times to get expm1(64 u).
            u = scale * square
            u = where_above(u, least, u, least)
            v = one + u * fill(number(1 / 5)) * (one + u * fill(number(1 / 6)))
            v = one + u * fill(number(1 / 3)) * (one + u * fill(number(1 / 4)) * v)
            v = u * (one + u * fill(number(1 / 2)) * v)
            for _ in range(6):
                v *= two + v
            store(out, (i, j), v * load(inside, (j,)))


@compiled
def _transpose(z: Matrix, k: int, n: int) -> Matrix:
    columns = np.zeros(((n + 3) // 4 * 4 + 1, padded_size(k)), z.dtype)
    for i in range(n):
        for g in range(k):
            columns[i, g] = z[g, i]
    return columns


@compiled
def _smooth_twice(
    factor: Matrix, start: int, down: int, z: Matrix, sizes: tuple[int, int, int]
) -> Matrix:
    """Return F'F z, where `factor`, flattened, holds F_ig at index `start` + `down` * i + g.

    `sizes` are the numbers of columns of F (k), of rows of F (a multiple of four), and of rows that
    F' uses.
    """
    (k, rows, depth), wide = sizes, z.shape[1]
    product, estimates = np.empty((rows, wide), z.dtype), np.empty(z.shape, z.dtype)
    multiply(factor, (start, ONE, down), z, k, product, (NONE, rows), (NONE, wide), NO)
    high = (k + 3) // 4 * 4
    multiply(factor, (start, down, ONE), product, depth, estimates, (NONE, high), (NONE, wide), NO)
    return estimates


@inlined
def _add_to_rows(estimates: Matrix, k: int, mean: Vector) -> None:
    for j in range(0, estimates.shape[1], 8):
        centre = load(mean, (j,))
        for g in range(k):
            store(estimates, (g, j), load(estimates, (g, j)) + centre)
