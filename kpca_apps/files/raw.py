"""The bytes of a file or of standard input, unpacked, within bounds."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import select
import stat
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import BinaryIO

from kpca_apps.errors import InputError, KpcaError, MemoryLimitError
from kpca_apps.files import limits
from kpca_apps.files.limits import COPIES, available_memory, require_memory
from kpca_apps.files.names import one_line, suggest

__all__ = [
    "CHUNK",
    "GZIP",
    "UNPACKED",
    "OpenFile",
    "RawFile",
    "bounded_rows",
    "open_raw",
    "read_raw",
    "unpacked",
]

GZIP = b"\x1f\x8b"
UNPACKED = "Unpacked from gzip."
CHUNK = 1 << 24
"""Bytes read at once."""

# A zero byte near the beginning tells what is no text, but for these two marks.
_HEAD = 4096
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")

_PATIENCE = 10.0
"""Seconds a named pipe is given until something writes to it."""


@dataclass(frozen=True)
class RawFile:
    """What a file holds, before anything is made of it.

    Attributes
    ----------
    label : str
        The file as the user named it, fit for a one-line message.
    name : str
        File name without its folder, or ``"standard input"``.
    suffix : str
        Lower-case suffix without ``.gz``: ``".csv"``; empty if there is none.
    data : bytes
        The contents, unpacked.
    sha256 : str
        Hash of the bytes as they lay on disk.
    n_bytes : int
        Their number.
    notes : tuple of str
        Whole sentences a reader should know.
    """

    label: str
    name: str
    suffix: str
    data: bytes
    sha256: str
    n_bytes: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenFile:
    """A file or standard input, opened for reading once.

    Attributes
    ----------
    label : str
        The file as the user named it, fit for a one-line message.
    name : str
        File name without its folder, or ``"standard input"``.
    suffix : str
        Lower-case suffix without ``.gz``: ``".csv"``; empty if there is none.
    size : int or None
        Bytes on disk; ``None`` for what cannot be read twice.
    chunks : iterator of bytes
        The bytes as they lie there.
    """

    label: str
    name: str
    suffix: str
    size: int | None
    chunks: Iterator[bytes]


@contextmanager
def open_raw(path: str | Path) -> Iterator[OpenFile]:
    """Open a file, or standard input for ``"-"``, to be read from its beginning to its end.

    Parameters
    ----------
    path : str or Path
        The file.

    Yields
    ------
    OpenFile
        Its bytes in chunks.

    Raises
    ------
    InputError
        If the file is missing, a folder, a device, or unreadable, on opening or later.
    """
    standard = str(path) == "-"
    name = "standard input" if standard else PurePath(path).name
    label = name if standard else one_line(str(path), 200)
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes if suffix.lower() != ".gz"]
    suffix = suffixes[-1] if suffixes and not standard else ""
    with _named_errors(Path(path), label), ExitStack() as stack:
        if standard and sys.stdin is None:
            raise InputError(f"{label}: is closed; name a file, or pipe a table to the command.")
        if standard:
            size, chunks = None, _chunks(sys.stdin.buffer)
        else:
            size, chunks = _open(Path(path), label, stack)
        yield OpenFile(label, name, suffix, size, chunks)


def read_raw(path: str | Path, encoding: str | None = None) -> RawFile:
    """Read a file, or standard input for ``"-"``, and unpack gzip.

    Parameters
    ----------
    path : str or Path
        The file.
    encoding : str, optional
        Of a text, if it is known.

    Returns
    -------
    RawFile
        Its bytes and what is known of them.

    Raises
    ------
    InputError
        If the file is missing, a folder, unreadable, empty, damaged gzip, or a text whose rows do
        not end.
    MemoryLimitError
        If it would not fit into memory, packed or unpacked.
    """
    with open_raw(path) as file:
        require_memory(file.label, file.size or 0)
        packed = _joined(bounded_rows(file.chunks, file.label, encoding), file.label)
    is_gzip = packed.startswith(GZIP)
    label = file.label
    data = packed
    if is_gzip:
        chunks = bounded_rows(unpacked(io.BytesIO(packed), label), label, encoding)
        data = _joined(chunks, label)
    if not data.strip():
        raise InputError(f"{label}: the file is empty; it needs a header and rows.")
    return RawFile(
        label=label,
        name=file.name,
        suffix=file.suffix,
        data=data,
        sha256=hashlib.sha256(packed).hexdigest(),
        n_bytes=len(packed),
        notes=(UNPACKED,) if is_gzip else (),
    )


def unpacked(file: BinaryIO, label: str) -> Iterator[bytes]:
    """Yield what a gzip file holds, in chunks.

    Parameters
    ----------
    file : binary file
        The packed bytes.
    label : str
        Its name for messages.

    Raises
    ------
    InputError
        If the data are damaged or cut short.
    """
    try:
        with gzip.GzipFile(fileobj=file) as packed:
            yield from _chunks(packed)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise InputError(
            f"{label}: the gzip data are damaged or cut short; fetch the file again."
        ) from None


def bounded_rows(
    chunks: Iterable[bytes], label: str, encoding: str | None = None
) -> Iterator[bytes]:
    """Pass on the chunks of a file, up to a row of text that is too long to be one.

    Quotes are not looked at: a quoted cell of many lines is of as many rows here.

    Parameters
    ----------
    chunks : iterable of bytes
        The file; what is no text by its first bytes is passed on as it is.
    label : str
        Its name for messages.
    encoding : str, optional
        As given; a text in one that ends lines with other bytes is passed on as it is.

    Raises
    ------
    InputError
        Naming the line on which that row starts.
    """
    line, length, is_text = 1, 0, None
    for chunk in chunks:
        if is_text is None:
            is_text = b"\0" not in chunk[:_HEAD] or chunk.startswith(_WIDE_MARKS)
            is_text = is_text and _ends_lines(encoding)
        if is_text:
            end = b"\n" if b"\n" in chunk else b"\r"
            first = chunk.find(end)
            if length + (len(chunk) if first < 0 else first) > limits.LONGEST_ROW:
                raise limits.long_row(label, line)
            length = length + len(chunk) if first < 0 else len(chunk) - chunk.rindex(end) - 1
            line += chunk.count(end)
        yield chunk


def _ends_lines(encoding: str | None) -> bool:
    """Whether lines end with a newline byte in an encoding, as they do in all but EBCDIC."""
    try:
        return encoding is None or b"\n" in "\n".encode(encoding)
    except (LookupError, ValueError):
        return True


@contextmanager
def _named_errors(path: Path, label: str) -> Iterator[None]:
    """Turn the errors of the system into one line that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{label}: no such file.{_near(path)}") from None
    except IsADirectoryError:
        raise InputError(f"{label}: this is a folder; name a file in it.") from None
    except PermissionError:
        raise InputError(f"{label}: no permission to read it; change its mode.") from None
    except KpcaError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{label}: cannot be read ({one_line(reason)}).") from None


