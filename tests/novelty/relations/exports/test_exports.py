"""Exported rules find the same rows as `check`, for any column names."""

import ast
import os
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import yaml

from kpca_apps import find_rules
from kpca_apps.novelty.relations.exports.cells import Dialect
from kpca_apps.novelty.relations.exports.pandera_schema import _marks, rules_as_pandera
from kpca_apps.novelty.relations.exports.sql import rules_as_dqx, rules_as_sql
from kpca_apps.novelty.relations.rule import (
    AnyRule,
    Determines,
    EmptyUnless,
    HeldRule,
    HeldRules,
    Order,
    RuleColumn,
    Sorted,
    Unique,
    Within,
)
from kpca_apps.novelty.relations.sentences import phrase
from kpca_apps.tables.values import MARKS, Column, DateFormat, NumberFormat
from tests.hostile.tables import CELLS, NAMES
from tests.novelty.relations.exports.engines import (
    ENGINES,
    Broken,
    Given,
    by_pandera,
    by_sql,
    differences,
)
from tests.novelty.relations.ruled import as_texts, held, mixed_cells, ruled_frame

FRAMES = {"typed": ruled_frame(), "texts": as_texts(ruled_frame())}


@pytest.fixture(scope="module", params=FRAMES)
def ruled(request: pytest.FixtureRequest) -> tuple[pl.DataFrame, HeldRules]:
    frame = FRAMES[request.param]
    return frame, held(frame)


def broken(found: Broken, rules: HeldRules) -> Broken:
    """Return the rows that break each exported rule according to `check`."""
    return [
        None if rows is None else held.broken for rows, held in zip(found, rules.rules, strict=True)
    ]


def test_the_table_breaks_every_rule(ruled: tuple[pl.DataFrame, HeldRules]) -> None:
    assert [of.rule for of in ruled[1].rules if not 0 < of.n_broken <= of.n_rows] == []


def left_out(given: Given, found: list[Broken]) -> list[set[str]]:
    """Return, for each table, the rules that are not exported."""
    return [
        {
            phrase(held.rule, rules.by_name)
            for held, rows in zip(rules.rules, broken, strict=True)
            if rows is None
        }
        for (_, rules), broken in zip(given, found, strict=True)
    ]


# Rules that are not exported for typed tables: they read numbers as text, and each program formats
# the numbers differently.
AS_TEXT = {"number has the form 999", 'sex is empty unless net is "1e-07"'}


@pytest.mark.parametrize("engine", ["DuckDB", "pandera"])
def test_the_same_rows_are_found_whatever_the_cells_are(engine: str) -> None:
    frames = [(frame, frame) for frame in FRAMES.values()]
    mixed = [(mixed_cells(frame), frame) for frame in FRAMES.values()]
    given = [(frame, held(frame, like=like)) for frame, like in (*frames, *mixed)]
    found = ENGINES[engine](given)
    for (_, rules), rows in zip(given, found, strict=True):
        assert rows == broken(rows, rules)
    assert left_out(given, found) == [AS_TEXT, set()] * 2


@pytest.mark.release
@pytest.mark.parametrize("engine", ENGINES)
def test_each_kind_of_cell_breaks_the_same_rules(engine: str) -> None:
    if engine == "dqx" and "KPCA_DQX" not in os.environ:
        pytest.skip("KPCA_DQX names no Python that has dqx")
    counts, named = differences(engine)
    assert named == [] and counts["same"] > 1_000


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (["1,234", "12,500", "3,500", "7"], ["1,235", "1,750", "4,000", "8"]),
        (["1.234,5", "12.500", "3,5", "7,0"], ["1.234,75", "1.750,25", "4", "8"]),
        (["1 234,5 kg", "12 500 kg", "3,5 kg", "7 kg"], ["1 235 kg", "1 750 kg", "4 kg", "8 kg"]),
        (["-1'234", "12'500.5", "3'500", "7"], ["1'235", "1'750.25", "4'000", "8"]),
    ],
)
def test_thousands_separators_in_text_are_read_in_sql(low: list[str], high: list[str]) -> None:
    frame = pl.DataFrame({"low": low * 10, "high": high * 10})
    rules = held(frame, (Order(columns=("low", "high")),))
    second = tuple(range(2, 41, 4))
    assert [held.broken for held in rules.rules] == by_sql([(frame, rules)])[0] == [second]
    assert rules_as_sql(rules, "t").replace("\n", "").isprintable()
    # A database may have stored the cells as numbers.
    cells = [Column(frame[name]).read(rules.by_name[name].numbers).values for name in frame.columns]
    assert by_sql([(pl.DataFrame(cells, ["low", "high"]), rules)]) == [[second]]


