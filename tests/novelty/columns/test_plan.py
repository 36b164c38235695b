import re
from collections.abc import Sequence
from datetime import date, time
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.novelty.columns.lookup import resolve_columns
from kpca_apps.novelty.columns.plan import (
    ColumnOptions,
    ColumnPlan,
    ColumnSpec,
    infer_plan,
    inferred_spec,
)
from kpca_apps.novelty.redact import visible_notes
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.values import Column
from tests.system.model_parts import from_file

RNG_CELLS = [f"{value:.3f}" for value in np.random.default_rng(0).normal(size=40)]


def plan_of(options: ColumnOptions | None = None, **columns: Any) -> ColumnPlan:
    """Plan a table of these columns and a column that is always used."""
    table = table_from_frame(pl.DataFrame({**columns, "ok": RNG_CELLS}))
    return infer_plan(table, resolve_columns(options or ColumnOptions(), table))


def spec_of(cells: Sequence[Any] | pl.Series, **options: Any) -> ColumnSpec:
    return plan_of(ColumnOptions(**options), x=cells).specs[0]


WORDS = ["alpha", "beta", "gamma", "delta"]
CODES = [f"K{i:03d}" for i in range(40)]


@pytest.mark.parametrize(
    ("cells", "role"),
    [
        ([f"{i * 1.7:.1f}" for i in range(40)], "numeric"),
        (["0", "1"] * 20, "numeric"),
        (["1", "2", "3", "4"] * 10, "numeric"),
        (["yes", "No", "YES", "no"] * 10, "boolean"),
        (["true", "false", "", "NA"] * 10, "boolean"),
        (WORDS * 10, "categorical"),
        (["", "NA", "?", "-"] * 10, "empty"),
        (["a"] * 40, "constant"),
        (["a"] * 39 + [""], "categorical"),
        (["3.0"] * 39 + [""], "constant"),
        ([repr(1 + i * 1e-17) for i in range(40)], "constant"),
        (["0.1", repr(0.1 + 2e-17)] * 20, "constant"),
        (["1e-17", "2e-17"] * 20, "numeric"),
        (CODES, "identifier"),
        (CODES[:20] * 2, "categorical"),
        (CODES[:32] + CODES[:8], "identifier"),
        ([f"the {w} of {c} was seen" for w, c in zip(WORDS * 10, CODES, strict=True)], "text"),
        ([str(i + 7) for i in range(40)][::-1], "identifier"),
        ([str(i) for i in range(39)] + [""], "identifier"),
        ([str(2 * i) for i in range(40)], "identifier"),
        ([f"DE{i:02d} 3704 {7 * i:04d}" for i in range(40)], "identifier"),
        ([f"2008-01-{1 + i % 28}" for i in range(40)], "datetime"),
        (["2008-13-45"] + [f"2008-01-{1 + i % 28}" for i in range(39)], "datetime"),
        (["12O", "1.5"] + [str(i * i) for i in range(38)], "numeric"),
        ([date(2008, 1, 1 + i % 28) for i in range(40)], "datetime"),
        ([f"{100 + i} min" for i in range(40)], "numeric"),
        ([f"{i % 24}:{i}" for i in range(10, 50)], "numeric"),
        ([time(i % 24, i) for i in range(40)], "numeric"),
        ([f"{i} {unit}" for i in range(20) for unit in ("min", "h")], "identifier"),
        ([True, False] * 20, "boolean"),
        ([1.0, None] * 20, "constant"),
        ([True, None] * 20, "categorical"),
        ([[i, 2 * i] for i in range(40)], "identifier"),
        (pl.Series(WORDS * 10, dtype=pl.Enum(WORDS)), "categorical"),
        (pl.Series(["1.5", "2.5"] * 20).cast(pl.Decimal(10, 2)), "numeric"),
        (pl.Series([None] * 40), "empty"),
    ],
)
def test_roles(cells: Sequence[Any] | pl.Series, role: str) -> None:
    spec = spec_of(cells)
    assert spec.role == role and spec.why
    assert spec.used == (role in {"numeric", "boolean", "categorical", "datetime", "text"})


