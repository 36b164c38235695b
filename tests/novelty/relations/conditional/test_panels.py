"""Numbers are judged by the median of the other rows of their group, such as a country."""

import numpy as np
import polars as pl
import pytest

from kpca_apps.novelty.relations.conditional.levels import LevelRelations
from kpca_apps.novelty.relations.conditional.panels import UsualNumber
from kpca_apps.tables.frames import table_from_frame
from tests.novelty.relations.conditional.learned import judged


def panel(seed: int = 0) -> pl.DataFrame:
    """Return incomes of forty countries over fifteen years, each near its own level."""
    rng = np.random.default_rng(seed)
    country, year = np.repeat(np.arange(40), 15), np.tile(np.arange(2000, 2015), 40)
    size = np.exp(rng.normal(9.0, 1.5, 40))
    income = size[country] * np.exp(0.03 * (year - 2007) + rng.normal(0, 0.05, 600))
    return pl.DataFrame(
        {"country": [f"country {c}" for c in country], "year": year, "income": np.round(income, 2)}
    )


def usual_of(learned: LevelRelations) -> UsualNumber:
    """Return the only predictor by group medians that was learned."""
    (predictor,) = (item for item in learned.numbers.predictors if isinstance(item, UsualNumber))
    return predictor


def test_a_number_from_another_country_is_odd_though_it_is_not_in_its_column() -> None:
    frame = panel()
    income = frame["income"].to_numpy().copy()
    order = np.argsort(income)
    low, middle = int(order[20]), int(order[300])
    income[low] = income[middle]
    learned, verdict = judged(frame.with_columns(pl.Series("income", income)))
    assert usual_of(learned).names([of.name for of in learned.columns]) == ("income", "country")
    assert verdict.surprise.argmax() == low
    (named,) = verdict.numbers
    others = income[
        (frame["country"] == frame["country"][low]).to_numpy() & (np.arange(600) != low)
    ]
    assert named.row == low and named.column == "income" and "country" in named.given
    about = float(named.expected.removeprefix("about ").replace(",", ""))
    assert others.min() < about < others.max()
    # A new row is judged alike whether alone or among other rows.
    new = learned.judge(table_from_frame(frame[:1].with_columns(income=income[middle]), "panel"))
    assert len(new.numbers) == (frame["country"][0] != frame["country"][middle])


def test_no_number_is_named_where_numbers_jump_by_nature() -> None:
    rng = np.random.default_rng(7)
    store = np.repeat(np.arange(30), 60)
    sales = np.exp(rng.normal(6, 1.2, 30))[store] * np.exp(0.15 * rng.standard_t(2.5, 1_800))
    frame = pl.DataFrame({"store": [f"S{s}" for s in store], "sales": sales.round(1)})
    learned, verdict = judged(frame)
    assert learned.numbers.predictors and not verdict.numbers


@pytest.mark.parametrize("seed", range(4))
def test_a_measure_is_no_group(seed: int) -> None:
    """`tmin` repeats like a group label, but close values of it go with close values of `tmax`."""
    rng = np.random.default_rng(seed)
    mean = 12 + 9 * np.sin(np.arange(365) / 58) + rng.normal(0, 3, 365)
    frame = pl.DataFrame(
        {
            "tmin": (mean - 5 + rng.normal(0, 1, 365)).round(seed % 2),
            "tmax": (mean + 5 + rng.normal(0, 1, 365)).round(1),
        }
    )
    found = judged(frame)[0].numbers.predictors
    assert not any(isinstance(predictor, UsualNumber) for predictor in found)


def test_each_row_is_judged_by_the_others_of_its_level() -> None:
    frame = panel()
    learned, _ = judged(frame)
    number = usual_of(learned)
    values, country = frame["income"].to_numpy(), frame["country"].to_numpy()
    z = np.arcsinh((values - np.median(values)) / np.median(np.abs(values - np.median(values))))
    table = table_from_frame(frame, "panel")
    cells = [column.cells(table) for column in learned.columns]

    def middle(values: np.ndarray) -> float:
        return float(np.sort(values)[(len(values) - 1) // 2])

    alike = country[:, None] == country
    np.fill_diagonal(alike, False)
    distance = np.array([abs(z[row] - middle(z[alike[row]])) for row in range(600)])
    for own in (True, False):
        predicted = number.ratios(table, cells, np.full(600, own))
        for row in range(600):
            others = alike[row] if own else country == country[row]
            # A group's median distance, shrunk towards that of all rows by a weight of three rows.
            n = others.sum()
            usual = (n * middle(distance[others]) + 3 * np.median(distance)) / (n + 3)
            wanted = abs(z[row] - middle(z[others])) / usual
            assert predicted.ratio[row] == pytest.approx(wanted, rel=1e-6)


def test_one_fault_does_not_make_the_right_rows_of_its_level_odd() -> None:
    few = panel().filter((pl.col("country") != "country 3") | (pl.col("year") < 2003))
    income = few["income"].to_numpy().copy()
    rows = np.flatnonzero((few["country"] == "country 3").to_numpy())
    before = judged(few)[1].surprise
    income[rows[0]] *= 30
    surprise = judged(few.with_columns(pl.Series("income", income)))[1].surprise
    # Two tests are made, of levels and of numbers, so the row's p-value of 1 / n is doubled.
    assert surprise.argmax() == rows[0] and surprise[rows[0]] > np.log(len(few) / 2) - 0.01
    assert (surprise[rows[1:]] < before[rows[1:]] + 1).all()


def test_a_weight_that_few_rows_share_is_no_group() -> None:
    rng = np.random.default_rng(3)
    # 250 weights have six rows each, 1,500 weights have two.
    weight = np.repeat(rng.permutation(90_000)[:1750] + 20_000, [6] * 250 + [2] * 1500)
    size = np.log(weight) + rng.normal(0, 0.01, len(weight))
    size[3] += 0.5
    frame = pl.DataFrame({"weight": [f"w{w}" for w in weight], "size": size.round(4)})
    assert judged(frame)[1].numbers == ()
