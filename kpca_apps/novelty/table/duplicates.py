"""Rows that repeat others, in all columns the model uses or in all but one cell.

Equal rows have one hash (`row_hashes.py`). For rows equal but for one cell each cell gets a hash,
and the hash of a row is their sum: without column j it is the sum less one hash, so that d sorts of
n numbers find what a comparison of all pairs would. Cells are compared here but for case, space
and digits beyond the sixth.

What repeats by nature is counted and not listed. First, what chance explains: of n rows, n times
the product of the shares of a row's cells are expected to hold just these cells, were columns
independent. Repeats are listed where less than one in a thousand is expected: where the cells in
common are many and some of them are rare. Columns do depend on each other, so two rules stand
beside it: where chance explains half of all repeated rows, nothing is listed; and a column in which
alone more than 1 % of the rows differ from others is how the table is made (one row a visit, an
hour, a size), and no mistake in these rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.files.tables.numbers import NumberFormat
from kpca_apps.files.tables.table import Table
from kpca_apps.files.tables.values import Column
from kpca_apps.novelty.result import DuplicateRows, RepeatedRows
from kpca_apps.novelty.table.row_hashes import EqualRows, equal_rows
from kpca_apps.novelty.table.specs import ColumnPlan, ColumnSpec, quoted
from kpca_apps.novelty.table.table_rows import TableRows

__all__ = ["find_duplicates"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
HashArray = NDArray[np.uint64]

# Listed groups, and the rows and columns told of each; groups of equal rows that are judged.
MAX_GROUPS = 20
MAX_PLACES = 8
_MAX_JUDGED = 2_000
# Rows expected by chance to hold the same cells, from which a repeat is told.
_BY_CHANCE = 1e-3
# Rows that differ from others in one column alone, from which the table is made so.
_COMMON_SHARE, _COMMON_ROWS = 0.01, 10
_DIGITS = 6  # float32 holds so many; a value that was stored there and back is the same value


@dataclass(frozen=True)
class _NearGroup:
    """Rows of the sample equal but for a column; for column -1, but for how they are written."""

    column: int
    places: IntArray


def find_duplicates(rows: TableRows) -> DuplicateRows:
    """Find the rows of a table that repeat others.

    Parameters
    ----------
    rows : TableRows
        All its rows are compared as they are written; near repeats are sought in the sample.

    Returns
    -------
    DuplicateRows
    """
    plan, sample = rows.encoder.plan, rows.sample_table
    hashes = rows.hashes()
    found = equal_rows(hashes, _MAX_JUDGED)
    firsts = np.array([group[0] for group in found.groups], dtype=np.int64)
    candidates = rows.take(firsts) if len(firsts) else None
    cells = _CellSums.of(plan, sample, candidates)
    telling = [
        group
        for group, expected in zip(found.groups, cells.expected_of_others, strict=True)
        if expected < _BY_CHANCE
    ]
    by_nature = 2 * len(telling) < len(found.groups)
    if by_nature:
        telling = []
    near, common = (
        ([], ()) if by_nature else _near_groups(plan, rows, hashes[rows.sample_index], cells)
    )
    equal = _told_equal(rows, telling[:MAX_GROUPS])
    told = tuple(_told_near(rows, plan, group) for group in near[:MAX_GROUPS])
    return DuplicateRows(
        n_repeats=found.n_repeats,
        n_groups=found.n_groups,
        equal=equal,
        n_near=len(near),
        near=told,
        common=common,
        n_compared=sample.frame.height,
        statement=_statement(rows, found, equal, len(near), told, common),
    )


@dataclass(frozen=True)
class _CellSums:
    """What all columns together say of each row of the sample.

    Attributes
    ----------
    hashes : (s,) array
        Sum of the hashes of its cells.
    log_expected : (s,) array
        Logarithm of the number of rows expected to hold the same cells by chance.
    expected_of_others : (c,) array
        That number for some other rows.
    """

    hashes: HashArray
    log_expected: FloatArray
    expected_of_others: FloatArray

    @classmethod
    def of(cls, plan: ColumnPlan, sample: Table, others: Table | None) -> _CellSums:
        """Go through the columns once; no more than one is held at a time."""
        n_rows = sample.frame.height
        hashes = np.zeros(n_rows, dtype=np.uint64)
        logs = np.full(n_rows, np.log(n_rows))
        log_others = np.full(0 if others is None else others.frame.height, np.log(n_rows))
        for number, spec in enumerate(plan.used):
            column = _Cells.of(sample.column(spec.name), spec, number)
            hashes += column.hashes
            logs += column.log_shares
            if others is not None:
                log_others += column.shares_of(_keys(others.column(spec.name), spec))
        return cls(hashes, logs, np.exp(log_others))


@dataclass(frozen=True)
class _Cells:
    """The cells of one column, each as a hash and with its share among all of them."""

    keys: HashArray
    counts: IntArray
    hashes: HashArray
    log_shares: FloatArray

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec, number: int) -> _Cells:
        keys, inverse, counts = np.unique(
            _keys(column, spec), return_inverse=True, return_counts=True
        )
        # Salted by the column: sums of cells that stand in each other's column are not equal.
        mixed = _mixed(keys + _mixed(np.full(len(keys), number + 1, dtype=np.uint64)))
        return cls(keys, counts, mixed[inverse], np.log(counts / len(inverse))[inverse])

    def shares_of(self, keys: HashArray) -> FloatArray:
        """Logarithms of the shares of other cells; one that was not drawn is as rare as can be."""
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        counts = np.where(self.keys[place] == keys, self.counts[place], 1)
        return np.asarray(np.log(counts / len(self.hashes)))


def _keys(column: Column, spec: ColumnSpec) -> HashArray:
    """Tell the cells of a column apart, but for case, space and digits beyond the sixth."""
    if spec.format is None:
        return _text_keys(column)
    readings = column.read(spec.format)
    is_number = isinstance(spec.format, NumberFormat)
    keys = _mixed((_rounded(readings.values) if is_number else readings.values).view(np.uint64))
    if readings.unreadable.any():
        keys[readings.unreadable] = _text_keys(column.take(np.flatnonzero(readings.unreadable)))
    keys[readings.missing] = 0
    return keys


def _text_keys(column: Column) -> HashArray:
    texts = column.levels.texts.str.to_lowercase().str.replace_all(r"\s+", " ")
    return column.levels.each(texts.hash(seed=0).to_numpy(), 0)


def _rounded(values: FloatArray) -> FloatArray:
    """Round to six significant digits."""
    size = np.abs(np.where(values == 0, 1.0, values))
    decimals = np.minimum(_DIGITS - 1 - np.floor(np.log10(size)), 300)
    # Powers of ten below 1 are not exact; no minus zero.
    scale = 10.0 ** np.abs(decimals)
    fine = np.round(values * np.where(decimals > 0, scale, 1.0)) / scale
    coarse = np.round(values / scale) * scale
    return np.asarray(np.where(decimals > 0, fine, coarse) + 0.0)


def _mixed(keys: HashArray) -> HashArray:
    """Scatter 64-bit numbers over all of them (the finaliser of SplitMix64), so that sums can."""
    mixed = keys + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _near_groups(
    plan: ColumnPlan, rows: TableRows, as_written: HashArray, cells: _CellSums
) -> tuple[list[_NearGroup], tuple[tuple[str, int], ...]]:
    """Find the groups to be told, in the order of the table, and the columns left out."""
    sample = rows.sample_table
    different = np.sort(np.unique(as_written, return_index=True)[1])
    found = [
        _NearGroup(-1, different[places])
        for places in _runs(cells.hashes[different])
        if cells.log_expected[different[places[0]]] < np.log(_BY_CHANCE)
    ]
    # One row of each such group stands for it from here on.
    kept = np.sort(different[np.unique(cells.hashes[different], return_index=True)[1]])
    common: list[tuple[str, int]] = []
    most = _most(rows)
    for number, spec in enumerate(plan.used):
        column = _Cells.of(sample.column(spec.name), spec, number)
        rest = cells.log_expected[kept] - column.log_shares[kept]
        groups = [
            _NearGroup(number, kept[places])
            for places in _runs(cells.hashes[kept] - column.hashes[kept])
            if rest[places[0]] < np.log(_BY_CHANCE)
        ]
        n_rows = sum(len(group.places) for group in groups)
        if n_rows > most:
            common.append((spec.name, n_rows))
        else:
            found += groups
    return sorted(found, key=lambda group: (*group.places[:2].tolist(), group.column)), tuple(
        common
    )


def _most(rows: TableRows) -> int:
    """Rows of the sample that may differ from others in one cell by mistake."""
    return max(_COMMON_ROWS, int(_COMMON_SHARE * rows.sample_table.frame.height))


def _runs(hashes: HashArray) -> Iterator[IntArray]:
    """Yield the places of hashes that occur more than once, a group each."""
    order = np.argsort(hashes, kind="stable")
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(hashes[order])) + 1, [len(order)]])
    for k in np.flatnonzero(np.diff(cuts) > 1):
        yield order[cuts[k] : cuts[k + 1]]


def _told_equal(rows: TableRows, groups: Sequence[IntArray]) -> tuple[RepeatedRows, ...]:
    """Put groups of equal rows into row numbers and lines."""
    if not groups:
        return ()
    shown = [group[:MAX_PLACES] for group in groups]
    lines = rows.take(np.concatenate(shown)).lines
    ends = np.cumsum([len(places) for places in shown])
    parts = [None] * len(shown) if lines is None else np.split(lines, ends[:-1])
    return tuple(
        RepeatedRows(
            rows=tuple((places + 1).tolist()),
            lines=None if part is None else tuple(part.tolist()),
            n_rows=len(group),
        )
        for group, places, part in zip(groups, shown, parts, strict=True)
    )


def _told_near(rows: TableRows, plan: ColumnPlan, group: _NearGroup) -> RepeatedRows:
    """Put a group of the sample into row numbers, lines and the cells that differ."""
    table, places = rows.sample_table, group.places[:MAX_PLACES]
    specs = (plan.used[group.column],) if group.column >= 0 else plan.used
    texts = {s.name: [table.column(s.name).text(int(row)) for row in places] for s in specs}
    differ = [name for name in texts if len(set(texts[name])) > 1][:MAX_PLACES]
    texts |= {s.name: ["(hidden)"] * len(places) for s in specs if s.hidden}
    return RepeatedRows(
        rows=tuple((rows.sample_index[places] + 1).tolist()),
        lines=None if table.lines is None else tuple(table.lines[places].tolist()),
        n_rows=len(group.places),
        columns=tuple(differ),
        cells=tuple(zip(*(texts[name] for name in differ), strict=True)),
    )


def _statement(
    rows: TableRows,
    found: EqualRows,
    equal: Sequence[RepeatedRows],
    n_near: int,
    near: Sequence[RepeatedRows],
    common: Sequence[tuple[str, int]],
) -> str:
    """Say what repeats, in a few sentences."""
    said = []
    if found.n_repeats:
        which = (
            "1 row repeats an" if found.n_repeats == 1 else f"{found.n_repeats:,} rows repeat an"
        )
        where = f" ({_places(equal[0])})" if len(equal) == found.n_groups == 1 else ""
        nature = "" if equal else ": their values are so common that rows repeat by chance"
        said.append(f"{which} earlier one in every column the model uses{where}{nature}.")
    if n_near:
        drawn = "" if rows.size_of_parts is None else f" of {len(rows.sample_index):,} drawn"
        which = "1 group of rows is" if n_near == 1 else f"{n_near:,} groups of rows are"
        where = f" ({_places(near[0])})" if n_near == 1 else ""
        many = "" if n_near <= _most(rows) // 2 else ", so many that the table may be made this way"
        said.append(
            f"{which} equal but for one cell, or for how it is written{drawn}{where}{many}."
        )
    if common:
        names = ", ".join(quoted(name) for name, _ in common[:3])
        more = f" and {len(common) - 3} more columns" if len(common) > 3 else ""
        said.append(f"Rows that differ in {names}{more} alone are common here, and not listed.")
    return " ".join(said)


def _places(group: RepeatedRows) -> str:
    """Name the rows of a group, and the column in which they differ."""
    kind, places = ("row", group.rows) if group.lines is None else ("line", group.lines)
    shown = ", ".join(f"{place:,}" for place in places)
    more = f" and {group.n_rows - len(places)} more" if group.n_rows > len(places) else ""
    column = f", {quoted(group.columns[0])}" if len(group.columns) == 1 else ""
    return f"{kind}s {shown}{more}{column}"
