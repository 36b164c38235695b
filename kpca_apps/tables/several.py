"""Several files as one table, in memory if the sum of their rows is small."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow as pa

from kpca_apps.errors import InputError, UnlikeFilesError, about
from kpca_apps.names import one_line
from kpca_apps.system.stores.addresses import STORE_SCHEMES
from kpca_apps.tables.input_file import ReadOptions
from kpca_apps.tables.read.hive import folder_values, frame_of_values, with_values
from kpca_apps.tables.read.uri import scheme_of
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import (
    PartedTable,
    Rows,
    Table,
    as_arrow,
    collect,
    common_types,
    require_same_columns,
    typed_columns,
    unlike_formats,
)

_MOST_NOTES = 20
Open = Callable[[str | Path, ReadOptions], Table | PartedTable]


def open_several(
    paths: Sequence[str | Path],
    options: ReadOptions,
    open_one: Open,
    values: Sequence[Mapping[str, str | None]] | None = None,
) -> Table | PartedTable:
    """Open several files as one table; `open_one` opens each.

    The `values` of each file, taken from the names of its folders, become columns.
    """
    tables: list[Table | PartedTable] = []
    n_free = options.in_memory_rows
    for path in paths:
        is_database = scheme_of(path) not in (None, *STORE_SCHEMES)
        if str(path) == "-" or is_database or Path(path).is_dir():
            what = "standard input" if str(path) == "-" else path
            raise InputError("is not a file, so it cannot be one of several.", what)
        tables.append(open_one(path, replace(options, in_memory_rows=n_free)))
        n_free -= min(n_free, tables[-1].source.n_rows)
    if values is None:
        values = folder_values([Path(path).absolute() for path in paths])
    rows, source = _combined(tables, [str(path) for path in paths], values)
    with about(source.name):
        return collect(
            rows, source, lambda: source.sha256, options.in_memory_rows, options.part_rows
        )


def _combined(
    tables: Sequence[Table | PartedTable],
    labels: Sequence[str],
    values: Sequence[Mapping[str, str | None]],
) -> tuple[Rows, SourceInfo]:
    first = tables[0]
    names, model = list(first.columns), one_line(labels[0], 200)
    for table, label in zip(tables, labels, strict=True):
        if table.source.format != first.source.format:
            raise UnlikeFilesError(
                f"is {table.source.format} and {model} is {first.source.format}; the files of "
                "one table are of one kind.",
                label,
            )
        with about(label):
            require_same_columns(table.columns, names, model, "the files of one table")
    paths = [Path(label).absolute() for label in labels]
    # Leave out the folders named ``column=value``, as the column may be hidden.
    above = [path.parents[len(values[0]) if values else 0] for path in paths]
    shared = Path(os.path.commonpath(above))
    shown = [
        str((folder / path.name).relative_to(shared))
        for folder, path in zip(above, paths, strict=True)
    ]
    n_of, so_far = Counter(shown), Counter[str]()
    for place, name in enumerate(shown):
        if n_of[name] > 1:
            so_far[name] += 1
            shown[place] = f"{name} #{so_far[name]}"
    named = list(zip(shown, tables, strict=True))
    heads = [next(table.tables()) for table in tables]
    types = common_types([head.frame.schema for head in heads], names)
    formats, format_notes = unlike_formats(dict(zip(shown, heads, strict=True)))
    has_lines = heads[0].lines is not None
    added = pl.DataFrame()  # additional columns, with a row for each file
    if values and has_lines:
        added = pl.DataFrame([{name: v or "" for name, v in one.items()} for one in values])
    elif values:
        added = frame_of_values(values)
    # Some writers repeat the partition columns in the files themselves.
    columns = [column for column in added.iter_columns() if column.name not in names]
    file_column = "file"
    while file_column in (*names, *added.columns):
        file_column += "_"
    columns.append(pl.Series(file_column, [one_line(name, 200) for name in shown], pl.String))
    added = pl.DataFrame(columns)

    def pieces() -> Iterator[pa.Table]:
        for number, (label, table) in enumerate(named):
            for part in table.tables():
                alike = [part.column[name].in_format(*of) for name, of in formats[label].items()]
                frame = typed_columns(part.frame.with_columns(alike), types)
                frame = with_values(frame, added.slice(number, 1))
                yield as_arrow(frame, part.lines if has_lines else None)

    listing = "".join(
        f"{table.source.sha256}  {path.relative_to(shared)}\n"
        for path, table in zip(paths, tables, strict=True)
    )
    files_of: dict[str, list[str]] = {}
    for name, table in named:
        for note in table.source.notes:
            files_of.setdefault(note, []).append(name)
    notes = [f"{_which(files, len(tables))}: {note}" for note, files in files_of.items()]
    notes += format_notes
    first_with: dict[str, str] = {}
    for name, table in named:
        other = first_with.setdefault(table.source.fingerprint, name)
        if other != name and not values:
            same = f"{one_line(name, 60)} holds the same bytes as {one_line(other, 60)}."
            notes.append(f"{same} Its rows are counted twice; leave one out if it is a copy.")
    order = "; those of one name are numbered in the order of their folders" if so_far else ""
    more = len(notes) - _MOST_NOTES
    if more > 0:
        notes[_MOST_NOTES:] = [f"{more} more such remarks on how the files were read."]
    source = SourceInfo(
        f"{shared.name or 'files'} ({len(tables)} files)",
        first.source.format,
        hashlib.sha256(os.fsencode(listing)).hexdigest(),
        sum(table.source.n_bytes for table in tables),
        0,
        0,
        first.source.encoding,
        first.source.delimiter,
        (f'Read from {len(tables)} files, named in the column "{file_column}"{order}.', *notes),
        file_column,
        hashlib.sha256("".join(t.source.fingerprint for t in tables).encode()).hexdigest(),
        renamed=tuple(dict.fromkeys(pair for t in tables for pair in t.source.renamed)),
        left_out=tuple(
            (f"{name}: {kind}", lines) for name, t in named for kind, lines in t.source.left_out
        ),
    )
    return Rows(pieces(), [*names, *added.columns], [], has_lines), source


def _which(files: Sequence[str], n_files: int) -> str:
    first = one_line(files[0], 60)
    if len(files) == 1:
        return first
    return f"All {n_files} files" if len(files) == n_files else f"{first} and {len(files) - 1} more"
