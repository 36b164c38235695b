"""An expected value is formatted like the cells of its column and parses to the same value."""

from datetime import datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kpca_apps.novelty.columns.kinds import KINDS, ColumnKind, Notation
from kpca_apps.novelty.columns.parts import Sample
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec, infer_plan
from kpca_apps.novelty.screening.encoded import LearnedEncoder, encode
from kpca_apps.novelty.screening.judge import evidence_against
from kpca_apps.novelty.screening.profiles import column_profiles
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.values import (
    Column,
    DateFormat,
    NumberFormat,
    ValueFormat,
    read_dates,
    read_numbers,
)
from tests.system.model_parts import from_file

FloatArray = NDArray[np.float64]


@pytest.mark.parametrize(
    ("cells", "value", "text"),
    [
        (["1.5", "22.25"], 1234.5, "1234"),
        (["1,5", "22,25"], 3.14159, "3,142"),
        (["1.234,5", "0,25"], 1234567.8, "1.234.568"),
        (["1,234.5", "17"], 9876.0, "9,876"),
        (["1 234,5", "0,2"], 1234.0, "1 234"),
        (["$1,200.50", "-$3.00", "80"], 1000.4, "$1,000"),
        (["$5", "-$3.00"], -2.5, "-$2.5"),
        (["12 %", "3,5 %", "4"], 7.25, "7,25 %"),
        (["EUR 5", "EUR 6.5"], 5.75, "EUR 5.75"),
        (["1,5 \u20ac", "(2,5 \u20ac)"], 0.5, "0,5 \u20ac"),
        (["0,00001", "0,00002"], 0.000012, "1,2e-05"),
        (["109 min", "95 min", "100 mins"], 101.5, "101.5 min"),
        (["1,5kg", "2,25kg"], 3.25, "3,25kg"),
        (["14:05", "9:30"], 3600 * 7 + 60, "7:01"),
        (["14:05", "09:30"], 3600 * 7 + 60, "07:01"),
        (["14:05:30", "9:30:10"], 3600 * 7 + 61, "7:01:01"),
        (["2:05 p.m.", "9:30 a.m.", "8:10 a.m."], 3600 * 14, "2:00 p.m."),
        (["2:05PM", "9:30PM"], 60, "12:01AM"),
    ],
)
def test_numbers(cells: list[str], value: float, text: str) -> None:
    series = pl.Series(cells)
    format = Column(series).number_format()
    assert format is not None
    assert Notation.of(Column(series), format).write(value, format) == text
    assert read_numbers(pl.Series([text]), format)[0] == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize(
    ("cells", "value", "text"),
    [
        (["1.462,60 \u20ac", "19,95 \u20ac", "7,5 \u20ac"], 1462.6, "1.462,60 \u20ac"),
        (["$1,200.50", "$3.00", "80"], -1013.25, "-$1,013.25"),
        (["1.5", "20", "7"], 10141.321, "10141.321"),
        (["0.5", "0.25", "0.125"], 0.1 + 0.2, "0.3"),
        (["1700000000001", "1700000000002"], 1700000000003.0, "1700000000003"),
        (["14:05", "09:30"], 3600 * 7 + 60, "07:01"),
        (["05.01.2008", "30.12.2009"], 86400.0, "02.01.1970"),
        (["05.01.2008 08:41", "30.12.2009 17:05"], 3600.0 * 22 + 1325, "01.01.1970 22:22"),
        (["2008-01-05 08:41:07", "2009-12-30 17:05:09"], 3600.0 * 22 + 5, "1970-01-01 22:00:05"),
    ],
)
def test_a_repair_is_written_exactly(cells: list[str], value: float, text: str) -> None:
    column = Column(pl.Series(cells))
    format = column.number_format() or column.date_format()
    assert format is not None
    assert Notation.of(column, format).write_exactly(value, format) == text


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (["2008-01-05", "2009-12-30"], "2008-11-03"),
        (["2008/1/5", "2009/12/30"], "2008/11/3"),
        (["05.01.2008", "30.12.2009"], "03.11.2008"),
        (["1/5/2008", "12/30/2009"], "11/3/2008"),
        (["05-01-08", "30-12-09"], "03-11-08"),
        (["5 Jan 2008", "30 Dec 2009"], "2008-11-03"),
    ],
)
def test_dates(cells: list[str], text: str) -> None:
    series = pl.Series(cells)
    format = Column(series).date_format()
    assert format is not None
    at = read_dates(pl.Series(["2008-11-03"]), format)[0][0]
    assert Notation.of(Column(series), format).write(at, format) == text
    assert read_dates(pl.Series([text]), format)[0][0] == at


