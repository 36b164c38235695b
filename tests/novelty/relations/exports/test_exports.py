"""What is exported finds the same rows as `check` does, whatever the columns are called."""

from __future__ import annotations

import ast
import json
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.novelty.relations.checking import Cells, check, code_forms
from kpca_apps.novelty.relations.exports.dqx import rules_as_dqx
from kpca_apps.novelty.relations.exports.pandera_schema import rules_as_pandera
from kpca_apps.novelty.relations.exports.sql import broken_rows, rules_as_sql
from kpca_apps.novelty.relations.rule import (
    AnyRule,
    Code,
    Determines,
    EmptyUnless,
    Equal,
    HeldRule,
    Order,
    PositiveOnlyIf,
    Product,
    Sorted,
    Unique,
    Within,
)
from kpca_apps.novelty.relations.rules import HeldRules, RuleColumn, columns_of
from kpca_apps.novelty.relations.sentences import phrase
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.values import NumberFormat
from tests.hostile.tables import CELLS, NAMES
from tests.novelty.relations.ruled import as_texts, held, ruled_frame

FRAMES = {"typed": ruled_frame(), "texts": as_texts(ruled_frame())}


@pytest.fixture(scope="module", params=FRAMES)
def ruled(request: pytest.FixtureRequest) -> tuple[pl.DataFrame, HeldRules]:
    frame = FRAMES[request.param]
    return frame, held(frame)


def by_sql(frame: pl.DataFrame, rules: HeldRules) -> list[tuple[int, ...]]:
    """The rows that break each rule, from 1, as DuckDB finds them."""
    with duckdb.connect() as database:
        database.register("given", frame.to_arrow())
        database.execute('CREATE TABLE "a ""b" AS SELECT * FROM given')
        found = []
        for of in rules.rules:
            where = broken_rows(of.rule, rules.by_name, 'a "b')
            rows = database.execute(f'SELECT rowid + 1 FROM "a ""b" WHERE {where}').fetchall()
            found.append(tuple(sorted(row for (row,) in rows)))
    return found


# In a process of its own, as a user would: pandera changes how others read times with zones.
VALIDATE = """
import json, pickle, sys
import pandera.errors
schema, frame = pickle.load(sys.stdin.buffer)
names, cases = {}, []
exec(compile(schema, "schema.py", "exec"), names)
try:
    names["schema"].validate(frame, lazy=True)
except pandera.errors.SchemaErrors as error:
    found = error.failure_cases
    cases = [*zip(found["check"], found["index"].astype(int).tolist())]
print(json.dumps(cases))
"""


def by_pandera(frame: pd.DataFrame, rules: HeldRules) -> list[tuple[int, ...]]:
    """The rows that break each rule, from 1, as the schema finds them."""
    given = pickle.dumps((rules_as_pandera(rules), frame))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", VALIDATE], input=given, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    cases = json.loads(done.stdout)
    said = [phrase(of.rule, rules.by_name) for of in rules.rules]
    assert {check for check, _ in cases} <= {*said}
    places = [{place for check, place in cases if check == one} for one in said]
    return [tuple(place + 1 for place in sorted(of)) for of in places]


def test_the_table_breaks_every_rule(ruled: tuple[pl.DataFrame, HeldRules]) -> None:
    assert [of.rule for of in ruled[1].rules if not 0 < of.n_broken <= of.n_rows] == []


def test_sql_finds_the_same_rows(ruled: tuple[pl.DataFrame, HeldRules]) -> None:
    frame, rules = ruled
    assert by_sql(frame, rules) == [of.broken for of in rules.rules]


def test_pandera_finds_the_same_rows(ruled: tuple[pl.DataFrame, HeldRules]) -> None:
    frame, rules = ruled
    assert by_pandera(frame.to_pandas(), rules) == [of.broken for of in rules.rules]


def test_the_script_selects_the_rows_under_their_sentences() -> None:
    frame, rules = FRAMES["typed"], held(FRAMES["typed"])
    script = rules_as_sql(rules, "ruled")
    with duckdb.connect() as database:
        database.register("given", frame.to_arrow())
        database.execute("CREATE TABLE ruled AS SELECT * FROM given")
        counts = [len(database.execute(one).fetchall()) for one in script.split(";\n")[:-1]]
    assert counts == [of.n_broken for of in rules.rules]
    assert "\n-- start <= end in 1" in script


