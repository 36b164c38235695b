"""Which of the first rows of a table name its columns, and which of them are no data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kpca_apps.tables.values import MISSING_WORDS, is_number_like

# What data may hold beside numbers; an empty name is one that pandas leaves out, of the index.
_NO_NAMES = (MISSING_WORDS | {"inf", "-inf"}) - {""}
# Rows that are looked at, and how far down a header may stand: titles are short.
HEADER_SAMPLE, _MOST_ABOVE = 300, 50
_COMMENTS = ("#", "%", "//")
# Of the cells of a header: so many hold something, and so few of these are numbers.
_LEAST_FILLED, _MOST_NUMBERS = 0.8, 0.2
# A title fills at most this share of a row's width.
_MOST_TITLE = 0.5
# Of the rows below a header, so many have its width.
_LEAST_ALIKE = 0.9
_DATE = re.compile(r"[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}.*|[0-9]{1,2}:[0-9]{2}.*")
# The formats of a logger (Campbell Scientific) and of surveys (Qualtrics).
_LOGGER = ["toa5", "timestamp", "ts"]
_IMPORT = '{"ImportId"'


@dataclass(frozen=True)
class Head:
    """What the first rows of a table are: its header, and rows that are no data."""

    place: int  # of the first row that names the columns
    names: list[str] | None  # of its columns; None if that row is data
    below: dict[int, str] = field(default_factory=dict)  # rows between names and data -> their kind
    # Whether a row that repeats the names is no data: they are words above numbers or dates.
    are_words: bool = False


def header_is_missing(cells: Sequence[str]) -> bool:
    """Whether a first row is data: all numbers or words for missing, at least one number.

    A row that counts 0, 1, 2... or 1, 2, 3... is taken for names, as pandas writes them.
    """
    words = [cell.strip() for cell in cells]
    if len(words) > 2 and _counts(words):
        return False
    others = [word for word in words if not is_number_like(word)]
    return len(others) < len(words) and all(word.casefold() in _NO_NAMES for word in others)


def _counts(words: Sequence[str]) -> bool:
    return any(
        list(words) == [str(number) for number in range(start, start + len(words))]
        for start in (0, 1)
    )


def is_measure(cell: str) -> bool:
    """Whether a cell is made of what numbers, dates and times are made of."""
    return is_number_like(cell) or _DATE.fullmatch(cell.strip()) is not None


def first_row(rows: Sequence[Sequence[str]]) -> Head:
    """Take the first row with something in it for the header, unless it is data."""
    place = next(place for place, row in enumerate(rows) if any(map(str.strip, row)))
    return Head(place, None if header_is_missing(rows[place]) else [*rows[place]])


def find_head(rows: Sequence[Sequence[str]], place: int | None) -> Head:
    """Find what the first rows of a table are; its header, below titles, is at a `place` if any.

    At least one row has something in it.
    """
    place = first_row(rows).place if place is None else place
    words = [[cell.strip() for cell in row] for row in rows[place:]]
    firsts = [row[0].casefold() if row else "" for row in words[:4]]
    if firsts[:3] == _LOGGER and len(words) > 3 and len({*map(len, words[1:4])}) == 1:
        return Head(place + 1, words[1], {place + 2: "units", place + 3: "kinds of statistic"})
    below = {}
    for number, row in enumerate(words[1:3]):
        if row and all(cell.startswith(_IMPORT) for cell in row):
            below = dict.fromkeys(range(place + 1, place + 1 + number), "questions")
            below[place + 1 + number] = "import ids"
    data = [row for row in words[1:] if len(row) == len(words[0]) and row != words[0]]
    above = [words[0][k] for k in _measured(data)]
    are_words = not any(is_measure(one) or one.casefold() in MISSING_WORDS for one in above)
    names = None if header_is_missing(words[0]) else [*rows[place]]
    return Head(place, names, below, are_words and bool(above))


def _measured(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns that hold mostly numbers, dates or times, two at least."""
    found = []
    for k, column in enumerate(zip(*rows, strict=True)):
        cells = [cell for cell in column if cell.casefold() not in MISSING_WORDS]
        n_measures = sum(map(is_measure, cells))
        if n_measures > 1 and 2 * n_measures > len(cells):
            found.append(k)
    return found


def find_header(rows: Sequence[Sequence[str]]) -> int | None:
    """Find the header below a title: its place among the first rows of a table, as cells.

    ``None`` where the first row with something in it may name the columns itself, and where none
    below it clearly does: that row is as wide as most, has names and no numbers in it, and all
    above it are remarks, blank, or half as wide at most.
    """
    filled = [[cell for cell in row if cell.strip()] for row in rows]
    full = [place for place, cells in enumerate(filled) if cells]
    below = [len(rows[place]) for place in full[len(full) // 2 :]]
    if not below:
        return None
    ((width, _),) = Counter(below).most_common(1)
    half = _MOST_TITLE * width
    for place in full[:_MOST_ABOVE]:
        row, named = rows[place], len(filled[place])
        # A row of names may begin with the sign of a remark too.
        if len(row) != width and filled[place][0].lstrip().startswith(_COMMENTS):
            continue
        if place > full[0] and _names_columns(row, width):
            after = [len(rows[one]) == width for one in full if one > place]
            return place if after and sum(after) >= _LEAST_ALIKE * len(after) else None
        # The first row may be the header, or what stands above is none: it is as good as any.
        if width < 2 or named > max(1, half) or (len(row) == width and named >= half):
            return None
    return None


def _names_columns(cells: Sequence[str], width: int) -> bool:
    """Whether a row has the width of the table and names in nearly all of it."""
    named = [cell.strip() for cell in cells if cell.strip()]
    if len(cells) != width or len(named) < _LEAST_FILLED * width:
        return False
    numbers = [*filter(is_number_like, named)]
    return len(numbers) <= _MOST_NUMBERS * len(named) and len(set(named)) > 1
