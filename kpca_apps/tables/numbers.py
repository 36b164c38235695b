"""How the numbers of a column are written, and what they are.

That belongs to a whole column: "1,234" alone may be 1.234, but not beside "0,5". It is inferred
once, stated, and used again on every later table.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.system.arrays import FloatArray

# Digits and marks as people write numbers, in any format or none: also "1.2.3".
NUMBER_LIKE = (
    "[+\\-]?[$\u20ac\u00a3\u00a5]? ?(?:[0-9][0-9.,' \u00a0\u202f]*|[.,][0-9]+)"
    "(?:[eE][+\\-]?[0-9]+)? ?[%$\u20ac\u00a3\u00a5]?"
)
_NUMBER_LIKE = re.compile(NUMBER_LIKE)
DECIMAL_MARKS = (".", ",")
THOUSANDS_MARKS = (",", ".", " ", "'")
# Decimal mark and thousands separator; earlier wins where two read the same number of cells.
_CANDIDATES = ((".", ","), (".", " "), (".", "'"), (",", "."), (",", " "), (",", "'"))
_UNIT = r"(?:\p{Sc}|%|EUR|USD|GBP|CHF|JPY)"
# A word behind a number, "109 min" or "80 sq ft", but no ending of an ordinal; and a time of day or
# a duration, in hours, minutes and perhaps seconds.
_WORD = r"[\p{L}\x{B0}\x{B5}][\p{L}\x{B0}\x{B2}\x{B3}/.]*(?: \p{L}[\p{L}\x{B2}\x{B3}.]*)?"
_ORDINAL = r"^(?:st|nd|rd|th)\b"
_NO_UNIT = r"^(?:k|Ti?|[Mm]io|[Mm]rd|[Bb]n|[Mm]n|[Mm]illions?|[Bb]illions?|[AaPp]\.?[Mm])\.?$"
_LETTERED = r"\d\p{Lu}$"
_CLOCK = (
    r"^(?P<hour>[0-9]{1,3}):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9](?:[.,][0-9]+)?))?"
    r"(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?$"
)
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
    word: str = ""  # a unit behind the numbers that is a word, as most of them have it
    clock: bool = False  # times of day or durations, 14:05 or 14:05:30, read as seconds

    def describe(self) -> str:
        """Name what is unusual about the format, for a report; ``""`` for plain numbers."""
        parts = ["decimal comma"] if self.decimal == "," else []
        if self.thousands:
            parts.append(f'thousands separated by "{self.thousands}"')
        if self.clock:
            parts.append("clock times, in seconds")
        signs = [unit for unit in self.units if unit]
        if signs:
            parts.append("written with " + " or ".join(signs))
        return ", ".join(parts)


def infer_number_format(
    texts: pl.Series, prefer_comma: bool = False, counts: NDArray[np.int64] | None = None
) -> NumberFormat | None:
    """Infer the format that reads most cells as numbers; ``None`` where no cell at all reads so.

    The cells are stripped texts, or distinct ones with the `counts` of their cells. `prefer_comma`
    takes the decimal comma where both marks read all, because other columns are written so. A word
    behind most of the numbers is their unit; numbers with another word are not read.
    """
    n = np.ones(len(texts), dtype=np.int64) if counts is None else counts
    cells = pl.DataFrame({"text": texts, "n": n}).drop_nulls("text")
    if not prefer_comma and np.isfinite(finite(cells["text"])).all():
        return NumberFormat() if cells.height else None
    words = unit_words(cells["text"], cells["n"].to_numpy())
    word = next((word for word, n in words.items() if 2 * n > cells["n"].sum()), "")
    cells = cells.with_columns(_bare(cells["text"], word).alias("bare"))
    reads = [cells["bare"].str.contains(_pattern(*pair)) for pair in _CANDIDATES]
    n_read = [int(cells["n"].filter(hit).sum()) for hit in reads]
    best = max(n_read)
    if _n_clock_times(cells["text"], cells["n"]) > best:
        return NumberFormat(clock=True)
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
    is_read = reads[_CANDIDATES.index((decimal, thousands))]
    read = cells["bare"].filter(is_read)
    separated = read.str.contains(thousands, literal=True).any()
    unit = cells["text"].str.extract(f"({_UNIT})").fill_null("").alias("unit")
    if word:
        has_word = cells["text"].str.contains(_ending(word))
        unit = pl.select(
            pl.when(has_word).then(pl.lit(word)).otherwise(unit).alias("unit")
        ).to_series()
        cells, unit = cells.filter(is_read), unit.filter(is_read)
    units = (
        cells.group_by(unit).agg(pl.col("n").sum()).sort(["n", "unit"], descending=[True, False])
    )
    return NumberFormat(
        decimal=decimal if separated or read.str.contains(decimal, literal=True).any() else ".",
        thousands=thousands if separated else "",
        ambiguous=ambiguous and (thousands == "," or prefer_comma),
        units=tuple(units["unit"]),
        word=word,
    )


def unit_words(texts: pl.Series, counts: NDArray[np.int64]) -> dict[str, int]:
    """Return the words behind numbers in stripped cells, commonest first, and in how many cells.

    Those that differ in a plural's "s" or a full stop are one, as written most often. Words for
    powers of ten, halves of the day and a capital at the last digit (12A, 5M) are no units.
    """
    words = texts.str.extract(
        rf"^[^\p{{L}}]?[.,]?\d[\d.,'\s]*?(?:[eE][+-]?\d+)?\s*({_WORD})$"
    ).alias("word")
    words = words.zip_with(~texts.str.contains(_LETTERED), pl.Series("word", [None], pl.String))
    cells = pl.DataFrame([words, pl.Series("n", counts)]).drop_nulls()
    cells = cells.filter(~pl.col("word").str.contains(f"{_ORDINAL}|{_NO_UNIT}"))
    by_word = (
        cells.group_by("word").agg(pl.col("n").sum()).sort(["n", "word"], descending=[True, False])
    )
    found: dict[str, tuple[str, int]] = {}
    for word, n in by_word.iter_rows():
        first, n_before = found.get(_stem(word), (word, 0))
        found[_stem(word)] = first, n_before + n
    return dict(sorted(found.values(), key=lambda one: -one[1]))


def _ending(word: str) -> str:
    """Return the regular expression of a number's last digit and its unit behind it."""
    return rf"(\d[.,]?)\s*{re.escape(_stem(word))}s?\.?$"


