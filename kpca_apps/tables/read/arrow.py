"""Read Arrow files, Feather files, Arrow streams and record batches."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from kpca_apps.errors import InputError, storage_named
from kpca_apps.names import listed, reason_of, unique_names
from kpca_apps.system.files.spools import require_disk, spool_folder
from kpca_apps.system.limits import require_columns, require_memory
from kpca_apps.tables.input_file import InputFile, ReadOptions, damage_refused
from kpca_apps.tables.read.parquet import arrow_frame, require_text, text_bytes
from kpca_apps.tables.read.reader import Reader, begins, table_of
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import (
    PartedTable,
    Rows,
    Table,
    as_arrow,
    as_frame,
    collect,
    far_dates,
    hash_cells,
    json_texts,
    part_size,
    recut,
    remark_on_type,
    validate_cells,
)

_FILE = b"ARROW1\0\0"
_STREAM = b"\xff\xff\xff\xff"  # precedes the length of each message in newer files and streams
T = TypeVar("T")
_BATCH_ROWS = 1 << 16
_COPIES = 2  # number of copies of a batch that are in memory at the same time
_VIEWS = (pa.string_view(), pa.binary_view())
_MOST_BYTES = 1 << 42  # largest size of a column in one batch: 2**31 rows of 2 kB
_DICTIONARY, _BATCH = 2, 3  # codes of messages with a dictionary, or a batch of rows


def _rows(path: Path) -> Rows:
    far: set[str] = set()
    with damage_refused("Arrow"), _opened(path) as (schema, batches):
        require_columns(len(schema))
        names, notes, renamed = unique_names(schema.names)
        remarks = list(map(remark_on_type, schema.types))
        for remark in filter(None, dict.fromkeys(remarks)):
            columns = [name for name, one in zip(names, remarks, strict=True) if one == remark]
            notes.append(f"{remark}: {listed(columns)}.")
        dates = [k for k, kind in enumerate(schema.types) if pa.types.is_temporal(kind)]
        if dates:
            for batch in batches:
                far |= far_dates(_sound(batch, names).select(dates))

    def pieces() -> Iterator[pa.Table]:
        with damage_refused("Arrow"), _opened(path) as (_, batches):
            for batch in batches:
                checked = _sound(batch, names)
                for start in range(0, batch.num_rows, _BATCH_ROWS):
                    rows = checked.slice(start, _BATCH_ROWS)
                    # Check the size first, as repeated texts are about to be copied for each row.
                    require_text(sum(map(text_bytes, rows.columns)))
                    rows = pa.RecordBatch.from_arrays([*map(_clean, rows.columns)], names)
                    yield as_arrow(arrow_frame([rows], far, "Arrow"))

    return Rows(pieces(), names, notes, False, renamed)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Open a file or a stream; check the size of each batch before it is decompressed."""
    # Pass bytes, as paths may be invalid UTF-8. Do not map, as mapped pages count as memory.
    with pa.OSFile(os.fsencode(path)) as handle, pa.OSFile(os.fsencode(path)) as ahead:
        if handle.read(len(_FILE)) == _FILE:
            with pa.ipc.open_file(handle) as file:
                sizes = _sizes(ahead, _blocks_of_file(ahead))
                numbers = range(file.num_record_batches)
                yield file.schema, map(file.get_batch, _allowed(numbers, sizes))
        else:
            handle.seek(0)
            with pa.ipc.open_stream(handle) as stream:
                sizes = _sizes(ahead, _blocks_of_stream(ahead))
                yield stream.schema, _allowed(stream, sizes)


def _allowed(items: Iterable[T], sizes: Iterator[int]) -> Iterator[T]:
    """Yield items; before each, check that its decompressed bytes fit into memory."""
    found = iter(items)
    while True:
        require_memory(next(sizes, 0), copies=_COPIES)
        try:
            item = next(found)
        except StopIteration:
            return
        yield item


def _clean(column: pa.Array) -> pa.Array:
    """Make the views of missing texts empty, because invalid views would crash Arrow's cast."""
    kind = column.type
    if kind in _VIEWS:
        is_missing = column.is_null().to_numpy(zero_copy_only=False)
        if not is_missing.any():
            return column
        valid, views, *texts = column.buffers()
        numbers = np.frombuffer(views, np.int32).reshape(-1, 4).copy()
        numbers[column.offset : column.offset + len(column)][is_missing] = 0
        buffers = [valid, pa.py_buffer(numbers), *texts]
        return pa.Array.from_buffers(kind, len(column), buffers, offset=column.offset)
    if pa.types.is_dictionary(kind) and kind.value_type in _VIEWS:
        return pa.DictionaryArray.from_arrays(column.indices, _clean(column.dictionary))
    if pa.types.is_nested(kind) and "view" in str(kind):
        return pa.array(json_texts(column.to_pylist()), pa.large_string())
    return column


def _sizes(handle: pa.NativeFile, blocks: Iterable[tuple[int, ...]]) -> Iterator[int]:
    """Yield the decompressed size of each batch, with that of dictionaries just before it."""
    n_bytes = 0
    for offset, n_metadata, n_body in blocks:
        message = _FlatTable(_metadata(handle, offset, n_metadata))
        kind, batch = message.number("<B", 1), message.table(2)
        if kind == _DICTIONARY and batch is not None:
            batch = batch.table(1)
        if batch is not None and kind in (_DICTIONARY, _BATCH):
            n_bytes += n_body
            for start, length in batch.structs(2, "<qq") if batch.table(3) else ():
                # A compressed buffer begins with its decompressed size, or -1 if not compressed.
                begin = handle.read_at(8, offset + n_metadata + start) if length >= 8 else bytes(8)
                (unpacked,) = struct.unpack("<q", begin)
                if unpacked > _MOST_BYTES:
                    raise ValueError("a column of impossible size")
                n_bytes += max(unpacked, 0)
        if kind == _BATCH:
            yield n_bytes
            n_bytes = 0


