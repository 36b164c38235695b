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
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import BinaryIO

from kpca_apps.errors import InputError, MemoryLimitError
from kpca_apps.files.limits import COPIES, available_memory, require_memory
from kpca_apps.files.names import one_line, suggest

__all__ = ["RawFile", "read_raw"]

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 24
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


def read_raw(path: str | Path) -> RawFile:
    """Read a file, or standard input for ``"-"``, and unpack gzip.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    RawFile
        Its bytes and what is known of them.

    Raises
    ------
    InputError
        If the file is missing, a folder, unreadable, empty or damaged gzip.
    MemoryLimitError
        If it would not fit into memory, packed or unpacked.
    """
    standard = str(path) == "-"
    name = "standard input" if standard else PurePath(path).name
    label = name if standard else one_line(str(path), 200)
    packed = _read_bytes(sys.stdin.buffer, label) if standard else _read_file(Path(path), label)
    is_gzip = packed.startswith(_GZIP)
    data = _unpack(packed, label) if is_gzip else packed
    if not data.strip():
        raise InputError(f"{label}: the file is empty; it needs a header and rows.")
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes if suffix.lower() != ".gz"]
    return RawFile(
        label=label,
        name=name,
        suffix=suffixes[-1] if suffixes and not standard else "",
        data=data,
        sha256=hashlib.sha256(packed).hexdigest(),
        n_bytes=len(packed),
        notes=("Unpacked from gzip.",) if is_gzip else (),
    )


def _read_file(path: Path, label: str) -> bytes:
    try:
        found = path.stat()
        if stat.S_ISFIFO(found.st_mode):
            return _read_pipe(path, label)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise InputError(f"{label}: this is a device, not a file; name a file with a table.")
        require_memory(label, found.st_size)
        with path.open("rb") as file:
            return _read_bytes(file, label)
    except FileNotFoundError:
        raise InputError(f"{label}: no such file.{_near(path)}") from None
    except IsADirectoryError:
        raise InputError(f"{label}: this is a folder; name a file in it.") from None
    except PermissionError:
        raise InputError(f"{label}: no permission to read it; change its mode.") from None
    except (InputError, MemoryLimitError):
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{label}: cannot be read ({one_line(reason)}).") from None


def _read_pipe(path: Path, label: str) -> bytes:
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
        return _read_bytes(pipe, label, head)


def _first_bytes(pipe: io.FileIO) -> bytes:
    """Wait for bytes as long as something may write them, or a while where nothing does."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        select.select([pipe], [], [], 0.05)
        head = pipe.read(_CHUNK)
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


def _read_bytes(
    file: BinaryIO | io.BufferedIOBase | io.FileIO, label: str, head: bytes = b""
) -> bytes:
    """Read to the end, or until the bytes could no longer be worked with."""
    limit = available_memory() // COPIES
    chunks = [head]
    total = len(head)
    while chunk := file.read(_CHUNK):
        total += len(chunk)
        if total > limit:
            raise MemoryLimitError(
                f"{label}: unpacks to more than {limit / 2**30:.2g} GB, more than memory allows; "
                "split the file."
            )
        chunks.append(chunk)
    return b"".join(chunks)


def _unpack(packed: bytes, label: str) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            return _read_bytes(file, label)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise InputError(
            f"{label}: the gzip data are damaged or cut short; fetch the file again."
        ) from None
