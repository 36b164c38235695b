"""A number between those before and after it: a child's weights by age, counts by day.

Rows of one level of a column (a child, a machine), or all rows, follow each other in the order of
another column (an age, a date). A number is expected on the line between the row before it and the
row after it. It is off by so many times the sum of three distances: half of that between these two,
the larger of what each of them is off its own neighbours without the number itself, and the median
one of its level. So a number that jumps is odd, and its neighbours are not: what is between them
and theirs is as wide as the jump.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.names import quoted, quoted_cell
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.relations.conditional.counts import Cells, LevelColumn
from kpca_apps.novelty.relations.conditional.expected import Ratios, values_of
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table

# Share of the rows of a level that follow each other in the order of the other column, which hardly
# ever repeats there; rows that a level has on average; share of the rows with both neighbours.
IN_ORDER, LEAST_ROWS, IN_MOST = 0.95, 4, 0.5
# Half of the numbers lie so much nearer to the line than to the median of their level.
NEARER = 0.5
# Neighbours that say what is expected of a number.
NEIGHBOURS = 4
ALL = -1  # place of the column of levels where all rows are one sequence


@dataclass(frozen=True, eq=False)
class Sequenced:
    """The numbers of a column in the order of another, within the levels of a third."""

    spec: ColumnSpec  # of the number
    order: ColumnSpec
    given: Annotated[int, Meta(ge=ALL)]  # place of the column of levels
    times: Annotated[FloatArray, "t"]  # of the rows learned from, increasing, each once
    # Of the rows learned from, in their order within their levels: level times t + 1, plus place
    # among the times; and the numbers.
    keys: Annotated[IntArray, "m", Meta(ge=0)]
    values: Annotated[FloatArray, "m"]
    usual: Annotated[FloatArray, "k", Meta(ge=0)]  # median distance from the line, by level

    def validate(self) -> None:
        """Refuse sequences out of order."""
        if (np.diff(self.times) <= 0).any() or (np.diff(self.keys) < 0).any():
            raise ValueError("sequences out of order")
        if len(self.keys) != len(self.values) or not len(self.keys):
            raise ValueError("numbers of other rows")
        if self.keys[-1] >= len(self.usual) * (len(self.times) + 1):
            raise ValueError("sequences of other levels")

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the column that is judged and those it is judged by."""
        given = () if self.given == ALL else (columns[self.given],)
        return self.spec.name, self.order.name, *given

    def ratios(self, table: Table, cells: Sequence[Cells], own: BoolArray) -> Ratios:
        """How many times farther each number is from the line than what is about it.

        The rows of its own time are none of its neighbours, be it `own` (n,) or new.
        """
        value, time = values_of(table, self.spec), values_of(table, self.order)
        level = _levels_of(self.given, cells, len(value))
        known = ~np.isnan(value) & ~np.isnan(time) & (level < len(self.usual))
        level, n_times = np.where(known, level, 0), len(self.times) + 1
        low, high = (np.searchsorted(self.times, time, side) for side in ("left", "right"))
        before = np.searchsorted(self.keys, level * n_times + low, "left")
        after = np.searchsorted(self.keys, level * n_times + high, "left")
        t, y = np.empty((2, 4, len(value)))
        for i, place in enumerate((before - 2, before - 1, after, after + 1)):
            at = np.clip(place, 0, len(self.keys) - 1)
            inside = known & (at == place) & (self.keys[at] // n_times == level)
            t[i] = np.where(
                inside, self.times[np.minimum(self.keys[at] % n_times, n_times - 2)], np.nan
            )
            y[i] = np.where(inside, self.values[at], np.nan)
        expected = _on_line(time, t[1], y[1], t[2], y[2])
        left = np.abs(y[1] - _on_line(t[1], t[0], y[0], t[2], y[2]))
        right = np.abs(y[2] - _on_line(t[2], t[1], y[1], t[3], y[3]))
        about = 0.5 * np.abs(y[2] - y[1]) + np.fmax(np.nan_to_num(left), np.nan_to_num(right))
        about += self.usual[level]
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.abs(value - expected) / about
        ratio = np.where(about > 0, ratio, np.nan)
        return Ratios(ratio, expected, np.full(len(value), NEIGHBOURS))

    def why(
        self, columns: Sequence[str], cells: Sequence[Cells], row: int, of: Ratios
    ) -> tuple[str, str]:
        """Say why a number is odd, around what is expected."""
        whose = ""
        if self.given != ALL:
            whose = f" of {quoted(columns[self.given])} {quoted_cell(cells[self.given].text(row))}"
        return (
            f"The rows{whose} before and after it by {quoted(self.order.name)} lead to ",
            f", and this one is {of.ratio[row]:,.1f} times as far from that as they are apart.",
        )


def find_sequences(
    table: Table,
    numbers: Sequence[ColumnSpec],
    columns: Sequence[LevelColumn],
    cells: Sequence[Cells],
) -> Iterator[Sequenced]:
    """Find the numbers that lie between their neighbours in a sequence; of sequences, the best.

    A sequence are the rows of a level of a column, or all, within which another column rises, or
    falls, row by row.
    """
    numbers, n = [spec for spec in numbers if spec.format is not None], table.frame.height
    if not numbers:
        return
    values = {spec.name: values_of(table, spec) for spec in numbers}
    times = np.stack([*values.values()])
    few = [place for place, of in enumerate(columns) if LEAST_ROWS * of.missing <= n]
    best: dict[str, tuple[float, Sequenced]] = {}
    for given in (ALL, *few):
        level = _levels_of(given, cells, n)
        by_level = np.argsort(level, kind="stable")
        same = np.diff(level[by_level]) == 0
        steps = np.diff(times[:, by_level], axis=1)
        n_steps = (same & ~np.isnan(steps)).sum(axis=1)
        n_rising = np.maximum(*((same & (turn * steps > 0)).sum(axis=1) for turn in (1, -1)))
        share = np.where(n_steps >= IN_MOST * n, n_rising / np.maximum(n_steps, 1), 0.0)
        if share.max() < IN_ORDER:
            continue
        order = numbers[int(share.argmax())]
        for spec in numbers:
            if spec.name in (order.name, columns[given].name if given != ALL else ""):
                continue
            found = _fitted(spec, order, given, level, values[spec.name], values[order.name])
            if found is not None and found[0] < best.get(spec.name, (np.inf,))[0]:
                best[spec.name] = found
    yield from (of for _, of in best.values())


def _fitted(
    spec: ColumnSpec,
    order: ColumnSpec,
    given: int,
    level: IntArray,
    value: FloatArray,
    time: FloatArray,
) -> tuple[float, Sequenced] | None:
    """Learn a sequence, with how far its numbers lie from the line; ``None`` where that is far."""
    known = np.flatnonzero(~np.isnan(value) & ~np.isnan(time))
    rows = known[np.lexsort((time[known], level[known]))]
    level, time, value = level[rows], time[rows], value[rows]
    if len(rows) < LEAST_ROWS:
        return None
    # Rows of the same time are of several sequences: nothing tells them apart.
    is_again = (np.diff(level) == 0) & (np.diff(time) == 0)
    if is_again.mean() > 1 - IN_ORDER:
        return None
    inside = np.flatnonzero((level[2:] == level[:-2]) & (time[2:] > time[:-2])) + 1
    if len(inside) < IN_MOST * len(rows):
        return None
    before, after = inside - 1, inside + 1
    line = _on_line(time[inside], time[before], value[before], time[after], value[after])
    off, n_levels = np.abs(value[inside] - line), int(level.max()) + 1
    middle = _medians(value, level, n_levels)
    half = float(np.median(off))
    if half >= NEARER * float(np.median(np.abs(value[inside] - middle[level[inside]]))):
        return None
    usual = _medians(off, level[inside], n_levels)
    times, place = np.unique(time, return_inverse=True)
    keys = level * (len(times) + 1) + place
    return half, Sequenced(spec, order, given, times, keys, value, np.nan_to_num(usual))


def _levels_of(given: int, cells: Sequence[Cells], n: int) -> IntArray:
    """Codes of the levels of rows, (n,); of one sequence, all the same."""
    return np.zeros(n, dtype=np.int64) if given == ALL else cells[given].codes


def _medians(values: FloatArray, level: IntArray, n_levels: int) -> FloatArray:
    """Medians of values (m,) by level, (k,); NaN where there are none."""
    order = np.lexsort((values, level))
    counts = np.bincount(level, minlength=n_levels)
    starts = np.cumsum(counts) - counts
    at = np.minimum(starts + counts // 2, len(values) - 1)
    return np.where(counts > 0, values[order[at]], np.nan)


def _on_line(
    x: FloatArray, x0: FloatArray, y0: FloatArray, x1: FloatArray, y1: FloatArray
) -> FloatArray:
    """Height at x of the line through two points."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return y0 + (x - x0) / (x1 - x0) * (y1 - y0)
