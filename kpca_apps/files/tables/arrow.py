"""Arrow's own files and streams, Feather among them -> some of their rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pyarrow as pa

from kpca_apps.files.limits import require_columns, require_memory
from kpca_apps.files.names import unique_names
from kpca_apps.files.tables.parquet import arrow_frame, damage_refused, far_dates
from kpca_apps.files.tables.table import Rows

__all__ = ["ARROW_FILE", "ARROW_STREAM", "arrow_rows"]

ARROW_FILE = b"ARROW1\0"
ARROW_STREAM = b"\xff\xff\xff\xff"  # marks the length of its first message
_BATCH_ROWS = 1 << 16


def arrow_rows(path: Path, label: str) -> Rows:
    """Read the rows of a file batch by batch; Feather is an Arrow file by another name."""
    far: set[str] = set()
    with damage_refused(label, "Arrow"), _opened(path) as (schema, batches):
        require_columns(label, len(schema))
        names, notes = unique_names(schema.names)
        if any(pa.types.is_temporal(kind) for kind in schema.types):
            for batch in batches:
                far |= far_dates(_sound(batch, names, label))

    def pieces() -> Iterator[pa.Table]:
        with damage_refused(label, "Arrow"), _opened(path) as (_, batches):
            for batch in batches:
                checked = _sound(batch, names, label)
                for start in range(0, batch.num_rows, _BATCH_ROWS):
                    frame = arrow_frame([checked.slice(start, _BATCH_ROWS)], label, far, "Arrow")
                    yield frame.to_arrow(compat_level=pl.CompatLevel.oldest())

    return Rows(pieces(), names, notes, False)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Open a file or a stream, for as long as it is read."""
    # As bytes, as a path need not be UTF-8. Not mapped: mapped pages would count as memory.
    with pa.OSFile(os.fsencode(path)) as handle:
        if handle.read(len(ARROW_FILE)) == ARROW_FILE:
            handle.seek(0)
            with pa.ipc.open_file(handle) as file:
                yield (
                    file.schema,
                    (file.get_batch(number) for number in range(file.num_record_batches)),
                )
        else:
            handle.seek(0)
            with pa.ipc.open_stream(handle) as stream:
                yield stream.schema, iter(stream)


def _sound(batch: pa.RecordBatch, names: list[str], label: str) -> pa.RecordBatch:
    """Check that what a batch says of its own memory is true, on which others rely."""
    require_memory(label, batch.nbytes)
    batch.validate(full=True)
    return pa.RecordBatch.from_arrays(batch.columns, names)
