"""Bytes of a text file -> UTF-8 bytes, with the encoding stated."""

from __future__ import annotations

import codecs
import encodings.aliases

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.names import one_line, suggest

__all__ = ["decode"]

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
        return _decode_as(data, _codec(encoding), label), encoding, []
    for mark, codec, name in _MARKS:
        if data.startswith(mark):
            notes = [] if name == "utf-8" else [f"Read as {name.upper()} by its byte-order mark."]
            return _decode_as(data, codec, label), name, notes
    _refuse_binary(data, label)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = _decode_as(data, "cp1252", label)
        line = 1 + data.count(b"\n", 0, error.start)
        note = (
            f"Read as cp1252 (Windows, western Europe): byte 0x{data[error.start]:02x} on line "
            f"{line} is not UTF-8."
        )
        return text, "cp1252", [note]
    return data, "utf-8", []


def _codec(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        near = suggest(encoding, sorted(set(encodings.aliases.aliases.values())))
        raise ConfigError(f'Unknown encoding "{one_line(encoding)}".{near}') from None


def _decode_as(data: bytes, codec: str, label: str) -> bytes:
    try:
        text = data.decode(codec)
        utf8 = text.encode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(codec, "ignore")
        raise InputError(
            f"{label}: line {1 + before.count(chr(10))}, byte {error.start + 1} "
            f"(0x{data[error.start]:02x}) is not {codec} text; save the file as UTF-8."
        ) from None
    except (UnicodeError, LookupError, AttributeError, TypeError):
        # Codecs that do not turn bytes into text ("hex"), or leave lone surrogates behind.
        raise InputError(f"{label}: cannot be read as {codec}; save it as UTF-8.") from None
    _refuse_binary(utf8, label)
    return utf8


def _refuse_binary(data: bytes, label: str) -> None:
    position = data.find(b"\0")
    if position < 0:
        return
    line = 1 + data.count(b"\n", 0, position)
    raise InputError(
        f"{label}: line {line}, byte {position + 1} (0x00) does not belong in text; the file is "
        "binary, or UTF-16 without a byte-order mark: save it as UTF-8."
    )
