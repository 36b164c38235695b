"""Find rows that repeat others in all used columns, or in all but one cell.

Equal rows share a hash. For rows that differ in one cell, the hash of a row is the sum over its
cells. Without column j it is the sum minus one term, so d sorts of n numbers replace a comparison
of all pairs. Case, spaces and digits beyond single precision do not count.

Repeats that occur naturally are counted, not listed. If columns were independent, n times the
product of the cells' shares would be the expected number of rows with these cells. Repeats are
listed if less than a thousandth of a row is expected, unless chance explains over half of the
repeated rows. If more than 1 % of the rows differ from others in one column alone, such rows are
normal in the table (a row for each visit, hour or size).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kpca_apps.names import quoted
from kpca_apps.novelty.accepted import mixed
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.ranks import sorted_values
from kpca_apps.novelty.result import DuplicateRows, RepeatedRows
from kpca_apps.novelty.screening.encoded import Encoded
from kpca_apps.system.arrays import FloatArray, HashArray, IntArray
from kpca_apps.system.files.windowed import blocks, rows_where
from kpca_apps.tables.values import Column, NumberFormat

# Maximum numbers: groups listed; rows or columns named in a group; groups of equal rows examined.
MAX_GROUPS = 20
MAX_PLACES = 8
_MAX_LOOKED_AT = 2_000
# Repeats of a row are listed only if the expected number of repeats by chance is below this.
_BY_CHANCE = 1e-3
# If at least this share and number of rows differ from others in one column only, such rows are
# normal (a row for each visit).
_COMMON_SHARE, _COMMON_ROWS = 0.01, 10


@dataclass(frozen=True)
class EqualRows:
    """Groups of rows that share a hash."""

    n_repeats: int  # number of rows that repeat an earlier row
    n_groups: int  # number of distinct rows that are repeated
    groups: tuple[IntArray, ...]  # indices of the rows of the first groups, ordered by first row


def equal_rows(hashes: HashArray, n_listed: int | None = None) -> EqualRows:
    """Find rows with equal hashes (n,), perhaps memory-mapped; list the first groups or all."""
    ordered = sorted_values(hashes)
    parts = (ordered[block.start : block.stop + 1] for block in blocks(len(ordered)))
    repeated = np.unique(np.concatenate([part[1:][part[1:] == part[:-1]] for part in parts]))
    if not len(repeated):
        return EqualRows(0, 0, ())

    last = len(repeated) - 1
    rows = rows_where(
        hashes, lambda part: repeated[repeated.searchsorted(part).clip(max=last)] == part
    )
    keys = hashes[rows]
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=~repeated[:1]))
    order = rows[order]
    stops = np.append(starts[1:], len(order))
    first = np.argsort(order[starts])[:n_listed]
    groups = tuple(order[starts[k] : stops[k]] for k in first)
    return EqualRows(len(rows) - len(repeated), len(repeated), groups)


class _NearGroup(NamedTuple):
    """A group of sample rows that differ in one column only, or only in notation (column -1)."""

    column: int
    places: IntArray

    def described(self, rows: Encoded) -> RepeatedRows:
        used, table, places = rows.encoder.plan.used, rows.sample_table, self.places[:MAX_PLACES]
        specs = used if self.column < 0 else (used[self.column],)
        texts = {s.name: [table.column[s.name].text(int(row)) for row in places] for s in specs}
        differ = [name for name in texts if len(set(texts[name])) > 1][:MAX_PLACES]
        return RepeatedRows(
            rows=tuple((rows.sample_index[places] + 1).tolist()),
            lines=None if table.lines is None else tuple(table.lines[places].tolist()),
            n_rows=len(self.places),
            columns=tuple(differ),
            cells=tuple(zip(*(texts[name] for name in differ), strict=True)),
        )


@dataclass(frozen=True)
class _Cells:
    """The cells of one column: hash and frequency of each."""

    keys: HashArray  # (k,), key of each distinct cell, increasing
    counts: IntArray  # (k,), number of cells with each key
    hashes: HashArray  # (s,), salted hash of each sample row's cell
    log_shares: FloatArray  # (s,), log of the share of sample rows with an equal cell

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec, number: int) -> _Cells:
        keys, inverse, counts = np.unique(
            _keys(column, spec), return_inverse=True, return_counts=True
        )
        # Salt the keys by column: cells swapped between two columns must not give equal sums.
        salted = _mixed(keys + _mixed(np.full(len(keys), number + 1, dtype=np.uint64)))
        return cls(keys, counts, salted[inverse], np.log(counts / len(inverse))[inverse])


def find_duplicates(rows: Encoded) -> DuplicateRows:
    """Find rows of the table that are written alike, and near repeats in its sample."""
    sample, used = rows.sample_table, rows.encoder.plan.used
    if rows.n_rows == 1:
        return DuplicateRows(n_compared=1)
    found = equal_rows(rows.hashes, _MAX_LOOKED_AT)
    firsts = np.array([group[0] for group in found.groups], dtype=np.int64)
    candidates = rows.take(firsts) if len(firsts) else None
    # Per sample row: sum of its cells' hashes, and log of the number of rows expected to equal it
    # by chance. The same log for the first row of each group of equal rows (`log_firsts`).
    n_rows = sample.n_rows
    hashes, logs = np.zeros(n_rows, dtype=np.uint64), np.full(n_rows, np.log(n_rows))
    log_firsts = np.full(len(firsts), np.log(n_rows))
    for number, spec in enumerate(used):  # one column at a time, to save memory
        cells = _Cells.of(sample.column[spec.name], spec, number)
        hashes += cells.hashes
        logs += cells.log_shares
        if candidates is not None:
            # Count a cell that is not in the sample as if it occurred there once.
            keys = _keys(candidates.column[spec.name], spec)
            place = np.minimum(np.searchsorted(cells.keys, keys), len(cells.keys) - 1)
            counts = np.where(cells.keys[place] == keys, cells.counts[place], 1)
            log_firsts += np.log(counts / n_rows)
    expected = np.exp(log_firsts)
    listed = [group for group, n in zip(found.groups, expected, strict=True) if n < _BY_CHANCE]
    near: list[_NearGroup] = []
    common: tuple[tuple[str, int], ...] = ()
    if 2 * len(listed) < len(found.groups):
        listed = []  # chance explains more than half of the groups
    else:
        near, common = _near_groups(rows, hashes, logs)
    duplicates = DuplicateRows(
        n_repeats=found.n_repeats,
        n_groups=found.n_groups,
        equal=_equal_rows_in_table(rows, listed[:MAX_GROUPS]),
        n_near=len(near),
        near=tuple(group.described(rows) for group in near[:MAX_GROUPS]),
        common=common,
        n_compared=n_rows,
    )
    return replace(duplicates, statement=_statement(rows, duplicates))


def _keys(column: Column, spec: ColumnSpec) -> HashArray:
    """Return a key of each cell; case, spaces and digits beyond single precision do not count."""
    if spec.format is None:
        texts = column.levels.texts.str.to_lowercase().str.replace_all(r"\s+", " ")
        return column.levels.each(texts.hash(seed=0).to_numpy(), 0)
    readings = column.read(spec.format)
    is_number = isinstance(spec.format, NumberFormat)
    keys = _mixed((_single(readings.values) if is_number else readings.values).view(np.uint64))
    as_text = readings.unreadable | readings.rounded
    if as_text.any():
        keys[as_text] = _keys(column.take(np.flatnonzero(as_text)), replace(spec, format=None))
    keys[readings.missing] = 0
    return keys


def _single(values: FloatArray) -> FloatArray:
    """Round to single precision at any magnitude; keep integers, turn -0 into 0."""
    mantissas, exponents = np.frexp(values)
    # The largest floats may round to infinity. They are integers, which are kept anyway.
    with np.errstate(over="ignore"):
        single = np.ldexp(mantissas.astype(np.float32).astype(np.float64), exponents)
    return np.asarray(np.where(values == np.rint(values), values, single) + 0.0)


def _mixed(keys: HashArray) -> HashArray:
    """Spread 64-bit numbers over the whole range, so that only equal terms give equal sums."""
    return mixed(keys + np.uint64(0x9E3779B97F4A7C15))


def _near_groups(
    rows: Encoded, hashes: HashArray, log_expected: FloatArray
) -> tuple[list[_NearGroup], tuple[tuple[str, int], ...]]:
    """Find the near repeats to list, in table order, and the columns with too many of them."""
    sample, unlikely = rows.sample_table, np.log(_BY_CHANCE)
    as_written = rows.hashes[rows.sample_index]
    different = np.sort(np.unique(as_written, return_index=True)[1])
    found = [
        _NearGroup(-1, different[places])
        for places in equal_rows(hashes[different]).groups
        if log_expected[different[places[0]]] < unlikely
    ]
    # Below, one row represents each group of equal rows.
    kept = np.sort(different[np.unique(hashes[different], return_index=True)[1]])
    common: list[tuple[str, int]] = []
    most = max(_COMMON_ROWS, int(_COMMON_SHARE * sample.n_rows))
    for number, spec in enumerate(rows.encoder.plan.used):
        column = _Cells.of(sample.column[spec.name], spec, number)
        rest = log_expected[kept] - column.log_shares[kept]
        groups = [
            _NearGroup(number, kept[places])
            for places in equal_rows(hashes[kept] - column.hashes[kept]).groups
            if rest[places[0]] < unlikely
        ]
        n_rows = sum(len(group.places) for group in groups)
        if n_rows > most:
            common.append((spec.name, n_rows))
        else:
            found += groups
    found.sort(key=lambda group: (*group.places[:2].tolist(), group.column))
    return found, tuple(common)


def _equal_rows_in_table(rows: Encoded, groups: Sequence[IntArray]) -> tuple[RepeatedRows, ...]:
    firsts = [group[:MAX_PLACES] for group in groups]
    lines = rows.take(np.concatenate(firsts)).lines if groups else None
    ends = np.cumsum([len(places) for places in firsts])
    parts = [None] * len(firsts) if lines is None else np.split(lines, ends[:-1])
    return tuple(
        RepeatedRows(
            rows=tuple((places + 1).tolist()),
            lines=None if part is None else tuple(part.tolist()),
            n_rows=len(group),
        )
        for group, places, part in zip(groups, firsts, parts, strict=True)
    )


def _statement(rows: Encoded, found: DuplicateRows) -> str:
    sentences = []
    if n := found.n_repeats:
        which = "1 row repeats an" if n == 1 else f"{n:,} rows repeat an"
        where = f" ({_places(found.equal[0])})" if len(found.equal) == found.n_groups == 1 else ""
        nature = "" if found.equal else ": their values are so common that rows repeat by chance"
        sentences.append(f"{which} earlier one in every column the model uses{where}{nature}.")
    if n := found.n_near:
        most = max(_COMMON_ROWS, int(_COMMON_SHARE * found.n_compared))
        drawn = "" if rows.size_of_parts is None else f" of {len(rows.sample_index):,} drawn"
        which = "1 group of rows is" if n == 1 else f"{n:,} groups of rows are"
        where = f" ({_places(found.near[0])})" if n == 1 else ""
        many = "" if n <= most // 2 else ", so many that the table may be made this way"
        sentences.append(
            f"{which} equal but for one cell, or for how it is written{drawn}{where}{many}."
        )
    if common := found.common:
        names = ", ".join(quoted(name) for name, _ in common[:3])
        more = f" and {len(common) - 3} more columns" if len(common) > 3 else ""
        sentences.append(
            f"Rows that differ in {names}{more} alone are common here, and not listed."
        )
    return " ".join(sentences)


def _places(group: RepeatedRows) -> str:
    kind, places = ("row", group.rows) if group.lines is None else ("line", group.lines)
    numbers = ", ".join(f"{place:,}" for place in places)
    more = f" and {group.n_rows - len(places)} more" if group.n_rows > len(places) else ""
    column = f", {quoted(group.columns[0])}" if len(group.columns) == 1 else ""
    return f"{kind}s {numbers}{more}{column}"