def _metadata(handle: pa.NativeFile, offset: int, length: int) -> bytes:
    """Return the metadata of a message, without the bytes for its length."""
    data: bytes = handle.read_at(length, offset)
    return data[8 if data.startswith(_STREAM) else 4 :]


def _blocks_of_file(handle: pa.NativeFile) -> Iterator[tuple[int, ...]]:
    """Yield the offset and both lengths (metadata, body) of each message, dictionaries first."""
    # The file ends with an index of the messages, the index's length, and the magic bytes.
    (length,) = struct.unpack("<i", handle.read_at(4, handle.size() - 10))
    index = _FlatTable(handle.read_at(length, handle.size() - 10 - length))
    for slot in (2, 3):
        yield from index.structs(slot, "<qi4xq")


def _blocks_of_stream(handle: pa.NativeFile) -> Iterator[tuple[int, ...]]:
    """Yield the offset and both lengths (metadata, body) of each message."""
    offset = 0
    while len(mark := handle.read_at(8, offset)) == 8:
        n_metadata = 8 + int(struct.unpack("<4xi", mark)[0])
        if n_metadata == 8:
            return
        n_body = _FlatTable(_metadata(handle, offset, n_metadata)).number("<q", 3)
        if n_metadata < 8 or n_body < 0:
            raise ValueError("a message of negative length")
        yield offset, n_metadata, n_body
        offset += n_metadata + n_body


class _FlatTable:
    """A table of a FlatBuffer, the format of Arrow's metadata (Message.fbs).

    Needed because pyarrow tells the size of a batch only after decompressing it.
    """

    def __init__(self, data: bytes, place: int | None = None) -> None:
        self._data = data
        self._place = self._read("<I", 0) if place is None else place

    def number(self, form: str, slot: int) -> int:
        """Return the number in a slot, in a format of `struct`; 0 if the slot is empty."""
        return self._read(form, place) if (place := self._field(slot)) else 0

    def table(self, slot: int) -> _FlatTable | None:
        """Return the nested table in a slot; None if the slot is empty."""
        place = self._field(slot)
        return _FlatTable(self._data, place + self._read("<I", place)) if place else None

    def structs(self, slot: int, form: str) -> Iterator[tuple[int, ...]]:
        """Yield the items of the list in a slot, each a tuple in a format of `struct`."""
        if place := self._field(slot):
            start = place + self._read("<I", place)
            end = start + 4 + self._read("<I", start) * struct.calcsize(form)
            yield from struct.iter_unpack(form, self._data[start + 4 : end])

    def _field(self, slot: int) -> int:
        """Return the position of a slot's content, or 0 if the slot is empty."""
        slots = self._place - self._read("<i", self._place)
        if 4 + 2 * slot >= self._read("<H", slots):
            return 0
        offset = self._read("<H", slots + 4 + 2 * slot)
        return self._place + offset if offset else 0

    def _read(self, form: str, place: int) -> int:
        return int(struct.unpack_from(form, self._data, place)[0])


def _sound(batch: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
    validate_cells(batch)
    for column in batch.columns:
        if pa.types.is_run_end_encoded(column.type):
            raise ValueError("columns that are run-end encoded are not read")
    return pa.RecordBatch.from_arrays(batch.columns, names)


def _read(file: InputFile) -> Table | PartedTable:
    copy = file.unpacked
    path = copy.path if copy else Path(file.file.path)
    return table_of(file, _rows(path), format="arrow")


ARROW = Reader("Arrow", "", _read, begins(_FILE, _STREAM))


def read_batches(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    source: SourceInfo,
    options: ReadOptions,
    notes: Sequence[str] = (),
) -> Table | PartedTable:
    """Write a stream of batches to a temporary file, and read the file as a table.

    The `source` gets the hash of the cells, which does not depend on the sizes of batches. `notes`
    may grow until the last batch.
    """
    held = spool_folder(folder=False)
    try:
        _store(held.path, schema, batches)
        rows, digest = _rows(held.path), hashlib.sha256()
        rows = replace(rows, pieces=_hashed(rows.pieces, digest), notes=[*notes, *rows.notes])
        source = replace(source, n_bytes=held.path.stat().st_size)
        return collect(rows, source, digest.hexdigest, options.in_memory_rows, options.part_rows)
    finally:
        held.close()


def _store(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write batches to a file, in batches whose size depends only on the number of columns."""
    schema = schema.remove_metadata()
    require_columns(len(schema))
    pieces = (pa.Table.from_arrays(batch.columns, schema=schema) for batch in batches)
    with (
        storage_named(path.parent),
        pa.OSFile(os.fsencode(path), "wb") as file,
        pa.ipc.new_stream(file, schema) as writer,
    ):
        for rows in recut(pieces, part_size(max(len(schema), 1))):
            require_memory(rows.nbytes)
            require_disk(path.parent, rows.nbytes, written=file.tell())
            try:
                validate_cells(rows)
            except pa.ArrowInvalid as error:
                raise InputError(
                    f"its cells are not what their types say ({reason_of(error)}); text must be "
                    "UTF-8."
                ) from None
            writer.write_table(rows.combine_chunks())


def _hashed(pieces: Iterable[pa.Table], digest: Any) -> Iterator[pa.Table]:
    for piece in pieces:
        hash_cells(as_frame(piece, False)[0], digest)
        yield piece
