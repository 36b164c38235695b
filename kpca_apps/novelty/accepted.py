"""Rows that a reader reviewed before: accepted by a table of such rows, or marked in a report.

A listed row accepts all rows with the same cells in the columns that both tables have. A mark says
that one row is wrong, fine or known. The *key* of a marked row is a hash of its visible cells and
the names of their columns, so marks do not depend on hidden values. If columns are hidden,
different rows may have equal keys. Then a mark applies to the row with its number, or to the only
row with its key and a visible identifier.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import InputError, about, opening
from kpca_apps.names import listed, one_line, suggest
from kpca_apps.novelty.columns.parts import AnyTable, Execution, each_part
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.result import MARKS_FORMAT, RowMark
from kpca_apps.system.arrays import BoolArray, HashArray, IntArray
from kpca_apps.system.files.texts import require_file
from kpca_apps.system.stores.addresses import located
from kpca_apps.system.stores.buckets import place_of
from kpca_apps.tables.opening import read_table
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column, DateFormat, NumberFormat, ValueFormat
from kpca_apps.tables.write import as_written

DIGITS = 12  # significant digits in which numbers must agree; spreadsheet files store 15 digits
# Maximum share of rows that may be accepted: with more, too few are left to judge.
MOST = 0.5
MAX_NAMED = 5
# Columns that this package adds to lists of flagged rows and to scored tables.
OURS = frozenset(
    "rank row line reason_column seen expected share hint rarity p_value novelty_score flagged "
    "accepted".split()
)
Kind = Literal["wrong", "fine", "known"]

KEY = "row_key"  # in a list of marked rows, the column with a hash of each row's cells
LARGEST = 64_000_000  # maximum size of a page or a list, in bytes
MOST_MARKS = 100_000
_HEAD = 4096  # number of first bytes that show whether a remote file is a page
_LONGEST, _LONGEST_NOTE = 300, 2_000  # maximum numbers of characters of an id and of a note
_SIGN = b'<script type="application/json" id="marks">'  # text before the marks in a page
_SIGN_OF_DENOISING = b'<script type="application/json" id="redo">'
_PAGE = re.compile(rb"\s*(?:\xef\xbb\xbf)?<!doctype html", re.IGNORECASE)
# A key: v (all columns visible) or h (some hidden), hash of the column names; hash of the cells.
_KEY_FORM = "^[vh][0-9a-f]{8}-[0-9a-f]{16}$"
_BITS = 40  # number of mantissa bits that are compared, as other programs may round the last bits
# Integers of this size or more are hashed as texts; so are codes of digits, as 0012 is not 12.
_LONG = float(1 << _BITS)
_CODE = r"^(?:-?[1-9][0-9]{12,}|0[0-9]+)$"
_MISSING = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Accepted:
    """The rows of a table that a reader marked as fine, as a known oddity or as wrong."""

    is_accepted: BoolArray  # (n,), rows judged fine or known to be odd
    name: str  # name of the file or table that states these judgements
    notes: tuple[str, ...]  # notes on listed rows that match no row
    is_known: BoolArray | None = None  # (n,), known to be odd, so not learned from; None if none
    is_wrong: BoolArray | None = None  # (n,), rows marked as wrong, which rank first
    marks: tuple[RowMark, ...] = ()  # sorted by row; `joined` appends the marks of the second list

    @property
    def is_fine(self) -> BoolArray:
        """Mask (n,) of accepted rows that are learned from as normal rows."""
        return self.is_accepted if self.is_known is None else self.is_accepted & ~self.is_known

    def joined(self, other: Accepted) -> Accepted:
        """Combine two lists of reviewed rows; a row is wrong if either list says so."""
        none = np.zeros(len(self.is_accepted), dtype=bool)
        wrong = (none if self.is_wrong is None else self.is_wrong) | (
            none if other.is_wrong is None else other.is_wrong
        )
        fine = self.is_fine | other.is_fine
        accepted = (self.is_accepted | other.is_accepted) & ~wrong
        return Accepted(
            accepted,
            f"{self.name} and {other.name}",
            (*self.notes, *other.notes),
            accepted & ~fine,
            wrong,
            (*self.marks, *other.marks),
        )

    @property
    def n_rows(self) -> int:
        """Number of accepted rows."""
        return int(self.is_accepted.sum())


class _Shared(NamedTuple):
    """How to compare a column that both tables have."""

    name: str  # name of the column in the table
    format: ValueFormat | None  # format of numbers or dates; None for text
    in_lower: bool  # whether case is ignored
    is_single: bool  # whether the table stores the column as 32-bit floats

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec | None) -> _Shared:
        """Choose how to compare the column's cells: by the format in `spec`, else by data type."""
        format, kind = None if spec is None else spec.format, column.cells.dtype
        if format is None and kind.is_numeric():
            format = NumberFormat()
        elif format is None and kind in (pl.Date, pl.Datetime):
            format = DateFormat(has_time=kind == pl.Datetime)
        is_truth = spec is not None and spec.is_truth
        return cls(column.name, format, is_truth, kind == pl.Float32)

    def read(self, column: Column, format: ValueFormat | None) -> pl.Series:
        """Return the value of each cell (n,): a number, or its text if no number is read."""
        texts = column.texts.str.to_lowercase() if self.in_lower else column.texts
        numbers = pl.repeat(None, len(column), dtype=pl.Float64, eager=True)
        if format is not None:
            readings = column.read(format)
            kind = pl.Float32 if self.is_single else pl.Float64
            numbers = pl.Series(readings.values).cast(kind).cast(pl.Float64).fill_nan(None)
            numbers = numbers.round_sig_figs(DIGITS)
            texts = pl.select(pl.when(pl.Series(readings.unreadable)).then(texts)).to_series()
        return pl.DataFrame({"number": numbers, "text": texts}).to_struct()


