"""Planted cells are odd; ordinary large values of heavy-tailed columns are not."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from kpca_apps.novelty.checks.number_rules import ODDITIES, NumberRule

FloatArray = NDArray[np.float64]
RNG = np.random.default_rng(0)
COLUMNS: dict[str, FloatArray] = {
    "prices": np.round(np.exp(5 + 1.5 * RNG.normal(size=4000)), 2),
    "rain": np.where(RNG.random(4000) < 0.93, 0.0, np.round(RNG.exponential(size=4000), 2)),
    "ages": np.round(RNG.uniform(18, 90, 4000)),
    "heights": np.round(RNG.normal(170, 9, 4000), 1),
    "masses": np.round(np.random.default_rng(1).uniform(2700, 6300, 90)),
    "counts": RNG.poisson(0.3, 4000).astype(float),
    "years": np.round(RNG.uniform(1950, 2020, 4000)),
    "temperatures": np.round(RNG.normal(12, 8, 4000), 1),
    "0 or 1": (RNG.random(4000) < 0.4).astype(float),
}


def kinds(values: FloatArray, odd: list[float]) -> list[str]:
    rule = NumberRule.fit(np.append(values, odd), 1.0)
    return [ODDITIES[kind] for kind in rule.judge(np.array(odd))]


@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS.keys())
def test_a_column_finds_nothing_odd_in_itself(values: FloatArray) -> None:
    assert not NumberRule.fit(values, 1.0).judge(values).any()
    assert not NumberRule.fit(values[:200], 20.0).judge(values).any()


@pytest.mark.parametrize(
    ("column", "odd", "kind"),
    [
        ("heights", 1702.0, "far above"),
        ("heights", 17.02, "far below"),
        ("heights", 0.0, "zero"),
        ("masses", 0.0, "zero"),
        ("ages", 404.0, "far above"),
        ("ages", -35.0, "sign"),
        ("years", 2198.0, "far above"),
        ("years", 1023.0, "far below"),
        ("rain", -0.5, "sign"),
        ("rain", 1048.0, "far above"),
        ("prices", -80.0, "sign"),
        ("0 or 1", 11.0, "far above"),
        ("temperatures", -5.0, ""),
    ],
)
def test_what_was_planted_is_found(column: str, odd: float, kind: str) -> None:
    assert kinds(COLUMNS[column], [odd]) == [kind]


@pytest.mark.parametrize(("column", "code"), [("heights", 999.0), ("ages", -1.0), ("rain", -999.0)])
@pytest.mark.parametrize("n_cells", [3, 300, 2000])
def test_codes_for_missing_values_are_one_pattern(column: str, code: float, n_cells: int) -> None:
    rule = NumberRule.fit(np.append(COLUMNS[column], [code] * n_cells), 1.0)
    assert rule.codes == (code,)
    assert ODDITIES[rule.judge(np.array([code]))[0]] == "placeholder"
    assert not rule.judge(COLUMNS[column]).any()


@pytest.mark.parametrize(("n", "n_cells"), [(400, 1), (30, 1), (30, 2)])
@pytest.mark.parametrize("column", ["heights", "ages", "temperatures"])
def test_one_cell_of_few_is_enough_of_a_code_below_0(column: str, n: int, n_cells: int) -> None:
    for code in (-99.0, -999.0, -9999.0):
        # -99 is too near to temperatures, with mean 12 and standard deviation 8, to be a code.
        if column != "temperatures" or code < -99.0:
            values = np.append(COLUMNS[column][:n], [code] * n_cells)
            assert NumberRule.fit(values, 1.0).codes == (code,)


def test_a_lost_sign_is_no_code_and_a_digit_too_many_no_cap() -> None:
    assert kinds(np.round(RNG.uniform(50, 200, 400)), [-99.0]) == ["sign"]
    pressures = np.random.default_rng(0).normal(130, 18, 2000).round()
    assert kinds(pressures, [14020.0] * 3 + [16020.0]) == ["far above"] * 4


@pytest.mark.parametrize(
    ("values", "cap"),
    [
        (np.minimum(np.random.default_rng(2).normal(80, 12, 3000), 100.0), 100.0),
        (np.append(np.random.default_rng(3).normal(50, 3, 3000), [100.0] * 30), 100.0),
        (np.minimum(COLUMNS["ages"], 90.0), 90.0),
        (np.minimum(np.random.default_rng(4).normal(2e5, 1e5, 3000), 500001.0), 500001.0),
        (np.minimum(COLUMNS["prices"], 5000.0), 5000.0),
        (np.append(COLUMNS["heights"], [0.0] * 100), 0.0),
        (np.append(COLUMNS["heights"], [240.0] * 900), 240.0),
        (np.append(np.random.default_rng(5).normal(0, 300, 400), -999.0), -999.0),
        (np.append(COLUMNS["ages"], [99.0] * 30), 99.0),
    ],
    ids=[
        *("rate", "full rate", "top-coded", "censored", "capped tail", "none", "second group"),
        *("a low number", "an ordinary value"),
    ],
)
def test_a_number_of_the_column_is_no_code(values: FloatArray, cap: float) -> None:
    assert cap not in NumberRule.fit(values, 1.0).codes


@pytest.mark.parametrize(
    ("column", "seen", "meant"),
    [
        ("heights", 17020.0, 170.2),
        ("years", 2093.0, 1993.0),
        ("years", 9186.0, 1986.0),
        ("years", 5555.0, None),
        ("rain", 31.0, None),
        # 44.2 is not suggested, because ages are integers.
        ("ages", 442.0, 42.0),
        ("ages", 5525.0, None),
    ],
)
def test_a_value_is_suggested_only_if_it_is_clear(
    column: str, seen: float, meant: float | None
) -> None:
    assert NumberRule.fit(COLUMNS[column], 1.0).meant(seen) == meant


def test_a_date_in_another_century_is_found_and_put_right() -> None:
    dates = (17000 + np.arange(1500.0) % 1400) * 86400.0
    wrong = np.datetime64("2918-03-04").astype("datetime64[s]").astype(float)
    rule = NumberRule.fit(np.append(dates, wrong), 1.0, is_date=True)
    assert ODDITIES[rule.judge(np.array([wrong]))[0]] == "far above"
    right = np.datetime64("2018-03-04").astype("datetime64[s]").astype(float)
    assert rule.meant(float(wrong)) == right


Change = Callable[[FloatArray], FloatArray]


@pytest.mark.parametrize("change", [lambda v: 1000 * v, lambda v: v[::-1]], ids=["unit", "order"])
def test_units_and_order_do_not_matter(change: Change) -> None:
    for values in COLUMNS.values():
        odd = np.append(values, [40 * values.max() + 5])
        here, there = (NumberRule.fit(v, 1.0).judge(v) for v in (odd, change(odd)))
        assert (np.sort(here) == np.sort(there)).all()


DRAWS: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "normal": lambda rng, n: np.round(rng.normal(120, 20, n), 1),
    "log-normal": lambda rng, n: np.round(rng.lognormal(3, 0.6, n), 2),
    "uniform": lambda rng, n: np.round(rng.uniform(1, 100, n), 1),
    "exponential": lambda rng, n: np.round(1 + rng.exponential(10, n), 2),
    "Pareto": lambda rng, n: np.round(10 * (1 + rng.pareto(3, n)), 2),
    "counts": lambda rng, n: rng.poisson(50, n).astype(float),
}


@pytest.mark.parametrize(
    ("draw", "n", "factor", "least"),
    [
        *((name, n, 1000.0, 19) for name in DRAWS for n in (30, 60)),
        ("log-normal", 500, 100.0, 18),
        ("normal", 100, 10.0, 20),
        ("normal", 2000, 0.01, 18),
    ],
)
def test_a_gross_error_is_found_whatever_the_distribution(
    draw: str, n: int, factor: float, least: int
) -> None:
    n_found = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, n])
        values = DRAWS[draw](rng, n)
        values[rng.integers(n)] *= factor
        n_found += bool(NumberRule.fit(values, 1.0).judge(values).any())
    assert n_found >= least


@pytest.mark.parametrize("n", [30, 60, 500])
def test_clean_columns_of_any_size_rarely_have_odd_cells(n: int) -> None:
    rng = np.random.default_rng(n)
    draws = [
        *DRAWS.values(),
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: rng.standard_t(3, n),
    ]
    columns = [draw(rng, n) for draw in draws for _ in range(10)]
    assert sum(NumberRule.fit(values, 1.0).judge(values).any() for values in columns) <= 1
