"""Cells that hold numbers as people write them: signs, separators, units.

A *format* (which character is the decimal mark, which one separates thousands) belongs to a whole
column: "1,234" alone cannot be told apart from 1.234, but beside "0,5" it can. The format is
inferred once, stated, and used again on every later table.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = [
    "DECIMAL_MARKS",
    "THOUSANDS_MARKS",
    "NumberFormat",
    "finite",
    "infer_number_format",
    "read_numbers",
]

FloatArray = NDArray[np.float64]

DECIMAL_MARKS = (".", ",")
THOUSANDS_MARKS = (",", ".", " ", "'")
# Decimal mark and thousands separator; earlier wins where two read the same number of cells.
_CANDIDATES = ((".", ","), (".", " "), (".", "'"), (",", "."), (",", " "), (",", "'"))
_UNIT = r"(?:\p{Sc}|%|EUR|USD|GBP|CHF|JPY)"
_DASHES = r"[\x{2012}\x{2013}\x{2212}\x{FE63}\x{FF0D}]"
_SPACES = r"[\x{00A0}\x{2007}\x{2009}\x{202F}]"


# From so many cells on, arrow's reader of numbers is worth its import (.1 s): it takes 28 ns a cell
# where polars takes 95, and gives up at the first cell that is none.
_MANY_CELLS = 20_000


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of one column are written."""

    decimal: str = "."  # the mark, "." or ","
    thousands: str = ""  # their separator, "" for none
    ambiguous: bool = False  # could be read another way ("1,234"), so the choice must be stated
    units: tuple[str, ...] = ("",)  # signs taken off, most frequent first; "" for none

    def describe(self) -> str:
        """Name what is unusual about the format, for a report; ``""`` for plain numbers."""
        parts = ["decimal comma"] if self.decimal == "," else []
        if self.thousands:
            parts.append(f'thousands separated by "{self.thousands}"')
        signs = [unit for unit in self.units if unit]
        if signs:
            parts.append("written with " + " or ".join(signs))
        return ", ".join(parts)


def infer_number_format(
    texts: pl.Series, prefer_comma: bool = False, counts: NDArray[np.int64] | None = None
) -> NumberFormat | None:
    """Infer the format that reads most cells as numbers; ``None`` where no cell at all reads so.

    The cells are stripped texts, or distinct ones with the `counts` of their cells. `prefer_comma`
    takes the decimal comma where both marks read all, because other columns are written so.
    """
    n = np.ones(len(texts), dtype=np.int64) if counts is None else counts
    cells = pl.DataFrame({"text": texts, "n": n}).drop_nulls("text")
    if not prefer_comma and np.isfinite(finite(cells["text"])).all():
        return NumberFormat() if cells.height else None
    cells = cells.with_columns(_bare(cells["text"]).alias("bare"))
    reads = [cells["bare"].str.contains(_pattern(*pair)) for pair in _CANDIDATES]
    n_read = [int(cells["n"].filter(hit).sum()) for hit in reads]
    best = max(n_read)
    if best == 0:
        return None
    readers = [pair for pair, count in zip(_CANDIDATES, n_read, strict=True) if count == best]
    # Marks that never occur separate nothing: "12" reads alike under every candidate.
    ambiguous = len({decimal for decimal, _ in readers}) > 1 and bool(
        cells["bare"].str.contains(r"^[+-]?\d+[.,]\d{3}$").any()
    )
    decimal, thousands = readers[0]
    if ambiguous and prefer_comma:
        decimal, thousands = next(pair for pair in readers if pair[0] == ",")
    read = cells["bare"].filter(reads[_CANDIDATES.index((decimal, thousands))])
    separated = read.str.contains(thousands, literal=True).any()
    unit = cells["text"].str.extract(f"({_UNIT})").fill_null("").alias("unit")
    units = (
        cells.group_by(unit).agg(pl.col("n").sum()).sort(["n", "unit"], descending=[True, False])
    )
    return NumberFormat(
        decimal=decimal if separated or read.str.contains(decimal, literal=True).any() else ".",
        thousands=thousands if separated else "",
        ambiguous=ambiguous and (thousands == "," or prefer_comma),
        units=tuple(units["unit"]),
    )


def read_numbers(texts: pl.Series, format: NumberFormat) -> FloatArray:
    """Read stripped cells; NaN where one is missing, does not fit the format, or is not finite."""
    bare = _bare(texts)
    fits = bare.str.contains(_pattern(format.decimal, format.thousands)).fill_null(False)
    if format.thousands:
        bare = bare.str.replace_all(format.thousands, "", literal=True)
    if format.decimal == ",":
        bare = bare.str.replace(",", ".", literal=True)
    return np.where(fits.to_numpy(), finite(bare), np.nan)


def finite(texts: pl.Series) -> FloatArray:
    """Plain numbers as floats; NaN for all else, also "inf", "1e999" and null."""
    numbers = None
    if len(texts) >= _MANY_CELLS:
        import pyarrow as pa
        import pyarrow.compute as pc

        with suppress(pa.ArrowInvalid):
            numbers = pc.cast(texts.to_arrow(), pa.float64()).to_numpy(zero_copy_only=False)
    if numbers is None:
        numbers = texts.cast(pl.Float64, strict=False).to_numpy()
    return np.where(np.isinf(numbers), np.nan, numbers) if np.isinf(numbers).any() else numbers


def _bare(texts: pl.Series) -> pl.Series:
    """Cells with one kind of minus, space and apostrophe, and without signs of units."""
    return (
        texts.str.replace_all(_DASHES, "-")
        .str.replace_all(_SPACES, " ")
        .str.replace_all(r"\x{2019}", "'")
        .str.replace(r"^\(([^-()]+)\)$", "-$1")
        .str.replace(rf"^([+-]?)\s*{_UNIT}\s*([+-]?)", "$1$2")
        .str.replace(rf"\s*{_UNIT}$", "")
    )


def _pattern(decimal: str, thousands: str) -> str:
    """Return the regular expression of a number; thousands may be separated, but only in threes."""
    point, mark = rf"\{decimal}", r"\." if thousands == "." else thousands
    groups = rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+|" if thousands else ""
    return rf"^[+-]?(?:(?:{groups}\d+){point}?\d*|{point}\d+)(?:[eE][+-]?\d+)?$"
