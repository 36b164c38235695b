"""The text of a file, converted to UTF-8, and the bad lines that are skipped."""

from __future__ import annotations

import codecs
import hashlib
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from kpca_apps.errors import InputError
from kpca_apps.system import limits
from kpca_apps.system.files.texts import decoded, marked_encoding
from kpca_apps.tables.input_file import InputFile

_HEAD_BYTES = 1 << 20  # number of bytes at the start from which the layout is detected
_MARK = codecs.BOM_UTF8
_LISTED = 10  # maximum number of bad lines that a note lists


class Text:
    """The text of a file: chunks of UTF-8 without byte-order marks, with newlines as line ends.

    Null bytes and undecodable bytes raise an error. If bad lines are skipped, null bytes stay, and
    so do undecodable bytes if the given encoding is UTF-8: their lines are bad.
    """

    def __init__(self, file: InputFile) -> None:
        self.file, self.options = file, file.options
        given, notes = file.options.encoding, [*file.source.notes]
        self._codec, name = marked_encoding(file.head)
        if given is not None:
            self._codec, name = codecs.lookup(given).name, given
        elif name != "utf-8":
            notes.append(f"Read as {name.upper()} by its byte-order mark.")
        self.source = replace(file.source, encoding=name, notes=tuple(notes))
        self._leave_out = file.options.bad_lines == "skip"
        self._is_raw = self._leave_out and given is not None and self._codec == "utf-8"
        self.sha256 = ""  # hash of the file, known when the text has been read once
        self.head = self._pass()[0]
        if self.head[:1024].lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
            raise InputError("this is a web or XML page; export the table as CSV.")

    def chunks(self) -> Iterator[bytes]:
        """Yield the text from its beginning."""
        digest = hashlib.sha256()
        yield from self._pass(digest)[1]
        self.sha256 = digest.hexdigest()

    def require_utf8(self) -> None:
        """Raise `NotUtf8` if the text was assumed to be UTF-8 and is not."""
        if self._codec == "utf-8" and not self._is_raw:
            deque(self._pass()[1], maxlen=0)

    def _pass(self, digest: object = None) -> tuple[bytes, Iterator[bytes]]:
        """Return the head of the text, including the lines to skip, and all chunks of the text."""
        chunks, head = self.file.file.chunks(digest), b""
        if not self._is_raw:
            chunks = decoded(chunks, self._codec, zeros=self._leave_out)
        while len(head) < _HEAD_BYTES or (
            head.count(b"\n") <= self.options.skip_rows and len(head) <= limits.LONGEST_ROW
        ):
            if not (chunk := next(chunks, b"")):
                break
            head += chunk
        # Some programs write two byte-order marks.
        while head.startswith(_MARK):
            head = head[len(_MARK) :]
        # Convert the line ends of classic Mac OS.
        if b"\r" in head and b"\n" not in head:
            head = head.replace(b"\r", b"\n")
            chunks = (chunk.replace(b"\r", b"\n") for chunk in chunks)
        return head, chain([head] if head else [], chunks)


class BadLines:
    """Lines of a text that are skipped: their number, and what is wrong with the first of them."""

    def __init__(self) -> None:
        self._n_lines = 0
        self._first: list[tuple[int, str]] = []

    def leave_out(self, line: int, cause: str) -> None:
        """Count a skipped line, and remember its fault."""
        self._n_lines += 1
        self._first = sorted([*self._first, (line, cause)])[:_LISTED]

    def notes(self, n_rows: int) -> list[str]:
        """Return a note on the skipped lines; raise InputError if they outnumber the rows."""
        n, first = self._n_lines, "; ".join(f"line {line:,} {why}" for line, why in self._first)
        if n > n_rows:
            raise InputError(
                f"{n:,} bad lines beside {n_rows:,} rows ({first}): the file seems to be read "
                "wrongly rather than damaged; check the delimiter, encoding and header."
            )
        more = f"; and {n - _LISTED:,} more" if n > _LISTED else ""
        noun = "1 bad line was" if n == 1 else f"{n:,} bad lines were"
        return [f"{noun} left out: {first}{more}."] if n else []
