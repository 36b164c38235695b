"""Rules of one column: sorted rows, codes of one form, numbers within bounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from kpca_apps.novelty.columns.plan import ColumnPlan, is_named_as_identifier, name_words
from kpca_apps.novelty.magnitudes import rank_correlation
from kpca_apps.novelty.relations.checking import Cells, check, code_forms
from kpca_apps.novelty.relations.finding.evidence import NEARLY
from kpca_apps.novelty.relations.finding.keys import NAMING, may_be_key
from kpca_apps.novelty.relations.rule import Code, Sorted, Within
from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.tables.values import DateFormat, NumberFormat

_MIN_ROWS = 30
_MIN_VALUES = 20  # minimum number of distinct values of a sorted column, or of a column of codes
_FALLS = 0.05  # maximum ratio of falls to rises in a sorted column
_IN_ORDER = 0.9  # minimum rank correlation with the row number
_LONGEST_FORM = 40
_SHARES = {"pct", "percent", "percentage", "share", "rate", "ratio", "fraction", "prob", "score"}
_NATURAL = (1.0, 100.0)
_REACHES = 0.95  # minimum ratio of the largest number to a natural bound
_PILED, _FEWEST_PILED = 0.01, 8  # minimum share, and number, of cells at a bound
_TIMES_BEYOND = 20.0  # minimum ratio of cells at a scale's last step to cells beyond the scale
_TIMES_MORE = 4.0  # minimum ratio of the number of cells at a bound to the number beyond it
_SCALES = (5, 6, 7, 10, 12, 23, 24, 31)  # highest steps of grades, weekdays, months, hours, days
_STEP_SHARE = 0.5  # minimum ratio of the number of cells at the last step to the mean over steps


def sorted_columns(cells: Cells, plan: ColumnPlan) -> Iterator[Sorted]:
    """Find dates, times and codes that rise or fall with the row number.

    Measurements do not count: the next table need not be sorted by them.
    """
    running = {spec.name for spec in plan.specs if spec.runs_on or spec.role in NAMING}
    for name, format in cells.formats.items():
        if cells.is_number(name) and (
            name in running or isinstance(format, DateFormat) or may_be_key(cells, name)
        ):
            values = cells.values(name)
            values = values[~np.isnan(values)]
            if len(values) < _MIN_ROWS or len(np.unique(values)) < _MIN_VALUES:
                continue
            order = rank_correlation(values, np.arange(len(values)))
            steps = np.diff(values) * np.sign(order)
            rule = Sorted(columns=(name,), falling=order < 0)
            # A counter falls where it starts again, so a small share of falls is allowed.
            few_falls = np.sum(steps < 0) <= _FALLS * np.sum(steps > 0)
            if abs(order) >= _IN_ORDER and few_falls and check(rule, cells).share >= NEARLY:
                yield rule


def codes(cells: Cells) -> Iterator[Code]:
    """Find columns of codes with letters and digits at fixed places."""
    for name in cells.formats:
        known, values = cells.texts(name).drop_nulls(), cells.values(name)
        if len(known) < _MIN_ROWS or known.n_unique() < _MIN_VALUES:
            continue
        if 2 * np.sum(values % 1 == 0) < np.sum(~np.isnan(values)):
            continue  # no codes of digits: most numbers are no integers
        patterns = ("^0", "^[0-9]+$") * cells.is_number(name)  # codes of digits have leading zeros
        if not all(known.str.contains(pattern).any() for pattern in patterns):
            continue
        forms = code_forms(known)
        form = str(forms.mode().sort()[0])
        others = known.filter(forms != form)
        # Texts of another form that recur are not typing errors.
        slips = len(others) <= (1 - NEARLY) * len(known) and 2 * others.n_unique() >= len(others)
        if slips and _is_code(form, name, cells) and not _outgrown(form, known, forms):
            yield Code(columns=(name,), form=form)


def bounds(cells: Cells) -> Iterator[Within]:
    """Find columns of numbers within natural bounds (0 to 100), or on a scale of steps (1 to 5)."""
    for name, format in cells.formats.items():
        if not isinstance(format, NumberFormat):
            continue
        values = cells.values(name)
        values = values[~np.isnan(values)]
        if len(values) >= _MIN_ROWS:
            if (ends := _bounds(values, name)) is not None:
                yield Within(columns=(name,), low=ends[0], high=ends[1])


def _is_code(form: str, name: str, cells: Cells) -> bool:
    """Whether a form describes codes, not words, numbers or dates of one length."""
    if not 3 <= len(form) <= _LONGEST_FORM or "9" not in form:
        return False
    if form.strip("9") == "":
        return cells.is_number(name) or is_named_as_identifier(name)
    return not cells.is_number(name)


def _outgrown(form: str, known: pl.Series, forms: pl.Series) -> bool:
    """Whether codes with one more digit continue those of a form: P999, P1000.

    The step to the first longer code must not exceed the widest step between shorter ones.
    """
    digits = known.str.extract("([0-9]{1,18})$").cast(pl.Int64)
    shorter, longer = (digits.filter(forms == one).sort() for one in (form, f"{form}9"))
    if not len(longer) or shorter.null_count():
        return False
    steps = pl.concat([shorter, longer.head(1)]).diff().drop_nulls()
    return bool(0 < steps[-1] <= (steps[:-1].max() or 0))


def _bounds(values: FloatArray, name: str) -> tuple[float, float] | None:
    """Return the bounds of numbers if these are natural (0, 1, 100) or the ends of a scale."""
    distinct, counts = np.unique(values, return_counts=True)
    if (top := _scale_top(distinct, counts)) is not None:
        return float(distinct[distinct >= 0][0]), top
    if len(distinct) < _MIN_VALUES:
        return None
    named = not _SHARES.isdisjoint(name_words(name))
    for bound in _NATURAL:
        inside = (values >= 0) & (values <= bound)
        n_at, n_beyond = int((values == bound).sum()), int((values > bound).sum())
        at_bound = n_at >= max(_FEWEST_PILED, _PILED * len(values), _TIMES_MORE * n_beyond)
        reaches = values[inside].max(initial=-np.inf) >= _REACHES * bound
        if np.mean(inside) >= NEARLY and reaches and (named or at_bound):
            return 0.0, bound
    return None


def _scale_top(distinct: FloatArray, counts: IntArray) -> float | None:
    """Return the highest step of a scale of integers from 0 or 1, such as grades or months."""
    if (distinct != np.round(distinct)).any():
        return None
    n = int(counts.sum())
    usable = (distinct >= 0) & (counts > 1)
    steps, n_steps = distinct[usable], counts[usable]
    if not len(steps) or steps[0] > 1:
        return None
    length = steps - steps[0] + 1
    large = np.flatnonzero(n_steps * length >= _STEP_SHARE * n)
    if not len(large):
        return None
    top = int(large[-1])
    no_gap = length[top] == top + 1 and steps[top] in _SCALES
    n_inside = int(n_steps[: top + 1].sum())
    beyond = n - n_inside
    if no_gap and n_inside >= NEARLY * n and beyond * _TIMES_BEYOND <= n_steps[top]:
        return float(steps[top])
    return None
