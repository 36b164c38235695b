"""Dates as people write them, checked against Python's own calendar."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.tables.values import Column, DateFormat, date_text, infer_date_format, read_dates

MOMENTS = st.datetimes(datetime(1969, 1, 1), datetime(2068, 12, 31)).map(
    lambda moment: moment.replace(microsecond=0)
)
PATTERNS = [
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y/%m/%d %H:%M:%S",
    "%d %B %Y %H:%M:%S",
    "%d-%b-%y %H:%M:%S",
    "%b %d, %Y %I:%M:%S %p",
    "%A, %d %B %Y %H:%M:%S",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(moments=st.lists(MOMENTS, min_size=1, max_size=10))
@settings(max_examples=25, deadline=None)
def test_unambiguous_dates_come_back(pattern: str, moments: list[datetime]) -> None:
    cells = pl.Series([moment.strftime(pattern) for moment in moments])
    format = infer_date_format(cells)
    assert format is not None and format.decided_by == ""
    expected = [moment.replace(tzinfo=UTC).timestamp() for moment in moments]
    assert read_dates(cells, format)[0].tolist() == expected


@pytest.mark.parametrize(("pattern", "day_first"), [("%d/%m/%Y", True), ("%m/%d/%y", False)])
@given(moments=st.lists(MOMENTS, min_size=1, max_size=10))
@settings(max_examples=25, deadline=None)
def test_one_day_above_twelve_decides_the_order(
    pattern: str, day_first: bool, moments: list[datetime]
) -> None:
    days = [moment.replace(hour=0, minute=0, second=0) for moment in moments]
    days.append(datetime(2008, 3, 25))
    cells = pl.Series([day.strftime(pattern) for day in days])
    format = infer_date_format(cells, day_first=not day_first)
    assert format is not None
    assert (format.day_first, format.decided_by) == (day_first, "cells")
    assert read_dates(cells, format)[0].tolist() == [
        day.replace(tzinfo=UTC).timestamp() for day in days
    ]


@pytest.mark.parametrize(
    ("cell", "option", "day_first", "decided_by"),
    [
        ("03/04/2008", None, False, "default"),
        ("03/04/2008", True, True, "option"),
        ("03.04.2008", None, True, "default"),
        ("03.04.2008", False, False, "option"),
    ],
)
def test_an_open_order_is_taken_from_the_option_or_stated(
    cell: str, option: bool | None, day_first: bool, decided_by: str
) -> None:
    format = infer_date_format(pl.Series([cell]), option)
    assert format is not None
    assert (format.day_first, format.decided_by) == (day_first, decided_by)


@pytest.mark.parametrize(
    "cell",
    ["2008-13-45", "2008-02-30", "2007-02-29", "1900-02-29", "31/04/2008", "2008-01-01 25:00",
     "2008-01-01 10:61", "Jan 1, 2008 13:00 pm", "0000-01-01", "2020-01-01 24:00",
     "2020-01-01T10:60"],
)  # fmt: skip
def test_impossible_dates_have_the_shape_and_no_value(cell: str) -> None:
    seconds, shaped = read_dates(pl.Series([cell, "2020-01-01"]), DateFormat(day_first=True))
    assert np.isnan(seconds).tolist() == [True, False] and shaped.all()


@pytest.mark.parametrize(
    ("cell", "iso"),
    [
        ("2008-03-15T10:30:00.25+02:00", "2008-03-15T08:30:00.250+00:00"),
        ("2008-03-15 00:30 -0530", "2008-03-15T06:00:00+00:00"),
        ("2000-02-29", "2000-02-29T00:00:00+00:00"),
        ("1/2/69", "1969-01-02T00:00:00+00:00"),
        ("1/2/68", "2068-01-02T00:00:00+00:00"),
        ("July 4th, 1776", "1776-07-04T00:00:00+00:00"),
        ("Sept. 3 2010", "2010-09-03T00:00:00+00:00"),
        ("0001-01-01", "0001-01-01T00:00:00+00:00"),
        ("12:00 am", None),
        ("2008", None),
        ("1.2.3", None),
    ],
)
def test_single_cells(cell: str, iso: str | None) -> None:
    seconds, shaped = read_dates(pl.Series([cell]), DateFormat())
    if iso is None:
        assert not shaped.any()
    else:
        assert seconds[0] == datetime.fromisoformat(iso).timestamp()


def test_text_has_no_date_format() -> None:
    assert infer_date_format(pl.Series(["maybe", "march on", "N1A1"])) is None
    # Digits of other scripts are not read as dates.
    assert (
        infer_date_format(pl.Series(["\u0662\u0660\u0662\u0660-\u0660\u0661-\u0660\u0661"])) is None
    )


def test_date_text_shows_a_time_only_where_there_is_one() -> None:
    at = datetime(2008, 3, 15, 6, 30, tzinfo=UTC).timestamp()
    assert date_text(at) == "2008-03-15 06:30:00" and date_text(at, has_time=False) == "2008-03-15"
    assert date_text(1e15) == "1.15741e+10 days after 1970-01-01"
    assert date_text(253_402_300_799.9) == "9999-12-31 23:59:59"


def test_plain_dates_read_as_the_calendar_says() -> None:
    rng = np.random.default_rng(0)
    first = datetime(1, 1, 1)
    moments = [first + timedelta(seconds=int(s)) for s in rng.integers(0, 315e9, 200)]
    cells = [f"{moment:%Y-%m-%d %H:%M:%S}".zfill(19) for moment in moments]
    seconds, shaped = read_dates(pl.Series(cells), DateFormat())
    assert shaped.all()
    assert seconds.tolist() == [
        (moment - datetime(1970, 1, 1)).total_seconds() for moment in moments
    ]
    # The patterns that accept any spelling give the same dates.
    spelt = [cell.replace("-", "/").replace(" ", "  ") for cell in cells]
    assert read_dates(pl.Series(spelt), DateFormat())[0].tolist() == seconds.tolist()


@pytest.mark.parametrize(
    "cells",
    [
        ["3 janv. 2024", "12 f\u00e9vr. 2024", "7 juin 2024", "8 juil. 2024", "6 ao\u00fbt 2024"],
        ["3. Januar 2024", "12. Feb 2024", "7. Juni 2024", "8. Juli 2024", "6. August 2024"],
        ["3 ene 2024", "12 febrero 2024", "7 junio 2024", "8 julio 2024", "6 agosto 2024"],
        ["3 gen 2024", "12 feb 2024", "7 giugno 2024", "8 lug 2024", "6 ago 2024"],
    ],
)
def test_months_are_read_in_other_languages(cells: list[str]) -> None:
    column = Column(pl.Series(cells))
    format = column.date_format()
    assert format is not None
    days = column.read(format).values.astype("datetime64[s]").astype("datetime64[D]").astype(str)
    assert days.tolist() == ["2024-01-03", "2024-02-12", "2024-06-07", "2024-07-08", "2024-08-06"]


@pytest.mark.parametrize(
    "months",
    [
        "jan feb m\u00e4r apr mai jun jul aug sep okt nov dez",
        "j\u00e4nner februar maerz april mai juni juli august september oktober november dezember",
        "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dic",
        "janeiro fevereiro mar\u00e7o abril maio junho julho agosto setembro outubro novembro dez",
        "januari februari maart april mei juni juli augustus september oktober november december",
        "jan feb mar apr maj jun jul aug sep okt nov dec",
        "januar februar marts april maj juni juli august september oktober november desember",
        "januari februari maret april mei juni juli agustus september oktober november desember",
    ],
)
def test_no_month_of_a_language_is_left_unread(months: str) -> None:
    written = [f"{day} {month} 2024" for month in months.split() for day in (2, 21)]
    seconds, _ = read_dates(pl.Series(written + [text.upper() for text in written]), DateFormat())
    read = seconds.astype("datetime64[s]").astype("datetime64[M]").astype(int) % 12
    assert read.tolist() == [month for month in range(12) for _ in range(2)] * 2


def test_the_first_of_a_month_is_a_date() -> None:
    column = Column(pl.Series(["1er mars 2024", "1\u00ba mar\u00e7o 2024", "1. M\u00e4rz 2024"]))
    seconds = column.read(column.date_format()).values
    assert (
        seconds.astype("datetime64[s]").astype("datetime64[D]").astype(str).tolist()
        == ["2024-03-01"] * 3
    )


@pytest.mark.parametrize(
    "cell",
    ["30 de julio de 2024", "30 DE JULHO DE 2024", "30 de julio del 2024", "30th of July 2024",
     "30 de jul. de 24", "30 de julio de 2024, 00:00"],
)  # fmt: skip
def test_words_between_day_month_and_year(cell: str) -> None:
    column = Column(pl.Series([cell]))
    values = column.read(column.date_format()).values
    assert values.astype("datetime64[s]").astype(str).tolist() == ["2024-07-30T00:00:00"]


@pytest.mark.parametrize(
    "cells",
    [
        ["Mainz 1, 2000", "Augsburg 2, 2001", "Genoa 3, 2002"],  # names that start like months
        ["5 sets 14", "2 decks 11", "3 novels 12"],
        ["Gen 3, 2021", "Set 5, 2022", "Mai 4, 2023"],  # only in English does the month come first
    ],
)
def test_words_beside_numbers_are_no_months(cells: list[str]) -> None:
    assert infer_date_format(pl.Series(cells)) is None
