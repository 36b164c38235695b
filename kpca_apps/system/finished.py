"""Results of finished parts in a folder that all workers see, for resuming a run.

Each part of a table has a file named by a hash of everything its result depends on: the table, the
rows, the computation and the toolkit's version. A changed input therefore never finds an outdated
result. Files are MessagePack without pickle, and removed when the run completes. Files of a killed
run are removed by the first run that completes 30 days later. In a bucket, each file is an object,
and the store controls who may write.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from kpca_apps.errors import ConfigError, InputError, storage_named
from kpca_apps.system.files.output import atomic_write
from kpca_apps.system.files.spools import COPIES_IN
from kpca_apps.system.stores.addresses import AnyPath, StorePath, located
from kpca_apps.system.stores.buckets import Place, place_of

Result = TypeVar("Result")
_FINISHED = "kpca-finished"
_COPIES = "kpca-rows-"  # prefix of the store folder in which a run keeps copies of table rows
_KEPT_FOR = 30 * 86400.0  # seconds until files of a killed run are removed
_DIGEST = 32  # bytes of the SHA-256 hash stored before the content
# File names that runs write; a leading dot marks an unfinished file.
_KEPT = re.compile(r"[0-9a-f]{64}\.msgpack|\.[0-9a-f]{40}\.[0-9a-f]{16}-[0-9a-f]{16}\.partial")
_COPY_FOLDER, _COPY = re.compile(rf"{_COPIES}[0-9a-f]{{16}}"), re.compile(r"[0-9a-f]{16}\.arrow")


@dataclass
class FinishedParts:
    """Files with the results of finished parts, in a folder of their own."""

    folder: Path
    used: set[Path] = field(default_factory=set)

    def get(self, key: str) -> bytes | None:
        """Return the content under a key; None if it is missing or damaged."""
        content = self._read(self._path(key))
        digest, kept = content[:_DIGEST], content[_DIGEST:]
        return kept if hashlib.sha256(kept).digest() == digest else None

    def put(self, key: str, content: bytes) -> None:
        """Store content under a key."""
        self._write(self._path(key), hashlib.sha256(content).digest() + content)

    def _read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError:
            return b""

    def _write(self, path: Path, content: bytes) -> None:
        while True:
            with storage_named(self.folder):
                self.folder.mkdir(mode=0o700, exist_ok=True)
            try:
                with atomic_write(path) as file:
                    file.write(content)
                return
            except InputError:
                # Another run may have removed the empty folder when it completed.
                if self.folder.is_dir():
                    raise

    def require_private(self) -> None:
        """Raise InputError if other users may write to the folder, as its content is trusted.

        A link, and a folder owned by another user, are refused, too.
        """
        with suppress(FileNotFoundError):
            folder_stat = self.folder.lstat()
            is_own = not hasattr(os, "geteuid") or folder_stat.st_uid == os.geteuid()
            if not stat.S_ISDIR(folder_stat.st_mode) or not is_own or folder_stat.st_mode & 0o022:
                raise InputError(
                    "others may write there; remove it, or give another --work-dir.", self.folder
                )

    def remove(self) -> None:
        """Remove this run's files, then the folder if it is empty."""
        for path in self.used:
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def remove_old(self) -> None:
        """Remove files of runs that were killed more than 30 days ago."""
        with suppress(OSError):
            for path in self.folder.iterdir():
                with suppress(OSError):
                    if _KEPT.fullmatch(path.name) and _is_old(path.stat().st_mtime):
                        path.unlink()

    def _path(self, key: str) -> Path:
        path = self.folder / f"{hashlib.sha256(key.encode()).hexdigest()}.msgpack"
        self.used.add(path)
        return path


def _is_old(modified: float) -> bool:
    return time.time() - modified > _KEPT_FOR


