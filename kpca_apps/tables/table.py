"""Tables in memory, and tables in parts that workers read.

Column types are reduced to a few (`plain_types`). Rows stay in memory up to a limit; more rows go
to a temporary Arrow file (IPC) with a batch for each part, which takes half the time of Parquet.
The size of a part depends only on the number of columns, so that results do not depend on the
number of workers.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from kpca_apps.errors import (
    InputError,
    KpcaError,
    MemoryLimitError,
    UnlikeFilesError,
    UnreachableError,
    about,
    storage_error,
)
from kpca_apps.names import one_line, reason_of, suggest
from kpca_apps.system import limits
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.system.files.spools import COPIES_IN, copy_folder, require_disk
from kpca_apps.system.files.temporary import TemporaryPath
from kpca_apps.system.limits import COPIES, require_memory, require_table
from kpca_apps.system.memory import ROWS_IN_MEMORY
from kpca_apps.system.stores.addresses import StorePath
from kpca_apps.system.stores.buckets import place_of
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.values import DECISIVE, LAST_SECOND, Column, ValueFormat

_LEAST_ROWS, _MOST_ROWS = 1 << 12, 1 << 16  # minimum and maximum number of rows of a part
_CELLS = 1 << 21  # number of cells of a part
_LARGEST_BATCH = 1 << 30  # in bytes: Arrow stores the size of a column in 31 bits
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DIGITS_64 = 18  # all whole numbers of this many digits fit into 64 bits
# Arrow's layout of an interval. As in PostgreSQL, 12 months are 365.25 days, further months 30.
_INTERVAL = np.dtype([("months", "i4"), ("days", "i4"), ("ns", "i8")])
_FIRST_SECOND, _DAY = -62_135_596_800, 86_400  # start of year 1, in seconds since 1970

DURATIONS, NESTED = "Durations read as seconds", "Lists and records read as text"

# A function that reads the rows of a part, and their line numbers if any; small when pickled.
Load = Callable[[], tuple[pl.DataFrame, IntArray | None]]


@dataclass(frozen=True)
class Table:
    """A table in memory.

    Cells of delimited text are strings as in the file (``""`` if empty). JSON gives numbers,
    booleans, strings and nulls; Parquet and Excel give the types that they store.
    """

    frame: pl.DataFrame
    lines: IntArray | None  # (n,), line of the file where each row starts; None if binary
    source: SourceInfo

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.frame.columns)

    @property
    def n_rows(self) -> int:
        """Number of rows; a sample has fewer than its source."""
        return self.frame.height

    def tables(self) -> Iterator[Table]:
        """Yield this table, which is its only part."""
        yield self

    def take(self, rows: IntArray) -> Table:
        """Return the rows at some positions; return this table itself for all rows in order."""
        if np.array_equal(rows, np.arange(self.frame.height)):
            return self
        lines = None if self.lines is None else self.lines[rows]
        return Table(self.frame[rows], lines, replace(self.source, n_rows=len(rows)))

    def place_of(self, row: int) -> str:
        """Return where a row, counted from 0, is in the file: "line 3" or "row 2"."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    @cached_property
    def column(self) -> dict[str, Column]:
        """Columns by name, which cache their readings."""
        return {cells.name: Column(cells) for cells in self.frame.iter_columns()}


