"""Read the cells of a column as numbers, dates or text, and find missing values.

Text files and typed files (Parquet, Excel) give the same `Readings`, so that a model fitted on one
kind of file scores the other.

All cells of a column have one format: "1,234" may be 1.234, but not if another cell is "0,5".
03/04/2008 is in March or April, depending on cells with a part above 12. The format is inferred
once, reported, and used for later tables. Impossible dates (31 February) are unreadable.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray

# Words for a missing value, compared in lower case and stripped. If such a word has a meaning
# ("none" for no garage), nothing is lost: missing text is a level, too. "0" and "999" are values.
MISSING_WORDS = frozenset(
    {"", "na", "n/a", "#n/a", "n.a.", "nan", "null", "nil", "none", "missing", "?", "-", "--", "."}
)
_LARGEST = 1e100
EXACT = 2.0**53  # above this, different integers may become the same float

# Matches text made of the characters of numbers, even if not a valid number ("1.2.3").
NUMBER_LIKE = (
    "[+\\-]?[$\u20ac\u00a3\u00a5]? ?(?:[0-9][0-9.,' \u00a0\u202f]*|[.,][0-9]+)"
    "(?:[eE][+\\-]?[0-9]+)? ?[%$\u20ac\u00a3\u00a5]?"
)
_NUMBER_LIKE = re.compile(rf"(?:\+/-|\u00b1 ?)?{NUMBER_LIKE}")
DECIMAL_MARKS = (".", ",")
THOUSANDS_MARKS = (",", ".", " ", "'")
# Pairs of decimal mark and thousands separator, in order of preference among equally good pairs.
_CANDIDATES = ((".", ","), (".", " "), (".", "'"), (",", "."), (",", " "), (",", "'"))
UNIT = r"(?:\p{Sc}|%|EUR|USD|GBP|CHF|JPY)"
# A unit that follows a number, as in "109 min" and "80 sq ft".
_WORD = r"[\p{L}\x{B0}\x{B5}][\p{L}\x{B0}\x{B2}\x{B3}/.]*(?: \p{L}[\p{L}\x{B2}\x{B3}.]*)?"
_ORDINAL = r"^(?:st|nd|rd|th)\b"
_NO_UNIT = r"^(?:k|Ti?|[Mm]io|[Mm]rd|[Bb]n|[Mm]n|[Mm]illions?|[Bb]illions?|[AaPp]\.?[Mm])\.?$"
_LETTERED = r"\d\p{Lu}$"
CLOCK_SHAPE = (
    r"^(?P<hour>[0-9]{1,3}):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9](?:[.,][0-9]+)?))?"
    r"(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?$"
)
# An amount in parentheses is negative; "(3,7)" is a pair, "(3,7 EUR)" an amount.
AMOUNT = (
    r"(?:(?:\d+|\d{1,3}(?:[.,' ]\d{3})+)?(?:[.,]\d{2}|\.\d+)?"
    rf"|[^-()]*{UNIT}(?:[^-()]*[^-()\s])?)"
)
BRACKETS = rf"^(?:{UNIT}\s*)?\(\s*({AMOUNT})\s*\)$"
_NO_PAIR = rf"{UNIT}|\d[.,' ]\d{{3}}[.,]\d"  # "(43,95)" may be a pair; "(1.043,95)" is not
DASHES = r"[\x{2012}\x{2013}\x{2212}\x{FE63}\x{FF0D}]"
SPACES = r"[\x{00A0}\x{2007}\x{2009}\x{202F}]"
# Marks around a number, and replacements that remove them. A credit is negative; a comparison sign
# precedes the limit of a censored value; a guard (') stops spreadsheets from running a formula.
_NUMBER_END = r"^([^+-]*\d[.,]?)\s*"
# Letters except K, M and T, which may mean thousands, millions and trillions.
_LETTER = "[A-JLN-SU-Za-jln-su-z]"
_FLAG = rf"(?:[*\u2020\u2021\u00a7]+|\((?:{_LETTER}|[0-9])\)|\[(?:{_LETTER}|[0-9])\])"
# Flags that laboratories and statistical offices put after values, such as J (estimated).
_QUALIFIER = "(?:UJ|J|U|[epr])"
CR_ALONE = "CR alone"
GUARD = '^(?:\'|="([^"]*)"$)', "$1"
MARKS: dict[str, tuple[tuple[str, str], ...]] = {
    "a guard against formulas": (GUARD,),
    "a flag": ((rf"(\d[.,]?)\s*{_FLAG}$", "$1"), (rf"^{_FLAG}\s*([\d.,+-])", "$1")),
    "a letter": ((rf"(\d[.,]?)\s+(?:[a-jln-su-z]|{_QUALIFIER})$", "$1"),),
    "CR or DR": ((rf"{_NUMBER_END}(?:CR|Cr)$", "-$1"), (r"(\d[.,]?)\s*(?:DR|Dr)$", "$1")),
    # If only CR is written, numbers without CR are debits.
    CR_ALONE: ((rf"{_NUMBER_END}(?:DR)?$", "-$1"), (r"(\d[.,]?)\s*CR$", "$1")),
    "H or S": ((rf"{_NUMBER_END}H$", "-$1"), (r"(\d[.,]?)\s*S$", "$1")),
    "a minus behind": ((rf"{_NUMBER_END}-$", "-$1"),),
    "a comparison sign": (("^[<>\u2264\u2265]=?\\s*([\\d.,+-])", "$1"), (r"(\d)\s*\+$", "$1")),
    '"+/-"': (("^(?:\\+/?-|\u00b1)\\s*(\\d)", "$1"),),
    '"ca."': (("^(?:[Cc]a\\.?|[Cc]irca|[Aa]pprox\\.?|[Aa]bout|[~\u2248])\\s*(\\d)", "$1"),),
}
# A cell with one number and perhaps marks, but no free text.
_ONE_NUMBER = r"^\D{0,12}\d[\d.,'\s\x{2019}]*(?:[eE][+-]?\d+)?\D{0,12}(?:\[\d\]|\(\d\))?$"
_MIN_NUMBERS = 10  # a column with fewer distinct numbers is a rating scale, with texts as levels
WITH_NUMBER = r"^[^#]*\d"  # text that cannot stand for a missing value, unlike "n/a" and "#REF!1"
MOST_TOKENS = 5  # maximum number of different texts for missing values in a column of numbers
_MOST_OF_A_WORD, _SHARE_OF_A_WORD = 5, 0.01  # maximum number/share of cells with the same typo
_LONGEST_UNIT = 40
READS_AS = 0.9  # minimum share of readable cells in a column of numbers or of dates
DECISIVE = 2  # minimum number of cells that decide a format; a single cell may be a typing error
DAY = 86_400.0  # seconds
# A day of clock times begins at the end of the widest gap between times, not at midnight, if that
# gap lasts at least _LEAST_GAP and at least _LESS_AT_MIDNIGHT times as long as the gap at midnight.
_LEAST_GAP, _LESS_AT_MIDNIGHT = DAY / 4, 4.0
# From this many cells on, pyarrow's parser of numbers (28 ns per cell; polars: 95 ns) is worth the
# .1 s of its import. The parser stops at the first cell that is not a number.
_MANY_CELLS = 20_000

# Month names and abbreviations in English, German, French, Spanish, Italian, Portuguese, Dutch,
# Danish, Norwegian, Swedish and Indonesian. They match whole words: "Mainz 1, 2000" is no date.
MONTHS = (
    "j[a\u00e4]n(?:uar[iy]?|ner|v(?:ier)?|eiro)?|ene(?:ro)?|gen(?:n(?:aio)?)?",
    "feb(?:r(?:uar[iy]?|ero|aio)?|br(?:aio)?)?|f[e\u00e9]v(?:r(?:ier)?|ereiro)?",
    "mar(?:ch|et|ts?|s|zo|[c\u00e7]o)?|m(?:\u00e4|ae)rz?|mrz|mrt|maa(?:rt)?",
    "apr(?:ile?)?|avr(?:il)?|abr(?:il)?",
    "mayo?|maio?|maj|mei|mag(?:gio)?",
    "jun(?:[ei]|io|ho)?|juin|giu(?:gno)?",
    "jul(?:[iy]|io|ho)?|juil(?:let)?|lug(?:lio)?",
    "aug(?:ust(?:us|i)?)?|ao[u\u00fb]t?|ag(?:osto|ustus|[ostu])|avg(?:ust)?",
    "sept?(?:ember|i?embre)?|set(?:t(?:embre)?|embro|iembre)?",
    "o[ck]t(?:ober|[ou]bre)?|out(?:ubro)?|ott(?:obre)?",
    "nov(?:ember|i?embre|embro)?",
    "de[csz](?:ember)?|d[e\u00e9]c(?:embre)?|dezembro|dic(?:i?embre)?",
)
_MONTH = rf"(?P<name>(?i:{'|'.join(MONTHS)}))\.?"
# Only English names may precede the day: "Gen 3, 2021" is not a date.
_MONTH_FIRST = (
    r"(?P<name>(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))\.?"
)
_WEEKDAY = r"(?:(?i:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
_TIME = (
    r"(?:(?:T|,?\s+)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2}(?:[.,][0-9]+)?))?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?P<zone>Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_DAY, _YEAR = r"(?P<day>[0-9]{1,2})", r"(?P<year>[0-9]{4}|[0-9]{2})"
_OF = r"(?i:\s+(?:del?|di|of)\s+)"  # as in "30 de julio de 2024" and "30th of July"
# In these shapes, "first" and "second_part" are day and month, whose order is inferred.
DATE_SHAPES = (
    rf"^(?P<year>[0-9]{{4}})[-/.](?P<month>[0-9]{{1,2}})[-/.]{_DAY}{_TIME}$",
    rf"^(?P<first>[0-9]{{1,2}})(?P<mark>[-/.])(?P<second_part>[0-9]{{1,2}})[-/.]{_YEAR}{_TIME}$",
    rf"^{_WEEKDAY}{_DAY}(?:st|nd|rd|th|er|\u00ba|\u00b0|\.)?(?:{_OF}|[-/\s]*){_MONTH}"
    rf"(?:{_OF}|[-/,\s]*){_YEAR}{_TIME}$",
    rf"^{_WEEKDAY}{_MONTH_FIRST}[-/\s]*{_DAY}(?:st|nd|rd|th)?,?[-/\s]+{_YEAR}{_TIME}$",
)
_PARTS = (
    *("year", "short", "month", "day", "first", "second_part", "dots"),
    *("hour", "minute", "second", "half", "offset"),
)
# Polars itself parses dates of this form, many times faster than by DATE_SHAPES.
_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?Z?)?$"
# Numbers that may be dates, if other cells or the column's name agree: YYYYMMDD, or a spreadsheet's
# serial number for the years 1954 to 2119, perhaps with a time of day as fraction.
DATE_NUMBER = r"^(?:(?:19|20)[0-9]{6}|[2-7][0-9]{4}(?:\.[0-9]+)?)$"
PART_OF_DATE = r"^[0-9xX?]{1,4}(?:[-/.][0-9xX?]{1,4}){0,2}$"
SERIAL_1970, LAST_SERIAL = 25_569, 80_000
LAST_SECOND = 253_402_300_799  # last second of the year 9999, counted from 1970
_ORDERS, _SIX = {"DDMMYY": "%d%m%Y", "YYMMDD": "%Y%m%d", "MMDDYY": "%m%d%Y"}, "^[0-9]{5,6}$"
# A date and time as digits, in which minutes or seconds may be absent.
STAMP, _STAMPED = "YYYYMMDDhhmmss", "^(?:19|20)[0-9]{6}(?:[0-9]{2}){1,3}$"
_YEAR_MONTH = "^(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])$"
# Queries of one column. They are built once, as building takes as long as running on few cells.
_NUMBER = pl.first().fill_nan(None)
_WHOLE = _NUMBER.cast(pl.Int64, strict=False)
_IS_WHOLE = (_WHOLE.cast(pl.Float64) == _NUMBER).fill_null(False)
_AS_TEXT = pl.when(_IS_WHOLE).then(_WHOLE.cast(pl.String)).otherwise(_NUMBER.cast(pl.String))
_STRIPPED = pl.first().str.strip_chars()
_AS_STRIPPED = pl.when(~_STRIPPED.str.to_lowercase().is_in(list(MISSING_WORDS))).then(_STRIPPED)
_AS_ISO = pl.when(pl.first().str.contains(_ISO)).then(pl.first())
_ISO_DAYS = _AS_ISO.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
_ISO_DAYS = _ISO_DAYS.cast(pl.Int32).cast(pl.Float64)

LETTER, DIGIT = r"\p{L}", r"\p{Nd}"
SHAPES = ((rf"{DIGIT}+", "9"), (rf"{LETTER}+", "A"), (r"\s+", " "))
PIVOT = 69  # two-digit years 69-99 are in 1969-1999, and 00-68 in 2000-2068 (POSIX)


@dataclass(frozen=True)
class NumberFormat:
    """The format of the numbers of one column."""

    decimal: str = "."  # decimal mark, "." or ","
    thousands: str = ""  # thousands separator, "" for none
    ambiguous: bool = False  # whether other formats fit as well ("1,234"); the choice is reported
    units: tuple[str, ...] = ("",)  # unit signs to remove, most frequent first; "" for none
    word: str = ""  # a word that follows the numbers as their unit, in its most frequent spelling
    clock: bool = False  # whether cells like 14:05 or 14:05:30 are read as seconds
    marks: tuple[str, ...] = ()  # names of marks in `MARKS`
    tokens: tuple[str, ...] = ()  # texts that stand for a missing value
    day_start: float = 0.0  # in seconds; earlier clock times belong to the next day

    def validate(self) -> None:
        """Raise ValueError for a format that `infer_number_format` cannot return."""
        thousands = [mark for mark in ("", *THOUSANDS_MARKS) if mark != self.decimal]
        if self.decimal not in DECIMAL_MARKS or self.thousands not in thousands:
            raise ValueError("no numbers are written with its marks")
        if max(map(len, (self.word, *self.units))) > _LONGEST_UNIT:
            raise ValueError("no unit is so long")
        if not MARKS.keys() >= {*self.marks}:
            raise ValueError("no numbers are marked so")
        if not 0.0 <= self.day_start <= self.clock * DAY:
            raise ValueError("no day begins so")

    def describe(self) -> str:
        """Describe how the format differs from that of plain numbers; ``""`` if it does not."""
        parts = ["decimal comma"] if self.decimal == "," else []
        if self.thousands:
            parts.append(f'thousands separated by "{self.thousands}"')
        if self.clock:
            begin = f", of days that begin at {self.day_start / 3600:.4g} h" * (self.day_start > 0)
            parts.append(f"clock times, in seconds{begin}")
        signs = [unit for unit in self.units if unit]
        if signs:
            parts.append("written with " + " or ".join(signs))
        return ", ".join(parts)

    @property
    def order(self) -> str:
        """The decimal mark, in words."""
        return "decimal commas" if self.decimal == "," else "decimal points"

    @property
    def swapped(self) -> NumberFormat:
        """The format with the other decimal mark."""
        return NumberFormat("." if self.decimal == "," else ",")


def infer_number_format(
    texts: pl.Series,
    prefer_comma: bool = False,
    counts: NDArray[np.int64] | None = None,
    known: tuple[str, ...] = (),
) -> NumberFormat | None:
    """Infer the format that reads most cells as numbers; ``None`` if no cell is a number.

    The cells are stripped texts, distinct if they have `counts`. If both decimal marks fit,
    `prefer_comma` chooses the comma. `known` are marks and tokens of other columns. A word after
    most numbers is their unit; numbers with another word are unreadable.
    """
    n = np.ones(len(texts), dtype=np.int64) if counts is None else counts
    cells = pl.DataFrame({"text": texts, "n": n}).drop_nulls("text")
    if not prefer_comma and np.isfinite(finite(cells["text"])).all():
        return NumberFormat() if cells.height else None
    if _are_pairs(cells["text"], cells["n"]):
        return None
    marks = _infer_marks(cells["text"], known)
    words = unit_words(_without_marks(cells["text"], marks), cells["n"].to_numpy())
    word = next((word for word, n in words.items() if 2 * n > cells["n"].sum()), "")
    cells = cells.with_columns(_bare(cells["text"], word, marks).alias("bare"))
    reads = [cells["bare"].str.contains(number_pattern(*pair)) for pair in _CANDIDATES]
    n_read = [int(cells["n"].filter(hit).sum()) for hit in reads]
    best = max(n_read)
    if _n_clock_times(cells["text"], cells["n"]) > best:
        return NumberFormat(clock=True, day_start=_day_start(cells["text"], cells["n"].to_numpy()))
    if best == 0:
        return None
    readers = [pair for pair, count in zip(_CANDIDATES, n_read, strict=True) if count == best]
    ambiguous = len({decimal for decimal, _ in readers}) > 1 and bool(
        cells["bare"].str.contains(r"^[+-]?\d+[.,]\d{3}$").any()
    )
    decimal, thousands = readers[0]
    if ambiguous and prefer_comma:
        decimal, thousands = next(pair for pair in readers if pair[0] == ",")
    is_read = reads[_CANDIDATES.index((decimal, thousands))]
    is_scale = is_read.sum() < _MIN_NUMBERS and not marks
    tokens = _infer_tokens(cells, is_read, is_scale, known)
    read = cells["bare"].filter(is_read)
    separated = read.str.contains(thousands, literal=True).any()
    unit = cells["text"].str.extract(f"({UNIT})").fill_null("").alias("unit")
    if word:
        unit = unit.set(cells["text"].str.contains(unit_ending(word)), word)
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
        marks=marks,
        tokens=tokens,
    )


def _infer_marks(texts: pl.Series, known: tuple[str, ...]) -> tuple[str, ...]:
    short = texts.filter(texts.str.contains(_ONE_NUMBER))
    short = _alike(short.filter(np.isnan(finite(short))))
    patterns = {mark: "|".join(one for one, _ in MARKS[mark]) for mark in MARKS if mark != CR_ALONE}
    hits = {mark: short.str.contains(pattern) for mark, pattern in patterns.items()}
    bare = _bare(short, "", tuple(mark for mark, hit in hits.items() if hit.any()))
    is_number = np.any([bare.str.contains(number_pattern(*pair)) for pair in _CANDIDATES], axis=0)
    found = [mark for mark, hit in hits.items() if (hit & pl.Series(is_number)).any()]
    # Whole numbers with marks are levels if few are distinct: grades ("2-"), stars ("3*"), "<5".
    numbers = _bare(texts, "", tuple(found))
    reads = [numbers.str.contains(number_pattern(*pair)) for pair in _CANDIDATES]
    numbers = numbers.filter(pl.Series(np.any(reads, axis=0)))
    if numbers.n_unique() < _MIN_NUMBERS and numbers.str.contains(r"^[+-]?\d+$").all():
        return ()
    # A letter after a number is a flag if it is not a unit ("12.4 g", "3.1 l") and most numbers are
    # amounts, not house numbers ("12 b") or article numbers of equal length ("1204 b", "1318 e").
    # If only one letter occurs, it must match _QUALIFIER, or other columns must have such flags.
    letters = short.filter(hits["a letter"]).str.extract(f"([beinopqruxz]|{_QUALIFIER})$")
    varies = numbers.str.count_matches(r"\d").n_unique() > 1
    n_amounts = int(numbers.str.contains(r"\d[.,]\d" + r"|\d{4}" * varies).sum())
    is_sure = "a letter" in known and not letters.has_nulls()
    is_sure |= letters.str.contains(_QUALIFIER).any()
    is_several = letters.drop_nulls().n_unique() > (not is_sure)
    is_flag = is_several and 2 * len(letters) < len(numbers) < 2 * n_amounts
    unsure = [] if is_flag else ["a letter"]
    # A minus, H or S is a sign only after decimals: "1500-" may be a part number, and "19H" a seat.
    is_quantity = "a minus behind" in known and varies
    for mark in ("a minus behind", "H or S")[is_quantity:]:
        amounts = short.filter(hits[mark]).str.contains(r"\d[.,]\d")
        unsure += [mark] * (2 * int(amounts.sum()) < len(amounts))
    # Debits and credits need both letters: H or S alone is a unit, and Cr alone means ten million.
    for mark, sides in (("H or S", ("H", "S")), ("CR or DR", ("Cr", "Dr"))):
        one, other = (short.str.contains(rf"\d\s*{side}$").any() for side in sides)
        unsure += [mark] * (one != other)
    found = [mark for mark in found if mark not in unsure]
    if "CR or DR" in found and short.str.contains(r"\d\s*CR$").sum() >= len(numbers):
        found[found.index("CR or DR")] = CR_ALONE
    return tuple(found)


def _infer_tokens(
    cells: pl.DataFrame, is_read: pl.Series, is_scale: bool, known: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the texts, at most a few, that stand for missing values in a column of numbers."""
    n_cells, n_read = int(cells["n"].sum()), int(cells["n"].filter(is_read).sum())
    others = cells.filter(~is_read & ~cells["text"].str.contains(WITH_NUMBER))
    is_known = pl.col("text").is_in(known)
    if n_read < READS_AS * n_cells and (is_scale or 3 * n_read < n_cells):
        tokens = others.filter(is_known)
        # If there are few distinct numbers, the other texts are levels: "A" and "B" beside "0".
        return tuple(tokens["text"]) if len(tokens) < is_read.sum() else ()
    # Texts in fewer than `least` cells are typing errors; other texts are missing values. If the
    # column then has too few numbers, texts in 2 cells are missing values, too.
    for least in (most_of_a_slip(n_cells) + 1, 2):
        tokens = others.filter((pl.col("n") >= least) | is_known)
        if n_read >= READS_AS * (n_cells - int(tokens["n"].sum())):
            tokens = tokens.sort("n", "text", descending=[True, False])
            return tuple(tokens["text"]) if len(tokens) <= MOST_TOKENS + len(known) else ()
    return ()


