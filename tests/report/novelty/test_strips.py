from dataclasses import replace

import numpy as np
import pytest

from kpca_apps.novelty.result import CategoryProfile, ColumnProfile, NumericProfile, Reason
from kpca_apps.report.novelty.strips import WIDTH, Strip, strip_of

EDGES = np.linspace(0.0, 10.0, 11)
COUNTS = np.array([1.0, 2, 3, 4, 5, 5, 4, 3, 2, 1])
NUMBERS = ColumnProfile(
    "x", "numeric", True, False, "", 0, 9,
    distribution=NumericProfile(EDGES, COUNTS, 0.0, 3.0, 5.0, 7.0, 10.0),
)  # fmt: skip
LEVELS = replace(NUMBERS, distribution=CategoryProfile(("a", "b"), (30, 10)))


def reason(value: float | str | None, expected: float | str | None) -> Reason:
    return Reason("x", 1.0, str(value), str(expected), value, expected)


LEFT, RIGHT = 8.0, WIDTH - 8.0


def strip(value: float | str | None, expected: float | str | None, profile: ColumnProfile) -> Strip:
    found = strip_of(reason(value, expected), profile)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("value", "expected", "places", "beyond"),
    [
        (7.5, 2.5, (0.75, 0.25), 0),
        (15.0, 5.0, (1.0, 1 / 3), 0),  # the axis grows for a value just outside
        (1e6, 5.0, (1.0, 0.5), 1),
        (-1e6, 5.0, (0.0, 0.5), -1),
    ],
)
def test_values_stand_in_proportion(
    value: float, expected: float, places: tuple[float, float], beyond: int
) -> None:
    found = strip(value, expected, NUMBERS)
    assert found.seen is not None and found.expected is not None
    for mark, place in zip((found.seen, found.expected), places, strict=True):
        assert mark.x == pytest.approx(LEFT + place * (RIGHT - LEFT), abs=0.1)
    assert (found.seen.beyond, found.expected.beyond) == (beyond, 0)


@pytest.mark.parametrize("value", [0.0, 1e-300, 7e15])
def test_a_column_of_one_value_is_drawn_and_a_missing_value_is_not(value: float) -> None:
    found = strip(value, value, replace(NUMBERS, distribution=NumericProfile.of(np.full(9, value))))
    assert found.seen is not None and found.seen.x == pytest.approx(WIDTH / 2)
    assert "nan" not in found.band
    found = strip(None, 5.0, NUMBERS)
    assert found.seen is None and found.expected is not None


def test_categories_stand_over_their_bars() -> None:
    found = strip("b", "a", LEVELS)
    assert [bar.height for bar in found.bars] == [15.0, 5.0]
    for mark, bar in zip((found.expected, found.seen), found.bars, strict=True):
        assert mark is not None
        assert bar.x < mark.x < bar.x + bar.width
        assert mark.y < bar.y
    # A level that the column never had gets its own position.
    found = strip("c", "a", LEVELS)
    assert found.seen is not None and len(found.bars) == 3
    assert found.bars[2].height == 0.0 and found.seen.x > found.bars[1].x + found.bars[1].width
    # Marks on one bar are placed side by side.
    found = strip("a", "a", LEVELS)
    assert found.seen is not None and found.expected is not None
    assert found.seen.x - found.expected.x == pytest.approx(10.0)


def test_without_values_or_a_distribution_nothing_is_drawn() -> None:
    assert strip_of(reason(1.0, 2.0), None) is None
    assert strip_of(reason(1.0, 2.0), replace(NUMBERS, distribution=None)) is None
    assert strip_of(reason(None, None), NUMBERS) is None
