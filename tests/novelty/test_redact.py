"""Every field of a result either contains no values or is redacted."""

import copy
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from kpca_apps.errors import InputError
from kpca_apps.novelty.redact import (
    HIDDEN,
    Note,
    redact,
    redact_comparison,
    visible_notes,
    without_values,
)
from kpca_apps.novelty.result import (
    ComparisonResult,
    FoundRule,
    GroupInfo,
    OddCell,
    ScreeningResult,
)
from tests.novelty.tables import changed

TEXT, NUMBER, NAME = "secret", 987654.25, "the column"
# Fields that contain column names.
NAMES = {
    "column", "columns", "name", "x_name", "y_name", "id_column", "label", "by", "together",
    "file_column", "key_columns",
}  # fmt: skip
# Fields that hold no cell values and nothing derived from cells. The test below fails until a new
# field is listed here or redacted.
FREE = {
    "SourceInfo": "name format sha256 encoding delimiter reading version renamed",
    "ThresholdInfo": "rule setting value calibration statement",
    "TailShare": "share words",
    "ScoreMark": "score words",
    "ScoreScale": "name statement",
    "RowScores": "scores p_values rarity_of",
    "RowLists": "keys",
    "RunInfo": "warnings settings versions command",
    "ScreeningRun": "warnings settings versions command next_steps flagged_file",
    "RankedRow": "score p_value key",
    "Reason": "share",
    "FlaggedRow": "share",
    "ColumnProfile": "role why reason_share",
    "OddCell": "kind given others p_value",
    "MovedColumn": "what size",
    "FoundRule": "rule kind",  # `rule` is a `Note`, which hides its own values
    "GroupInfo": "threshold",
    "ComponentMap": "x y variances gains explained",
    "Evaluation": "setting",
    "Curves": "name auroc auprc false_positive_rate true_positive_rate recall precision seconds "
    "note",
    "DuplicateRows": "statement",
    "AcceptedRows": "source statement",
    # `key` is a hash of the visible cells, and `note` holds the reader's own words.
    "RowMark": "key note",
}


def build(kind: Any, name: str = "") -> Any:
    """Create a value of a declared type, with a secret in every possible place."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        values = {field.name: build(hints[field.name], field.name) for field in fields(kind)}
        if kind is GroupInfo:
            values["name"] = TEXT
        return kind(**values)  # type: ignore[operator]
    if hasattr(origin := get_origin(kind), "__value__"):  # a type alias, as in newer numpy
        return build(origin.__value__[get_args(kind)], name)
    args = get_args(kind)
    if origin in (Union, UnionType):
        # Prefer text to a number or None.
        return build(next((arg for arg in args if arg is str), args[0]), name)
    if origin is Literal:
        return args[0]
    if origin is np.ndarray:
        scalar = get_args(args[1])[0]
        return np.full(2, NUMBER if scalar is np.float64 else 1, dtype=scalar)
    if origin is Callable:
        return np.negative
    if origin is tuple:
        if name in ("cells", "common") and args[1] in (str, int):
            return (NAME, build(args[1]))
        if name in ("hints", "notes"):
            return ("Read from 2 files.", f'"{NAME}" fits if read as {TEXT}.')
        kinds = (args[0],) if args[1:] == (...,) else args
        return tuple(build(kind, name) for kind in kinds)
    if origin is not None and issubclass(origin, Mapping):
        return {1: TEXT} if args[0] is int else {"what": TEXT}
    if name == "hint":
        return "  ".join(build(tuple[str, ...], "hints"))
    if kind is str:
        return NAME if name in NAMES else TEXT
    return {float: NUMBER, int: 1, bool: True, NoneType: None}[kind]


def secrets(value: Any, where: str = "") -> Iterator[str]:
    """Yield the fields that contain a secret."""
    if is_dataclass(value):
        for field in fields(value):
            yield from secrets(getattr(value, field.name), f"{type(value).__name__} {field.name}")
    elif isinstance(value, tuple | list):
        for item in value:
            yield from secrets(item, where)
    elif isinstance(value, Mapping):
        yield from secrets([*value.values()], where)
    elif isinstance(value, np.ndarray):
        yield from secrets(value.tolist(), where)
    elif (isinstance(value, str) and TEXT in value) or value == NUMBER:
        yield where


@pytest.mark.parametrize(
    ("kind", "redact"), [(ScreeningResult, redact), (ComparisonResult, redact_comparison)]
)
def test_every_field_with_values_is_redacted(kind: type, redact: Callable[..., object]) -> None:
    result = build(kind)
    free = {f"{name} {field}" for name, names in FREE.items() for field in names.split()}
    before = {*secrets(result)}
    # `build` covers every class that a result contains.
    assert {
        "Reason seen",
        "OddCell sentence",
        "FlaggedRow expected",
    } <= before or kind is ComparisonResult
    assert {*secrets(redact(result, {NAME}))} <= free and {*secrets(redact(result, ()))} == before


def test_what_is_of_other_columns_stays() -> None:
    result: ScreeningResult = build(ScreeningResult)
    assert {*secrets(redact(result, {"another"}))} == {*secrets(result)}


def test_hidden_groups_are_numbered() -> None:
    result: ScreeningResult = build(ScreeningResult)
    redacted = redact(result, {NAME})
    assert redacted.groups[0].name == redacted.ranked[0].group == "group 1"


def test_a_hidden_cell_is_marked_as_hidden() -> None:
    (cell,) = redact(build(ScreeningResult), {NAME}).findings.odd_cells
    assert isinstance(cell, OddCell)
    assert (cell.column, cell.seen, cell.suggestion) == (NAME, HIDDEN, "")


def test_what_a_hidden_cell_gives_for_another_is_not_stated() -> None:
    (cell,) = build(ScreeningResult).findings.odd_cells
    odd = replace(cell, kind="far above", column="total", given=("price",), seen="99999")
    (shown,) = redact(
        changed(build(ScreeningResult), odd_cells=(odd,)), {"price"}
    ).findings.odd_cells
    assert (shown.seen, shown.suggestion, TEXT in shown.sentence) == ("99999", "", False)


def test_a_note_is_what_may_be_stated_unless_it_is_reported_otherwise() -> None:
    note = Note("cell 17 reads secret", "cell 17 is no number", ("a",)).after("In x: ")
    for same in (note, copy.deepcopy(note), pickle.loads(pickle.dumps(note))):
        assert f"{same}" == str(same) == "".join([same]) == "In x: cell 17 is no number"
        assert visible_notes([same, "b"], {"b"}) == ("In x: cell 17 reads secret", "b")
        assert visible_notes([same], {"a"}) == ("In x: cell 17 is no number",)


def test_an_error_cites_hidden_values_nowhere() -> None:
    note = Note("reads secret", "reads otherwise", ("a",))
    for hidden, message in ((("a",), "reads otherwise"), (("b",), "reads secret")):
        with pytest.raises(InputError) as caught, without_values(hidden):
            raise InputError(note)
        assert str(caught.value) == message


def test_rules_cite_no_value_of_a_hidden_column() -> None:
    rule = Note(
        'beds is empty unless kind is "flat"', "beds is empty unless kind is (hidden)", ("kind",)
    )
    result: ScreeningResult = build(ScreeningResult)
    result = changed(result, rules=(FoundRule(rule, "empty unless", ("beds", "kind"), 90, 1),))
    assert [item.rule for item in redact(result, {"kind"}).findings.rules] == [str(rule)]
    assert [item.rule for item in redact(result, ()).findings.rules] == [rule.text]