def _stem(word: str) -> str:
    """Return a unit without a full stop and the "s" of a plural."""
    stem = word.rstrip(".")
    return stem.removesuffix("s") if len(stem) > 2 else stem


def read_numbers(texts: pl.Series, format: NumberFormat) -> FloatArray:
    """Read stripped cells; NaN where one is missing, does not fit the format, or is not finite."""
    if format.clock:
        return _clock_seconds(texts)
    bare = _bare(texts, format.word)
    fits = bare.str.contains(_pattern(format.decimal, format.thousands)).fill_null(False)
    if format.thousands:
        bare = bare.str.replace_all(format.thousands, "", literal=True)
    if format.decimal == ",":
        bare = bare.str.replace(",", ".", literal=True)
    return np.where(fits.to_numpy(), finite(bare), np.nan)


def is_number_like(cell: str) -> bool:
    """Whether a cell is made of what numbers are made of, whatever format reads it."""
    return _NUMBER_LIKE.fullmatch(cell.strip()) is not None


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


def _n_clock_times(texts: pl.Series, counts: pl.Series) -> int:
    """Count clock times; none where 59:30 may, beside 1:02:30, be of minutes as well as hours."""
    n_times = int(counts.filter(pl.Series(np.isfinite(_clock_seconds(texts)))).sum())
    doubtful = texts.str.contains(r"^(?:2[4-9]|[3-9]\d|\d{3}):\d+$")
    is_open = (
        texts.str.contains(r"^\d+:\d+:").any() and 10 * counts.filter(doubtful).sum() > n_times
    )
    return 0 if is_open else n_times


def _clock_seconds(texts: pl.Series) -> FloatArray:
    """Seconds of times like 14:05, 14:05:30 and 2:05 pm; NaN for all else."""
    parts = texts.str.extract_groups(_CLOCK).struct.unnest()
    hour, minute, second = (
        parts[name].str.replace(",", ".", literal=True).cast(pl.Float64).to_numpy()
        for name in ("hour", "minute", "second")
    )
    half = parts["half"].str.to_lowercase()
    of_day = half.is_not_null().to_numpy()
    hours = np.where(of_day, hour % 12 + 12.0 * (half == "p").fill_null(False).to_numpy(), hour)
    possible = ~of_day | ((hour >= 1) & (hour <= 12))
    return np.where(possible, hours * 3600 + minute * 60 + np.nan_to_num(second), np.nan)


def _bare(texts: pl.Series, word: str) -> pl.Series:
    """Cells with one kind of minus, space and apostrophe, and without signs and words of units."""
    if word:
        texts = texts.str.replace(_ending(word), "$1")
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
