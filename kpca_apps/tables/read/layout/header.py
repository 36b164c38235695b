"""Find the header among the first rows of a table, and rows near the header that are not data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

import polars as pl

from kpca_apps.tables.source_info import REMARK
from kpca_apps.tables.values import MISSING_WORDS, is_number_like, shapes_of

# Words that are data, not names. An empty cell may be a name: pandas writes it for the index.
_NO_NAMES = (MISSING_WORDS | {"inf", "-inf"}) - {""}
HEADER_SAMPLE, _MOST_ABOVE = 100, 50  # rows in the sample; maximum number of rows above a header
_COMMENTS = ("#", "%", "//")
# In a header: minimum share of filled cells, maximum of numbers, minimum of distinct cells.
_LEAST_FILLED, _MOST_NUMBERS, _LEAST_APART = 0.8, 0.2, 0.8
_MOST_TITLE = 0.5  # maximum share of filled cells in a row of a title
_LEAST_ALIKE = 0.9  # minimum share of the rows below a header that have as many cells as the header
_DATE = re.compile(r"[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}.*|[0-9]{1,2}:[0-9]{2}.*")
_LOGGER = ["toa5", "timestamp", "ts"]  # first cells of the first three rows in data loggers' files
_IMPORT = '{"ImportId"'  # begins the cells of a row in exports of Qualtrics
# Words below the questions in exports of SurveyMonkey.
_ANSWER = re.compile(
    "(?i)(?:open-ended )?response|(?:offene )?antwort|r[e\u00e9]ponse(?: ouverte)?"
    "|respuesta(?: abierta)?|resposta(?: aberta)?|risposta(?: aperta)?"
)
# Numbers that may name columns: years, and counts up to a cycle (days, months, hours, weeks).
_YEARS, _CYCLES = range(1900, 2101), (7, 12, 24, *range(28, 32), 52, 53)
_WORDS = re.compile(r"[^\W\d_]{2,}")
_WORD, _NO_FLAG = re.compile(r"[^\W_]{2}"), re.compile(r"[^\W\d_]{2}|[%\u2030\u00b0$\u20ac\u00a3]")
# Symbols of units, except single letters that are also flags ("H", "L", "c").
_CURRENCY = r"[kTM]?(?:EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|HUF|INR|CNY|[$\u20ac\u00a3])"
_SYMBOL = (
    r"(?:[%\u2030\u00b0]|\u00b0 ?[CFK]|[CFK]|(?i:deg(?:rees)?)(?: ?[CF])?|pp[mbt]|pH|psu|dB|rpm"
    r"|[munpkMGTcdh\u00b5\u03bc]?(?:g|m|s|A|V|W|Hz|Pa|J|N|mol|bar|Wh|S|Bq|lx|ohm|\u03a9|\u2126)"
    r"|[munc\u00b5\u03bc]?l|[munc\u00b5\u03bc]L|h|hrs?|min|sec|d|days?|months?|years?|yr|t|ha|ft|in"
    rf"|k?cal|lbs?|oz|mph|kn|pcs|Stk|persons|{_CURRENCY})(?:\^?-?[1-4]|[\u00b9\u00b2\u00b3\u207b]+)?"
)
_TIME = re.compile(r"(?i)[-ymdhstja/.:, ]*(?:yy|hh|jj|aaaa)[-ymdhstja/.:, ]*|utc|gmt")
_UNIT = re.compile(rf"[\[(]?(?:1/)?{_SYMBOL}(?:[ ./*\u00b7]+(?:{_SYMBOL}|L)){{0,3}}[\])]?")


@dataclass(frozen=True)
class Head:
    """The header of a table, and rows below the header that are not data."""

    place: int  # position of the first row with names, among the sampled rows
    names: list[str] | None  # names of the columns; None if the first row is data
    below: dict[int, str] = field(default_factory=dict)  # position of a row -> its kind
    # Whether names are words above numbers or dates. If so, rows that repeat names are not data.
    are_words: bool = False


def header_is_missing(cells: Sequence[str]) -> bool:
    """Whether a first row is data: it has numbers, and otherwise words for missing values only.

    Rows that count from 0 or 1 are names, as pandas writes them.
    """
    if len(cells) > 2 and _counts(cells):
        return False
    others = [cell for cell in cells if not is_number_like(cell)]
    return len(others) < len(cells) and all(cell.strip().casefold() in _NO_NAMES for cell in others)


def _counts(cells: Sequence[str]) -> bool:
    return any([*cells] == [*map(str, range(one, one + len(cells)))] for one in (0, 1))


def are_periods(words: Sequence[str]) -> bool:
    """Whether words are dates, years in equal steps, or all numbers of a cycle (months: 1-12).

    >>> [are_periods(one) for one in (["2019", "2020", "2021"], ["1", "2", "3"])]
    [True, False]
    """
    if len({*words}) > 2 and all(map(_DATE.fullmatch, words)):
        return len({*words}) == len(words)
    numbers = [int(word) for word in words if word.isascii() and word.isdecimal()]
    if len(numbers) < len(words) or len(numbers) < 3:
        return False
    steps = {after - before for before, after in pairwise(numbers)}
    are_years = len(steps) == 1 and 0 not in steps and all(one in _YEARS for one in numbers)
    return are_years or (len(words) in _CYCLES and _counts(words))


def is_measure(cell: str) -> bool:
    """Whether a cell consists of the characters of a number, date or time."""
    return is_number_like(cell) or _DATE.fullmatch(cell) is not None


def first_row(rows: Sequence[list[str]]) -> Head:
    """Return the first row that is not blank as the header, unless it is data."""
    place = next(place for place, row in enumerate(rows) if any(row))
    return Head(place, None if header_is_missing(rows[place]) else rows[place])


def find_head(rows: Sequence[list[str]], place: int | None) -> Head:
    """Return the header, at `place` if given, and the rows below it that are not data."""
    top = first_row(rows).place
    place = top if place is None else place
    firsts = [row[0].casefold() if row else "" for row in rows[top : top + 4]]
    if firsts[:3] == _LOGGER and firsts[3:] and len({*map(len, rows[top + 1 : top + 4])}) == 1:
        below = {top + 2: "units", top + 3: "kinds of statistic"}
        return Head(top + 1, rows[top + 1], below)
    # The row above `place` may name groups of columns, even if less than half of it is filled.
    for first in range(max(place - 1, 0), place + 1):
        if names := _joined_names(rows[first:]):
            return Head(first, names, {first + 1: "second row of names, joined"})
    header, below = rows[place], {}
    for number, row in enumerate(rows[place + 1 : place + 3], start=place + 1):
        if row and all(cell.startswith(_IMPORT) for cell in row):
            below = dict.fromkeys(range(place + 1, number), "questions") | {number: "import ids"}
    data = _rows_like(header, rows[place + 1 :])
    if not below and data and data[0] is rows[place + 1] and _are_descriptions(data[0], data[1:]):
        below = {place + 1: "descriptions of the columns"}
    # A row of units may follow blank lines and remarks, but not data.
    after = (number for number in range(place + 1, len(rows)) if any(rows[number][1:]))
    units = next(after, 0)
    like = _rows_like(header, rows[units:]) if units else []
    if like and like[0] is rows[units] and _are_units(like[0], like[1:]):
        between = (number for number in range(place + 1, units) if any(rows[number]))
        below = dict.fromkeys(between, REMARK) | {units: "units"}
    names = None if header_is_missing(header) else header
    return Head(place, names, below, names is not None and _stands_above(header, data))


def _rows_like(header: list[str], rows: Sequence[list[str]]) -> list[list[str]]:
    return [row for row in rows if len(row) == len(header) and row != header]


def _stands_above(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    above = [header[k] for k in measured_columns(rows)]
    is_full = not any(name.casefold() in MISSING_WORDS for name in above)
    return bool(above) and is_full and _are_names(above)


def _are_descriptions(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether all cells of a row contain words, and most cells above numbers have several words.

    The first cell differs in form from those below; else the words may stand for missing values.
    """
    cells = [first[k] for k in measured_columns(rows, is_number_like)]
    are_words = len(cells) > 1 and all(map(_WORD.search, first)) and len({*first}) == len(first)
    if not are_words or 2 * sum(len(_WORDS.findall(cell)) > 1 for cell in cells) <= len(cells):
        return False
    forms = shapes_of(pl.Series([first[0], *(row[0] for row in rows)]))
    return forms[0] not in forms[1:].to_list()