def _matched(
    table: Table, columns: Sequence[_Shared], wanted: pl.DataFrame
) -> tuple[BoolArray, IntArray]:
    """Mark the accepted rows (n,) of a table; count those that match each `wanted` row (k,)."""
    cells = [shared.read(table.column[shared.name], shared.format) for shared in columns]
    rows = pl.DataFrame(dict(zip(wanted.columns, cells, strict=True)))
    on, nulls_equal = wanted.columns, True
    found = rows.with_row_index("row").join(wanted.unique(), on, "semi", nulls_equal=nulls_equal)
    is_accepted = np.zeros(len(rows), dtype=bool)
    is_accepted[found["row"].to_numpy()] = True
    alike = found.group_by(on).len()
    counts = wanted.join(alike, on, "left", nulls_equal=nulls_equal, maintain_order="left")["len"]
    return is_accepted, counts.fill_null(0).to_numpy()


def find_accepted(
    accept: Table,
    table: AnyTable,
    specs: Sequence[ColumnSpec],
    execution: Execution | None = None,
    *,
    most: float = 1.0,
    hidden: Collection[str] = (),
) -> Accepted:
    """Find the rows of a table that equal a row of the table `accept`.

    Columns are read by `specs`. A `hidden` column that is empty in `accept`, as in scored tables,
    is ignored. InputError if more than the share `most` of the table is accepted, or all of it.
    """
    name, where = accept.source.short_name, table.source.short_name
    written, ignored = _written(accept, table.columns)
    columns = {
        other: own
        for other, own in written.items()
        if other not in hidden or own.texts.null_count() < accept.n_rows
    }
    if not columns:
        raise InputError(
            f"{name}: none of its columns is one of {where}; accepted rows are named by cells of "
            f"its columns.{suggest(ignored[0], table.columns) if ignored else ''}"
        )
    head = next(table.tables())
    by_name = {spec.name: spec for spec in specs}
    compared = [_Shared.of(head.column[name], by_name.get(name)) for name in columns]
    wanted = dict[str, pl.Series]()
    for shared, own in zip(compared, columns.values(), strict=True):
        # Spreadsheets may save dates and decimal numbers in the notation of their locale.
        format = None if shared.format is None else own.written_as(shared.format)[0]
        wanted[str(len(wanted))] = shared.read(own, format)
    match = partial(_matched, columns=compared, wanted=pl.DataFrame(wanted))
    counts = np.zeros(accept.n_rows, dtype=np.int64)
    marked = []
    work = execution or Execution()
    for is_accepted, of_part in each_part(table, "Looking for accepted rows", match, work):
        marked.append(is_accepted)
        counts += of_part
    is_accepted = np.concatenate(marked)
    n_accepted, n_rows = int(is_accepted.sum()), len(is_accepted)
    if n_accepted > most * n_rows or n_accepted == n_rows:
        raise InputError(
            f"{name}: accepts {n_accepted:,} of the {n_rows:,} rows of {where}, {counts.max():,} "
            f"of them by {accept.place_of(int(counts.argmax()))}: too few are left to judge; give "
            "more cells of the rows that are fine."
        )
    return Accepted(is_accepted, name, tuple(_notes(accept, where, counts, ignored, table)))


