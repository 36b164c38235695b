"""A sensor stuck at one value is one finding; columns that repeat by nature have none."""

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from kpca_apps import screen_table
from kpca_apps.novelty.checks.odd_cells import is_time_series
from kpca_apps.novelty.checks.stuck import StuckRule, learn_stuck
from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.tables.frames import table_from_frame

N = 700
HOURS = np.datetime64("2024-03-01T00:00", "us") + np.arange(N) * np.timedelta64(1, "h")
RNG = np.random.default_rng(0)
DAILY = 12 + 6 * np.sin(np.arange(N) * 2 * np.pi / 24)
FREE = np.round(DAILY + RNG.normal(0, 1.5, N), 1)
REPEATING: dict[str, NDArray[np.float64]] = {
    "free": FREE,
    "coarse": np.round(FREE),
    "at night": np.maximum(np.round(DAILY - 12 + RNG.normal(0, 0.3, N), 2), 0.0),
    "rain": np.round((RNG.random(N) < 0.1) * RNG.exponential(5, N), 1),
    "filled forward": np.repeat(FREE[: N // 7], 7),
    "price list": np.repeat(np.arange(10.0), N // 10),
    "weekends": np.where(np.arange(N) % 168 < 36, 11.3, FREE),
    "dry spells": np.repeat(RNG.normal(size=N).round(2), RNG.geometric(0.4, N))[:N],
}


def learned_from(columns: pl.DataFrame, n_rows: int) -> StuckRule | None:
    table = table_from_frame(columns, "logger")
    plan = infer_plan(table)
    (spec,) = (spec for spec in plan.specs if spec.name == "x")
    is_series = is_time_series(table, plan, n_rows)
    return learn_stuck(table, spec) if is_series else None


def learned(values: NDArray[np.float64], times: object = HOURS) -> StuckRule | None:
    return learned_from(pl.DataFrame({"at": times, "x": values}), len(values))


@pytest.mark.parametrize("values", REPEATING.values(), ids=REPEATING.keys())
def test_columns_that_repeat_by_nature_are_not_stuck(values: NDArray[np.float64]) -> None:
    rule = learned(values)
    assert rule is None or not (rule.runs(values)[1] >= rule.least).any()


@pytest.mark.parametrize("runs", [[36], [12], [36, 30], [40, 9, 20], [20, 22, 24, 26], [12] * 8])
def test_a_run_that_the_others_do_not_explain_is_found(runs: list[int]) -> None:
    values, expected = FREE.copy(), []
    for i, length in enumerate(runs):
        start = 40 + 80 * i
        values[start : start + length] = 11.7 + i
        expected += [start]
    rule = learned(values)
    assert rule is not None
    starts, lengths = rule.runs(values)
    assert starts[lengths >= rule.least].tolist() == pytest.approx(expected, abs=1)


def test_rows_must_follow_each_other_in_time() -> None:
    assert learned(FREE, RNG.permutation(HOURS)) is None
    assert learned(FREE[::-1], HOURS[::-1]) == learned(FREE) is not None  # newest first


def test_sensors_one_after_the_other_are_each_in_the_order_of_time() -> None:
    values = np.concatenate([FREE, FREE[::-1]])
    values[N + 60 : N + 100] = 11.7
    columns = {"at": np.concatenate([HOURS, HOURS]), "sensor": ["a"] * N + ["b"] * N, "x": values}
    for ordered in (True, False):
        rows = np.arange(2 * N) if ordered else RNG.permutation(2 * N)
        rule = learned_from(pl.DataFrame(columns)[rows], 2 * N)
        assert (rule is not None) == ordered
        if rule is not None:
            starts, lengths = rule.runs(values)
            assert starts[lengths >= rule.least].tolist() == [N + 60]


def test_it_is_one_odd_cell_with_all_its_rows() -> None:
    values, other = FREE.copy(), np.round(20 + RNG.normal(0, 3, N), 2)
    values[200:236] = 13.4
    (cell,) = screen_table(pl.DataFrame({"at": HOURS, "x": values, "y": other})).findings.odd_cells
    assert (cell.kind, cell.column, cell.seen, cell.n_cells) == ("stuck", "x", "13.4", 36)
    assert (cell.row, *cell.more_rows) == tuple(range(201, 237))
    assert cell.sentence.startswith("36 equal readings")
