"""Exported columns of numbers and dates keep their role, and notes say how they were read."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.api import Screening, fit_model, score_table, screen_table
from kpca_apps.errors import InputError
from kpca_apps.novelty.columns.plan import ColumnOptions, infer_plan, inferred_spec
from kpca_apps.novelty.redact import visible_notes
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.values import Column, DateFormat

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
def test_numbers_are_dates_if_the_name_suggests_it(
    write: Callable[[date], str], typed: Callable[[str], str | float]
) -> None:
    cells = [typed(write(day)) for day in DAYS]
    role, values, notes = spec_and_values(cells, "order_date")
    assert role == "datetime" and values.tolist() == SECONDS and len(notes) == 1
    assert spec_and_values(cells, "amount")[0] != "datetime"
    assert spec_and_values([str(k * k) for k in range(200)], "date_score")[0] != "datetime"


@pytest.mark.parametrize("pattern", ["%Y%m%d%H", "%Y%m%d%H%M", "%Y%m%d%H%M%S"])
@pytest.mark.parametrize("typed", [str, int])
def test_digits_of_a_date_and_a_time_are_a_time_if_the_name_suggests_it(
    pattern: str, typed: Callable[[str], str | int]
) -> None:
    hours = [datetime(2024, 2, 28) + timedelta(hours=k) for k in range(200)]
    cells = [typed(hour.strftime(pattern)) for hour in hours]
    role, values, notes = spec_and_values(cells, "MESS_DATUM")
    assert role == "datetime" and len(notes) == 1
    seconds = [(hour - datetime(1970, 1, 1)).total_seconds() for hour in hours]
    assert values.tolist() == seconds
    assert spec_and_values(cells, "DateTime")[0] == "datetime"
    assert spec_and_values(cells, "amount")[0] != "datetime"


@pytest.mark.parametrize("pattern", ["%d%m%y", "%y%m%d", "%m%d%y"])
@pytest.mark.parametrize("typed", [str, int])
def test_six_digits_are_dates_if_the_name_suggests_it(
    pattern: str, typed: Callable[[str], str | int]
) -> None:
    cells = [typed(day.strftime(pattern)) for day in DAYS]
    order = pattern.upper().replace("%", "")
    order = "".join(2 * letter for letter in order)
    role, values, notes = spec_and_values(cells, "Datum")
    assert role == "datetime" and values.tolist() == SECONDS
    assert [*notes] == [f'Column "Datum": 200 cells with a number ({order}).']
    # With another column name, or with more invalid dates, the cells are numbers.
    assert spec_and_values(cells, "amount")[0] != "datetime"
    role, _, notes = spec_and_values([*cells, *30 * [typed("997722")]], "Datum")
    assert role != "datetime" and "named as dates, but its numbers are not" in notes[-1]


@pytest.mark.parametrize("pattern", ["%d%m%y", "%y%m%d", "%m%d%y"])
@pytest.mark.parametrize(
    "slip", [lambda day: (99, 99, 99), lambda day: (24, day.month, 94), lambda day: (24, 2, 31)]
)
def test_a_slip_among_six_digits_changes_none_of_the_other_dates(
    pattern: str, slip: Callable[[date], tuple[int, int, int]]
) -> None:
    """One date has a slip: it is invalid, of another century, or valid only in another order."""
    cells = [day.strftime(pattern) for day in DAYS]
    parts = dict(zip("ymd", slip(DAYS[9]), strict=True))
    cells[9] = "".join(f"{parts[letter]:02}" for letter in pattern.replace("%", ""))
    role, values, _ = spec_and_values(cells, "Datum")
    assert role == "datetime" and np.isnan(values[9])
    assert np.delete(values, 9).tolist() == np.delete(SECONDS, 9).tolist()


def test_which_number_is_the_day_among_six_digits_can_be_reported() -> None:
    days = [date(2024, month, day) for month in range(1, 13) for day in (3, 10)]
    cells = [day.strftime("%d%m%y") for day in days]
    for day_first, dates in ((True, days), (False, [date(d.year, d.day, d.month) for d in days])):
        column = Column(pl.Series("Datum", cells))
        readings = column.read(inferred_spec(column, day_first, False).format)
        assert readings.values.tolist() == [(d - date(1970, 1, 1)).days * 86400.0 for d in dates]


def test_six_digits_have_the_centuries_of_all_years_of_two_digits() -> None:
    days = [date(1969 + 9 * k % 100, 1 + k % 12, 1 + 3 * k % 28) for k in range(100)]
    for pattern in ("%d%m%y", "%y%m%d", "%m%d%y"):
        order = DateFormat(digits="".join(2 * letter for letter in pattern[1::2].upper()))
        for written, format in ((pattern, order), ("%d.%m.%y", DateFormat(True))):
            cells = Column(pl.Series([day.strftime(written) for day in days]))
            read_values = cells.read(format).values / 86_400
            assert read_values.tolist() == [(day - date(1970, 1, 1)).days for day in days]
    column = Column(pl.Series("dob", [f"{day:%d%m%y}" for day in days]))
    assert column.digit_dates() == DateFormat(short_years=True, digits="DDMMYY")


def test_months_are_no_days_of_2020() -> None:
    months = [f"{year}{month:02}" for year in range(2001, 2013) for month in range(1, 13)]
    role, values, notes = spec_and_values(months, "date")
    assert role == "numeric" and values.tolist() == [*map(float, months)]
    assert "named as dates, but its numbers are not" in notes[-1]


def test_a_column_half_of_dates_is_stated_to_be_text() -> None:
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
        spec = infer_plan(table_from_frame(frame), ColumnOptions() if shown else options).specs[0]
        (note,) = visible_notes(spec.notes, () if shown else ("lead",))
        assert (spec.role, spec.n_missing) == ("numeric", 30)
        assert "cells with a comparison sign and 30 cells with " in note
        assert ('"n.d."' in note) == shown


def test_a_minus_behind_is_read_in_a_column_declared_numeric() -> None:
    """A column with cells such as "35-" counts as an identifier unless declared numeric."""
    cells = [f"{7 * k}-" if k % 5 == 0 else f"{7 * k}" for k in range(1, 101)]
    table = table_from_frame(pl.DataFrame({"balance": cells, "price": [*range(100)]}))
    assert infer_plan(table, ColumnOptions(numeric=("price",))).specs[0].role == "identifier"
    spec = infer_plan(table, ColumnOptions(numeric=("balance",))).specs[0]
    values = Column(pl.Series("balance", cells)).read(spec.format).values
    assert values.tolist() == [7.0 * k * (-1 if k % 5 == 0 else 1) for k in range(1, 101)]
    assert "20 cells with a minus behind" in spec.notes[0]


def test_each_text_that_is_not_read_is_noted_with_its_cells() -> None:
    cells = [f"{k / 7:.2f}" for k in range(150)]
    cells[:30] = ["n.d."] * 20 + ["4x"] * 4 + ["2x"] * 3 + ["n.b."] * 2 + ["7.O5"]
    (note,) = spec_and_values(cells)[2]
    for text, n, what in (("n.d.", 20, "missing"), ("4x", 4, "not read"), ("n.b.", 2, "not read")):
        assert f'{n} cells with "{text}" ({what})' in note
    assert "7.O5" not in note


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
        return f"{value:,.2f}".translate(str.maketrans(".,", ",.")) + "-" * bool(value % 1 < 0.22)

    frame = pl.DataFrame(
        {
            "net": [german(value) for value in net],
            "tax": [german(value) for value in np.where(np.arange(160) == 70, 190, 0.19 * net)],
            "phosphate": [f"{k:.2f}".replace(".", ",") if k > 0.05 else "<0,05" for k in low],
            "lead": [f"{k:.1f}".replace(".", ",") if k > 0.5 else "<0,5" for k in lead],
            "guarded": [f"'-{k}" for k in rng.integers(10, 99, 160)],
            "income": ["250000+" if k % 27 == 0 else f"{56_000 + 79 * k}" for k in range(160)],
        }
    )
    frame[30, "lead"] = ">2400"
    result = screened(frame, tmp_path / "export.csv")
    assert {column.role for column in result.columns} == {"numeric"}
    assert {(cell.column, cell.row) for cell in result.findings.odd_cells} == {
        ("net", 71),
        ("lead", 31),
    }
    assert {entry.row for entry in result.ranked[:2]} == {71, 31}


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
    read_values = table.column["a"].read(spec.format).values
    assert read_values.tolist() == [(day - date(1970, 1, 1)).days * 86400.0 for day in early]
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
    assert not score_table(model, dated(DECEMBER, later)).findings.moved
    (spec,) = (spec for spec in model.encoder.plan.specs if spec.name == "date")
    cells = pl.Series([day.strftime(later) for day in DECEMBER])
    read_values = Column(cells).read(spec.format).values.astype("datetime64[s]").tolist()
    assert [moment.date() for moment in read_values] == DECEMBER


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
    words = "no cell shows whether it has month before day; it is read so, as in the reference"
    assert any(words in note for note in result.run.warnings)
    whole = [f"{k}" for k in rng.integers(100, 900, 50)] + ["n.d."] * 10 + ["250-"] * 5
    result = score_table(fit_model(pl.DataFrame({"a": comma})), pl.DataFrame({"a": whole}))
    assert not any("it is read so" in note for note in result.run.warnings)


SIZES = np.random.default_rng(4).normal(2900, 500, 120).round().astype(int)
WHOLE = pl.DataFrame({"a": [f"{k}" for k in SIZES]})
DOTTED = pl.DataFrame({"a": [f"{k:,}".replace(",", ".") for k in SIZES[:70]]})


@pytest.mark.parametrize(
    ("reference", "table", "words"),
    [
        # One cell shows the order of day and month; the other cells allow both orders.
        (dated(AUTUMN, MONTH), dated([*DECEMBER, date(2024, 12, 25)], DAY), "1 cell cannot be"),
        (dated(AUTUMN, MONTH), dated(DECEMBER, DAY), "no cell shows whether it has month before"),
        # Dates with dots are day-first, unless the reference shows otherwise.
        (dated(AUTUMN, "%m.%d.%Y"), dated(DECEMBER, DOTS), "no cell shows whether it has month"),
        (dated(AUTUMN, MONTH), dated(DECEMBER, DOTS), ""),
        (dated(AUTUMN, DOTS), dated(DECEMBER, DOTS), ""),
        (WHOLE, DOTTED, "no cell shows whether it has decimal points"),
        (WHOLE, WHOLE.head(60), ""),
    ],
)
def test_what_a_table_leaves_open_is_stated(
    reference: pl.DataFrame, table: pl.DataFrame, words: str
) -> None:
    notes = " ".join(screen_table(table, reference=reference).run.warnings)
    assert words in notes and ("as in the reference" in notes) == bool(words)


def test_rows_are_accepted_however_their_list_is_written() -> None:
    size = np.random.default_rng(0).normal(1300, 150, 100).round(2)
    table = pl.DataFrame({"size": [f"{k:.2f}" for k in size], "date": [f"{d}" for d in DAYS[:100]]})
    fine = pl.DataFrame(
        {
            "size": [f"{k:,.2f}".translate(str.maketrans(".,", ",.")) for k in size[:20]],
            "date": [f"{d:%d/%m/%Y}" for d in DAYS[:20]],
        }
    )
    assert screen_table(table, accept=fine).rows.is_accepted.sum() == 20


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_a_file_that_mixes_decimal_marks_is_stated_with_its_rows(share: float) -> None:
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
    assert any('"." is read as a decimal mark' in note for note in spec_and_values(cells)[2])


def numbers(n: int, seed: int) -> list[str]:
    return [f"{k:.1f}" for k in np.random.default_rng(seed).normal(50, 5, n)]


def plan_of(columns: dict[str, list[str]]) -> dict[str, tuple[str, int]]:
    plan = infer_plan(table_from_frame(pl.DataFrame(columns)))
    return {spec.name: (spec.role, spec.n_missing) for spec in plan.specs}


@pytest.mark.parametrize("token", [":", "..", "n.d."])
def test_a_mark_that_one_column_shows_counts_in_all(token: str) -> None:
    shown, once, few, scale = numbers(60, 0), numbers(60, 1), numbers(60, 2), ["1", "2", "3"] * 20
    for k in range(0, 24, 2):
        shown[k], shown[k + 1] = token, f"{shown[k + 1]} {'bep'[k % 3]}"
    once[3], once[5] = f"{once[3]} p", token
    few[:50] = [token] * 50
    scale[:30:2] = [token] * 15
    levels = ["a", "b", token] * 20
    plan = plan_of({"shown": shown, "once": once, "few": few, "scale": scale, "levels": levels})
    assert plan == {
        "shown": ("numeric", 12),
        "once": ("numeric", 1),
        "few": ("numeric", 50),
        "scale": ("numeric", 15),
        "levels": ("categorical", 0),
    }
    # Columns with so few numbers are categories, and the token is one of their levels.
    shown[24:36] = ["A"] * 12
    for least in (["A", token, "0"] * 20, [token] * 59 + ["7"]):
        assert plan_of({"shown": shown, "least": least})["least"] == ("categorical", 0)
    # No cell of this table shows that the token stands for a missing number.
    assert plan_of({"scale": scale, "levels": levels})["scale"][0] == "categorical"


SHARED = {
    "flags": [
        f"{k / 8:.1f}{['', '', ' b', ' p', '', ' e', '', ''][k % 8]}" for k in range(90, 210)
    ],
    "amounts": [f"{k / 8:.2f}{'-' * (k % 5 == 0)}" for k in range(90, 210)],
    "sides": [f"{k / 8:.2f} {'HS'[k % 5 > 1]}" for k in range(90, 210)],
    "credit": [f"{k / 8:.2f} {'CR' if k % 5 > 1 else 'DR'}" for k in range(90, 210)],
}


@pytest.mark.parametrize(
    "write",
    [
        lambda k: f"{k / 70:.1f}{' g' * (k % 4 == 0)}",  # values in grams
        lambda k: f"{k} {'bab'[k % 3]}",  # house numbers
        lambda k: f"{37 * k % 1900 + 1000}{['', ' b', '', ' e', ''][k % 5]}",  # articles
        lambda k: f"{1000 + k}{'-' * (k % 3 == 0)}",  # part numbers
        lambda k: f"{k % 31 + 2}{'HS'[k % 2]}",  # seats
        lambda k: f"{k % 31 + 2}{'H' * (k % 3 == 0)}",
        lambda k: f"{k / 8:.1f}{' H' * (k % 3 == 0)}",  # values in henries
        lambda k: f"{k / 8:.1f}{' Cr' * (k % 3 == 0)}",  # amounts in crores (ten million)
    ],
)
def test_marks_of_other_columns_take_nothing_off_what_is_no_mark(
    write: Callable[[int], str],
) -> None:
    cells = [write(k) for k in range(90, 210)]
    table = table_from_frame(pl.DataFrame(SHARED | {"own": cells}))
    read_values = table.column["own"].read(infer_plan(table).specs[-1].format).values
    assert np.isnan(read_values[[not cell[-1].isdigit() for cell in cells]]).all()


@pytest.mark.parametrize(
    ("write", "value"),
    [
        (
            lambda k: f"{k % 60 + 3}{'-' * (k % 3 == 0)}",
            lambda k: (k % 60 + 3) * (-1) ** (k % 3 == 0),
        ),
        (lambda k: f"{k * k + 999}{' p' * (k % 4 == 0)}", lambda k: k * k + 999),
    ],
)
def test_marks_of_other_columns_are_taken_off_whole_numbers_that_are_no_codes(
    write: Callable[[int], str], value: Callable[[int], float]
) -> None:
    table = table_from_frame(pl.DataFrame(SHARED | {"own": [write(k) for k in range(90, 210)]}))
    read_values = table.column["own"].read(infer_plan(table).specs[-1].format).values
    np.testing.assert_array_equal(read_values, [value(k) for k in range(90, 210)])


def test_a_text_for_a_missing_value_is_no_odd_cell(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    few = {f"x{k}": numbers(240, k) for k in range(12)}
    for cells in few.values():
        for row in rng.choice(np.arange(9, 240), 5, replace=False).tolist():
            cells[row] = "n.d."
    few["x3"][4] = "5O.1"
    result = screened(pl.DataFrame(few), tmp_path / "t.csv")
    assert {(cell.column, cell.row) for cell in result.findings.odd_cells} == {("x3", 5)}


def test_a_laboratory_qualifies_some_of_its_numbers() -> None:
    numbers = np.random.default_rng(4).lognormal(1, 0.5, 120).round(2)
    for qualifier in ("J", "U", "UJ", "p", "(1)"):
        cells = [f"{k:.2f} {qualifier}" * (n % 6 == 1) for n, k in enumerate(numbers)]
        cells = [cell or f"{k:.2f}" for cell, k in zip(cells, numbers, strict=True)]
        cells[::4] = ["ND"] * 30
        role, values, _ = spec_and_values(cells)
        assert role == "numeric"
        np.testing.assert_array_equal(values, np.where(np.arange(120) % 4, numbers, np.nan))


def test_few_censored_numbers_beside_a_text_for_missing_are_numbers() -> None:
    role, values, notes = spec_and_values(["<0.05", "0.06", "0.07", "n.d."] * 25)
    assert role == "numeric" and np.isnan(values).sum() == 25
    assert "25 cells with a comparison sign and 25 cells with" in notes[0]
    # Three different numbers are levels of a category; the word among them is one more level.
    for cells in (
        ["1", "2", "3", "n.d."],
        ["<5", "5", ">5", "n.d."],
        ["1.0", "1.1", "2.0", "beta"],
    ):
        assert spec_and_values(cells * 25)[0] == "categorical"


def clock(minutes: np.ndarray) -> list[str]:
    return [f"{k // 60 % 24:02}:{k % 60:02}" for k in minutes.tolist()]


def test_times_on_both_sides_of_midnight_are_near_each_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    night = rng.normal(23 * 60, 30, 300).round().astype(int)
    night[70] = 35 * 60  # 11:00
    frame = pl.DataFrame({"start": clock(night), "x": rng.normal(5, 1, 300).round(2)})
    result = screened(frame, tmp_path / "t.csv")
    (cell,) = result.findings.odd_cells
    assert (cell.row, cell.seen) == (71, "11:00")
    first = result.ranked[0].reasons[0]
    assert (result.ranked[0].row, first.column) == (71, "start") and first.expected > "22:30"
    assert ", of days that begin at 11 h" in str(Column(frame["start"]).number_format().describe())
    after = {row for row in range(1, 301) if frame["start"][row - 1].startswith("00")}
    assert len(after) > 5 and after.isdisjoint(row.row for row in result.ranked if row.flagged)


@pytest.mark.parametrize(
    "minutes",
    [
        np.random.default_rng(0).normal(13 * 60, 120, 300).astype(int),  # times around 13:00
        np.random.default_rng(0).integers(0, 24 * 60, 300),  # times at any hour
        np.append(np.random.default_rng(0).integers(1, 200, 297), [1430, 1425, 1410]),  # durations
        np.append(np.random.default_rng(0).normal(720, 99, 293).astype(int), [*range(7)]),
    ],
)
def test_times_that_do_not_pass_midnight_begin_there(minutes: np.ndarray) -> None:
    assert spec_and_values(clock(minutes))[1].tolist() == (60.0 * minutes).tolist()
