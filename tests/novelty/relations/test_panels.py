"""A number is judged by what it usually is where a level of its row recurs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.novelty.relations.levels import LevelRelations
from kpca_apps.tables.frames import table_from_frame


def panel(seed: int = 0) -> pl.DataFrame:
    """Incomes of forty countries in fifteen years, each about its own level."""
    rng = np.random.default_rng(seed)
    country, year = np.repeat(np.arange(40), 15), np.tile(np.arange(2000, 2015), 40)
    size = np.exp(rng.normal(9.0, 1.5, 40))
    income = size[country] * np.exp(0.03 * (year - 2007) + rng.normal(0, 0.05, 600))
    return pl.DataFrame(
        {
            "country": [f"country {c}" for c in country],
            "year": year,
            "income": np.round(income, 2),
        }
    )


def fit(frame: pl.DataFrame) -> tuple[LevelRelations, np.ndarray]:
    table = table_from_frame(frame, "panel")
    learned = LevelRelations.learn(table, infer_plan(table))
    judged = learned.judge(table, own=np.ones(table.frame.height, dtype=bool))
    return learned, judged.surprise


def test_a_number_from_another_country_is_odd_though_it_is_not_in_its_column() -> None:
    frame = panel()
    income = frame["income"].to_numpy().copy()
    order = np.argsort(income)
    low, middle = int(order[20]), int(order[300])
    income[low] = income[middle]
    learned, surprise = fit(frame.with_columns(pl.Series("income", income)))
    assert [(of.spec.name, learned.columns[of.given].name) for of in learned.usual] == [
        ("income", "country")
    ]
    assert surprise.argmax() == low


def test_each_row_is_judged_by_the_others_of_its_level() -> None:
    frame = panel()
    learned, _ = fit(frame)
    (number,) = learned.usual
    values, country = frame["income"].to_numpy(), frame["country"].to_numpy()
    z = np.arcsinh((values - np.median(values)) / np.median(np.abs(values - np.median(values))))
    table = table_from_frame(frame, "panel")
    cells = learned.columns[number.given].cells(table)
    for own in (True, False):
        surprise = number.surprise(table, cells, np.full(600, own))
        for row in range(0, 600, 37):
            same = country == country[row]
            same[row] = not own
            n = same.sum()
            usual = (z[same].sum() + number.shrunk_by * z.mean()) / (n + number.shrunk_by)
            distance = np.array([abs(z[row] - usual)])
            assert surprise[row] == pytest.approx(float(number.tail(distance)[0]), abs=1e-9)


def test_shuffled_numbers_have_no_usual_value() -> None:
    rng = np.random.default_rng(0)
    for seed in range(10):
        frame = panel(seed)
        shuffled = frame.with_columns(pl.Series("income", rng.permutation(frame["income"])))
        learned, surprise = fit(shuffled)
        assert learned.usual == () and not surprise.any()
