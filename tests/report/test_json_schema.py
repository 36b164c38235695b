"""Schemas say what the types say, refuse what is damaged, and are made for every kind of JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from jsonschema import Draft202012Validator, ValidationError

from kpca_apps.report.document import SCHEMA_VERSION, Document, ListOf, Part
from kpca_apps.report.json_schema import comments_of, schema_of
from kpca_apps.report.result_json import DOCUMENTS, result_to_json, to_json
from kpca_apps.system.arrays import BoolArray, FloatArray
from tests.report import denoising_examples, examples, gallery_examples

RESULTS: dict[str, Callable[[], Any]] = {
    "novelty-screening": examples.with_labels,
    "novelty-comparison": examples.comparison,
    "denoising": denoising_examples.with_dictionary,
    "trial-of-denoising": denoising_examples.trial,
    "papers": gallery_examples.usual,
}


@dataclass(frozen=True)
class Inner:
    """Something inside."""

    size: float  # in metres
    #: Names of it,
    #: at most two.
    names: tuple[str, str]
    where: Literal["here", "there"] = "here"


@dataclass(frozen=True)
class Outer:
    """Something outside."""

    inner: Inner | None
    many: tuple[Inner, ...]
    flags: BoolArray
    numbers: FloatArray  # (n,)
    words: dict[int, str]
    seconds: float = 0.0


DOCUMENT = Document(
    "made up",
    "Nothing.",
    ((Outer, ("seconds",)),),
    {"more": ListOf(Part("More", "More.", added={"n": int}))},
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
    return sorted("/".join(map(str, one.absolute_path)) or one.validator for one in found)


def written() -> dict[str, Any]:
    return dict(json.loads(to_json(DOCUMENT, OUTER)))


def test_what_is_written_follows_the_schema_and_says_its_version() -> None:
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
def test_what_is_damaged_is_refused(key: str, value: Any, place: str) -> None:
    assert errors(DOCUMENT, written() | {key: value}) == [place]


def test_a_missing_key_is_refused() -> None:
    for key in written():
        assert errors(DOCUMENT, {k: v for k, v in written().items() if k != key}) == ["required"]


def test_comments_become_descriptions() -> None:
    assert comments_of(Inner) == {"size": "in metres", "names": "Names of it, at most two."}
    inner = schema_of(DOCUMENT)["$defs"]["Inner"]
    assert inner["description"] == "Something inside."
    assert inner["properties"]["size"]["description"] == "in metres"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every key of a document, with its object, but for those of open mappings."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in items:
        if isinstance(value, dict):
            yield (*path, key), one
        if isinstance(one, dict | list):
            yield from places(one, (*path, key))


def first_of_lists(value: Any) -> Any:
    """Cut lists to three, the most that stand for several values of one thing."""
    if isinstance(value, list):
        return [first_of_lists(one) for one in value[:3]]
    if isinstance(value, dict):
        return {key: first_of_lists(one) for key, one in value.items()}
    return value


OPEN = {"settings", "versions", "row_ids", "row_files", "files", "baselines", "own_settings"}
OPEN |= {"what_shares_are_of"}


@pytest.mark.parametrize("name", RESULTS)
def test_results_without_a_key_or_with_another_type_are_refused(name: str) -> None:
    (document,) = [one for one in DOCUMENTS.values() if one.name == name]
    content = first_of_lists(json.loads(result_to_json(RESULTS[name]())))
    validator = Draft202012Validator(schema_of(document))
    validator.validate(content)
    found = [path for path, _ in places(content) if OPEN.isdisjoint(path[:-1])]
    assert len(found) > 20
    # One of each key, wherever it stands.
    for path in {
        tuple(one for one in path if isinstance(one, str)): path for path in found
    }.values():
        damaged = copy.deepcopy(content)
        holder: Any = damaged
        for step in path[:-1]:
            holder = holder[step]
        kept = holder.pop(path[-1])
        with pytest.raises(ValidationError):
            validator.validate(damaged)
        holder[path[-1]] = {"no": "such", "type": kept}
        if path[-1] not in OPEN:
            with pytest.raises(ValidationError):
                validator.validate(damaged)
        holder |= {path[-1]: kept, "unknown": 1}
        with pytest.raises(ValidationError):
            validator.validate(damaged)


def test_every_schema_is_one() -> None:
    for document in DOCUMENTS.values():
        Draft202012Validator.check_schema(schema_of(document))
