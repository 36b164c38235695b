"""Columns that run on with the rows, as the dates of a log and counters do.

Their values in rows that come later lie beyond all earlier ones, and that says nothing against
these. What does is what repeats: the time of day, the day of the week, of the month, of the year.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from kpca_apps.system.arrays import FloatArray

MIN_VALUES = 30
# Rank correlation with the place in the table from which dates run on: a few in a hundred may be
# wrong, or come late.
IN_ORDER = 0.95
# Numbers that were sorted are in order, too; a counter also has even steps. Of sorted values of any
# smooth distribution they vary as exponential ones do: middle half over median ln 3 / ln 2 = 1.58.
EVENLY, FORWARD = 0.7, 0.98
_DAY = 86400.0  # seconds
# Of the features, in days; each is a sine and a cosine.
PERIODS = (1.0, 1.0, 7.0, 7.0, 30.44, 30.44, 365.25, 365.25)
N_FEATURES = len(PERIODS)
# Of so many periods in a table, the second half of one shows what the first looked like.
SEEN_TWICE = 1.5
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def runs_on(values: FloatArray, *, is_date: bool) -> bool:
    """Whether values (n,), in the order of their rows, rise or fall from row to row."""
    if len(values) < MIN_VALUES or len(np.unique(values)) < MIN_VALUES // 2:
        return False
    order = float(spearmanr(values, np.arange(len(values))).statistic)
    if abs(order) < IN_ORDER or is_date:
        return abs(order) >= IN_ORDER
    steps = np.diff(values) * np.sign(order)
    q25, median, q75 = np.quantile(steps, [0.25, 0.5, 0.75])
    return bool(np.mean(steps > 0) >= FORWARD and q75 - q25 <= EVENLY * median)


def repeating_features(seconds: FloatArray) -> FloatArray:
    """Return what repeats in dates, (n, 8): sine and cosine of the part of each period."""
    missing = np.isnan(seconds)
    days = np.where(missing, 0.0, seconds) / _DAY
    whole = np.floor(days).astype("datetime64[D]")
    month, year = whole.astype("datetime64[M]"), whole.astype("datetime64[Y]")
    turns = np.column_stack(
        [
            (np.where(missing, 0.0, seconds) % _DAY) / _DAY,
            # The first of January 1970 was a Thursday.
            ((np.floor(days) + 3) % 7) / 7,
            (whole - month).astype(np.float64) / 31,
            (whole - year).astype(np.float64) / 366,
        ]
    )
    turns[missing] = np.nan
    angles = 2 * np.pi * np.repeat(turns, 2, axis=1)
    angles[:, 0::2], angles[:, 1::2] = np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])
    return angles


def repeats(seconds: FloatArray) -> NDArray[np.bool_]:
    """Return which of these features are seen again in dates (n,), n >= 1, shape (8,)."""
    return np.ptp(seconds) / _DAY >= SEEN_TWICE * np.array(PERIODS)


def describe_repeating(features: FloatArray) -> str:
    """Say which time of day, weekday and so on features (8,) are of, NaN where not known."""
    turns = (np.arctan2(features[0::2], features[1::2]) / (2 * np.pi)) % 1.0
    words = []
    if not np.isnan(turns[1]):
        words.append(_WEEKDAYS[round(turns[1] * 7) % 7])
    if not np.isnan(turns[2]):
        words.append(f"day {round(turns[2] * 31) % 31 + 1} of a month")
    if not np.isnan(turns[3]):
        words.append(_MONTHS[int(turns[3] * 366 / 30.5) % 12])
    if not np.isnan(turns[0]):
        minutes = round(turns[0] * 1440) % 1440
        words.append(f"about {minutes // 60:02d}:{minutes % 60:02d}")
    return ", ".join(words)
