"""Columns that name rows instead of measuring them, by their cells and their name.

Different values alone prove nothing: the populations of sixty towns differ too. What proves that
values were handed out, and not measured, is one of these:

1. they are whole numbers in steps of 1;
2. they are written as codes: with leading zeros to one width, or with more digits than a
   measurement has;
3. their name says so (``PID``, ``customer id``; ``order no``, if all have as many digits);
4. chance would have repeated some. Of values drawn from any smooth distribution, half as many pairs
   agree as lie one step apart (and as lie two, three or four steps apart): the birthday argument
   with the density that the column itself shows, so that a few huge values do not hide it. Where
   ten times as many repeats are expected as there are, repeats were avoided.

Times and ranks seldom repeat either but say something about their row: the fourth rule leaves them
in the model, as it does whatever the evidence does not reach.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.tables.values import Column, NumberFormat

DISTINCT = 0.95
"""Share of distinct cells above which a column may name rows: a few rows may stand twice."""
COUNTING = "whole numbers in steps of 1"
"""The one reason that leaves no doubt."""

_NEARLY = 0.95  # share of the cells, or of the steps, that must be as a rule says
_MIN_ROWS = 10  # fewer different or consecutive whole numbers happen by chance
_STEPS = 4  # neighbours up to so many steps apart tell the density of a column
_FEWER = 10.0  # so many times fewer repeats than expected are no chance (e^-10 where there is none)
_EXACT = 2.0**53  # from here on not every whole number is a float
_NAMES = {"id", "ids", "uid", "pid", "uuid", "guid", "ident", "identifier", "idno"}
# These end the name of an identifier after another word ("order no"), but also that of a measure
# ("Reynolds number"): they count where all values have the same number of digits.
_ENDINGS = {"no", "nr", "num", "number", "code", "key"}
_MEASURES = {
    *("year", "yr", "month", "week", "date", "day", "hour", "minute", "second"),
    *("time", "timestamp", "rank"),
}


def why_identifier(column: Column, values: FloatArray, format: NumberFormat) -> str:
    """Say in a clause why a column of numbers names rows; empty where it may measure something.

    `values` (n,) are the numbers read from it by `format`, without missing ones.
    """
    if values.size < _MIN_ROWS or (values != np.round(values)).any():
        return ""
    if format.thousands or any(format.units) or format.word or format.clock:
        return ""
    if np.abs(values).max() >= _EXACT:
        return _why_code(column, values.size)
    distinct = np.unique(values)
    if distinct.size <= DISTINCT * values.size:
        return ""
    if np.mean(np.diff(distinct) == 1) >= _NEARLY:
        return COUNTING
    if distinct[0] < 0:
        return ""
    words = name_words(column.name)
    named = is_named_as_identifier(column.name)
    if len(words) > 1 and words[-1] in _ENDINGS:
        widths = np.floor(np.log10(np.maximum(distinct, 1)))
        commonest = np.unique(widths, return_counts=True)[1].max()
        named = named or bool(commonest >= _NEARLY * distinct.size)
    if why := _why_code(column, values.size):
        return why
    if named:
        which = "all" if distinct.size == values.size else "nearly all"
        return f"whole numbers that {which} differ, named as an identifier"
    return "" if _MEASURES & {*words} else _why_chance(values, distinct)


def is_named_as_identifier(name: str) -> bool:
    """Whether the last word of a name says that the column holds identifiers.

    >>> [is_named_as_identifier(name) for name in ("PID", "customerId", "paid", "id of ring")]
    [True, True, False, False]
    """
    return not _NAMES.isdisjoint(name_words(name)[-1:])


def has_one_shape(texts: pl.Series, counts: IntArray) -> bool:
    """Whether texts are codes: a digit in each, and letters, digits and marks in the same places.

    `counts` (k,) are the cells of each text (k,).

    >>> has_one_shape(pl.Series(["DE89 3704 0044", "FR76 3000 6000"]), np.ones(2, int))
    True
    >>> has_one_shape(pl.Series(["2 old men", "1 girl"]), np.ones(2, int))
    False
    """
    shapes = texts.str.replace_all(r"[\pL\pN]", "x").filter(texts.str.contains(r"\d"))
    cells = counts[texts.str.contains(r"\d").to_numpy()]
    _, shape = np.unique(shapes.hash(seed=0).to_numpy(), return_inverse=True)
    return bool(np.bincount(shape, cells).max(initial=0) >= _NEARLY * counts.sum())


def _why_code(column: Column, n_values: int) -> str:
    """Say that cells are written as codes; floats are not, and hold 15 digits exactly at most."""
    if column.cells.dtype.is_float():
        return ""
    texts = column.texts.drop_nulls()
    if texts.n_unique() <= DISTINCT * texts.len():
        return ""
    which = "all" if texts.n_unique() == texts.len() else "nearly all"
    if texts.str.contains(r"^[1-9]\d{15,}$").sum() >= _NEARLY * n_values:
        measures = _MEASURES & {*name_words(column.name)}
        return "" if measures else f"whole numbers that {which} differ, of 16 digits or more"
    if not texts.str.contains(r"^0\d").any():
        return ""
    widths = texts.filter(texts.str.contains(r"^\d+$")).str.len_chars().value_counts(name="count")
    if (widths["count"].max() or 0) < _NEARLY * texts.len():  # type: ignore[operator]
        return ""
    return f"whole numbers that {which} differ, written with leading zeros"


def _why_chance(values: FloatArray, distinct: FloatArray) -> str:
    """Say how many repeats chance would have given, where there are far fewer."""
    steps = np.diff(distinct).astype(np.int64)
    unit = float(np.gcd.reduce(steps))
    ordered = np.sort(values - distinct[0]) / unit
    after_equal = np.searchsorted(ordered, ordered, side="right")
    after_near = np.searchsorted(ordered, ordered + _STEPS, side="right")
    repeats = int((after_equal - np.arange(1, ordered.size + 1)).sum())
    expected = float((after_near - after_equal).sum()) / (2 * _STEPS)
    if expected < _FEWER * (repeats + 1):
        return ""
    seen = "all differ" if not repeats else f"repeat {repeats:,} times"
    return f"whole numbers that {seen}, where chance gives {expected:,.0f} repeats"


def name_words(name: str) -> list[str]:
    """Return the words of a name in lower case, also those of ``orderNo``."""
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return [word.lower() for word in re.findall(r"[^\W\d_]+", apart)]
