"""Bytes of a text file -> UTF-8 bytes, with the encoding stated."""

from __future__ import annotations

import codecs
import encodings.aliases
from collections.abc import Iterable, Iterator

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.names import one_line, suggest

__all__ = [
    "NotUtf8",
    "checked_utf8",
    "decode",
    "find_codec",
    "guess_note",
    "mark_of",
    "transcoded",
    "undecodable",
]

# UTF-32 first: its little-endian mark starts with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16"),
)


def decode(data: bytes, label: str, encoding: str | None = None) -> tuple[bytes, str, list[str]]:
    r"""Decode a text file and encode it as UTF-8 without a byte-order mark.

    Parameters
    ----------
    data : bytes
        The file.
    label : str
        Its name for messages.
    encoding : str, optional
        The encoding, if known. By default a byte-order mark decides, then UTF-8 is tried, then
        cp1252 (Windows, western Europe).

    Returns
    -------
    text : bytes
        The same text in UTF-8.
    encoding : str
        The encoding it was in.
    notes : list of str
        Sentences that state a guess.

    Raises
    ------
    ConfigError
        If the encoding named does not exist.
    InputError
        If bytes cannot be decoded, or the file is not text.

    Examples
    --------
    >>> decode("caf\u00e9".encode("cp1252"), "menu.csv")[1]
    'cp1252'
    """
    if encoding is not None:
        return _decode_as(data, find_codec(encoding), label), encoding, []
    if (marked := mark_of(data)) is not None:
        codec, name, notes = marked
        return _decode_as(data, codec, label), name, notes
    _refuse_binary(data, label)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = _decode_as(data, "cp1252", label)
        line = 1 + data.count(b"\n" if b"\n" in data else b"\r", 0, error.start)
        return text, "cp1252", [guess_note(data[error.start], line)]
    return data, "utf-8", []


class NotUtf8(Exception):
    """Text that is not UTF-8, with the place of the first byte that is not.

    Parameters
    ----------
    byte : int
        Its value.
    position : int
        Bytes before it.
    line : int
        1-based line it stands on.
    """

    def __init__(self, byte: int, position: int, line: int) -> None:
        super().__init__(byte, position, line)
        self.byte, self.position, self.line = byte, position, line


def mark_of(head: bytes) -> tuple[str, str, list[str]] | None:
    r"""Tell the encoding of a file by its byte-order mark.

    Parameters
    ----------
    head : bytes
        The first bytes of the file.

    Returns
    -------
    codec, encoding : str
        What decodes it and takes off the mark, and what to call it.
    notes : list of str
        Sentences that state it.

    Examples
    --------
    >>> mark_of(b"\xff\xfea\0")
    ('utf-16', 'utf-16', ['Read as UTF-16 by its byte-order mark.'])
    """
    for mark, codec, name in _MARKS:
        if head.startswith(mark):
            notes = [] if name == "utf-8" else [f"Read as {name.upper()} by its byte-order mark."]
            return codec, name, notes
    return None


def guess_note(byte: int, line: int) -> str:
    """Say why a text is read as cp1252."""
    return (
        f"Read as cp1252 (Windows, western Europe): byte 0x{byte:02x} on line {line} is not UTF-8."
    )


