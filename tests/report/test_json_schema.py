"""Schemas match the types, reject damaged data, and exist for every kind of JSON."""

import json
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from kpca_apps.report.document import SCHEMA_VERSION, Document, Part
from kpca_apps.report.json_schema import schema_of
from kpca_apps.report.result_json import to_json
from kpca_apps.system.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class Inner:
    """Something inside."""

    size: float
    names: tuple[str, str]
    where: Literal["here", "there"] = "here"


@dataclass(frozen=True)
class Outer:
    """Something that contains an `Inner`."""

    inner: Inner | None
    many: tuple[Inner, ...]
    flags: BoolArray
    numbers: FloatArray
    words: dict[int, str]
    seconds: float = 0.0


DOCUMENT = Document(
    "made up",
    "Nothing.",
    ((Outer, ("seconds",)),),
    {"more": [Part("More", "More.", added={"n": int})]},
)
INNER = Inner(float("inf"), ("a", "b"))
OUTER = {
    "inner": None,
    "many": (INNER, Inner(float("nan"), ("c", "d"), "there")),
    "flags": np.array([True, False]),
    "numbers": np.array([1.0, np.nan, -np.inf]),
    "words": {3: "x"},
    "more": [{"n": 1}],
}


def errors(document: Document, content: Any) -> list[str]:
    found = Draft202012Validator(schema_of(document)).iter_errors(content)
    return sorted("/".join(map(str, entry.absolute_path)) or entry.validator for entry in found)


def written() -> dict[str, Any]:
    return dict(json.loads(to_json(DOCUMENT, OUTER)))


def test_written_json_follows_the_schema_and_states_its_version() -> None:
    schema = schema_of(DOCUMENT)
    Draft202012Validator.check_schema(schema)
    assert errors(DOCUMENT, written()) == []
    assert written()["$schema"] == schema["$id"] == f"urn:kpca-apps:schema:made-up:{SCHEMA_VERSION}"
    assert written()["schema_version"] == SCHEMA_VERSION


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("inner", [], "inner"),
        ("inner", {"size": 1, "names": ["a", "b"], "where": "nowhere"}, "inner"),
        ("many", None, "many"),
        ("many", [{"size": "1", "names": ["a", "b"], "where": "here"}], "many/0/size"),
        ("many", [{"size": 1, "names": ["a"], "where": "here"}], "many/0/names"),
        ("many", [{"size": 1, "names": ["a", "b", "c"], "where": "here"}], "many/0/names"),
        ("flags", [1], "flags/0"),
        ("numbers", ["infinite"], "numbers/0"),
        ("words", {"3": 4}, "words/3"),
        ("more", [{"n": 1.5}], "more/0/n"),
        ("more", [{"n": 1, "m": 2}], "more/0"),
        ("schema_version", SCHEMA_VERSION + 1, "schema_version"),
        ("kind", "novelty screening", "kind"),
        ("seconds", 0.0, "additionalProperties"),
    ],
)
def test_damaged_json_is_rejected(key: str, value: Any, place: str) -> None:
    assert errors(DOCUMENT, written() | {key: value}) == [place]


def test_a_missing_key_is_refused() -> None:
    for key in written():
        assert errors(DOCUMENT, {k: v for k, v in written().items() if k != key}) == ["required"]


def test_docstrings_become_descriptions() -> None:
    assert schema_of(DOCUMENT)["$defs"]["Inner"]["description"] == "Something inside."
