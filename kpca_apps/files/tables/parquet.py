"""Parquet files, one or a folder of them: what they hold, and some of their rows."""

from __future__ import annotations

import bisect
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from kpca_apps.errors import InputError, KpcaError
from kpca_apps.files.limits import require_columns, require_memory
from kpca_apps.files.names import one_line, suggest
from kpca_apps.files.tables.plain import DAMAGE, damaged, have_names, plain_types, require_text
from kpca_apps.files.tables.source import KnownFile

__all__ = ["LONGEST_GROUP", "PARQUET_SUFFIXES", "ParquetFiles", "ParquetRows", "folder_files"]

PARQUET_SUFFIXES = (".parquet", ".pq")
LONGEST_GROUP = 1 << 18
"""Rows of the longest group that is read as it is: for a few rows, all before them are decoded."""

# Rows decoded at once, and fewer where one may be long; bytes they may take at the worst.
_BATCH_ROWS, _LEAST_ROWS, _BATCH_BYTES = 1 << 16, 1 << 5, 1 << 26
# Bytes of a value in a list, as text.
_LEAF = 8


@dataclass(frozen=True)
class ParquetRows:
    """Rows of one part, as slices (file, first row, rows) of one file or several.

    Columns of dates named in `as_text` are read as text, as the whole table needs it.
    """

    slices: tuple[tuple[KnownFile, int, int], ...]
    as_text: frozenset[str]

    def read(self) -> tuple[pl.DataFrame, None]:
        """Return the rows, typed as those of the whole table."""
        # All of a slice first: what is too much is found out before it is unpacked.
        frames = [
            _frame(list(_read(file, offset, length)), file.label, self.as_text)
            for file, offset, length in self.slices
        ]
        return pl.concat(frames, rechunk=True), None


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files that make one table, in the order of their rows.

    `heights` are their rows, `longest_group` those of their longest group; `as_text` names the
    columns in which a date lies outside the years 1 to 9999.
    """

    files: tuple[KnownFile, ...]
    heights: tuple[int, ...]
    columns: tuple[str, ...]
    longest_group: int
    as_text: frozenset[str]

    @classmethod
    def at(cls, files: Sequence[KnownFile]) -> ParquetFiles:
        """Look at what Parquet files hold; refuse other columns than those of the first."""
        heights, longest = [], 0
        first: dict[str, str] = {}
        far: set[str] = set()
        for file in files:
            with _opened(file) as opened:
                metadata, schema = opened.metadata, opened.schema_arrow
                starts = _group_starts(metadata)
                require_columns(file.label, len(schema))
                dtypes = _as_polars(schema.empty_table()).schema
                columns = {name: _kind(dtype) for name, dtype in dtypes.items()}
                far |= _far_dates(opened, dtypes)
            heights.append(metadata.num_rows)
            longest = max(longest, *(b - a for a, b in pairwise(starts)), 0)
            first = first or columns
            _refuse_others(columns, first, file.label, files[0].label)
        return cls(tuple(files), tuple(heights), tuple(first), longest, frozenset(far))

    @property
    def n_rows(self) -> int:
        """Rows of all."""
        return sum(self.heights)

    def parts(self, size: int) -> Iterator[ParquetRows]:
        """Yield how each part of so many rows is read."""
        number, offset = 0, 0
        for start in range(0, self.n_rows, size):
            wanted, slices = min(size, self.n_rows - start), []
            while wanted:
                length = min(wanted, self.heights[number] - offset)
                if length:
                    slices.append((self.files[number], offset, length))
                wanted, offset = wanted - length, offset + length
                if offset == self.heights[number]:
                    number, offset = number + 1, 0
            yield ParquetRows(tuple(slices), self.as_text)

    def pieces(self) -> Iterator[pa.Table]:
        """Yield all rows, a few at a time."""
        for file, height in zip(self.files, self.heights, strict=True):
            for batch in _read(file, 0, height) if height else ():
                frame = _frame([batch], file.label, self.as_text)
                yield frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def folder_files(path: Path) -> list[KnownFile]:
    """Name the Parquet files of a folder in the order of their names.

    What begins with a dot or an underscore is left out, as other readers do, and so are files that
    are not Parquet by their name.
    """
    label = one_line(str(path), 200)
    try:
        found = sorted(item for item in path.iterdir() if not item.name.startswith((".", "_")))
    except OSError as error:
        raise InputError(f"{label}: cannot be looked into ({error.strerror}).") from None
    known = [_member(item) for item in found if item.suffix.lower() in PARQUET_SUFFIXES]
    if not known:
        raise InputError(
            f"{label}: this is a folder without Parquet files; name a file, or a folder of them."
        )
    for item in found:
        # Rows may be kept in folders by year or the like: to leave them out would be a loss.
        if item.is_dir():
            raise InputError(
                f"{one_line(str(item), 200)}: is a folder beside the Parquet files of {label}; "
                "put all files into one folder, or this one elsewhere."
            )
    return known


def _member(path: Path) -> KnownFile:
    """Take note of a file of a folder; refuse what bears the name of one and is none."""
    label = one_line(str(path), 200)
    if not path.is_file():
        raise InputError(
            f"{label}: is not a file, or a link that leads nowhere; repair or remove it."
        )
    try:
        return KnownFile.at(path, label)
    except OSError as error:
        raise InputError(f"{label}: cannot be looked at ({error.strerror}).") from None


@contextmanager
def _opened(file: KnownFile, **options: Any) -> Iterator[pq.ParquetFile]:
    """Open a file; turn what its reader raises into one line that names it."""
    file.check()
    try:
        # As bytes, as a path need not be UTF-8.
        with (
            pa.OSFile(os.fsencode(file.path)) as handle,
            # The nanoseconds of old writers are counted in 96 bits: 64 hold no year beyond 2262.
            pq.ParquetFile(
                handle, pre_buffer=False, coerce_int96_timestamp_unit="us", **options
            ) as opened,
        ):
            yield opened
    except KpcaError:
        raise
    except DAMAGE as error:
        raise damaged(file.label, "Parquet", error) from None


def _read(file: KnownFile, offset: int, length: int) -> Iterator[pa.RecordBatch]:
    """Yield rows of a file, a few at a time, unless their texts take more memory than there is.

    A few bytes can stand for a long text in every row, so texts stay numbers in a dictionary.
    """
    with _opened(file) as opened:
        metadata = opened.metadata
        starts = _group_starts(metadata)
        first = bisect.bisect_right(starts, offset) - 1
        last = bisect.bisect_left(starts, offset + length)
        groups = [k for k in range(first, last) if starts[k] < starts[k + 1]]
        texts, worst = _looked_at(metadata, groups, file)
    n_rows = min(max(_BATCH_BYTES // max(worst, 1), _LEAST_ROWS), _BATCH_ROWS)
    # Where no dictionary helps, they are counted before any of them is kept.
    for is_kept in (False, True) if worst * length > _BATCH_BYTES else (True,):
        skip, left, n_bytes = offset - starts[first], length, 0
        with _opened(file, metadata=metadata, read_dictionary=texts) as opened:
            for batch in opened.iter_batches(n_rows, row_groups=groups, use_threads=False):
                rows = batch.slice(skip, left)
                # Text that is no UTF-8, above all: polars would take it as it is.
                rows.validate(full=True)
                skip, left = max(skip - batch.num_rows, 0), left - rows.num_rows
                n_bytes += sum(map(_text_bytes, rows.columns))
                require_text(n_bytes, file.label)
                if is_kept and rows.num_rows:
                    yield rows
                if not left:
                    break
            if left:
                raise ValueError(f"it promises {metadata.num_rows} rows and has fewer")


def _group_starts(metadata: pq.FileMetaData) -> list[int]:
    """Return the first row of each group, and the number of all rows."""
    heights = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    if min(heights, default=0) < 0 or sum(heights) != metadata.num_rows:
        raise ValueError(f"it promises {metadata.num_rows} rows and has {sum(heights)}")
    return list(accumulate(heights, initial=0))


def _looked_at(
    metadata: pq.FileMetaData, groups: Sequence[int], file: KnownFile
) -> tuple[list[str], int]:
    """Refuse groups whose sizes cannot be.

    Return the columns of texts that can be read as numbers in a dictionary, and how many bytes
    the others of a row may take at the worst.
    """
    texts, worst, largest = [], 0, 0
    for k in range(metadata.num_columns):
        is_text, of_column = False, 0
        for group in map(metadata.row_group, groups):
            column = group.column(k)
            name, unpacked = column.path_in_schema, column.total_uncompressed_size
            if not 0 <= column.total_compressed_size <= file.size or unpacked < 0:
                raise ValueError("a column of impossible size")
            largest = max(largest, unpacked)
            encodings = " ".join(column.encodings)
            # What one cell holds may be repeated in every other of the column.
            repeats = "DICTIONARY" in encodings or "DELTA_BYTE_ARRAY" in encodings
            cell = max(8, metadata.schema.column(k).length)
            if column.physical_type == "BYTE_ARRAY":
                cell = unpacked if repeats else 0
                is_text |= repeats
            # A name with a dot is most often one of a nested column.
            if "." in name or "DELTA" in encodings or column.physical_type[:5] == "FIXED":
                values = max(1, column.num_values // group.num_rows)
                of_column = max(of_column, cell * values)
        worst += of_column
        if is_text and not of_column:
            texts.append(name)
    require_memory(file.label, largest, copies=1)
    return texts, worst


def _far_dates(opened: pq.ParquetFile, dtypes: pl.Schema) -> set[str]:
    """Name the columns of dates in which one lies outside the years 1 to 9999."""
    dates = [name for name, dtype in dtypes.items() if dtype in (pl.Date, pl.Datetime)]
    far: set[str] = set()
    for batch in opened.iter_batches(_BATCH_ROWS, columns=dates) if dates else ():
        frame = _as_polars(pa.Table.from_batches([batch]))
        far.update(name for name in dates if not have_names(frame[name]).all())
    return far


def _frame(rows: list[pa.RecordBatch], label: str, as_text: Collection[str]) -> pl.DataFrame:
    """Unpack rows, typed as those of the whole table."""
    try:
        table = pa.Table.from_batches(rows)
        return plain_types(_as_polars(table), as_text=as_text)
    except DAMAGE as error:
        raise damaged(label, "Parquet", error) from None


def _as_polars(table: pa.Table) -> pl.DataFrame:
    """Convert a table, without what its writer noted on the columns, which may be damaged."""
    columns = [_bare(column) for column in table.columns]
    # By numbers: a column without a name would be given one.
    numbers = [str(number) for number in range(len(columns))]
    frame = pl.DataFrame(pl.from_arrow(pa.Table.from_arrays(columns, numbers)))
    frame.columns = table.schema.names
    return frame


def _bare(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Take off what polars cannot read: types made of others, time zones that are no names."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return column.cast(kind.storage_type)
    if pa.types.is_timestamp(kind) and (kind.tz or "")[:1] in ("+", "-"):
        return column.cast(pa.timestamp(kind.unit, "UTC"))
    return column


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _text_bytes(column: pa.Array, nested: int = 0) -> int:
    """Bytes of all texts of a column, each in full however often a file repeats it.

    Of nested columns, which become text, all values count, however deep they lie.
    """
    kind, types = column.type, pa.types
    if types.is_struct(kind):
        return sum(_text_bytes(field, _LEAF) for field in column.flatten())
    if types.is_map(kind):
        return _text_bytes(column.keys, _LEAF) + _text_bytes(column.items, _LEAF)
    if types.is_nested(kind):
        return _text_bytes(column.flatten(), _LEAF)
    n_bytes = len(column) * nested
    if types.is_fixed_size_binary(kind):
        return n_bytes + len(column) * int(kind.byte_width)
    if types.is_dictionary(kind) and _is_text(kind.value_type):
        numbers = pl.Series(pl.from_arrow(column.indices)).drop_nulls()
        return n_bytes + int(_lengths(column.dictionary).gather(numbers).sum())
    return n_bytes + int(_lengths(column).sum()) if _is_text(kind) else n_bytes


def _lengths(texts: pa.Array) -> pl.Series:
    series = pl.Series(pl.from_arrow(texts))
    lengths = series.str.len_bytes() if series.dtype == pl.String else series.bin.size()
    return lengths.cast(pl.Int64)


def _kind(dtype: pl.DataType) -> str:
    """Types that read as the same are the same."""
    return "String" if dtype in (pl.Categorical, pl.Enum) else str(dtype)


def _refuse_others(columns: dict[str, str], first: dict[str, str], label: str, model: str) -> None:
    """Refuse a file whose columns are not those of the first."""
    for name in first:
        if name not in columns:
            raise InputError(
                f'{label}: has no column "{one_line(name)}", which {model} has; the files of a '
                f"folder make one table and need the same columns.{suggest(name, columns)}"
            )
    for place, name in enumerate(columns):
        if name not in first:
            raise InputError(
                f'{label}: its column "{one_line(name)}" is not in {model}; the files of a folder '
                "make one table and need the same columns."
            )
        if list(first)[place] != name or columns[name] != first[name]:
            here, there = one_line(columns[name]), one_line(first[name])
            what = "stands elsewhere" if columns[name] == first[name] else f"is {here}"
            raise InputError(
                f'{label}: its column "{one_line(name)}" {what}, and is {there} in {model}; '
                "write all files of the folder alike."
            )
