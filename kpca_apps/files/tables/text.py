"""Text -> UTF-8 -> what cuts it -> Arrow tables of strings, with the line each row starts on.

Text comes in blocks of whole rows. Where quotes stand as RFC 4180 has them, array code finds the
rows and pyarrow cuts them. Any other block goes through the standard library's reader, row by row,
which is slower and knows what to do with a stray quote, or on which line to give up.
"""

from __future__ import annotations

import codecs
import csv
import encodings.aliases
import io
import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError, KpcaError
from kpca_apps.files import limits
from kpca_apps.files.limits import long_row, require_columns
from kpca_apps.files.names import one_line, suggest, unique_names

__all__ = [
    "ONE_COLUMN",
    "DelimitedText",
    "NotUtf8",
    "decoded",
    "encoding_of",
    "header_is_missing",
    "is_number",
    "sniff_delimiter",
    "with_newlines",
]

# Bytes at the head of a text that suffice to choose what cuts it.
_HEAD_BYTES = 1 << 20
# UTF-32 first: its little-endian mark starts with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16"),
)

_DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
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

_SEPARATOR_LINE = re.compile(rb'"?sep=([^\s"]|\t)"?\r?(?=\n)')
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34
_MARK = b"\xef\xbb\xbf"
_IS_VISIBLE = ~np.isin(np.arange(256), list(b" \t\n\r\v\f"))
# Text without the end of a row is held for so long before rows are looked for one by one.
_WAIT = 1 << 23
# Cells that are cut one by one and handed on together.
_PIECE_CELLS = 1 << 18

IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]


class NotUtf8(InputError):
    """Text that is not UTF-8; `byte` is the first that is not, on line `line`."""

    def __init__(self, message: str, byte: int, line: int) -> None:
        super().__init__(message)
        self.byte, self.line = byte, line


def encoding_of(head: bytes, given: str | None) -> tuple[str, str, tuple[str, ...]]:
    """Return the codec of a text, its name and a note: as given, or by its mark; else UTF-8."""
    if given is None:
        for mark, codec, name in _MARKS:
            if head.startswith(mark):
                note = f"Read as {name.upper()} by its byte-order mark."
                return codec, name, () if name == "utf-8" else (note,)
        return "utf-8", "utf-8", ()
    try:
        # Refused here: codecs that pack bytes ("zlib"), whose errors are of any kind.
        "".encode(given)
        return codecs.lookup(given).name, given, ()
    except (LookupError, ValueError):
        # No name at all, with a zero byte or half a character in it, is a ValueError.
        near = suggest(given, sorted(set(encodings.aliases.aliases.values()) - {"mbcs", "oem"}))
        raise ConfigError(f'Unknown encoding "{one_line(given)}".{near}') from None


def decoded(chunks: Iterable[bytes], codec: str, label: str) -> Iterator[bytes]:
    """Turn the chunks of a text into chunks of UTF-8, none of them empty; refuse zero bytes."""
    position = written = newlines = returns = 0
    try:
        decoder = codecs.getincrementaldecoder(codec)()
        # An empty chunk marks the end.
        for chunk in chain(chunks, [b""]):
            state = decoder.getstate()
            try:
                if chunk and chunk.isascii() and codec[:5] == "utf-8" and state == (b"", 0):
                    text = chunk
                else:
                    text = decoder.decode(chunk, final=not chunk).encode("utf-8")
            except UnicodeDecodeError as error:
                carried = len(error.object) - len(chunk)
                decoder.setstate(state)
                before = decoder.decode(chunk[: max(error.start - carried, 0)])
                lines = newlines + before.count("\n") or returns + before.count("\r")
                byte, place = error.object[error.start], position - carried + error.start
                message = (
                    f"{label}: line {1 + lines}, byte {place + 1} (0x{byte:02x}) is not "
                    f"{codec.removesuffix('-sig')} text; save the file as UTF-8."
                )
                if codec == "utf-8":
                    raise NotUtf8(message, byte, 1 + lines) from None
                raise InputError(message) from None
            if (zero := text.find(b"\0")) >= 0:
                line = 1 + newlines + text.count(b"\n", 0, zero)
                raise InputError(
                    f"{label}: line {line}, byte {written + zero + 1} (0x00) does not belong in "
                    "text; the file is binary, or UTF-16 without a byte-order mark: save it as "
                    "UTF-8."
                )
            position, written = position + len(chunk), written + len(text)
            newlines += text.count(b"\n")
            returns += text.count(b"\r") if not newlines else 0
            if text:
                yield text
    except KpcaError:
        raise
    except (ValueError, LookupError, AttributeError, TypeError):
        # Codecs that cannot take text in pieces ("punycode"), or leave lone surrogates behind.
        raise InputError(f"{label}: cannot be read as {codec}; save it as UTF-8.") from None


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number in some notation."""
    bare = cell.strip()
    return len(bare) <= _LONGEST_NUMBER and _NUMBER.fullmatch(bare) is not None


def sniff_delimiter(text: bytes) -> str:
    """Find the character that cuts the rows of a text table.

    Of delimiters outside quotes, one that cuts every row into as many cells wins, or else one that
    stands in most rows, so that a ragged row is reported and not read as a single column.
    """
    # The first rows, with quoted cells taken out.
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


def with_newlines(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the head of a text and all of its chunks, without byte-order marks.

    Lines of an old Macintosh end as others.
    """
    chunks, head = iter(chunks), b""
    # A newline that does not come within the longest row does not come.
    while len(head) < _HEAD_BYTES or (b"\n" not in head and len(head) <= limits.LONGEST_ROW):
        if not (chunk := next(chunks, b"")):
            break
        head += chunk
    # A program that marks what is marked already leaves two.
    while head.startswith(_MARK):
        head = head[len(_MARK) :]
    if b"\r" in head and b"\n" not in head:
        head = head.replace(b"\r", b"\n")
        chunks = (chunk.replace(b"\r", b"\n") for chunk in chunks)
    return head, chain([head] if head else [], chunks)


