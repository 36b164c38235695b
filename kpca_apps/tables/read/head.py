"""Which of the first rows of a table name its columns, and which of them are no data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

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
# Of the rows below a header, so many have its width; of a column's cells, so many are measures.
_LEAST_ALIKE = 0.9
# Rows below the header that may belong to it: units, questions, kinds of statistics.
_MOST_BELOW = 3
_RULE = re.compile(r"[-=_+*:~. ]*[-=_+*~]{3}[-=_+*:~. ]*")
_YEAR = re.compile("1[89][0-9]{2}|20[0-9]{2}|21[0-4][0-9]")
_JOINED = "more of the header, joined"
_LEAST_KNOWN = 3  # cells that show what a column holds
_DATE = re.compile(
    r"[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}.*|[0-9]{4}[-/][0-9]{1,2}|[0-9]{1,2}:[0-9]{2}.*"
)
# Beginnings of cells of data that are no numbers: censored, an error of a spreadsheet.
_NO_UNITS = ("<", ">", "=", "~", "#", "\u2264", "\u2265")
_UNIT = re.compile(
    r"[\[(].*[\])]|%|[^ ]*[\u00b0\u00b5\u03bc\u00b2\u00b3%$\u20ac\u00a3].*|(?!n/)\S*[^\W\d]/.*"
    r"|(?:[dD]eg(?:rees?)?\.? ?)?[CFK]|[kKcmdMGn]?(?:m|g|s|l|L|A|V|W|J|N|Pa|Hz|mol|Wh|bar|B)[23]?"
    r"|min|hours?|h|days?|d|years?|months?|meters?|pcs|kts?|mph|inch(?:es)?|ft|lbs?|ppm|ppb|pH"
    r"|EUR|USD|GBP|CHF|JPY",
)


@dataclass(frozen=True)
class Head:
    """What the first rows of a table are: its header, and rows that are no data."""

    place: int  # of the first row that names the columns
    names: list[str] | None  # of its columns; None if that row is data
    below: dict[int, str]  # each row between names and data: its place -> what it is
    is_by_order: bool = False  # whether the numbers among its names are years, dates or places


def header_is_missing(cells: Sequence[str]) -> bool:
    """Whether a first row is data: all numbers or words for missing, at least one number.

    A row that counts 0, 1, 2... or 1, 2, 3... is taken for names, as pandas writes them.
    """
    words = [cell.strip() for cell in cells]
    if len(words) > 2 and _counts_from_the_start(words):
        return False
    others = [word for word in words if not is_number_like(word)]
    return len(others) < len(words) and all(word.casefold() in _NO_NAMES for word in others)


def _counts_from_the_start(words: Sequence[str]) -> bool:
    return any(
        list(words) == [str(number) for number in range(start, start + len(words))]
        for start in (0, 1)
    )


def first_row(rows: Sequence[Sequence[str]]) -> Head:
    """Take the first row with something in it for the header, unless it is data."""
    place = next(place for place, row in enumerate(rows) if any(map(str.strip, row)))
    names = [cell.strip() for cell in rows[place]]
    return Head(place, None if header_is_missing(names) else names, {})


def find_head(rows: Sequence[Sequence[str]], place: int | None) -> Head:
    """Find what the first rows of a table are, from the header that `find_header` found."""
    place = first_row(_without_margins(rows)).place if place is None else place
    sample = _Sample.of(rows, place)
    names = [cell.strip() for cell in rows[place]]
    is_by_order = sample.names_by_order(names)
    if header_is_missing(names) and not is_by_order:
        return Head(place, None, {})
    if place and not sample.are_clear(names):
        # One name may stand above several columns: a year over quarters.
        above = [cell.strip() for cell in rows[place - 1]]
        if sample.are_clear(_joined(above, names)):
            place, names = place - 1, above
    below = sample.below(place, names)
    for second in [number for number, kind in below.items() if kind == _JOINED]:
        lower = [cell.strip() for cell in rows[second]]
        if sample.are_clear(lower):
            return Head(second, lower, sample.below(second, lower))
        names = _joined(names, lower)
    return Head(place, names, below, is_by_order)


def _joined(above: Sequence[str], names: Sequence[str]) -> list[str]:
    """Join the names in two rows; one above goes on to the right, up to the next."""
    result, group = [], ""
    for over, name in zip(above, names, strict=False):
        group = over or (group if name else "")
        result.append(f"{group} {name}".strip())
    return result


@dataclass(frozen=True)
class _Sample:
    """What the rows below a header hold, by column."""

    rows: Sequence[Sequence[str]]  # of the table, from its top
    width: int
    columns: list[list[str]]  # the cells of each that hold something; none if the header is wider

    @classmethod
    def of(cls, rows: Sequence[Sequence[str]], place: int) -> _Sample:
        """Look at the rows below a header at a place."""
        words = [row for row in rows[place:][: 1 + _MOST_BELOW] if not any(map(is_measure, row))]
        filled = [row for row in rows[place + 1 :] if any(map(str.strip, row))]
        # Further rows of the header come first, and all of it may be repeated.
        if len(filled) > 2 * _MOST_BELOW:
            filled = [row for row in filled[_MOST_BELOW:] if row not in words]
        width = len(rows[place])
        cells = zip(*(row for row in filled if len(row) == width), strict=True)
        columns = [[c for cell in column if (c := cell.strip())] for column in cells]
        return cls(rows, width, columns)

    @cached_property
    def values(self) -> list[set[str]]:
        """The distinct cells of each column."""
        return [set(column) for column in self.columns]

    @cached_property
    def is_measured(self) -> list[bool]:
        """Whether the cells of each column are numbers, dates or times."""
        return [_share(column, is_measure) >= _LEAST_ALIKE for column in self.columns]

    def names_by_order(self, cells: Sequence[str]) -> bool:
        """Whether the numbers of a row are years or dates in order, or count from 0 or 1.

        The columns below years and dates hold something else.
        """
        places = [k for k, cell in enumerate(cells) if is_number_like(cell)]
        words = [cells[k] for k in places]
        if len(words) > 2 and _counts_from_the_start(words):
            return True
        kind = _YEAR.fullmatch if all(map(_YEAR.fullmatch, words)) else _DATE.fullmatch
        if len(self.columns) != len(cells) or not all(map(kind, words)):
            return False
        is_ordered = kind == _DATE.fullmatch or sorted(words) in (words, words[::-1])
        return (
            is_ordered
            and len(set(words)) == len(words) > 1
            and all(_share(self.columns[k], kind) < 0.5 for k in places)
        )

    def has_words_over_measures(self, cells: Sequence[str]) -> bool:
        """Whether a row has words over most of the columns of measures, if there are any."""
        over = [cell for cell, yes in zip(cells, self.is_measured, strict=False) if yes]
        n_words = sum(bool(c.strip()) and not is_measure(c.strip()) for c in over)
        return n_words > 0 and 2 * n_words >= len(over)

    def are_clear(self, names: Sequence[str]) -> bool:
        """Whether names suffice: each column with cells has one of its own."""
        used = [name for name, column in zip(names, self.columns, strict=False) if column]
        return len(names) == self.width and all(used) and len(set(used)) == len(used)

    def below(self, place: int, names: Sequence[str]) -> dict[int, str]:
        """Return what the rows right below a header are, where they are no data.

        A row that completes the names is joined to them.
        """
        found: dict[int, str] = {}
        if len(self.columns) != self.width:
            return found
        n_of = Counter(names)
        unclear = [
            k for k, name in enumerate(names) if (not name or n_of[name] > 1) and self.columns[k]
        ]
        measured = [k for k, yes in enumerate(self.is_measured) if yes]
        for number in range(place + 1, min(place + 1 + _MOST_BELOW, len(self.rows))):
            cells = [cell.strip() for cell in self.rows[number]]
            words = {k: c for k, c in enumerate(cells) if c.casefold() not in MISSING_WORDS}
            if len(cells) != self.width or not words:
                break
            completes = not found and len(unclear) > 1 and all(k in words for k in unclear)
            is_data = any(is_measure(c) or c.startswith(_NO_UNITS) for c in words.values())
            if is_data or not (completes or all(c not in self.values[k] for k, c in words.items())):
                break
            over = [k for k in measured if k in words]
            units = [k for k in over if _UNIT.fullmatch(words[k])]
            differ = len({words[k] for k in over}) > 1 or len(units) == len(over) > 0
            is_blank = completes and any(not cells[k] for k in measured)
            if not (differ and 2 * len(over) >= len(measured)) and not is_blank:
                break
            kind = "units" if 2 * len(units) >= len(over) else "more of the header"
            found[number] = _JOINED if completes else kind
        return found


def is_measure(cell: str) -> bool:
    """Whether a cell is made of what numbers, dates and times are made of."""
    return is_number_like(cell) or _DATE.match(cell) is not None


def _share(cells: Sequence[str], is_such: Callable[[str], object]) -> float:
    """Share of the known cells of a column that are such; 0 if they are too few to say."""
    known = [cell for cell in cells if cell.casefold() not in MISSING_WORDS]
    return sum(map(bool, map(is_such, known))) / len(known) if len(known) >= _LEAST_KNOWN else 0.0


def find_header(rows: Sequence[Sequence[str]]) -> int | None:
    """Find the header below a title: its place among the first rows of a table, as cells.

    ``None`` where the first row with something in it may name the columns itself, and where none
    below it clearly does: that row is as wide as most, has names and no numbers in it, and all
    above it are remarks, rules, blank, half as wide at most, or of another width.
    """
    rows = _without_margins(rows)
    filled = [[cell for cell in row if cell.strip()] for row in rows]
    full = [place for place, cells in enumerate(filled) if cells]
    below = [len(rows[place]) for place in full[len(full) // 2 :] if not is_rule(filled[place])]
    if not below:
        return None
    ((width, _),) = Counter(below).most_common(1)
    half, is_doubtful = _MOST_TITLE * width, False
    for place in full[:_MOST_ABOVE]:
        row, named = rows[place], len(filled[place])
        # A row of names may begin with the sign of a remark too.
        if is_rule(filled[place]) or (
            len(row) != width and filled[place][0].lstrip().startswith(_COMMENTS)
        ):
            continue
        if place > full[0] and _names_columns(row, width, rows, place):
            after = [
                len(rows[one]) == width for one in full if one > place and not is_rule(filled[one])
            ]
            is_header = after and sum(after) >= _LEAST_ALIKE * len(after)
            # Below what has more cells than a title, names must differ from their columns, too.
            if is_doubtful and not _Sample.of(rows, place).has_words_over_measures(row):
                return None
            return place if is_header else None
        # The first row may be the header, or what stands above is none: it is as good as any.
        if width < 2 or (len(row) == width and _is_full(row)):
            return None
        is_doubtful = is_doubtful or named > max(1, half) or (len(row) == width and named >= half)
    return None


def is_rule(cells: Sequence[str]) -> bool:
    """Whether all cells of a row that hold something are lines drawn with characters."""
    words = [word for cell in cells if (word := cell.strip())]
    return bool(words) and all(map(_RULE.fullmatch, words))


def _names_columns(
    cells: Sequence[str], width: int, rows: Sequence[Sequence[str]], place: int
) -> bool:
    """Whether a row has the width of the table and names in nearly all of it."""
    named = [cell.strip() for cell in cells if cell.strip()]
    if len(cells) != width or not _is_full(cells) or len(set(named)) < 2:
        return False
    if sum(map(is_number_like, named)) <= _MOST_NUMBERS * len(named):
        return True
    return _Sample.of(rows, place).names_by_order([cell.strip() for cell in cells])


def _is_full(cells: Sequence[str]) -> bool:
    """Whether nearly all cells hold something, but for the corner above the names of rows."""
    filled = [bool(cell.strip()) for cell in cells]
    return sum(filled) >= _LEAST_FILLED * len(cells) or all(filled[1:])


def _without_margins(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Leave out the columns that are empty in the lower half of what is filled."""
    filled = [row for row in rows if any(map(str.strip, row)) and not is_rule(row)]
    lower = filled[len(filled) // 2 :]
    if not lower:
        return [list(row) for row in rows]
    ((width, _),) = Counter(map(len, lower)).most_common(1)
    cells = zip(*(row for row in lower if len(row) == width), strict=True)
    used = [any(map(str.strip, column)) for column in cells]
    return [list(compress(row, used)) if len(row) == width else list(row) for row in rows]
