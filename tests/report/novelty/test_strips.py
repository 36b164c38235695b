from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kpca_apps.novelty.result import CategoryProfile, ColumnProfile, NumericProfile, Reason
from kpca_apps.report.novelty.page import WIDTH, strip_of

EDGES = np.linspace(0.0, 10.0, 11)
COUNTS = np.array([1.0, 2, 3, 4, 5, 5, 4, 3, 2, 1])
NUMBERS = ColumnProfile(
    "x", "numeric", True, False, "", 0, 9,
    distribution=NumericProfile(EDGES, COUNTS, 0.0, 3.0, 5.0, 7.0, 10.0),
)  # fmt: skip
LEVELS = replace(NUMBERS, distribution=CategoryProfile(("a", "b"), (30, 10)))


def reason(seen: float | str | None, expected: float | str | None) -> Reason:
    return Reason("x", 1.0, str(seen), str(expected), seen, expected)


def test_values_stand_in_proportion() -> None:
    strip = strip_of(reason(7.5, 2.5), NUMBERS)
    assert strip is not None and strip.seen is not None and strip.expected is not None
    left, right = 8.0, WIDTH - 8.0
    assert strip.seen.x == pytest.approx(left + 0.75 * (right - left), abs=0.1)
    assert strip.expected.x == pytest.approx(left + 0.25 * (right - left), abs=0.1)
    assert strip.seen.beyond == strip.expected.beyond == 0


def test_the_axis_grows_for_a_value_just_outside() -> None:
    strip = strip_of(reason(15.0, 5.0), NUMBERS)
    assert strip is not None and strip.seen is not None
    assert strip.seen.beyond == 0
    assert strip.seen.x == pytest.approx(WIDTH - 8.0, abs=0.1)


@pytest.mark.parametrize(("value", "side"), [(1e6, 1), (-1e6, -1)])
def test_a_value_far_outside_points_there(value: float, side: int) -> None:
    strip = strip_of(reason(value, 5.0), NUMBERS)
    assert strip is not None and strip.seen is not None
    assert strip.seen.beyond == side
    assert 0 <= strip.seen.x <= WIDTH


def test_a_column_of_one_value_is_drawn() -> None:
    profile = replace(
        NUMBERS, distribution=NumericProfile(np.zeros(2), np.array([9.0]), 0, 0, 0, 0, 0)
    )
    strip = strip_of(reason(0.0, 0.0), profile)
    assert strip is not None and strip.seen is not None
    assert strip.seen.x == pytest.approx(WIDTH / 2)
    assert "nan" not in strip.band


def test_a_missing_value_leaves_the_expected_one() -> None:
    strip = strip_of(reason(None, 5.0), NUMBERS)
    assert strip is not None
    assert strip.seen is None
    assert strip.expected is not None


def test_categories_stand_over_their_bars() -> None:
    strip = strip_of(reason("b", "a"), LEVELS)
    assert strip is not None and strip.seen is not None and strip.expected is not None
    assert [bar.height for bar in strip.bars] == [15.0, 5.0]
    for mark, bar in zip((strip.expected, strip.seen), strip.bars, strict=True):
        assert bar.x < mark.x < bar.x + bar.width
        assert mark.y < bar.y


def test_an_unseen_level_gets_a_place_of_its_own() -> None:
    strip = strip_of(reason("c", "a"), LEVELS)
    assert strip is not None and strip.seen is not None
    assert len(strip.bars) == 3
    assert strip.bars[2].height == 0.0
    assert strip.seen.x > strip.bars[1].x + strip.bars[1].width


def test_marks_on_one_bar_stand_side_by_side() -> None:
    strip = strip_of(reason("a", "a"), LEVELS)
    assert strip is not None and strip.seen is not None and strip.expected is not None
    assert strip.seen.x - strip.expected.x == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("seen", "expected", "profile"),
    [
        (1.0, 2.0, None),
        (1.0, 2.0, replace(NUMBERS, distribution=None)),
        (None, None, NUMBERS),
        ("text", "more", NUMBERS),
        (float("nan"), float("inf"), NUMBERS),
        ("a", "b", replace(NUMBERS, distribution=CategoryProfile((), ()))),
    ],
)
def test_nothing_to_draw(
    seen: float | str | None, expected: float | str | None, profile: ColumnProfile | None
) -> None:
    strip = strip_of(reason(seen, expected), profile)
    # A level the (empty) profile does not know still has a place.
    assert strip is None or all(bar.height == 0 for bar in strip.bars)
