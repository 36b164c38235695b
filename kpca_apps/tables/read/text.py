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
from kpca_apps.names import one_line, suggest, unique_names
from kpca_apps.system import limits
from kpca_apps.system.limits import long_row, require_columns
from kpca_apps.tables.read.bad_lines import BadLines
from kpca_apps.tables.read.header import (
    HEADER_SAMPLE,
    find_header,
    header_is_missing,
    is_number,
)

__all__ = [
    "ONE_COLUMN",
    "DelimitedText",
    "NotUtf8",
    "decoded",
    "encoding_of",
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

_SEPARATOR_LINE = re.compile(rb'"?sep=([^\s"]|\t)"?\r?(?=\n)')
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34
_MARK = b"\xef\xbb\xbf"
_IS_VISIBLE = ~np.isin(np.arange(256), list(b" \t\n\r\v\f"))
# Text without the end of a row is held for so long before rows are looked for one by one.
_WAIT = 1 << 23
# Where bad lines are left out, a row takes no more lines than these: an open quote is a mistake.
_MOST_LINES = 100
# Cells that are cut one by one and handed on together.
_PIECE_CELLS = 1 << 18

# Lines of one cell above a wider one, up to so many, are spoken of as a title.
_MOST_TITLE = 50
# What stands around the words of a title on a line of cells.
_AROUND = ' \t\r",;|'

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


def decoded(
    chunks: Iterable[bytes], codec: str, label: str, *, zeros: bool = False
) -> Iterator[bytes]:
    """Turn the chunks of a text into chunks of UTF-8, none of them empty.

    Zero bytes are refused, unless those who take the chunks look out for them.
    """
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
            if not zeros and (zero := text.find(b"\0")) >= 0:
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
    return sum(is_number(word) for row in body for word in row) * 2 > len(body) * width


def with_newlines(chunks: Iterable[bytes], n_lines: int = 0) -> tuple[bytes, Iterator[bytes]]:
    """Return the head of a text and all of its chunks, without byte-order marks.

    The head goes on beyond its first `n_lines` lines, unless they are far too long. Lines of an old
    Macintosh end as others.
    """
    chunks, head = iter(chunks), b""
    # A newline that does not come within the longest row does not come.
    while len(head) < _HEAD_BYTES or (
        head.count(b"\n") <= n_lines and len(head) <= limits.LONGEST_ROW
    ):
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

    `names` are known with the first piece of its rows, `notes` state what was guessed. The first
    `skip_rows` lines are left out, or, for 0, titles above the header. With `leave_out`, so are
    lines that cannot be read or have other numbers of cells; the notes list them.
    """

    def __init__(
        self,
        head: bytes,
        chunks: Iterable[bytes],
        label: str,
        *,
        delimiter: str | None = None,
        skip_rows: int = 0,
        leave_out: bool = False,
    ) -> None:
        self.names: list[str] = []
        self.notes: list[str] = []
        self._bad = BadLines(label) if leave_out else None
        match, n_above = _SEPARATOR_LINE.match(head), skip_rows
        # The newline that ends Excel's line ``sep=;`` stays, as a blank line.
        self._skip = n_stated = match.end() if match else 0
        stated = match[1].decode("utf-8") if match else None
        if n_above:
            try:
                self._skip = _start_of_line(head, n_above)
            except ValueError:
                raise InputError(
                    f"{label}: has no {n_above:,} lines above a header; give a smaller --skip-rows."
                ) from None
        self._delimiter = delimiter or stated or sniff_delimiter(head[self._skip :])
        if not skip_rows:
            below = head[n_stated:]
            n_above, self._delimiter = _below_title(below, delimiter or stated, self._delimiter)
            if n_above:
                self._skip = n_stated + _start_of_line(below, n_above)
                first = head[n_stated : self._skip].decode("utf-8", "replace").split("\n")
                said = next(line for line in first if line.strip())
                lines = "Line 1 stands" if n_above == 1 else f"Lines 1 to {n_above} stand"
                self.notes.append(
                    f"{lines} above the header and {'is' if n_above == 1 else 'are'} left out "
                    f'("{one_line(said.strip(_AROUND), 60)}"); --skip-rows sets how many.'
                )
        # None for a table of one column.
        self.delimiter = None if self._delimiter == ONE_COLUMN else self._delimiter
        if not (delimiter or stated) and self._delimiter not in (",", ONE_COLUMN):
            name = _DELIMITER_NAMES[self._delimiter]
            self.notes.append(f"Cells are cut at the {name} (found by itself).")
        self._head, self._chunks, self._label = head, chunks, label
        self._is_given = delimiter is not None
        self._line, self._first_line, self._n_rows = 1 + n_above, 0, 0

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
            is_sound = self._bad is None or _is_sound(held[:stop])
            had_names, n_notes = bool(self.names), len(self.notes)
            rows = self._regular_rows(held[:stop], n_lines) if stop and is_sound else None
            if rows is None and not had_names:
                # The header is met again, among rows that are cut one by one.
                del self.names[:], self.notes[n_notes:]
            if rows is not None:
                if rows.num_rows:
                    self._n_rows += rows.num_rows
                    yield rows
            elif stop or len(held) > _WAIT:
                cut = self._rows_one_by_one if self._bad is None else self._rows_that_fit
                stop = yield from cut(held, is_last=is_last)
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
        # Before a header without rows is told of: bad lines may have been all there was below it.
        if self._bad is not None:
            self.notes += self._bad.notes(self._n_rows)
        if not self._n_rows:
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
                        raise self._ragged(row, line)
                    self._n_rows += 1
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

    def _rows_that_fit(self, text: bytes, *, is_last: bool) -> Generator[pa.Table, None, int]:
        """Cut rows one by one, and leave out lines that are none; return how many bytes were cut.

        A row that does not end after so many lines opened a quote by mistake: its first line goes.
        """
        assert self._bad is not None
        raw = list(io.BytesIO(text[: len(text) if is_last else text.rfind(b"\n") + 1]))
        rows: list[list[str]] = []
        lines: list[int] = []
        place = 0
        while place < len(raw):
            row, n_lines, cause = self._row_at(raw, place)
            if not n_lines and not is_last:
                break
            if row is None and not self.names:
                # Without it, the first row of data would name the columns.
                raise InputError(
                    f"{self._label}: line {self._line + place} should name the columns and "
                    f"{cause}; mend it, or leave out what stands above the header with --skip-rows."
                )
            if row is None:
                self._bad.leave_out(self._line + place, cause)
            elif (len(row) > 1 or not raw[place].isspace()) and (
                self.names or self._take_header(row, self._line + place)
            ):
                if len(row) == len(self.names):
                    self._n_rows += 1
                    rows.append(row)
                    lines.append(self._line + place)
                else:
                    self._bad.leave_out(self._line + place, self._wrong_width(row))
                    n_lines = 1
            place += n_lines or 1
            if len(rows) * len(self.names) >= _PIECE_CELLS:
                yield _table(self.names, rows, lines)
                rows, lines = [], []
        if rows:
            yield _table(self.names, rows, lines)
        return sum(map(len, raw[:place]))

    def _row_at(self, raw: list[bytes], place: int) -> tuple[list[str] | None, int, str]:
        """Return the row on some line, how many lines it takes, and why it is none.

        It takes 0 lines where it has no end among those that are there.
        """
        even = collapse_spaces if self._delimiter == " " else bytes
        texts: list[str] = []
        for line in raw[place : place + _MOST_LINES]:
            try:
                texts.append(even(line).decode("utf-8"))
            except UnicodeDecodeError:
                return None, 1, "is not UTF-8 text"
            if "\0" in texts[-1]:
                return None, 1, "holds a zero byte"
            try:
                (row,) = csv.reader(texts, delimiter=self._delimiter, strict=True)
            except csv.Error as error:
                if "unexpected end" not in str(error):
                    return None, 1, _cut_cause(str(error))[0]
            except ValueError:  # a row with a line break that no quote holds
                return None, 1, "holds a carriage return"
            else:
                return row, len(texts), ""
        is_open = len(texts) < _MOST_LINES
        return None, 0 if is_open else 1, "opens a quote that is never closed"

    def _ragged(self, row: list[str], line: int) -> InputError:
        """Return the error for a row with another number of cells than the header."""
        what = f"{self._label}: line {line} {self._wrong_width(row)}"
        # Lines of one cell, then wider ones: a title that hides what cuts the rest.
        if len(row) > len(self.names) and self._n_rows < (
            _MOST_TITLE if len(self.names) == 1 else 1
        ):
            noun = "line" if line == 2 else "lines"
            return InputError(
                f"{what}; if a title stands above a header on line {line}, leave its {line - 1} "
                f"{noun} out with --skip-rows {line - 1}, else repair the row."
            )
        name = _DELIMITER_NAMES.get(self._delimiter, one_line(self._delimiter))
        return InputError(
            f"{what}; put cells that contain a {name} in quotes, repair the row, or leave such "
            "lines out with --bad-lines skip."
        )

    def _wrong_width(self, row: list[str]) -> str:
        noun = "cell" if len(row) == 1 else "cells"
        return f"has {len(row)} {noun} where line {self._first_line} has {len(self.names)}"

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
                f"{self._label}: line {line} should name the columns and is blank; add a "
                "header, or leave out what stands above it with --skip-rows."
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


def _is_sound(text: bytes) -> bool:
    """Whether a block is UTF-8 without zero bytes."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in text


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


def _cut_cause(error: str) -> tuple[str, str]:
    """Say what the standard library's reader could not read in a row, and what to do."""
    if "field larger than" in error:
        size = csv.field_size_limit()
        advice = "shorten it, or look for a quote that is never closed"
        return f"has a cell of more than {size:,} characters", advice
    if "expected after" in error:
        return "has text after a closing quote", 'double a quote inside a quoted cell ("")'
    if "new-line character" in error:
        return "holds a carriage return", "put its cell in quotes"
    return "opens a quote that is never closed", "close it"


def _cut_message(error: str, label: str, line: int) -> str:
    cause, advice = _cut_cause(error)
    return f"{label}: the row on line {line} {cause}; {advice}, or give --bad-lines skip."