def test_counts_of_missing_and_distinct_cells() -> None:
    spec = spec_of(["1", "1.0", "x", "?"] + [str(i * i) for i in range(36)])
    assert (spec.n_missing, spec.n_distinct) == (2, 36)
    spec = spec_of(["a", " a ", "?", "b"] * 10)
    assert (spec.n_missing, spec.n_distinct) == (10, 2)


def test_a_column_that_repeats_an_earlier_one_is_left_out_unless_declared() -> None:
    other = [f"{float(cell):.4f}" for cell in RNG_CELLS]
    plan = plan_of(first=RNG_CELLS, second=other)
    assert [spec.role for spec in plan.specs] == ["numeric", "duplicate", "duplicate"]
    assert plan.specs[1].why == 'the same values as column "first"'
    kept = plan_of(ColumnOptions(numeric=("second",)), first=RNG_CELLS, second=other)
    assert kept.specs[1].role == "numeric"


def test_a_repeat_of_an_unused_column_is_used() -> None:
    plan = plan_of(ColumnOptions(label="first"), first=RNG_CELLS)
    assert [spec.role for spec in plan.specs] == ["label", "numeric"]


def test_options_win_over_rules() -> None:
    numbers = [str(i) for i in range(40)]
    assert spec_of(numbers, numeric=("x",)).role == "numeric"
    assert spec_of(numbers, categorical=("x",)).role == "categorical"
    assert spec_of(numbers, exclude=("x",)).role == "excluded"
    assert spec_of(numbers, id="x").role == "id" and spec_of(numbers, label="x").role == "label"
    assert spec_of(WORDS * 10, hide=("x",)).hidden


AMBIGUOUS = [f"0{1 + i % 9}/0{1 + i % 7}/2008" for i in range(40)]
HALF = [str(i) for i in range(28)] + ["low"] * 6 + ["high"] * 6


@pytest.mark.parametrize(
    ("cells", "options", "words"),
    [
        (AMBIGUOUS, {}, "month before day .*--dayfirst"),
        (AMBIGUOUS, {"dayfirst": True}, "day before month"),
        ([*AMBIGUOUS[:-1], "25/01/2008"], {}, None),
        (HALF, {}, '6 cells with "high" .missing. and 6 cells with "low"'),
        ([f"{i * i}%" for i in range(30)] + ["0.5"] * 10, {}, r"different units \(%, none\)"),
        (
            [f"{i % 9} {'min' if i % 3 else 'h'}" for i in range(40)],
            {},
            r'numbers with different units \("min", "h"\) are not converted',
        ),
        ([f"{i % 9}{'AB'[i % 2]}" for i in range(40)], {}, None),
        ([f"{5 + i % 6}{'abc'[i % 3]}" for i in range(40)], {}, None),
    ],
)
def test_choices_without_evidence_are_stated(
    cells: list[str], options: dict[str, Any], words: str | None
) -> None:
    notes = spec_of(cells, **options).notes
    shown = visible_notes(notes, ())
    assert len(notes) == (words is not None)
    assert words is None or re.search(words, shown[0])
    # Units are parts of cells, so the units of a hidden column are not shown.
    assert all("units (" not in note for note in visible_notes(notes, [spec_of(cells).name]))


def test_what_is_shown_of_a_hidden_column_names_no_unit() -> None:
    cells = {"a": [f"{i} qz" for i in range(1, 41)], "b": [f"{i} EUR" for i in range(1, 41)]}
    plan = infer_plan(table_from_frame(pl.DataFrame(cells)), ColumnOptions(hide=("a",)))
    hidden, other = plan.shown
    assert "qz" in str(plan.specs[0]) and "qz" not in str(hidden)
    assert other == plan.specs[1]


