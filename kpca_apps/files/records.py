"""Dataclasses back from JSON: every value is checked against the type its field declares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

__all__ = ["read_record"]

Record = TypeVar("Record")

_LARGEST_INTEGER = 2**63 - 1


def read_record(kind: type[Record], state: object, **given: object) -> Record:
    """Build a dataclass from what JSON held of it.

    Parameters
    ----------
    kind : type
        A dataclass of bool, int, float, str, tuples of these, other such dataclasses, and ``None``.
    state : object
        A mapping with every field, and nothing else; nothing in it is trusted.
    given
        Fields the caller has rebuilt; what the state says of them is not read.

    Returns
    -------
    Record
        Numbers in it are finite and text can be written as UTF-8.

    Raises
    ------
    ValueError
        If a field is missing, unknown, or of another type.

    Examples
    --------
    >>> from kpca_apps.files.dates import DateFormat
    >>> read_record(DateFormat, {"day_first": 1, "decided_by": "cells"}, has_time=False,
    ...             short_years=False)
    Traceback (most recent call last):
    ...
    ValueError: day_first: 1 is no bool
    """
    if not isinstance(state, Mapping):
        raise ValueError(f"no fields of a {kind.__name__}")
    types = _types(kind)  # type: ignore[arg-type]
    if {*state, *given} != set(types):
        raise ValueError(f"fields of a {kind.__name__} are missing or added")
    read = {name: _read(name, types[name], state[name]) for name in types if name not in given}
    return kind(**read, **given)


@cache
def _types(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(name: str, kind: Any, value: object) -> Any:
    if isinstance(kind, UnionType):
        if value is None:
            kind = NoneType
        else:
            (kind,) = (part for part in get_args(kind) if part is not NoneType)
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        return tuple(_read(name, get_args(kind)[0], part) for part in value)
    if is_dataclass(kind):
        return read_record(kind, value)  # type: ignore[arg-type]
    if not _fits(kind, value):
        raise ValueError(f"{name}: {value!r:.40} is no {getattr(kind, '__name__', kind)}")
    return value


def _fits(kind: Any, value: object) -> bool:
    """Whether a value is of a plain type; True is no number here, though Python counts it so."""
    if isinstance(value, bool) or value is None:
        return kind is type(value)
    if isinstance(value, int):
        return kind in (int, float) and abs(value) <= _LARGEST_INTEGER
    if isinstance(value, float):
        return kind is float and math.isfinite(value)
    if isinstance(value, str):
        return kind is str and not any("\ud800" <= letter <= "\udfff" for letter in value)
    return False
