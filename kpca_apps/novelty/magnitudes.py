"""Sizes of numbers, constant columns, rounding and rank correlation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.system.arrays import FloatArray, Values

ROUNDING = 8 * np.finfo(np.float64).eps  # maximum relative rounding error of a few operations
SMALLEST = 1e-300  # smaller differences count as 0, as their inverse nearly overflows
# Beyond these sizes of numbers, sums of their squares, and of their differences, may overflow.
LARGEST_TO_SQUARE, LARGEST_TO_SUBTRACT = 1e150, 1e300


def varies(columns: FloatArray, size: float | None = None) -> NDArray[np.bool_]:
    """Return whether columns (n, d) or (n,) vary by more than rounding; NaN are ignored.

    Rounding errors are relative to `size`, by default the largest absolute value of each column.
    """
    low, high = (f.reduce(columns, axis=0, initial=np.nan) for f in (np.fmin, np.fmax))
    largest = np.maximum(np.abs(low), np.abs(high)) if size is None else size
    # Half the range, because differences of the largest floats overflow.
    half = 0.5 * high - 0.5 * low
    return np.asarray(half > np.maximum(0.5 * ROUNDING * largest, SMALLEST))


def units(columns: FloatArray) -> FloatArray:
    """Return a power of two close to the largest absolute value of each column; NaN are ignored.

    Division by this power is exact and avoids overflow of squares.
    """
    low, high = (f.reduce(columns, axis=0, initial=np.nan) for f in (np.fmin, np.fmax))
    largest = np.nan_to_num(np.maximum(np.abs(low), np.abs(high)))
    # Use powers of two with a finite inverse.
    exponent = np.clip(np.frexp(largest)[1], -1021, 1023)
    return np.where(largest > 0, np.ldexp(1.0, exponent), 1.0)


def mean_and_sd(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of columns (n, d) without overflow."""
    unit = units(columns)
    scaled = columns / unit
    return scaled.mean(axis=0) * unit, scaled.std(axis=0) * unit


def refuse_larger(columns: FloatArray, limit: float, why: str) -> None:
    """Raise ValueError if a column has larger absolute values than `limit`."""
    largest = np.abs(columns).max(axis=0)
    large = np.flatnonzero(largest > limit)
    if large.size:
        raise ValueError(
            f"Column {large[0]} holds numbers as large as {largest[large[0]]:.3g}, {why}: "
            "divide it by some power of ten first."
        )


def eight_digits(scores: FloatArray) -> FloatArray:
    """Round scores to 27 bits, about eight digits, so that rounding errors vanish.

    Rounding in base 2 keeps the order of scores.

    >>> rounded = eight_digits(np.array([1.0, 1.0 - 1e-12, 1.0 - 1e-6]))
    >>> rounded[0] == rounded[1], rounded[1] == rounded[2]
    (np.True_, np.False_)
    """
    return rounded(scores, 27)


def rounded(numbers: FloatArray, bits: int) -> FloatArray:
    """Round numbers to a mantissa of `bits` bits."""
    mantissa, exponent = np.frexp(numbers)
    found: FloatArray = np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)
    return found


def rank_correlation(x: Values, y: Values) -> float:
    """Return Spearman's correlation of two columns (n,) without gaps; NaN if one is constant."""
    a, b = centred_ranks(x), centred_ranks(y)
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size else np.nan


def centred_ranks(values: Values) -> FloatArray:
    """Return the ranks of values (n,), equal ones with their mean rank, minus the mean of all."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - 0.5 * (counts + len(values)))[place]
