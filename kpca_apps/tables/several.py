"""Several files of one kind as one table, each row with the name of its file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.names import TABLE_SUFFIXES, one_line
from kpca_apps.system.memory import ROWS_IN_MEMORY
from kpca_apps.tables.read.parquet import PARQUET_SUFFIXES
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import PartedTable, Rows, Table, as_arrow, collect, require_same_columns

_PATTERN = "*?["
MOST_NOTES = 20


def expand(path: str | Path | Sequence[str | Path]) -> list[str | Path]:
    """Name the files that are meant: one, a list of them, a pattern's, or those of a folder.

    A folder with Parquet files is left as it is.
    """
    if isinstance(path, str | Path):
        paths = [path]
    else:
        paths = list(path)
        if not paths:
            raise InputError("no file is named; name at least one.")
    found: list[str | Path] = []
    for one in paths:
        text = str(one)
        if any(sign in text for sign in _PATTERN) and not os.path.lexists(text):
            start = Path(Path(text).anchor)
            pattern = str(Path(text).relative_to(start))
            try:
                matches = sorted(
                    match
                    for match in start.glob(pattern)
                    # As in a shell, a pattern does not mean hidden files.
                    if not (match.name.startswith(".") or match.is_dir())
                )
            except (ValueError, NotImplementedError, OSError) as error:
                raise InputError(f"{one_line(text, 200)}: {one_line(str(error))}.") from None
            if not matches:
                raise InputError(f"{one_line(text, 200)}: no file has such a name.")
            found += matches
        elif text != "-" and Path(one).is_dir():
            found += _folder(Path(one))
        else:
            found.append(one)
    seen: set[str] = set()
    for one in found:
        real = os.path.realpath(one)
        if real in seen and len(found) > 1:
            raise InputError(f"{one_line(str(one), 200)}: is named twice; leave one out.")
        seen.add(real)
    return found


def _folder(folder: Path) -> list[str | Path]:
    """Name the files of a folder, or the folder itself if it is one of Parquet files or of none."""
    try:
        items = sorted(item for item in folder.iterdir() if not item.name.startswith((".", "_")))
    except OSError:
        return [folder]  # what is wrong with it is said by who opens it
    if any(item.suffix.lower() in PARQUET_SUFFIXES for item in items):
        return [folder]
    files: list[str | Path] = [item for item in items if item.suffix.lower() in TABLE_SUFFIXES]
    return files or [folder]


def combined(
    tables: Sequence[Table | PartedTable], labels: Sequence[str]
) -> tuple[Rows, SourceInfo]:
    """Put tables together, as rows still to be taken in; all need the columns of the first."""
    first = tables[0]
    names = list(first.columns)
    for table, label in zip(tables, labels, strict=True):
        if table.source.format != first.source.format:
            raise InputError(
                f"{label}: is {table.source.format} and {labels[0]} is {first.source.format}; the "
                "files of one table are of one kind."
            )
        require_same_columns(table.columns, names, label, labels[0], "the files of one table")
    paths = [Path(label).absolute() for label in labels]
    shared = Path(os.path.commonpath([path.parent for path in paths]))
    file_names = [str(path.relative_to(shared)) for path in paths]
    file_column = "file"
    while file_column in names:
        file_column += "_"
    heads = [next(table.tables()) for table in tables]
    types = _types([head.frame.schema for head in heads], names)
    has_lines = heads[0].lines is not None

    def pieces() -> Iterator[pa.Table]:
        for table, name in zip(tables, file_names, strict=True):
            for part in table.tables():
                frame = part.frame.select(names).cast(types)  # type: ignore[arg-type]
                frame = frame.with_columns(pl.lit(one_line(name, 200)).alias(file_column))
                yield as_arrow(frame, part.lines if has_lines else None)

    listing = "".join(
        f"{table.source.sha256}  {name}\n" for table, name in zip(tables, file_names, strict=True)
    )
    files_of: dict[str, list[str]] = {}
    for name, table in zip(file_names, tables, strict=True):
        for note in table.source.notes:
            files_of.setdefault(note, []).append(name)
    notes = [f"{_which(files, len(tables))}: {note}" for note, files in files_of.items()]
    first_with: dict[str, str] = {}
    for table, name in zip(tables, file_names, strict=True):
        other = first_with.setdefault(table.source.fingerprint, name)
        if other != name:
            same = f"{one_line(name, 60)} holds the same bytes as {one_line(other, 60)}."
            notes.append(f"{same} Its rows are counted twice; leave one out if it is a copy.")
    more = len(notes) - MOST_NOTES
    if more > 0:
        notes[MOST_NOTES:] = [f"{more} more such remarks on how the files were read."]
    source = SourceInfo(
        f"{shared.name or 'files'} ({len(tables)} files)",
        first.source.format,
        hashlib.sha256(listing.encode()).hexdigest(),
        sum(table.source.n_bytes for table in tables),
        0,
        0,
        first.source.encoding,
        first.source.delimiter,
        (f'Read from {len(tables)} files, named in the column "{file_column}".', *notes),
        file_column,
        hashlib.sha256("".join(t.source.fingerprint for t in tables).encode()).hexdigest(),
    )
    return Rows(pieces(), [*names, file_column], [], has_lines), source


def _which(files: Sequence[str], n_files: int) -> str:
    """Name the files that something is said of, or say how many they are."""
    first = one_line(files[0], 60)
    if len(files) == 1:
        return first
    return f"All {n_files} files" if len(files) == n_files else f"{first} and {len(files) - 1} more"


def extended(
    table: Table | PartedTable, other: Table | PartedTable, marked: NDArray[np.bool_]
) -> Table | PartedTable:
    """Put the marked rows (n,) of another table behind those of a table.

    They keep the columns of the table: others are dropped, and cells of those they lack missing.
    """
    names, name = list(table.columns), one_line(table.source.name, 60)
    head = next(table.tables())
    of_table, of_other = head.frame.schema, next(other.tables()).frame.schema
    for column in names:
        kinds = {of_table[column], of_other.get(column, of_table[column])} - {pl.Null()}
        if len(kinds) > 1 and pl.String() in kinds:
            raise InputError(
                f'{one_line(other.source.name, 60)}: column "{one_line(column)}" is '
                f"{_noun(of_other[column])}, and in {name} {_noun(of_table[column])}; rows of one "
                "cannot join the other: bring both as files of one kind."
            )
    types, has_lines = _types((of_table, of_other), names), head.lines is not None
    n_rows = int(marked.sum())

    def pieces() -> Iterator[pa.Table]:
        for one in (table, other):
            start = 0
            for part in one.tables():
                frame, lines = part.frame, part.lines
                if one is other:
                    here = marked[start : start + frame.height]
                    start += frame.height
                    frame = frame.filter(here)
                    lines = np.zeros(len(here), np.int64)[here] if lines is None else lines[here]
                empty = [pl.lit(None).alias(lost) for lost in names if lost not in frame.columns]
                frame = frame.with_columns(empty).select(names).cast(types)  # type: ignore[arg-type]
                yield as_arrow(frame, lines if has_lines else None)

    digest = hashlib.sha256(table.source.fingerprint.encode())
    digest.update(other.source.fingerprint.encode() + np.packbits(marked).tobytes())
    added = "1 accepted row" if n_rows == 1 else f"{n_rows:,} accepted rows"
    source = replace(table.source, name=f"{table.source.name} and {added}")
    rows = Rows(pieces(), names, [], has_lines)
    return collect(rows, source, name, digest.hexdigest, ROWS_IN_MEMORY, None)


def _noun(kind: pl.DataType | type[pl.DataType]) -> str:
    return "text" if kind == pl.String else "dates" if kind.is_temporal() else "numbers"


def _types(schemas: Sequence[pl.Schema], names: Sequence[str]) -> dict[str, pl.DataType]:
    """Return the type of each column: that of all files, an integer or a float for numbers.

    Of other kinds it is text, which the cells of either are.
    """
    types = {}
    for name in names:
        found = {schema[name] for schema in schemas if schema[name] != pl.Null}
        if len(found) > 1:
            # Floats would round long integers: identifiers of different rows would be one.
            whole = all(kind.is_integer() and kind != pl.UInt64 for kind in found)
            is_number = all(kind.is_numeric() for kind in found)
            found = {pl.Int64() if whole else pl.Float64() if is_number else pl.String()}
        types[name] = next(iter(found), pl.String())
    return types
