"""Model files: numpy's npz for the arrays, and one JSON part for everything else.

A fitted model is a tree of dataclasses, and what their fields declare is what a file is held to:

- ``Annotated[FloatArray, "p q"]`` is an array of two dimensions. A letter stands for the same
  length wherever it stands in one dataclass, a number for itself. Values are finite, unless
  ``"NaN too"`` follows, and within the bounds of a ``msgspec.Meta`` that follows.
- Other fields are numbers, text, tuples and dataclasses, each of its declared type and bounds
  (msgspec, strict); none may be missing, none added.
- A field of an abstract class may hold any dataclass derived from it, by its name.
- A class that was renamed keeps its name in files as a class attribute ``stored_as``.
- A method ``validate`` raises ``ValueError`` for what no annotation can say.

Nothing in such a file can run code: there is no pickle. Members are stored, not packed, so a small
file cannot unpack into a large one, and carry a fixed date, so the same model is the same bytes.
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

from kpca_apps.errors import InputError, MemoryLimitError, ModelFileError, RefusedError
from kpca_apps.names import one_line, reason_of, suggest
from kpca_apps.system.arrays import scalar_of
from kpca_apps.system.files.output import atomic_write, require_parent
from kpca_apps.system.memory import available_bytes
from kpca_apps.system.stores.addresses import located
from kpca_apps.system.stores.buckets import here

Model = TypeVar("Model")

FORMAT = "kpca-model"
FORMAT_VERSION = 14

_DOCUMENT = "model.json"
_DATE = (1980, 1, 1, 0, 0, 0)
_LARGEST_INTEGER = 2**53
_LONGEST_HEADER = 10_000  # bytes of an array's; numpy reads no longer one
_DEEPEST = 16
"""Objects of an abstract class inside each other, such as kernels; deeper ones are hostile."""


def _as_plain(value: Any) -> Any:
    """Return a number of numpy as Python's, and a note as what is left of it without values."""
    return str(value) if isinstance(value, str) else value.item()


def save_model_file(path: str | Path, kind: str, model: object) -> None:
    """Write a fitted model, a dataclass, to a file, whole or not at all; `kind` is what it is for.

    An array that stands in it twice is stored once.
    """
    check_model_path(path, force=True)
    members: dict[str, NDArray[Any]] = {}
    names: dict[int, str] = {}

    def plain(value: Any, place: str) -> Any:
        if isinstance(value, np.ndarray):
            name = names.setdefault(id(value), place)
            # Laid out as it is in memory: products of another layout are rounded otherwise.
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
        np.savez(file, **members)  # type: ignore[arg-type]  # no member is called allow_pickle
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(zipfile.ZipInfo(_DOCUMENT, _DATE), data)


