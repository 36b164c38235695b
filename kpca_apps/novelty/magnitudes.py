"""How large the numbers of columns are, whether they vary, and whether two rise together."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.system.arrays import FloatArray, Values

# A few operations on a number, each rounded, move it by this part of its size at most.
ROUNDING = 8 * np.finfo(np.float64).eps
# Smaller differences are as good as none: one over them is hardly a number.
SMALLEST = 1e-300
# Beyond these, squares and differences of numbers, and sums of them, may leave the range of floats.
LARGEST_TO_SQUARE, LARGEST_TO_SUBTRACT = 1e150, 1e300


def varies(columns: FloatArray, size: float | None = None) -> NDArray[np.bool_]:
    """Whether columns (n, d) or (n,) vary by more than rounding: the rule of what is constant.

    NaN are no values. Rounding is that of numbers of a ``size``, where the columns were computed
    from such, else that of the largest value of each column.
    """
    low, high = (f.reduce(columns, axis=0, initial=np.nan) for f in (np.fmin, np.fmax))
    largest = np.maximum(np.abs(low), np.abs(high)) if size is None else size
    # Halves: the difference of the largest floats is none.
    half = 0.5 * high - 0.5 * low
    return np.asarray(half > np.maximum(0.5 * ROUNDING * largest, SMALLEST))


def units(columns: FloatArray) -> FloatArray:
    """Return for each column a power of two about as large as its values; NaN do not count.

    Divided by it, which is exact, a column has squares whatever its size.
    """
    low, high = (f.reduce(columns, axis=0, initial=np.nan) for f in (np.fmin, np.fmax))
    largest = np.nan_to_num(np.maximum(np.abs(low), np.abs(high)))
    # The largest power of two, and one over the smallest, are numbers, too.
    exponent = np.clip(np.frexp(largest)[1], -1021, 1023)
    return np.where(largest > 0, np.ldexp(1.0, exponent), 1.0)


def mean_and_sd(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of columns (n, d), of numbers of any size."""
    unit = units(columns)
    scaled = columns / unit
    return scaled.mean(axis=0) * unit, scaled.std(axis=0) * unit


def refuse_larger(columns: FloatArray, limit: float, why: str) -> None:
    """Raise ValueError for columns of numbers too large to work with, naming the first."""
    largest = np.abs(columns).max(axis=0)
    large = np.flatnonzero(largest > limit)
    if large.size:
        raise ValueError(
            f"Column {large[0]} holds numbers as large as {largest[large[0]]:.3g}, {why}: "
            "divide it by some power of ten first."
        )


def eight_digits(scores: FloatArray) -> FloatArray:
    """Round scores to 27 bits, about eight digits: what differs by rounding becomes the same.

    Powers of two are exact: the order never changes, as it might by rounding to decimals.

    >>> rounded = eight_digits(np.array([1.0, 1.0 - 1e-12, 1.0 - 1e-6]))
    >>> rounded[0] == rounded[1], rounded[1] == rounded[2]
    (np.True_, np.False_)
    """
    return rounded(scores, 27)


def rounded(numbers: FloatArray, bits: int) -> FloatArray:
    """Round numbers to so many bits."""
    mantissa, exponent = np.frexp(numbers)
    found: FloatArray = np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)
    return found


def rank_correlation(x: Values, y: Values) -> float:
    """Spearman's correlation of two columns (n,) without gaps; NaN where one is constant.

    By polars: to load SciPy's takes a fifth of a small table's time.
    """
    correlation = pl.corr(pl.Series(x), pl.Series(y), method="spearman")
    return float(pl.select(correlation).item())
