"""Columns that increase with the rows are used through their periodic part."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from kpca_apps import fit_model, load_model, save_model, score_table, screen_table
from kpca_apps.novelty.columns.plan import runs_on


@pytest.mark.parametrize("seed", range(5))
def test_what_runs_on_is_distinguished_from_what_was_sorted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 300
    log = 1.7e9 + np.cumsum(rng.exponential(3600.0, n))
    wrong = log.copy()
    wrong[rng.choice(n, 5, replace=False)] = rng.uniform(0, 3e9, 5)
    late = log + rng.normal(0, 7200.0, n)
    assert all(runs_on(dates, is_date=True) for dates in (log, wrong, late, log[::-1]))
    assert not runs_on(rng.permutation(log), is_date=True)
    assert runs_on(1e4 + np.cumsum(rng.normal(10, 2, n)), is_date=False)
    assert runs_on(np.arange(n) * 0.1, is_date=False)
    prices, shares, ages = rng.lognormal(3, 1, n), rng.uniform(size=n), rng.integers(18, 90, n)
    for numbers in (prices, shares, ages.astype(float), log, rng.normal(size=n)):
        assert not runs_on(np.sort(numbers), is_date=False)
        assert not runs_on(numbers[:20], is_date=False)


def deliveries(month: int, seed: int, n: int = 267) -> pl.DataFrame:
    """Return a month of deliveries, on weekdays from 8:00 to 18:00, with a meter reading."""
    rng = np.random.default_rng(seed)
    first = datetime(2024, month, 1)
    days = [first + timedelta(days=day) for day in range(29)]
    open_days = [day for day in days if day.weekday() < 5]
    moments = sorted(
        open_days[rng.integers(len(open_days))] + timedelta(hours=float(rng.uniform(8, 18)))
        for _ in range(n)
    )
    weight = rng.lognormal(3, 0.5, n)
    return pl.DataFrame(
        {
            "sent": [f"{moment:%Y-%m-%d %H:%M}" for moment in moments],
            "weight": weight.round(2),
            "price": (0.3 * weight + rng.normal(0, 0.5, n)).round(2),
            "meter": (1e4 + 3000 * month + np.cumsum(rng.normal(10, 1, n))).round(1),
        }
    )


def test_the_next_month_is_flagged_at_the_rate_of_false_alarms() -> None:
    n_flagged, n = 0, 0
    for seed in range(4):
        result = score_table(fit_model(deliveries(6, seed), alpha=0.05), deliveries(7, seed + 50))
        n_flagged, n = n_flagged + result.n_flagged, n + result.n_rows
        # Each column is reported once, and not as a moved column.
        assert not {"sent", "meter"} & {moved.column for moved in result.findings.moved}
        assert sum("has run on" in text for text in result.run.warnings) == 2
    # The rate is 7 %, not 5 %, because each model's calibration is uncertain, too.
    assert n_flagged <= binom.ppf(0.999, n, 0.07)


def test_what_repeats_still_makes_a_row_odd(tmp_path: Path) -> None:
    save_model(fit_model(deliveries(6, 0), alpha=0.01), tmp_path / "june.kpca")
    july = deliveries(7, 1)
    july[100, "sent"] = "2024-07-14 03:00"  # a Sunday night
    result = score_table(load_model(tmp_path / "june.kpca"), july)
    assert result.rows.is_flagged[100]
    row = next(row for row in result.ranked if row.row == 101)
    assert row.reasons[0].column == "sent" and row.reasons[0].seen == "2024-07-14 03:00"
    assert re.fullmatch(r"\w+day, about \d\d:\d\d", row.reasons[0].expected)


def test_dates_of_a_table_that_judges_itself_count_as_they_are() -> None:
    june = deliveries(6, 0)
    june[100, "sent"] = "2026-06-14 11:00"
    assert screen_table(june).ranked[0].row == 101


def test_hidden_columns_that_ran_on_reveal_no_date() -> None:
    result = score_table(fit_model(deliveries(6, 0), hide="sent"), deliveries(7, 1))
    assert not any("2024" in text for text in result.run.warnings)
    assert any('"sent" has run on;' in text for text in result.run.warnings)
