"""Numbers predicted by a sequence or another column: found, explained and calibrated."""

from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from kpca_apps.novelty.relations.conditional.pairs import Paired
from kpca_apps.novelty.relations.conditional.sequences import ALL, Sequenced
from kpca_apps.tables.frames import table_from_frame
from tests.novelty.relations.conditional.learned import judged
from tests.novelty.relations.conditional.test_panels import panel

AGES = np.r_[np.arange(0.25, 2, 0.25), np.arange(2, 8.5, 0.5), np.arange(9, 17, 0.5)]


def children(seed: int = 0) -> pl.DataFrame:
    """Return weights and heights of sixty children at 36 visits each."""
    rng = np.random.default_rng(seed)
    child, age = np.repeat(np.arange(60), len(AGES)), np.tile(AGES, 60)
    size = rng.normal(1, 0.1, 60)[child]
    growth = 3.5 + 6 * np.minimum(age, 1) + 2.3 * np.maximum(age - 1, 0)
    weight = size * (growth + 0.09 * np.maximum(age - 8, 0) ** 2) + rng.normal(0, 0.15, len(age))
    return pl.DataFrame({"child": child + 201, "age": age, "weight": weight.round(1)})


def gases(n: int = 2_000, seed: int = 0) -> pl.DataFrame:
    """Return oxygen saturation and pressure, which follow a curve, and twenty columns with gaps."""
    rng = np.random.default_rng(seed)
    saturation = np.clip(rng.normal(92, 4, n), 60, 100).round(1)
    pressure = 27 * (saturation / (100.3 - saturation)) ** 0.37 * rng.lognormal(0, 0.06, n)
    others = rng.lognormal(0, 0.5, (n, 20)).round(3)
    others[rng.random(others.shape) < 0.3] = np.nan
    columns = {f"other {j}": others[:, j] for j in range(20)}
    frame = {"saturation": saturation, "pressure": pressure.round(2), **columns}
    return pl.DataFrame(frame).fill_nan(None)


