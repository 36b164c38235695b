"""Read Parquet files and folders of them."""

from __future__ import annotations

import bisect
import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from kpca_apps.errors import InputError, MemoryLimitError, UnlikeFilesError, about
from kpca_apps.names import in_prose, is_pattern, one_line
from kpca_apps.system.files.temporary import TemporaryPath
from kpca_apps.system.limits import require_columns, require_memory, require_table
from kpca_apps.tables.input_file import InputFile, KnownFile, ReadOptions, damage_refused
from kpca_apps.tables.read.hive import (
    frame_of_values,
    is_partitioned,
    partitioned_files,
    refuse_folders_beside,
    unhidden,
    with_values,
)
from kpca_apps.tables.read.reader import Folder, Reader, begins
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import (
    Load,
    PartedTable,
    Rows,
    Table,
    as_arrow,
    as_polars,
    collect,
    far_dates,
    part_size,
    parted_table,
    plain_types,
    require_cells,
    require_same_columns,
    validate_cells,
)

if TYPE_CHECKING:
    import pyarrow.parquet as pq

PARQUET_SUFFIXES = (".parquet", ".pq")
# Files with longer row groups are copied, as reading a row decodes all rows before it in its group.
_LONGEST_GROUP = 1 << 18
# Rows decoded at once: maximum number, minimum number (if rows are long), maximum bytes.
_BATCH_ROWS, _LEAST_ROWS, _BATCH_BYTES = 1 << 16, 1 << 5, 1 << 26
_LEAF = 8  # bytes assumed for each nested value that becomes text, besides its own text
_MOST_TEXT = 1 << 30  # maximum bytes of all texts; a small file may repeat a long text in many rows


def _folder_files(path: Path) -> tuple[list[Path], pl.DataFrame]:
    found = [item for item in unhidden(path) if item.suffix.lower() in PARQUET_SUFFIXES]
    if not found and is_partitioned(path):
        named = partitioned_files(path, PARQUET_SUFFIXES)
        return [item for item, _ in named], frame_of_values([values for _, values in named])
    if not found:
        raise InputError(
            "this is a folder without Parquet files or other tables; name a file, or a folder of "
            "them."
        )
    refuse_folders_beside(path, PARQUET_SUFFIXES)
    return found, pl.DataFrame()


def _known(path: Path) -> KnownFile:
    if not path.is_file():
        raise InputError("is not a file, or a link that leads nowhere; repair or remove it.", path)
    try:
        return KnownFile.at(path)
    except OSError as error:
        raise InputError(f"cannot be opened ({error.strerror}).", path) from None


@contextmanager
def _opened(file: KnownFile, **options: Any) -> Iterator[pq.ParquetFile]:
    # Import here: importing pyarrow.parquet takes as long as reading a small table.
    import pyarrow.parquet as pq

    file.check()
    with (
        about(file.label),
        damage_refused("Parquet"),
        # Pass paths as bytes, as they may be invalid UTF-8.
        pa.OSFile(os.fsencode(file.path)) as handle,
        # Old writers store times as 96-bit nanoseconds. 64-bit nanoseconds would end in 2262.
        pq.ParquetFile(
            handle, pre_buffer=False, coerce_int96_timestamp_unit="us", **options
        ) as opened,
    ):
        yield opened


# File, number of its first row, number of rows, and values of further columns (a one-row frame).
Slice = tuple[KnownFile, int, int, pl.DataFrame]


def _slices(slices: Sequence[Slice], as_text: frozenset[str]) -> tuple[pl.DataFrame, None]:
    # Read a whole slice first, so that its size is checked before its texts are expanded.
    frames = [
        with_values(arrow_frame(list(_read(file, offset, length)), as_text), values)
        for file, offset, length, values in slices
    ]
    return (frames[0] if len(frames) == 1 else pl.concat(frames, rechunk=True)), None


