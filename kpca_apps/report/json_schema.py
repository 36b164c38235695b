"""JSON schemas of what the tool writes, made from the types that it is written from.

A schema names every key, with the words of the comment beside the field, and refuses others. It is
made when it is asked for, so it cannot say anything else than the types do.
"""

from __future__ import annotations

import inspect
import io
import tokenize
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from kpca_apps.denoise.result import Preview
from kpca_apps.report.document import LEFT_OUT, Document, Fields, ListOf, Part
from kpca_apps.system.arrays import scalar_of

# What has a name of its own in a schema: what it is, and its schema.
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
    """Return the JSON schema (draft 2020-12) that every document of a kind follows."""
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
    """Return the schema of an object with these keys and no others."""
    return {
        "type": "object",
        "properties": dict(types),
        "required": [key for key in types if key not in optional],
        "additionalProperties": False,
    }


def _keys(of: Fields, added: Mapping[str, Any], named: Named) -> dict[str, Any]:
    """Return schemas by key: of fields but for some and for pictures, and of what is added."""
    types = {}
    for kind, left_out in of:
        said, hints = comments_of(kind), get_type_hints(kind)
        for name in (one.name for one in fields(kind)):
            if name not in left_out and Preview not in (hints[name], *get_args(hints[name])):
                about = {"description": said[name]} if name in said else {}
                types[name] = about | _in_json(hints[name], named)
    return types | {key: _in_json(kind, named) for key, kind in added.items()}


def _named(
    name: str, kind: Any, what: str, of: Fields, added: Mapping[str, Any], named: Named
) -> dict[str, Any]:
    """Return a reference to the schema of an object, which is among those that have a name."""
    if name not in named:
        named[name] = (kind, {})  # one that holds others of its kind ends here
        named[name] = (kind, {"description": what} | _object(_keys(of, added, named)))
    if named[name][0] is not kind:
        raise TypeError(f"two objects of the name {name}")
    return {"$ref": f"#/$defs/{name}"}


def _in_json(kind: Any, named: Named) -> dict[str, Any]:
    """Return the schema of a declared type, as `result_json.plain` writes it."""
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, Part):
        return _named(kind.name, kind, kind.what, kind.of, kind.added, named)
    if isinstance(kind, ListOf):
        return {"type": "array", "items": _in_json(kind.one, named)}
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


@cache
def comments_of(kind: type) -> Mapping[str, str]:
    """Return what the comments of a dataclass say of its fields, by their names.

    They stand above a field or behind it; where the source is not at hand, nothing is said.
    """
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        try:
            source = inspect.getsource(base) if is_dataclass(base) else ""
        except (OSError, TypeError):
            continue
        found |= _comments(source)
    return found


def _comments(source: str) -> dict[str, str]:
    """Return the comments beside the annotated names in the body of a class."""
    found: dict[str, str] = {}
    above: list[str] = []
    name, depth = "", 0
    line: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        depth += (token.type == tokenize.INDENT) - (token.type == tokenize.DEDENT)
        if token.type == tokenize.COMMENT:
            text = token.string.lstrip("#:").strip()
            if line and name:
                found[name] = " ".join([found.get(name, ""), text]).strip()
            elif not line:
                above.append(text)
        elif token.type == tokenize.NEWLINE:
            line, name, above = [], "", []
        elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            line.append(token)
            if len(line) == 2 and depth == 1 and token.string == ":":
                name = line[0].string
                found[name] = " ".join(above)
    return {key: text for key, text in found.items() if text}
