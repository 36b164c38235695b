"""Rows that come as batches of Arrow, which may be read only once -> a table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from kpca_apps.errors import storage_error
from kpca_apps.system.spools import require_disk, spool_folder
from kpca_apps.tables.input_file import ReadOptions
from kpca_apps.tables.read.arrow import read_rows
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import (
    PartedTable,
    Table,
    as_frame,
    collect,
    cut_rows,
    part_size,
    update_digest,
)


def read_batches(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    source: SourceInfo,
    options: ReadOptions,
) -> Table | PartedTable:
    """Read batches to their end, by way of one temporary file; memory holds a few of them.

    The `source` is completed: its hash is that of the rows, however they were cut into batches, and
    `n_bytes` those of the file. What the batches themselves raise is left to the caller.
    """
    folder = spool_folder()
    path = folder.path / "stream.arrow"
    size = part_size(max(len(schema), 1))
    try:
        # As bytes, as a path need not be UTF-8.
        with pa.OSFile(os.fsencode(path), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
            for rows in cut_rows((pa.Table.from_batches([one]) for one in batches), size):
                require_disk(folder.path, rows.nbytes)
                writer.write_table(rows.combine_chunks())
        source = replace(source, n_bytes=path.stat().st_size)
        found, digest = read_rows(path), hashlib.sha256()

        def hashed() -> Iterator[pa.Table]:
            for piece in found.pieces:
                update_digest(digest, as_frame(piece, False)[0])
                yield piece

        rows_of = replace(found, pieces=hashed())
        return collect(rows_of, source, digest.hexdigest, options.in_memory_rows, options.part_rows)
    except BaseException as error:
        if (failure := storage_error(error, folder.path.parent)) is not None:
            raise failure from error
        raise
    finally:
        folder.close()
