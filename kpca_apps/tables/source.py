"""The bytes a table is read from: a file, a pipe or standard input, packed or not."""

from __future__ import annotations

import bz2
import hashlib
import io
import lzma
import os
import re
import select
import stat
import sys
import time
import zipfile
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from kpca_apps.errors import InputError, OptionError
from kpca_apps.names import one_line, reason_of, suggest
from kpca_apps.system.limits import opening
from kpca_apps.system.output import spool
from kpca_apps.system.temporary import TemporaryPath

__all__ = [
    "CHUNK",
    "HEAD",
    "PACKED",
    "InputFile",
    "KnownFile",
    "ReadOptions",
    "find_file",
    "member_of",
    "packing_of",
]

_PACKINGS = {
    "gzip": re.compile(rb"\x1f\x8b"),
    # A text may begin with "BZh" too.
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    "xz": re.compile(rb"\xfd7zXZ\0"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
}
PACKED = (".gz", ".bz2", ".xz", ".zst")  # suffixes of packed files
LZMA = 1 << 28  # bytes that unpacking xz may hold; the strongest preset takes 65 MB
HEAD = 4096  # first bytes, by which a format is known
CHUNK = 1 << 20  # bytes read at once
MOST_SKIPPED = 10_000  # lines above a header: its text is held until it is found
_PATIENCE = 10.0  # seconds a named pipe is given until something writes to it


@dataclass(frozen=True)
class ReadOptions:
    """How files are read; what is left open is found by itself."""

    delimiter: str | None = None  # one character, or its name
    encoding: str | None = None
    sheet: str | int | None = None  # of a workbook: its name, or its number from 1
    skip_rows: int = 0  # lines above the header of a text or a sheet
    bad_lines: str = "refuse"  # or "skip"

    def __post_init__(self) -> None:
        if self.skip_rows not in range(MOST_SKIPPED + 1):
            given = one_line(str(self.skip_rows), 30)
            raise OptionError(
                "skip_rows", f"must be a whole number from 0 to {MOST_SKIPPED:,}, got {given}"
            )
        if self.bad_lines not in ("refuse", "skip"):
            given = one_line(str(self.bad_lines), 30)
            raise OptionError("bad_lines", f"must be refuse or skip, got {given!r}")

    @property
    def reading(self) -> str:
        """Which rows are left out; the sheet, delimiter and encoding used are known elsewhere."""
        left_out = self.bad_lines == "skip"
        return f"skip {self.skip_rows}{', bad lines' * left_out}" * bool(self.skip_rows or left_out)

    def refuse(self, names: str, kind: str, label: str) -> None:
        """Refuse those of some options that were given, as they do not apply to a kind of file."""
        for name in names.split():
            if getattr(self, name) != ReadOptions.__dataclass_fields__[name].default:
                raise OptionError(name, f"does not apply to {kind}; leave it out.", label)


@dataclass(frozen=True)
class KnownFile:
    """A file that is read more than once, as it was when it was first looked at."""

    path: str
    label: str  # its name as the user gave it, fit for a one-line message
    size: int  # bytes
    modified: int  # time of its last change, ns
    packing: str = ""  # "gzip", "bzip2", "xz" or "zstd"
    member: str = ""  # name of what is read of a zip archive

    @classmethod
    def at(cls, path: Path, label: str, packing: str = "") -> KnownFile:
        """Take note of a file as it is now."""
        found = path.stat()
        return cls(str(path.absolute()), label, found.st_size, found.st_mtime_ns, packing)

    def check(self) -> None:
        """Refuse a file that was changed, moved or removed."""
        try:
            found = Path(self.path).stat()
        except OSError as error:
            raise self.unreadable(error) from None
        if (found.st_size, found.st_mtime_ns) != (self.size, self.modified):
            raise InputError(
                f"{self.label}: the file was changed while it was being read; run again once it is "
                "complete."
            )

    def chunks(self, digest: Any = None) -> Iterator[bytes]:
        """Yield what it holds, unpacked, and update a hash with the bytes on disk."""
        chunks = self._of_archive(digest) if self.member else self._bytes(digest)
        if self.packing == "zstd":
            return _unpacked_zstd(chunks, self.label)
        return _unpacked(chunks, self.packing, self.label) if self.packing else chunks

    def _of_archive(self, digest: Any) -> Iterator[bytes]:
        if digest is not None:
            deque(self._bytes(digest), maxlen=0)
        self.check()
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as opened:
                yield from iter(lambda: opened.read(CHUNK), b"")
        # Whatever the library raises on a damaged archive.
        except Exception as error:
            raise InputError(
                f"{self.label}: the zip archive is damaged ({reason_of(error)}); fetch it again."
            ) from None
        self.check()

    def _bytes(self, digest: Any) -> Iterator[bytes]:
        self.check()
        try:
            with Path(self.path).open("rb") as file:
                # No further than it was long: something may write to it faster than this reads.
                left = self.size
                while left and (chunk := file.read(min(CHUNK, left))):
                    left -= len(chunk)
                    if digest is not None:
                        digest.update(chunk)
                    yield chunk
        except OSError as error:
            raise self.unreadable(error) from None
        self.check()

    def sha256(self) -> str:
        """Hash the bytes on disk, as 64 hex digits."""
        digest = hashlib.sha256()
        deque(self._bytes(digest), maxlen=0)
        return digest.hexdigest()

    def unreadable(self, error: OSError) -> InputError:
        """Return the error for a file the system cannot read."""
        return InputError(
            f"{self.label}: cannot be read ({error.strerror or error}); it must stay where it is "
            "until the work is done, for workers elsewhere too."
        )


@dataclass(frozen=True)
class InputFile:
    """A file as the user named it, on disk, so that it can be read more than once."""

    file: KnownFile
    name: str
    suffix: str  # of its name, in lower case, before ".gz"
    head: bytes  # first bytes, unpacked
    tail: bytes  # last four bytes, as on disk
    copy: TemporaryPath | None  # of what a pipe held


def find_file(path: str | Path) -> InputFile:
    """Find a file; what comes through a pipe or standard input (``"-"``) is copied to disk."""
    standard = str(path) == "-"
    path = Path(path)
    name = "standard input" if standard else PurePath(path).name
    label = name if standard else one_line(str(path), 200)
    copy = None
    with opening(label, lambda: _near(path)):
        if standard:
            if sys.stdin is None:
                raise InputError(
                    f"{label}: is closed; name a file, or pipe a table to the command."
                )
            copy = spool(iter(lambda: sys.stdin.buffer.read(CHUNK), b""), label)
        elif stat.S_ISFIFO(mode := path.stat().st_mode):
            copy = spool(_pipe_chunks(path, label), label)
        elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise InputError(f"{label}: this is a device, not a file; name a file with a table.")
        with (copy.path if copy else path).open("rb") as opened:
            head = opened.read(HEAD)
            opened.seek(max(opened.seek(0, os.SEEK_END) - 4, 0))
            tail = opened.read(4)
    file = KnownFile.at(copy.path if copy else path, label, packing_of(head))
    suffix = "" if standard else _suffix(name)
    return InputFile(file, name, suffix, _head(file) if file.packing else head, tail, copy)


def member_of(file: InputFile, name: str) -> InputFile:
    """Look at one file of a zip archive, which is unpacked as it is read."""
    known = file.file
    known = replace(known, member=name, label=f"{known.label}: {one_line(name, 100)}")
    if packing := packing_of(head := _head(known)):
        known = replace(known, packing=packing)
        head = _head(known)
    return InputFile(known, file.name, _suffix(name), head, b"", file.copy)


def packing_of(head: bytes) -> str:
    """Name what the first bytes of a file say it is packed with; ``""`` for nothing."""
    return next((name for name, magic in _PACKINGS.items() if magic.match(head)), "")


def _suffix(name: str) -> str:
    suffixes = [s.lower() for s in PurePath(name).suffixes if s.lower() not in PACKED]
    return suffixes[-1] if suffixes else ""


def _head(file: KnownFile) -> bytes:
    """Return the first bytes of what a file holds, unpacked."""
    head = b""
    for chunk in file.chunks():
        head += chunk
        if len(head) >= HEAD:
            break
    return head[:HEAD]


def _unpacked(chunks: Iterable[bytes], packing: str, label: str) -> Iterator[bytes]:
    """Yield what a packed file of one member or several holds, in chunks of a bounded size."""
    unpacker, is_whole = _unpacker(packing), False
    try:
        for chunk in chunks:
            while chunk:
                if unpacker.eof:
                    if not (chunk := chunk.lstrip(b"\0")):
                        break
                    unpacker = _unpacker(packing)
                if data := unpacker.decompress(chunk, CHUNK):
                    yield data
                if packing == "gzip":
                    chunk = unpacker.unused_data or unpacker.unconsumed_tail
                    continue
                # The others keep what they did not unpack yet.
                while not (unpacker.eof or unpacker.needs_input):
                    if data := unpacker.decompress(b"", CHUNK):
                        yield data
                chunk = unpacker.unused_data
        if packing == "gzip" and (data := unpacker.flush()):
            yield data
        is_whole = unpacker.eof
    except (zlib.error, lzma.LZMAError, OSError, EOFError):
        pass
    if not is_whole:
        raise _damaged(label, packing)


def _damaged(label: str, packing: str) -> InputError:
    return InputError(
        f"{label}: the {packing} data are damaged or cut short; fetch the file again."
    )


class _Chunks(io.RawIOBase):
    """Chunks as a file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks, self._left = iter(chunks), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._left = self._left or next(self._chunks, b"")
        n_bytes = min(len(buffer), len(self._left))
        buffer[:n_bytes], self._left = self._left[:n_bytes], self._left[n_bytes:]
        return n_bytes


def _unpacked_zstd(chunks: Iterable[bytes], label: str) -> Iterator[bytes]:
    import pyarrow as pa  # not above: the command's help is to come without it

    try:
        with pa.CompressedInputStream(pa.PythonFile(_Chunks(chunks), "r"), "zstd") as stream:
            yield from iter(lambda: stream.read(CHUNK), b"")
    except OSError:
        raise _damaged(label, "zstd") from None


def _unpacker(packing: str) -> Any:
    if packing == "gzip":
        return zlib.decompressobj(wbits=31)
    return bz2.BZ2Decompressor() if packing == "bzip2" else lzma.LZMADecompressor(memlimit=LZMA)


def _near(path: Path) -> str:
    try:
        if not path.parent.is_dir():
            return f' The folder "{one_line(str(path.parent))}" does not exist.'
        return suggest(path.name, sorted(item.name for item in path.parent.iterdir()))
    except OSError:
        return ""


def _pipe_chunks(path: Path, label: str) -> Iterator[bytes]:
    """Read a named pipe, such as a shell makes of ``<(command)``, to the end of what is written.

    A pipe that nothing writes to would keep its reader waiting for ever.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as pipe:
        head, end = b"", time.monotonic() + _PATIENCE
        while not head and time.monotonic() < end:
            select.select([pipe], [], [], 0.05)
            found = pipe.read(CHUNK)
            if found is None:
                # Something holds the pipe open and has written nothing yet.
                end = time.monotonic() + _PATIENCE
            elif found:
                head = found
            else:
                time.sleep(0.05)
        if not head:
            raise InputError(
                f"{label}: nothing was written to this pipe within {_PATIENCE:g} s; name a file, "
                "or start what writes to it."
            )
        os.set_blocking(pipe.fileno(), True)
        yield head
        yield from iter(lambda: pipe.read(CHUNK), b"")
