"""How the values of each column lie: the small figures of the report's column plan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.files.tables.dates import DateFormat
from kpca_apps.files.tables.values import Column
from kpca_apps.novelty.magnitudes import varies
from kpca_apps.novelty.result import CategoryProfile, ColumnProfile, NumericProfile
from kpca_apps.novelty.table.columns import ColumnSpec

_BINS = 40
_SHOWN_LEVELS = 12


def numeric_profile(values: NDArray[np.float64], is_date: bool = False) -> NumericProfile:
    """Histogram and quartiles of finite values (at least one)."""
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


def column_profile(column: Column, spec: ColumnSpec, n_missing: int) -> ColumnProfile:
    """Say what a column became, how many of all its cells are missing, and how its values lie.

    The plan may come from another table: distinct values and distribution are this column's own.
    """
    distribution: NumericProfile | CategoryProfile | None = None
    drawn = spec.used and not spec.hidden
    if spec.format is not None:
        values = column.read(spec.format).ordered
        n_distinct = np.unique(values).size
        if drawn and values.size:
            distribution = numeric_profile(values, isinstance(spec.format, DateFormat))
    else:
        levels = spec.levels(column)
        n_distinct = len(levels.texts)
        if drawn and spec.has_levels and n_distinct:
            top = levels.most_frequent(_SHOWN_LEVELS)
            names, counts = zip(*top, strict=True)
            distribution = CategoryProfile(names, counts, int(levels.counts.sum()) - sum(counts))
    return ColumnProfile(
        name=spec.name,
        role=spec.role,
        used=spec.used,
        hidden=spec.hidden,
        why=spec.why,
        n_missing=n_missing,
        n_distinct=n_distinct,
        distribution=distribution,
    )