def test_doubtful_commas_follow_the_other_columns_and_are_stated() -> None:
    doubtful = [f"{1 + i * 7 % 40},{100 + i}" for i in range(40)]
    (note,) = spec_of(doubtful).notes
    assert '"," is read as a separator of thousands' in note
    plan = plan_of(x=doubtful, y=[f"{i},5" for i in range(40)])
    assert plan.specs[0].format is not None and plan.specs[0].why == "numbers (decimal comma)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ColumnOptions(label="spexies"), '--label names .*"spexies".*Did you mean "species"'),
        (ColumnOptions(numeric=("ok",), categorical=("ok",)), "both --categorical and --numeric"),
        (ColumnOptions(numeric=("species",)), '"species" is declared numeric but 0% of its cells'),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(
    options: ColumnOptions, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        plan_of(options, species=WORDS * 10)
    assert "\n" not in str(caught.value)


def test_tables_without_enough_rows_or_columns_are_refused() -> None:
    for n, message in ((1, "1 row of data is too few"), (2, "2 rows of data are too few")):
        with pytest.raises(InputError, match=message):
            infer_plan(table_from_frame(pl.DataFrame({"x": [1.5, 2.5][:n]})))
    with pytest.raises(InputError, match=r'no column is left .*"x" is constant'):
        infer_plan(table_from_frame(pl.DataFrame({"x": [1, 1, 1]})))


def test_a_hostile_name_stays_in_one_line() -> None:
    name = "a\nb\u202e" + "x" * 500
    with pytest.raises(InputError) as caught:
        infer_plan(table_from_frame(pl.DataFrame({name: [1, 1, 1]})))
    assert str(caught.value).isprintable() and len(str(caught.value)) < 300


def test_plans_survive_a_file() -> None:
    plan = plan_of(
        ColumnOptions(hide=("when",)),
        when=[f"0{1 + i % 9}/01/2008" for i in range(40)],
        price=[f"{i * i},5 \u20ac" for i in range(40)],
        kind=WORDS * 10,
    )
    assert from_file(plan) == plan


RNG = np.random.default_rng(0)
SPARSE = RNG.choice(10**9, 60, replace=False)
DENSE = RNG.choice(900, 300, replace=False)


def spec_of_texts(values: object, name: str = "x") -> ColumnSpec:
    texts = [str(value) for value in values]  # type: ignore[attr-defined]
    return inferred_spec(Column(pl.Series(name, texts)), None, False)


@pytest.mark.parametrize(
    ("values", "name", "reason"),
    [
        (range(7, 47), "x", "in steps of 1"),
        (range(0, 400, 10), "x", "chance gives 19 repeats"),
        (DENSE, "x", "chance gives"),
        (DENSE * 1000 + 77, "x", "chance gives"),
        ([*DENSE, DENSE[5]], "x", "repeat 1 times, where chance gives"),
        (SPARSE, "PID", "named as an identifier"),
        (SPARSE, "customerId", "named as an identifier"),
        ([f"{value:010d}" for value in SPARSE], "x", "leading zeros"),
        ([4 * 10**17 + int(value) for value in SPARSE], "x", "16 digits"),
    ],
)
def test_identifiers_are_left_out_and_say_how_to_keep_them(
    values: object, name: str, reason: str
) -> None:
    spec = spec_of_texts(values, name)
    assert (spec.role, spec.used) == ("identifier", False)
    assert reason in spec.why and "--numeric keeps it" in spec.why
    # Ignored row numbers need no note; any other ignored column may be a measurement.
    assert bool(spec.notes) == ("steps of 1" not in reason)
    assert all("--numeric" in note and reason in note for note in spec.notes)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (SPARSE, "population"),
        (SPARSE, "number"),
        (SPARSE, "number of rooms"),
        (10**9 + SPARSE, "Reynolds number"),
        (SPARSE, "paid"),
        (np.round(np.exp(RNG.normal(8, 1.5, 60))).astype(int), "income"),
        (DENSE, "year"),
        (DENSE, "finishing rank"),
        (DENSE - 400, "change"),
        (DENSE + 0.5, "x"),
        ([f"{value}%" for value in DENSE], "x"),
        (range(0, 90, 10), "dose"),
    ],
)
def test_measures_that_do_not_repeat_stay_in_the_model(values: object, name: str) -> None:
    assert spec_of_texts(values, name).role == "numeric"


LONG = [5 * 10**18 + 7 * k for k in range(200)]


@pytest.mark.parametrize(
    "cells",
    [
        LONG,
        [str(value) for value in LONG],
        [value % 50 + LONG[0] for value in LONG],
        pl.Series([2**63 + 7 * k for k in range(200)], dtype=pl.UInt64),
        pl.Series([2**70 + 7 * k for k in range(200)], dtype=pl.Int128),
        pl.Series([-value for value in LONG]),
    ],
)
def test_long_whole_numbers_are_identifiers_that_differ_in_every_digit(cells: Any) -> None:
    table = table_from_frame(pl.DataFrame({"x": cells, "y": RNG.normal(size=200)}))
    spec = infer_plan(table).specs[0]
    n_distinct = len(set(cells))
    assert (spec.role, spec.n_distinct) == ("identifier", n_distinct)
    assert re.search(rf"16 digits or more; as floats, {n_distinct} different ones become [12]\)\.$",
                     spec.notes[0])  # fmt: skip


