"""Model files: numpy's npz for arrays, and one JSON document for everything else.

A fitted model is a tree of dataclasses. A file must match their annotations:

- ``Annotated[FloatArray, "p q"]`` is an array of two dimensions. A number stands for a length, a
  letter for the same length in all arrays of the dataclass. Values are finite, unless ``"NaN too"``
  follows, and within the bounds of a ``msgspec.Meta`` that follows.
- Other fields are numbers, text, tuples and dataclasses of the declared type and bounds (msgspec,
  strict); no field may be missing or unknown.
- A field of an abstract class may hold any derived dataclass, identified by its name.
- A renamed class keeps its name in files as a class attribute ``stored_as``.
- A method ``validate`` raises ``ValueError`` for what annotations cannot express.

Loading cannot run code: there is no pickle. Members are stored uncompressed, so a small file cannot
unpack into a large one. Their date is fixed, so equal models give equal bytes.
"""

from __future__ import annotations

import ast
import inspect
import io
import math
import stat
import zipfile
from collections.abc import Hashable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import IO, Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import MemoryLimitError, ModelFileError
from kpca_apps.names import one_line, reason_of, suggest
from kpca_apps.system.arrays import scalar_of
from kpca_apps.system.files.output import atomic_write, require_replaceable
from kpca_apps.system.memory import available_bytes
from kpca_apps.system.stores.addresses import located
from kpca_apps.system.stores.buckets import here

Model = TypeVar("Model")

FORMAT = "kpca-model"
FORMAT_VERSION = 14

_DOCUMENT = "model.json"
_DATE = (1980, 1, 1, 0, 0, 0)
_LARGEST_INTEGER = 2**53
_LONGEST_HEADER = 10_000  # maximum number of bytes of an array's header; numpy has the same limit
# Deepest nesting of objects of an abstract class, such as kernels; a deeper file is an attack.
_DEEPEST = 16


def _as_plain(value: Any) -> Any:
    """Return a numpy scalar as a Python number, and a `str` subclass as text."""
    return str(value) if isinstance(value, str) else value.item()


def save_model_file(path: str | Path, kind: str, model: object) -> None:
    """Write a fitted model, a dataclass, atomically to a file of the given ``kind``.

    An array that occurs twice in the model is stored once.
    """
    require_replaceable(path, "a model", _is_model, force=True)
    members: dict[str, NDArray[Any]] = {}
    names: dict[int, str] = {}

    def plain(value: Any, place: str) -> Any:
        if isinstance(value, np.ndarray):
            name = names.setdefault(id(value), place)
            # Keep the memory layout, as matrix products round differently in another layout.
            members[name] = np.asarray(value, dtype=value.dtype.newbyteorder("<"))
            return {"type": value.dtype.name, "array": name}
        if is_dataclass(value):
            parts = {
                field.name: plain(getattr(value, field.name), f"{place}.{field.name}".strip("."))
                for field in fields(value)
            }
            return {"type": _stored_name(type(value)), **parts}
        if isinstance(value, tuple):
            return [plain(part, f"{place}.{i}") for i, part in enumerate(value)]
        return value

    document = {
        "format": FORMAT, "format_version": FORMAT_VERSION, "kind": kind, "model": plain(model, ""),
    }  # fmt: skip
    data = msgspec.json.encode(document, enc_hook=_as_plain)
    with atomic_write(path) as file:
        np.savez(file, **members)  # type: ignore[arg-type]  # no member is named allow_pickle
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(zipfile.ZipInfo(_DOCUMENT, _DATE), data)


def load_model_file(path: str | Path, kind: str, make: type[Model], wanted: str) -> Model:
    """Return the model in a file, an instance of ``make``; the content is not trusted.

    ``wanted`` describes the kind for messages: "a novelty model; fit one with ...".
    """
    place = located(path)
    label = one_line(str(place), 200)
    with here(place) as local, _opened(local, label) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                entries = _audited(archive, file.seek(0, io.SEEK_END))
                header = msgspec.json.decode(archive.read(_DOCUMENT), type=_Header)
                version, refusal = header.format_version, ""
                if header.format != FORMAT:
                    raise ValueError("it was not written by this toolkit")
                if version > FORMAT_VERSION:
                    refusal = (
                        f"written in format {version} by a newer version; this one reads format "
                        f"{FORMAT_VERSION}: update kpca-apps."
                    )
                elif version < FORMAT_VERSION:
                    refusal = (
                        "written by an older kpca-apps, in a format this one does not read: "
                        "fit the model again."
                    )
                elif header.kind != kind:
                    refusal = f"not {wanted}"
                if refusal:
                    raise ModelFileError(f"{label}: {refusal}")
                return _Reader(archive, entries).model(make, header.model)
        except (ModelFileError, MemoryLimitError, MemoryError):
            raise
        except Exception as error:  # from zip, npy, JSON or the tokenizer that numpy uses
            reason = one_line(str(error).strip("'\""), 100) or type(error).__name__
            if isinstance(error, zipfile.BadZipFile):
                reason = "it holds no model, or is damaged"
            raise ModelFileError(
                f"{label}: not a usable model file ({reason}); give a model that a fit saved."
            ) from error


