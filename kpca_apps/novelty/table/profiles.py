"""How the values of each column lie: the small figures of the report's column plan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.files.tables.dates import DateFormat
from kpca_apps.files.tables.table import Table
from kpca_apps.files.tables.values import Column, Levels, Readings
from kpca_apps.novelty.magnitudes import varies
from kpca_apps.novelty.result import CategoryProfile, ColumnProfile, NumericProfile
from kpca_apps.novelty.table.coders import spec_levels
from kpca_apps.novelty.table.specs import ColumnPlan, ColumnSpec

__all__ = ["category_profile", "count_missing", "numeric_profile", "profile_columns"]

_BINS = 40
_SHOWN_LEVELS = 12


def profile_columns(table: Table, plan: ColumnPlan) -> tuple[ColumnProfile, ...]:
    """Profile every column of a table by a plan, which may come from another table.

    Parameters
    ----------
    table : Table
        The table; columns the plan does not know are listed as excluded.
    plan : ColumnPlan
        What each column becomes.

    Returns
    -------
    tuple of ColumnProfile
        In the table's order; counts and distributions are the table's own.
    """
    known = {spec.name: spec for spec in plan.specs}
    return tuple(
        _profile(
            table.column(name),
            known.get(name, ColumnSpec(name, "excluded", "not in the reference")),
        )
        for name in table.frame.columns
    )


def count_missing(table: Table, plan: ColumnPlan) -> tuple[int, ...]:
    """Count the missing cells of each column of a table that a plan does not use, in its order."""
    used = {spec.name for spec in plan.used}
    formats = {spec.name: spec.format for spec in plan.specs}
    unused = [name for name in table.frame.columns if name not in used]
    return tuple(_n_missing(table.column(name).read(formats.get(name))) for name in unused)


def _n_missing(readings: Readings) -> int:
    return int((readings.missing | readings.unreadable).sum())


def numeric_profile(values: NDArray[np.float64], is_date: bool = False) -> NumericProfile:
    """Histogram and quartiles of finite values (at least one).

    Examples
    --------
    >>> profile = numeric_profile(np.arange(101.0))
    >>> profile.median, int(profile.counts.sum())
    (50.0, 101)
    """
    low, high = np.quantile(values, [0.005, 0.995])
    # Numbers far from 0 may vary, and yet lie too close together for bins between them.
    narrowest = _BINS * np.spacing(max(abs(low), abs(high)))
    if not varies(np.array([low, high])) or high - low < narrowest:
        margin = 0.5 * max(abs(low), 1.0)
        low, high = low - margin, high + margin
    counts, edges = np.histogram(np.clip(values, low, high), bins=_BINS, range=(low, high))
    minimum, q25, median, q75, maximum = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    return NumericProfile(
        edges, counts.astype(np.float64), minimum, q25, median, q75, maximum, is_date
    )


def category_profile(levels: Levels) -> CategoryProfile:
    """Most frequent levels, most frequent first.

    Examples
    --------
    >>> import polars as pl
    >>> category_profile(Column(pl.Series(["b", "a", "b", None])).levels)
    CategoryProfile(levels=('b', 'a'), counts=(2, 1), n_other=0)
    """
    top = levels.most_frequent(_SHOWN_LEVELS)
    shown, counts = (level for level, _ in top), tuple(count for _, count in top)
    return CategoryProfile(tuple(shown), counts, int(levels.counts.sum()) - sum(counts))


def _profile(column: Column, spec: ColumnSpec) -> ColumnProfile:
    distribution: NumericProfile | CategoryProfile | None = None
    shown = spec.used and not spec.hidden
    readings = column.read(spec.format)
    if spec.format is not None:
        values = readings.ordered
        n_distinct = np.unique(values).size
        if shown and values.size:
            distribution = numeric_profile(values, isinstance(spec.format, DateFormat))
    else:
        levels = spec_levels(column, spec)
        n_distinct = len(levels.texts)
        if shown and spec.role != "text" and n_distinct:
            distribution = category_profile(levels)
    return ColumnProfile(
        name=spec.name,
        role=spec.role,
        used=spec.used,
        hidden=spec.hidden,
        why=spec.why,
        n_missing=_n_missing(readings),
        n_distinct=n_distinct,
        distribution=distribution,
    )
