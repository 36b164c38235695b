"""What cuts the cells of a text table, and whether its first row is a header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

__all__ = ["DELIMITER_NAMES", "ONE_COLUMN", "header_is_missing", "is_number", "sniff_delimiter"]

DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
# Stands for "no delimiter": a control character that no table of text holds.
ONE_COLUMN = "\x1f"

# Where two delimiters cut every row alike, the rarer in prose and numbers is meant: "1,5;2,5".
_CANDIDATES = "\t;|,"
_SAMPLE_BYTES = 1 << 18
_SAMPLE_ROWS = 300
_QUOTED = re.compile(r'(?:^|(?<=[\t;|,]))"(?:[^"]|"")*"', re.MULTILINE)
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
_NUMBER = re.compile(r"[-+]?(\d[\d.,' \u00a0\u202f]*|[.,]\d+)([eE][-+]?\d+)?\s*%?")
# Longer cells are no measurements, and the pattern would try every way to end them.
_LONGEST_NUMBER = 100
_MISSING = frozenset({"na", "n/a", "nan", "null", "none", "?", "-", "inf", "-inf"})


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number in some notation."""
    bare = cell.strip()
    return len(bare) <= _LONGEST_NUMBER and _NUMBER.fullmatch(bare) is not None


def sniff_delimiter(text: bytes) -> str:
    """Find the character that cuts the rows of a text table.

    Delimiters are counted outside quotes over the first rows. One that cuts every row into the
    same number of cells wins; failing that, one that stands in most rows does, so that a table
    with a ragged row is reported as ragged and not read as a single column.
    Runs of spaces are ``" "``, and no delimiter is `ONE_COLUMN`.
    """
    rows = _sample(text)
    if not rows:
        return ONE_COLUMN
    for delimiter in _CANDIDATES:
        counts = [row.count(delimiter) for row in rows]
        if counts[0] and min(counts) == max(counts):
            return delimiter
    if _cut_by_spaces(rows):
        return " "
    best = max(_CANDIDATES, key=lambda delimiter: _agreement(rows, delimiter))
    return best if _agreement(rows, best) > 0 else ONE_COLUMN


def _sample(text: bytes) -> list[str]:
    """First rows with quoted cells taken out."""
    head = text[:_SAMPLE_BYTES]
    if len(head) < len(text) and b"\n" in head:
        head = head[: head.rindex(b"\n")]
    lines = _QUOTED.sub("", head.decode("utf-8", "ignore")).splitlines()
    return [line for line in lines if line.strip(" ")][:_SAMPLE_ROWS]


def _agreement(rows: Sequence[str], delimiter: str) -> float:
    """Share of rows cut alike by a delimiter; 0 where it is most likely part of the text."""
    counts = [row.count(delimiter) for row in rows]
    body = rows[1:] or rows
    if delimiter == "," and all(_DECIMAL_COMMA.fullmatch(row.strip()) for row in body):
        return 0.0
    present = sum(count > 0 for count in counts) / len(counts)
    share = max(Counter(count for count in counts if count).values(), default=0) / len(counts)
    # A delimiter missing from the header must be all the more regular below it.
    return share if present >= (0.5 if counts[0] else 0.9) and (counts[0] or share >= 0.9) else 0.0


def _cut_by_spaces(rows: Sequence[str]) -> bool:
    """Rows of equally many words, most of them numbers: prose is not a table."""
    words = [row.split() for row in rows]
    width = len(words[0])
    if width < 2 or any(len(row) != width for row in words):
        return False
    body = words[1:] or words
    return sum(is_number(word) for row in body for word in row) * 2 > len(body) * width


def header_is_missing(cells: Sequence[str]) -> bool:
    """Whether a first row is data: all numbers or words for missing, at least one number.

    A row that counts 0, 1, 2... or 1, 2, 3... is taken for names, as pandas writes them.
    """
    words = [cell.strip() for cell in cells]
    if len(words) > 2 and any(
        words == [str(number) for number in range(start, start + len(words))] for start in (0, 1)
    ):
        return False
    numbers = sum(map(is_number, words))
    return numbers > 0 and all(is_number(w) or w.casefold() in _MISSING for w in words)
