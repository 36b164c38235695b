"""How a text or sheet is laid out: what cuts rows, and which row names the columns."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kpca_apps.errors import InputError
from kpca_apps.names import one_line
from kpca_apps.tables.read.text import Text
from kpca_apps.tables.values import MISSING_WORDS, is_number_like

DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
# Stands for "no delimiter": a control character that no table of text holds.
ONE_COLUMN = "\x1f"

# Where two delimiters cut every row alike, the rarer in prose and numbers is meant: "1,5;2,5".
_CANDIDATES = "\t;|,"
_SAMPLE_BYTES = 1 << 18
_SAMPLE_ROWS = 300
_QUOTED = re.compile(r'(?:^|(?<=[\t;|,]))"(?:[^"]|"")*"', re.MULTILINE)
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
_SEPARATOR_LINE = re.compile(rb'"?sep=([^\s"]|\t)"?\r?(?=\n)')
# What stands around the words of a title on a line of cells.
_AROUND = ' \t\r",;|'

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


@dataclass(frozen=True)
class Layout:
    """What cuts the rows of a text, and where they begin."""

    delimiter: str  # one character; `ONE_COLUMN` where nothing cuts
    start: int  # the first byte that is not left out
    line: int  # the line it stands on
    notes: tuple[str, ...]

    @classmethod
    def of(cls, text: Text) -> Layout:
        """Find what the head of a text shows and its options do not say."""
        head, given, n_above = text.head, text.options.delimiter, text.options.skip_rows
        notes = []
        match = _SEPARATOR_LINE.match(head)
        # The newline that ends Excel's line ``sep=;`` stays, as a blank line.
        start = n_stated = match.end() if match else 0
        stated = given or (match[1].decode("utf-8") if match else None)
        if n_above:
            try:
                start = _start_of_line(head, n_above)
            except ValueError:
                raise InputError(
                    f"has no {n_above:,} lines above a header; give a smaller --skip-rows."
                ) from None
        delimiter = stated or sniff_delimiter(head[start:])
        if not n_above:
            below = head[n_stated:]
            n_above, delimiter = _below_title(below, stated, delimiter)
            if n_above:
                start = n_stated + _start_of_line(below, n_above)
                first = head[n_stated:start].decode("utf-8", "replace").split("\n")
                title = next(line for line in first if line.strip())
                lines = "Line 1 stands" if n_above == 1 else f"Lines 1 to {n_above} stand"
                notes.append(
                    f"{lines} above the header and {'is' if n_above == 1 else 'are'} left out "
                    f'("{one_line(title.strip(_AROUND), 60)}"); --skip-rows sets how many.'
                )
        if not stated and delimiter not in (",", ONE_COLUMN):
            name = DELIMITER_NAMES[delimiter]
            notes.append(f"Cells are cut at the {name} (found by itself).")
        return cls(delimiter, start, 1 + n_above, tuple(notes))


def sniff_delimiter(text: bytes) -> str:
    """Find the character that cuts the rows of a text table.

    Of delimiters outside quotes, one that cuts every row into as many cells wins, or else one that
    stands in most rows, so that a ragged row is reported and not read as a single column.
    """
    # The first rows, with quoted cells removed.
    head = text[:_SAMPLE_BYTES]
    if len(head) < len(text) and b"\n" in head:
        head = head[: head.rindex(b"\n")]
    lines = _QUOTED.sub("", head.decode("utf-8", "ignore")).splitlines()
    rows = [line for line in lines if line.strip(" ")][:_SAMPLE_ROWS]
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
    return sum(is_number_like(word) for row in body for word in row) * 2 > len(body) * width


def _below_title(head: bytes, given: str | None, sniffed: str) -> tuple[int, str]:
    """Return how many lines stand above the header of a text, and what cuts it below them.

    Titles may hide what cuts the rest, which the lower lines of the head show then.
    """
    sample = head[:_SAMPLE_BYTES].decode("utf-8", "ignore").split("\n")
    # What follows the last newline may be no whole line.
    sample = sample[:-1][:HEADER_SAMPLE] or sample
    lower = "\n".join(sample[len(sample) // 2 :]).encode()
    for cut in (sniffed, given or sniff_delimiter(lower)):
        rows, starts, line = [], [], 0
        even = collapse_spaces if cut == " " else bytes
        reader = csv.reader((even(one.encode()).decode() + "\n" for one in sample), delimiter=cut)
        try:
            for row in reader:
                rows.append(row)
                starts.append(line)
                line = reader.line_num
        except csv.Error:
            continue
        if (place := find_header(rows)) is not None:
            return starts[place], cut
    return 0, sniffed


def _start_of_line(text: bytes, n_lines: int) -> int:
    """Return the place of the first byte after so many lines."""
    place = 0
    for _ in range(n_lines):
        place = text.index(b"\n", place) + 1
    return place


def collapse_spaces(text: bytes) -> bytes:
    """Make one space of each run of spaces, and none of those that begin or end a line."""
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", re.sub(rb" {2,}", b" ", text))


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
