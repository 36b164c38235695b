"""Cells that hold numbers as people write them: signs, separators, units.

A *format* (which character is the decimal mark, which one separates thousands) belongs to a whole
column: "1,234" alone cannot be told apart from 1.234, but beside "0,5" it can. The format is
inferred once, stated, and used again on every later table.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

__all__ = [
    "DECIMAL_MARKS",
    "THOUSANDS_MARKS",
    "NumberFormat",
    "infer_number_format",
    "read_numbers",
]

DECIMAL_MARKS = (".", ",")
THOUSANDS_MARKS = (",", ".", " ", "'")
# Decimal mark and thousands separator; earlier wins where two read the same number of cells.
_CANDIDATES = ((".", ","), (".", " "), (".", "'"), (",", "."), (",", " "), (",", "'"))
_UNIT = r"(?:\p{Sc}|%|EUR|USD|GBP|CHF|JPY)"
_DASHES = r"[\x{2012}\x{2013}\x{2212}\x{FE63}\x{FF0D}]"
_SPACES = r"[\x{00A0}\x{2007}\x{2009}\x{202F}]"


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of one column are written.

    Attributes
    ----------
    decimal : str
        The decimal mark, ``"."`` or ``","``.
    thousands : str
        The separator of thousands: ``","``, ``"."``, ``" "``, ``"'"`` or ``""`` for none.
    ambiguous : bool
        Whether the cells could be read another way ("1,234"), so that the choice must be stated.
    units : tuple of str
        Per cent and currency signs taken off; ``""`` stands for cells without one.
    """

    decimal: str = "."
    thousands: str = ""
    ambiguous: bool = False
    units: tuple[str, ...] = ("",)

    def describe(self) -> str:
        """Name what is unusual about the format, for a report; ``""`` for plain numbers.

        Examples
        --------
        >>> NumberFormat(",", ".", units=("%",)).describe()
        'decimal comma, thousands separated by ".", written with %'
        """
        parts = ["decimal comma"] if self.decimal == "," else []
        if self.thousands:
            parts.append(f'thousands separated by "{self.thousands}"')
        signs = [unit for unit in self.units if unit]
        if signs:
            parts.append("written with " + " or ".join(signs))
        return ", ".join(parts)


def infer_number_format(cells: pl.Series, prefer_comma: bool = False) -> NumberFormat | None:
    """Infer the format that reads most cells as numbers.

    Parameters
    ----------
    cells : Series of String
        Stripped cells, null where missing.
    prefer_comma : bool, default False
        Take the decimal comma where both marks read all cells, because other columns of the table
        are written so.

    Returns
    -------
    NumberFormat or None
        ``None`` where no cell at all reads as a number. Whether enough of them do is for the
        caller to decide (see `read_numbers`).

    Examples
    --------
    >>> infer_number_format(pl.Series(["1.234,5", "0,25"])).describe()
    'decimal comma, thousands separated by "."'
    """
    n_cells = cells.len() - cells.null_count()
    if not prefer_comma and _finite(cells).is_not_null().sum() == n_cells:
        return NumberFormat() if n_cells else None
    bare = _bare(cells)
    counts = [int(bare.str.contains(_pattern(*pair)).sum()) for pair in _CANDIDATES]
    best = max(counts)
    if best == 0:
        return None
    readers = [pair for pair, count in zip(_CANDIDATES, counts, strict=True) if count == best]
    # Marks that never occur separate nothing: "12" reads alike under every candidate.
    ambiguous = len({decimal for decimal, _ in readers}) > 1 and bool(
        bare.str.contains(r"^[+-]?\d+[.,]\d{3}$").any()
    )
    decimal, thousands = readers[0]
    if ambiguous and prefer_comma:
        decimal, thousands = next(pair for pair in readers if pair[0] == ",")
    read = bare.filter(bare.str.contains(_pattern(decimal, thousands)).fill_null(False))
    separated = _occurs(read, thousands)
    return NumberFormat(
        decimal=decimal if separated or _occurs(read, decimal) else ".",
        thousands=thousands if separated else "",
        ambiguous=ambiguous and (thousands == "," or prefer_comma),
        units=_units(cells),
    )


def read_numbers(cells: pl.Series, format: NumberFormat) -> pl.Series:
    """Read cells as numbers.

    Parameters
    ----------
    cells : Series of String
        Stripped cells, null where missing.
    format : NumberFormat
        The column's format.

    Returns
    -------
    Series of Float64
        Null where a cell is missing, does not fit the format, or is not finite.

    Examples
    --------
    >>> read_numbers(pl.Series(["(1.5)", "12O", "3 %"]), NumberFormat()).to_list()
    [-1.5, None, 3.0]
    """
    if format.decimal == "." and not format.thousands:
        plain = _finite(cells)
        if plain.null_count() == cells.null_count():
            return plain
    bare = _bare(cells)
    fits = bare.str.contains(_pattern(format.decimal, format.thousands))
    if format.thousands:
        bare = bare.str.replace_all(format.thousands, "", literal=True)
    if format.decimal == ",":
        bare = bare.str.replace(",", ".", literal=True)
    numbers = _finite(bare)
    return pl.select(pl.when(fits).then(numbers)).to_series().rename(cells.name)


def _finite(cells: pl.Series) -> pl.Series:
    """Cells as floats; null where they are none, or infinite ("inf", "1e999"), or "nan"."""
    numbers = pl.lit(cells).cast(pl.Float64, strict=False)
    return pl.select(pl.when(numbers.is_finite()).then(numbers)).to_series()


def _bare(cells: pl.Series) -> pl.Series:
    """Cells with one kind of minus, space and apostrophe, and without signs of units."""
    return (
        cells.str.replace_all(_DASHES, "-")
        .str.replace_all(_SPACES, " ")
        .str.replace_all(r"\x{2019}", "'")
        .str.replace(r"^\(([^-()]+)\)$", "-$1")
        .str.replace(rf"^([+-]?)\s*{_UNIT}\s*([+-]?)", "$1$2")
        .str.replace(rf"\s*{_UNIT}$", "")
    )


def _pattern(decimal: str, thousands: str) -> str:
    """Return the regular expression of a number; thousands may be separated, but only in threes."""
    point = rf"\{decimal}"
    groups = rf"[1-9]\d{{0,2}}(?:{_escape(thousands)}\d{{3}})+|" if thousands else ""
    whole = rf"(?:(?:{groups}\d+){point}?\d*|{point}\d+)"
    return rf"^[+-]?{whole}(?:[eE][+-]?\d+)?$"


def _escape(mark: str) -> str:
    return rf"\{mark}" if mark == "." else mark


def _occurs(cells: pl.Series, mark: str) -> bool:
    return bool(mark) and bool(cells.str.contains(mark, literal=True).any())


def _units(cells: pl.Series) -> tuple[str, ...]:
    """Units that occur, most frequent first."""
    found = cells.drop_nulls().str.extract(f"({_UNIT})").fill_null("")
    counts = found.alias("unit").value_counts().sort(["count", "unit"], descending=[True, False])
    return tuple(counts["unit"].to_list())
