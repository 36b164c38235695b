"""Rules of a table and the rows that break them are the same in parts and in memory."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.errors import InputError, OptionError
from kpca_apps.novelty.columns.parts import Execution
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.relations import table_rules
from kpca_apps.novelty.relations.checking import LISTED_ROWS
from kpca_apps.novelty.relations.rule import Order, Unique
from kpca_apps.novelty.relations.sentences import phrase
from kpca_apps.novelty.relations.table_rules import (
    check_table_rules,
    count_rows,
    find_table_rules,
    listed_rows,
)
from kpca_apps.system.workers import workers_for
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.opening import read_table
from kpca_apps.tables.table import parted
from tests.novelty.relations.ruled import ODD, as_texts, held, ruled_frame

WORK = Execution()


def orders(n: int = 300, seed: int = 0) -> pl.DataFrame:
    """Return invoices with a wrong sum in row 8 and a date too early in row 11."""
    rng = np.random.default_rng(seed)
    net, tax = rng.integers(100, 9000, n), rng.integers(1, 900, n)
    ordered = rng.integers(19000, 19300, n)
    shipped = ordered + rng.choice([0, 1, 1, 2, 5, 9], n)
    gross = net + tax
    gross[7] += 5
    shipped[10] = ordered[10] - 1
    frame = {"net": net, "tax": tax, "gross": gross, "ordered": ordered, "shipped": shipped}
    days = pl.col("ordered", "shipped").cast(pl.Int32).cast(pl.Date)
    return pl.DataFrame(frame).with_columns(
        days, order=pl.Series([f"R{k:05d}" for k in rng.permutation(90000)[:n] + 1])
    )


@pytest.mark.parametrize("texts", [False, True])
def test_parts_are_counted_as_the_whole(texts: bool) -> None:
    frame = as_texts(ruled_frame()) if texts else ruled_frame()
    rules = held(frame)
    for size in (1, 7, 64, 1000):
        table = parted(table_from_frame(frame, "ruled"), part_rows=size)
        assert count_rows(rules, table, WORK) == rules
    assert count_rows(rules, table_from_frame(frame, "ruled"), WORK) == rules
    with workers_for(None, 2, None) as workers:
        assert count_rows(rules, table, Execution(workers)) == rules


def test_no_more_rows_are_listed_than_a_file_keeps() -> None:
    frame = pl.DataFrame({"a": range(3000), "b": [0] * 3000})
    rules = held(frame.head(50), (Order(columns=("a", "b")), Unique(columns=("b",))))
    for table in (table_from_frame(frame, "t"), parted(table_from_frame(frame, "t"), part_rows=9)):
        counted = count_rows(rules, table, WORK).rules
        assert [held.n_broken for held in counted] == [2999, 3000]
        assert [held.broken[-1] for held in counted] == [LISTED_ROWS + 1, LISTED_ROWS]


def test_rules_are_found_in_a_sample_and_verified_on_all_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = orders()
    whole = find_table_rules(table_from_frame(frame, "t"), ColumnOptions(), seed=0, execution=WORK)
    by_phrase = {phrase(held.rule, whole.by_name): held for held in whole.rules}
    assert by_phrase["gross = net + tax"].broken == (8,)
    assert by_phrase["ordered <= shipped"].broken == (11,)
    assert (whole.id, whole.n_rows, whole.table) == ("order", 300, "t")
    # If the table is read in parts, a sample that contains all rows gives the same rules. A rule
    # of a sample of the first rows is dropped if most other rows break it.
    table = parted(table_from_frame(frame, "t"), part_rows=50)
    assert find_table_rules(table, ColumnOptions(), seed=0, execution=WORK) == whole
    worse = pl.concat([frame, frame.with_columns(gross=pl.col("gross") * 3)])
    first = np.arange(300)
    monkeypatch.setattr("kpca_apps.novelty.columns.parts.sample_positions", lambda n, s: first)
    again = find_table_rules(
        parted(table_from_frame(worse, "t"), part_rows=50), ColumnOptions(), seed=0, execution=WORK
    )
    found = {phrase(held.rule, again.by_name): held for held in again.rules}
    assert "gross = net + tax" not in found and found["ordered <= shipped"].broken == (11, 311)


def test_rows_that_break_a_rule_are_listed_as_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'id,low,high\nA,1,2\nB, 5 ,3\n\nC,x,1\nD,7,"6"\n' + b"E,1,2\n" * 30)
    table = read_table(path)
    rules = held(table.frame, (Order(columns=("low", "high")),))
    checked, (rows,) = check_table_rules(rules, table, ColumnOptions(id="id"), WORK)
    assert [(row.row, row.line, row.id, row.cells) for row in rows] == [
        (2, 3, "B", (" 5 ", "3")),
        (4, 6, "D", ("7", "6")),
    ]
    (first,) = listed_rows(replace(checked, hidden=("low", "id")), table, 1, WORK, id="id")
    assert [(row.row, row.id, row.cells) for row in first] == [(2, "(hidden)", ("(hidden)", "3"))]


def test_a_table_without_a_column_of_the_rules_is_refused() -> None:
    rules = held(ruled_frame())
    table = table_from_frame(ruled_frame().rename({"start": "Start"}), "new")
    message = 'new: has no column "start", which the rules of ruled need. Did you mean "Start"?'
    with pytest.raises(InputError) as caught:
        count_rows(rules, table, WORK)
    assert str(caught.value) == message


def test_rules_that_say_nothing_of_a_table_are_noted() -> None:
    frame = ruled_frame()
    rules = held(frame, (Order(columns=("net", "tax")), Unique(columns=(ODD,))))
    empty = frame.with_columns(net=pl.lit("none"))
    checked = count_rows(rules, table_from_frame(empty, "new"), WORK)
    assert checked.notes == ("This rule applies to no row: net <= tax.",)
    assert checked.rules[0].n_rows == 0


def test_requested_columns_must_exist() -> None:
    with pytest.raises(OptionError, match="--hide names a column"):
        find_table_rules(
            table_from_frame(orders(), "t"), ColumnOptions(hide=("no",)), seed=0, execution=WORK
        )


def test_columns_of_parts_must_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    required = []
    monkeypatch.setattr(table_rules, "require_table", lambda *of: required.append(of))
    table = parted(table_from_frame(ruled_frame(), "t"), part_rows=50)
    count_rows(held(ruled_frame(), (Order(columns=("net", "tax")),)), table, WORK)
    assert required == []
    count_rows(held(ruled_frame(), (Unique(columns=("zip", ODD)),)), table, WORK)
    assert required == [(200, 2)]
