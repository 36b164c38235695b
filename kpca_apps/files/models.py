"""Model files: a zip of one JSON document and plain arrays, audited before anything is built.

Nothing in such a file can run code: there is no pickle, and every member is checked against what
a file written here may hold. Members are stored, not packed, so a small file cannot unpack into a
large one, and carry a fixed date, so that the same model is the same bytes.
"""

from __future__ import annotations

import io
import json
import math
import re
import stat
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError, ModelFileError, RefusedError
from kpca_apps.files.atomic import atomic_write
from kpca_apps.files.names import one_line
from kpca_apps.files.tables.source import find_file

__all__ = ["FORMAT", "FORMAT_VERSION", "check_model_path", "load_archive", "save_archive"]

FORMAT = "kpca-model"
FORMAT_VERSION = 1

_DOCUMENT = "model.json"
_ARRAY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,99}")
_DTYPE = re.compile(r"<f8|<f4|<i8|\|b1|<U[1-9][0-9]{0,5}")
_LONGEST_DOCUMENT = 1 << 28
_DATE = (1980, 1, 1, 0, 0, 0)
_LAST_CODE_POINT = 0x10FFFF
# What the zip, npy and JSON readers of the standard library and numpy raise on damaged bytes.
_DAMAGE = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError,
    TypeError, KeyError, IndexError, OverflowError, SyntaxError, RecursionError, struct.error,
)  # fmt: skip


