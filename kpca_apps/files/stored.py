"""A file that can be read from anywhere and more than once: itself, or a temporary copy of it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpca_apps.errors import InputError
from kpca_apps.files.known import KnownFile
from kpca_apps.files.output import spool
from kpca_apps.files.raw import GZIP, UNPACKED, OpenFile, RawFile, open_raw, unpacked
from kpca_apps.temporary import TemporaryPath

__all__ = ["StoredFile", "hashed", "store"]


@dataclass(frozen=True)
class StoredFile:
    """A file on disk that is not packed.

    Attributes
    ----------
    file : KnownFile
        Where it lies.
    name, suffix : str
        Its name without the folder, and the suffix without ``.gz``, of what the user named.
    sha256 : str or None
        Hash of the bytes as the user named them; ``None`` where nothing has read them yet.
    n_bytes : int
        Their number.
    notes : tuple of str
        Whole sentences a reader should know.
    spools : tuple of TemporaryPath
        The temporary copy, if it is one.
    """

    file: KnownFile
    name: str
    suffix: str
    sha256: str | None
    n_bytes: int
    notes: tuple[str, ...]
    spools: tuple[TemporaryPath, ...]

    @property
    def label(self) -> str:
        """The file as the user named it, fit for a one-line message."""
        return self.file.label

    def head(self, n_bytes: int) -> bytes:
        """Return the first bytes."""
        return self.file.read(0, min(n_bytes, self.file.size))

    def tail(self, n_bytes: int) -> bytes:
        """Return the last bytes."""
        return self.file.read(max(self.file.size - n_bytes, 0), self.file.size)

    def raw(self) -> RawFile:
        """Read all of it into memory.

        Raises
        ------
        InputError
            If it is empty.
        MemoryLimitError
            If it would not fit into memory.
        """
        data = self.file.read(0, self.file.size)
        if not data.strip():
            raise InputError(f"{self.label}: the file is empty; it needs a header and rows.")
        sha256 = self.sha256 or hashlib.sha256(data).hexdigest()
        return RawFile(self.label, self.name, self.suffix, data, sha256, self.n_bytes, self.notes)


def store(path: str | Path) -> StoredFile:
    """Make a file readable more than once: streams and packed files are copied.

    Parameters
    ----------
    path : str or Path
        The file; ``"-"`` for standard input.

    Returns
    -------
    StoredFile
        The file, or its temporary copy.

    Raises
    ------
    InputError
        If it is missing, unreadable or damaged, or there is no room for a copy.
    """
    with open_raw(path) as opened:
        first = next(opened.chunks, b"")
        packed = first.startswith(GZIP)
        if opened.size is not None and not packed:
            known = KnownFile.at(Path(path), opened.label)
            return StoredFile(known, opened.name, opened.suffix, None, opened.size, (), ())
        return _copied(opened, first, packed=packed)


def hashed(chunks: Iterable[bytes], digest: Any) -> Iterator[bytes]:
    """Pass on chunks, and update a hash with them."""
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


def _copied(opened: OpenFile, first: bytes, *, packed: bool) -> StoredFile:
    digest = hashlib.sha256()
    source = _Stream(hashed(_joined(first, opened.chunks), digest))
    chunks = unpacked(io.BufferedReader(source), opened.label) if packed else source.chunks
    copy = spool(chunks, opened.label)
    return StoredFile(
        file=KnownFile.at(copy.path, opened.label),
        name=opened.name,
        suffix=opened.suffix,
        sha256=digest.hexdigest(),
        n_bytes=source.n_bytes,
        notes=(UNPACKED,) if packed else (),
        spools=(copy,),
    )


def _joined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


class _Stream(io.RawIOBase):
    """Chunks as a file, for those who need one."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.n_bytes = 0
        self.chunks = self._counted(chunks)
        self._held = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._held:
            self._held = memoryview(next(self.chunks, b""))
        count = min(len(buffer), len(self._held))
        buffer[:count] = self._held[:count]
        self._held = self._held[count:]
        return count

    def _counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.n_bytes += len(chunk)
            yield chunk