def _are_units(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a row has several units above columns of numbers, and no other cell above numbers."""
    given = {k: cell for k, cell in enumerate(first) if cell.casefold() not in MISSING_WORDS}
    measured, numbers = ({*measured_columns(rows, one)} for one in (is_measure, is_number_like))
    # Words may be above columns of text, and date patterns above columns of dates.
    of_dates = measured - numbers
    units = {
        k: cell
        for k, cell in given.items()
        if k in numbers or (_UNIT.fullmatch(cell) and any(is_number_like(row[k]) for row in rows))
    }
    cells = units.values()
    are_units = all(_UNIT.fullmatch(cell) or _TIME.fullmatch(cell) for cell in cells)
    if not (are_units and any(map(_NO_FLAG.search, cells))):
        return False
    if not all(_TIME.fullmatch(given[k]) for k in of_dates & given.keys()):
        return False
    # Three units, such as "kg", make a row of units. Two units do if a column without a unit has no
    # gaps, or if a column with a unit has decimals.
    is_short = any(
        k not in given and all(row[k] for row in rows if any(row)) for k in range(len(first))
    )
    is_short = is_short or any("." in row[k] or "," in row[k] for row in rows for k in units)
    if len(units) < 3 - is_short:
        return False
    return all(row[k] != cell for row in rows for k, cell in given.items())


def _joined_names(rows: Sequence[list[str]]) -> list[str] | None:
    """Join the names in the first two rows, if the first row names groups of columns; else None.

    Within each group of two or more columns, the second row has distinct words or years. Either
    several groups share them, or the first column is empty in the second row only; in that case,
    the second row may also have words for the answers to questions.
    """
    first, second, *others = rows if len(rows) > 2 else [[""], [""]]
    if len(second) != len(first):
        return None
    label = ""
    labels = [label := cell or label for cell in first]
    names = [" ".join(filter(None, pair)) for pair in zip(labels, second, strict=True)]
    data = _rows_like(first, others)
    is_below = not second[0] and all(row[0] for row in [first, *data] if any(row))
    runs = [[*run] for label, run in groupby(range(len(first)), labels.__getitem__) if label]
    # In surveys, the cell below a question with a single column is empty, or like "Response".
    alone = [second[run[0]] for run in runs if len(run) == 1]
    is_answer = [_ANSWER.fullmatch(cell) is not None for cell in filter(None, alone)]
    if is_below and all(is_answer) and any(map(_ANSWER.fullmatch, second)):
        return names
    years = [k for k, cell in enumerate(second) if is_measure(cell)]
    are_names = all(_is_year(second[k]) for k in years) and _NO_NAMES.isdisjoint(
        cell.casefold() for cell in second
    )
    if not are_names:
        return None
    groups = [run for run in runs if len(run) > 1]
    inside = [{second[k] for k in group} for group in groups]
    above = [second[k] for k in measured_columns(data) if second[k]]
    are_words = len(above) > 1 and all(map(_WORD.search, above))
    are_distinct = all(map(all, inside)) and len({*names}) == len(names)
    are_alike = len(groups) > 1 and all(one <= max(inside, key=len) for one in inside)
    is_joined = bool(groups) and are_words and are_distinct and (are_alike or is_below)
    return names if is_joined and not _are_years(data, years) else None


def _are_years(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> bool:
    return 2 * sum(_is_year(row[k]) for row in rows for k in columns) > len(rows) * len(columns)


def _is_year(cell: str) -> bool:
    return cell.isascii() and cell.isdecimal() and int(cell) in _YEARS


def is_sparse(cells: Sequence[str], width: int) -> bool:
    """Whether a row has as few filled cells as a title or footer."""
    return sum(map(bool, cells)) <= max(1, _MOST_TITLE * width)


def measured_columns(
    rows: Sequence[Sequence[str]], is_one: Callable[[str], bool] = is_measure
) -> list[int]:
    """Return the columns in which most cells, and at least two, are numbers, dates or times."""
    found = []
    for k, column in enumerate(zip(*rows, strict=True)):
        cells = [cell for cell in column if cell.casefold() not in MISSING_WORDS]
        n_measures = sum(map(is_one, cells))
        if n_measures > 1 and 2 * n_measures > len(cells):
            found.append(k)
    return found


def find_header(rows: Sequence[list[str]]) -> int | None:
    """Return the position of a header below a title, among the first rows; None without a title.

    The header has as many cells as most rows. Its cells are names, or years or months, but no other
    numbers. All rows above the header are remarks, blank, or at most half filled. If the names are
    above numbers, full rows above the header are allowed, too, but not of the header's width.
    """
    full = [place for place, row in enumerate(rows) if any(row)]
    below = [len(rows[place]) for place in full[len(full) // 2 :]]
    if not below:
        return None
    ((width, _),) = Counter(below).most_common(1)
    is_title = True
    for place in full[:_MOST_ABOVE]:
        row, is_short = rows[place], is_sparse(rows[place], width)
        # Skip remarks; a row of names that begins with a comment sign has the table's width.
        if len(row) != width and next(filter(None, row)).startswith(_COMMENTS):
            continue
        is_joined = place > full[0] and _joined_names(rows[place:]) is not None
        if is_joined or (place > full[0] and _names_columns(row, width)):
            # Ignore remarks, which have one cell.
            after = [rows[one] for one in full if one > place and len(rows[one]) > 1]
            like = [one for one in after if len(one) == width]
            # Rows of years may be data rather than names.
            is_data = like and are_periods([*filter(is_measure, like[0])])
            years = [k for k, cell in enumerate(row) if _is_year(cell)]
            is_data = is_data or (not is_joined and _are_years(like, years))
            is_alike = after and len(like) >= _LEAST_ALIKE * len(after) and not is_data
            is_above = is_joined or _stands_above(row, like)
            is_above = is_above or (is_title and not measured_columns(like))
            return place if is_alike and is_above else None
        # A row with `width` cells, enough of them filled, is in the table: no title is above it.
        named = sum(map(bool, row))
        if width < 2 or (len(row) == width and (named >= _MOST_TITLE * width or not is_short)):
            return None
        is_title &= is_short and len(row) != width
    return None


def _names_columns(cells: Sequence[str], width: int) -> bool:
    named = [cell for cell in cells if cell]
    is_full = len(cells) == width and len(named) >= _LEAST_FILLED * width
    return is_full and _are_names(named) and len({*named}) >= max(2, _LEAST_APART * len(named))


def _are_names(cells: Sequence[str]) -> bool:
    """Whether few cells are numbers or dates, or such cells are years, months or days in order."""
    measures = [*filter(is_measure, cells)]
    return len(measures) <= _MOST_NUMBERS * len(cells) or are_periods(measures)