class FinishedObjects(FinishedParts):
    """Results of a table's finished parts, each stored as one object in an object store."""

    def __init__(self, place: Place) -> None:
        super().__init__(Path(_FINISHED))
        self._place = place
        # List the folder once, which is faster than a query for each part.
        self._there = {item.name for item in place.inside(_FINISHED).items()}

    def remove(self) -> None:
        """Remove this run's objects."""
        for path in self.used:
            if path.name in self._there:
                self._object(path).remove()

    def remove_old(self) -> None:
        """Remove objects and table copies of runs that were killed more than 30 days ago."""
        for one in self._place.items():
            ours = _KEPT if one.name == _FINISHED else _COPY
            if one.is_folder and (ours is _KEPT or _COPY_FOLDER.fullmatch(one.name)):
                folder = self._place.inside(one.name)
                for item in folder.items():
                    if ours.fullmatch(item.name) and not item.is_folder and _is_old(item.modified):
                        folder.inside(item.name).remove()

    def _object(self, path: Path) -> Place:
        return self._place.inside(path.as_posix())

    def _read(self, path: Path) -> bytes:
        with suppress(InputError):
            if path.name in self._there:
                return b"".join(self._object(path).chunks())
        return b""

    def _write(self, path: Path, content: bytes) -> None:
        self._object(path).write([content])
        self._there.add(path.name)


@dataclass(frozen=True)
class FinishedPass(Generic[Result]):
    """Stored results of one computation over the parts of a table."""

    parts: FinishedParts
    key: str  # hash of everything that all parts depend on
    kind: type[Result]

    def get(self, start: int, stop: int) -> Result | None:
        """Return the stored result for some rows, or None."""
        content = self.parts.get(f"{self.key} {start} {stop}")
        if content is None:
            return None
        try:
            result: Result = from_bytes(content, self.kind)
            return result
        except Exception:  # libraries raise various errors on damaged bytes
            return None

    def put(self, start: int, stop: int, result: Result) -> None:
        """Store the result for some rows."""
        self.parts.put(f"{self.key} {start} {stop}", to_bytes(result))


def to_bytes(value: Any) -> bytes:
    """Encode a dataclass, with arrays and data frames, as MessagePack."""
    return msgspec.msgpack.encode(value, enc_hook=_plain)


def from_bytes(content: bytes, kind: Any) -> Any:
    """Decode a value that `to_bytes` encoded, of a type; loading cannot run code."""
    return msgspec.msgpack.decode(content, type=kind, dec_hook=_made_of)


def _plain(value: Any) -> Any:
    if hasattr(value, "write_ipc"):
        value.write_ipc(file := io.BytesIO())
        return file.getvalue()
    return (value.dtype.str, value.shape, value.tobytes()) if value.shape else value.item()


def _made_of(kind: Any, value: Any) -> Any:
    import numpy as np  # imported here: the command's help must start quickly
    import polars as pl

    if isinstance(value, bytes):
        return pl.read_ipc(value)
    dtype, shape, content = value
    return np.frombuffer(content, dtype).reshape(shape).copy()


@contextmanager
def work_folder(folder: str | AnyPath | None, *, on_dask: bool) -> Iterator[FinishedParts | None]:
    """Yield a store of finished parts and table copies, in a folder that all workers see.

    The folder may be an address in a store. Files stay if the block raises. Raises ConfigError
    without Dask workers, and InputError if the folder does not exist.
    """
    if folder is None:
        yield None
        return
    if not on_dask:
        raise ConfigError(
            "--work-dir is for Dask workers only: give --workers dask or --scheduler with it, or "
            "leave --work-dir out"
        )
    finished: FinishedParts
    copies_in: AnyPath
    copies: Place | None = None
    folder = located(folder)
    if isinstance(folder, StorePath):
        place = place_of(folder)
        place.require_writable()
        finished = FinishedObjects(place)
        copies_in = folder / f"{_COPIES}{secrets.token_hex(8)}"
        copies = place_of(copies_in)
    elif folder.is_dir():
        copies_in = folder.absolute()
        finished = FinishedParts(copies_in / _FINISHED)
        finished.require_private()
    else:
        raise InputError("no such folder; make it where all workers see it.", folder)
    token = COPIES_IN.set(copies_in)
    try:
        yield finished
    finally:
        COPIES_IN.reset(token)
        if copies is not None:
            # If removal fails now, a later run removes the copies.
            with suppress(InputError):
                copies.remove_folder()
    # Remove old files only now: if the clock was changed, this run's files may look old, too.
    for remove in (finished.remove_old, finished.remove):
        with suppress(InputError):
            remove()
