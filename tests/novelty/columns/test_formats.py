"""Cells of a later table are read as that table writes them, checked against what was written."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from kpca_apps import fit_model, load_model, save_model, score_table, screen_table
from kpca_apps.novelty.columns.encoded import Execution
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import NoveltyModel, ScreeningOptions
from kpca_apps.novelty.screening.run import inherit_options, rows_to_score
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import parted

AUTUMN = [date(2024, 10, 1) + timedelta(37 * k % 92) for k in range(200)]
DECEMBER = [date(2024, 12, 1 + k % 12) for k in range(60)]
ISO, DOTS, DAY, MONTH, NAME = "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%b-%Y"


def table_of(days: list[date], pattern: str | None) -> pl.DataFrame:
    rng = np.random.default_rng(len(days))
    size = rng.normal(100, 8, len(days)).round(1)
    written: list[Any] = [day if pattern is None else day.strftime(pattern) for day in days]
    return pl.DataFrame({"date": written, "size": size, "shop": rng.choice(["A", "B"], len(days))})


@pytest.fixture(scope="module")
def models() -> dict[str | None, NoveltyModel]:
    patterns = (ISO, None, NAME, DOTS, DAY, MONTH)
    return {one: fit_table(table_from_frame(table_of(AUTUMN, one)))[0] for one in patterns}


def days_read(
    model: NoveltyModel, frame: pl.DataFrame, dayfirst: bool | None = None, size: int | None = None
) -> tuple[list[date], tuple[str, ...]]:
    table = table_from_frame(frame)
    options = inherit_options(model, table, dayfirst=dayfirst)
    cut = table if size is None else parted(table, part_rows=size)
    model, rows = rows_to_score(model, cut, options, Execution())
    (spec,) = (one for one in model.encoder.plan.specs if one.name == "date")
    drawn = rows.take(np.arange(len(frame)))
    seconds = drawn.column("date").read(spec.format).values.astype("datetime64[s]")
    return [one.date() for one in seconds.tolist()], rows.warnings


@pytest.mark.parametrize("reference", [ISO, None, NAME, DOTS, DAY, MONTH])
@pytest.mark.parametrize("pattern", [ISO, DOTS, NAME, DAY, MONTH])
def test_a_file_that_tells_its_order_is_read_by_it(
    reference: str | None, pattern: str, models: dict[str | None, NoveltyModel]
) -> None:
    days = [*DECEMBER, date(2024, 12, 25)] * 2
    found, notes = days_read(models[reference], table_of(days, pattern))
    assert found == days
    orders = {DAY: "day", DOTS: "day", MONTH: "month"}
    differ = {reference, pattern} <= {*orders} and orders[reference] != orders[pattern]
    assert bool([note for note in notes if "each is read as it is written" in note]) == differ
    assert not any("no date tells" in note for note in notes)


@pytest.mark.parametrize(
    ("reference", "pattern", "asked", "right", "words"),
    [
        (ISO, DOTS, None, True, "as dates with dots are written"),
        (None, DOTS, None, True, "as dates with dots are written"),
        (NAME, DOTS, None, True, "as dates with dots are written"),
        (MONTH, DOTS, None, True, "as dates with dots are written"),
        (DAY, DAY, None, True, "as in the reference"),
        (MONTH, MONTH, None, True, "as in the reference"),
        (DOTS, DAY, None, True, "as in the reference"),
        (DAY, MONTH, False, True, "as asked"),
        (ISO, DAY, True, True, "as asked"),
        (ISO, DAY, None, False, "--dayfirst decides otherwise"),
    ],
)
@pytest.mark.parametrize("size", [None, 16])
def test_dates_that_leave_their_order_open_are_read_as_asked_or_in_the_reference(
    reference: str | None,
    pattern: str,
    asked: bool | None,
    right: bool,
    words: str,
    size: int | None,
    models: dict[str | None, NoveltyModel],
) -> None:
    found, notes = days_read(models[reference], table_of(DECEMBER, pattern), asked, size)
    assert (found == DECEMBER) == right
    assert any(f"({words})" in note for note in notes)


def test_nothing_has_drifted_in_a_month_of_the_reference(tmp_path: Path) -> None:
    reference, later = table_of(AUTUMN, ISO), table_of(DECEMBER, DOTS)
    model = fit_model(reference)
    save_model(model, tmp_path / "m.kpca")
    results = [
        screen_table(later, reference=reference),
        score_table(load_model(tmp_path / "m.kpca"), later),
        score_table(load_model(tmp_path / "m.kpca"), later, dayfirst=True),
    ]
    for result in results:
        assert not result.moved
        assert result.is_flagged.sum() <= 6
    wrong = score_table(model, table_of(DECEMBER, DOTS), dayfirst=False)
    assert [one.column for one in wrong.moved] == ["date"]


def test_numbers_are_read_by_the_decimal_mark_of_their_own_file() -> None:
    size = np.random.default_rng(0).normal(1300, 150, 200).round(2)
    plain = pl.DataFrame({"size": size, "other": size[::-1] + 1}).cast(pl.String)
    comma = plain.with_columns(
        pl.Series("size", [f"{k:,.2f}".translate(str.maketrans(".,", ",.")) for k in size])
    )
    for reference, later in ((plain, comma), (comma, plain)):
        model = fit_table(table_from_frame(reference), ScreeningOptions())[0]
        table = table_from_frame(later)
        options = inherit_options(model, table)
        scored, rows = rows_to_score(model, table, options, Execution())
        spec = scored.encoder.plan.specs[0]
        np.testing.assert_array_equal(
            rows.sample_table.column("size").read(spec.format).values, size
        )
        assert sum("each is read as it is written" in note for note in rows.warnings) == 1
