"""A number between its neighbours in a sequence: a child's weights by age, counts by day.

The rows of a level (a child, a machine), or all rows, are ordered by another column (an age, a
date). A number is expected on the line between the rows before and after. Its distance is divided
by the sum of half the difference of these neighbours, their larger distance from neighbours of
their own, and the median distance in the level. So an outlier does not make its neighbours odd.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.names import quoted, quoted_cell
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.relations.conditional.counts import LevelCells, LevelColumn
from kpca_apps.novelty.relations.conditional.expected import Ratios, values_of
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table

# Minimum share of steps from row to row in which the ordering column rises (or in which it falls);
# minimum mean number of rows of a level; minimum share of rows with neighbours in their level.
IN_ORDER, LEAST_ROWS, IN_MOST = 0.95, 4, 0.5
NEARER = 0.5  # maximum ratio of median prediction error to median distance from the level's median
NEIGHBOURS = 4  # number of rows that determine an expected number: two on each side
ALL = -1  # `Sequenced.given` if all rows form one sequence


@dataclass(frozen=True, eq=False)
class Sequenced:
    """The numbers of a column, ordered by another column, within the levels of a third."""

    spec: ColumnSpec  # column of the predicted number
    order: ColumnSpec  # column that orders the rows
    given: Annotated[int, Meta(ge=ALL)]  # index of the column with a level for each sequence
    times: Annotated[FloatArray, "t"]  # distinct values of `order`, increasing
    keys: Annotated[IntArray, "m", Meta(ge=0)]  # level * (t + 1) + index in `times`; sorted
    values: Annotated[FloatArray, "m"]  # numbers in the order of the keys
    usual: Annotated[FloatArray, "k", Meta(ge=0)]  # median prediction error, by level

    def validate(self) -> None:
        """Refuse sequences out of order."""
        if (np.diff(self.times) <= 0).any() or (np.diff(self.keys) < 0).any():
            raise ValueError("sequences out of order")
        if len(self.keys) != len(self.values) or not len(self.keys):
            raise ValueError("numbers of other rows")
        if self.keys[-1] >= len(self.usual) * (len(self.times) + 1):
            raise ValueError("sequences of other levels")

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the name of the predicted column, then of the one or two predicting columns."""
        given = () if self.given == ALL else (columns[self.given],)
        return self.spec.name, self.order.name, *given

    def ratios(self, table: Table, cells: Sequence[LevelCells], own: BoolArray) -> Ratios:
        """Return distances from linear interpolation, as multiples of the usual distance nearby."""
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
        self, columns: Sequence[str], cells: Sequence[LevelCells], row: int, of: Ratios
    ) -> tuple[str, str]:
        """Return the text before the expected number, and the text after the number."""
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
    cells: Sequence[LevelCells],
) -> Iterator[Sequenced]:
    """Find for each column of numbers the sequence that predicts it best.

    The rows of a level, or all, are a sequence if another column rises or falls from row to row.
    """
    numbers, n = [spec for spec in numbers if spec.format is not None], table.n_rows
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
    """Return the median prediction error of a sequence, and the sequence; None for a big error."""
    known = np.flatnonzero(~np.isnan(value) & ~np.isnan(time))
    rows = known[np.lexsort((time[known], level[known]))]
    level, time, value = level[rows], time[rows], value[rows]
    if len(rows) < LEAST_ROWS:
        return None
    # If many rows of a level have equal times, the level holds several sequences.
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


def _levels_of(given: int, cells: Sequence[LevelCells], n: int) -> IntArray:
    return np.zeros(n, dtype=np.int64) if given == ALL else cells[given].codes


def _medians(values: FloatArray, level: IntArray, n_levels: int) -> FloatArray:
    """Return the median (k,) of values (m,) in each level; NaN for levels without values."""
    order = np.lexsort((values, level))
    counts = np.bincount(level, minlength=n_levels)
    starts = np.cumsum(counts) - counts
    at = np.minimum(starts + counts // 2, len(values) - 1)
    return np.where(counts > 0, values[order[at]], np.nan)


def _on_line(
    x: FloatArray, x0: FloatArray, y0: FloatArray, x1: FloatArray, y1: FloatArray
) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return y0 + (x - x0) / (x1 - x0) * (y1 - y0)
