"""The scored table out: every input column, then what was found, in input order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError
from kpca_apps.files.atomic import atomic_write
from kpca_apps.files.names import one_line, unique_names
from kpca_apps.files.tables import Table

__all__ = ["check_scored_path", "neutralise", "write_scored"]

_PARQUET = (".parquet", ".pq")
# What a spreadsheet may run: these first characters (the full-width ones too), unless the cell
# is a number as people write it, or a lone sign, which stands for a missing value.
_FORMULA = r"^[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"
_HARMLESS = (
    r"^[+\-]?(?:[$\x{20AC}\x{A3}\x{A5}]? ?(?:[0-9][0-9.,' \x{A0}\x{202F}]*|[.,][0-9]+)"
    r"(?:[eE][+\-]?[0-9]+)? ?[%$\x{20AC}\x{A3}\x{A5}]?)?$"
)


def check_scored_path(path: str | Path) -> str:
    """Name the format a scored table will be written in, by its suffix.

    Parameters
    ----------
    path : str or Path
        The file to write.

    Returns
    -------
    str
        ``"csv"`` or ``"parquet"``.

    Raises
    ------
    ConfigError
        For any other suffix.

    Examples
    --------
    >>> check_scored_path("scored.parquet")
    'parquet'
    """
    suffix = Path(path).suffix.lower()
    if suffix in _PARQUET:
        return "parquet"
    if suffix == ".csv":
        return "csv"
    raise ConfigError(
        f'{one_line(str(path), 200)}: the scored table is written as ".csv" or ".parquet"; end the '
        "name with one of them."
    )


def write_scored(
    table: Table, extra: Mapping[str, NDArray[Any] | None], path: str | Path
) -> tuple[str, ...]:
    """Write a table with what was found about its rows.

    Parameters
    ----------
    table : Table
        The table as read.
    extra : mapping of str to (n,) array or None
        Columns to append, in this order; ``None`` is an empty column, NaN an empty cell.
    path : str or Path
        Where to: ``.csv`` (UTF-8, commas; cells and names a spreadsheet would run as formulas get
        a leading apostrophe) or ``.parquet`` (everything as it is).

    Returns
    -------
    tuple of str
        Sentences on input columns renamed because an appended one has their name.

    Raises
    ------
    ConfigError
        If the suffix is neither.
    InputError
        If the file cannot be written.
    """
    kind = check_scored_path(path)
    frame, notes = _combine(table.frame, extra)
    if kind == "csv":
        frame = _for_spreadsheets(frame)
    with atomic_write(path) as file:
        if kind == "csv":
            frame.write_csv(file)
        else:
            frame.write_parquet(file)
    return notes


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


def _combine(
    frame: pl.DataFrame, extra: Mapping[str, NDArray[Any] | None]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    names: list[str] = []
    notes: list[str] = []
    taken = {*frame.columns, *extra}
    for name in frame.columns:
        final = name
        while final in extra or (final != name and final in taken):
            final += "_input"
        taken.add(final)
        names.append(final)
        if final != name:
            notes.append(
                f'The input column "{one_line(name)}" is written as "{one_line(final)}": its name '
                "is that of a column added here."
            )
    columns = [column.alias(name) for column, name in zip(frame, names, strict=True)]
    added = [_column(name, values, frame.height) for name, values in extra.items()]
    return pl.DataFrame([*columns, *added]), tuple(notes)


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