def check_model_path(path: str | Path, *, force: bool = False) -> None:
    """Raise an error, before work starts, unless a model may be written to a path."""
    require_replaceable(path, "a model", _is_model, force=force, option="--model")


class _Header(msgspec.Struct):
    format: str
    format_version: int
    kind: str = ""
    model: msgspec.Raw = msgspec.Raw(b"")


class _Record(msgspec.Struct):
    """Decoded JSON of a dataclass; subclasses are generated from its fields."""


class _Member(msgspec.Struct):
    """Reference to an array of the model, by the name of its zip member."""

    array: str


class _Reader:
    """Builds a model from the parts of a file."""

    def __init__(self, archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo]) -> None:
        self._archive, self._entries = archive, entries
        self._arrays: dict[str, NDArray[Any]] = {}
        self._depth = 0

    def model(self, make: type[Model], data: msgspec.Raw) -> Model:
        schema = _schema(make)  # type: ignore[arg-type]  # a type, which can be hashed
        record = msgspec.json.decode(data, type=schema, dec_hook=self._derived)
        model: Model = self._built(record)
        if unused := self._entries.keys() - self._arrays.keys() - {_DOCUMENT}:
            raise ValueError(f"{min(unused)} belongs to nothing")
        return model

    def _derived(self, base: type, value: Any) -> Any:
        """Return an instance of the derived dataclass that the value names."""
        name = value.get("type") if isinstance(value, dict) else None
        kind: Any = next((kind for kind in _derived_from(base) if kind.__name__ == name), None)
        if kind is None:
            raise ValueError(
                f"no {base.__name__} is called {name!r:.40}: import the module that defines it"
            )
        if self._depth > _DEEPEST:
            raise ValueError(f"{base.__name__} inside {base.__name__}, too deep")
        self._depth += 1
        instance = self._built(msgspec.convert(value, _schema(kind), dec_hook=self._derived))
        self._depth -= 1
        return instance

    def _built(self, value: Any) -> Any:
        if isinstance(value, _Member):
            return self._array(value.array, type(value).__name__)
        if isinstance(value, tuple):
            return tuple(map(self._built, value))
        if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
            raise ValueError(f"{value:.3e} is too large a number")
        if not isinstance(value, _Record):
            return value
        values = {name: self._built(getattr(value, name)) for name in value.__struct_fields__}
        instance = _DATACLASSES[type(value)](**values)
        try:
            _check_arrays(instance)
            if validate := getattr(instance, "validate", None):
                validate()
        except ValueError as error:
            raise ValueError(f"{_stored_name(type(instance))}: {error}") from error
        return instance

    def _array(self, name: str, dtype: str) -> NDArray[Any]:
        part = f"{name}.npy"
        if part not in self._arrays:
            entry = self._entries[part]
            with self._archive.open(entry) as member:
                if np.lib.format.read_magic(member) != (1, 0):
                    raise ValueError(f"{name} is an array of unknown format")
                begin, n_header = member.tell(), int.from_bytes(member.read(2), "little")
                try:
                    ast.literal_eval(member.read(min(n_header, _LONGEST_HEADER)).decode("latin-1"))
                except SyntaxError:  # numpy would repair Python 2 headers, with a warning
                    raise ValueError(f"{name}: its header is damaged") from None
                member.seek(begin)
                shape, _, stored = np.lib.format.read_array_header_1_0(member)
                n_bytes = math.prod(shape) * stored.itemsize
                if stored != np.dtype(dtype) or not stored.isnative:
                    raise ValueError(f"{name} is an array of type {stored}")
                if min(shape, default=0) < 0 or n_bytes != entry.file_size - member.tell():
                    raise ValueError(f"{name}: its size is not what its header says")
                member.seek(0)
                self._arrays[part] = np.lib.format.read_array(member, allow_pickle=False)
        return self._arrays[part]


