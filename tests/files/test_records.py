from __future__ import annotations

from dataclasses import asdict, dataclass

import pytest

from kpca_apps.files.records import read_record


@dataclass(frozen=True)
class Inner:
    names: tuple[str, ...]


@dataclass(frozen=True)
class Outer:
    number: float
    count: int | None
    inner: Inner


SOUND = {"number": 1, "count": None, "inner": {"names": ["a"]}}


def test_what_json_held_becomes_the_dataclass_again() -> None:
    outer = Outer(1, None, Inner(("a",)))
    assert read_record(Outer, SOUND) == read_record(Outer, asdict(outer)) == outer
    assert read_record(Outer, {**SOUND, "inner": 5}, inner=Inner(())).inner == Inner(())


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": None}, {"number": True}, {"number": "1"}, {"number": float("nan")},
        {"number": 2**70}, {"number": [1.0]}, {"count": 1.0}, {"count": False}, {"inner": None},
        {"inner": []}, {"inner": {"names": "a"}}, {"inner": {"names": [1]}},
        {"inner": {"names": ["\ud800"]}}, {"inner": {}}, {"more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_anything_else_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"is no|missing or added|no fields"):
        read_record(Outer, {**SOUND, **wrong})
    with pytest.raises(ValueError, match="no fields of a Outer"):
        read_record(Outer, [])
