"""Kinds of JSON documents: which fields of which types they have, and their headers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA_VERSION = 1
# Fields of results that are not written: those that differ between runs, pictures, and those that
# only the page or the scored table holds.
LEFT_OUT = (
    *("seconds", "resumed", "bug", "previews", "usual", "keys"),
    *("scores", "p_values", "rarities", "ranks", "is_flagged", "is_accepted"),
)

# Dataclasses, each with the names of fields that are left out.
Fields = tuple[tuple[type, Collection[str]], ...]


@dataclass(frozen=True)
class Part:
    """An object in a document that lacks fields of its dataclass, or has other keys."""

    name: str
    what: str
    of: Fields = ()
    added: Mapping[str, Any] = field(default_factory=dict, hash=False)  # types of added keys


@dataclass(frozen=True)
class Document:
    """One kind of JSON document.

    It has the fields of the types in `of` without those named with each, and those in `added`;
    documents may lack those in `optional`. ``[Part(...)]`` is a list of parts.
    """

    kind: str  # as written in the header
    what: str  # one sentence on its content, and the command that writes it
    of: Fields = ()
    added: Mapping[str, Any] = field(default_factory=dict)  # types of added keys
    optional: Collection[str] = ()

    @property
    def name(self) -> str:
        """Return the kind as written in file names: ``novelty-screening``."""
        return self.kind.replace(" ", "-")

    @property
    def head(self) -> dict[str, Any]:
        """Return the header of every document of the kind."""
        uri = f"urn:kpca-apps:schema:{self.name}:{SCHEMA_VERSION}"
        return {"$schema": uri, "schema_version": SCHEMA_VERSION, "kind": self.kind}
