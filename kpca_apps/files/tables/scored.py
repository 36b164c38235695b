"""The scored table out: every input column, then what was found, in input order.

A table of any size is written part by part: who has read a part makes the bytes of its rows, and
they are put together in one file.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError
from kpca_apps.files.names import one_line, unique_names
from kpca_apps.files.output import atomic_write
from kpca_apps.files.tables.parquet import PARQUET_SUFFIXES
from kpca_apps.files.tables.table import Table
from kpca_apps.temporary import TemporaryPath, remove_leftovers

__all__ = ["neutralise", "open_scored", "scored_bytes", "scored_kind", "scored_notes"]

# What a spreadsheet may run: these first characters (the full-width ones too), unless the cell
# is a number as people write it, or a lone sign, which stands for a missing value.
_FORMULA = r"^[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"
_HARMLESS = (
    r"^[+\-]?(?:[$\x{20AC}\x{A3}\x{A5}]? ?(?:[0-9][0-9.,' \x{A0}\x{202F}]*|[.,][0-9]+)"
    r"(?:[eE][+\-]?[0-9]+)? ?[%$\x{20AC}\x{A3}\x{A5}]?)?$"
)
# Rows written together; of the file, whatever parts it was made of.
_GROUP_ROWS = 1 << 16


def scored_kind(path: str | Path) -> str:
    """Name the format a scored table is written in by its suffix, ``"csv"`` or ``"parquet"``.

    Raises
    ------
    ConfigError
        For any other suffix.

    Examples
    --------
    >>> scored_kind("scored.parquet")
    'parquet'
    """
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET_SUFFIXES:
        return "parquet"
    if suffix == ".csv":
        return "csv"
    raise ConfigError(
        f'{one_line(str(path), 200)}: the scored table is written as ".csv" or ".parquet"; end the '
        "name with one of them."
    )


@contextmanager
def open_scored(path: str | Path) -> Iterator[Callable[[bytes], object]]:
    r"""Open a scored table to append its parts in their order; it appears once all are there.

    Parts of CSV follow each other. Parts of Parquet wait in a hidden folder beside the file, and
    are put together at the end, a few at a time.

    Parameters
    ----------
    path : str or Path
        The file to write, ``.csv`` or ``.parquet``; replaced if it exists.

    Yields
    ------
    callable
        Appends the bytes of the next part, as `scored_bytes` makes them.

    Raises
    ------
    ConfigError
        If the suffix is neither.
    InputError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scored.csv")
    ...     with open_scored(path) as append:
    ...         _ = append(b"x,score\n1,0.5\n")
    ...         _ = append(b"2,0.7\n")
    ...     path.read_bytes()
    b'x,score\n1,0.5\n2,0.7\n'
    """
    kind, target = scored_kind(path), Path(path)
    with atomic_write(target) as file:
        if kind == "csv":
            yield file.write
            return
        beside = target.with_name(f"{target.name}.parts")
        remove_leftovers(beside)
        held = TemporaryPath(beside, folder=True)
        parts: list[Path] = []

        def append(data: bytes) -> None:
            parts.append(held.path / f"{len(parts)}.parquet")
            parts[-1].write_bytes(data)

        try:
            yield append
            scan = pl.scan_parquet(parts, glob=False)
            scan.sink_parquet(file, row_group_size=_GROUP_ROWS, maintain_order=True)
        finally:
            held.close()


def scored_bytes(
    table: Table,
    extra: Mapping[str, NDArray[Any] | None],
    kind: str,
    *,
    header: bool = True,
) -> bytes:
    r"""Write rows with what was found about them.

    Parameters
    ----------
    table : Table
        The rows of one part of a table, or of all of it.
    extra : mapping of str to (n,) array or None
        Columns to append, in this order; ``None`` is an empty column, NaN an empty cell.
    kind : {"csv", "parquet"}
        CSV is UTF-8 with commas; cells and names a spreadsheet would run as formulas get a leading
        apostrophe. Parquet holds everything as it is.
    header : bool
        Whether CSV begins with the names: where this is the first part.

    Examples
    --------
    >>> import numpy as np
    >>> from kpca_apps.files.tables.opening import table_from_frame
    >>> table = table_from_frame(pl.DataFrame({"x": [1, 2]}))
    >>> scored_bytes(table, {"rank": np.array([2, 1])}, "csv")
    b'x,rank\n1,2\n2,1\n'
    """
    names, _ = _input_names(table.frame.columns, extra)
    columns = [column.alias(name) for column, name in zip(table.frame, names, strict=True)]
    added = [_column(name, values, table.frame.height) for name, values in extra.items()]
    frame = pl.DataFrame([*columns, *added])
    file = io.BytesIO()
    if kind == "csv":
        _for_spreadsheets(frame).write_csv(file, include_header=header)
    else:
        # To be compressed well once all parts are there; zstd twice takes twice as long.
        frame.write_parquet(file, compression="lz4", statistics=False)
    return file.getvalue()


def scored_notes(columns: Iterable[str], extra: Iterable[str]) -> tuple[str, ...]:
    """Say which input columns are renamed because an appended one has their name.

    Examples
    --------
    >>> print(*scored_notes(["x", "rank"], ["rank"]))
    The input column "rank" is written as "rank_input": its name is that of a column added here.
    """
    return _input_names(columns, extra)[1]


def neutralise(texts: pl.Series) -> pl.Series:
    """Put an apostrophe before text that a spreadsheet would run as a formula.

    Parameters
    ----------
    texts : Series of str
        Cells.

    Returns
    -------
    Series of str
        The same cells; numbers such as ``-5`` or ``-1,5 %`` are left alone.

    Examples
    --------
    >>> neutralise(pl.Series(["=1+1", "-5", "text"])).to_list()
    ["'=1+1", '-5', 'text']
    """
    formula = texts.str.contains(_FORMULA) & ~texts.str.contains(_HARMLESS)
    return pl.select(
        pl.when(formula).then(pl.lit("'") + texts).otherwise(texts).alias(texts.name)
    ).to_series()


def _input_names(columns: Iterable[str], extra: Iterable[str]) -> tuple[list[str], tuple[str, ...]]:
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


def _column(name: str, values: NDArray[Any] | None, height: int) -> pl.Series:
    if values is None:
        return pl.Series(name, [None] * height, dtype=pl.Float64)
    series = pl.Series(name, values)
    return series.fill_nan(None) if series.dtype.is_float() else series


def _for_spreadsheets(frame: pl.DataFrame) -> pl.DataFrame:
    columns = [
        # Null is written as nothing; "" would be written as a pair of quotes.
        neutralise(column).replace("", None) if column.dtype == pl.String else column
        for column in frame.iter_columns()
    ]
    safe = neutralise(pl.Series(frame.columns, dtype=pl.String)).to_list()
    names, _ = unique_names(safe)
    return pl.DataFrame([c.alias(n) for c, n in zip(columns, names, strict=True)])