def test_a_time_of_day_is_kept_and_a_typed_column_is_plain() -> None:
    series = pl.Series(["30.12.2009 08:15", "31.12.2009 09:30"])
    format = Column(series).date_format()
    assert format is not None
    notation = Notation.of(Column(series), format)
    assert notation.write(86400.0 + 3661, format) == "02.01.1970 01:01"
    assert notation.write(1e18, format).endswith("days after 1970-01-01")
    assert Notation.of(Column(pl.Series([1.0])), format) == Notation()


def _channels(column: Column, format: ValueFormat | None) -> FloatArray:
    """Return red, green and blue of cells such as "#ff8800"."""
    channels = [column.texts.str.slice(1 + 2 * k, 2) for k in range(3)]
    values = [channel.str.to_integer(base=16, strict=False) for channel in channels]
    return np.column_stack(
        [value.cast(pl.Float64).fill_null(np.nan).to_numpy() for value in values]
    )


def test_a_further_kind_takes_an_entry_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = ColumnKind(
        "colour",
        n_features=3,
        features=_channels,
        describe=lambda values: "#" + "".join(f"{round(value):02x}" for value in values),
    )
    monkeypatch.setitem(KINDS, kind.role, kind)
    frame = pl.DataFrame({"paint": ["#ff8800", "#fe0010", "", "#000020"], "size": [1.0, 2, 3, 5]})
    table = table_from_frame(frame)
    size = infer_plan(table_from_frame(frame.select("size"))).specs
    plan = ColumnPlan((ColumnSpec("paint", kind.role, "colours"), *size))
    encoder = from_file(LearnedEncoder.learn(table, plan, contaminated=True))
    matrix = encoder.matrix(table)
    np.testing.assert_array_equal(matrix[0, :4], [255, 136, 0, 0])
    assert np.isfinite(matrix).all() and matrix[2, 3] == 1
    assert encoder.coders[0].describe(matrix[1, :4]) == ("#fe0010", None)
    assert encoder.seen(table, 3, 0) == ("#000020", None)
    rows = encode(encoder, Sample.of(table))
    assert [profile.role for profile in column_profiles(rows)] == ["colour", "numeric"]
    evidence, n_cells = evidence_against(rows)
    assert (len(evidence), n_cells) == (0, 0)
    assert rows.warnings[0].startswith('Column "paint": 1 row lacks a value')


def test_expected_numbers_and_dates_are_on_the_steps_of_their_column() -> None:
    number = Notation.of(Column(pl.Series([84, 90, 1200] * 50)), NumberFormat())
    assert [number.write(value, NumberFormat()) for value in (89.4, 1000.5)] == ["89", "1000"]
    broken = Notation.of(Column(pl.Series([84.5, 90.0] * 50)), NumberFormat())
    assert broken.write(89.4, NumberFormat()) == "89.4"
    dates = Column(pl.Series([datetime(2024, 1, day) for day in range(1, 29)]))
    date = Notation.of(dates, DateFormat(has_time=True))
    assert date.write(86400.0 * 19724.5, DateFormat(has_time=True)) == "2024-01-02"


def test_numbers_that_differ_are_written_differently() -> None:
    whole, plain = Notation(whole=True), NumberFormat()
    cases = [(2.5, 2.0, "2.5"), (2.5, 3.0, "2"), (-1234.7, -1235.0, "-1234.7"), (2.0, 2.0, "2")]
    assert [whole.write(value, plain, beside) for value, beside, _ in cases] == [
        text for *_, text in cases
    ]
    assert Notation().write(0.123451, plain, 0.1235) == "0.123451"
    assert Notation(after=" kg").write(1.25004, NumberFormat(decimal=","), 1.25) == "1,25004 kg"
    assert Notation().write(0.1 + 0.2, plain, 0.3) == "0.3"  # not 0.30000000000000004


@given(st.floats(1e-3, 1e9), st.floats(1e-9, 1e3))
def test_of_two_numbers_the_one_expected_lies_where_it_is_written(value: float, gap: float) -> None:
    beside = value * (1 + gap)
    text = Notation().write(value, NumberFormat(), beside)
    assert "e" not in text or value < 1e-4
    assert abs(float(text) - value) <= (beside - value) / 5 + 1e-11 * value