def _read(file: KnownFile, offset: int, length: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of rows of a file; raise MemoryLimitError if their texts exceed the memory.

    Texts stay codes of a dictionary, as a few bytes may represent a long text in every row.
    """
    with _opened(file) as opened:
        metadata = opened.metadata
        starts = _group_starts(metadata)
        first = bisect.bisect_right(starts, offset) - 1
        last = bisect.bisect_left(starts, offset + length)
        groups = [k for k in range(first, last) if starts[k] < starts[k + 1]]
        texts, worst = _check_sizes(metadata, groups, file.size)
    n_rows = min(max(_BATCH_BYTES // max(worst, 1), _LEAST_ROWS), _BATCH_ROWS)
    # If the rows may be large, a first pass counts their bytes only.
    for is_kept in (False, True) if worst * length > _BATCH_BYTES else (True,):
        skip, n_left, n_bytes = offset - starts[first], length, 0
        with _opened(file, metadata=metadata, read_dictionary=texts) as opened:
            for batch in opened.iter_batches(n_rows, row_groups=groups, use_threads=False):
                rows = batch.slice(skip, n_left)
                validate_cells(rows)  # polars would accept invalid UTF-8
                skip, n_left = max(skip - batch.num_rows, 0), n_left - rows.num_rows
                n_bytes += sum(map(text_bytes, rows.columns))
                require_text(n_bytes)
                if is_kept and rows.num_rows:
                    yield rows
                if not n_left:
                    break
            if n_left:
                raise ValueError(f"it promises {metadata.num_rows} rows and has fewer")


def refuse_damaged(file: pa.NativeFile) -> None:
    """Raise InputError if the footer of a file is damaged."""
    import pyarrow.parquet as pq

    with damage_refused("Parquet"):
        metadata = pq.ParquetFile(file).metadata
        _group_starts(metadata)
        _check_sizes(metadata, range(metadata.num_row_groups), file.size())


def _group_starts(metadata: pq.FileMetaData) -> list[int]:
    heights = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    if min(heights, default=0) < 0 or sum(heights) != metadata.num_rows:
        raise ValueError(f"it promises {metadata.num_rows} rows and has {sum(heights)}")
    return list(accumulate(heights, initial=0))


def _check_sizes(
    metadata: pq.FileMetaData, groups: Sequence[int], n_bytes: int
) -> tuple[list[str], int]:
    """Check the sizes of row groups.

    Returns the text columns that can be read as codes of a dictionary, and the largest number of
    bytes per row in the other columns.
    """
    texts, worst, largest = [], 0, 0
    for k in range(metadata.num_columns):
        is_text, of_column = False, 0
        for group in map(metadata.row_group, groups):
            column = group.column(k)
            name, unpacked = column.path_in_schema, column.total_uncompressed_size
            if not 0 <= column.total_compressed_size <= n_bytes or unpacked < 0:
                raise ValueError("a column of impossible size")
            largest = max(largest, unpacked)
            encodings = " ".join(column.encodings)
            # A text that is stored once may be repeated in every cell.
            repeats = "DICTIONARY" in encodings or "DELTA_BYTE_ARRAY" in encodings
            cell = max(8, metadata.schema.column(k).length)
            if column.physical_type == "BYTE_ARRAY":
                cell = unpacked if repeats else 0
                is_text |= repeats
            # A nested column, which usually has a dot in its name, is not read as dictionary codes.
            if "." in name or "DELTA" in encodings or column.physical_type[:5] == "FIXED":
                values = max(1, column.num_values // group.num_rows)
                of_column = max(of_column, cell * values)
        worst += of_column
        if is_text and not of_column:
            texts.append(name)
    require_memory(largest, copies=1)
    return texts, worst


def arrow_frame(
    rows: list[pa.RecordBatch], as_text: Collection[str], kind: str = "Parquet"
) -> pl.DataFrame:
    """Convert rows to a frame, with the column types of the whole table."""
    with damage_refused(kind):
        return plain_types(as_polars(pa.Table.from_batches(rows)), as_text=as_text)


def require_text(n_bytes: int) -> None:
    """Raise MemoryLimitError if a table has too many bytes of text."""
    require_memory(n_bytes)
    if n_bytes > _MOST_TEXT:
        raise MemoryLimitError(
            f"its text cells unpack to {n_bytes / 2**30:.1f} GB, more than the "
            f"{_MOST_TEXT / 2**30:g} GB that are read; drop columns of long texts, or split the "
            "file."
        )


def text_bytes(column: pa.Array, nested: int = 0) -> int:
    """Return the number of bytes of a column's texts, with repeated texts and nested values."""
    kind, types = column.type, pa.types
    if types.is_struct(kind):
        return sum(text_bytes(field, _LEAF) for field in column.flatten())
    if types.is_map(kind):
        return text_bytes(column.keys, _LEAF) + text_bytes(column.items, _LEAF)
    if types.is_nested(kind):
        return text_bytes(column.flatten(), _LEAF)
    n_bytes = len(column) * nested
    if types.is_fixed_size_binary(kind):
        return n_bytes + len(column) * int(kind.byte_width)
    texts = column.dictionary if types.is_dictionary(kind) else column
    if texts.type in (pa.string_view(), pa.binary_view()):
        # A view has 16 bytes, of which the first four are the length of the text.
        views = np.frombuffer(texts.buffers()[1] or b"", np.int32)[::4]
        lengths = views[texts.offset : texts.offset + len(texts)]
        # The lengths of missing texts are undefined.
        lengths = np.where(texts.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    elif texts.type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        width = np.int64 if texts.type in (pa.large_string(), pa.large_binary()) else np.int32
        ends = np.frombuffer(texts.buffers()[1] or b"", width)
        lengths = np.diff(ends[texts.offset : texts.offset + len(texts) + 1])
    else:
        return n_bytes
    if texts is not column:
        numbers = column.indices.to_numpy(zero_copy_only=False)
        lengths = lengths[numbers[np.isfinite(numbers)].astype(np.int64)]
    return n_bytes + int(lengths.sum(dtype=np.int64))


def _refuse_others(columns: dict[str, str], first: dict[str, str], model: str) -> None:
    files = "the files of a folder make one table and"
    model = one_line(model, 200)
    require_same_columns(columns, first, model, files)
    for place, name in enumerate(columns):
        if list(first)[place] != name or columns[name] != first[name]:
            here, there = one_line(columns[name]), one_line(first[name])
            what = "stands elsewhere" if columns[name] == first[name] else f"is {here}"
            raise UnlikeFilesError(
                f'its column "{one_line(name)}" {what}, and is {there} in {model}; write all files '
                "of the folder alike."
            )


def _read_file(file: InputFile) -> Table | PartedTable:
    copy = file.unpacked
    sha256 = file.sha256
    # Workers on other machines check the hash. They cannot use a temporary copy, so it has none.
    known = KnownFile.at(copy.path, file.label) if copy else replace(file.file, digest=sha256)
    source = replace(file.source, sha256=sha256)
    return _read_files([known], pl.DataFrame(), source, file.options, copy)


def _read_folder(folder: Folder) -> Table | PartedTable:
    path = Path(folder.path)
    files, values = _folder_files(path)
    known = list(map(_known, files))
    noun = "file" if len(known) == 1 else "files, in the order of their names"
    notes = [f"Read from {len(known)} Parquet {noun}."]
    if values.width:
        columns = in_prose([f'"{one_line(name, 60)}"' for name in values.columns])
        notes.append(f"Named after folders: {columns}.")
    known = [replace(file, digest=file.sha256()) for file in known]
    listing = "".join(
        f"{file.digest}  {item.relative_to(path).as_posix()}\n"
        for file, item in zip(known, files, strict=True)
    )
    sha256 = hashlib.sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()
    n_bytes = sum(file.size for file in known)
    source = SourceInfo(path.absolute().name, "", sha256, n_bytes, 0, 0, notes=tuple(notes))
    return _read_files(known, values, source, folder.options, folder.copy)


def _read_files(
    known: list[KnownFile],
    values: pl.DataFrame,
    source: SourceInfo,
    options: ReadOptions,
    copy: TemporaryPath | None = None,
) -> Table | PartedTable:
    """Read Parquet files, in parts if they are large; read a copy if row groups are long.

    The columns of `values`, a frame with a row for each file, follow the columns of the files.
    """
    heights, longest = [], 0
    first: dict[str, str] = {}
    as_text: set[str] = set()  # columns with a date outside the years 1 to 9999
    for file in known:
        with _opened(file) as opened:
            metadata, schema = opened.metadata, opened.schema_arrow
            starts = _group_starts(metadata)
            require_columns(len(schema))
            for name in filter(is_pattern, schema.names):
                raise InputError(
                    f'a column is called "{one_line(name)}", which would be read as a pattern of '
                    "names: rename it, for example without the $."
                )
            for name, n in Counter(schema.names).items():
                if n > 1:
                    raise InputError(
                        f'{n} columns are called "{one_line(name)}"; give each its own name.'
                    )
            dtypes = as_polars(schema.empty_table()).schema
            columns = {
                name: "String" if dtype in (pl.Categorical, pl.Enum) else str(dtype)
                for name, dtype in dtypes.items()
            }
            dates = [name for name, dtype in dtypes.items() if dtype in (pl.Date, pl.Datetime)]
            for batch in opened.iter_batches(_BATCH_ROWS, columns=dates) if dates else ():
                as_text |= far_dates(batch)
            first = first or columns
            _refuse_others(columns, first, known[0].label)
        heights.append(metadata.num_rows)
        longest = max(longest, *(b - a for a, b in pairwise(starts)), 0)
    # Some writers repeat the partition columns in the files themselves.
    values = pl.DataFrame([one for one in values.iter_columns() if one.name not in first])
    names = [*first, *values.columns]
    n_rows, n_columns = sum(heights), len(names)
    require_cells(n_rows, n_columns)
    source = replace(source, format="parquet", n_rows=n_rows, n_columns=n_columns)
    is_small = n_rows <= options.in_memory_rows
    size = n_rows if is_small else options.part_rows or part_size(n_columns)
    rows = [values.slice(number, 1) for number in range(len(known))]
    loads = _loads(list(zip(known, heights, rows, strict=True)), size, as_text)
    if is_small:
        require_table(n_rows, n_columns)
        return Table(next(loads)()[0], None, source)
    if longest <= _LONGEST_GROUP:
        return parted_table(source, tuple(names), loads, size, copy)
    pieces = (
        as_arrow(with_values(arrow_frame([batch], as_text), values_of_file))
        for file, height, values_of_file in zip(known, heights, rows, strict=True)
        if height
        for batch in _read(file, 0, height)
    )
    return collect(Rows(pieces, names, [], False), source, lambda: source.sha256, 0, size)


def _loads(
    files: Sequence[tuple[KnownFile, int, pl.DataFrame]], size: int, as_text: Collection[str]
) -> Iterator[Load]:
    """Yield the loader of each part of `size` rows; `files` are (file, number of rows, values)."""
    number, offset, n_rows = 0, 0, sum(height for _, height, _ in files)
    for start in range(0, n_rows, size):
        wanted, slices = min(size, n_rows - start), list[Slice]()
        while wanted:
            file, height, values = files[number]
            length = min(wanted, height - offset)
            if length:
                slices.append((file, offset, length, values))
            wanted, offset = wanted - length, offset + length
            if offset == height:
                number, offset = number + 1, 0
        yield partial(_slices, tuple(slices), frozenset(as_text))


PARQUET = Reader("Parquet", "", _read_file, begins(b"PAR1"))
PARQUET_FOLDER = Reader("Parquet", "", _read_folder)