def test_unusual_cells_are_read_by_pandera_and_dates_noted_in_sql() -> None:
    frame = pl.DataFrame(
        {
            "low": ["1.234,5 €", "12,5 €", "3,5 €", "7,0 €"] * 10,
            "high": ["1.234,75 €", "1,75 €", "4,0 €", "8,0 €"] * 10,
            "from": ["13/02/2020", "01/03/2020", "05/04/2020", "20/05/2020"] * 10,
            "to": ["01/03/2020", "13/02/2020", "06/04/2020", "21/05/2020"] * 10,
            "open": ["9:05", "14:00", "8:30", "10:15"] * 10,
            "close": ["17:30", "13:00", "16:05", "18:00"] * 10,
        }
    )
    orders = (("low", "high"), ("from", "to"), ("open", "close"))
    rules = held(frame, tuple(Order(columns=pair) for pair in orders))
    second = tuple(range(2, 41, 4))
    assert [held.broken for held in rules.rules] == [second] * 3
    assert by_pandera([(frame, rules)]) == [[second] * 3]
    assert "are to be dates in the database" in rules_as_sql(rules, "t")
    assert "\n-- from, to.\n" in rules_as_sql(rules, "t")
    assert by_sql([(frame, rules)]) == [[second, (), second]]
    point = pl.col("low", "high").str.replace(".", "", literal=True).str.replace(",", ".")
    read = frame.select(
        point.str.strip_suffix(" €").cast(pl.Float64),
        pl.col("from", "to").str.to_date("%d/%m/%Y"),
        pl.col("open", "close").str.to_time("%H:%M"),
    )
    rules = held(read, tuple(Order(columns=pair) for pair in orders))
    assert by_sql([(read, rules)]) == [[second] * 3]


def test_no_name_or_value_ends_what_quotes_it() -> None:
    other = "b"
    cells = {name: [1.0, 5.0, None, 7.0] for name in NAMES}
    frame = pl.DataFrame({**cells, other: ["x", CELLS[11], "y", "x"]})
    values = (*CELLS[:11], "x")
    kinds: list[AnyRule] = []
    for name in NAMES:
        kinds += [
            Within(columns=(name,), low=2.0),
            EmptyUnless(columns=(name, other), values=values),
            Unique(columns=(other, name)),
            Determines(columns=(other, name)),
        ]
    numbers = (RuleColumn(name, numbers=NumberFormat(), typed=True) for name in NAMES)
    columns, some = (*numbers, RuleColumn(other)), tuple(HeldRule(rule, 4, 1) for rule in kinds)
    rules = HeldRules("t", 4, columns, some)
    rows = [(1,), (2,), (), (1, 4)] * len(NAMES)
    assert by_sql([(frame, rules)]) == by_pandera([(frame, rules)]) == [rows]
    checks = yaml.safe_load(rules_as_dqx(rules))
    texts = [item["check"]["arguments"]["expression"] for item in checks]
    assert len(texts) == len(kinds)
    for name, own in zip(NAMES, zip(*[iter(texts)] * 4, strict=True), strict=True):
        assert all(name.replace("`", "``") in text for text in own)
        named = replace(rules, table=name)
        ast.parse(rules_as_pandera(named))
        assert len(yaml.safe_load(rules_as_dqx(named))) == len(kinds)


def test_names_that_queries_use_are_names_of_columns_too() -> None:
    names = ["c1", "c2", "C3", "cc1", "v", "place", "above", "below", "n", "cells", "is_high"]
    frame = pl.DataFrame({name: [1, 1, 3, 2, 5, 1] for name in names}).with_columns(c2=7, cells=2)
    kinds = (
        Determines(columns=("c2", "c1")),
        Unique(columns=("C3", "n")),
        Unique(columns=("cc1", "c1")),
        *(Sorted(columns=(name,)) for name in names),
    )
    rules = held(frame, kinds)
    assert by_sql([(frame, rules)]) == [[held.broken for held in rules.rules]]
    assert sum(held.n_broken > 0 for held in rules.rules) >= 10


# Structure of a check, and arguments of its function, from dqx's documentation.
CHECK = {"name": str, "criticality": str, "check": dict}
ARGUMENTS = {"expression": str, "msg": str, "negate": bool}


def test_checks_of_dqx_follow_its_schema() -> None:
    rules = held(FRAMES["texts"])
    text = rules_as_dqx(rules)
    checks = yaml.safe_load(text)
    for item in checks:
        assert {key: type(value) for key, value in item.items()} == CHECK
        assert item["criticality"] in ("warn", "error")
        assert {*item["check"]} == {"function", "arguments"}
        assert item["check"]["function"] == "sql_expression"
        arguments = item["check"]["arguments"]
        assert {key: type(value) for key, value in arguments.items()} == ARGUMENTS
        assert arguments["negate"]
    in_order = [held for held in rules.rules if isinstance(held.rule, Sorted)]
    of_times = [held for held in rules.rules if "open" in held.rule.columns]
    assert text.count(": left out, as the rows of Spark have no order\n") == len(in_order) == 2
    assert text.count(": left out, as Spark has no times of day\n") == len(of_times) == 1
    rest = [held for held in rules.rules if held not in (*in_order, *of_times)]
    names = [phrase(held.rule, rules.by_name) for held in rest]
    assert [check["name"] for check in checks] == names


