"""Layout of a text: its delimiter, the line of its header, and its first rows."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kpca_apps.errors import InputError
from kpca_apps.tables.read.layout.header import (
    HEADER_SAMPLE,
    Head,
    find_head,
    find_header,
    first_row,
)
from kpca_apps.tables.read.text import Text
from kpca_apps.tables.values import is_number_like

DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
ONE_COLUMN = "\x1f"  # stands for no delimiter: a control character that tables do not contain

# Delimiters in order of preference, so that "1,5;2,5" is split at the semicolon.
_CANDIDATES = "\t;|,"
_SAMPLE_BYTES = 1 << 18
_SAMPLE_ROWS = 300
_QUOTED = re.compile(r'(?:^|(?<=[\t;|,]))"(?:[^"]|"")*"', re.MULTILINE)
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
_SEPARATOR_LINE = re.compile(rb'"?sep=([^\s"]|\t)"?\r?(?=\n)')
# A line of repeated characters, such as ---- or ====, also called ruler.
DRAWN_LINE = re.compile(rb"^[ \t]*\+?[-=_]{3}[-=_+]*[ \t]*(?=\r?$)", re.MULTILINE)


@dataclass(frozen=True)
class Layout:
    """The delimiter of a text, the position of its header, and its first rows."""

    delimiter: str  # one character, or `ONE_COLUMN`
    tidy: Callable[[bytes], bytes]  # removes bars (|) around lines, and spaces around cells
    is_drawn: bool  # whether `tidy` makes lines such as ----- blank
    start: int  # position of the header's first byte
    line: int  # line number of the header
    rows: list[list[str]]  # first rows, as stripped cells, from the first line that is not skipped
    lines: list[int]  # line number of each of `rows`
    head: Head | None  # header among `rows`; None if no row is complete
    notes: tuple[str, ...]

    @classmethod
    def of(cls, text: Text) -> Layout:
        """Detect the layout from the head of a text and its options."""
        head, options = text.head, text.options
        match = _SEPARATOR_LINE.match(head)
        # After Excel's line ``sep=;``, leave its newline as a blank line, to keep line numbers.
        start = match.end() if match else 0
        stated = options.delimiter or (match[1].decode("utf-8") if match else None)
        if options.skip_rows:
            try:
                start = _start_of_line(head, options.skip_rows)
            except ValueError:
                raise InputError(
                    f"has no header after {options.skip_rows:,} skipped lines; give a smaller "
                    "--skip-rows."
                ) from None
        below, is_open = head[start:], options.layout != "off"
        delimiter = stated or sniff_delimiter(below)
        sample = below[:_SAMPLE_BYTES].split(b"\n")
        sample = sample[:-1][:HEADER_SAMPLE] or sample
        tidy, is_drawn, rows, starts = _cut_sample(sample, delimiter, is_open=is_open)
        place = found = None
        is_titled = is_open and not options.skip_rows
        if is_titled and (place := find_header(rows)) is None and not stated:
            # A title above the header may suggest a wrong delimiter, so try all. Take the one that
            # finds the earliest header. But keep the current delimiter if it splits the header line
            # into as many cells as most other lines.
            widths = dict(zip(starts, map(len, rows), strict=True))
            most = max(widths.values(), key=[*widths.values()].count, default=0)
            lower = b"\n".join(sample[len(sample) // 2 :])
            for cut in dict.fromkeys((*_CANDIDATES, sniff_delimiter(lower))):
                other = _cut_sample(sample, cut, is_open=is_open)
                header, lines = find_header(other[2]), other[3]
                if header is None or widths.get(lines[header]) == most > 1:
                    continue
                if place is None or lines[header] < starts[place]:
                    delimiter, place = cut, header
                    tidy, is_drawn, rows, starts = other
        if any(map(any, rows)):
            found = find_head(rows, place) if is_open else first_row(rows)
            start += _start_of_line(below, starts[found.place])
        notes = []
        if not stated and delimiter not in (",", ONE_COLUMN):
            name = DELIMITER_NAMES[delimiter]
            notes.append(f"Cells are separated by the {name} (detected).")
        lines = [1 + options.skip_rows + place for place in starts]
        line = 1 + options.skip_rows if found is None else lines[found.place]
        return cls(delimiter, tidy, is_drawn, start, line, rows, lines, found, tuple(notes))


def sniff_delimiter(text: bytes) -> str:
    """Return the delimiter of a text.

    The best delimiter splits all rows into equally many cells. If none does, it is the one that
    occurs in most rows, so that ragged rows are reported.
    """
    head = text[:_SAMPLE_BYTES]
    if len(head) < len(text) and b"\n" in head:
        head = head[: head.rindex(b"\n")]
    lines = _QUOTED.sub("", head.decode("utf-8", "ignore")).splitlines()
    rows = [line for line in lines if line.strip(" ") and not DRAWN_LINE.match(line.encode())]
    rows = rows[:_SAMPLE_ROWS]
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
    """Return the largest share of rows with equally many delimiters; 0 if it proves nothing."""
    counts = [row.count(delimiter) for row in rows]
    body = rows[1:] or rows
    if delimiter == "," and all(_DECIMAL_COMMA.fullmatch(row.strip()) for row in body):
        return 0.0
    present = sum(count > 0 for count in counts) / len(counts)
    share = max(Counter(count for count in counts if count).values(), default=0) / len(counts)
    # A delimiter that does not occur in the header must be more regular in the rows below.
    return share if present >= (0.5 if counts[0] else 0.9) and (counts[0] or share >= 0.9) else 0.0


def _cut_by_spaces(rows: Sequence[str]) -> bool:
    words = [row.split() for row in rows]
    width = len(words[0])
    if width < 2 or any(len(row) != width for row in words):
        return False
    body = words[1:] or words
    return sum(is_number_like(word) for row in body for word in row) * 2 > len(body) * width


def _cut_sample(
    lines: Sequence[bytes], delimiter: str, *, is_open: bool
) -> tuple[Callable[[bytes], bytes], bool, list[list[str]], list[int]]:
    """Split a text's first lines; return the results of `_tidier`, rows, and each row's line."""
    rows, starts, line = [], [], 0
    tidy, is_drawn = _tidier(lines, delimiter, is_open=is_open)
    reader = csv.reader(
        (tidy(one).decode("utf-8", "ignore") + "\n" for one in lines), delimiter=delimiter
    )
    try:
        for row in reader:
            rows.append([*map(str.strip, row)])
            starts.append(line)
            line = reader.line_num
    except csv.Error:
        rows, starts = [], []
    full = [row for row in rows if any(row)]
    # The rows may end with a delimiter that the header lacks.
    if is_open and full[1:] and all(row[len(full[0]) :] == [""] for row in full[1:]):
        full[0].append("")
    return tidy, is_drawn, rows, starts


def _start_of_line(text: bytes, n_lines: int) -> int:
    place = 0
    for _ in range(n_lines):
        place = text.index(b"\n", place) + 1
    return place


def _tidier(
    lines: Sequence[bytes], delimiter: str, *, is_open: bool
) -> tuple[Callable[[bytes], bytes], bool]:
    """Return (a function that removes frames and spaces, whether it clears lines of dashes).

    A list with bars between cells has such lines, and may have bars at both ends of each line.
    """
    is_list = is_open and delimiter == "|"
    is_drawn = is_list and any(map(DRAWN_LINE.match, lines))
    ends = {(line[:1], line.rstrip()[-1:]) for line in lines if b"|" in line}
    is_framed = is_list and ends == {(b"|", b"|")}

    def tidy(text: bytes) -> bytes:
        if is_drawn:
            text = DRAWN_LINE.sub(b"", text)
        if is_framed:
            text = re.sub(rb"(?m)^\||\|[ ]*(?=\r?$)", b"", text)
        if is_framed or is_drawn:
            return re.sub(rb"(?m)^[ ]+|[ ]*(?:(\|)[ ]*|(?=\r?$))", rb"\1", text)
        if delimiter == " ":
            return re.sub(rb"(?m)^ | (?=\r?$)", b"", re.sub(rb" {2,}", b" ", text))
        return text

    return tidy, is_drawn
