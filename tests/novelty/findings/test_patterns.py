import numpy as np
import polars as pl
import pytest

from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.findings.patterns import find_patterns
from kpca_apps.novelty.result import ColumnProfile, Pattern, RankedRow, Reason
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.tables.frames import table_from_frame

HOSTILE = "a\nb\u202e<b>\x1b[31m"


def profile(name: str, role: str = "numeric") -> ColumnProfile:
    return ColumnProfile(name, role, used=True, hidden=False, why="", n_missing=0, n_distinct=9)


def number(column: str, seen: float, expected: float, together: tuple[str, ...] = ()) -> Reason:
    return Reason(column, 1.0, f"{seen:g}", f"{expected:g}", float(seen), float(expected), together)


def flagged(reasons: list[tuple[Reason, ...]]) -> list[RankedRow]:
    return [
        RankedRow(place + 1, 10 + place, None, None, 1.0, None, True, row_reasons, True)
        for place, row_reasons in enumerate(reasons)
    ]


def patterns(
    reasons: list[tuple[Reason, ...]],
    columns: tuple[ColumnProfile, ...] = (profile("weight"), profile("height")),
    beside: dict[str, list[object]] | None = None,
    n_others: int = 100,
) -> tuple[Pattern, ...]:
    """Return patterns of rows with these reasons, in a table that continues with other rows."""
    n = len(reasons)
    ranked = flagged(reasons)
    beside = beside or {"station": [*range(n), *range(n_others)]}
    frame = pl.DataFrame(beside)
    columns = (*columns, *(profile(name) for name in beside))
    listed, sample = table_from_frame(frame.head(n)), table_from_frame(frame)
    return find_patterns(ranked, columns, listed, sample)


def test_like_multiples_of_what_was_expected_are_one_pattern_with_what_the_rows_share() -> None:
    reasons = [
        (number("weight", 1000 * kg * wrong, kg),)
        for kg, wrong in zip(np.linspace(2, 9, 14), np.linspace(0.8, 1.2, 14), strict=True)
    ]
    (pattern,) = patterns(
        [*reasons, (number("height", 3.0, 1.0),)],
        beside={"station": [7] * 14 + [1, 2] + [3, 4, 5, 6, 7] * 20},
    )
    assert pattern.sentence == (
        '14 rows: "weight" is about 1,000 times what the rest suggests, all with "station" 7.'
    )
    assert pattern.rows == tuple(range(10, 24))
    assert (pattern.columns, pattern.common) == (("weight",), ("station", "7"))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([(0.5, 500), (0.7, 700), (0.6, 640)], "is about 1/1,000 of what the rest suggests"),
        ([(-3, 3.1), (-5, 4.8), (-9, 9)], "is of the opposite sign of what the rest suggests"),
        ([(0, 4), (0, 5), (0, 6)], "reads 0"),
        ([(3, 1), (4.5, 1), (80, 1), (9, 1)], "is above what the rest suggests"),
        ([(5, 6), (4, 6), (5.2, 6.1)], "is below what the rest suggests"),
    ],
)
def test_what_is_odd_of_numbers(values: list[tuple[float, float]], text: str) -> None:
    (pattern,) = patterns([(number("weight", *pair),) for pair in values])
    assert pattern.sentence == f'{len(values)} rows: "weight" {text}.'


def test_columns_that_are_odd_together_are_reported_together() -> None:
    both = ("weight", "height")
    rows = [
        (number("height", 0.0, 3.0 + n, both), number("weight", 0.0, 2.0 + n, both))
        for n in range(4)
    ]
    (pattern,) = patterns(rows)
    assert pattern.sentence == '4 rows: "weight" and "height" both read 0.'
    assert pattern.columns == both
    seen = "this is it"
    words = [Reason(name, 0.5, seen, "", seen, "", both) for name in both]
    (pattern,) = patterns([tuple(words)] * 3)
    assert pattern.sentence.startswith('3 rows: "weight" and "height" both read "this is it".')


def test_columns_off_in_different_directions_share_one_sentence() -> None:
    names = ("rain", "view", "wind")
    rows = [
        (
            number("rain", 3.0 + n, 1.0, names),
            number("view", 2.0 + n, 9.0, names),
            number("wind", 30.0 + n, 5.0, names),
        )
        for n in range(4)
    ]
    (pattern,) = patterns(rows)
    assert pattern.sentence == (
        '4 rows: "rain" and "wind" are above and "view" below what the rest suggests.'
    )
    assert pattern.columns == names
    (pattern,) = patterns([row[:2] for row in rows])
    assert pattern.sentence == '4 rows: "rain" is above and "view" below what the rest suggests.'


def test_a_level_and_missing_cells_are_reported_as_such() -> None:
    level = Reason("kind", 1.0, "Suplies", "Supplies", "Suplies", "Supplies")
    gap = Reason("weight", 1.0, "(missing)", "3", None, 3.0)
    both = patterns([(level,)] * 4 + [(gap,)] * 3, (profile("kind", "categorical"),))
    assert [pattern.sentence for pattern in both] == [
        '4 rows: "kind" reads "Suplies" where "Supplies" was expected.',
        '3 rows: "weight" is missing.',
    ]


def test_two_rows_make_no_pattern_nor_do_different_sides() -> None:
    above, below = (number("weight", 3.0, 2.9),), (number("weight", 2.8, 2.9),)
    assert patterns([above, above, below, below]) == ()


def test_what_many_other_rows_share_is_not_reported() -> None:
    reasons = [(number("weight", 10.0 + n, 1.0 + n / 9),) for n in range(5)]
    (pattern,) = patterns(reasons, beside={"sex": ["m"] * 5 + ["f", "m"] * 60})
    assert pattern.common is None


def test_hostile_text_is_one_line() -> None:
    (pattern,) = patterns(
        [(Reason(HOSTILE, 1.0, HOSTILE, HOSTILE, HOSTILE, HOSTILE),)] * 9,
        (profile(HOSTILE, "categorical"),),
        beside={HOSTILE + "2": [HOSTILE] * 9 + ["x"] * 99},
    )
    assert pattern.common == (HOSTILE + "2", HOSTILE) and pattern.sentence.isprintable()
    assert "\u202e" not in pattern.sentence


def test_grams_for_kilograms_at_one_station_are_reported() -> None:
    rng = np.random.default_rng(0)
    n = 600
    length = rng.normal(50, 5, n)
    weight = 0.1 * length + rng.normal(0, 0.1, n)
    station = rng.integers(1, 9, n).astype(str)
    wrong = np.flatnonzero(station == "7")[:6]
    weight[wrong] *= 1000
    frame = pl.DataFrame({"length": length, "weight": weight, "station": station})
    frame = frame.with_columns(secret=pl.Series(["x"] * n).scatter(wrong.tolist(), "y"))
    hidden = ColumnOptions(hide=("secret",), exclude=("secret",))
    result = screen(table_from_frame(frame), options=ScreeningOptions(count=12, columns=hidden))[0]
    pattern = result.findings.patterns[0]
    assert pattern.sentence == (
        '6 rows: "weight" is about 1,000 times what the rest suggests, all with "station" 7.'
    )
    assert sorted(pattern.rows) == sorted((wrong + 1).tolist())
