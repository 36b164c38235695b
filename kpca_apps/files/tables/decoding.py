"""Bytes of a text file -> UTF-8, with the encoding stated."""

from __future__ import annotations

import codecs
import encodings.aliases
from collections.abc import Iterable, Iterator
from itertools import chain

from kpca_apps.errors import ConfigError, InputError, KpcaError
from kpca_apps.files.names import one_line, suggest

__all__ = ["NotUtf8", "decoded", "encoding_of", "find_codec"]

# UTF-32 first: its little-endian mark starts with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16"),
)


class NotUtf8(InputError):
    """Text that is not UTF-8; `byte` is the first that is not, on line `line`."""

    def __init__(self, message: str, byte: int, line: int) -> None:
        super().__init__(message)
        self.byte, self.line = byte, line


def encoding_of(head: bytes, given: str | None) -> tuple[str, str, tuple[str, ...]]:
    """Return the codec of a text, its name and a note: as given, or by its mark; else UTF-8."""
    if given is not None:
        return find_codec(given), given, ()
    for mark, codec, name in _MARKS:
        if head.startswith(mark):
            note = f"Read as {name.upper()} by its byte-order mark."
            return codec, name, () if name == "utf-8" else (note,)
    return "utf-8", "utf-8", ()


def find_codec(encoding: str) -> str:
    """Find the codec of an encoding the user named; refuse what is none."""
    try:
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        # No name at all, with a zero byte or half a character in it, is a ValueError.
        known = filter(_has_codec, sorted(set(encodings.aliases.aliases.values())))
        near = suggest(encoding, known)
        raise ConfigError(f'Unknown encoding "{one_line(encoding)}".{near}') from None


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
        # Codecs that do not turn bytes into text ("hex"), or leave lone surrogates behind.
        raise InputError(f"{label}: cannot be read as {codec}; save it as UTF-8.") from None


def _has_codec(name: str) -> bool:
    """Whether Python has it here: some names are known everywhere, and codecs on Windows only."""
    try:
        codecs.lookup(name)
    except LookupError:
        return False
    return True
