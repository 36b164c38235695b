"""Rows on their way in: kept in memory while they are few, else in one temporary file.

That file is Arrow's own (IPC), each part of the table one batch of rows in it: written and read in
half the time of Parquet, as nothing is encoded, and each part found without the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from kpca_apps.errors import InputError, MemoryLimitError
from kpca_apps.files import limits
from kpca_apps.files.limits import COPIES, require_memory
from kpca_apps.files.names import one_line
from kpca_apps.files.output import require_disk, spool_folder, storage_error
from kpca_apps.files.tables.table import part_size
from kpca_apps.temporary import TemporaryPath

__all__ = ["Rows", "SpooledRows", "StoredRows", "collect"]

# Bytes of a batch: Arrow counts those of a column in 31 bits.
_LARGEST_BATCH = 1 << 30

Item = TypeVar("Item")


@dataclass(frozen=True)
class Rows:
    """Rows on their way in, some at a time; where they have lines, in the last column.

    `names` are complete with the first piece, `notes` on them with the last.
    """

    pieces: Iterator[pa.Table]
    names: list[str]
    notes: list[str]
    has_lines: bool


@dataclass(frozen=True)
class SpooledRows:
    """Rows of one part: batch `number` of a temporary file."""

    path: str
    number: int
    has_lines: bool
    label: str

    def read(self) -> tuple[pl.DataFrame, NDArray[np.int64] | None]:
        """Return the rows, and their lines where the file has lines."""
        try:
            with pa.OSFile(self.path) as file, pa.ipc.open_file(file) as opened:
                rows = pa.Table.from_batches([opened.get_batch(self.number)])
                return as_frame(rows, self.has_lines)
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"{self.label}: its temporary copy cannot be read "
                f"({one_line(str(error))}); it must stay where it is until the work is done, for "
                "workers elsewhere too."
            ) from None


@dataclass(frozen=True)
class StoredRows:
    """All rows of a table in a temporary file."""

    copy: TemporaryPath
    parts: tuple[SpooledRows, ...]
    size: int
    num_rows: int


def collect(
    rows: Rows, label: str, in_memory_rows: float, part_rows: int | None
) -> pa.Table | StoredRows:
    """Take in the rows of a file: as one Arrow table, or on disk if there are more than so many."""
    held: list[pa.Table] = []
    n_rows = n_bytes = 0
    pieces = _ahead(rows.pieces)
    for piece in pieces:
        held.append(piece)
        n_rows, n_bytes = n_rows + piece.num_rows, n_bytes + piece.nbytes
        if n_rows > in_memory_rows:
            size = part_rows or part_size(len(rows.names))
            # Each is let go once it is written.
            first = (held.pop(0) for _ in range(len(held)))
            del piece
            return _stored(chain(first, pieces), rows.has_lines, size, label)
        if n_bytes * COPIES > (available := limits.available_memory()):
            raise MemoryLimitError(
                f"{label}: unpacks to more than {available / COPIES / 2**30:.2g} GB, more "
                "than memory allows; split the file."
            )
    return pa.concat_tables(held) if held else pa.table({})


def as_frame(table: pa.Table, has_lines: bool) -> tuple[pl.DataFrame, NDArray[np.int64] | None]:
    """Take the lines off an Arrow table."""
    if not has_lines:
        return pl.DataFrame(pl.from_arrow(table)), None
    frame = pl.DataFrame(pl.from_arrow(table.select(range(table.num_columns - 1))))
    return frame, table.column(table.num_columns - 1).to_numpy()


def _stored(pieces: Iterable[pa.Table], has_lines: bool, size: int, label: str) -> StoredRows:
    folder = spool_folder()
    path = folder.path / "rows.arrow"
    parts: list[SpooledRows] = []
    n_rows, writer = 0, None
    try:
        for part in _parts(pieces, size, label):
            require_disk(folder.path, part.nbytes, label)
            if writer is None:
                writer = pa.ipc.new_file(str(path), part.schema)
            writer.write_batch(part)
            parts.append(SpooledRows(str(path), len(parts), has_lines, label))
            n_rows += part.num_rows
        if writer is not None:
            writer.close()
    except BaseException as error:
        folder.close()
        if (failure := storage_error(error, one_line(str(path.parent.parent), 200))) is not None:
            raise failure from error
        raise
    return StoredRows(folder, tuple(parts), size, n_rows)


def _parts(pieces: Iterable[pa.Table], size: int, label: str) -> Iterator[pa.RecordBatch]:
    """Cut rows anew: `size` of them in each batch but the last."""
    held: list[pa.Table] = []
    n_rows = 0
    for piece in pieces:
        held.append(piece)
        n_rows += piece.num_rows
        if n_rows >= size:
            rows = pa.concat_tables(held)
            whole = n_rows - n_rows % size
            for start in range(0, whole, size):
                yield _batch(rows.slice(start, size), label)
            held, n_rows = [rows.slice(whole)], n_rows - whole
    if n_rows:
        yield _batch(pa.concat_tables(held), label)


def _batch(rows: pa.Table, label: str) -> pa.RecordBatch:
    require_memory(label, rows.nbytes)
    if rows.nbytes > _LARGEST_BATCH:
        raise MemoryLimitError(
            f"{label}: {rows.num_rows:,} of its rows take {rows.nbytes / 2**30:.1f} GB, more than "
            f"the {_LARGEST_BATCH / 2**30:g} GB that are read at once; drop columns of long texts."
        )
    (batch,) = rows.combine_chunks().to_batches()
    return batch


def _ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Take each next item in a thread while the last is worked on."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, items, None)
        while (item := following.result()) is not None:
            following = pool.submit(next, items, None)
            yield item
