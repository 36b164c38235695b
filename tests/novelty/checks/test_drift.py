import numpy as np
import polars as pl
import pytest
from scipy import stats

from kpca_apps.novelty.checks.drift import _chi_squared, _kolmogorov, moved_columns
from kpca_apps.novelty.columns.encoding import ColumnSummary
from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.novelty.result import MovedColumn
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.values import Column


def summaries(frame: pl.DataFrame) -> list[ColumnSummary]:
    plan = infer_plan(table_from_frame(frame))
    return [ColumnSummary.of(Column(frame[spec.name]), spec) for spec in plan.used]


def people(n: int, rng: np.random.Generator) -> pl.DataFrame:
    weight = np.where(rng.random(n) < 0.1, np.nan, rng.normal(70, 10, n))
    return pl.DataFrame(
        {
            "weight": pl.Series(weight).fill_nan(None),
            "counts": rng.poisson(3, n).astype(float),
            "town": np.array(["Bern", "Basel", "Genf", "Chur"])[
                rng.choice(4, n, p=[0.5, 0.3, 0.19, 0.01])
            ],
            "day": np.datetime64("2024-01-01") + rng.integers(0, 300, n),
        }
    )


def moved(before: pl.DataFrame, after: pl.DataFrame) -> list[MovedColumn]:
    return list(moved_columns(summaries(before), summaries(after)))


def test_tables_alike_are_rarely_stated_to_differ() -> None:
    rng = np.random.default_rng(0)
    n_moved = 0
    for _ in range(60):
        frame = people(300, rng)
        n_moved += bool(moved(frame[:150], frame[150:]))
    # With 60 tests at a rate of .01, more than 4 errors have a probability of .0004.
    assert n_moved <= 4


def test_what_moved_is_stated_in_the_units_of_the_column() -> None:
    rng = np.random.default_rng(1)
    before, after = people(500, rng), people(400, rng)
    after = after.with_columns(
        pl.col("weight") / 1000,
        pl.when(pl.arange(pl.len()) % 3 == 0).then(pl.lit("Zug")).otherwise("town").alias("town"),
        pl.col("day") + pl.duration(days=400),
        pl.when(pl.arange(pl.len()) % 4 == 0).then(None).otherwise("counts").alias("counts"),
    )
    found = {item.column: item for item in moved(before, after)}
    assert set(found) == {"weight", "town", "day", "counts"}
    assert found["weight"].what == "distribution" and found["weight"].size == pytest.approx(1)
    assert found["weight"].words == "median 0.07, was 69.75"
    assert found["town"].what == "levels" and found["town"].words.startswith('"Zug" 34%, was 0%')
    assert found["day"].words.startswith("median 2025-0") and "was 2024-0" in found["day"].words
    assert found["counts"].what == "missing" and found["counts"].words == "25% missing, was 0%"


def test_a_small_change_of_a_large_table_is_not_reported_and_few_cells_say_nothing() -> None:
    x = np.random.default_rng(3).normal(size=100_000)
    # A shift by 3 % of the standard deviation is significant but irrelevant.
    before, after = pl.DataFrame({"x": x}), pl.DataFrame({"x": x + 0.03})
    assert stats.ks_2samp(before["x"], after["x"]).pvalue < 1e-6
    assert moved(before, after) == [] and moved(before[:20], after[:20] + 100) == []
    assert moved(before[:500], after[:500] + 100) != []


def test_distances_and_p_values_are_those_of_scipy() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=60), rng.normal(0.3, 1.2, size=50)  # so few numbers that all are stored
    (old,), (new,) = summaries(pl.DataFrame({"x": x})), summaries(pl.DataFrame({"x": y}))
    distance, p_value = _kolmogorov(old, new)
    exact = stats.ks_2samp(x, y, method="asymp")
    assert distance == pytest.approx(exact.statistic)
    # scipy corrects its asymptotic p-value for small samples; `_kolmogorov` does not, so the two
    # p-values differ.
    assert p_value == pytest.approx(exact.pvalue, rel=0.3)
    # Stored quantiles of many cells are as informative as the cells.
    x, y = rng.gamma(2, size=20_000), rng.gamma(2.6, size=30_000)
    (old,), (new,) = summaries(pl.DataFrame({"x": x})), summaries(pl.DataFrame({"x": y}))
    assert len(old.quantiles) == 65
    assert _kolmogorov(old, new)[0] == pytest.approx(stats.ks_2samp(x, y).statistic, abs=2 / 65)


@pytest.mark.parametrize("shape", [(2, 2), (2, 7)])
def test_the_p_value_of_counts_is_scipys(shape: tuple[int, int]) -> None:
    for seed in range(5):
        counts = np.random.default_rng(seed).integers(5, 60, shape).astype(float)
        expected = stats.chi2_contingency(counts, correction=False).pvalue
        assert _chi_squared(counts) == pytest.approx(float(expected), rel=1e-12)