def test_cells_written_otherwise_are_read_by_pandera_and_told_of_in_sql() -> None:
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
    assert [of.broken for of in rules.rules] == [second] * 3
    assert by_pandera(frame.to_pandas(), rules) == [second] * 3
    assert "are to be numbers or dates" in rules_as_sql(rules, "t")
    assert ": low, high, from, to." in rules_as_sql(rules, "t")
    with pytest.raises(duckdb.ConversionException):
        by_sql(frame, rules)
    point = pl.col("low", "high").str.replace(".", "", literal=True).str.replace(",", ".")
    read = frame.select(
        point.str.strip_suffix(" €").cast(pl.Float64),
        pl.col("from", "to").str.to_date("%d/%m/%Y"),
        pl.col("open", "close").str.to_time("%H:%M"),
    )
    assert by_sql(read, held(read, tuple(Order(columns=pair) for pair in orders))) == [second] * 3


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
    columns, of = (*numbers, RuleColumn(other)), tuple(HeldRule(rule, 4, 1) for rule in kinds)
    rules = HeldRules("t", 4, columns, of)
    broken = [(1,), (2,), (), (1, 4)] * len(NAMES)
    assert by_sql(frame, rules) == broken
    assert by_pandera(frame.to_pandas(), rules) == broken
    checks = yaml.safe_load(rules_as_dqx(rules))
    texts = [one["check"]["arguments"]["expression"] for one in checks]
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
    assert by_sql(frame, rules) == [of.broken for of in rules.rules]
    assert sum(of.n_broken > 0 for of in rules.rules) >= 10


# What dqx's documentation says of a check, and of the arguments of the one function used here.
CHECK = {"name": str, "criticality": str, "check": dict}
ARGUMENTS = {"expression": str, "msg": str, "negate": bool}


def test_checks_of_dqx_follow_its_schema() -> None:
    rules = held(FRAMES["texts"])
    text = rules_as_dqx(rules)
    checks = yaml.safe_load(text)
    for one in checks:
        assert {key: type(value) for key, value in one.items()} == CHECK
        assert one["criticality"] in ("warn", "error")
        assert {*one["check"]} == {"function", "arguments"}
        assert one["check"]["function"] == "sql_expression"
        arguments = one["check"]["arguments"]
        assert {key: type(value) for key, value in arguments.items()} == ARGUMENTS
        assert arguments["negate"]
    in_order = [of for of in rules.rules if isinstance(of.rule, Sorted)]
    assert len(checks) == len(rules.rules) - len(in_order)
    assert text.count(": left out, as the rows of Spark have no order\n") == len(in_order)
    names = [phrase(of.rule, rules.by_name) for of in rules.rules if of not in in_order]
    assert [one["name"] for one in checks] == names


def test_no_rules_are_empty_lists() -> None:
    none = HeldRules("t", 3, (), ())
    assert yaml.safe_load(rules_as_dqx(none)) == []
    assert rules_as_sql(none, "t").count("SELECT") == 0
    assert by_pandera(pd.DataFrame({"a": [1]}), none) == []


NUMBERS = st.none() | st.integers(-2, 3)
TEXTS = st.sampled_from(["", "u", "v", "nan", " u", "é9", "-_"]) | st.text(
    st.sampled_from("aA9é.-_%^[]\\'\" x"), max_size=4
)
ROW = st.tuples(NUMBERS, NUMBERS, TEXTS, TEXTS)
SMALL: tuple[AnyRule, ...] = (
    Equal(columns=("a", "b"), tolerance=1.0),
    Equal(columns=("s", "t")),
    Order(columns=("a", "b")),
    Sorted(columns=("a",)),
    Sorted(columns=("b",), falling=True),
    Unique(columns=("a", "s")),
    Determines(columns=("a", "s")),
    Determines(columns=("s", "t", "b")),
    EmptyUnless(columns=("a", "s")),
    EmptyUnless(columns=("s", "b"), values=("1", "2")),
    PositiveOnlyIf(columns=("b", "t"), values=("u",)),
    Product(columns=("a", "b"), exponents=(-1.0,), tolerance=0.25),
    Product(columns=("a", "b"), exponents=(0.5,), tolerance=0.25),
)


@pytest.mark.release
@given(st.lists(ROW, min_size=1, max_size=12))
@settings(max_examples=20)
def test_any_small_table_breaks_the_same_rules(rows: list[tuple[Any, ...]]) -> None:
    schema = {"a": pl.Int64, "b": pl.Int64, "s": pl.String, "t": pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    cells = Cells(
        table_from_frame(frame, "small"),
        {"a": NumberFormat(), "b": NumberFormat(), "s": None, "t": None},
    )
    forms = {*code_forms(frame["s"].str.strip_chars()).drop_nulls()} - {""}
    kinds = (*SMALL, *(Code(columns=("s",), form=form) for form in sorted(forms)))
    found = tuple(check(rule, cells).summary(rule) for rule in kinds)
    rules = HeldRules("small", len(rows), columns_of(found, cells), found)
    assert by_sql(frame, rules) == [of.broken for of in found]
    assert by_pandera(frame.to_pandas(), rules) == [of.broken for of in found]
