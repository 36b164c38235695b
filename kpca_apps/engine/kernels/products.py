"""Inner products, distances taken from them, and cheap powers: what kernels are computed from."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.spatial.distance import cdist

__all__ = [
    "FAR",
    "LOWEST",
    "LOWEST_EXPONENT",
    "SINGLE",
    "Exponents",
    "power",
    "products_with",
    "rbf_exponents",
    "squared_lengths",
    "sum_of_powers",
    "unit_rows",
]

Matrix = NDArray[np.float64]
Values = NDArray[Any]
Rows = Callable[[Matrix], Values]


class Exponents(Protocol):
    """Rows ``(b, d)`` to values ``(b, m)``, in a new array or in the one given."""

    def __call__(self, X: Matrix, out: Values | None = None, /) -> Values: ...  # noqa: D102


LOWEST_EXPONENT = -700.0
"""Below this exp(x) leaves the normal numbers, and numpy's exp drops to 1/40 of its speed."""

SINGLE = np.dtype(np.float32)

LOWEST = {SINGLE: -87.0, np.dtype(np.float64): LOWEST_EXPONENT}
"""The same for each type."""

FAR = {SINGLE: 80.0, np.dtype(np.float64): 1e3}
"""Half squared length above which a distance taken from products has lost 3 digits of 16; of
float32, where two digits of seven are left."""


def rbf_exponents(
    Z: Matrix, gamma: float, lowest: float, dtype: DTypeLike = np.float64, shift: float = 0.0
) -> Exponents:
    """Fix Z in shift - gamma |x - z|^2, taken from one matrix product, no smaller than ``lowest``.

    With xs = sqrt(2 gamma)(x - centre) and h = |xs|^2 / 2 the exponent is the product of the rows
    [xs, -h, 1] and [zs, 1, shift - h']. Centring is what keeps the digits: lengths cancel in it.
    The median, unlike the mean, stays among the rows when one of them lies very far out. Rows that
    are far out themselves are compared by differences, which cancel nothing.
    """
    centre = np.median(Z, axis=0)
    scale = np.sqrt(2.0 * gamma)
    far_from = FAR[np.dtype(dtype)]

    def scaled(X: Matrix) -> tuple[Values, Values]:
        """Return [xs, 1, 1] with xs rounded to the type, and h of what rounding has left."""
        # In memory of their own: types are changed several times as fast as between the ones.
        xs = (X - centre).astype(dtype, copy=False)
        xs *= scale
        padded = np.empty((len(X), X.shape[1] + 2), dtype=dtype)
        padded[:, :-2], padded[:, -2:] = xs, 1.0
        return padded, 0.5 * squared_lengths(xs)

    with np.errstate(over="ignore", invalid="ignore"):
        right, lengths = scaled(Z)
        right[:, -1] = shift - lengths
    right_columns = np.ascontiguousarray(right.T)
    reach = np.sqrt(lengths.max(initial=0.0))

    def rows(X: Matrix, out: Values | None = None) -> Values:
        with np.errstate(over="ignore", invalid="ignore"):
            left, h = scaled(X)
            left[:, -2] = -h
            values: Values = np.matmul(left, right_columns, out=out)
            farthest = h.max(initial=0.0)
            if not farthest <= far_from:
                far = ~(h <= far_from)
                values[far] = shift - gamma * cdist(X[far], Z, "sqeuclidean")
        # By the triangle inequality most blocks have nothing to clip, and a pass costs.
        if (np.sqrt(farthest) + reach) ** 2 <= shift - lowest:
            return values
        return np.clip(values, lowest, np.inf, out=values)

    return rows


def sum_of_powers(
    values: Values, powers: tuple[int, ...], factors: tuple[float, ...], out: Values | None = None
) -> Values:
    """Return the sum of factor times w^p over increasing ``powers`` >= 1, by Horner's rule.

    The factor of the last power is 1, and ``factors`` hold those of the others.
    """
    steps = [high - low for low, high in pairwise((0, *powers))]
    total = power(values, steps[-1], out)
    for step, factor in zip(reversed(steps[:-1]), reversed(factors), strict=True):
        total += factor
        for _ in range(step):
            total *= values
    return total


def power(values: Values, exponent: int, out: Values | None = None) -> Values:
    """Return ``values`` to a small integer power by multiplication, without numpy's slow pow."""
    if exponent == 1:
        return np.positive(values, out=out)
    result: Values = np.multiply(values, values, out=out)
    for _ in range(exponent - 2):
        result *= values
    return result


def products_with(Z: Matrix, dtype: DTypeLike = np.float64) -> Rows:
    """Fix Z in the inner product x.z."""
    columns = np.ascontiguousarray(Z.T, dtype=dtype)

    def rows(X: Matrix) -> Values:
        values: Values = np.ascontiguousarray(X, dtype=dtype) @ columns
        return values

    return rows


def squared_lengths(X: Values) -> Values:
    """Return |x|^2 for each row."""
    lengths: Values = np.einsum("ij,ij->i", X, X)
    return lengths


def unit_rows(X: Matrix) -> Matrix:
    """Return the rows scaled to length 1; rows of zeros stay zeros."""
    # Rows are brought to the size of 1 first: the squares of 1e200 and 1e-200 are no numbers.
    largest = np.abs(X).max(axis=1, keepdims=True, initial=0.0)
    near_one = X / np.where(largest > 0.0, largest, 1.0)
    lengths = np.sqrt(squared_lengths(near_one))[:, None]
    unit: Matrix = near_one / np.where(lengths > 0.0, lengths, 1.0)
    return unit
