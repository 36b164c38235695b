"""JSON schemas of the documents, derived from the types that are written.

A schema names all keys and allows no others. The description of an object is the docstring of its
type.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from kpca_apps.denoise.result import Preview
from kpca_apps.report.document import LEFT_OUT, Document, Fields, Part
from kpca_apps.system.arrays import scalar_of

# Named objects in a schema, with their types and schemas.
Named = dict[str, tuple[Any, dict[str, Any]]]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    NoneType: {"type": "null"},
    Any: {},
}
_NUMBER = {
    "description": "A number; NaN is null, and infinity is text.",
    "anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}, {"type": "null"}],
}


def schema_of(document: Document) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) that all documents of a kind match."""
    head = {key: {"const": value} for key, value in document.head.items()}
    named: Named = {}
    types = _keys(document.of, document.added, named)
    return {
        "$schema": DIALECT,
        "$id": document.head["$schema"],
        "title": document.kind,
        "description": document.what,
        **_object(head | types, document.optional),
        "$defs": {name: schema for name, (_, schema) in sorted(named.items())},
    }


def _object(types: Mapping[str, Any], optional: Collection[str] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(types),
        "required": [key for key in types if key not in optional],
        "additionalProperties": False,
    }


def _keys(of: Fields, added: Mapping[str, Any], named: Named) -> dict[str, Any]:
    """Map names of fields to schemas: fields of the types in `of` but pictures, then `added`."""
    types = {}
    for kind, left_out in of:
        hints = get_type_hints(kind)
        for name in (one.name for one in fields(kind)):
            if name not in left_out and Preview not in (hints[name], *get_args(hints[name])):
                types[name] = _in_json(hints[name], named)
    return types | {key: _in_json(kind, named) for key, kind in added.items()}


def _named(
    name: str, kind: Any, what: str, of: Fields, added: Mapping[str, Any], named: Named
) -> dict[str, Any]:
    """Add an object's schema to `named`, unless it is there; return a reference to the schema."""
    if name not in named:
        named[name] = (kind, {})  # ends the recursion of types that contain themselves
        named[name] = (kind, {"description": what} | _object(_keys(of, added, named)))
    if named[name][0] is not kind:
        raise TypeError(f"two objects of the name {name}")
    return {"$ref": f"#/$defs/{name}"}


def _in_json(kind: Any, named: Named) -> dict[str, Any]:
    if isinstance(kind, list):
        return {"type": "array", "items": _in_json(kind[0], named)}
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, Part):
        return _named(kind.name, kind, kind.what, kind.of, kind.added, named)
    if kind is float:
        named["number"] = (float, _NUMBER)
        return {"$ref": "#/$defs/number"}
    if kind in _PLAIN:
        return _PLAIN[kind]
    if is_dataclass(kind):
        made: Any = kind
        what = inspect.getdoc(made) or ""
        return _named(made.__name__, made, what, ((made, LEFT_OUT),), {}, named)
    if origin is Annotated:
        return _in_json(parts[0], named)
    if origin is Literal:
        return {"enum": [*parts]}
    if origin in (Union, UnionType):
        return {"anyOf": [_in_json(one, named) for one in parts]}
    if scalar := scalar_of(kind):
        return {"type": "array", "items": _in_json(type(scalar(0).item()), named)}
    if origin is tuple and parts[-1] is not ...:
        each = [_in_json(one, named) for one in parts]
        return {"type": "array", "prefixItems": each, "items": False, "minItems": len(each)}
    if origin in (tuple, list):
        return {"type": "array", "items": _in_json(parts[0], named)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _in_json(parts[1], named)}
    raise TypeError(f"{kind} has no form in JSON")
