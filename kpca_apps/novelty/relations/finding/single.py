"""Rules of one column: in the order of the rows, of one form, ending at a bound."""

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
_MIN_VALUES = 20  # distinct ones of a column that is sorted, ends at a bound or has a form
_FALLS = 0.05  # for each rise of a column that rises
_IN_ORDER = 0.9  # rank correlation with the rows
_LONGEST_FORM = 40
_SHARES = {"pct", "percent", "percentage", "share", "rate", "ratio", "fraction", "prob", "score"}
_NATURAL = (1.0, 100.0)
_REACHES = 0.95  # of a natural bound that numbers must come to
_PILED, _FEWEST_PILED = 0.01, 8  # cells at a bound
_TIMES_BEYOND = 20.0  # as many cells at the end of a scale as beyond it
_TIMES_NEXT = 4.0  # as many as at any other of the largest values
_SCALES = (5, 6, 7, 10, 12, 23, 24, 31)  # last steps: marks, weekdays, months, hours, days
_STEP = 0.1  # of the way from the middle to a bound, at most, the last step to it
_STEP_SHARE = 0.5  # of an even share, that the last step of a scale must have


def sorted_columns(cells: Cells, plan: ColumnPlan) -> Iterator[Sorted]:
    """Find dates, times and codes that rise or fall with the rows.

    That a table was sorted by a measurement says nothing of the next one.
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
            # Rows that repeat the one before say nothing, and numbers that start again fall once.
            few_falls = np.sum(steps < 0) <= _FALLS * np.sum(steps > 0)
            if abs(order) >= _IN_ORDER and few_falls and check(rule, cells).share >= NEARLY:
                yield rule


def codes(cells: Cells) -> Iterator[Code]:
    """Find columns of codes that all have one form, with letters and digits at fixed places."""
    for name in cells.formats:
        texts = cells.texts(name)
        known = texts.drop_nulls()
        if len(known) < _MIN_ROWS or known.n_unique() < _MIN_VALUES:
            continue
        forms = code_forms(known)
        form = str(forms.mode().sort()[0])
        others = known.filter(forms != form)
        # Texts of another form that occur again and again are no slips.
        slips = len(others) <= (1 - NEARLY) * len(known) and 2 * others.n_unique() >= len(others)
        if slips and _is_code(form, name, cells) and not _outgrown(form, known, forms):
            yield Code(columns=(name,), form=form)


def bounds(cells: Cells) -> Iterator[Within]:
    """Find columns of numbers that end at a natural bound, or where many cells lie."""
    for name, format in cells.formats.items():
        if not isinstance(format, NumberFormat):
            continue
        values = cells.values(name)
        values = values[~np.isnan(values)]
        if len(values) >= _MIN_ROWS:
            low, high = _bounds(values, name)
            if low is not None or high is not None:
                yield Within(columns=(name,), low=low, high=high)


def _is_code(form: str, name: str, cells: Cells) -> bool:
    """Whether a form says more than that a column holds words, numbers or dates of one length."""
    if not 3 <= len(form) <= _LONGEST_FORM or "9" not in form:
        return False
    if not cells.is_number(name):
        return not form.strip("9") == "" or is_named_as_identifier(name)
    texts = cells.texts(name).drop_nulls()
    return form.strip("9") == "" and bool(texts.str.starts_with("0").any())


def _outgrown(form: str, known: pl.Series, forms: pl.Series) -> bool:
    """Whether codes of one more digit follow those of a form as their numbers go on: P999, P1000.

    The step between them is no wider than the widest between the numbers of the form.
    """
    digits = known.str.extract("([0-9]{1,18})$").cast(pl.Int64)
    shorter, longer = (digits.filter(forms == one).sort() for one in (form, f"{form}9"))
    if not len(longer) or shorter.null_count():
        return False
    steps = pl.concat([shorter, longer.head(1)]).diff().drop_nulls()
    return bool(0 < steps[-1] <= (steps[:-1].max() or 0))


def _bounds(values: FloatArray, name: str) -> tuple[float | None, float | None]:
    """Return the bounds of numbers that are worth telling; None for none."""
    distinct, counts = np.unique(values, return_counts=True)
    if (top := _scale_top(distinct, counts)) is not None:
        return float(distinct[distinct >= 0][0]), top
    if len(distinct) < _MIN_VALUES:
        return None, None
    named = not _SHARES.isdisjoint(name_words(name))
    for bound in _NATURAL:
        inside = (values >= 0) & (values <= bound)
        n_at, n_beyond = int((values == bound).sum()), int((values > bound).sum())
        at_bound = n_at >= max(_FEWEST_PILED, _PILED * len(values), _TIMES_NEXT * n_beyond)
        reaches = values[inside].max(initial=-np.inf) >= _REACHES * bound
        if np.mean(inside) >= NEARLY and reaches and (named or at_bound):
            return 0.0, bound
    high, low = _piled(distinct, counts), _piled(-distinct[::-1], counts[::-1])
    # That a column with many zeros is not below 0 goes without saying.
    return (None if low is None or low == 0 else -low), high


def _scale_top(distinct: FloatArray, counts: IntArray) -> float | None:
    """Return the last step of a scale that begins at 0 or 1 and has no gap, as marks and months."""
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


def _piled(distinct: FloatArray, counts: IntArray) -> float | None:
    """Return a number at which the upper end of a column was cut: where far more cells lie."""
    n = int(counts.sum())
    upper = np.flatnonzero(np.cumsum(counts) > 0.75 * n)
    at = int(upper[np.argmax(counts[upper])])
    beyond = int(counts[at + 1 :].sum())
    next_most = max(counts[np.setdiff1d(upper, at)], default=0)
    if counts[at] < max(_FEWEST_PILED, _PILED * n, _TIMES_NEXT * next_most) or at == 0:
        return None
    median = distinct[np.searchsorted(np.cumsum(counts), n / 2)]
    # Far from the others it is a code for a missing value.
    near = distinct[at] - distinct[at - 1] <= _STEP * (distinct[at] - median)
    few_beyond = beyond <= (1 - NEARLY) * n and beyond * _TIMES_NEXT <= counts[at]
    return float(distinct[at]) if near and few_beyond else None
