"""Columns of numbers and dates as programs export them keep their role, and say what was read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.api import Screening, fit_model, score_table, screen_table
from kpca_apps.errors import InputError
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
@pytest.mark.parametrize("typed", [str, int, float])
def test_numbers_are_dates_under_a_name_that_says_so(
    write: Callable[[date], str], typed: Callable[[str], str | float]
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


@pytest.mark.parametrize("is_first", [True, False])
def test_one_column_settles_the_order_of_all_dates_of_a_table(is_first: bool) -> None:
    pattern = "%d/%m/%Y" if is_first else "%m/%d/%Y"
    early = [day.replace(day=1 + day.day % 12) for day in DAYS]
    frame = pl.DataFrame(
        {
            "a": [day.strftime(pattern) for day in early],
            "b": [day.strftime(pattern) for day in DAYS],
        }
    )
    table = table_from_frame(frame)
    spec = infer_plan(table).specs[0]
    found = table.column("a").read(spec.format).values
    assert found.tolist() == [(day - date(1970, 1, 1)).days * 86400.0 for day in early]
    assert "as in the other columns" in spec.notes[0]


ISO, DOTS, DAY, MONTH, NAME = "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%b-%Y"
AUTUMN = [date(2024, 10, 1) + timedelta(37 * k % 92) for k in range(120)]
DECEMBER = [date(2024, 12, 1 + k % 12) for k in range(60)]


def dated(days: list[date], pattern: str) -> pl.DataFrame:
    size = np.random.default_rng(len(days)).normal(100, 8, len(days)).round(1)
    return pl.DataFrame({"date": [day.strftime(pattern) for day in days], "size": size})


@pytest.mark.parametrize("reference", [ISO, DOTS, NAME, MONTH])
@pytest.mark.parametrize("later", [ISO, DOTS, NAME])
def test_dates_of_a_later_table_are_those_it_says(reference: str, later: str) -> None:
    model = fit_model(dated(AUTUMN, reference))
    result = score_table(model, dated(DECEMBER, later))
    assert not result.moved
    (spec,) = (one for one in model.encoder.plan.specs if one.name == "date")
    cells = pl.Series([day.strftime(later) for day in DECEMBER])
    found = Column(cells).read(spec.format).values.astype("datetime64[s]").tolist()
    assert [one.date() for one in found] == DECEMBER


def test_a_later_table_that_would_be_misread_is_refused() -> None:
    rng = np.random.default_rng(0)
    size = rng.normal(1300, 150, 120).round(2)
    plain = [f"{k:.2f}" for k in size]
    comma = [f"{k:,.2f}".translate(str.maketrans(".,", ",.")) for k in size]
    later = [*DECEMBER, date(2024, 12, 25), date(2024, 12, 24)] * 2
    for reference, table, words in (
        (dated(AUTUMN, MONTH), dated(later, DAY), "day before month, .* month before day as in"),
        (dated(AUTUMN, ISO), dated(later * 2, DAY), 'column "date" is written with day before'),
        (pl.DataFrame({"a": plain}), pl.DataFrame({"a": comma}), 'column "a" .* decimal comma'),
        (pl.DataFrame({"a": comma}), pl.DataFrame({"a": plain}), 'column "a" .* decimal point'),
    ):
        with pytest.raises(InputError, match=words):
            score_table(fit_model(reference), table)
        with pytest.raises(InputError, match=words):
            screen_table(table, reference=reference)
    result = score_table(fit_model(dated(AUTUMN, ISO)), dated(DECEMBER, DAY))
    words = "no cell tells whether it has month before day; it is read so, as in the reference"
    assert any(words in note for note in result.warnings)
    whole = [f"{k}" for k in rng.integers(100, 900, 50)] + ["n.d."] * 10 + ["250-"] * 5
    result = score_table(fit_model(pl.DataFrame({"a": comma})), pl.DataFrame({"a": whole}))
    assert not any("it is read so" in note for note in result.warnings)


SIZES = np.random.default_rng(4).normal(2900, 500, 120).round().astype(int)
WHOLE = pl.DataFrame({"a": [f"{k}" for k in SIZES]})
DOTTED = pl.DataFrame({"a": [f"{k:,}".replace(",", ".") for k in SIZES[:70]]})


@pytest.mark.parametrize(
    ("reference", "table", "words"),
    [
        # One cell alone tells; the others read either way.
        (dated(AUTUMN, MONTH), dated([*DECEMBER, date(2024, 12, 25)], DAY), "1 cell cannot be"),
        (dated(AUTUMN, MONTH), dated(DECEMBER, DAY), "no cell tells whether it has month before"),
        # Dots are day-first, unless those of the reference are not.
        (dated(AUTUMN, "%m.%d.%Y"), dated(DECEMBER, DOTS), "no cell tells whether it has month"),
        (dated(AUTUMN, MONTH), dated(DECEMBER, DOTS), ""),
        (dated(AUTUMN, DOTS), dated(DECEMBER, DOTS), ""),
        (WHOLE, DOTTED, "no cell tells whether it has decimal points"),
        (WHOLE, WHOLE.head(60), ""),
    ],
)
def test_what_a_table_leaves_open_is_said(
    reference: pl.DataFrame, table: pl.DataFrame, words: str
) -> None:
    said = " ".join(screen_table(table, reference=reference).warnings)
    assert words in said and ("as in the reference" in said) == bool(words)


def test_rows_are_accepted_however_their_list_is_written() -> None:
    rng = np.random.default_rng(0)
    size = rng.normal(1300, 150, 100).round(2)
    table = pl.DataFrame({"size": [f"{k:.2f}" for k in size], "date": [f"{d}" for d in DAYS[:100]]})
    fine = pl.DataFrame(
        {
            "size": [f"{k:,.2f}".translate(str.maketrans(".,", ",.")) for k in size[:20]],
            "date": [f"{d:%d/%m/%Y}" for d in DAYS[:20]],
        }
    )
    assert screen_table(table, accept=fine).is_accepted.sum() == 20


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_a_file_that_mixes_decimal_marks_is_said_with_its_rows(share: float) -> None:
    numbers = np.random.default_rng(0).normal(1500, 200, 40).round(2)
    has_comma = np.random.default_rng(1).random(40) < share
    swapped = str.maketrans(",.", ".,")
    cells = [
        f"{number:,.2f}".translate(swapped) if comma else f"{number:.2f}"
        for number, comma in zip(numbers, has_comma, strict=True)
    ]
    (note,) = spec_and_values(cells)[2]
    fewer = has_comma if 2 * has_comma.sum() <= 40 else ~has_comma
    rows = ", ".join(map(str, np.flatnonzero(fewer)[:3] + 1))
    assert f"{fewer.sum()} of 40 numbers are" in note and f"(first in row {rows})" in note


@pytest.mark.parametrize(
    "name", ["Sales to date", "cost_to_date", "date_price", "date (epoch days)", "Datum"]
)
def test_amounts_are_no_dates_whatever_their_name(name: str) -> None:
    amounts = np.random.default_rng(0).uniform(20_000, 79_999, 120)
    for cells in (pl.Series(name, amounts.round(2)), pl.Series(name, amounts.astype(int))):
        assert inferred_spec(Column(cells), None, False).role == "numeric"


def test_years_or_words_in_nearly_half_of_the_cells_are_no_gaps_among_dates() -> None:
    for other in ("1995", "pending"):
        cells = [other if k % 7 < 3 else f"{day:%d/%m/%Y}" for k, day in enumerate(DAYS)]
        assert spec_and_values(cells)[0] != "datetime"


def test_a_dot_that_may_separate_thousands_is_named_as_the_decimal_mark() -> None:
    cells = [f"{k / 1000:.3f}" + "-" * (k % 3 == 0) for k in range(1_200, 9_900, 77)]
    notes = spec_and_values(cells)[2]
    assert any('"." is read as a decimal mark' in note for note in notes)
