"""A folder, on disk or in a bucket, that all workers see; what a killed run finds when it goes on.

Of a table that is read in parts, each part that is done leaves its result in a file of its own,
whose name is a hash of all that the result depends on: the table and the rows of the part, what was
done with them, and the version of the toolkit. So a file is either what would be computed again, or
is not looked at. They are MessagePack, without pickle, and gone once the run comes to its end;
those of a run that was killed and never went on are removed by the first that ends 30 days later.
A bucket holds the same objects; who may write to it, its store says.
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
from kpca_apps.names import one_line
from kpca_apps.system.files.output import atomic_write
from kpca_apps.system.files.spools import COPIES_IN
from kpca_apps.system.stores.addresses import AnyPath, StorePath, located
from kpca_apps.system.stores.buckets import Place, place_of

Result = TypeVar("Result")
_FINISHED = "kpca-finished"
_COPIES = "kpca-rows-"  # in a store, a folder of a run for its copies of tables
_KEPT_FOR = 30 * 86400.0  # seconds after which a killed run is not thought to go on
_DIGEST = 32  # bytes of SHA-256 before what is kept
# All else in a folder is not ours. A file on disk that is not finished is hidden.
_KEPT = re.compile(r"[0-9a-f]{64}\.msgpack|\.[0-9a-f]{40}\.[0-9a-f]{16}-[0-9a-f]{16}\.partial")
_COPY_FOLDER, _COPY = re.compile(rf"{_COPIES}[0-9a-f]{{16}}"), re.compile(r"[0-9a-f]{16}\.arrow")


@dataclass
class FinishedParts:
    """Files of what is done, in a folder that is made for them."""

    folder: Path
    used: set[Path] = field(default_factory=set)

    def get(self, key: str) -> bytes | None:
        """Return what is kept under a key; none where it is not there, or damaged."""
        content = self._read(self._path(key))
        digest, kept = content[:_DIGEST], content[_DIGEST:]
        return kept if hashlib.sha256(kept).digest() == digest else None

    def put(self, key: str, content: bytes) -> None:
        """Keep something under a key."""
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
                # Another run that came to its end may have removed the folder while it was empty.
                if self.folder.is_dir():
                    raise

    def require_private(self) -> None:
        """Refuse a folder in which others may write: what lies there is believed.

        InputError if it is a link, or of another user, or open to others.
        """
        with suppress(FileNotFoundError):
            found = self.folder.lstat()
            is_own = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
            if not stat.S_ISDIR(found.st_mode) or not is_own or found.st_mode & 0o022:
                raise InputError(
                    f"{one_line(str(self.folder), 200)}: others may write there; remove it, or "
                    "give another --work-dir."
                )

    def remove(self) -> None:
        """Remove what this run kept or found, and the folder if no other run has files there."""
        for path in self.used:
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def remove_old(self) -> None:
        """Remove what runs left that were killed long ago."""
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
    """The same in a folder of an object store."""

    def __init__(self, place: Place) -> None:
        super().__init__(Path(_FINISHED))
        self._place = place
        # Known from one look: to ask for each would take longer.
        self._there = {item.name for item in place.inside(_FINISHED).items()}

    def remove(self) -> None:
        """Remove what this run kept or found: a folder of a store is no more than its objects."""
        for path in self.used:
            if path.name in self._there:
                self._object(path).remove()

    def remove_old(self) -> None:
        """Remove what runs left that were killed long ago, their copies of tables too."""
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
    """What is done of one pass over the parts of a table."""

    parts: FinishedParts
    key: str  # of all that is the same for the parts
    kind: type[Result]

    def get(self, start: int, stop: int) -> Result | None:
        """Return the result of some rows, if it is kept."""
        kept = self.parts.get(f"{self.key} {start} {stop}")
        if kept is None:
            return None
        try:
            return msgspec.msgpack.decode(kept, type=self.kind, dec_hook=_made_of)
        except Exception:  # whatever libraries raise on bytes that this did not write
            return None

    def put(self, start: int, stop: int, result: Result) -> None:
        """Keep the result of some rows."""
        content = msgspec.msgpack.encode(result, enc_hook=_plain)
        self.parts.put(f"{self.key} {start} {stop}", content)


def _plain(value: Any) -> Any:
    """Write arrays and frames as bytes, and a number of numpy as Python's."""
    if hasattr(value, "write_ipc"):
        value.write_ipc(file := io.BytesIO())
        return file.getvalue()
    return (value.dtype.str, value.shape, value.tobytes()) if value.shape else value.item()


def _made_of(kind: Any, value: Any) -> Any:
    """Return the array or frame that was written as bytes."""
    import numpy as np  # not above: the command's help is to come without it
    import polars as pl

    if isinstance(value, bytes):
        return pl.read_ipc(value)
    dtype, shape, content = value
    return np.frombuffer(content, dtype).reshape(shape).copy()


@contextmanager
def work_folder(folder: str | AnyPath | None, *, on_dask: bool) -> Iterator[FinishedParts | None]:
    """Use a folder that all workers see: for copies of tables, and for what is done of their parts.

    It may be the address of one in a store. What is done is kept if the block fails. ConfigError
    without Dask's workers, InputError if there is no such folder.
    """
    if folder is None:
        yield None
        return
    if not on_dask:
        raise ConfigError(
            "--work-dir is a folder that the workers of a cluster see: give --workers dask or "
            "--scheduler as well, or leave it out"
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
        raise InputError(
            f"{one_line(str(folder), 200)}: no such folder; make it where all workers see it."
        )
    token = COPIES_IN.set(copies_in)
    try:
        yield finished
    finally:
        COPIES_IN.reset(token)
        if copies is not None:
            # What a store does not remove now is old one day, and is no reason to fail.
            with suppress(InputError):
                copies.remove_folder()
    # Not before: what this run goes on with is not old to it, whatever a clock that was set says.
    for remove in (finished.remove_old, finished.remove):
        with suppress(InputError):
            remove()
