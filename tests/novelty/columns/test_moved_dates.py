"""A table of later dates is judged after a common shift, so its dates are not odd."""

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from kpca_apps import fit_model, load_model, save_model, score_table, screen_table
from kpca_apps.novelty.columns.encoding import MovedDates, TableEncoder
from kpca_apps.novelty.columns.parts import Execution
from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.novelty.run import score
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.system.workers import Workers
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import parted

FAULTS = {10, 20, 30}


def orders(first: date, n_days: int, seed: int, n: int = 400) -> pl.DataFrame:
    """Return `n` orders placed on random days from `first` on, and sent a few days later."""
    rng = np.random.default_rng(seed)
    ordered = [first + timedelta(int(day)) for day in rng.integers(n_days, size=n)]
    sent = [
        day + timedelta(int(1 + later))
        for day, later in zip(ordered, rng.poisson(1.5, n), strict=True)
    ]
    amount = rng.integers(1, 6, n)
    return pl.DataFrame(
        {
            "ordered": [f"{day:%d.%m.%Y}" for day in ordered],
            "sent": [f"{day:%d.%m.%Y}" for day in sent],
            "town": rng.choice(["Bern", "Basel", "Genf"], n),
            "amount": amount.astype(float),
            "weight": (amount * rng.normal(2, 0.1, n)).round(2),
        }
    )


def with_faults(frame: pl.DataFrame) -> pl.DataFrame:
    frame = frame.clone()
    frame[10, "ordered"], frame[20, "weight"], frame[30, "amount"] = "12.03.2062", 999.0, 60.0
    return frame


MARCH = orders(date(2026, 3, 1), 28, 1)
APRIL = with_faults(orders(date(2026, 4, 1), 28, 2))


def test_the_next_month_is_flagged_for_its_faults(tmp_path: Path) -> None:
    save_model(fit_model(MARCH, clean=False, share=0.02), tmp_path / "march.kpca")
    result = score_table(load_model(tmp_path / "march.kpca"), APRIL)
    assert {row.row - 1 for row in result.ranked[:3]} == FAULTS
    assert result.n_flagged <= 0.05 * len(APRIL)
    (note,) = [text for text in result.run.warnings if "Most dates" in text]
    assert '"ordered", "sent"' in note and "exclude" in note and len(note) < 400
    assert not any("fit a new model if" in text for text in result.run.warnings)
    assert {"ordered", "sent"} == {moved.column for moved in result.findings.moved}
    late = next(row for row in result.ranked if row.row == 11)
    (reason,) = [reason for reason in late.reasons if reason.column == "ordered"]
    assert reason.expected.endswith(".04.2026")


def test_a_reference_flags_at_its_rate_and_its_model_is_of_no_table(tmp_path: Path) -> None:
    result = screen_table(APRIL, reference=MARCH, alpha=0.05)
    assert {row.row - 1 for row in result.ranked[:3]} == FAULTS
    assert result.n_flagged <= 0.08 * len(APRIL)
    save_model(result.model, tmp_path / "march.kpca")
    again = score_table(load_model(tmp_path / "march.kpca"), APRIL)
    np.testing.assert_array_equal(again.rows.scores, result.rows.scores)


def test_a_date_far_from_most_others_stays_odd() -> None:
    march = MARCH.clone()
    march[10, "ordered"] = "12.04.2026"
    result = score_table(fit_model(MARCH, clean=False, share=0.02), march)
    assert result.ranked[0].row == 11
    assert not any("Most dates" in text for text in result.run.warnings)


def test_one_row_of_the_next_month_and_groups_of_it_are_not_odd() -> None:
    model = fit_model(MARCH, alpha=0.01, by="town")
    april = orders(date(2026, 4, 1), 28, 3)
    assert score_table(model, april[:1]).n_flagged == 0
    assert score_table(model, april).n_flagged <= 0.05 * len(april)


def test_parts_and_workers_change_nothing() -> None:
    model, _ = fit_table(table_from_frame(MARCH), clean=True)
    april = table_from_frame(APRIL)
    whole = score(model, april)
    for n_workers in (1, 2):
        with Workers(n_workers=n_workers) as workers:
            parts = score(model, parted(april, part_rows=90), execution=Execution(workers))
        np.testing.assert_array_equal(parts.rows.scores, whole.rows.scores)


def moved_days(first: date, n_days: int) -> tuple[np.ndarray, np.ndarray]:
    """Return dates in days since 1 March, and the days they are mapped to."""
    march = table_from_frame(MARCH)
    encoder = TableEncoder.fit(march, infer_plan(march), contaminated=True)
    table = table_from_frame(orders(first, n_days, 4))
    moved = encoder.moved_dates(table)
    assert isinstance(moved["ordered"], MovedDates)
    place = encoder.groups[0].columns[0]
    start = (date(2026, 3, 1) - date(1970, 1, 1)).days
    asis, onto = (
        of.matrix(table)[:, place] - start for of in (encoder, encoder.with_moved_dates(moved))
    )
    return asis, onto


def test_dates_are_laid_onto_the_nearest_weeks_that_are_known() -> None:
    for first, shift in ((date(2026, 4, 1), -14), (date(2025, 12, 3), 91)):
        days, onto = moved_days(first, 10)
        np.testing.assert_allclose(onto - days, shift, atol=1e-9)
        assert onto.min() >= 0 and onto.max() <= 27
    days, onto = moved_days(date(2026, 4, 1), 60)  # a longer period: the early dates are clipped
    np.testing.assert_array_equal(onto, np.maximum(days - 63, 0))