def _open(path: Path, label: str, stack: ExitStack) -> tuple[int | None, Iterator[bytes]]:
    found = path.stat()
    if stat.S_ISFIFO(found.st_mode):
        return None, _pipe_chunks(path, label)
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise InputError(f"{label}: this is a device, not a file; name a file with a table.")
    return found.st_size, _chunks(stack.enter_context(path.open("rb")))


def _pipe_chunks(path: Path, label: str) -> Iterator[bytes]:
    """Read a named pipe, such as a shell makes of ``<(command)``, to the end of what is written.

    A pipe that nothing writes to would keep its reader waiting for ever.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as pipe:
        head = _first_bytes(pipe)
        if not head:
            raise InputError(
                f"{label}: nothing was written to this pipe within {_PATIENCE:g} s; name a file, "
                "or start what writes to it."
            )
        os.set_blocking(pipe.fileno(), True)
        yield head
        yield from _chunks(pipe)


def _chunks(file: BinaryIO | io.BufferedIOBase | io.FileIO) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk


def _first_bytes(pipe: io.FileIO) -> bytes:
    """Wait for bytes as long as something may write them, or a while where nothing does."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        select.select([pipe], [], [], 0.05)
        head = pipe.read(CHUNK)
        if head is None:
            # Something holds the pipe open and has written nothing yet.
            end = time.monotonic() + _PATIENCE
        elif head:
            return head
        else:
            time.sleep(0.05)
    return b""


def _near(path: Path) -> str:
    try:
        if not path.parent.is_dir():
            return f' The folder "{one_line(str(path.parent))}" does not exist.'
        return suggest(path.name, sorted(item.name for item in path.parent.iterdir()))
    except OSError:
        return ""


def _joined(chunks: Iterator[bytes], label: str) -> bytes:
    """Read to the end, or until the bytes could no longer be worked with."""
    limit = available_memory() // COPIES
    held: list[bytes] = []
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > limit:
            raise MemoryLimitError(
                f"{label}: unpacks to more than {limit / 2**30:.2g} GB, more than memory allows; "
                "split the file."
            )
        held.append(chunk)
    return b"".join(held)
