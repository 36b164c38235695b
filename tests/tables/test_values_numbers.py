"""Numbers as people write them, compared with the original values."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.tables import values
from kpca_apps.tables.values import Column, NumberFormat, infer_number_format, read_numbers
from tests.quick import quick


def read(cells: list[str | None], prefer_comma: bool = False) -> list[float | None]:
    series = pl.Series(cells, dtype=pl.String)
    format = infer_number_format(series, prefer_comma)
    assert format is not None
    return [None if np.isnan(value) else value for value in read_numbers(series, format)]


@given(
    numbers=st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=20),
    marks=st.sampled_from([(".", ","), (",", "."), (",", " "), (",", "\u202f"), (".", "'")]),
)
@settings(max_examples=60, deadline=None)
def test_numbers_written_with_two_decimals_and_thousands_come_back(
    numbers: list[int], marks: tuple[str, str]
) -> None:
    decimal, thousands = marks
    table = str.maketrans({",": thousands, ".": decimal})
    written = [f"{number / 100:,.2f}".translate(table) for number in numbers]
    assert read(written) == [number / 100 for number in numbers]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_plain_floats_come_back_to_the_bit(numbers: list[float]) -> None:
    assert read([repr(number) for number in numbers]) == numbers


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["12 %", "3%", "\u22125 %"], [12, 3, -5]),
        (["$5", "-$6", "$-7", "(8 $)", "9 \u20ac"], [5, -6, -7, -8, 9]),
        (["USD 1,200.50", "3"], [1200.5, 3]),
        (["(43,95)", "12,50", "(1.043,95)"], [-43.95, 12.5, -1043.95]),
        (["(43.95)", "(120)", "(1,200)", "7"], [-43.95, -120, -1200, 7]),
        (["(1,234.50)", "(12.25)"], [-1234.5, -12.25]),
        (["($43.95)", "(\u20ac 12)"], [-43.95, -12]),
        (["12,50", "8,25", *["1,75"] * 30, "(3,7)"], [12.5, 8.25, *[1.75] * 30, None]),
        (["1e3", "2E-1", "+4", ".5", "6."], [1000, 0.2, 4, 0.5, 6]),
        (["1\u00a0234,5", "2"], [1234.5, 2]),
        (["12", "12O", "1l"], [12, None, None]),
        (["1", "inf", "-Infinity", "nan", "1e999"], [1, None, None, None, None]),
        (["1.5", "1,23,4", "1_000"], [1.5, None, None]),
        (["5", None], [5, None]),
        (["109 min", "95min", "9 min", "100", "2 h"], [109, 95, 9, 100, None]),
        (["3,5 kg", "4 kg", "1.200,25 kg"], [3.5, 4, 1200.25]),
        (["1 year", "2 years", "10 years", "12 oz."], [1, 2, 10, None]),
        (["80 sq ft", "1,200 sq ft"], [80, 1200]),
        (["21 \u00b0C", "-3.5 \u00b0C", "12 \u00b5m"], [21, -3.5, None]),
        (["1.5e3 kg", "2 kg"], [1500, 2]),
    ],
)
def test_signs_units_and_typing_errors(cells: list[str], values: list[float]) -> None:
    assert read(cells) == values


@pytest.mark.parametrize(
    ("cells", "hours"),
    [
        (["14:05", "9:30", "0:00", "1405", "14:60"], [14 + 5 / 60, 9.5, 0, None, None]),
        (["14:05:30", "36:00:00", "9:30"], [14 + 5.5 / 60, 36, 9.5]),
        (["2:05 PM", "12:30 a.m.", "12:00pm", "13:00 pm"], [14 + 5 / 60, 0.5, 12, None]),
    ],
)
def test_clock_times_are_read_as_seconds(cells: list[str], hours: list[float | None]) -> None:
    seconds = [None if value is None else pytest.approx(3600 * value) for value in hours]
    assert read(cells) == seconds


@pytest.mark.parametrize(
    "cells",
    [
        ["1st", "2nd", "3rd", "4th", "21st"],
        # Ambiguous: minutes or hours.
        ["59:30", "1:02:10", "58:12"],
        ["1a", "a1", "b 2"],
        # Letters may mean thousands or millions, or name flats or seats.
        ["5k", "7k", "6k"],
        ["1.5 Mio", "2 Mio", "3 Mio"],
        ["12A", "13A", "14A"],
        ["5'10", "6'1"],
        # Pairs, points, ranges, citations: their brackets are not minus signs.
        ["(43,95)", "(3,7)", "(12,5)", "(20,80)"],
        ["(43,95)", "(12,34)", "(55,10)"],
        ["(43,95)", "(3,7)", "8", "9,5"],
        ["(43.95, 1.5)", "(3.1, 7.0)"],
        ["(3;7)", "(1;2)"],
        ["(1,5]", "(5,9]"],
        ["[43,95]", "(3,7,9)"],
        ["(1)", "(2)", "(12)"],
    ],
)
def test_what_is_no_number_with_a_unit_is_not_read(cells: list[str]) -> None:
    assert infer_number_format(pl.Series(cells)) is None


def test_ambiguous_thousands_are_marked_and_settled_by_the_table() -> None:
    cells = pl.Series(["1,234", "56,789"])
    alone, among_commas = infer_number_format(cells), infer_number_format(cells, prefer_comma=True)
    assert alone is not None and alone.ambiguous
    assert among_commas is not None
    assert read_numbers(cells, alone).tolist() == [1234, 56789]
    assert read_numbers(cells, among_commas).tolist() == [1.234, 56.789]


def test_a_dot_before_three_digits_is_thousands_only_among_decimal_commas() -> None:
    assert read(["1.234", "56.789"]) == [1.234, 56.789]
    assert read(["1.234", "56.789"], prefer_comma=True) == [1234, 56789]
    assert read(["1.5", "56.789"], prefer_comma=True) == [1.5, 56.789]


@pytest.mark.parametrize("other", ["0,123", "1,5", "1234,567"])
def test_one_cell_that_cannot_be_thousands_settles_the_comma(other: str) -> None:
    format = infer_number_format(pl.Series(["1,234", other]))
    assert format is not None
    assert (format.decimal, format.ambiguous) == (",", False)


def test_text_has_no_number_format() -> None:
    assert infer_number_format(pl.Series(["a", "b-1", "1.2.3"])) is None
    assert infer_number_format(pl.Series([None], dtype=pl.String)) is None


def test_description_names_what_is_unusual() -> None:
    assert NumberFormat().describe() == ""
    format = infer_number_format(pl.Series(["1.234,5 \u20ac", "2 \u20ac"]))
    assert format is not None
    assert format.describe() == 'decimal comma, thousands separated by ".", written with \u20ac'


ODD = ["", " 1", "1 ", "+1", "1.", ".5", "nan", "inf", "-Infinity", "1e999", "0x10", "1_0", "-0"]


@pytest.mark.parametrize("odd", [*ODD, "1,0", "--1", "1e", "e5", "1e-400", "00012", None])
def test_many_cells_read_as_few_do(odd: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [f"{value:.17g}" for value in np.random.default_rng(0).normal(size=50) * 1e10]
    texts = pl.Series([*cells, odd], dtype=pl.String)
    few = values.finite(texts)
    monkeypatch.setattr(values, "_MANY_CELLS", 1)
    np.testing.assert_array_equal(values.finite(texts), few)
    np.testing.assert_array_equal(few[:-1], [float(cell) for cell in cells])


@pytest.mark.parametrize(
    ("learned", "cells", "values"),
    [
        (["15,80 \u20ac", "3"], ["99.999,00 \u20ac", "-1.234.567,5"], [99999, -1234567.5]),
        (["15,80 \u20ac", "3"], ["1.234", "12.34,5"], [None, None]),
        (["15.80", "$3.5"], ["99,999.00", "$1,234.5", "1,234"], [99999, 1234.5, None]),
        (["15", "3"], ["1.234,00", "1,234.00"], [None, 1234]),
        # Thousands separators group three digits.
        (["1.500,5", "3"], ["8.94956", "8.949"], [None, 8949]),
    ],
)
def test_a_number_large_enough_for_a_separator_is_read_though_those_learned_were_not(
    learned: list[str], cells: list[str], values: list[float | None]
) -> None:
    format = infer_number_format(pl.Series(learned))
    assert format is not None
    read = read_numbers(pl.Series([*learned, *cells]), format)[len(learned) :]
    assert [None if np.isnan(value) else value for value in read] == values


MARKED = {
    "a minus behind": ("{}-", -1),
    "a minus behind, with a unit": ("EUR {}-", -1),
    "brackets behind a unit": ("$({})", -1),
    "brackets with spaces": ("( {} )", -1),
    "credit": ("{} CR", -1),
    "debit": ("{} DR", 1),
    "a limit": ("<{}", 1),
    "a limit with an equals sign": ("<={}", 1),
    "a limit as one sign": ("\u2265 {}", 1),
    "an open class": ("{}+", 1),
    "about": ("ca. {}", 1),
    "margin": ("+/-{}", 1),
    "margin in one sign": ("\u00b1 {}", 1),
    "a footnote": ("{}*", 1),
    "a flag in brackets": ("{} (H)", 1),
    "a flag in front": ("[c] {}", 1),
    "a guard": ("'-{}", -1),
    "a formula": ('="{}"', 1),
    "both": ("<{}*", 1),
}


@pytest.mark.parametrize("share", quick([0.05, 0.2, 0.6], 0.2))
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("mark", MARKED)
def test_a_marked_number_is_read_without_its_mark(mark: str, decimal: str, share: float) -> None:
    rng = np.random.default_rng(3)
    numbers, marked = rng.lognormal(6, 0.5, 120).round(2), rng.random(120) < share
    pattern, sign = MARKED[mark]
    texts = [f"{number:,.2f}" for number in numbers]
    if decimal == ",":
        texts = [text.translate(str.maketrans(".,", ",.")) for text in texts]
    cells = [pattern.format(t) if m else t for t, m in zip(texts, marked, strict=True)]
    column = Column(pl.Series(cells))
    format = column.number_format()
    assert format is not None
    readings = column.read(format)
    np.testing.assert_array_equal(readings.values, np.where(marked, sign * numbers, numbers))
    if pattern[-1] != ")":  # brackets do not count as a mark
        assert {*column.beside(format)[0].values()} == {marked.sum()}


TOKENS = ("<LOD", "n.d.", "BDL", ":", "..", "[c]", "(X)", "*****", "#REF!", "#DIV/0!")


@pytest.mark.parametrize("n", [2, 20, 60])
@pytest.mark.parametrize("token", [*TOKENS, "n/a (see note)"])
def test_a_text_that_recurs_among_numbers_is_a_missing_value(token: str, n: int) -> None:
    cells = [f"{k * k / 8:.3f}" for k in range(40)] + [token] * n
    column = Column(pl.Series(cells))
    format = column.number_format()
    assert format is not None and format.tokens == ((token,) if n > 5 else ())
    readings = column.read(format)
    assert (readings.missing.sum(), readings.unreadable.sum()) == ((n, 0) if n > 5 else (0, n))


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "2", "2-", "2+", "3", "3-"] * 10,  # grades
        ["1", "2", "2-", "3", "3-", "4"] * 10,
        ["<5", ">5", "<10", ">10", "5"] * 10,  # classes
        ["3", "3*", "4", "4*", "5"] * 10,  # stars
        [f"{k}{'-' * (k % 3 == 0)}" for k in range(1500, 1600)],  # part numbers
        [f"{k}{'HSABC'[k % 5]}" for k in range(5, 60)],  # seats
        [*(f"{k} mg" for k in range(90, 200)), *(f"{k} ug" for k in range(95, 125))],
        [f"{k / 8} {'NS'[k % 2]}" for k in range(90, 200)],  # latitudes
        [f"{k} {'ab'[k % 2]}" for k in range(1, 90)],  # house numbers
        [*(f"{k}" for k in range(100, 180)), *(f"{k}(K)" for k in range(5, 25))],
        [f"#{k}" for k in range(300, 360)],
        [*(f"{k} min" for k in range(90, 120)), *["1 h", "2 h"] * 5],  # another unit of time
        [*(f"{k}" for k in range(90, 120)), *["1 h", "2 h"] * 5],
        ["1", "2", "3", "4", "don't know"] * 8,  # a scale
        [f"{k}" for k in range(90, 130)] + [f"code {k}" for k in range(20)],
        [f"{k}" for k in range(20)] + list("ABCDEFGHIJ") * 4,
        [f"{'ABCD'[k % 4]}{k}" for k in range(40)] + [f"{k}" for k in range(20)],
    ],
)
def test_what_is_no_mark_keeps_a_cell_from_being_a_number(cells: list[str]) -> None:
    column = Column(pl.Series(cells))
    format = column.number_format()
    assert format is None or column.read(format).share_read < 0.9


@pytest.mark.parametrize("side", ["Cr", "Dr", "H", "S"])
def test_one_side_of_an_account_alone_is_no_sign(side: str) -> None:
    column = Column(pl.Series([f"{k} {side}" if k % 3 else f"{k}" for k in range(90, 130)]))
    assert np.nanmin(column.read(column.number_format()).values) > 0


@pytest.mark.parametrize(("side", "later"), [("CR", [9, -9, -9.5, -9]), ("DR", [-9, 9, 9.5, 9])])
def test_what_is_not_on_the_side_of_all_amounts_is_on_the_other(
    side: str, later: list[float]
) -> None:
    column = Column(pl.Series([f"{k / 4:.2f} {side}" for k in range(90, 130)]))
    format = column.number_format()
    assert np.array_equal(column.read(format).values, [k / 4 for k in range(90, 130)])
    of_later = Column(pl.Series(["9.00 CR", "9.00", "9.5", "9.00 DR"]))
    assert of_later.read(format).values.tolist() == later


def test_letters_behind_some_amounts_are_flags() -> None:
    cells = [f"{k / 8:.1f}{['', '', '', ' b', '', ' p', '', ' e'][k % 8]}" for k in range(90, 190)]
    column = Column(pl.Series(cells))
    readings = column.read(column.number_format())
    assert np.array_equal(readings.values, [float(cell.split()[0]) for cell in cells])


@pytest.mark.parametrize("units", ["gl", "hd", "cf", "sh"])
def test_letters_that_are_units_are_no_flags(units: str) -> None:
    cells = [f"{k / 8:.1f}{f' {units[k % 2]}' if k % 7 < 2 else ''}" for k in range(90, 190)]
    column = Column(pl.Series(cells))
    readings = column.read(column.number_format())
    assert np.isnan(readings.values[[" " in cell for cell in cells]]).all()


def test_amounts_without_credit_behind_them_are_of_the_other_side() -> None:
    cells = [f"{k / 8:.2f}{' CR' if k % 20 else ''}" for k in range(90, 150)]
    column = Column(pl.Series(cells))
    readings = column.read(column.number_format())
    assert np.array_equal(readings.values < 0, ["CR" in cell for cell in cells])