def test_long_times_and_single_long_numbers_are_measures() -> None:
    start = 17 * 10**17
    spec = spec_of([start + 10 * (k % 20) * 10 ** (k % 8) for k in range(40)])
    assert spec.role == "identifier"
    cells = pl.Series("time", [start + 10 * k + 10**10 * (k % 5) for k in range(200)])
    spec = inferred_spec(Column(cells), None, False)
    assert (spec.role, spec.n_distinct) == ("numeric", 200)
    assert re.search("rounded; as floats, 200 different ones become [0-9]{2}\\.", spec.notes[0])
    # One long number among short ones is taken for an error. Floats are no identifiers, even if
    # they are large; the first 40 numbers of LONG round to the same float.
    assert spec_of([LONG[0], *(k * k for k in range(39))]).role == "numeric"
    assert spec_of([float(value) for value in LONG[:40]]).role == "constant"
    assert spec_of([2.0**60 * (k + 1) for k in range(40)]).role == "numeric"


@given(st.integers(0, 2**32 - 1), st.integers(30, 400), st.floats(0.3, 3), st.floats(3, 14))
def test_measures_drawn_by_chance_are_kept_even_where_none_happens_to_repeat(
    seed: int, n: int, spread: float, size: float
) -> None:
    values = np.exp(np.random.default_rng(seed).normal(size, spread, n)).astype(np.int64)
    # A draw with fewer than 1 % repeats could as well have had none: test it without its repeats.
    assert spec_of_texts(
        np.unique(values) if len(np.unique(values)) > 0.99 * n else values
    ).role in {"numeric", "categorical", "constant"}


def test_numbers_that_repeat_and_are_padded_like_codes_are_reported() -> None:
    cells = ["01067", "04103", "10115", "80331"] * 10
    spec, *_ = plan_of(plz=cells, n=[*map(str, range(40))]).specs
    assert spec.role == "numeric" and "--categorical plz" in spec.notes[0]
    declared, *_ = plan_of(ColumnOptions(categorical=("plz",)), plz=cells, n=cells).specs
    assert declared.role == "categorical" and not declared.notes


def test_the_century_of_two_digits_is_reported() -> None:
    spec = spec_of([f"{day}.05.{year}" for day in (13, 28) for year in range(30, 50)])
    assert spec.role == "datetime"
    assert 'Column "x": years of two digits are read as 1969 to 2068.' in spec.notes
    # Two-digit years a few years apart belong to one century, so nothing is ambiguous.
    assert not spec_of([f"{day}.05.{year}" for day in range(9, 29) for year in (25, 26)]).notes


def test_a_column_with_too_few_numbers_is_stated_to_be_what_it_is_taken_as() -> None:
    spec = spec_of(["1", "2", "3", "4", "don't know"] * 8)
    assert spec.role == "categorical" and "taken as categorical" in spec.notes[0]


def test_codes_that_a_formula_protects_are_padded_codes() -> None:
    codes = np.random.default_rng(3).choice(9000, 120, replace=False)
    frame = pl.DataFrame({"article": [f'="{code:05d}"' for code in codes], "price": codes * 0.5})
    article, _ = infer_plan(table_from_frame(frame)).specs
    assert article.role == "identifier" and "leading zeros" in article.why


@pytest.mark.parametrize(
    ("form", "role"), [("A{}", "text"), ("555-{}", "text"), ("{}", None), ("-{}", None)]
)
def test_identifiers_with_a_form_are_texts_where_no_other_column_is_left(
    form: str, role: str | None
) -> None:
    table = table_from_frame(pl.DataFrame({"x": [form.format(1000 + k) for k in range(60)]}), "t")
    if role is None:
        with pytest.raises(InputError, match="no column is left"):
            infer_plan(table)
    else:
        assert [spec.role for spec in infer_plan(table).used] == [role]