class DelimitedText:
    """A text table on its way in, from chunks of UTF-8 and its first bytes.

    `names` are known with the first piece of its rows, `notes` state what was guessed.
    """

    def __init__(
        self, head: bytes, chunks: Iterable[bytes], delimiter: str | None, label: str
    ) -> None:
        self.names: list[str] = []
        self.notes: list[str] = []
        match = _SEPARATOR_LINE.match(head)
        # The newline that ends Excel's line ``sep=;`` stays, as a blank line.
        self._skip = match.end() if match else 0
        stated = match[1].decode("utf-8") if match else None
        self._delimiter = delimiter or stated or sniff_delimiter(head)
        # None for a table of one column.
        self.delimiter = None if self._delimiter == ONE_COLUMN else self._delimiter
        if not (delimiter or stated) and self._delimiter not in (",", ONE_COLUMN):
            name = _DELIMITER_NAMES[self._delimiter]
            self.notes.append(f"Cells are cut at the {name} (found by itself).")
        self._head, self._chunks, self._label = head, chunks, label
        self._is_given = delimiter is not None
        self._line, self._first_line, self._has_rows = 1, 0, False

    def pieces(self) -> Iterator[pa.Table]:
        """Yield the rows as strings, the line of each in the last column."""
        held, is_text, is_cut = b"", False, not self._is_given
        skip = self._skip
        for chunk in chain(self._chunks, [b""]):
            is_last = not chunk
            is_text = is_text or not (is_last or chunk.isspace())
            held = held + chunk[skip:] if held else chunk[skip:]
            skip = max(skip - len(chunk), 0)
            is_cut = is_cut or self._delimiter.encode("utf-8") in held
            # Up to the last newline that stands outside quotes, if quotes are regular.
            stop = len(held) if is_last else held.rfind(b"\n") + 1
            if not is_last and b'"' in held and held.count(b'"', 0, stop) % 2:
                data = np.frombuffer(held, dtype=np.uint8)
                inside = np.cumsum(data == _QUOTE, dtype=np.uint8) & 1
                outside = np.flatnonzero((data == _NEWLINE) & (inside == 0))
                stop = int(outside[-1]) + 1 if outside.size else 0
            n_lines = held.count(b"\n", 0, stop)
            rows = self._regular_rows(held[:stop], n_lines) if stop else None
            if rows is not None:
                if rows.num_rows:
                    self._has_rows = True
                    yield rows
            elif stop or len(held) > _WAIT:
                stop = yield from self._rows_one_by_one(held, is_last=is_last)
                n_lines = held.count(b"\n", 0, stop)
            self._line += n_lines
            if len(held) - stop > limits.LONGEST_ROW:
                raise long_row(self._label, self._line)
            held = held[stop:]
        if not is_text:
            raise InputError(f"{self._label}: the file is empty; it needs a header and rows.")
        if not self.names:
            raise InputError(
                f"{self._label}: the file holds nothing but blank cells; it needs rows."
            )
        if not is_cut and (found := sniff_delimiter(self._head[self._skip :])) != ONE_COLUMN:
            given = f'delimiter "{one_line(self._delimiter)}"'
            raise InputError(
                f"{self._label}: the {_DELIMITER_NAMES.get(self._delimiter, given)} given as "
                "--delimiter does not occur in the file; its rows look cut at the "
                f"{_DELIMITER_NAMES[found]}: leave the option out."
            )
        if not self._has_rows:
            raise InputError(
                f"{self._label}: line {self._first_line} is a header without rows; there is "
                "nothing to screen."
            )

    def _regular_rows(self, text: bytes, n_lines: int) -> pa.Table | None:
        """Cut whole rows with pyarrow; ``None`` where it cannot be trusted."""
        cut = self._delimiter.encode("utf-8")
        if len(cut) > 1:
            return None
        if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
            return None
        text = collapse_spaces(text) if cut == b" " else text
        if len(self.names) > 1 and b'"' not in text and len(text) <= limits.LONGEST_ROW:
            # Nearly always there is a row on every line; a blank one is left out, or an error.
            n_rows = n_lines + (not text.endswith(b"\n"))
            rows = self._cut(text, np.arange(self._line, self._line + n_rows))
            if rows is not None:
                return rows
        # Otherwise array code finds the rows, if quotes are regular.
        if text.isspace() and cut not in text:
            return pa.table({})
        data = np.frombuffer(text, dtype=np.uint8)
        newlines = breaks = np.flatnonzero(data == _NEWLINE)
        if is_quoted := b'"' in text:
            inside = _inside_quotes(data, ord(cut))
            if inside is None:
                return None
            breaks = newlines[~inside[newlines]]
        starts = np.concatenate(([0], breaks[: np.searchsorted(breaks, data.size - 1)] + 1))
        lengths = np.diff(starts, append=data.size)
        # Rows with more than one cell or a visible character.
        counts = _IS_VISIBLE.copy()
        counts[ord(cut)] = True
        keep = counts[data[starts]]
        if not keep.all():
            keep = np.logical_or.reduceat(counts[data], starts)
        lines = self._line + np.searchsorted(newlines, starts[keep])
        if not keep.all():
            data, lengths = data[np.repeat(keep, lengths)], lengths[keep]
        if lengths.max() > limits.LONGEST_ROW:
            raise long_row(self._label, int(lines[lengths.argmax()]))
        if not self.names:
            first, line = data[: lengths[0]].tobytes().decode("utf-8"), int(lines[0])
            one = csv.reader(io.StringIO(first, newline=""), delimiter=self._delimiter, strict=True)
            try:
                cells = next(one)
            except csv.Error as error:
                raise InputError(_cut_message(str(error), self._label, line)) from None
            if not self._take_header(cells, line):
                data, lines = data[lengths[0] :], lines[1:]
        return self._cut(data, lines, quotes=is_quoted, newlines=breaks.size != newlines.size)

    def _cut(
        self,
        text: bytes | ByteArray,
        lines: IntArray,
        *,
        quotes: bool = False,
        newlines: bool = False,
    ) -> pa.Table | None:
        """Cut rows, one for each line; ``None`` where pyarrow finds others."""
        if not lines.size:
            return pa.table({})
        if bytes(text[: len(_MARK)]) == _MARK:
            # Pyarrow takes one off, also where a cell begins with it.
            text = _MARK + bytes(text)
        import pyarrow.csv as pc

        try:
            table = pc.read_csv(
                pa.py_buffer(text),
                pc.ReadOptions(
                    column_names=self.names, block_size=len(text) + 1, use_threads=False
                ),
                pc.ParseOptions(
                    delimiter=self._delimiter,
                    quote_char='"' if quotes else False,
                    newlines_in_values=newlines,
                ),
                pc.ConvertOptions(
                    column_types=dict.fromkeys(self.names, pa.string()), check_utf8=False
                ),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != lines.size:
            return None
        return table.append_column("line", pa.array(lines, pa.int64()))

    def _rows_one_by_one(self, text: bytes, *, is_last: bool) -> Generator[pa.Table, None, int]:
        """Cut rows with the standard library's reader; return how many bytes they are."""
        end = len(text) if is_last else text.rfind(b"\n") + 1
        even = collapse_spaces if self._delimiter == " " else bytes
        read = (0, self._line)

        def physical_lines() -> Iterator[str]:
            nonlocal read
            for raw in io.BytesIO(text[:end]):
                read = (read[0] + len(raw), read[1] + 1)
                yield even(raw).decode("utf-8")

        rows: list[list[str]] = []
        lines: list[int] = []
        start, line = read
        try:
            for row in csv.reader(physical_lines(), delimiter=self._delimiter, strict=True):
                if read[0] - start > limits.LONGEST_ROW:
                    raise long_row(self._label, line)
                if (len(row) > 1 or not text[start : read[0]].isspace()) and (
                    self.names or self._take_header(row, line)
                ):
                    if len(row) != len(self.names):
                        noun = "cell" if len(row) == 1 else "cells"
                        name = _DELIMITER_NAMES.get(self._delimiter, one_line(self._delimiter))
                        raise InputError(
                            f"{self._label}: line {line} has {len(row)} {noun} where line "
                            f"{self._first_line} has {len(self.names)}; put cells that contain a "
                            f"{name} in quotes, or repair the row."
                        )
                    self._has_rows = True
                    rows.append(row)
                    lines.append(line)
                    if len(rows) * len(row) >= _PIECE_CELLS:
                        yield _table(self.names, rows, lines)
                        rows, lines = [], []
                start, line = read
        except csv.Error as error:
            if is_last or "unexpected end" not in str(error):
                raise InputError(_cut_message(str(error), self._label, line)) from None
        if rows:
            yield _table(self.names, rows, lines)
        return start

    def _take_header(self, cells: list[str], line: int) -> bool:
        """Take the first row for names; return whether it is data, and the names are made up."""
        require_columns(self._label, len(cells), line)
        self._first_line = line
        if header_is_missing(cells):
            self.names += [f"column_{number + 1}" for number in range(len(cells))]
            note = f"Line {line} holds numbers only: the columns are named column_1, ..."
            self.notes.append(note)
            return True
        if not any(name.strip() for name in cells):
            raise InputError(
                f"{self._label}: line {line} should name the columns and is blank; add a header."
            )
        names, notes = unique_names(cells)
        self.names += names
        self.notes += notes
        numbers = [name for name in cells if is_number(name)]
        if 2 * len(numbers) >= len(cells):
            self.notes.append(
                f'The names on line {line} look like values ("{one_line(numbers[0])}"): if '
                "they are data, add a header line."
            )
        return False


def _table(names: list[str], rows: list[list[str]], lines: list[int]) -> pa.Table:
    arrays = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return pa.Table.from_arrays([*arrays, pa.array(lines, pa.int64())], names=[*names, "line"])


def collapse_spaces(text: bytes) -> bytes:
    """Make one space of each run of spaces, and none of those that begin or end a line."""
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", re.sub(rb" {2,}", b" ", text))


def _inside_quotes(data: ByteArray, delimiter: int) -> NDArray[np.bool_] | None:
    """Mask of quoted bytes; ``None`` unless every quote opens, closes or doubles a cell's.

    Quotes alternate between opening and closing when a doubled quote counts as both, so a
    running parity finds the inside; it can be trusted if all stand where RFC 4180 has them.
    """
    is_quote = data == _QUOTE
    quotes = np.flatnonzero(is_quote)
    if quotes.size % 2:
        return None
    opening, closing = quotes[0::2], quotes[1::2]
    edge = np.array([_NEWLINE], dtype=np.uint8)
    padded = np.concatenate((edge, data, edge, edge))
    before, after, second = padded[opening], padded[closing + 2], padded[closing + 3]
    ends_row = (after == _NEWLINE) | ((after == _RETURN) & (second == _NEWLINE))
    opens = (before == delimiter) | (before == _NEWLINE) | (before == _QUOTE)
    closes = (after == delimiter) | (after == _QUOTE) | ends_row
    if not (opens.all() and closes.all()):
        return None
    return (np.cumsum(is_quote, dtype=np.uint8) & 1).astype(np.bool_)


def _cut_message(error: str, label: str, line: int) -> str:
    """Say what the standard library's reader could not read, and what to do."""
    if "field larger than" in error:
        return (
            f"{label}: the row on line {line} has a cell of more than {csv.field_size_limit():,} "
            "characters; shorten it, or look for a quote that is never closed."
        )
    if "expected after" in error:
        return (
            f"{label}: the row on line {line} has text after a closing quote; "
            'double a quote inside a quoted cell ("").'
        )
    if "new-line character" in error:
        return f"{label}: the row on line {line} holds a carriage return; put its cell in quotes."
    return f"{label}: the row on line {line} opens a quote that is never closed; close it."
