"""Find stuck sensors: runs of equal readings that are too long for their column.

Run lengths are geometric, with a rate estimated from the other runs of the column. An odd run has a
probability below 1 in 1000 in the table, and is three times as long as any other run. Runs at the
smallest or largest value of a column, such as 0 at night, are never odd.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kpca_apps.novelty.checks.cell_check import FoundValue, OddValue
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column, NumberFormat

STUCK = "stuck"
MIN_ROWS = 50
LEVEL, TIMES_LONGER, MOST_RUNS, MOST_STUCK = 1e-3, 3, 10, 0.25
# Number added, as a prior, to the denominator of `p_continues` in `_chance`; the numerator gets 1.
PRIOR_RUNS = 4
CLEARNESS = 5.0  # `FoundValue.clearness`: -log10 of the expected number of odd runs, set to 0.00001


def learn_stuck(table: Table, spec: ColumnSpec) -> StuckRule | None:
    """Learn the usual run length of a column of numbers, from rows in order of time."""
    format, n = spec.format, len(table.frame)
    if not isinstance(format, NumberFormat) or spec.has_levels:
        return None
    values = table.column[spec.name].read(format).values
    rule = StuckRule(float(np.nanmin(values)), float(np.nanmax(values)))
    starts, lengths = rule.runs(values)
    order = np.argsort(lengths, kind="stable")
    return rule.fit(lengths[order], values[starts[order]], n)


@dataclass(frozen=True)
class StuckRule:
    """The longest ordinary run of equal readings in a column, and the shortest odd one."""

    low: float  # smallest reading of the column
    high: float  # largest reading of the column
    usual: int = 1  # length of the longest ordinary run
    least: int = 0  # length of the shortest odd run

    def fit(self, lengths: IntArray, levels: FloatArray, n: int) -> StuckRule:
        """Learn from runs of equal readings in n rows: increasing `lengths`, readings `levels`."""
        # Only the longest runs can be odd: those that together fill at most the share MOST_STUCK of
        # the rows, and that have different readings (sales of 0 on every weekend are normal).
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
        """Return starts and lengths of runs of equal readings between `low` and `high`."""
        starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))[: len(values)]
        lengths = np.diff(np.append(starts, len(values)))
        kept = (lengths > 1) & (values[starts] > self.low) & (values[starts] < self.high)
        return starts[kept], lengths[kept]

    def find(self, column: Column, spec: ColumnSpec) -> Iterator[FoundValue]:
        """Yield each number that fills runs of too many rows, with the cells of these runs."""
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
        """State the length of the run, and of the longest usual run."""
        return (
            f"{value.n_cells:,} equal readings in a row, where at most {self.usual:,} follow each "
            "other elsewhere.",
            "",
        )


def _chance(others: IntArray, length: int) -> float:
    """Return the expected number of runs at least this long, estimated from the other runs."""
    n_longer = float(np.sum(others - 2))
    # After its first two readings, a run of length m continues m - 2 times and ends once.
    p_continues = (n_longer + 1.0) / (n_longer + len(others) + PRIOR_RUNS)
    return (len(others) + 1.0) * p_continues ** (length - 2)
