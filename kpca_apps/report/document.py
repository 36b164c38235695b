"""Kinds of JSON documents: their headers, and the fields of the types they contain."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA_VERSION = 1
# Fields of results that are not written as JSON.
LEFT_OUT = (
    *("seconds", "resumed", "bug", "previews", "usual", "keys"),
    *("scores", "p_values", "rarity_of", "ranks", "is_flagged", "is_accepted"),
)

# Dataclasses, with the names of fields that are left out.
Fields = tuple[tuple[type, Collection[str]], ...]


@dataclass(frozen=True)
class Part:
    """An object in a JSON document."""

    name: str
    what: str
    of: Fields = ()  # types whose fields become keys of the object
    # Further keys of the object, and the types of their values.
    added: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Document:
    """One kind of JSON document.

    It contains the fields of the types in `of`, except those named with each type, and the keys in
    `added`. Keys in `optional` may be absent. ``[Part(...)]`` stands for a list of parts.
    """

    kind: str  # as written in the header
    what: str  # one sentence on the content, and on the command that writes it
    of: Fields = ()  # types whose fields become keys of the document
    added: Mapping[str, Any] = field(default_factory=dict)  # further key -> value type
    optional: Collection[str] = ()

    @property
    def name(self) -> str:
        """Return the kind as used in file names: ``novelty-screening``."""
        return self.kind.replace(" ", "-")

    @property
    def head(self) -> dict[str, Any]:
        """Return the header that all documents of this kind have."""
        uri = f"urn:kpca-apps:schema:{self.name}:{SCHEMA_VERSION}"
        return {"$schema": uri, "schema_version": SCHEMA_VERSION, "kind": self.kind}
