"""Planted slips in otherwise ordinary rows get a hint; ordinary rows get none."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from kpca_apps.novelty.detector.neighbours import NeighbourRows
from kpca_apps.novelty.findings.hints import HintFinder, _Column
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.tables.frames import table_from_frame

FloatArray = NDArray[np.float64]
NAMES = ("height", "arm", "hand", "age", "floor")


def people(n: int, seed: int = 0) -> FloatArray:
    """Return three correlated lengths, an age, and a number of either sign."""
    rng = np.random.default_rng(seed)
    size = np.exp(0.1 * rng.normal(size=n))[:, None] * np.array([170.0, 70.0, 18.0])
    lengths = size * np.exp(0.015 * rng.normal(size=(n, 3)))
    return np.column_stack([lengths, np.round(rng.uniform(20, 60, n)), rng.normal(size=n)])


ROWS = people(1000)
MEAN, SD = ROWS.mean(axis=0), ROWS.std(axis=0)
STORED = NeighbourRows(ROWS, (ROWS - MEAN) / SD, np.array([], dtype=np.int64), np.arange(1000))
GROUPS = [np.array([j]) for j in range(5)]
FINDER = HintFinder(STORED, GROUPS, dict(enumerate(NAMES)))


def hints(
    row: FloatArray,
    finder: HintFinder = FINDER,
    scaled: FloatArray | None = None,
    meant: Mapping[str, float] = MappingProxyType({}),
) -> tuple[str, ...]:
    scaled = (row - MEAN) / SD if scaled is None else scaled
    return finder.hints(row[None], scaled[None], np.array([-1]), [meant])[0].sentences


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ((2.54, 1, 1, 1, 1), '"height" fits if divided by 2.54 (inches and centimetres?).'),
        ((1, 0.1, 1, 1, 1), '"arm" fits if multiplied by 10.'),
        ((1, 1, 1000, 1, 1), '"hand" fits if divided by 1000.'),
        ((0.01, 1, 1, 1, 1), '"height" fits if multiplied by 100.'),
        ((1, -1, 1, 1, 1), '"arm" fits if its sign is turned.'),
    ],
)
def test_a_planted_slip_gets_a_hint(change: tuple[float, ...], expected: str) -> None:
    texts = [hints(row * np.array(change)) for row in people(20, seed=1)]
    # Up to 6 of the 20 rows may get no hint, because they are unlike the other rows even without
    # the planted slip.
    assert sum(expected in hint for hint in texts) >= 14
    assert all(len(hint) <= 1 for hint in texts)


@pytest.mark.parametrize(
    ("name", "unit", "text"),
    [
        ("bodyWeight", "", "divided by 2.205 (pounds and kilograms?)"),
        ("body", "kg", "divided by 2.205 (pounds and kilograms?)"),
        # If the quantity is unknown, some unit would fit by chance, so no hint is given.
        ("body", "", ""),
        # A duration, known by the column's name or unit, is not in pounds.
        ("duration", "", ""),
        ("film", "min", ""),
    ],
)
def test_units_are_suggested_where_the_column_is_of_them(name: str, unit: str, text: str) -> None:
    finder = HintFinder(STORED, GROUPS, {0: name, 1: "arm", 2: "hand"}, {name: unit})
    rows = people(20, seed=1) * np.array([1 / 0.45359237, 1, 1, 1, 1])
    texts = [" ".join(hints(row, finder)) for row in rows]
    assert sum(text in hint and bool(hint) == bool(text) for hint in texts) >= 14


def test_a_filled_gap_is_no_value_of_the_column() -> None:
    rng = np.random.default_rng(0)
    is_gap = rng.random(1000) < 0.2
    tested = np.where(
        is_gap, rng.normal(0, 0.3, 1000), rng.choice([-1.0, 0.0, 1.0], 1000, p=[0.02, 0.9, 0.08])
    )
    rows = np.column_stack([tested, is_gap, ROWS[:, :3]])
    stored = NeighbourRows(rows, rows / rows.std(axis=0), np.array([1]), np.arange(1000))
    groups = [np.array([0, 1]), np.array([2]), np.array([3]), np.array([4])]
    finder = HintFinder(stored, groups, {0: "tested", 1: "height", 2: "arm", 3: "hand"})
    assert [column.name for column in finder.columns] == ["height", "arm", "hand"]


def test_a_repair_gives_the_suggested_value_or_is_not_reported() -> None:
    row = people(1, seed=1)[0] * np.array([100.0, 1, 1, 1, 1])
    scaled = (row - MEAN) / SD
    meant = row[0] / 100
    (text,) = hints(row, scaled=scaled, meant={"height": meant})
    assert text == hints(row, scaled=scaled)[0] == '"height" fits if divided by 100.'
    assert hints(row, scaled=scaled, meant={"height": meant * 1.05}) == ()


def test_a_sign_is_missed_in_a_column_below_0_too() -> None:
    turned = ROWS * np.array([1, -1, 1, 1, 1])
    stored = NeighbourRows(turned, STORED.standardised, STORED.as_is, STORED.index)
    finder = HintFinder(stored, GROUPS, dict(enumerate(NAMES)))
    texts = [hints(row, finder) for row in people(20, seed=6)]
    assert sum(hint == ('"arm" fits if its sign is turned.',) for hint in texts) >= 15


def test_exchanged_columns_are_reported_once() -> None:
    rows = people(20, seed=2)[:, [0, 2, 1, 3, 4]]
    texts = [hints(row) for row in rows]
    assert sum(hint == ('"arm" and "hand" fit if exchanged.',) for hint in texts) >= 15


def test_a_digit_typed_twice_is_reported() -> None:
    rows = people(20, seed=3)
    meant = np.round(rows[:, 0], 1)
    rows[:, 0] = [float(f"1{value}") for value in meant]
    texts = [" ".join(hints(row)) for row in rows]
    words = [f"read as {value} (a digit typed twice?)" for value in meant]
    assert sum(expected in hint for expected, hint in zip(words, texts, strict=True)) >= 14


def test_ordinary_rows_get_no_hint_also_where_one_column_is_extreme() -> None:
    rows = people(300, seed=4)
    assert sum(bool(hints(row)) for row in rows) == 0
    # A person 30 % larger than all others is not a unit error.
    assert hints(rows[0] * np.array([1.3, 1.3, 1.3, 1, 1])) == ()
    # Divided by 100, 90 becomes a usual value, but 0 would be usual as well, so no hint is given.
    row = people(1, seed=5)[0]
    row[4] = 90.0
    assert hints(row) == ()


def test_a_row_off_in_every_column_is_not_compared_for_every_two_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Comparing all pairs of 300 columns for 500 such rows would take almost an hour."""
    rng = np.random.default_rng(7)
    n_columns = 40
    rows = rng.normal(size=(1000, 1)) + 0.05 * rng.normal(size=(1000, n_columns))
    stored = NeighbourRows(rows, rows, np.array([], dtype=np.int64), np.arange(1000))
    columns = {j: f"c{j}" for j in range(n_columns)}
    finder = HintFinder(stored, [np.array([j]) for j in range(n_columns)], columns)
    looked_up: list[_Column] = []
    beside = HintFinder._expect

    def count_lookups(finder: HintFinder, column: _Column, *others: Any) -> float:
        looked_up.append(column)
        return beside(finder, column, *others)

    monkeypatch.setattr(HintFinder, "_expect", count_lookups)
    unlike = rng.uniform(-2, 2, n_columns)
    assert not any("exchanged" in hint for hint in hints(unlike, finder, unlike))
    assert looked_up == []


