"""The records of a batch in its output folder, from which a stopped batch resumes.

Each finished image leaves a file of JSON in `RECORDS`, written before the image gets its name. So
an image whose hash is in no record is not a result of the batch, and after a stop no finished image
is missing or denoised again. A finished batch joins the records into one sorted file, which does
not depend on stops.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from kpca_apps.errors import InputError, RefusedError
from kpca_apps.images.files import hash_folder
from kpca_apps.images.kinds import head_of
from kpca_apps.system.files.temporary import lock, remove
from kpca_apps.system.stores.addresses import AnyPath, StorePath
from kpca_apps.system.stores.buckets import here

MANIFEST = "manifest.jsonl"
RECORDS = ".kpca-records"  # folder of the records until the batch ends
_HEADER = b'{"format": "kpca denoise manifest", "version": 1}\n'
_PARTIAL = re.compile(r"\.kpca-denoise-[0-9a-f]{8}-[0-9]{1,9}\.partial")
_BUSY = "another run is writing to this folder; wait until it ends, or choose another folder."


class Manifest:
    """The records of the results in a folder, on disk or in a store; damaged ones are left out.

    They come from a finished batch (`joined`), and from the files of a stopped one (`single`).
    """

    def __init__(self, joined: bytes, single: Iterable[bytes], place: str | Path) -> None:
        if not joined.startswith(_HEADER[: len(joined)]):
            raise RefusedError(
                "is not the record of a denoising batch; choose another folder with --out.", place
            )
        self._records = defaultdict[str, list[dict[str, Any]]](list)
        for content in chain(joined.splitlines()[1:], single):
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                self.add(json.loads(content))

    def records(self, output: str) -> list[dict[str, Any]]:
        """Return the records of a result."""
        return self._records.get(output, [])

    def add(self, record: dict[str, Any]) -> None:
        """Add the record of a result."""
        self._records[str(record["output"])].append(record)

    def joined(self, keys: Mapping[str, str]) -> bytes:
        """Return the sorted records; keep only the current one of a result that has one."""
        lines = [_HEADER]
        for output, known in sorted(self._records.items()):
            current = [one for one in known if one.get("key") == keys.get(output)][-1:]
            lines += dict.fromkeys(map(_line, current or known))
        return b"".join(lines)


def record_file(record: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return name and content of the file with the record of a result."""
    content = _line(record)
    return f"{RECORDS}/{hashlib.sha256(content).hexdigest()}.json", content


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, ensure_ascii=True).encode("ascii") + b"\n"


@contextmanager
def only_batch(folder: Path) -> Iterator[None]:
    """Lock a folder of results against a second run; the lock is on its `MANIFEST`."""
    path = folder / MANIFEST
    if (folder / RECORDS).is_symlink():
        raise RefusedError("is a link; choose another folder with --out.", folder / RECORDS)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise RefusedError("is not a plain file; choose another folder with --out.", path)
    try:
        path.open("ab").close()
        number = lock(path)
    except BlockingIOError:
        raise RefusedError(_BUSY, path) from None
    except OSError as error:
        why = f"cannot be written ({error.strerror}); choose another folder."
        raise InputError(why, path) from None
    try:
        if number is not None and not os.path.samestat(os.fstat(number), path.stat()):
            # Another run ended and replaced the file after this run opened it.
            raise RefusedError(_BUSY, path)
        yield
    finally:
        if number is not None:
            os.close(number)


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
