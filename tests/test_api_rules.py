import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import yaml

from kpca_apps import (
    ConfigError,
    InputError,
    RefusedError,
    RuleCheck,
    Rules,
    check_rules,
    find_rules,
)
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.options import NoveltyOptions
from tests.novelty.relations.test_table_rules import orders

SUM = "gross = net + tax in 299 of 300 rows"


@pytest.fixture(scope="module")
def rules() -> Rules:
    return find_rules(orders())


@pytest.mark.parametrize("function", [find_rules, check_rules])
def test_keywords_are_options_with_their_defaults(function: Callable[..., Any]) -> None:
    known = vars(NoveltyOptions()) | vars(ColumnOptions())
    for name, option in dict(inspect.signature(function).parameters).items():
        assert option.default in (known.get(name), inspect.Parameter.empty), name


def test_rules_are_printed_and_exported(rules: Rules) -> None:
    assert SUM in rules.sentences
    assert repr(rules).splitlines()[0] == f"{len(rules.rules)} rules of table, 300 rows"
    assert max(map(len, repr(rules).splitlines())) < 80
    assert len(yaml.safe_load(rules.to_dqx())) <= len(rules.rules)
    names: dict[str, Any] = {}
    exec(rules.to_pandera(), names)
    assert len(names["schema"].checks) == len(rules.rules)
    invoices = orders()
    with duckdb.connect() as database:
        database.register("invoices", invoices.to_arrow())
        place = [text.startswith("gross") for text in rules.sentences].index(True)
        macros, *queries = rules.to_sql("invoices").split("\n\n")
        database.execute(macros)
        first = queries[place]
        assert [row[0] for row in database.execute(first).fetchall()] == [invoices["net"][7]]
    assert 'FROM "table"' in rules.to_sql()


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, pa.table, dict])
def test_frames_of_any_library(kind: Callable[..., Any], rules: Rules) -> None:
    given = kind(orders().to_dict(as_series=False))
    assert find_rules(given).sentences == rules.sentences
    check = check_rules(given, rules, id="order")
    assert isinstance(check, RuleCheck) and not check.passed
    checked = check.to_frame()
    expected = {pd.DataFrame: pd.DataFrame, pa.table: pa.Table}.get(kind, pl.DataFrame)  # type: ignore[call-overload]
    assert isinstance(checked, expected)
    rows = checked.to_dict("records") if kind is pd.DataFrame else pl.DataFrame(checked).to_dicts()
    (row,) = [row for row in rows if row["rule"] == "gross = net + tax"]
    net, tax, gross, order = orders()["net", "tax", "gross", "order"].row(7)
    assert (row["row"], row["id"]) == (8, order)
    assert row["cells"] == f"gross {gross}, net {net}, tax {tax}"


def test_rules_are_kept_in_a_file(rules: Rules, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    rules.save(path)
    good = orders(seed=4).filter(~pl.int_range(300).is_in([7, 10]))
    good.write_csv(tmp_path / "good.csv", separator=";")
    check = check_rules(tmp_path / "good.csv", path, delimiter=";")
    assert check.passed and check.table == "good.csv"
    assert repr(check) == f"0 of {len(rules.rules)} rules broken in good.csv, 298 rows"
    with pytest.raises(RefusedError, match="is not a file of rules"):
        rules.save(tmp_path / "good.csv")


def test_the_index_of_pandas_names_the_rows() -> None:
    given = orders().to_pandas().set_index("order")
    rules = find_rules(given)
    assert rules.id == "order"
    checked = check_rules(given, rules).to_frame()
    assert [*checked[checked["rule"] == "gross = net + tax"]["id"]] == [given.index[7]]


def test_options_of_columns() -> None:
    rules = find_rules(orders(), exclude=["gross"], hide="net", seed=3)
    assert not any("gross" in text for text in rules.sentences)
    check = check_rules(orders(), find_rules(orders()), hide=("net", "order"))
    cells = check.to_frame().filter(pl.col("rule") == "gross = (hidden)")["cells"]
    assert "net (hidden)" in cells[0]
    assert "(hidden)" in {*check.to_frame()["id"]}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: find_rules(orders(), seed=-1), ConfigError, "seed= must be at least 0"),
        (
            lambda: check_rules(orders().drop("net"), find_rules(orders())),
            InputError,
            'table: has no column "net", which the rules of table need',
        ),
        (
            lambda: check_rules(orders(), find_rules(orders()), hide="no"),
            ConfigError,
            'hide= names a column "no"',
        ),
    ],
)
def test_mistakes_are_reported_in_one_line(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value) and "\n" not in str(caught.value)