_DATACLASSES: dict[type[msgspec.Struct], Any] = {}


@cache
def _schema(kind: Hashable) -> Any:
    """Return the msgspec type that validates the JSON of an annotated type."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _schema(parts[0]) if scalar_of(parts[0]) else kind
    if scalar := scalar_of(kind):
        name = np.dtype(scalar).name
        return msgspec.defstruct(
            name, [], bases=(_Member,), tag_field="type", tag=name, forbid_unknown_fields=True
        )
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        record = msgspec.defstruct(
            kind.__name__,
            [(field.name, _schema(hints[field.name])) for field in fields(kind)],
            bases=(_Record,),
            tag_field="type",
            tag=_stored_name(kind),
            forbid_unknown_fields=True,
        )
        _DATACLASSES[record] = kind
        return record
    if origin in (Union, UnionType):
        return Union[tuple(map(_schema, parts))]  # noqa: UP007
    return tuple[tuple(map(_schema, parts))] if origin is tuple else kind  # type: ignore[misc]


def _stored_name(kind: Any) -> str:
    return str(getattr(kind, "stored_as", kind.__name__))


def _derived_from(base: Any) -> Iterator[Any]:
    for kind in base.__subclasses__():
        if is_dataclass(kind) and not inspect.isabstract(kind):
            yield kind
        yield from _derived_from(kind)


def _check_arrays(instance: Any) -> None:
    """Raise ValueError unless the arrays of a dataclass have their declared lengths and bounds."""
    lengths: dict[str, int] = {}
    for name, (shape, *further) in _declared_arrays(type(instance)):  # type: ignore[arg-type]  # as above
        array = getattr(instance, name)
        if not isinstance(array, np.ndarray):
            continue
        letters = shape.split()
        fits = len(letters) == array.ndim and all(
            length == (int(letter) if letter.isdigit() else lengths.setdefault(letter, length))
            for letter, length in zip(letters, array.shape, strict=True)
        )
        if not fits:
            raise ValueError(f"{name} has shape {array.shape}")
        if not array.size:
            continue
        # If an array contains NaN, min and max are NaN and within no bounds.
        low, high = array.min(), array.max()
        within = "NaN too" in further or (np.isfinite(low) and np.isfinite(high))
        for bounds in further:
            if isinstance(bounds, msgspec.Meta):
                within &= bounds.ge is None or low >= bounds.ge
                within &= bounds.gt is None or low > bounds.gt
                within &= bounds.le is None or high <= bounds.le
                within &= bounds.lt is None or high < bounds.lt
        if not within:
            raise ValueError(f"{name} holds values that no fit leads to")


@cache
def _declared_arrays(kind: Any) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (name, part.__metadata__)
        for name, hint in hints.items()
        for part in (hint, *get_args(hint))
        if get_origin(part) is Annotated and scalar_of(get_args(part)[0])
    )


def _audited(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the zip entries by name; raise ValueError if they cannot be those of a model."""
    entries = archive.infolist()
    by_name = {entry.filename: entry for entry in entries}
    if _DOCUMENT not in by_name or len(by_name) != len(entries):
        raise ValueError("its parts are not those of a model")
    for entry in entries:
        stored = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 0x1
        if not stored or entry.compress_size != entry.file_size:
            raise ValueError(f"unexpected part {entry.filename!r}")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError("its parts are larger than the file")
    return by_name


def _opened(path: Path, label: str) -> IO[bytes]:
    try:
        file_stat = path.stat()
        # Opening a named pipe would block.
        file = path.open("rb") if stat.S_ISREG(file_stat.st_mode) else None
    except FileNotFoundError:
        others = sorted(p.name for p in path.parent.glob("*") if p.name != path.name)
        raise ModelFileError(f"{label}: no such file.{suggest(path.name, others)}") from None
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{label}: cannot be read ({reason_of(error)}).") from None
    if file is None:
        raise ModelFileError(f"{label}: is not a file; give a model that a fit saved.")
    if file_stat.st_size > available_bytes():
        file.close()
        raise MemoryLimitError(f"{label}: the model is larger than the memory available.")
    return file


def _is_model(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            _audited(archive, path.stat().st_size)
            header = msgspec.json.decode(archive.read(_DOCUMENT), type=_Header)
    except Exception:
        return False
    return header.format == FORMAT
