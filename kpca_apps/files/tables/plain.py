"""Columns of typed files -> the types the toolkit speaks."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import polars as pl

from kpca_apps.errors import InputError, MemoryLimitError
from kpca_apps.files.limits import require_memory
from kpca_apps.files.names import one_line

__all__ = [
    "DAMAGE",
    "damaged",
    "have_names",
    "plain_types",
    "require_text",
]

# A dictionary of two long texts makes gigabytes of them, and every cell is looked at many times.
_MOST_TEXT = 1 << 30
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
# 0001-01-02 to 9999-12-31, a day short of the calendar's ends for the sake of time zones.
_FIRST_SECOND, _LAST_SECOND = -62_135_510_400, 253_402_214_400
DAMAGE = (Exception, pl.exceptions.PanicException)
"""What damaged files make the readers raise: errors of many kinds, and panics, which are no
Exceptions."""


def damaged(label: str, kind: str, error: BaseException) -> InputError:
    """Return the error for a file that its reader could not read."""
    reason = one_line(str(error).strip().split("\n", 1)[0], 120)
    return InputError(f"{label}: not a readable {kind} file ({reason}); export it again.")


def plain_types(frame: pl.DataFrame, *, as_text: Collection[str] = ()) -> pl.DataFrame:
    """Reduce the types of columns to those the toolkit speaks.

    Booleans, integers up to 64 bits, floats, dates, times and strings stay. Categories become
    strings, decimals and wider integers floats, durations seconds, bytes hex text, nested values
    JSON text. Dates become text where one of them lies outside the years 1 to 9999, or their
    column is named in `as_text`, as one in another part of the table lies outside.
    """
    return frame.with_columns(
        [_plain(column, column.name in as_text) for column in frame.iter_columns()]
    )


def require_text(n_bytes: int, label: str) -> None:
    """Refuse more text than fits into memory, or than anyone screens."""
    require_memory(label, n_bytes)
    if n_bytes > _MOST_TEXT:
        raise MemoryLimitError(
            f"{label}: its text cells unpack to {n_bytes / 2**30:.1f} GB, more than the "
            f"{_MOST_TEXT / 2**30:g} GB that are read; drop columns of long texts, or split "
            "the file."
        )


def _plain(column: pl.Series, as_text: bool) -> pl.Series:
    dtype = column.dtype
    if dtype in (pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    if dtype.is_decimal() or dtype == pl.Int128:
        return column.cast(pl.Float64)
    if dtype == pl.Binary:
        return column.bin.encode("hex")
    if isinstance(dtype, pl.Duration):
        return column.to_physical() / _PER_SECOND[dtype.time_unit]
    if dtype in (pl.Date, pl.Datetime):
        return _dates(column, as_text)
    if dtype.is_nested() or dtype == pl.Object:
        texts = [None if value is None else _json(value) for value in column.to_list()]
        return pl.Series(column.name, texts, dtype=pl.String)
    return column


def _dates(column: pl.Series, as_text: bool) -> pl.Series:
    """Write dates that no calendar holds, and all beside them, as text; others stay as they are.

    Stored as a number, a date may lie a million years off, where neither Python nor polars can
    name its day.
    """
    dtype, stored, named = column.dtype, column.to_physical(), have_names(column)
    if named.all() and not as_text:
        return column
    unit = dtype.time_unit if isinstance(dtype, pl.Datetime) else "days"
    texts = column.set(~named, None).cast(pl.String)
    numbers = stored.cast(pl.String) + f" {unit} after 1970-01-01"
    return texts.zip_with(named | stored.is_null(), numbers)


def have_names(dates: pl.Series) -> pl.Series:
    """Whether the calendar has a name for the day of each date."""
    dtype = dates.dtype
    per_second = _PER_SECOND[dtype.time_unit] if isinstance(dtype, pl.Datetime) else 1 / 86400
    return (dates.to_physical() / per_second).is_between(_FIRST_SECOND, _LAST_SECOND)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
