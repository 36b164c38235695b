"""The scored table out: every input column, then what was found, in input order.

A table of any size is written part by part: who has read a part makes the bytes of its rows, and
they are put together in one file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError
from kpca_apps.names import one_line, unique_names
from kpca_apps.system.files.output import atomic_write
from kpca_apps.tables.read.parquet import PARQUET_SUFFIXES
from kpca_apps.tables.table import Table, as_arrow, recut
from kpca_apps.tables.values import NUMBER_LIKE

# Columns added to those of a table, by their names; None is an empty one.
Added = Mapping[str, NDArray[Any] | pl.Series | None]
# Some rows of a scored table: CSV, or what goes into a Parquet file.
Written: TypeAlias = "bytes | pa.Table"

# What a spreadsheet may run: these first characters (the full-width ones too), also behind those
# that no one sees and some readers drop (a second byte-order mark), unless the cell is a number as
# people write it, or a lone sign, which stands for a missing value.
_FORMULA = r"^(?:[\t\r\n]|[\p{Cf}\p{Cc}]*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}])"
_HARMLESS = rf"^(?:{NUMBER_LIKE}|[+\-]?)$"
# Spreadsheets take a file for UTF-8 only if it begins with this mark; libraries skip it.
_MARK = b"\xef\xbb\xbf"
# Rows of a group of a Parquet file.
_GROUP_ROWS = 1 << 16


@dataclass(frozen=True)
class CsvStyle:
    """What stands between the cells of a CSV file, and in its numbers."""

    delimiter: str = ","
    decimal: str = "."


PLAIN = CsvStyle()


def scored_kind(path: str | Path) -> str:
    """Name the format a scored table is written in by its suffix, ``"csv"`` or ``"parquet"``."""
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET_SUFFIXES:
        return "parquet"
    if suffix == ".csv":
        return "csv"
    raise ConfigError(
        'the scored table is written as ".csv" or ".parquet"; end the name with one of them.', path
    )


def write_scored(path: str | Path, parts: Iterable[Written]) -> None:
    """Write the parts of a scored table, in their order; it appears once all are there.

    Each is what `scored_part` returns, and is written as it comes, in groups of Parquet that are
    cut at the same rows for any parts.
    """
    kind, parts = scored_kind(path), iter(parts)
    with atomic_write(Path(path)) as file:
        if kind == "csv":
            file.writelines(parts)
            return
        first: pa.Table = next(parts)
        # Numbers with fractions seldom repeat: to look for repeats would take longest.
        repeating = [one.name for one in first.schema if not pa.types.is_floating(one.type)]
        with pq.ParquetWriter(
            file, first.schema, compression="zstd", use_dictionary=repeating
        ) as writer:
            for rows in recut(chain([first], parts), _GROUP_ROWS):
                writer.write_table(rows)


def scored_part(
    table: Table, extra: Added, kind: str, *, header: bool = True, style: CsvStyle = PLAIN
) -> Written:
    """Put rows and what was found about them together, as `write_scored` takes them.

    They are CSV, with or without its `header`, or an Arrow table.

    `extra` columns are appended in order: ``None`` is an empty one, NaN an empty cell. In CSV,
    what a spreadsheet would run as a formula gets a leading apostrophe.
    """
    names, _ = input_names(table.frame.columns, extra)
    columns = [column.alias(name) for column, name in zip(table.frame, names, strict=True)]
    for name, values in extra.items():
        empty = [None] * table.frame.height
        added = pl.Series(name, empty, pl.Float64) if values is None else pl.Series(name, values)
        columns.append(added.fill_nan(None) if added.dtype.is_float() else added)
    frame = pl.DataFrame(columns)
    if kind == "csv":
        return csv_bytes(frame, header=header, style=style)
    rows: Written = as_arrow(frame)
    return rows


def csv_bytes(frame: pl.DataFrame, *, header: bool = True, style: CsvStyle = PLAIN) -> bytes:
    """Write rows as CSV in which nothing is run as a formula, with the header a mark of UTF-8."""
    names, *_ = unique_names(neutralise(pl.Series(frame.columns, dtype=pl.String)).to_list())
    safe = [
        # Null is written as nothing; "" would be written as a pair of quotes.
        (neutralise(cells).replace("", None) if cells.dtype == pl.String else cells).alias(name)
        for cells, name in zip(frame.iter_columns(), names, strict=True)
    ]
    file = io.BytesIO(_MARK if header else b"")
    file.seek(0, io.SEEK_END)
    pl.DataFrame(safe).write_csv(
        file,
        include_header=header,
        separator=style.delimiter,
        decimal_comma=style.decimal == ",",
    )
    return file.getvalue()


def neutralise(texts: pl.Series) -> pl.Series:
    """Put an apostrophe before text a spreadsheet would run as a formula; none before ``-5``."""
    text = pl.lit(texts)
    is_formula = text.str.contains(_FORMULA) & ~text.str.contains(_HARMLESS)
    safe = pl.when(is_formula).then("'" + text).otherwise(text)
    return pl.select(safe.alias(texts.name)).to_series()


def as_written(texts: pl.Series) -> pl.Series:
    """Take off the apostrophes that `neutralise` put before text."""
    bare = texts.str.strip_prefix("'")
    put = neutralise(bare) == texts
    return pl.select(pl.when(put).then(bare).otherwise(texts).alias(texts.name)).to_series()


def input_names(columns: Iterable[str], extra: Iterable[str]) -> tuple[list[str], tuple[str, ...]]:
    """Names of the input columns beside those appended, and sentences on those that changed."""
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