def checked_utf8(chunks: Iterable[bytes], label: str) -> Iterator[bytes]:
    """Pass on the chunks of a UTF-8 text.

    Parameters
    ----------
    chunks : iterable of bytes
        The text.
    label : str
        Its name for messages.

    Raises
    ------
    NotUtf8
        At the first byte that is not UTF-8.
    InputError
        At a zero byte.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    position, lines = 0, 0
    for chunk in _and_end(chunks):
        try:
            if not chunk or decoder.getstate()[0] or not chunk.isascii():
                decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            carried = len(error.object) - len(chunk)
            # What was carried over holds no newline: it is part of one character.
            line = 1 + lines + error.object.count(b"\n", 0, error.start)
            place = position - carried + error.start
            raise NotUtf8(error.object[error.start], place, line) from None
        _refuse_binary(chunk, label, position, lines)
        position += len(chunk)
        lines += chunk.count(b"\n")
        yield chunk


def transcoded(chunks: Iterable[bytes], codec: str, label: str) -> Iterator[bytes]:
    """Turn the chunks of a text into UTF-8.

    Parameters
    ----------
    chunks : iterable of bytes
        The text as it lies on disk.
    codec : str
        What decodes it.
    label : str
        Its name for messages.

    Raises
    ------
    InputError
        If bytes cannot be decoded, or the file is not text.
    """
    position, written, lines = 0, 0, 0
    try:
        decoder = codecs.getincrementaldecoder(codec)()
        for chunk in _and_end(chunks):
            state = decoder.getstate()
            try:
                utf8 = decoder.decode(chunk, final=not chunk).encode("utf-8")
            except UnicodeDecodeError as error:
                carried = len(error.object) - len(chunk)
                decoder.setstate(state)
                before = decoder.decode(chunk[: max(error.start - carried, 0)])
                byte, place = error.object[error.start], position - carried + error.start
                raise undecodable(
                    byte, place, 1 + lines + before.count("\n"), codec, label
                ) from None
            _refuse_binary(utf8, label, written, lines)
            position, written = position + len(chunk), written + len(utf8)
            lines += utf8.count(b"\n")
            yield utf8
    except (UnicodeError, LookupError, AttributeError, TypeError):
        raise _no_text(codec, label) from None


def _and_end(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Let an empty chunk mark the end."""
    yield from chunks
    yield b""


def find_codec(encoding: str) -> str:
    """Find the codec of an encoding the user named.

    Raises
    ------
    ConfigError
        If there is none.

    Examples
    --------
    >>> find_codec("UTF8")
    'utf-8'
    """
    try:
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        # No name at all, with a zero byte or half a character in it, is a ValueError.
        near = suggest(
            encoding, filter(_has_codec, sorted(set(encodings.aliases.aliases.values())))
        )
        raise ConfigError(f'Unknown encoding "{one_line(encoding)}".{near}') from None


def _has_codec(name: str) -> bool:
    """Whether Python has it here: some names are known everywhere, and codecs on Windows only."""
    try:
        codecs.lookup(name)
    except LookupError:
        return False
    return True


def _decode_as(data: bytes, codec: str, label: str) -> bytes:
    try:
        text = data.decode(codec)
        utf8 = text.encode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(codec, "ignore")
        line = 1 + before.count("\n")
        raise undecodable(data[error.start], error.start, line, codec, label) from None
    except (UnicodeError, LookupError, AttributeError, TypeError):
        # Codecs that do not turn bytes into text ("hex"), or leave lone surrogates behind.
        raise _no_text(codec, label) from None
    _refuse_binary(utf8, label)
    return utf8


def _refuse_binary(data: bytes, label: str, before: int = 0, lines: int = 0) -> None:
    """Refuse zero bytes; `before` bytes and `lines` newlines came earlier."""
    position = data.find(b"\0")
    if position < 0:
        return
    line = 1 + lines + data.count(b"\n", 0, position)
    raise InputError(
        f"{label}: line {line}, byte {before + position + 1} (0x00) does not belong in text; the "
        "file is binary, or UTF-16 without a byte-order mark: save it as UTF-8."
    )


def undecodable(byte: int, position: int, line: int, codec: str, label: str) -> InputError:
    """Return the error for a byte that an encoding does not have."""
    return InputError(
        f"{label}: line {line}, byte {position + 1} (0x{byte:02x}) is not {codec} text; save the "
        "file as UTF-8."
    )


def _no_text(codec: str, label: str) -> InputError:
    return InputError(f"{label}: cannot be read as {codec}; save it as UTF-8.")