@dataclass(frozen=True)
class TablePart:
    """Some rows of a table, read on demand."""

    number: int  # number of the part, from 0
    start: int  # number of the first row, from 0
    stop: int  # number of the first row after the part
    source: SourceInfo  # source of the whole table
    load: Load = field(repr=False)
    whole: TablePart | None = field(default=None, repr=False)  # the part of which this is a piece

    @property
    def place(self) -> str:
        """The rows of the part, or of the `whole` that contains it, for messages."""
        whole = self.whole or self
        return f"rows {whole.start + 1:,} to {whole.stop:,}"

    def __str__(self) -> str:
        return f"{self.place} of {self.source.short_name}"

    def read(self) -> Table:
        """Read the rows of the part; errors name the rows."""
        try:
            with about(self.source.name):
                frame, lines = self.load()
        except KpcaError as error:
            if self.whole is not None:
                raise
            raise type(error)(str(error), self.place.capitalize()) from error
        if frame.height != self.stop - self.start:
            raise InputError(
                f"{self.place} are no longer there; run again once the file is complete.",
                self.source.name,
            )
        return Table(frame, lines, self.source)

    def carried(self) -> TablePart:
        """Return the part with its rows in memory, for workers that cannot read the file."""
        rows = self.read()
        return replace(self, load=partial(_held, rows.frame, rows.lines))

    def bare(self) -> TablePart:
        """Return the part without its loader, to keep messages to workers small."""
        return replace(self, load=_unread, whole=None)


