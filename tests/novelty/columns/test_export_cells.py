"""Columns of numbers and dates as programs export them keep their role, and say what was read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.api import Screening, screen_table
from kpca_apps.novelty.columns.plan import ColumnOptions, infer_plan, inferred_spec
from kpca_apps.novelty.redact import visible_notes
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.values import Column

DAYS = [date(2024, 1, 1) + timedelta(37 * k % 350) for k in range(200)]
SECONDS = [(day - date(1970, 1, 1)).days * 86400.0 for day in DAYS]


def serial(day: date) -> str:
    return str((day - date(1899, 12, 30)).days)


def spec_and_values(cells: list[str], name: str = "seen") -> tuple[str, np.ndarray, list[str]]:
    column = Column(pl.Series(name, cells))
    spec = inferred_spec(column, None, False)
    return spec.role, column.read(spec.format).values, visible_notes(spec.notes, ())


@pytest.mark.parametrize("pattern", ["%d/%m/%Y", "%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"])
@pytest.mark.parametrize("every", [20, 5, 3])
@pytest.mark.parametrize(
    ("other", "is_read"),
    [
        (serial, True),
        (lambda day: f"{day:%Y%m%d}", True),
        (lambda day: "unknown", False),
        (lambda day: f"{day:XX/%m/%Y}", False),
        (lambda day: f"{day:%Y}", False),
    ],
)
def test_dates_stay_dates_beside_other_cells(
    pattern: str, every: int, other: Callable[[date], str], is_read: bool
) -> None:
    is_other = np.arange(200) % every == 0
    cells = [
        other(day) if odd else day.strftime(pattern)
        for day, odd in zip(DAYS, is_other, strict=True)
    ]
    role, values, notes = spec_and_values(cells)
    assert role == "datetime"
    wanted = SECONDS if is_read else np.where(is_other, np.nan, SECONDS)
    np.testing.assert_array_equal(values, wanted)
    assert any(f"{is_other.sum()} cells with a number" in note for note in notes) == is_read


@pytest.mark.parametrize("write", [serial, lambda day: f"{day:%Y%m%d}"])
@pytest.mark.parametrize("typed", [str, int])
def test_numbers_are_dates_under_a_name_that_says_so(
    write: Callable[[date], str], typed: type
) -> None:
    cells = [typed(write(day)) for day in DAYS]
    role, values, notes = spec_and_values(cells, "order_date")
    assert role == "datetime" and values.tolist() == SECONDS and len(notes) == 1
    assert spec_and_values(cells, "amount")[0] != "datetime"
    assert spec_and_values([str(k * k) for k in range(200)], "date_score")[0] != "datetime"


def test_a_column_half_of_dates_is_said_to_be_text() -> None:
    cells = [day.isoformat() if k % 3 else f"week {k} of it" for k, day in enumerate(DAYS)]
    role, _, notes = spec_and_values(cells)
    assert role != "datetime" and "66% of the cells read as dates" in notes[0]


def test_marks_and_texts_for_missing_values_are_noted_without_values_of_hidden_columns() -> None:
    rng = np.random.default_rng(0)
    lead = [f"{k:.1f}" if k > 0.5 else "<0.5" for k in rng.lognormal(0, 1, 100)]
    lead[:30] = ["n.d."] * 30
    frame = pl.DataFrame({"lead": lead, "mass": rng.normal(size=100).astype(str)})
    options = ColumnOptions(hide=("lead",))
    for shown in (False, True):
        plan = infer_plan(table_from_frame(frame), ColumnOptions() if shown else options)
        spec = plan.specs[0]
        (note,) = visible_notes(spec.notes, () if shown else ("lead",))
        assert (spec.role, spec.n_missing) == ("numeric", 30)
        assert "cells with a comparison sign and 30 cells with " in note
        assert ('"n.d."' in note) == shown


def screened(frame: pl.DataFrame, path: Path) -> Screening:
    frame.write_csv(path, separator=";")
    return screen_table(path)


def test_the_error_is_found_in_columns_of_an_export(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    net = rng.lognormal(7, 0.8, 160).round(2)
    net[70] *= 1000
    low, lead = rng.lognormal(-2.5, 0.5, 160), rng.lognormal(0, 0.6, 160)
    lead[30] = 2400.0

    def german(value: float) -> str:
        text = f"{value:,.2f}".translate(str.maketrans(".,", ",."))
        return text + "-" * bool(value % 1 < 0.22)

    frame = pl.DataFrame(
        {
            "net": [german(value) for value in net],
            "tax": [german(value) for value in np.where(np.arange(160) == 70, 190, 0.19 * net)],
            "phosphate": [f"{k:.2f}".replace(".", ",") if k > 0.05 else "<0,05" for k in low],
            "lead": [f"{k:.1f}".replace(".", ",") if k > 0.5 else "<0,5" for k in lead],
            "guarded": [f"'-{k}" for k in rng.integers(10, 99, 160)],
        }
    )
    frame[30, "lead"] = ">2400"
    result = screened(frame, tmp_path / "export.csv")
    assert {one.role for one in result.columns} == {"numeric"}
    assert {(one.column, one.row) for one in result.odd_cells} == {("net", 71), ("lead", 31)}
    assert {one.row for one in result.ranked[:2]} == {71, 31}
