"""Write the scored table, rows in input order: the input columns, then the added ones.

Workers convert the parts of a large table; the parts are written to one file in order. Dask's
workers write the parts themselves where they see the folder.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError
from kpca_apps.names import one_line, unique_names
from kpca_apps.system.files.output import atomic_write
from kpca_apps.system.files.temporary import TemporaryPath
from kpca_apps.tables.read.parquet import PARQUET_SUFFIXES
from kpca_apps.tables.table import Table, as_arrow, recut
from kpca_apps.tables.values import NUMBER_LIKE

Added = Mapping[str, NDArray[Any] | pl.Series | None]  # name -> column; None is an empty column
# Rows as CSV text, as an Arrow table for a Parquet file, or as the file into which a worker wrote.
Written: TypeAlias = "bytes | pa.Table | Path"

# A spreadsheet may run a cell that begins with one of these characters, also after invisible
# characters. A number is harmless, and so is a lone sign, which stands for a missing value.
_FORMULA = r"^(?:[\t\r\n]|[\p{Cf}\p{Cc}]*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}])"
_HARMLESS = rf"^(?:{NUMBER_LIKE}|[+\-]?)$"
_MARK = b"\xef\xbb\xbf"  # without this mark, spreadsheets do not read a file as UTF-8
_GROUP_ROWS = 1 << 16  # number of rows in a row group of a Parquet file
_COPIED = 1 << 20  # bytes copied at once


@dataclass(frozen=True)
class CsvStyle:
    """The delimiter and decimal mark of a CSV file."""

    delimiter: str = ","
    decimal: str = "."


PLAIN = CsvStyle()


def scored_kind(path: str | Path) -> str:
    """Return the format of a scored table by its suffix, ``"csv"`` or ``"parquet"``."""
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET_SUFFIXES:
        return "parquet"
    if suffix == ".csv":
        return "csv"
    raise ConfigError(
        'the scored table is written as ".csv" or ".parquet"; end the name with one of them.', path
    )


def write_scored(path: str | Path, parts: Iterable[Written]) -> None:
    """Write the parts of a scored table, made by `scored_part`, to one file, atomically.

    The row groups of a Parquet file do not depend on the parts. Files of CSV, written by workers,
    are removed.
    """
    kind = scored_kind(path)
    with atomic_write(Path(path)) as file:
        _write_rows(file, kind, parts)


def _write_rows(file: IO[bytes], kind: str, parts: Iterable[Written]) -> None:
    parts = iter(parts)
    if kind == "csv":
        for part in parts:
            if isinstance(part, Path):
                with part.open("rb") as text:
                    shutil.copyfileobj(text, file, _COPIED)
                part.unlink()
            else:
                file.write(part)
        return
    first: pa.Table = next(parts)
    # Floats rarely repeat, and building their dictionary would take most of the time.
    repeating = [one.name for one in first.schema if not pa.types.is_floating(one.type)]
    with pq.ParquetWriter(
        file, first.schema, compression="zstd", use_dictionary=repeating
    ) as writer:
        for rows in recut(chain([first], parts), _GROUP_ROWS):
            writer.write_table(rows)


@contextmanager
def folder_of_parts(path: Path) -> Iterator[Path]:
    """Yield a folder in which workers write the parts of a scored table, with `write_part`.

    For Parquet it is the table itself, for CSV a temporary folder. Its path has a random part, so
    workers that see it share the storage.
    """
    if scored_kind(path) == "csv":
        with closing(TemporaryPath(path, folder=True)) as temporary:
            yield temporary.path
        return
    path.mkdir()
    yield path


def write_part(rows: Written, folder: Path, number: int) -> Path:
    """Write a part of a scored table to a file named by `number`; return the file's path."""
    kind = "csv" if isinstance(rows, bytes) else "parquet"
    path = folder / f"part-{number:06}.{kind}"
    # Several workers may write a part, if one of them was thought lost.
    temporary = folder / f".{path.name}.{secrets.token_hex(8)}"
    with temporary.open("wb") as file:
        _write_rows(file, kind, [rows])
        file.flush()
        os.fsync(file.fileno())
    # The command may run as another user: a user who may read the folder may read the file.
    temporary.chmod(temporary.stat().st_mode | folder.stat().st_mode & 0o444)
    return temporary.replace(path)


def scored_part(
    table: Table, extra: Added, kind: str, *, header: bool = True, style: CsvStyle = PLAIN
) -> Written:
    """Return rows with the `extra` columns, as CSV bytes or an Arrow table.

    A column that is None, and a NaN, become empty cells. In CSV, formulas get an apostrophe first.
    """
    names, _ = input_names(table.frame.columns, extra)
    columns = [column.alias(name) for column, name in zip(table.frame, names, strict=True)]
    for name, values in extra.items():
        empty = [None] * table.n_rows
        added = pl.Series(name, empty, pl.Float64) if values is None else pl.Series(name, values)
        columns.append(added.fill_nan(None) if added.dtype.is_float() else added)
    frame = pl.DataFrame(columns)
    if kind == "csv":
        return csv_bytes(frame, header=header, style=style)
    return as_arrow(frame)


def csv_bytes(frame: pl.DataFrame, *, header: bool = True, style: CsvStyle = PLAIN) -> bytes:
    """Return rows as CSV with neutralised formulas; a header starts with a byte-order mark."""
    names, *_ = unique_names(neutralise(pl.Series(frame.columns, dtype=pl.String)).to_list())
    # An empty string would be written as a pair of quotes.
    safe = frame.with_columns(_safe(pl.col(pl.String)).replace("", None))
    file = io.BytesIO(_MARK if header else b"")
    file.seek(0, io.SEEK_END)
    safe.rename(dict(zip(frame.columns, names, strict=True))).write_csv(
        file, include_header=header, separator=style.delimiter, decimal_comma=style.decimal == ","
    )
    return file.getvalue()


def neutralise(texts: pl.Series) -> pl.Series:
    """Put an apostrophe before texts that a spreadsheet would run as formulas, unlike ``-5``."""
    return texts.to_frame().select(_safe(pl.first())).to_series()


def _safe(text: pl.Expr) -> pl.Expr:
    is_formula = text.str.contains(_FORMULA) & ~text.str.contains(_HARMLESS)
    return pl.when(is_formula).then(pl.lit("'") + text).otherwise(text).name.keep()


def as_written(texts: pl.Series) -> pl.Series:
    """Remove the apostrophes that `neutralise` added."""
    bare = texts.str.strip_prefix("'")
    return bare.zip_with(neutralise(bare) == texts, texts)


def input_names(columns: Iterable[str], extra: Iterable[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the input names, renamed if they are also in `extra`, and notes on the changes."""
    given, added = list(columns), set(extra)
    names: list[str] = []
    notes: list[str] = []
    taken = {*given, *added}
    for name in given:
        final = name
        while final in added or (final != name and final in taken):
            final += "_input"
        taken.add(final)
        names.append(final)
        if final != name:
            notes.append(
                f'The input column "{one_line(name)}" is written as "{one_line(final)}": its name '
                "is that of a column added here."
            )
    return names, tuple(notes)