def load_model_file(path: str | Path, kind: str, make: type[Model], wanted: str) -> Model:
    """Read a model of this kind, a `make`, back; nothing in the file is trusted.

    `wanted` says the same for a message: "a novelty model; fit one with ...".
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
        except Exception as error:  # of zip, npy or JSON: numpy raises even what tokenize does
            reason = one_line(str(error).strip("'\""), 100) or type(error).__name__
            raise ModelFileError(
                f"{label}: not a usable model file ({reason}); fit the model again."
            ) from error


def check_model_path(path: str | Path, *, force: bool = False) -> None:
    """Refuse a path at which no model may be written; a run asks before it starts work.

    Nothing but a model is ever replaced, by force: no link, no device, no table.
    """
    target = Path(path)
    label = one_line(str(path), 200)
    try:
        found = target.lstat().st_mode
    except FileNotFoundError:
        found = None
    except (OSError, ValueError) as error:
        raise InputError(f"{label}: is not a usable file name ({reason_of(error)}).") from None
    require_parent(path)
    if found is None:
        return
    if not stat.S_ISREG(found) or not _is_model(target):
        raise RefusedError(
            f"{label}: exists and is not a model, so it is never replaced; choose another file."
        )
    if not force:
        raise RefusedError(
            f"{label}: exists already; replace it with --force, or choose another file with "
            "--model."
        )


class _Header(msgspec.Struct):
    """What every version of the format says of itself."""

    format: str
    format_version: int
    kind: str = ""
    model: msgspec.Raw = msgspec.Raw(b"")


class _Record(msgspec.Struct):
    """What JSON held of a dataclass; each has a subclass of its own, made from its fields."""


class _Member(msgspec.Struct):
    """An array of the model, by the name of its part of the file."""

    array: str


class _Reader:
    """The parts of a file, put together to a model."""

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
        """Make the dataclass derived from an abstract one whose name is given."""
        name = value.get("type") if isinstance(value, dict) else None
        kind: Any = next((kind for kind in _derived_from(base) if kind.__name__ == name), None)
        if kind is None:
            raise ValueError(
                f"no {base.__name__} is called {name!r:.40}: import the module that defines it"
            )
        if self._depth > _DEEPEST:
            raise ValueError(f"{base.__name__} inside {base.__name__}, too deep")
        self._depth += 1
        made = self._built(msgspec.convert(value, _schema(kind), dec_hook=self._derived))
        self._depth -= 1
        return made

    def _built(self, value: Any) -> Any:
        if isinstance(value, _Member):
            return self._array(value.array, type(value).__name__)
        if isinstance(value, tuple):
            return tuple(map(self._built, value))
        if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
            raise ValueError(f"{value:.3e} is too large a number")
        if not isinstance(value, _Record):
            return value
        given = {name: self._built(getattr(value, name)) for name in value.__struct_fields__}
        made = _DATACLASSES[type(value)](**given)
        try:
            _check_arrays(made)
            if validate := getattr(made, "validate", None):
                validate()
        except ValueError as error:
            raise ValueError(f"{_stored_name(type(made))}: {error}") from error
        return made

    def _array(self, name: str, dtype: str) -> NDArray[Any]:
        """Read an array, once its header is what the length of its bytes allows."""
        part = f"{name}.npy"
        if part not in self._arrays:
            entry = self._entries[part]
            with self._archive.open(entry) as member:
                if np.lib.format.read_magic(member) != (1, 0):
                    raise ValueError(f"{name} is an array of unknown format")
                begin, n_header = member.tell(), int.from_bytes(member.read(2), "little")
                try:
                    ast.literal_eval(member.read(min(n_header, _LONGEST_HEADER)).decode("latin-1"))
                except SyntaxError:  # which numpy mends and warns of, as Python 2 wrote it
                    raise ValueError(f"{name}: its header is damaged") from None
                member.seek(begin)
                shape, _, found = np.lib.format.read_array_header_1_0(member)
                n_bytes = math.prod(shape) * found.itemsize
                if found != np.dtype(dtype) or not found.isnative:
                    raise ValueError(f"{name} is an array of type {found}")
                if min(shape, default=0) < 0 or n_bytes != entry.file_size - member.tell():
                    raise ValueError(f"{name}: its size is not what its header says")
                member.seek(0)
                self._arrays[part] = np.lib.format.read_array(member, allow_pickle=False)
        return self._arrays[part]


_DATACLASSES: dict[type[msgspec.Struct], Any] = {}


@cache
def _schema(kind: Hashable) -> Any:
    """Return the type that msgspec is to hold the JSON of a declared type to."""
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
    """Return what files call a dataclass: its name, or one it had before."""
    return str(getattr(kind, "stored_as", kind.__name__))


def _derived_from(base: Any) -> Iterator[Any]:
    for kind in base.__subclasses__():
        if is_dataclass(kind) and not inspect.isabstract(kind):
            yield kind
        yield from _derived_from(kind)


def _check_arrays(made: Any) -> None:
    """Hold the arrays of a dataclass to the lengths and bounds it declares."""
    lengths: dict[str, int] = {}
    for name, (shape, *further) in _declared_arrays(type(made)):  # type: ignore[arg-type]  # as above
        array = getattr(made, name)
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
        # NaN is the least and the largest value where it occurs, and within no bounds.
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
    """Name the array fields of a dataclass, each with what is declared of it."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (name, part.__metadata__)
        for name, hint in hints.items()
        for part in (hint, *get_args(hint))
        if get_origin(part) is Annotated and scalar_of(get_args(part)[0])
    )


def _audited(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the parts of a zip by name, if they can be those of a model."""
    entries = archive.infolist()
    found = {entry.filename: entry for entry in entries}
    if _DOCUMENT not in found or len(found) != len(entries):
        raise ValueError("its parts are not those of a model")
    for entry in entries:
        stored = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 0x1
        if not stored or entry.compress_size != entry.file_size:
            raise ValueError(f"unexpected part {entry.filename!r}")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError("its parts are larger than the file")
    return found


def _opened(path: Path, label: str) -> IO[bytes]:
    try:
        found = path.stat()
        # Opening a named pipe would wait for whoever writes to it.
        file = path.open("rb") if stat.S_ISREG(found.st_mode) else None
    except FileNotFoundError:
        others = sorted(p.name for p in path.parent.glob("*") if p.name != path.name)
        near = suggest(path.name, others)
        raise ModelFileError(f"{label}: no such file.{near}") from None
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{label}: cannot be read ({reason_of(error)}).") from None
    if file is None:
        raise ModelFileError(f"{label}: is not a file; name a model.")
    if found.st_size > available_bytes():
        file.close()
        raise MemoryLimitError(f"{label}: the model is larger than the memory available.")
    return file


def _is_model(path: Path) -> bool:
    """Whether a file was written here, by this version or another one."""
    try:
        with zipfile.ZipFile(path) as archive:
            _audited(archive, path.stat().st_size)
            header = msgspec.json.decode(archive.read(_DOCUMENT), type=_Header)
    except Exception:
        return False
    return header.format == FORMAT
