"""What kinds of JSON the tool writes: which fields of which types, and how each names itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA_VERSION = 1
# Fields of results that are not written: what differs between runs, pictures, what only the page
# holds, and what the scored table holds.
LEFT_OUT = (
    *("seconds", "resumed", "bug", "previews", "usual", "keys"),
    *("scores", "p_values", "rarities", "ranks", "is_flagged", "is_accepted"),
)

# Dataclasses, each with the names of fields that are left out.
Fields = tuple[tuple[type, Collection[str]], ...]


@dataclass(frozen=True)
class Part:
    """An object in a document that is no dataclass as it is: with fields of some, or other keys."""

    name: str
    what: str
    of: Fields = ()
    added: Mapping[str, Any] = field(default_factory=dict, hash=False)  # types, by key


@dataclass(frozen=True)
class Document:
    """One kind of JSON that the tool writes.

    It has the fields of the types in `of` without those named beside each, and those in `added`,
    of which some documents of the kind lack those in `optional`. ``[Part(...)]`` is a list of such.
    """

    kind: str  # as a document says it of itself
    what: str  # one sentence on what it tells, and which command writes it
    of: Fields = ()
    added: Mapping[str, Any] = field(default_factory=dict)  # types, by key
    optional: Collection[str] = ()

    @property
    def name(self) -> str:
        """Return the kind as it stands in file names: ``novelty-screening``."""
        return self.kind.replace(" ", "-")

    @property
    def head(self) -> dict[str, Any]:
        """What every document of the kind says of itself."""
        uri = f"urn:kpca-apps:schema:{self.name}:{SCHEMA_VERSION}"
        return {"$schema": uri, "schema_version": SCHEMA_VERSION, "kind": self.kind}