def _written(accept: Table, names: Sequence[str]) -> tuple[dict[str, Column], list[str]]:
    """Return columns of `accept` by their names in the table, and the columns the table lacks.

    Guarding apostrophes are removed. A column named like one of `OURS` has an ending ("_input").
    """
    columns = accept.frame.columns
    given = dict(zip(as_written(pl.Series(columns, dtype=pl.String)), columns, strict=True))
    shared, used = {}, set()
    for name in names:
        endings = ("_input_input", "_input") if name in OURS else ()
        written = [name + ending for ending in endings if name + ending not in names]
        own = next((one for one in [*written, name] if one in given), None)
        if own is not None:
            used.add(given[own])
            column = accept.column[given[own]]
            is_text = column.cells.dtype == pl.String
            shared[name] = Column(as_written(column.cells)) if is_text else column
    return shared, [one for one in columns if one not in used and one not in OURS]


class _Mark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: Annotated[str, msgspec.Meta(pattern=_KEY_FORM)]
    mark: Kind
    row: Annotated[int, msgspec.Meta(ge=1)]
    line: Annotated[int, msgspec.Meta(ge=1)] | None = None
    id: Annotated[str, msgspec.Meta(max_length=_LONGEST)] = ""
    note: Annotated[str, msgspec.Meta(max_length=_LONGEST_NOTE)] = ""


