"""A sensor that stands still: a run of equal readings that the column's other runs do not explain.

Run lengths are geometric; their rate is estimated from the column's other runs. A run is named
where the whole table would have one as long with a probability below 1 in 1000, and where it is
three times as long as any other: dry spells differ more than one rate would make them. A column may
stand at its smallest or largest value, at 0 by night, by right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kpca_apps.novelty.checks.cell_check import FoundValue, OddValue
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec
from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column, DateFormat, NumberFormat

STUCK = "stuck"
MIN_ROWS = 50
LEVEL, TIMES_LONGER, MOST_RUNS, MOST_STUCK = 1e-3, 3, 10, 0.25
# Where hardly any two readings are equal, a run of two goes on as if in one of four.
PRIOR_RUNS = 4
CLEARNESS = 5.0  # in decimal digits; above a lost sign, below a code for missing values


def is_time_series(table: Table, plan: ColumnPlan, n_rows: int) -> bool:
    """Whether some column of dates runs oldest or newest first.

    In all rows, or in those of each sensor, if these are adjacent. Rows drawn from a table of
    `n_rows` are not: they do not follow each other.
    """
    n = len(table.frame)
    if not MIN_ROWS <= n == n_rows:
        return False
    columns = [(of, table.column(of.name)) for of in plan.specs if of.name in table.columns]
    dates = ((of.format, column) for of, column in columns if isinstance(of.format, DateFormat))
    steps = [np.diff(column.read(of).values) for of, column in dates]
    within = [np.ones(n - 1, dtype=bool)]
    for _, column in columns if steps else ():
        codes = column.levels.codes
        same = np.diff(codes) == 0
        if 0 < (~same).sum() == codes.max() <= n / MIN_ROWS:
            within.append(same)
    both = (step[of] for step in steps for of in within)
    return any((step >= 0).all() or (step <= 0).all() for step in both)


def learn_stuck(
    table: Table, spec: ColumnSpec, plan: ColumnPlan, n_rows: int, known: object = None
) -> StuckRule | None:
    """Learn how long a column of numbers stands still, from rows in the order of their times."""
    format, n = spec.format, len(table.frame)
    if not isinstance(format, NumberFormat) or spec.has_levels:
        return None
    values = table.column(spec.name).read(format).values
    rule = StuckRule(float(np.nanmin(values)), float(np.nanmax(values)))
    starts, lengths = rule.runs(values)
    order = np.argsort(lengths, kind="stable")
    return rule.fit(lengths[order], values[starts[order]], n)


@dataclass(frozen=True)
class StuckRule:
    """How many equal readings follow each other in a column."""

    low: float  # its smallest
    high: float  # and largest reading
    usual: int = 1  # at most
    least: int = 0  # of a sensor that stands still

    def fit(self, lengths: IntArray, levels: FloatArray, n: int) -> StuckRule:
        """Learn from the lengths of a column's runs, increasing, and their readings, in n rows."""
        # A column of which more stands still does so by its nature; so does one that returns to a
        # level, as that of weekends.
        longest = np.cumsum(lengths[::-1])[:MOST_RUNS]
        firsts = np.unique(levels[::-1][:MOST_RUNS], return_index=True)[1]
        n_new = int((np.sort(firsts) == np.arange(len(firsts))).sum())
        n_most = min(int(np.searchsorted(longest, MOST_STUCK * n, side="right")), n_new)
        for place in range(len(lengths) - n_most, len(lengths) + 1):
            others = lengths[:place]
            usual = int(others[-1]) if place else 1
            least = TIMES_LONGER * max(usual, 2)
            while least <= n and _chance(others, least) >= LEVEL:
                least += 1
            if place == len(lengths) or lengths[place] >= least:
                break
        return replace(self, usual=usual, least=least)

    def runs(self, values: FloatArray) -> tuple[IntArray, IntArray]:
        """Where runs of two equal readings and more start, and how long they are."""
        starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))[: len(values)]
        lengths = np.diff(np.append(starts, len(values)))
        kept = (lengths > 1) & (values[starts] > self.low) & (values[starts] < self.high)
        return starts[kept], lengths[kept]

    def find(self, column: Column, spec: ColumnSpec) -> Iterator[FoundValue]:
        """Find the readings of a column, or of a part of it, in runs that are too long."""
        values = column.read(spec.format).values
        starts, lengths = self.runs(values)
        is_long = lengths >= self.least
        cells = [
            np.arange(i, i + n) for i, n in zip(starts[is_long], lengths[is_long], strict=True)
        ]
        for value in np.unique(values[starts[is_long]]):
            same = np.concatenate([run for run in cells if values[run[0]] == value])
            seen = column.text(int(same[0])).strip()
            yield FoundValue(STUCK, seen, CLEARNESS, same, float(value))

    def explain(self, value: OddValue, spec: ColumnSpec, notation: Notation) -> tuple[str, str]:
        """Say how long the readings stand still."""
        return (
            f"{value.n_cells:,} equal readings in a row, where at most {self.usual:,} follow each "
            "other elsewhere.",
            "",
        )


def _chance(others: IntArray, length: int) -> float:
    """Return how many runs at least so long are expected in a column that has some others."""
    n_longer = float(np.sum(others - 2))
    # A run of two and more ends once; before, it goes on as often as it is longer.
    goes_on = (n_longer + 1.0) / (n_longer + len(others) + PRIOR_RUNS)
    return (len(others) + 1.0) * goes_on ** (length - 2)