def most_of_a_slip(n_cells: int) -> float:
    """Return the largest number of cells that can contain the same typing error."""
    return max(_MOST_OF_A_WORD, _SHARE_OF_A_WORD * n_cells)


def _alike(texts: pl.Series) -> pl.Series:
    text = pl.lit(texts).str
    plain = text.replace_all(DASHES, "-").str.replace_all(SPACES, " ")
    return pl.select(plain.str.replace_all(r"\x{2019}", "'").alias(texts.name)).to_series()


def replacements(marks: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return patterns that find marks beside numbers (such as "ca."), and their replacements."""
    return [pair for mark in MARKS if mark in marks for pair in MARKS[mark]]


def _without_marks(texts: pl.Series, marks: tuple[str, ...]) -> pl.Series:
    for pattern, by in replacements(marks):
        texts = texts.str.replace(pattern, by)
    return texts


def unit_words(texts: pl.Series, counts: NDArray[np.int64]) -> dict[str, int]:
    """Return the words after numbers in stripped cells with their counts, most frequent first.

    Words that differ only in a plural's "s" or a full stop count as one word. Words for powers of
    ten, "am", "pm" and a capital right after the last digit (12A, 5M) are not units.
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


def _are_pairs(texts: pl.Series, counts: pl.Series) -> bool:
    """Whether many cells are pairs in parentheses rather than negative amounts or typing errors."""
    in_brackets = texts.str.contains(r"^\(.*\d.*\)$")
    n_cells, n_inside = int(counts.sum()), int(counts.filter(in_brackets).sum())
    if 10 * n_inside <= n_cells:
        return False
    amounts = in_brackets & texts.str.contains(BRACKETS)
    if 10 * int(counts.filter(amounts).sum()) < 9 * n_inside:
        return True
    is_sign = 10 * n_inside <= 9 * n_cells
    return not (is_sign or texts.filter(amounts).str.contains(_NO_PAIR).any())


def unit_ending(word: str) -> str:
    """Return the regular expression of a number's last digit followed by a unit."""
    return rf"(\d[.,]?)\s*{re.escape(_stem(word))}s?\.?$"


def _stem(word: str) -> str:
    stem = word.rstrip(".")
    return stem.removesuffix("s") if len(stem) > 2 else stem


def read_numbers(texts: pl.Series, format: NumberFormat) -> FloatArray:
    """Read stripped cells as numbers; NaN for missing cells and cells of another format."""
    if format.clock:
        seconds = _clock_seconds(texts)
        return np.where(seconds < format.day_start, seconds + DAY, seconds)
    bare = _bare(texts, format.word, format.marks)
    fits = bare.str.contains(number_pattern(format.decimal, format.thousands)).fill_null(False)
    bare = bare.str.replace_all(thousands_mark(format), "", literal=True)
    if format.decimal == ",":
        bare = bare.str.replace(",", ".", literal=True)
    return np.where(fits.to_numpy(), finite(bare), np.nan)


def is_number_like(cell: str) -> bool:
    """Whether a cell consists of the characters of a number in any format."""
    return _NUMBER_LIKE.fullmatch(cell.strip()) is not None


def finite(texts: pl.Series) -> FloatArray:
    """Convert plain numbers to floats; NaN for all other cells, also "inf", "1e999" and null."""
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
    """Count clock times; 0 if 59:30 may be hours or minutes, as other cells are like 1:02:30."""
    n_times = int(counts.filter(pl.Series(np.isfinite(_clock_seconds(texts)))).sum())
    doubtful = texts.str.contains(r"^(?:2[4-9]|[3-9]\d|\d{3}):\d+$")
    is_open = (
        texts.str.contains(r"^\d+:\d+:").any() and 10 * counts.filter(doubtful).sum() > n_times
    )
    return 0 if is_open else n_times


def _day_start(texts: pl.Series, counts: NDArray[np.int64]) -> float:
    """Return when a day starts, in seconds after midnight: after a wide gap in times, else 0."""
    seconds = _clock_seconds(texts)
    times = np.unique(seconds[np.isfinite(seconds)])
    gaps = np.diff(times, append=times[0] + DAY)
    widest = int(np.argmax(gaps))
    if times[-1] > DAY or gaps[widest] < max(_LEAST_GAP, _LESS_AT_MIDNIGHT * gaps[-1]):
        return 0.0
    few, start = most_of_a_slip(int(counts.sum())), float(times[widest + 1])
    n_sides = counts[seconds < start].sum(), counts[seconds >= start].sum()
    return start if min(n_sides) > few else 0.0


def _clock_seconds(texts: pl.Series) -> FloatArray:
    parts = texts.str.extract_groups(CLOCK_SHAPE).struct.unnest()
    hour, minute, second = (
        parts[name].str.replace(",", ".", literal=True).cast(pl.Float64).to_numpy()
        for name in ("hour", "minute", "second")
    )
    half = parts["half"].str.to_lowercase()
    of_day = half.is_not_null().to_numpy()
    hours = np.where(of_day, hour % 12 + 12.0 * (half == "p").fill_null(False).to_numpy(), hour)
    possible = ~of_day | ((hour >= 1) & (hour <= 12))
    return np.where(possible, hours * 3600 + minute * 60 + np.nan_to_num(second), np.nan)


def _bare(texts: pl.Series, word: str, marks: tuple[str, ...] = ()) -> pl.Series:
    texts = _without_marks(_alike(texts), marks)
    if word:
        texts = texts.str.replace(unit_ending(word), "$1")
    return (
        texts.str.replace(BRACKETS, "-$1")
        .str.replace(rf"^([+-]?)\s*{UNIT}\s*([+-]?)", "$1$2")
        .str.replace(rf"\s*{UNIT}$", "")
    )


def number_pattern(decimal: str, thousands: str) -> str:
    """Return the regular expression of a number in groups of three digits.

    Without a thousands separator, a group is accepted if it is unambiguous: 1.234,50.
    """
    point, other = rf"\{decimal}", r"\." if decimal == "," else ","
    mark = other if thousands in ("", ".") else thousands
    groups = rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+"
    whole = rf"(?:{groups}|\d+)" if thousands else r"\d+"
    plain = rf"(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
    return rf"^[+-]?(?:{plain})$" if thousands else rf"^[+-]?(?:{plain}|{groups}{point}\d*)$"


def thousands_mark(format: NumberFormat) -> str:
    """Return the thousands separator; by default, the point or comma that is no decimal mark."""
    return format.thousands or ("." if format.decimal == "," else ",")


@dataclass(frozen=True)
class DateFormat:
    """The format of the dates of one column."""

    day_first: bool = False  # whether 03/04/2008 is the 3rd of April
    decided_by: str = ""  # "cells" (a part above 12), "option", "table", "default" or ""
    has_time: bool = False  # whether some cell has a time of day
    short_years: bool = False  # whether some year has two digits
    dots_day_first: bool = True  # whether 03.04.2008 is the 3rd of April
    # Order of digits in dates that are written as numbers; "mmss" or "ss" may be absent.
    digits: Literal["", "DDMMYY", "YYMMDD", "MMDDYY", "YYYYMMDDhhmmss"] = ""

    def describe(self) -> str:
        """Describe how ambiguous dates and two-digit years are read; ``""`` without such dates."""
        parts = [self.order] if self.decided_by else []
        return ", ".join([*parts, "two-digit years"] if self.short_years else parts)

    @property
    def order(self) -> str:
        """The order of day and month in words."""
        return "day before month" if self.day_first else "month before day"

    @property
    def swapped(self) -> DateFormat:
        """The format with the other order of day and month."""
        return DateFormat(not self.day_first, dots_day_first=not self.day_first)


def infer_date_format(texts: pl.Series, day_first: bool | None = None) -> DateFormat | None:
    """Infer the format of dates in stripped cells; ``None`` if no cell looks like a date.

    If neither the cells nor `day_first` decide the order, dates with dots have the day first. Plain
    numbers do not count as dates.
    """
    distinct = texts.drop_nulls().unique(maintain_order=True)
    is_iso = np.isfinite(_iso_seconds(distinct))
    parts = _parts(distinct.filter(~is_iso))
    if not is_iso.any() and not np.isfinite(parts["year"]).any():
        return None
    timed = np.isfinite(parts["hour"]).any() or distinct.filter(is_iso).str.contains(":").any()
    first, second, dotted = parts["first"], parts["second_part"], parts["dots"] > 0
    format = DateFormat(
        bool(day_first),
        has_time=bool(timed),
        short_years=bool((parts["short"] > 0).any()),
        dots_day_first=day_first is not False
        and bool((first[dotted] > 12).sum() >= (second[dotted] > 12).sum()),
    )
    if not np.isfinite(first).any():
        return format
    n_day_first, n_month_first = int((first > 12).sum()), int((second > 12).sum())
    if n_day_first != n_month_first:
        return replace(format, day_first=n_day_first > n_month_first, decided_by="cells")
    if day_first is not None:
        return replace(format, decided_by="option")
    return replace(format, day_first=bool(dotted.any()), decided_by="default")


def read_dates(texts: pl.Series, format: DateFormat) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Read stripped cells as seconds since 1970-01-01 UTC, and return which look like dates.

    Impossible dates and other cells give NaN. A time without an offset is UTC.
    """
    seconds = _iso_seconds(texts)
    shaped = np.isfinite(seconds)
    rest = np.flatnonzero(~shaped)
    if rest.size:
        parts = _parts(texts.gather(rest))
        days = _days_of_numbers(texts.gather(rest), format.digits)
        is_number = np.isfinite(days)
        shaped[rest] = np.isfinite(parts["year"]) | is_number
        seconds[rest] = np.where(is_number, np.round(days * DAY, 3), _seconds(parts, format))
    return seconds, shaped


def _days_of_numbers(texts: pl.Series, digits: str) -> FloatArray:
    """Convert YYYYMMDD and spreadsheets' serial numbers to days since 1970; NaN for other cells.

    With `digits`, only cells in that order are dates; a leading 0 may be missing.
    """
    if digits == STAMP:
        full = pl.when(pl.lit(texts).str.contains(_STAMPED)).then(
            pl.lit(texts).str.pad_end(14, "0")
        )
        moments = pl.select(full.otherwise(None)).to_series()
        moments = moments.str.to_datetime("%Y%m%d%H%M%S", time_unit="ms", strict=False)
        return moments.cast(pl.Int64).cast(pl.Float64).fill_null(np.nan).to_numpy() / (1e3 * DAY)
    if digits:
        padded, place = pl.lit(texts).str.zfill(6), digits.index("YY")
        of_2000 = padded.str.slice(place, 2) < str(PIVOT)
        century = pl.when(of_2000).then(pl.lit("20")).otherwise(pl.lit("19"))
        dates = pl.concat_str(padded.str.slice(0, place), century, padded.str.slice(place))
        is_six = pl.lit(texts).str.contains(_SIX)
        return _days(pl.select(pl.when(is_six).then(dates)).to_series(), _ORDERS[digits])
    is_number = texts.str.contains(DATE_NUMBER).fill_null(False)
    if not is_number.any():
        return np.full(len(texts), np.nan)
    numbers = finite(pl.select(pl.when(is_number).then(texts)).to_series())
    is_serial = numbers <= LAST_SERIAL
    compact = pl.select(pl.when(pl.Series(~is_serial)).then(texts)).to_series()
    return np.where(is_serial, numbers - SERIAL_1970, _days(compact, "%Y%m%d"))


def _days(texts: pl.Series, pattern: str) -> FloatArray:
    return texts.str.to_date(pattern, strict=False).cast(pl.Int32).cast(pl.Float64).to_numpy()


def date_text(seconds: float, has_time: bool = True) -> str:
    """Format seconds since 1970-01-01 as an ISO 8601 date, with the time unless it is midnight."""
    try:
        whole = round(seconds) if seconds < LAST_SECOND else int(seconds)
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=whole)
    except OverflowError:
        return f"{seconds / 86400:.6g} days after 1970-01-01"
    if not has_time or (moment.hour, moment.minute, moment.second) == (0, 0, 0):
        return moment.date().isoformat()
    return moment.replace(tzinfo=None).isoformat(sep=" ")


def shapes_of(texts: pl.Series) -> pl.Series:
    """Replace each run of letters in texts by "A", and of digits by "9".

    >>> shapes_of(pl.Series(["12:30-13:30", "12.:30-13:30", "AB 12"])).to_list()
    ['9:9-9:9', '9.:9-9:9', 'A 9']
    """
    for pattern, sign in SHAPES:
        texts = texts.str.replace_all(pattern, sign)
    return texts


def _iso_seconds(texts: pl.Series) -> FloatArray:
    iso, days = texts.to_frame().select(text=_AS_ISO, days=_ISO_DAYS).iter_columns()
    seconds = days.to_numpy() * DAY
    if iso.str.contains(":", literal=True).any():
        for start, unit in ((11, 3600), (14, 60), (17, 1)):
            part = iso.str.slice(start, 2).cast(pl.Float64, strict=False).fill_null(0)
            seconds = seconds + part.to_numpy() * unit
    # Polars also accepts the year 0, which is not a valid date here.
    return np.where(seconds >= -62135596800, seconds, np.nan)


def _parts(texts: pl.Series) -> dict[str, FloatArray]:
    """Split dates into numeric parts; a missing part is NaN.

    "dots" is 1 if the parts are separated by dots, and "short" is 1 if the year has two digits.
    """
    parts = {name: np.full(texts.len(), np.nan) for name in _PARTS}
    pending = np.flatnonzero(texts.is_not_null().to_numpy())
    for shape in DATE_SHAPES if pending.size else ():
        hit = texts.gather(pending).str.contains(shape).to_numpy()
        if hit.any():
            rows, pending = pending[hit], pending[~hit]
            groups = texts.gather(rows).str.extract_groups(shape).struct.unnest()
            for name in groups.columns:
                for part, values in _as_numbers(name, groups[name]).items():
                    parts[part][rows] = values.to_numpy()
    return parts


def _as_numbers(name: str, text: pl.Series) -> dict[str, pl.Series]:
    if name == "name":
        lower, month = text.str.to_lowercase(), pl.Series([None] * len(text), dtype=pl.Float64)
        for i, starts in enumerate(MONTHS, start=1):
            month = month.set(lower.str.contains(f"^(?:{starts})"), float(i))
        return {"month": month}
    if name == "year":
        year, short = text.cast(pl.Float64), (text.str.len_chars() == 2).cast(pl.Float64)
        century = 1900 + 100 * (year < PIVOT).cast(pl.Float64)
        return {"year": year + short * century, "short": short}
    if name == "mark":
        return {"dots": (text == ".").cast(pl.Float64)}
    if name == "half":
        return {"half": text.str.to_lowercase().str.starts_with("p").cast(pl.Float64)}
    if name == "zone":
        written = text.str.extract_groups(r"^([+-])([0-9]{2}):?([0-9]{2})?$").struct.unnest()
        sign, hours, minutes = written.iter_columns()
        size = hours.cast(pl.Float64) * 3600 + minutes.cast(pl.Float64).fill_null(0) * 60
        return {"offset": (size * (1 - 2 * (sign == "-").cast(pl.Float64))).fill_null(0)}
    return {name: text.str.replace(",", ".", literal=True).cast(pl.Float64)}


def _seconds(parts: dict[str, FloatArray], format: DateFormat) -> FloatArray:
    year, half = parts["year"], parts["half"]
    ordered, day_first = np.isfinite(parts["first"]), np.full(len(year), format.day_first)
    if format.dots_day_first:
        day_first |= parts["dots"] > 0
    month = np.where(day_first, parts["second_part"], parts["first"])
    day = np.where(day_first, parts["first"], parts["second_part"])
    month, day = np.where(ordered, month, parts["month"]), np.where(ordered, day, parts["day"])
    on_clock = np.isnan(half) | ((parts["hour"] >= 1) & (parts["hour"] <= 12))
    hour = np.where(np.isnan(half), parts["hour"], parts["hour"] % 12 + 12 * half)
    hour, minute, second, offset = map(
        np.nan_to_num, (hour, parts["minute"], parts["second"], parts["offset"])
    )
    possible = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(possible, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    start = months.astype("datetime64[D]")
    end = (months + np.timedelta64(1, "M")).astype("datetime64[D]")
    possible &= day <= (end - start).astype(np.int64)
    possible &= on_clock & (hour < 24) & (minute < 60) & (second < 60)
    days = start.astype(np.int64) + day - 1
    seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset
    return np.where(possible, seconds, np.nan)


ValueFormat = NumberFormat | DateFormat


@dataclass(frozen=True)
class Readings:
    """The values of the cells of a column."""

    values: FloatArray  # (n,), numbers or seconds since 1970-01-01 UTC; NaN without a value
    missing: BoolArray  # (n,), empty cells and words for missing values
    # (n,), cells with text that gives no value, or a number beyond 1e100 (its square may overflow)
    unreadable: BoolArray

    @property
    def share_read(self) -> float:
        """Share of readable cells among the cells that are not missing."""
        return 1 - float(self.unreadable.sum()) / max(float((~self.missing).sum()), 1.0)

    @property
    def rounded(self) -> BoolArray:
        """Which values (n,) are so large that conversion to float may have rounded them."""
        return np.abs(self.values) >= EXACT

    @property
    def ordered(self) -> FloatArray:
        """The sorted values without NaN, not cached, to save memory."""
        return np.sort(self.values[~np.isnan(self.values)])


@dataclass(frozen=True)
class Levels:
    """The distinct cells of a column."""

    # (k,), distinct numbers or stripped texts, none of them missing, in order of their first cells
    cells: pl.Series
    codes: NDArray[np.int32]  # (n,), index of each cell's level, or -1 if missing

    @cached_property
    def texts(self) -> pl.Series:
        """The levels as text, (k,)."""
        return _written(self.cells)

    @cached_property
    def counts(self) -> IntArray:
        """Number of cells of each level, (k,)."""
        return np.bincount(self.codes + 1, minlength=len(self.cells) + 1)[1:]

    @cached_property
    def column(self) -> Column:
        """The levels as a column, which caches its readings."""
        return Column(self.cells)

    def each(self, of_texts: NDArray[Any], of_missing: object) -> NDArray[Any]:
        """Map values of the texts (k,) to the cells (n,); missing cells get `of_missing`."""
        return np.append(of_texts, np.array([of_missing], of_texts.dtype))[self.codes]

    def most_frequent(self, count: int | None = None) -> list[tuple[str, int]]:
        """Return the most frequent texts with their counts; equal counts in alphabetical order."""
        pairs = zip(self.texts, self.counts.tolist(), strict=True)
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:count]

    def lower(self) -> Levels:
        """Return the levels in lower case."""
        return _levels(self.texts.str.to_lowercase(), self.codes)


class Column:
    """The cells of one column (text, numbers, booleans or dates), with cached readings."""

    def __init__(self, cells: pl.Series) -> None:
        self.cells, self.name = cells, cells.name
        self._read: dict[object, Readings] = {}
        self._numbers: dict[object, NumberFormat | None] = {}
        self._dates: dict[bool | None, DateFormat | None] = {}
        self.learned: dict[object, Any] = {}  # what checks learned from the cells

    def __len__(self) -> int:
        return self.cells.len()

    @cached_property
    def texts(self) -> pl.Series:
        """Cells as stripped text, null where missing."""
        return _stripped(_written(self.cells)).alias(self.name)

    @cached_property
    def levels(self) -> Levels:
        """Distinct texts of the cells."""
        if self.cells.dtype.is_float() or self.cells.dtype.is_integer():
            return _levels_of_numbers(self.cells)
        written = _levels(_written(self.cells))
        texts = _stripped(written.texts)
        return written if texts.equals(written.texts) else _levels(texts, written.codes)

    def number_format(
        self, prefer_comma: bool = False, known: tuple[str, ...] = ()
    ) -> NumberFormat | None:
        """Infer the format of numbers (see `infer_number_format`)."""
        if _typed(self.cells) is not None:
            return NumberFormat() if self.cells.null_count() < len(self) else None
        if not prefer_comma and not len(self._plain[2]):
            return None if self._plain[1].all() else NumberFormat()
        key = prefer_comma, known
        if key not in self._numbers:
            levels = self.levels
            self._numbers[key] = infer_number_format(
                levels.texts, prefer_comma, levels.counts, known
            )
        return self._numbers[key]

    def date_format(self, day_first: bool | None = None) -> DateFormat | None:
        """Infer the format of dates (see `infer_date_format`)."""
        if self.cells.dtype.is_temporal():
            return DateFormat(has_time=self.cells.dtype != pl.Date)
        if day_first not in self._dates:
            self._dates[day_first] = infer_date_format(self.levels.texts, day_first)
        return self._dates[day_first]

    def digit_dates(self, day_first: bool | None = None) -> DateFormat | None:
        """Return the order of digits, such as DDMMYY, by which the dates span the shortest period.

        The period of an order covers `READS_AS` of the cells, as the rest may be typing errors.
        Returns None if most cells may be months (YYYYMM), which can also be read as days.
        """
        is_month = self.levels.texts.str.contains(_YEAR_MONTH)
        if is_month.sum() >= READS_AS * len(is_month):
            return None
        contrary = {True: "MMDDYY", False: "DDMMYY", None: ""}[day_first]
        found = {}
        for order in (one for one in (*_ORDERS, STAMP) if one != contrary):
            is_stamp = order == STAMP
            format = DateFormat(has_time=is_stamp, short_years=not is_stamp, digits=order)  # type: ignore[arg-type]
            readings = self.read(format)
            days, n = readings.ordered, int(READS_AS * (~readings.missing).sum())
            if readings.share_read >= READS_AS and len(np.unique(days)) >= _MIN_NUMBERS:
                found[format] = float((days[n - 1 :] - days[: len(days) - n + 1]).min())
        return min(found, key=lambda format: found[format], default=None)

    def inferred_format(self, prefer_comma: bool = False) -> ValueFormat | None:
        """Infer the format of numbers or dates; None if too few cells are numbers or dates."""
        for format in (self.number_format(prefer_comma), self.date_format()):
            if format is not None and self.read(format).share_read >= READS_AS:
                return format
        return None

    def written_as(self, known: ValueFormat) -> tuple[ValueFormat, int]:
        """Return the format to use for this column, and how many more cells it reads than `known`.

        The result is `known`, unless the other decimal mark or date order reads more cells.
        """
        own, like = self._own_and_like(known)
        if own is None or like is None or own.order == known.order:
            return known, 0
        n_more = int((self.read(like).unreadable & ~self.read(own).unreadable).sum())
        return (own, n_more) if n_more else (known, 0)

    def _own_and_like(self, known: ValueFormat) -> tuple[ValueFormat | None, ValueFormat | None]:
        """Return the column's own format, and a copy with decimal mark or date order of `known`."""
        if self.cells.dtype != pl.String:
            return None, None
        if isinstance(known, NumberFormat):
            own = self.number_format(known.decimal == ",")
            marks = known.decimal, known.thousands
            return own, own and replace(own, decimal=marks[0], thousands=marks[1])
        dates, orders = self.date_format(), (known.day_first, known.dots_day_first)
        return dates, dates and replace(dates, day_first=orders[0], dots_day_first=orders[1])

    def decided_format(self) -> ValueFormat | None:
        """Return the format of text cells if only one decimal mark or date order fits, or None."""
        format = self.inferred_format()
        is_decided = format is not None and self.written_as(format.swapped)[1] >= DECISIVE
        return format if is_decided else None

    def reads_otherwise(self, format: ValueFormat) -> BoolArray:
        """Return which cells (n,) are readable only with the other decimal mark or date order."""
        return self.read(format).unreadable & ~self.read(format.swapped).unreadable

    def in_format(self, own: ValueFormat, other: ValueFormat) -> pl.Series:
        """Convert cells in one format to the text of another format, or dates to ISO 8601."""
        values, texts = self.read(own).values, self.texts
        if isinstance(own, NumberFormat) and isinstance(other, NumberFormat):
            texts = texts.str.replace_all(thousands_mark(own), "", literal=True)
            texts = texts.str.replace(own.decimal, other.decimal, literal=True)
            other = replace(own, decimal=other.decimal, thousands="")
        else:
            moments = (pl.Series(values).fill_nan(None) * 1e6).round().cast(pl.Int64)
            texts = moments.cast(pl.Datetime("us")).dt.to_string("%Y-%m-%d %H:%M:%S%.f")
            texts = texts.str.strip_suffix(" 00:00:00")
        is_same = pl.Series(Column(texts).read(other).values == values)
        return texts.zip_with(is_same, self.cells).alias(self.name)

    def leaves_open(self, known: ValueFormat) -> int | None:
        """Count cells that `known` cannot read but the other decimal mark or date order can.

        None if only `known` can read some cell, or if both give the same values.
        """
        (own, like), (_, other) = map(self._own_and_like, (known, known.swapped))
        if own is None or like is None or other is None:
            return None
        if isinstance(other, NumberFormat):
            other = replace(other, thousands=thousands_mark(other))
        elif own.order == known.order == DateFormat(day_first=True).order:
            return None  # `own` and `known` read all dates with the day first
        read, otherwise = self.read(like), self.read(other)
        differ = ~np.isnan(read.values) & (read.values != otherwise.values)
        if not differ.any() or np.isnan(otherwise.values[differ]).any():
            return None
        return int((read.unreadable & ~otherwise.unreadable).sum())

    def read(self, format: ValueFormat | None) -> Readings:
        """Read the cells by a format, which may come from another table; ``None`` for text."""
        key: object = None
        if isinstance(format, DateFormat):
            key = format.day_first, format.dots_day_first, format.digits
        elif format is not None:
            # A tuple hashes faster than the format; rules call this method often.
            key = format.decimal, format.thousands, format.word, format.clock, *format.marks
            key = *key, format.day_start, *format.tokens
        if key in self._read:
            return self._read[key]
        of_numbers = isinstance(format, DateFormat) and self.cells.dtype.is_numeric()
        if not of_numbers and (typed := _typed(self.cells)) is not None:
            values, is_date = typed
            missing = np.isnan(values)
            if format is None or is_date != isinstance(format, DateFormat):
                values = np.full(len(values), np.nan)
        elif format is None or isinstance(format, DateFormat):
            missing = self.levels.codes < 0
            values = np.full(len(missing), np.nan)
            if format is not None:
                values = self.levels.each(read_dates(self.levels.texts, format)[0], np.nan)
        elif format.decimal == "." and not format.clock and CR_ALONE not in format.marks:
            values, missing, places, texts = self._plain
            if len(places):
                values, missing = values.copy(), missing.copy()
                values[places] = read_numbers(texts, format)
                missing[places] = texts.is_in(list(format.tokens)).to_numpy()
        else:
            values = read_numbers(self.texts, format)
            missing = self.texts.is_in([*format.tokens, None], nulls_equal=True).to_numpy()
        large = np.abs(values) > _LARGEST
        if large.any():
            values = np.where(large, np.nan, values)
        unreadable = np.isnan(values) & ~missing & (key is not None)
        self._read[key] = Readings(values, missing, unreadable)
        return self._read[key]

    def n_distinct(self, format: ValueFormat) -> int:
        """Count the distinct values."""
        readings = self.read(format)
        exact = np.unique(readings.ordered)
        if not (rounded := readings.rounded).any():
            return exact.size
        return int((np.abs(exact) < EXACT).sum()) + self.texts.filter(pl.Series(rounded)).n_unique()

    def text(self, row: int) -> str:
        """Return one cell as text; ``""`` for null."""
        value = self.cells[row]
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.cells.dtype in (pl.Date, pl.Datetime):
            return date_text(float(_epoch_seconds(self.cells.slice(row, 1))[0]))
        return str(value)

    def beside(self, format: ValueFormat) -> tuple[dict[str, int], dict[str, int]]:
        """Count cells by mark (such as "%") or missing-value text; for dates, plain numbers.

        Also return the most frequent unreadable texts that occur twice or more, with their counts.
        """
        tokens: tuple[str, ...] = ()
        if isinstance(format, NumberFormat):
            tokens, marks = format.tokens, format.marks
            patterns = {mark: "|".join(p for p, _ in replacements((mark,))) for mark in marks}
        elif format.digits:
            patterns = {f"a number ({format.digits})": _STAMPED if format.digits == STAMP else _SIX}
        else:
            patterns = {"a number (YYYYMMDD, or days of a spreadsheet)": DATE_NUMBER}
        has_unread = self.read(format).unreadable.sum() > 1
        if not (patterns or tokens or has_unread):
            return {}, {}
        texts, counts, alike = self.levels.texts, self.levels.counts, _alike(self.levels.texts)
        hits = {name: alike.str.contains(pattern) for name, pattern in patterns.items()}
        hits |= {token: texts == token for token in tokens}
        found = {name: n for name, hit in hits.items() if (n := int(counts[hit.to_numpy()].sum()))}
        if not has_unread:
            return found, {}
        counts = np.where(self.levels.column.read(format).unreadable, counts, 0)
        first = [place for place in np.argsort(-counts, kind="stable") if counts[place] > 1]
        return found, {texts[int(k)]: int(counts[k]) for k in first[:MOST_TOKENS]}

    def content(self, format: ValueFormat | None) -> object:
        """Return a hashable value, which columns with the same cells in the same order share."""
        if format is None:
            return "text", self.levels.codes.tobytes(), tuple(self.levels.texts)
        readings = self.read(format)
        # Adding 0 removes negative zeros.
        values = hashlib.sha256((readings.values + 0.0).tobytes()).digest()
        return type(format), values, tuple(self.texts.filter(pl.Series(readings.rounded)))

    def take(self, rows: IntArray) -> Column:
        """Return some of the cells."""
        return Column(self.cells.gather(rows))

    @cached_property
    def _plain(self) -> tuple[FloatArray, BoolArray, IntArray, pl.Series]:
        """Values of plain numbers, a mask of missing cells, and positions and texts of other cells.

        Columns of plain numbers thus need no stripping of texts and no search for words.
        """
        cells = _written(self.cells)
        values = finite(cells)
        missing = np.zeros(len(values), dtype=np.bool_)
        rest = np.flatnonzero(np.isnan(values))
        if not len(rest):
            return values, missing, rest, pl.Series([], dtype=pl.String)
        texts, values = _stripped(cells.gather(rest)), values.copy()
        missing[rest], values[rest] = texts.is_null().to_numpy(), finite(texts)
        other = ~missing[rest] & np.isnan(values[rest])
        return values, missing, rest[other], texts.filter(other)


def _typed(cells: pl.Series) -> tuple[FloatArray, bool] | None:
    """Return the values of typed cells, and whether they are dates; ``None`` for text."""
    if cells.dtype in (pl.Date, pl.Datetime):
        return _epoch_seconds(cells), True
    if cells.dtype.is_numeric() or cells.dtype == pl.Boolean:
        return cells.cast(pl.Float64).to_numpy(), False
    return None


def _written(cells: pl.Series) -> pl.Series:
    """Convert cells to text; the float 3.0 becomes "3", as it would be in a text file."""
    if not cells.dtype.is_float():
        return cells if cells.dtype == pl.String else cells.cast(pl.String)
    return cells.to_frame().select(_AS_TEXT).to_series()


def _stripped(cells: pl.Series) -> pl.Series:
    if not np.isnan(finite(cells)).any():
        return cells  # no number has spaces beside it, and none is a word
    return cells.to_frame().select(_AS_STRIPPED).to_series()


def _levels(cells: pl.Series, codes: NDArray[np.int32] | None = None) -> Levels:
    """Return the levels of `cells` or, with `codes`, of `cells[codes]`; code -1 is missing."""
    texts, places = _encoded(cells)
    return Levels(texts, places if codes is None else np.append(places, np.int32(-1))[codes])


def _levels_of_numbers(cells: pl.Series) -> Levels:
    if cells.dtype.is_float():
        # Adding 0 makes -0.0 equal to 0.
        cells = pl.Series(cells.name, cells.to_numpy() + 0.0, nan_to_null=True)
    return Levels(*_encoded(cells))


def _encoded(cells: pl.Series) -> tuple[pl.Series, NDArray[np.int32]]:
    """Return distinct values in order of first occurrence, and each cell's code, -1 for null."""
    encoded = cells.to_arrow(compat_level=pl.CompatLevel.oldest()).dictionary_encode()
    # Arrow's own conversion would load pandas, if it is installed.
    places = pl.Series(encoded.indices)
    if places.null_count():  # the overhead of a query dominates for short columns
        places = places.fill_null(-1)
    return pl.Series(cells.name, encoded.dictionary), places.to_numpy()


def _epoch_seconds(cells: pl.Series) -> FloatArray:
    micros = cells.cast(pl.Datetime("us")) if cells.dtype == pl.Date else cells
    return micros.dt.epoch("us").cast(pl.Float64).fill_null(np.nan).to_numpy() / 1e6