class _Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The marks stored in a page. The key of a marked row is a hash of its cells in `columns`."""

    format: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
    columns: tuple[str, ...]
    marks: Annotated[tuple[_Mark, ...], msgspec.Meta(max_length=MOST_MARKS)] = ()


@dataclass(frozen=True)
class Marks:
    """Rows that a reader marked as wrong, fine or known, read from a saved page or a list."""

    name: str  # name of the file
    marks: tuple[_Mark, ...]
    columns: tuple[str, ...] | None  # columns that the keys cover, if the file names them


def row_keys(table: Table, hidden: Collection[str]) -> list[str]:
    """Return the key of each row from its visible cells."""
    names = [name for name in table.frame.columns if name not in hidden]
    start = _start(names, is_part=len(names) < len(table.frame.columns))
    return [f"{start}-{value:016x}" for value in _row_hashes(table, names).tolist()]


def _start(names: Iterable[str], *, is_part: bool) -> str:
    of_names = sum(_text_hash(name) for name in names) & 0xFFFFFFFF
    return f"{'h' if is_part else 'v'}{of_names:08x}"


def mixed(values: HashArray) -> HashArray:
    """Spread bits evenly (the finaliser of splitmix64, Steele, Lea and Flood 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _row_hashes(table: Table, names: Iterable[str]) -> HashArray:
    """Hash the cells of each row, independently of the order of columns and the package version."""
    total = np.zeros(table.n_rows, dtype=np.uint64)
    for name in names:
        total += mixed(_cell_hashes(table.column[name]) ^ np.uint64(_text_hash(name)))
    return mixed(total)


def _cell_hashes(column: Column) -> HashArray:
    """Hash numbers by value, whatever their notation, and other cells as texts."""
    if column.cells.dtype.is_numeric():
        numbers = np.asarray(column.cells.to_numpy(), dtype=np.float64)
        hashes = _number_hashes(numbers)
        # Long identifiers may differ in their last digits only.
        is_long = np.flatnonzero(np.isfinite(numbers) & (np.abs(numbers) >= _LONG))
        if is_long.size and column.cells.dtype.is_integer():
            hashes[is_long] = [_text_hash(str(column.cells[row])) for row in is_long.tolist()]
        elif is_long.size:
            whole = is_long[numbers[is_long] == np.floor(numbers[is_long])]
            hashes[whole] = [_text_hash(str(int(value))) for value in numbers[whole].tolist()]
        return hashes
    levels = column.levels
    values = levels.texts.cast(pl.Float64, strict=False)
    if (values.to_numpy() == np.floor(values.to_numpy())).any():  # codes are integers
        values = values.set(levels.texts.str.contains(_CODE), None)
    hashes = _number_hashes(values.to_numpy())
    if values.null_count():
        is_text = values.is_null()
        hashes[is_text.to_numpy()] = [*map(_text_hash, levels.texts.filter(is_text))]
    return levels.each(hashes, _MISSING)


def _number_hashes(values: NDArray[np.float64]) -> HashArray:
    mantissas, exponents = np.frexp(np.where(np.isfinite(values), values, 0.0))
    whole = np.round(np.ldexp(mantissas, _BITS)).astype(np.int64)
    # Normalise a mantissa that was rounded up to 1.
    is_one = np.abs(whole) == 1 << _BITS
    whole, exponents = np.where(is_one, whole // 2, whole), exponents + is_one
    hashes = mixed(whole.astype(np.uint64) + (exponents.astype(np.uint64) << np.uint64(_BITS + 8)))
    for special, number in ((np.inf, 1), (-np.inf, 2)):
        hashes[values == special] = number
    hashes[np.isnan(values)] = _MISSING
    return hashes


def _text_hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def read_marks(path: str | Path) -> Marks:
    """Read the marks of a saved page or list; InputError if there are none."""
    place = located(path)
    with about(place), opening(place, place if isinstance(place, Path) else None):
        if isinstance(place, Path):
            require_file(place, "a page or list of marks", LARGEST)
            data = place.read_bytes()
        else:
            there = place_of(place)
            if there.n_bytes() > LARGEST:
                raise InputError(f"a page or list of marks has at most {LARGEST:,} bytes.")
            data = there.head(_HEAD)
        if _PAGE.match(data):
            whole = data if isinstance(place, Path) else b"".join(there.chunks())
            return _of_page(place.name, whole)
    return marks_of(read_table(path), place.name)


def _of_page(name: str, data: bytes) -> Marks:
    if _SIGN_OF_DENOISING in data:
        raise InputError("this is a report of kpca denoise; give one of kpca novelty.")
    # A regular expression could take quadratic time.
    _, sign, rest = data.partition(_SIGN)
    text, end, _ = rest.partition(b"</script>")
    if not (sign and end) or _SIGN in rest:
        raise InputError(
            'no page of a screening with marks: save one with its button "Save page with marks".'
        )
    try:
        try:
            block = msgspec.json.decode(text, type=_Block)
        except msgspec.DecodeError:
            # Some editors and mail programs escape quotes as entities.
            if b"&quot;" not in text:
                raise
            block = msgspec.json.decode(html.unescape(text.decode("utf-8", "replace")), type=_Block)
    except msgspec.MsgspecError as error:
        raise InputError(
            f"its marks are damaged ({one_line(str(error), _LONGEST)}): save the page again."
        ) from None
    if block.format != MARKS_FORMAT:
        raise InputError(
            f"its marks have format {block.format}, and this version reads {MARKS_FORMAT}: make "
            "the report again."
        )
    if not block.marks:
        raise InputError(
            "it holds no marks; mark rows on the page in a browser, save it, and give the saved "
            "file, report-marked.html."
        )
    return Marks(name, block.marks, block.columns)


def is_list_of_marks(table: Table) -> bool:
    """Return whether a table has a column of row keys."""
    return KEY in table.frame.columns


def marks_of(table: Table, name: str) -> Marks:
    """Convert a table to marks (key, row, line, id, mark, note); InputError names a bad row."""
    if not is_list_of_marks(table):
        raise InputError(
            f"{name}: not a list of marks, as it has no column {KEY!r}: give a report's page "
            "saved with marks, or the accept.csv that a button on that page saves."
        )
    marks = []
    for row, record in enumerate(_records(table)):
        try:
            marks.append(msgspec.convert(record, _Mark, strict=False))
        except msgspec.MsgspecError as error:
            why = one_line(str(error), _LONGEST)
            raise InputError(
                f"{name}, {table.place_of(row)}: no mark that a page wrote ({why})."
            ) from None
    return Marks(name, tuple(marks), None)


def _records(table: Table) -> Iterator[dict[str, str | None]]:
    """Yield the filled fields of each row of a list of marks; the mark is "fine" by default."""
    names = {KEY: "key", "row": "row", "line": "line", "id": "id", "mark": "mark", "note": "note"}
    columns = {
        field: as_written(table.column[name].texts)
        for name, field in names.items()
        if name in table.frame.columns
    }
    for place in range(table.n_rows):
        found = {field: cells[place] for field, cells in columns.items()}
        yield {"mark": "fine", "row": "1"} | {f: text for f, text in found.items() if text}


def find_marked(
    marks: Marks, table: AnyTable, execution: Execution, hidden: Collection[str] = ()
) -> Accepted:
    """Find the marked rows; InputError if keys cover other columns than those now visible."""
    columns = _columns_of(marks, table, hidden)
    wanted = np.array([int(mark.key[-16:], 16) for mark in marks.marks], dtype=np.uint64)
    match = partial(_matches, columns=columns, wanted=np.unique(wanted), hidden=hidden)
    parts, own, n_rows = list[tuple[IntArray, HashArray]](), dict[int, str](), 0
    found_in = each_part(table, "Looking for marked rows", match, execution)
    for n_here, places, keys, own_keys in found_in:
        parts.append((places + n_rows, keys))
        own |= zip((places + n_rows).tolist(), own_keys, strict=True)
        n_rows += n_here
    places, keys = (np.concatenate(of) for of in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    starts, stops = (np.searchsorted(keys[order], wanted, side=s) for s in ("left", "right"))
    found, idle = dict[int, RowMark](), []
    # If a row has several marks, use the last.
    last = {(m.key, m.row * m.key.startswith("h")): n for n, m in enumerate(marks.marks)}
    for number in sorted(last.values()):
        mark, start, stop = marks.marks[number], int(starts[number]), int(stops[number])
        alike = np.sort(places[order[start:stop]])
        if mark.key.startswith("h") and not (mark.id and len(alike) == 1):
            alike = alike[alike == mark.row - 1]
        if not len(alike):
            idle.append(mark)
        for place in alike.tolist():
            row = place + 1
            found[row] = RowMark(row, mark.mark, own[place], mark.line, mark.id, mark.note)
    masks = {kind: np.zeros(n_rows, dtype=bool) for kind in get_args(Kind)}
    for row, one in found.items():
        masks[one.mark][row - 1] = True
    notes, where = [], table.source.short_name
    if idle:
        first = [f"line {m.line}" if m.line else m.id or f"row {m.row}" for m in idle[:MAX_NAMED]]
        rows = _unmatched(len(idle), "marked row", where, first)
        notes.append(f"{marks.name}: {rows}; a row whose cells have changed is judged again.")
    return Accepted(
        is_accepted=masks["fine"] | masks["known"],
        name=marks.name,
        notes=tuple(notes),
        is_known=masks["known"],
        is_wrong=masks["wrong"],
        marks=tuple(found[row] for row in sorted(found)),
    )


def _columns_of(marks: Marks, table: AnyTable, hidden: Collection[str]) -> list[str]:
    """Return the columns whose cells make up row keys: `marks.columns`, or all visible columns."""
    visible = [name for name in table.columns if name not in hidden]
    # Keys that cover hidden cells would allow guessing the values.
    if marks.columns is not None and {*marks.columns} <= {*visible}:
        visible = list(dict.fromkeys(marks.columns))
    start = _start(visible, is_part=False)[1:]
    for mark in marks.marks:
        if mark.key[1:9] != start:
            where = table.source.short_name
            raise InputError(
                f"{marks.name}: the marks were made for other columns than {where} shows: give "
                "the table of that report with the same --hide, and mark rows of another table "
                "in its own report."
            )
    return visible


def _matches(
    table: Table, columns: list[str], wanted: HashArray, hidden: Collection[str]
) -> tuple[int, IntArray, HashArray, list[str]]:
    """Return the table's number of rows, and positions, hashes and visible keys of wanted rows."""
    keys = _row_hashes(table, columns)
    places = np.flatnonzero(np.isin(keys, wanted))
    return len(keys), places, keys[places], row_keys(table.take(places), hidden)


def _unmatched(n: int, noun: str, where: str, places: Sequence[str]) -> str:
    """State that n rows match no row of a table, and where the first ones are."""
    more = f" and {n - len(places):,} more" if n > len(places) else ""
    rows = f"1 {noun} matches" if n == 1 else f"{n:,} {noun}s match"
    return f"{rows} no row of {where} ({', '.join(places)}{more})"


def _notes(
    accept: Table, where: str, counts: IntArray, ignored: Sequence[str], table: AnyTable
) -> list[str]:
    name, notes = accept.source.short_name, []
    idle = np.flatnonzero(counts == 0)
    if idle.size:
        places = [accept.place_of(row) for row in idle[:MAX_NAMED].tolist()]
        rest = "a row whose cells have changed is no longer accepted and is listed again."
        notes.append(f"{name}: {_unmatched(len(idle), 'row', where, places)}; {rest}")
    if ignored:
        hints = (suggest(one, table.columns) for one in ignored)
        notes.append(
            f"{name}: ignored, as {where} has no such column: {listed(ignored)}."
            f"{next(filter(None, hints), '')}"
        )
    return notes


def find_reviewed(
    accept: Sequence[Table | Marks],
    table: AnyTable,
    specs: Sequence[ColumnSpec],
    execution: Execution,
    *,
    most: float = 1.0,
    hidden: Collection[str] = (),
) -> Accepted | None:
    """Find the rows of `table` that `accept` holds, as accepted rows or as marks in a report."""
    found: Accepted | None = None
    for one in accept:
        if isinstance(one, Table) and is_list_of_marks(one):
            one = marks_of(one, one.source.name)
        if isinstance(one, Marks):
            of_one = find_marked(one, table, execution, hidden)
        else:
            of_one = find_accepted(one, table, specs, execution, most=most, hidden=hidden)
        found = of_one if found is None else found.joined(of_one)
    if found is None:
        return None
    n_rows, n_left = len(found.is_accepted), int((~found.is_accepted).sum())
    if n_left < (1 - most) * n_rows or not n_left:
        raise InputError(
            f"{found.name}: {n_rows - n_left:,} of the {n_rows:,} rows of "
            f"{table.source.short_name} are fine or known: too many to judge the others by."
        )
    return found
