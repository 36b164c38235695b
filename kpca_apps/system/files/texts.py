"""Decode text to UTF-8 by its byte-order mark; read small text files."""

from __future__ import annotations

import codecs
import stat
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from kpca_apps.errors import InputError, KpcaError

# UTF-32 comes before UTF-16, as its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16"),
)


class NotUtf8(InputError):
    """Text that is not UTF-8, with its first invalid byte and the line of that byte."""

    def __init__(self, message: str, byte: int, line: int) -> None:
        super().__init__(message)
        self.byte, self.line = byte, line


def marked_encoding(head: bytes) -> tuple[str, str]:
    """Return the codec and the encoding's name by a byte-order mark; without a mark, UTF-8."""
    matches = ((codec, name) for mark, codec, name in _MARKS if head.startswith(mark))
    return next(matches, ("utf-8", "utf-8"))


def require_file(path: Path, what: str, most_bytes: int) -> None:
    """Raise InputError unless a file is a regular file of limited size.

    The message does not name the file. A named pipe must not be opened, as opening would block.
    """
    file_stat = path.stat()
    if not stat.S_ISREG(file_stat.st_mode) or file_stat.st_size > most_bytes:
        raise InputError(f"{what} must be a plain file of less than {most_bytes // 10**6} MB.")


def read_text(path: Path, what: str, most_bytes: int) -> str:
    """Return the text of a small file without its byte-order mark.

    Errors (InputError) call the file ``what``, such as "a config file", and do not name it.
    """
    require_file(path, what, most_bytes)
    data = path.read_bytes()
    chunks = decoded([data] if data else [], marked_encoding(data)[0])
    return b"".join(chunks).decode("utf-8").removeprefix("\ufeff")


def decoded(chunks: Iterable[bytes], codec: str, *, zeros: bool = False) -> Iterator[bytes]:
    """Yield chunks of text re-encoded as UTF-8; no chunk is empty.

    Raises InputError for null bytes, unless ``zeros`` allows them.
    """
    position = written = newlines = returns = 0
    try:
        decoder = codecs.getincrementaldecoder(codec)()
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
                    f"line {1 + lines}, byte {place + 1} (0x{byte:02x}) is not "
                    f"{codec.removesuffix('-sig')} text; save the file as UTF-8."
                )
                if codec == "utf-8":
                    raise NotUtf8(message, byte, 1 + lines) from None
                raise InputError(message) from None
            if not zeros and (zero := text.find(b"\0")) >= 0:
                line = 1 + newlines + text.count(b"\n", 0, zero)
                raise InputError(
                    f"line {line}, byte {written + zero + 1} (0x00) does not belong in text; the "
                    "file is binary, or UTF-16 without a byte-order mark: save it as UTF-8."
                )
            position, written = position + len(chunk), written + len(text)
            newlines += text.count(b"\n")
            returns += text.count(b"\r") if not newlines else 0
            if text:
                yield text
    except KpcaError:
        raise
    except (ValueError, LookupError, AttributeError, TypeError):
        # The codec does not work on chunks ("punycode"), or its text contains lone surrogates.
        raise InputError(f"cannot be read as {codec}; save it as UTF-8.") from None