def test_few_rows_or_one_column_give_no_hints() -> None:
    few = NeighbourRows(ROWS[:20], ROWS[:20], np.array([], dtype=np.int64), np.arange(20))
    columns = {0: "height"}
    assert HintFinder(few, [np.array([0]), np.array([1])], columns).columns == []
    assert HintFinder(STORED, [np.array([0])], columns).columns == []


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    rows = people(400, seed=5)
    rows[17, 0] *= 1000
    cells = {name: [f"{v:.1f}" for v in rows[:, j]] for j, name in enumerate(NAMES)}
    for name in ("arm", "hand", "age"):
        cells[name][33] = ""
    return pl.DataFrame(cells)


def test_hints_stand_beside_the_reasons_of_a_screening(frame: pl.DataFrame) -> None:
    options = ScreeningOptions(explain=len(frame))
    texts = {
        row.row: row.hints for row in screen(table_from_frame(frame), options=options)[0].ranked
    }
    assert texts[18] == ('"height" fits if divided by 1000.',)
    assert texts[34] == (
        '"arm", "hand" and "age" are missing; fewer than 1 in 100 rows lack any one of them.',
    )


def test_no_repair_is_suggested_that_the_column_cannot_hold() -> None:
    """8.192 is not a size in the memory column, and 34.5 is not a count."""
    rng = np.random.default_rng(8)
    memory = rng.choice([1.0, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32], 800)
    for column, impossible, possible in (
        (memory, 8.192, 8.0),
        (rng.poisson(40, 800).astype(float), 34.5, 34.0),
    ):
        description = _Column("x", 0, 0, column)
        assert not description.holds(impossible) and description.holds(possible)


def test_a_broken_number_is_not_exchanged_into_a_whole_column() -> None:
    """One of two similar lengths is rounded to integers, so 71.3 cannot be its value."""
    rows = people(1000, seed=9)
    rows[:, 1] = np.round(rows[:, 1])
    mean, sd = rows.mean(axis=0), rows.std(axis=0)
    stored = NeighbourRows(rows, (rows - mean) / sd, STORED.as_is, STORED.index)
    finder = HintFinder(stored, [np.array([j]) for j in range(5)], dict(enumerate(NAMES)))
    exchanged = people(20, seed=2)[:, [0, 2, 1, 3, 4]]
    texts = [hints(row, finder, (row - mean) / sd) for row in exchanged]
    assert not any("exchanged" in text for hints in texts for text in hints)
    whole = np.round(exchanged)
    texts = [hints(row, finder, (row - mean) / sd) for row in whole]
    assert any("exchanged" in text for hints in texts for text in hints)


@pytest.mark.parametrize("name", ["Total", "Summe", ""])
def test_a_row_of_totals_is_called_one(name: str) -> None:
    rng = np.random.default_rng(0)
    sales, costs = rng.integers(10, 90, 80), rng.uniform(1, 50, 80).round(2)
    frame = pl.DataFrame(
        {
            "shop": [*(f"shop {k % 9}" for k in range(80)), name],
            "sales": [*sales.tolist(), int(sales.sum())],
            "costs": [*costs.tolist(), round(float(costs.sum()), 2)],
        }
    )
    row = screen(table_from_frame(frame), options=ScreeningOptions(count=1))[0].ranked[0]
    assert row.row == 81
    assert row.hints == ('"sales", "costs" hold the sums of all other rows: a row of totals?',)
    half = frame.with_columns(sales=pl.col("sales").replace(int(sales.sum()), 3000))
    others = screen(table_from_frame(half), options=ScreeningOptions(count=3))[0].ranked
    assert not any("totals" in hint for row in others for hint in row.hints)