def days(n: int = 800, seed: int = 0) -> pl.DataFrame:
    """Return cumulative counts of one place by day."""
    rng = np.random.default_rng(seed)
    rate = np.exp(np.interp(np.arange(n), [0, n // 8, n // 4, n // 2, n], [1, 6, 3, 7, 2]))
    day = [date(2020, 3, 1) + timedelta(place) for place in range(n)]
    return pl.DataFrame({"day": day, "cases": np.cumsum(rng.poisson(rate))})


def with_numbers(frame: pl.DataFrame, name: str, rows: np.ndarray, change: float) -> pl.DataFrame:
    values = frame[name].to_numpy().astype(float)
    values[rows] = (values[rows] * change).round(1)
    return frame.with_columns(pl.Series(name, values))


def test_a_number_between_its_neighbours_is_found_whatever_the_id_reads() -> None:
    frame = children()
    rows = np.array([20, 700, 1_500])
    learned, of = judged(with_numbers(frame, "weight", rows, 1.5))
    names = [column.name for column in learned.columns]
    assert ("weight", "age", "child") in [item.names(names) for item in learned.numbers.predictors]
    assert {*np.argsort(-of.surprise)[:3].tolist()} == {*rows.tolist()}
    assert {(cell.row, cell.column) for cell in of.numbers} == {(row, "weight") for row in rows}
    # The expected value lies between the visits before and after; the neighbouring rows are not
    # odd.
    for one in of.numbers:
        low, high = sorted(frame["weight"][one.row + step] for step in (-1, 1))
        assert low <= float(one.expected.removeprefix("about ")) <= high
    assert (of.surprise[np.concatenate([rows - 1, rows + 1])] < np.log(100)).all()


def test_the_line_between_neighbours_is_that_of_brute_force() -> None:
    frame = children().sample(fraction=1.0, shuffle=True, seed=1).sort("child", "age")
    table = table_from_frame(frame, "table")
    learned, _ = judged(frame)
    names = [column.name for column in learned.columns]
    sequence = next(item for item in learned.numbers.predictors if isinstance(item, Sequenced))
    assert sequence.names(names) == ("weight", "age", "child")
    cells = [column.cells(table) for column in learned.columns]
    predicted = sequence.ratios(table, cells, np.ones(frame.height, dtype=bool))
    age, weight = frame["age"].to_numpy(), frame["weight"].to_numpy()
    for row in range(40, 2_000, 171):
        if frame["child"][row - 1] == frame["child"][row + 1]:
            line = np.interp(age[row], age[[row - 1, row + 1]], weight[[row - 1, row + 1]])
            assert predicted.expected[row] == pytest.approx(line)
    # A child's first visit has no ratio, as no visit precedes it. Rows get the same ratios whether
    # they are marked as rows that the model learned from (np.ones) or as new rows (np.zeros).
    assert np.isnan(predicted.ratio[:: len(AGES)]).all()
    again = sequence.ratios(table, cells, np.zeros(frame.height, dtype=bool))
    np.testing.assert_array_equal(again.ratio, predicted.ratio)


def test_counts_of_one_place_are_a_sequence_of_all_rows() -> None:
    rows = np.array([300, 500])
    learned, verdict = judged(with_numbers(days(), "cases", rows, 1.1))
    (sequence,) = (item for item in learned.numbers.predictors if isinstance(item, Sequenced))
    assert sequence.given == ALL
    assert {*np.argsort(-verdict.surprise)[:2].tolist()} == {*rows.tolist()}


def test_a_broken_pair_is_found_among_many_columns_with_gaps() -> None:
    rows = np.array([5, 900, 1_700])
    learned, verdict = judged(with_numbers(gases(), "pressure", rows, 0.1))
    names = [item.names(()) for item in learned.numbers.predictors if isinstance(item, Paired)]
    assert sorted(names) == [("pressure", "saturation"), ("saturation", "pressure")]
    assert {*np.argsort(-verdict.surprise)[:3].tolist()} == {*rows.tolist()}
    assert {cell.row for cell in verdict.numbers} == {*rows.tolist()}


def test_a_third_number_shows_which_of_two_is_wrong() -> None:
    rng = np.random.default_rng(3)
    length = rng.lognormal(1, 0.4, 1_000)
    frame = pl.DataFrame(
        {name: (length * rng.lognormal(0, 0.05, 1_000)).round(3) for name in ("a", "b", "c")}
    )
    _, verdict = judged(with_numbers(frame, "b", np.array([17]), 3.0))
    (one,) = verdict.numbers
    assert (one.row, one.column, one.others) == (17, "b", ())
    _, verdict = judged(with_numbers(frame.select("a", "b"), "b", np.array([17]), 3.0))
    (one,) = verdict.numbers
    assert one.row == 17 and {one.column, *one.others} == {"a", "b"}


def heavy(seed: int) -> pl.DataFrame:
    """Return a column `x`, and three curved functions of `x` with noise of various kinds."""
    rng = np.random.default_rng(seed)
    x = rng.lognormal(0, 1, 2_000)
    return pl.DataFrame(
        {
            "x": x,
            "square": x**2 * rng.lognormal(0, 0.1, len(x)),
            "log": np.log(x) + 0.1 * rng.standard_t(3, len(x)),
            "vanishing": np.exp(-x) + rng.normal(0, 0.02, len(x)),
        }
    )


@pytest.mark.parametrize("make", [children, days, heavy, lambda seed: gases(seed=seed)])
def test_p_values_of_rows_without_errors_are_uniform_or_larger(
    make: Callable[..., pl.DataFrame],
) -> None:
    for seed in range(2):
        frame = make(seed=seed)
        learned, verdict = judged(frame)
        assert learned.numbers.predictors
        for p in (0.1, 0.01):
            n_expected = p * frame.height
            n_found = int((verdict.surprise >= -np.log(p)).sum())
            assert n_found <= n_expected + 3 * np.sqrt(n_expected)
        assert verdict.surprise.max() <= np.log(frame.height) + 1e-6
        assert len(verdict.numbers) <= 0.002 * frame.height


def test_new_rows_are_as_surprising_as_those_learned_from() -> None:
    learned, _ = judged(gases(4_000))
    surprise = learned.judge(table_from_frame(gases(4_000, seed=1), "new")).surprise
    for p in (0.1, 0.03):
        assert (surprise >= -np.log(p)).mean() <= p + 3 * np.sqrt(2 * p / 4_000)


@pytest.mark.parametrize("make", [children, gases, panel])
def test_shuffled_columns_say_nothing(make: Callable[..., pl.DataFrame]) -> None:
    rng = np.random.default_rng(0)
    for seed in range(4):
        frame = make(seed=seed)
        shuffled = frame.select(pl.Series(column.name, rng.permutation(column)) for column in frame)
        learned, verdict = judged(shuffled)
        assert learned.numbers.predictors == () and not verdict.numbers


def test_numbers_are_judged_without_columns_that_a_table_lacks() -> None:
    learned, _ = judged(children())
    alone = learned.judge(table_from_frame(children().drop("age"), "table"))
    assert np.isfinite(alone.surprise).all()


def test_rows_of_many_patients_that_share_their_days_are_no_sequence() -> None:
    rng = np.random.default_rng(2)
    start = np.where(rng.random(60) < 0.9, rng.integers(0, 3, 60), rng.integers(-20, 60, 60))
    kind, day = np.repeat(rng.choice([*"abc"], 60), 30), np.tile(np.arange(1, 31), 60)
    time = (np.repeat(start, 30) + day + rng.normal(0, 0.1, 1_800)).round(2)
    learned, verdict = judged(pl.DataFrame({"kind": kind, "day": day, "time": time}))
    assert not any(isinstance(predictor, Sequenced) for predictor in learned.numbers.predictors)
    assert not verdict.numbers


def test_an_id_is_no_number() -> None:
    learned, _ = judged(children())
    names = [column.name for column in learned.columns]
    assert learned.numbers.predictors
    for item in learned.numbers.predictors:
        assert "child" not in item.names(names)[: 1 if isinstance(item, Sequenced) else None]