def test_rules_of_six_digit_dates_are_left_out_where_nothing_reads_these() -> None:
    days = [date(2024, 1 + k % 12, 1 + k % 28) for k in range(60)]
    sent = [day + timedelta(days=1 + k % 5) for k, day in enumerate(days)]
    columns = {"order date": days, "ship date": sent}
    written = {name: [f"{day:%d%m%y}" for day in values] for name, values in columns.items()}
    rules = find_rules(pl.DataFrame(written))
    assert [held.rule for held in rules.rules if isinstance(held.rule, Order)]
    for export in (rules.to_pandera, rules.to_dqx, rules.to_sql):
        assert "left out, as dates written DDMMYY, of order date, are not read" in export()


def test_no_rules_are_empty_lists() -> None:
    none = HeldRules("t", 3, (), ())
    assert yaml.safe_load(rules_as_dqx(none)) == []
    frame = pl.DataFrame({"number": range(9)})
    assert yaml.safe_load(rules_as_dqx(held(frame, (Sorted(columns=("number",)),)))) == []
    assert rules_as_sql(none, "t").count("SELECT") == 0
    assert by_pandera([(frame, none)]) == [[]]


def test_index_labels_may_repeat_for_the_rules_of_rows_alike() -> None:
    """The exported `unique` and `determines` mark the right rows even if index labels repeat."""
    frame = pl.DataFrame({"a": [1, 1, 2, None], "b": ["x", "y", "z", "z"]})
    names = helpers(held(frame, (Unique(columns=("a",)), Determines(columns=("a", "b")))))
    cells = frame.to_pandas().set_index(pd.Index([7, 7, 7, 7]))
    assert names["unique"](names["numbers"](cells["a"])).tolist() == [False, False, True, True]
    keys = names["numbers"](cells["a"]), names["texts"](cells["b"])
    assert names["determines"](*keys).tolist() == [False, False, True, True]


def helpers(rules: HeldRules) -> dict[str, Any]:
    """Return the helpers of the exported schema, without importing pandera."""
    names: dict[str, Any] = {}
    source = rules_as_pandera(rules).partition("schema = ")[0]
    exec(source.replace("import pandera.pandas as pa", ""), names)
    return names


PIECES = (
    *"0159.,+-\u2212%$\u20ac ()eE\t_d", " 12:45", ":59", ":07.5", "pm", "Z", "+02", "-0530", "USD",
    "2020-02-2", "0000/1/1", "9.1.", "May ", "1, 1999", "/", "T1:30", "nan", "\x85",
)  # fmt: skip


def test_any_text_is_the_same_number_date_and_time() -> None:
    """Exported code reads texts as `Column` does; code for DuckDB reads fewer dates and times."""
    rng = np.random.default_rng(3)
    texts = ["".join(rng.choice(PIECES, 1 + n % 5)) for n in range(10_000)]
    column = Column(pl.Series("cells", texts))
    formats = NumberFormat(), DateFormat(day_first=True), NumberFormat(clock=True)
    due = [column.read(format).values for format in formats]
    assert min(np.count_nonzero(~np.isnan(values)) for values in due) > 50
    names = helpers(HeldRules("t", 0, (), ()))
    cells = pd.Series(texts, dtype="str")
    read = names["numbers"](cells), names["dates"](cells, dayfirst=True), names["clock"](cells)
    np.testing.assert_array_equal(read, due)
    assert [*names["texts"](cells).replace({pd.NA: None})] == column.texts.to_list()
    kinds = "number_of_text", "date_of_text", "clock_of_text", "text"
    with duckdb.connect() as database:
        database.register("given", pl.DataFrame({"cells": texts}).to_arrow())
        database.execute(Dialect().macros("".join(f"kpca_{kind}(" for kind in kinds)))
        called = ", ".join(f"kpca_{kind}(cells)" for kind in kinds)
        *columns, written = zip(
            *database.execute(f"SELECT {called} FROM given").fetchall(), strict=True
        )
    assert [*written] == column.texts.to_list()
    numbers, dates, times = np.array(columns, dtype=np.float64)
    np.testing.assert_array_equal(numbers, due[0])
    for values, here in ((dates, due[1]), (times, due[2])):
        np.testing.assert_array_equal(values, np.where(np.isnan(values), np.nan, here))


def test_pandera_reads_numbers_without_their_marks() -> None:
    rng = np.random.default_rng(4)
    pieces = (
        *"0159.,+-<*HS'\"", ">=", " p", "CR", " DR", "ca. ", "(b)", '="',
    )  # fmt: skip
    texts = ["".join(rng.choice(pieces, 1 + n % 5)) for n in range(12_000)]
    format = NumberFormat(",", ".", marks=(*MARKS, "p"), word="kg")
    due = Column(pl.Series("cells", texts)).read(format).values
    assert np.count_nonzero(~np.isnan(due)) > 1_000
    names = helpers(HeldRules("t", 0, (), ())) | {"cells": pd.Series(texts, dtype="str")}
    np.testing.assert_array_equal(eval(f"numbers(cells, {', '.join(_marks(format))})", names), due)