@dataclass(frozen=True)
class PartedTable:
    """A table whose rows are read in parts, on demand."""

    source: SourceInfo
    columns: tuple[str, ...]
    parts: tuple[TablePart, ...]  # all of the same length, except for a shorter last part
    # Temporary file with the rows, removed with this table.
    copy: TemporaryPath | None = field(default=None, repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    def tables(self) -> Iterator[Table]:
        """Yield the rows as one table for each part."""
        return (part.read() for part in self.parts)


@dataclass(frozen=True)
class Rows:
    """A stream of rows, as Arrow tables."""

    pieces: Iterator[pa.Table]
    names: list[str]  # names of the columns; like `renamed`, complete when the first piece is read
    notes: list[str]  # notes on the rows, complete when the last piece is read
    has_lines: bool  # whether the last column contains line numbers
    renamed: dict[str, str] = field(default_factory=dict)  # column -> its original name


def part_size(n_columns: int) -> int:
    """Return the number of rows of a part: a power of two, for about two million cells."""
    rows = 1 << (max(_CELLS // n_columns, 1).bit_length() - 1)
    return min(max(rows, _LEAST_ROWS), _MOST_ROWS)


def parted_table(
    source: SourceInfo,
    columns: Sequence[str],
    loads: Iterable[Load],
    size: int,
    copy: TemporaryPath | None = None,
) -> PartedTable:
    """Return a table whose parts have `size` rows each; each loader reads one part."""
    parts = tuple(
        TablePart(number, number * size, min((number + 1) * size, source.n_rows), source, load)
        for number, load in enumerate(loads)
    )
    return PartedTable(source, tuple(columns), parts, copy)


def parted(table: Table, *, part_rows: int | None = None) -> PartedTable:
    """Split a table in memory into parts of `part_rows` rows, by default `part_size`."""
    size = part_rows or part_size(table.frame.width)
    cuts = [slice(start, start + size) for start in range(0, table.n_rows, size)]
    loads = [
        partial(_held, table.frame[cut], None if table.lines is None else table.lines[cut])
        for cut in cuts
    ]
    return parted_table(table.source, table.frame.columns, loads, size)


def collect(
    rows: Rows,
    source: SourceInfo,
    sha256: Callable[[], str],
    in_memory_rows: float,
    part_rows: int | None,
) -> Table | PartedTable:
    """Collect a stream of rows, in parts on disk if there are more than `in_memory_rows`.

    The `source` gets its hash, size and notes after the last row has been read.
    """
    held: list[pa.Table] = []
    n_rows = n_bytes = 0
    stored, size = None, 0
    for piece in rows.pieces:
        held.append(piece)
        n_rows, n_bytes = n_rows + piece.num_rows, n_bytes + piece.nbytes
        if n_rows > in_memory_rows:
            size = part_rows or part_size(len(rows.names))
            first = (held.pop(0) for _ in range(len(held)))  # free each written piece
            del piece
            stored = _stored(chain(first, _ahead(rows.pieces)), rows.has_lines, size)
            n_rows = stored[2]
            break
        if n_bytes * COPIES > (available := limits.available_memory()):
            raise MemoryLimitError(
                f"unpacks to more than {available / COPIES / 2**30:.2g} GB, more than memory "
                "allows; split the file."
            )
    n_columns = len(rows.names)
    require_cells(n_rows, n_columns)
    notes = (*source.notes, *rows.notes)
    source = replace(source, sha256=sha256(), n_rows=n_rows, n_columns=n_columns, notes=notes)
    source = replace(source, renamed=(*source.renamed, *rows.renamed.items()))
    if stored is not None:
        return parted_table(source, rows.names, stored[1], size, stored[0])
    require_table(n_rows, n_columns)
    return Table(*as_frame(pa.concat_tables(held), rows.has_lines), source)


def require_cells(n_rows: int, n_columns: int) -> None:
    """Raise InputError for a table without rows or without columns."""
    if n_rows == 0 or n_columns == 0:
        what = "columns" if n_columns == 0 else "rows"
        raise InputError(f"no {what} were read; there is nothing to screen.")


def require_same_columns(
    columns: Collection[str], first: Collection[str], model: str, files: str
) -> None:
    """Raise UnlikeFilesError unless a file has the same columns as the first, in any order."""
    for name in first:
        if name not in columns:
            raise UnlikeFilesError(
                f'has no column "{one_line(name)}", which {model} has; {files} need the same '
                f"columns.{suggest(name, columns)}"
            )
    for name in columns:
        if name not in first:
            raise UnlikeFilesError(
                f'its column "{one_line(name)}" is not in {model}; {files} need the same columns.'
            )


def require_formats(table: Table, formats: Mapping[str, ValueFormat | None], of: str) -> list[str]:
    """Raise InputError if the formats of another table would misread numbers or dates.

    Returns notes on columns whose format is ambiguous.
    """
    notes, types = list[str](), table.frame.schema
    for name, known in formats.items():
        if known is None or types.get(name) != pl.String:
            continue
        column = table.column[name]
        own, n_more = column.written_as(known)
        if n_more >= DECISIVE:
            raise InputError(
                f'column "{one_line(name)}" is written with {own.order}, and would be read with '
                f"{known.order} as in {of}; write both alike.",
                table.source.name,
            )
        notes += _left_open(name, column, known, of)
    return notes


def _left_open(name: str, column: Column, known: ValueFormat, of: str) -> Iterator[str]:
    """Yield a note if cells can be read with either decimal mark, or either order of the date."""
    if (n_against := column.leaves_open(known)) is None:
        return
    why = f"no cell shows whether it has {known.order}; it is read so"
    if n_against:
        why = (
            f"{n_against} {'cell' if n_against == 1 else 'cells'} cannot be read with "
            f"{known.order}, and no other cell shows which it is; the rest is read so"
        )
    yield f'Column "{one_line(name)}": {why}, as in {of}.'


# file -> column -> its format there, and the format in an earlier file
UnlikeFormats: TypeAlias = "dict[str, dict[str, tuple[ValueFormat, ValueFormat]]]"


def unlike_formats(tables: Mapping[str, Table]) -> tuple[UnlikeFormats, list[str]]:
    """Return the columns whose format differs between files, and notes on them."""
    found: UnlikeFormats = {label: {} for label in tables}
    notes: list[str] = []
    heads = [
        table.frame.head(max(1_000, ROWS_IN_MEMORY // len(tables))) for table in tables.values()
    ]
    for name in heads[0].columns:
        cells = [head[name] for head in heads if head.schema[name] == pl.String]
        if len(cells) < len(heads):
            continue
        # Check the cells of all files together first, as formats rarely differ between files.
        joined = Column(pl.concat(cells))
        orders = (joined.number_format(), joined.date_format())
        if not any(one is not None and joined.reads_otherwise(one).any() for one in orders):
            continue
        decided = {label: table.column[name].decided_format() for label, table in tables.items()}
        known = next(((label, own) for label, own in decided.items() if own is not None), None)
        if known is None:
            continue
        first, format = known
        for label, own in decided.items():
            if own is None:
                of = one_line(first, 60)
                notes += (
                    f"{one_line(label, 60)}: {note}"
                    for note in _left_open(name, tables[label].column[name], format, of)
                )
            elif type(own) is type(format) and own.order != format.order:
                found[label][name] = own, format
                notes.append(
                    f'Column "{one_line(name)}": {one_line(label, 60)} has {own.order} and '
                    f"{one_line(first, 60)} {format.order}; each is read by its own format, and "
                    "all are shown in the second."
                )
    return found, notes


def extended(
    table: Table | PartedTable, other: Table | PartedTable, marked: BoolArray
) -> Table | PartedTable:
    """Return a table followed by the `marked` rows (n,) of another table.

    Columns that only the first table has are empty in these rows; columns that only the other
    table has are dropped.
    """
    names = list(table.columns)
    head = next(table.tables())
    first, second = head.frame.schema, next(other.tables()).frame.schema
    for column in names:
        kinds = {first[column], second.get(column, first[column])} - {pl.Null()}
        if len(kinds) > 1 and pl.String() in kinds:
            raise InputError(
                f'column "{one_line(column)}" is {_noun(second[column])}, and in '
                f"{table.source.short_name} {_noun(first[column])}; rows of one cannot "
                "join the other: give both in the same file format.",
                other.source.name,
            )
    types, has_lines = common_types((first, second), names), head.lines is not None
    n_rows = int(marked.sum())

    def pieces() -> Iterator[pa.Table]:
        for source in (table, other):
            start = 0
            for part in source.tables():
                frame, lines = part.frame, part.lines
                if source is other:
                    here = marked[start : start + frame.height]
                    start += frame.height
                    frame = frame.filter(here)
                    lines = np.zeros(len(here), np.int64)[here] if lines is None else lines[here]
                empty = [pl.lit(None).alias(lost) for lost in names if lost not in frame.columns]
                frame = typed_columns(frame.with_columns(empty), types)
                yield as_arrow(frame, lines if has_lines else None)

    digest = hashlib.sha256(table.source.fingerprint.encode())
    digest.update(other.source.fingerprint.encode() + np.packbits(marked).tobytes())
    added = "1 accepted row" if n_rows == 1 else f"{n_rows:,} accepted rows"
    source = replace(table.source, name=f"{table.source.name} and {added}")
    rows = Rows(pieces(), names, [], has_lines)
    with about(table.source.name):
        return collect(rows, source, digest.hexdigest, ROWS_IN_MEMORY, None)


def _noun(kind: pl.DataType | type[pl.DataType]) -> str:
    return "text" if kind == pl.String else "dates" if kind.is_temporal() else "numbers"


def common_types(schemas: Sequence[pl.Schema], names: Sequence[str]) -> dict[str, pl.DataType]:
    """Return the type of each column over all files: a common type of numbers, or text."""
    types = {}
    for name in names:
        found = {schema[name] for schema in schemas if schema[name] != pl.Null}
        if len(found) > 1:
            # A float would round long integers, so that different identifiers become equal.
            if all(kind.is_unsigned_integer() for kind in found):
                found = {pl.UInt64()}
            elif all(kind.is_integer() for kind in found):
                found = {pl.String() if pl.UInt64() in found else pl.Int64()}
            else:
                is_number = all(kind.is_numeric() for kind in found)
                found = {pl.Float64() if is_number else pl.String()}
        types[name] = next(iter(found), pl.String())
    return types


def typed_columns(frame: pl.DataFrame, types: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Return the columns in `types`, converted to these types."""
    # Do not use expressions, which treat the names ``*`` and ``^a.*$`` as patterns.
    return pl.DataFrame([frame[name].cast(kind) for name, kind in types.items()])


def plain_types(frame: pl.DataFrame, *, as_text: Collection[str] = ()) -> pl.DataFrame:
    """Reduce the types of columns to booleans, numbers of up to 64 bits, dates and strings.

    Wider whole numbers and times of day become text. So do dates if the column is in `as_text` or
    has a date outside the years 1 to 9999.
    """
    columns = frame.iter_columns()
    # Unlike a list of columns, a mapping keeps empty names.
    return pl.DataFrame({c.name: _plain(c, c.name in as_text) for c in columns})


def _plain(column: pl.Series, as_text: bool) -> pl.Series:
    dtype = column.dtype
    if dtype in (pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    if isinstance(dtype, pl.Decimal) and not dtype.scale:
        return column.cast(pl.Int64 if (dtype.precision or 38) <= _DIGITS_64 else pl.String)
    if dtype in (pl.Int128, pl.UInt128):
        return column.cast(pl.String)
    if dtype.is_decimal():
        return column.cast(pl.Float64)
    if dtype == pl.Time:
        return _clock_texts(column.to_physical(), "ns")
    if dtype == pl.Binary:
        return column.bin.encode("hex")
    if isinstance(dtype, pl.Duration):
        return column.to_physical() / _PER_SECOND[dtype.time_unit]
    if dtype in (pl.Date, pl.Datetime):
        stored, named = column.to_physical(), _have_names(column)
        if named.all() and not as_text:
            return column
        unit = dtype.time_unit if isinstance(dtype, pl.Datetime) else "days"
        written = column.set(~named, None).cast(pl.String)
        numbers = stored.cast(pl.String) + f" {unit} after 1970-01-01"
        return written.zip_with(named | stored.is_null(), numbers)
    if dtype.is_nested() or dtype == pl.Object:
        return pl.Series(column.name, json_texts(column.to_list()), dtype=pl.String)
    return column


def json_texts(values: Iterable[Any]) -> list[str | None]:
    """Convert nested values to JSON."""
    return [None if v is None else json.dumps(v, ensure_ascii=False, default=str) for v in values]


def _clock_texts(counts: pl.Series, unit: str) -> pl.Series:
    """Convert times since midnight to text; unlike polars' type for times, text can be 24:00.

    >>> _clock_texts(pl.Series([0, 86_400_000, 3_723_040, None]), "ms").to_list()
    ['00:00:00', '24:00:00', '01:02:03.04', None]
    """
    size, per_second = counts.abs(), _PER_SECOND[unit]
    seconds = size // per_second
    parts = [seconds // 3600, seconds // 60 % 60, seconds % 60]
    hour, minute, second = (part.cast(pl.String).str.zfill(2) for part in parts)
    texts = hour + ":" + minute + ":" + second
    rest = size % per_second
    if (rest != 0).any():
        digits = rest.cast(pl.String).str.zfill(len(str(per_second)) - 1)
        texts = (texts + "." + digits.str.strip_chars_end("0")).zip_with(rest != 0, texts)
    return texts.zip_with(counts >= 0, "-" + texts).alias(counts.name)


def _have_names(dates: pl.Series) -> pl.Series:
    """Return which dates are in the years 1 to 9999 in all time zones."""
    seconds, margin = dates.to_physical().cast(pl.Int64), 0
    if isinstance(dates.dtype, pl.Datetime):
        seconds //= _PER_SECOND[dates.dtype.time_unit]
        margin = _DAY if dates.dtype.time_zone else 0
    else:
        seconds *= _DAY
    return seconds.is_between(_FIRST_SECOND + margin, LAST_SECOND - margin)


def far_dates(batch: pa.RecordBatch) -> set[str]:
    """Return the names of columns with a date outside the years 1 to 9999."""
    frame = as_polars(pa.Table.from_batches([batch]))
    dates = [column for column in frame if column.dtype in (pl.Date, pl.Datetime)]
    return {column.name for column in dates if not _have_names(column).all()}


def remark_on_type(kind: pa.DataType) -> str:
    """Return a note on the conversion of a type; ``""`` if there is nothing to note."""
    if kind == pa.month_day_nano_interval():
        return "Intervals read as seconds, a year as 365.25 days and a month as 30"
    if pa.types.is_duration(kind):
        return DURATIONS
    return NESTED if pa.types.is_nested(kind) else ""


def validate_cells(rows: pa.RecordBatch | pa.Table) -> None:
    """Raise ArrowInvalid if cells are invalid for their types."""
    rows.validate()
    for column in rows.columns:
        # A full check refuses 24:00, which `as_polars` can read.
        column.validate(full=not pa.types.is_time(column.type))


def as_polars(table: pa.Table) -> pl.DataFrame:
    """Convert an Arrow table; drop the metadata of its columns, which may be damaged."""
    columns = [_bare(column) for column in table.columns]
    # Use numbers as names, because polars would rename a column without a name.
    numbers = [str(number) for number in range(len(columns))]
    frame = pl.DataFrame(pl.from_arrow(pa.Table.from_arrays(columns, numbers)))
    frame.columns = table.schema.names
    return frame


def _bare(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert types on which polars panics, and times from 24:00 on, which polars makes null."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _bare(column.cast(kind.storage_type))
    if pa.types.is_decimal256(kind):
        return column.cast(pa.float64() if kind.scale else pa.large_string())
    if pa.types.is_time(kind):
        counts = pa.int64() if kind.bit_width == 64 else pa.int32()
        held = pa.chunked_array([chunk.view(counts) for chunk in column.chunks], counts)
        return _to_arrow(_clock_texts(pl.Series(held).cast(pl.Int64), kind.unit))
    if kind == pa.month_day_nano_interval():
        return _to_arrow(pl.concat(map(_interval_seconds, column.chunks or [pa.array([], kind)])))
    if pa.types.is_timestamp(kind) and not _is_zone(kind.tz):
        return column.cast(pa.timestamp(kind.unit, "UTC"))
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    while inner:
        part = inner.pop()
        if pa.types.is_decimal256(part) or (pa.types.is_timestamp(part) and not _is_zone(part.tz)):
            raise ValueError(f"{part} inside other values is not read")
        inner += [part.field(number).type for number in range(part.num_fields)]
    return column


def _interval_seconds(intervals: pa.Array) -> pl.Series:
    stored = np.frombuffer(intervals.buffers()[1] or b"", _INTERVAL)
    parts = stored[intervals.offset : intervals.offset + len(intervals)]
    months = np.fmod(parts["months"], 12)
    days = 365.25 / 12 * (parts["months"] - months) + 30.0 * months + parts["days"]
    seconds = pl.Series(86_400 * days + parts["ns"] / 10**9)
    return seconds.set(pl.Series(intervals.is_null().to_numpy(zero_copy_only=False)), None)


def _to_arrow(column: pl.Series) -> pa.Array:
    return column.to_arrow(compat_level=pl.CompatLevel.oldest())


def _is_zone(name: str | None) -> bool:
    try:
        pl.Series(dtype=pl.Int64).cast(pl.Datetime("us", name))
    except pl.exceptions.ComputeError:
        return False
    return (name or "")[:1] not in ("+", "-")


def as_frame(table: pa.Table, has_lines: bool) -> tuple[pl.DataFrame, IntArray | None]:
    """Split an Arrow table into a frame and the line numbers in its last column, if it has them."""
    if not has_lines:
        return pl.DataFrame(pl.from_arrow(table)), None
    *columns, last = range(table.num_columns)
    frame, lines = (pl.DataFrame(pl.from_arrow(table.select(k))) for k in (columns, [last]))
    # Arrow's conversion to numpy would load pandas, if it is installed.
    return frame, lines.to_series().to_numpy()


def as_arrow(frame: pl.DataFrame, lines: IntArray | None = None) -> pa.Table:
    """Convert rows to an Arrow table whose last column contains the line numbers, if given."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    return table if lines is None else table.append_column("line", line_column(lines))


def line_column(lines: IntArray) -> pa.Array:
    """Convert line numbers (n,) to an Arrow column without copying them or loading pandas."""
    held = pa.py_buffer(np.ascontiguousarray(lines, dtype=np.int64))
    return pa.Array.from_buffers(pa.int64(), len(lines), [None, held])


def hash_cells(frame: pl.DataFrame, digest: Any) -> int:
    """Update a hash with the names, types and cells of columns; return their number of bytes."""
    n_bytes = 0
    is_missing = frame.select(pl.all().is_null())
    for column, is_null in zip(frame.iter_columns(), is_missing.iter_columns(), strict=True):
        digest.update(missing := np.packbits(is_null.to_numpy()).tobytes())
        # Leave out missing cells, whose memory has undefined content.
        known = (column.drop_nulls() if column.null_count() else column).to_frame().rechunk()
        cells = known.to_arrow(compat_level=pl.CompatLevel.oldest())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, cells.schema) as stream:
            stream.write_table(cells)
        digest.update(written := sink.getvalue())
        n_bytes += len(missing) + written.size
    return n_bytes


def _held(frame: pl.DataFrame, lines: IntArray | None) -> tuple[pl.DataFrame, IntArray | None]:
    return frame, lines


def _unread() -> tuple[pl.DataFrame, IntArray | None]:
    raise AssertionError("a part whose rows are not needed is read")


def _spooled(
    number: int, path: str, address: StorePath | None, has_lines: bool
) -> tuple[pl.DataFrame, IntArray | None]:
    """Read one batch of a temporary file, or of the file's copy in a store."""
    try:
        with ExitStack() as held:
            if address is None or Path(path).exists():
                file = held.enter_context(pa.OSFile(os.fsencode(path)))
            else:
                file = held.enter_context(place_of(address).opened())
            opened = held.enter_context(pa.ipc.open_file(file))
            return as_frame(pa.Table.from_batches([opened.get_batch(number)]), has_lines)
    except (OSError, pa.ArrowException, KpcaError) as error:
        raise UnreachableError(
            f"its temporary copy cannot be read ({reason_of(error)}); keep it in its place until "
            "the run ends, where all workers can read it."
        ) from None


def _stored(
    pieces: Iterable[pa.Table], has_lines: bool, size: int
) -> tuple[TemporaryPath, list[Load], int]:
    folder = copy_folder()
    path = folder.path / "rows.arrow"
    n_rows, n_parts, writer = 0, 0, None
    try:
        with ExitStack() as held:
            for rows in recut(pieces, size):
                require_memory(rows.nbytes)
                if rows.nbytes > _LARGEST_BATCH:
                    raise MemoryLimitError(
                        f"{rows.num_rows:,} of its rows take {rows.nbytes / 2**30:.1f} GB, more "
                        f"than the {_LARGEST_BATCH / 2**30:g} GB that are read at once; drop "
                        "columns of long texts."
                    )
                (part,) = rows.combine_chunks().to_batches()
                require_disk(folder.path, part.nbytes)
                if writer is None:
                    file = held.enter_context(pa.OSFile(os.fsencode(path), "wb"))
                    writer = held.enter_context(pa.ipc.new_file(file, part.schema))
                writer.write_batch(part)
                n_rows, n_parts = n_rows + part.num_rows, n_parts + 1
        place, address = COPIES_IN.get(), None
        if isinstance(place, StorePath):
            address = place / f"{secrets.token_hex(8)}.arrow"
            place_of(address).upload(path)
    except BaseException as error:
        folder.close()
        if (failure := storage_error(error, path.parent.parent)) is not None:
            raise failure from error
        raise
    read = partial(_spooled, path=str(path), address=address, has_lines=has_lines)
    return folder, [partial(read, number) for number in range(n_parts)], n_rows


def recut(pieces: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """Yield tables of `size` rows each; the last one may be shorter."""
    held: list[pa.Table] = []
    n_rows = 0
    for piece in pieces:
        held.append(piece)
        n_rows += piece.num_rows
        if n_rows >= size:
            rows = pa.concat_tables(held)
            whole = n_rows - n_rows % size
            for start in range(0, whole, size):
                yield rows.slice(start, size)
            held, n_rows = [rows.slice(whole)], n_rows - whole
    if n_rows:
        yield pa.concat_tables(held)


def _ahead(items: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the items; read each in a thread while the caller processes the one before."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, items, None)
        while (item := following.result()) is not None:
            following = pool.submit(next, items, None)
            yield item
