"""The record of a batch in its output folder, from which a stopped batch resumes.

Each finished image adds a line of JSON, flushed to disk before the image is renamed to its target.
So an image whose hash is not in the record is not a result of the batch, and after a stop no
finished image is missing or denoised again. A finished batch sorts the lines, so that the record
does not depend on stops.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import IO, Any

from kpca_apps.errors import InputError, RefusedError
from kpca_apps.images.files import hash_folder
from kpca_apps.images.kinds import head_of
from kpca_apps.system.files.output import atomic_write
from kpca_apps.system.files.temporary import remove
from kpca_apps.system.stores.addresses import AnyPath, StorePath
from kpca_apps.system.stores.buckets import here

MANIFEST = "manifest.jsonl"
_HEADER = b'{"format": "kpca denoise manifest", "version": 1}\n'
_PARTIAL = re.compile(r"\.kpca-denoise-[0-9a-f]{8}-[0-9]{1,9}\.partial")


Records = dict[str, list[dict[str, Any]]]  # records by name of the result, oldest first


class Manifest(AbstractContextManager["Manifest"]):
    """The record of an output folder, locked against a second run until closed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / MANIFEST
        self._records: Records = {}
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_file()):
            raise RefusedError("is not a plain file; choose another folder with --out.", self.path)
        try:
            self._file = self.path.open("ab+")
        except OSError as error:
            why = f"cannot be written ({error.strerror}); choose another folder."
            raise InputError(why, self.path) from None
        try:
            _lock(self._file, self.path)
            if not os.path.samestat(os.fstat(self._file.fileno()), self.path.stat()):
                # Another run ended and replaced the file after this run opened it.
                raise RefusedError(_BUSY, self.path)
            self._read()
        except BaseException:
            self._close()
            raise

    def __exit__(self, *_: object) -> None:
        self._close()

    def records(self, output: str) -> list[dict[str, Any]]:
        """Return the records of a result, oldest first."""
        return self._records.get(output, [])

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a record and flush it to disk."""
        self._append(_line(record))
        self._records.setdefault(str(record["output"]), []).append(dict(record))

    def settle(self, keys: Mapping[str, str]) -> None:
        """Write the sorted record of a finished batch, and close it."""
        content = settled(self._records, keys)
        self._file.seek(0)
        is_settled = self._file.read() == content
        if is_settled or sys.platform == "win32":
            # Windows cannot replace an open file.
            self._close()
        if not is_settled:
            with atomic_write(self.path) as file:
                file.write(content)
            self._close()

    def _append(self, line: bytes) -> None:
        end = self._file.seek(0, 2)
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                os.truncate(self.path, end)
            raise InputError(
                f"cannot be written ({error.strerror}); make room, then run the same command "
                "again.",
                self.path,
            ) from None

    def _read(self) -> None:
        """Read the record, and drop an incomplete last line."""
        self._file.seek(0)
        content = self._file.read()
        if _HEADER.startswith(content) and content != _HEADER:
            self._file.truncate(0)
            self._append(_HEADER)
            sync_folder(self.path.parent)
            return
        self._records = records_in(content, self.path)
        if not content.endswith(b"\n"):
            self._file.truncate(content.rfind(b"\n") + 1)

    def _close(self) -> None:
        with suppress(OSError):
            self._file.close()


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, ensure_ascii=True).encode("ascii") + b"\n"


def records_in(content: bytes, place: str | Path) -> Records:
    """Return the records, except damaged lines and an incomplete last line."""
    if not content.startswith(_HEADER):
        raise RefusedError(
            "is not the record of a denoising batch; choose another folder with --out.", place
        )
    records: Records = {}
    for line in content[: content.rfind(b"\n") + 1].splitlines()[1:]:
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            record = json.loads(line)
            records.setdefault(str(record["output"]), []).append(record)
    return records


def settled(records: Records, keys: Mapping[str, str]) -> bytes:
    """Return the sorted record; keep only the current entry of a result that has one."""
    lines = [_HEADER]
    for output, known in sorted(records.items()):
        current = [one for one in known if one.get("key") == keys.get(output)][-1:]
        lines += [_line(record) for record in current or known]
    return b"".join(lines)


def batch_key(input_sha256: str, output: str, settings: Mapping[str, Any]) -> str:
    """Return a hash of everything on which a result depends."""
    text = json.dumps([input_sha256, output, dict(settings)], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def hash_file(path: AnyPath) -> str | None:
    """Return the SHA-256 of a file or an image folder; None for anything else."""
    try:
        if isinstance(path, StorePath):
            with here(path) as copy:
                return hash_file(copy)
        if path.is_dir() and head_of(path):
            return hash_folder(path)
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def partial_path(target: Path, token: str, number: int) -> Path:
    """Return the temporary path of an unfinished result."""
    return target.with_name(f".kpca-denoise-{token}-{number}.partial")


def remove_partial(folder: Path) -> None:
    """Remove the temporary files of a stopped run from an output folder."""
    for parent, folders, names in os.walk(folder):
        for name in filter(_PARTIAL.fullmatch, [*names, *folders]):
            remove(Path(parent, name))
        folders[:] = [name for name in folders if not _PARTIAL.fullmatch(name)]


def sync_tree(path: Path) -> None:
    """Flush a file, or a folder with all files and folders in it, to disk."""
    if path.is_file():
        with path.open("rb+") as file:  # Windows flushes writable files only
            os.fsync(file.fileno())
    for parent, _, names in os.walk(path):
        for name in names:
            sync_tree(Path(parent, name))
        sync_folder(Path(parent))


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk, if the system supports this."""
    with suppress(OSError, AttributeError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_BUSY = "another run is writing to this folder; wait until it ends, or choose another folder."

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes], path: Path) -> None:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            raise RefusedError(_BUSY, path) from None
else:
    import fcntl

    def _lock(file: IO[bytes], path: Path) -> None:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusedError(_BUSY, path) from None
        except OSError:
            # Some network file systems have no locks: run without a lock.
            return
