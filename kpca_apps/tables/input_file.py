"""Input files of tables: on disk, from a pipe or standard input, compressed or not."""

from __future__ import annotations

import bz2
import codecs
import encodings.aliases
import hashlib
import io
import logging
import lzma
import os
import re
import stat
import sys
import zipfile
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from math import inf
from pathlib import Path, PurePath
from threading import Timer
from typing import Any, Literal, TypedDict

from kpca_apps.errors import InputError, KpcaError, OptionError, UnreachableError, about, opening
from kpca_apps.names import one_line, reason_of, shown, suggest
from kpca_apps.options import READING, check_limits, is_number
from kpca_apps.system.files.spools import spool
from kpca_apps.system.files.temporary import TemporaryPath
from kpca_apps.system.limits import require_memory
from kpca_apps.tables.source_info import SourceInfo

_NAMED_DELIMITERS = {
    "comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|", "space": " ",
}  # fmt: skip

_PACKINGS = {
    "gzip": re.compile(rb"\x1f\x8b"),
    # A longer pattern, because a text may also begin with "BZh".
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    "xz": re.compile(rb"\xfd7zXZ\0"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
}
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second one begins an empty archive
_PACKED = (".gz", ".bz2", ".xz", ".zst")
LZMA = 1 << 28  # memory limit of xz in bytes; its strongest preset needs 65 MB
CHANGED = "the file was changed while it was being read; run again once it is complete."
HEAD = 4096  # number of first bytes, which identify a format
CHUNK = 1 << 20  # bytes read at once
_MOST_LISTED = 20  # maximum number of an archive's files that a message lists
_PATIENCE = 5.0  # seconds to wait for the writer of a pipe before a message says so


class Reading(TypedDict, total=False):
    """Keywords of the functions that read tables; see `ReadOptions`."""

    delimiter: str | None
    encoding: str | None
    sheet: str | int | None
    skip_rows: int
    bad_lines: Literal["refuse", "skip"]
    layout: Literal["auto", "off"] | None
    as_of: str | int | datetime | None
    query: str | None
    table_name: str | None
    timeout: float | None


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading files; None means that the reader detects the value."""

    delimiter: str | None = None  # delimiter: a character, or its name
    encoding: str | None = None
    sheet: str | int | None = None  # name of a workbook's sheet, or its number from 1
    skip_rows: int = 0  # number of lines, or rows of a sheet, to skip above the header
    bad_lines: str = "refuse"  # or "skip"
    layout: str | None = None  # "auto" or "off"
    as_of: str | int | datetime | None = None  # version of a Delta table: its number, or a time
    query: str | None = None  # SELECT whose rows are read from a database
    table_name: str | None = None  # table of a database to read, if no query is given
    timeout: float | None = None  # time limit in seconds for reading from a database
    in_memory_rows: float = inf  # maximum number of rows in memory; a larger table is read in parts
    part_rows: int | None = None  # number of rows in a part; default: set by the number of columns

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            character = _NAMED_DELIMITERS.get(self.delimiter.lower(), self.delimiter)
            is_half = "\ud800" <= character[:1] <= "\udfff"
            if len(character) != 1 or character in '\0"\r\n' or character.isalnum() or is_half:
                raise OptionError(
                    "delimiter",
                    f'"{one_line(self.delimiter)}" is not a character that can separate cells; '
                    'give one such as ";", or "tab".',
                )
            object.__setattr__(self, "delimiter", character)
        if self.encoding is not None:
            _require_encoding(self.encoding)
        check_limits(self)
        if not (is_number(self.in_memory_rows, 0) or self.in_memory_rows == inf):
            raise OptionError(
                "in_memory_rows", f"must be 0 or more, got {shown(self.in_memory_rows)}"
            )
        if self.part_rows is not None and not is_number(self.part_rows, 1, whole=True):
            raise OptionError("part_rows", f"must be at least 1, got {shown(self.part_rows)}")
        if self.as_of is not None:
            object.__setattr__(self, "as_of", _version(self.as_of))

    def refuse_others(self, applying: str, kind: str) -> None:
        """Raise OptionError for options that are set but do not apply to a kind of file."""
        for name in READING:
            is_given = getattr(self, name) != ReadOptions.__dataclass_fields__[name].default
            # `layout` is accepted for any file, as it has no effect where it does not apply.
            if is_given and name not in (*applying.split(), "layout"):
                raise OptionError(name, f"does not apply to {kind}; leave it out.")


def _version(given: str | int | datetime) -> int | datetime:
    """Parse the number of a version, or a time; a time without a zone is in UTC."""
    if isinstance(given, str):
        with suppress(ValueError):
            given = int(given) if re.fullmatch("[0-9]+", given) else datetime.fromisoformat(given)
    if isinstance(given, datetime):
        return given if given.tzinfo else given.replace(tzinfo=UTC)
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 1 << 63:
        return given
    raise OptionError(
        "as_of",
        f"must be a version, such as 7, or a time, such as 2026-01-31T12:00, got "
        f"{one_line(str(given), 30)!r}",
    )


def _require_encoding(given: str) -> None:
    try:
        "".encode(given)  # fails for codecs from bytes to bytes, such as zlib
        codecs.lookup(given)
    except (LookupError, ValueError):
        near = suggest(given, sorted(set(encodings.aliases.aliases.values()) - {"mbcs", "oem"}))
        raise OptionError(
            "encoding", f'"{one_line(given)}" is not known; give one such as utf-8 or cp1252.{near}'
        ) from None


@dataclass(frozen=True)
class KnownFile:
    """The state of a file that is read several times."""

    path: str
    label: str  # name of the file as given by the user
    size: int  # bytes
    modified: int  # time of the last change, in nanoseconds
    packing: str = ""  # compression: "gzip", "bzip2", "xz" or "zstd"
    member: str = ""  # name of the file to read in a zip archive; empty if not an archive
    digest: str = ""  # SHA-256 of the bytes on disk, if known

    @classmethod
    def at(cls, path: Path, label: str = "") -> KnownFile:
        """Return the current state of a file."""
        found = path.stat()
        return cls(str(path.absolute()), label or str(path), found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Raise UnreachableError if the file was changed, moved or removed.

        If the bytes are the same, as in a copy on another machine, the time of change may differ.
        """
        try:
            found = Path(self.path).stat()
            if (found.st_size, found.st_mtime_ns) == (self.size, self.modified):
                return
            if self.digest and found.st_size == self.size:
                if _digest_of(self.path, found.st_size, found.st_mtime_ns) == self.digest:
                    return
        except OSError as error:
            raise self.unreadable(error) from None
        raise UnreachableError(CHANGED, self.label)

    def chunks(self, digest: Any = None) -> Iterator[bytes]:
        """Yield the decompressed content; update the hash `digest` with the bytes on disk."""
        chunks = self._of_archive(digest) if self.member else self._bytes(digest)
        return self._unpacked(chunks) if self.packing else chunks

    def _unpacked(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        unpack = _of_zstd if self.packing == "zstd" else _of_members
        try:
            yield from unpack(chunks, self.packing)
        except (zlib.error, lzma.LZMAError, OSError, EOFError):
            raise InputError(
                f"the {self.packing} data are damaged or cut short; fetch the file again.",
                self.label,
            ) from None

    def _of_archive(self, digest: Any) -> Iterator[bytes]:
        if digest is not None:
            deque(self._bytes(digest), maxlen=0)
        self.check()
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as opened:
                yield from iter(lambda: opened.read(CHUNK), b"")
        except Exception as error:  # the library raises many kinds of errors on damaged archives
            raise InputError(
                f"the zip archive is damaged ({reason_of(error)}); fetch it again.", self.label
            ) from None
        self.check()

    def _bytes(self, digest: Any) -> Iterator[bytes]:
        self.check()
        try:
            with Path(self.path).open("rb") as file:
                # Stop at the known size: another program may append faster than this loop reads.
                n_left = self.size
                while n_left and (chunk := file.read(min(CHUNK, n_left))):
                    n_left -= len(chunk)
                    if digest is not None:
                        digest.update(chunk)
                    yield chunk
        except OSError as error:
            raise self.unreadable(error) from None
        self.check()

    def sha256(self) -> str:
        """Return the SHA-256 of the bytes on disk, 64 hex digits."""
        digest = hashlib.sha256()
        deque(self._bytes(digest), maxlen=0)
        return digest.hexdigest()

    def unreadable(self, error: OSError) -> InputError:
        """Return the error for a file that the system cannot read."""
        return UnreachableError(
            f"cannot be read ({error.strerror or error}); keep it in its place until the run "
            "ends, where all workers can read it.",
            self.label,
        )


@lru_cache(maxsize=1 << 12)
def _digest_of(path: str, size: int, modified: int) -> str:
    """Return the SHA-256 of a file, cached by its size and time of change."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class InputFile:
    """An input file on disk, and the options that apply to it."""

    file: KnownFile
    name: str
    suffix: str  # suffix of the name, in lower case, without ".gz"
    head: bytes  # first bytes of the decompressed content
    tail: bytes  # last four bytes on disk
    copy: TemporaryPath | None  # temporary copy of a pipe's content
    options: ReadOptions
    notes: tuple[str, ...] = ()  # notes on how the file is read

    @property
    def label(self) -> str:
        """Name of the file as the user gave it."""
        return self.file.label

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed or an archive."""
        return bool(self.file.packing or self.file.member)

    @property
    def is_binary(self) -> bool:
        """Whether the first bytes contain a null byte, so that the file is no text."""
        return b"\0" in self.head

    @property
    def source(self) -> SourceInfo:
        """The source of the table, as far as it is known before reading."""
        notes = []
        if self.file.member:
            notes.append(f"Read {one_line(self.file.member)} in the zip archive.")
        if self.file.packing:
            notes.append(f"Unpacked from {self.file.packing}.")
        notes += self.notes
        skipped, bad = self.options.skip_rows, self.options.bad_lines == "skip"
        reading = f"skip {skipped}{', bad lines' * bad}" * bool(skipped or bad)
        reading += " as it is" * (self.options.layout == "off")
        return SourceInfo(
            self.name, "", "", self.file.size, 0, 0, notes=tuple(notes), reading=reading
        )

    @cached_property
    def unpacked(self) -> TemporaryPath | None:
        """Temporary copy of compressed content or of a pipe's content; None for other files."""
        return spool(self.file.chunks()) if self.is_packed else self.copy

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes on disk, 64 hex digits."""
        return self.file.sha256()

    def contents(self) -> bytes:
        """Return the whole content, for formats that cannot be streamed."""
        require_memory(self.file.size)
        held = bytearray()
        for chunk in self.file.chunks():
            held += chunk
            require_memory(len(held))
        return bytes(held)


def find_file(path: str | Path, options: ReadOptions) -> InputFile:
    """Return a file, or the one table of a zip archive; copy pipes and stdin (``"-"``) first."""
    standard = str(path) == "-"
    path = Path(path)
    name = "standard input" if standard else PurePath(path).name
    label = name if standard else str(path)
    copy = None
    with about(label), opening(label, path):
        if standard:
            if sys.stdin is None:
                raise InputError("is closed; name a file, or pipe a table to the command.")
            copy = spool(iter(lambda: sys.stdin.buffer.read(CHUNK), b""))
        elif stat.S_ISFIFO(mode := path.stat().st_mode):
            # Opening a pipe, such as a shell's ``<(command)``, blocks until a program writes to it.
            note = f"{one_line(label, 200)}: waiting for a program that writes to this pipe."
            waiting = Timer(_PATIENCE, logging.getLogger(__name__).warning, ["%s", note])
            waiting.daemon = True
            waiting.start()
            try:
                pipe = path.open("rb", buffering=0)
            finally:
                waiting.cancel()
            with pipe:
                copy = spool(iter(lambda: pipe.read(CHUNK), b""))
        elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise InputError("this is a device, not a file; name a file with a table.")
        return _examine(copy.path if copy else path, name, label, copy, options)


def copied_file(copy: TemporaryPath, address: str, options: ReadOptions) -> InputFile:
    """Return the copy of a remote file as an input file."""
    with about(address):
        return _examine(copy.path, address.rpartition("/")[2], address, copy, options)


def _examine(
    path: Path, name: str, label: str, copy: TemporaryPath | None, options: ReadOptions
) -> InputFile:
    with path.open("rb") as opened:
        head = opened.read(HEAD)
        opened.seek(max(opened.seek(0, os.SEEK_END) - 4, 0))
        tail = opened.read(4)
    file, head = _packed(KnownFile.at(path, label), head)
    return _unzipped(InputFile(file, name, _suffix(name), head, tail, copy, options))


def _is_workbook(file: InputFile) -> bool:
    try:
        source = io.BytesIO(file.contents()) if file.is_packed else file.file.path
        with zipfile.ZipFile(source) as opened:
            return any(name.startswith("xl/workbook") for name in opened.namelist())
    except KpcaError:
        raise
    except Exception:  # the library raises many kinds of errors on damaged archives
        return b"[Content_Types].xml" in file.head or b"xl/" in file.head


def _unzipped(file: InputFile) -> InputFile:
    """Return the one table of a zip archive; return other files and workbooks as they are."""
    if not file.head.startswith(_ZIP) or _is_workbook(file):
        return file
    if file.is_packed:
        raise InputError("this is a zip archive, packed again; unpack it first.", file.label)
    if b"mimetypeapplication/vnd.oasis.opendocument" in file.head:
        raise InputError("OpenDocument is not read; save it as .xlsx or CSV.")
    with damage_refused("zip"), zipfile.ZipFile(file.file.path) as archive:
        entries = [
            entry
            for entry in archive.infolist()
            if not entry.is_dir()
            and not any(
                part.startswith((".", "__MACOSX")) and part not in (".", "..")
                for part in entry.filename.split("/")
            )
        ]
    if len(entries) != 1:
        listed = ", ".join(one_line(entry.filename, 40) for entry in entries[:_MOST_LISTED])
        listed += ", ..." * (len(entries) > _MOST_LISTED)
        raise InputError(
            f"a zip archive is read if it holds one table, and this one holds {len(entries):,} "
            f"files{f' ({listed})' * bool(entries)}; unpack it, and name a file, or the folder."
        )
    name = entries[0].filename
    if entries[0].flag_bits & 1:
        raise InputError(f"{one_line(name)} in it is encrypted; unpack it first.")
    member = replace(file.file, member=name, label=f"{file.label}: {one_line(name, 100)}")
    member, head = _packed(member, _head(member))
    return _unzipped(replace(file, file=member, suffix=_suffix(name), head=head, tail=b""))


@contextmanager
def damage_refused(kind: str) -> Iterator[None]:
    """Convert any error that a library raises on a damaged file to an InputError."""
    try:
        yield
    except KpcaError:
        raise
    except BaseException as error:
        # Panics of Rust code are not derived from Exception.
        if not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
            raise
        raise InputError(
            f"not a readable {kind} file ({reason_of(error)}); export it again."
        ) from None


def _packed(file: KnownFile, head: bytes) -> tuple[KnownFile, bytes]:
    packing = next((name for name, magic in _PACKINGS.items() if magic.match(head)), "")
    if not packing:
        return file, head
    if file.packing:
        raise InputError(f"this is packed with {packing} twice; unpack it once.", file.label)
    file = replace(file, packing=packing)
    return _packed(file, _head(file))


def _suffix(name: str) -> str:
    suffixes = [s.lower() for s in PurePath(name).suffixes if s.lower() not in _PACKED]
    return suffixes[-1] if suffixes else ""


def _head(file: KnownFile) -> bytes:
    head = b""
    for chunk in file.chunks():
        head += chunk
        if len(head) >= HEAD:
            break
    return head[:HEAD]


def _of_members(chunks: Iterable[bytes], packing: str) -> Iterator[bytes]:
    unpacker = _unpacker(packing)
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
            # Unlike gzip's decompressor, the others keep their unused input.
            while not (unpacker.eof or unpacker.needs_input):
                if data := unpacker.decompress(b"", CHUNK):
                    yield data
            chunk = unpacker.unused_data
    if packing == "gzip" and (data := unpacker.flush()):
        yield data
    if not unpacker.eof:
        raise EOFError


def _of_zstd(chunks: Iterable[bytes], packing: str) -> Iterator[bytes]:
    import pyarrow as pa  # slow; the command's help must start quickly

    with pa.CompressedInputStream(pa.PythonFile(Chunks(chunks), "r"), packing) as stream:
        yield from iter(lambda: stream.read(CHUNK), b"")


class Chunks(io.RawIOBase):
    """A readable file whose content is an iterable of bytes."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks, self._rest = iter(chunks), b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes, from at most one chunk."""
        self._rest = self._rest or next(self._chunks, b"")
        n_bytes = min(len(buffer), len(self._rest))
        buffer[:n_bytes], self._rest = self._rest[:n_bytes], self._rest[n_bytes:]
        return n_bytes


def _unpacker(packing: str) -> Any:
    if packing == "gzip":
        return zlib.decompressobj(wbits=31)
    return bz2.BZ2Decompressor() if packing == "bzip2" else lzma.LZMADecompressor(memlimit=LZMA)