def save_archive(
    path: str | Path, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a model file.

    Parameters
    ----------
    path : str or Path
        The file; replaced whole, or not at all.
    meta : mapping
        What JSON can hold; infinities and NaN are kept.
    arrays : mapping of str to array
        float64, float32, int64, bool or text of fixed width. Names are letters, digits, ``_``,
        ``-`` and ``.``.

    Raises
    ------
    InputError
        If the file cannot be written.
    TypeError, ValueError
        If something cannot be stored: an array of another type, an unusable name.
    """
    document = {
        "format": FORMAT, "format_version": FORMAT_VERSION, "arrays": sorted(arrays), "meta": meta,
    }  # fmt: skip
    members = {_DOCUMENT: json.dumps(document, indent=1).encode("utf-8")}
    for name in sorted(arrays):
        members[f"{name}.npy"] = _array_bytes(name, arrays[name])
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), data)


def load_archive(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a model file written by `save_archive`.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    meta : dict
        The document.
    arrays : dict of str to array
        The arrays, writable.

    Raises
    ------
    ModelFileError
        If the file is missing, damaged, foreign, or written by a newer version.
    MemoryLimitError
        If it would not fit into memory.
    """
    try:
        raw = find_file(path)
        data = raw.data(None)
    except InputError as error:
        raise ModelFileError(str(error)) from None
    try:
        members = _members(data)
        document = _document(members.pop(_DOCUMENT))
        arrays = {name.removesuffix(".npy"): _array(data) for name, data in members.items()}
        if sorted(arrays) != document["arrays"]:
            raise ValueError("arrays are missing or added")
    except _NewerFormatError as error:
        raise ModelFileError(f"{raw.label}: {error}") from None
    except _DAMAGE as error:
        reason = one_line(str(error).strip("'\""), 100)
        raise ModelFileError(
            f"{raw.label}: not a usable model file ({reason}); fit the model again."
        ) from None
    meta: dict[str, Any] = document["meta"]
    return meta, arrays


def check_model_path(path: str | Path, *, force: bool = False) -> None:
    """Refuse a path at which no model may be written; a run asks before it starts work.

    Parameters
    ----------
    path : str or Path
        The file to be written by `save_archive`.
    force : bool
        Whether a model that is there may be replaced. Nothing but a model ever is: no link, no
        device, no table, not even by force.

    Raises
    ------
    RefusedError
        If something is there that may not be replaced.
    InputError
        If the folder is missing or the name cannot be used.
    """
    target = Path(path)
    label = one_line(str(path), 200)
    try:
        found = target.lstat().st_mode
    except FileNotFoundError:
        found = None
    except (OSError, ValueError) as error:
        reason = one_line(getattr(error, "strerror", None) or str(error))
        raise InputError(f"{label}: is not a usable file name ({reason}).") from None
    if not target.parent.is_dir():
        raise InputError(f"{label}: its folder does not exist; make it first.")
    if found is None:
        return
    if not stat.S_ISREG(found) or not _is_model(target):
        raise RefusedError(
            f"{label}: exists and is not a model, so it is never replaced; choose another file "
            "with --model."
        )
    if not force:
        raise RefusedError(
            f"{label}: exists already; replace it with --force, or choose another file with "
            "--model."
        )


def _is_model(path: Path) -> bool:
    """Whether a file was written by `save_archive`, of this version or a newer one."""
    try:
        with zipfile.ZipFile(path) as archive:
            entry = archive.getinfo(_DOCUMENT)
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > _LONGEST_DOCUMENT:
                return False
            document = json.loads(archive.read(entry))
    except _DAMAGE:
        return False
    return isinstance(document, dict) and document.get("format") == FORMAT


class _NewerFormatError(Exception):
    """The file follows a format this version does not know yet."""


def _array_bytes(name: str, array: NDArray[Any]) -> bytes:
    array = np.asarray(array)
    stored = np.array(array, dtype=array.dtype.newbyteorder("<"), order="C")
    if stored.dtype.kind == "U" and stored.dtype.itemsize == 0:
        stored = stored.astype("<U1")
    if not _ARRAY_NAME.fullmatch(name) or not _DTYPE.fullmatch(stored.dtype.str):
        raise ValueError(f"cannot store array {name!r} of type {array.dtype}")
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, stored, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _members(data: bytes) -> dict[str, bytes]:
    """Audit the directory of the zip, then read its members."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        if names.count(_DOCUMENT) != 1 or len(set(names)) != len(names):
            raise ValueError("its parts are not those of a model")
        for entry in entries:
            stem = entry.filename.removesuffix(".npy")
            known = entry.filename == _DOCUMENT or (
                stem != entry.filename and _ARRAY_NAME.fullmatch(stem)
            )
            stored = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 0x1
            if not known or not stored or entry.compress_size != entry.file_size:
                raise ValueError(f"unexpected part {entry.filename!r}")
        if sum(entry.file_size for entry in entries) > len(data):
            raise ValueError("its parts are larger than the file")
        return {entry.filename: archive.read(entry) for entry in entries}


def _document(data: bytes) -> dict[str, Any]:
    document = json.loads(data.decode("utf-8"))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError("it was not written by this toolkit")
    version = document.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise ValueError("its format has no version")
    if version > FORMAT_VERSION:
        raise _NewerFormatError(
            f"written in format {version} by a newer version; this one reads up to format "
            f"{FORMAT_VERSION}: update kpca-apps."
        )
    if not isinstance(document.get("meta"), dict):
        raise ValueError("its settings are missing")
    return document


def _array(data: bytes) -> NDArray[Any]:
    """Audit the header of an array against its bytes, then build it."""
    buffer = io.BytesIO(data)
    if np.lib.format.read_magic(buffer) != (1, 0):
        raise ValueError("an array of unknown format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(buffer)
    if fortran or dtype.hasobject or not _DTYPE.fullmatch(dtype.str):
        raise ValueError(f"an array of type {dtype}")
    n_bytes = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or n_bytes != len(data) - buffer.tell():
        raise ValueError("an array whose size is not what its header says")
    cells = np.frombuffer(data, dtype=np.uint8, offset=buffer.tell())
    if dtype.kind == "b" and cells.max(initial=0) > 1:
        raise ValueError("an array of booleans with other values")
    if dtype.kind == "U" and cells.view("<u4").max(initial=0) > _LAST_CODE_POINT:
        raise ValueError("an array of text with impossible characters")
    return cells.view(dtype).reshape(shape).copy()
