"""Which row of a text or a sheet names the columns, where titles or remarks stand above it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kpca_apps.tables.numbers import is_number_like
from kpca_apps.tables.values import MISSING_WORDS

__all__ = ["HEADER_SAMPLE", "find_header", "header_is_missing"]

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


def header_is_missing(cells: Sequence[str]) -> bool:
    """Whether a first row is data: all numbers or words for missing, at least one number.

    A row that counts 0, 1, 2... or 1, 2, 3... is taken for names, as pandas writes them.
    """
    words = [cell.strip() for cell in cells]
    if len(words) > 2 and any(
        words == [str(number) for number in range(start, start + len(words))] for start in (0, 1)
    ):
        return False
    others = [word for word in words if not is_number_like(word)]
    return len(others) < len(words) and all(word.casefold() in _NO_NAMES for word in others)


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
    return sum(map(is_number_like, named)) <= _MOST_NUMBERS * len(named) and len(set(named)) > 1
