"""Warnings name each hidden column that visible columns reveal, and these visible columns."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from kpca_apps.api import fit_model, score_table, screen_table
from kpca_apps.cli.main import main
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.relations.revealed import ways_to_reveal
from kpca_apps.novelty.relations.rule import Determines, Equal, Linear, Order, Product
from kpca_apps.novelty.result import REVEALED
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions
from tests.novelty.tables import table_from_frame

SALARY = Linear(columns=("total", "salary", "bonus"), coefficients=(1.0, 1.0))
EURO = Product(columns=("euro", "salary"), exponents=(1.0,), factor=0.9)
NOTE = '"salary" is hidden, but follows from "bonus" and "total_pay": hide one of them, too.'


def people(n: int = 80, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    salary, bonus = rng.normal(5000, 900, n).round(2), rng.gamma(2, 300, n).round(2)
    return pl.DataFrame(
        {
            "salary": salary,
            "bonus": bonus,
            "total_pay": (salary + bonus).round(2),
            "age": rng.integers(20, 65, n),
            "site": np.array(["Bern", "Genf"])[rng.integers(0, 2, n)],
        }
    )


@pytest.mark.parametrize(
    ("rules", "hidden", "ways"),
    [
        ([SALARY], ["salary"], {"salary": [("total", "bonus")]}),
        ([SALARY], ["total"], {"total": [("salary", "bonus")]}),
        ([SALARY], ["salary", "bonus"], {}),
        ([SALARY, EURO], ["salary"], {"salary": [("total", "bonus"), ("euro",)]}),
        ([SALARY, EURO], ["salary", "total"], {"salary": [("euro",)]}),
        ([SALARY, Equal(columns=("total", "copy"))], ["salary", "total"], {"total": [("copy",)]}),
        ([Determines(columns=("zip", "town"))], ["town"], {"town": [("zip",)]}),
        ([Determines(columns=("zip", "town"))], ["zip"], {}),
        (
            [Determines(columns=("make", "model", "price"))],
            ["price"],
            {"price": [("make", "model")]},
        ),
        ([Order(columns=("start", "end"))], ["end"], {}),
        ([Equal(columns=("lost", "salary"))], ["salary"], {}),
    ],
)
def test_ways_to_reveal_are_those_that_visible_columns_leave(
    rules: list[Linear], hidden: list[str], ways: dict[str, list[tuple[str, ...]]]
) -> None:
    names = "total salary bonus euro copy zip town make model price start end".split()
    assert ways_to_reveal(rules, names, hidden) == ways


def test_once_one_column_of_each_way_is_hidden_none_is_left() -> None:
    rng, names = np.random.default_rng(5), [f"c{k}" for k in range(9)]
    for _ in range(200):
        rules = [
            Linear(columns=tuple(rng.choice(names, 3, replace=False)), coefficients=(1.0, 1.0))
            for _ in range(5)
        ]
        hidden = [*rng.choice(names, 2, replace=False)]
        ways = ways_to_reveal(rules, names, hidden)
        closed = {way[-1] for group in ways.values() for way in group}
        assert {*hidden}.isdisjoint(ways_to_reveal(rules, names, [*hidden, *closed]))
        # Linear equations of the rules must determine each hidden column that `ways` reveals.
        unknown = np.array(
            [[(n == r.columns[0]) * 1.0 - (n in r.columns[1:]) for n in names] for r in rules]
        )[:, [names.index(name) for name in hidden]]
        for place, name in enumerate(hidden):
            if name in ways:
                unit = np.eye(len(hidden))[place]
                rank = np.linalg.matrix_rank
                assert rank(np.vstack([unknown, unit])) == rank(unknown)


@pytest.mark.parametrize(
    "changed", [{}, {"exclude": ("salary",)}, {"exclude": ("bonus",)}, {"label": "salary"}]
)
def test_columns_left_out_of_the_model_reveal_and_are_revealed(changed: dict[str, Any]) -> None:
    table, options = table_from_frame(people(), "people"), ColumnOptions(hide=("salary",))
    options = replace(options, **changed)
    model, _ = fit_table(table, ScreeningOptions(columns=options), clean=False)
    assert [text for text in model.warnings if REVEALED in text] == [NOTE]


def test_a_copy_is_named_in_a_table_too_small_for_rules() -> None:
    frame = people(12).with_columns(pay=pl.col("salary"), empty=pl.lit(None, dtype=pl.String))
    options = ColumnOptions(hide=("salary", "empty"))
    table = table_from_frame(frame.with_columns(gap=pl.col("empty")), "people")
    model, _ = fit_table(table, ScreeningOptions(columns=options), clean=False)
    note = '"salary" is hidden, but follows from "pay": hide it, too.'
    assert [text for text in model.warnings if REVEALED in text] == [note]


def test_python_says_so_of_screening_fitting_and_scoring() -> None:
    frame = people()
    assert NOTE in screen_table(frame, hide="salary").run.warnings
    assert not any(REVEALED in text for text in screen_table(frame).run.warnings)
    both = screen_table(frame, hide=["salary", "bonus"])
    assert not any(REVEALED in text for text in both.run.warnings)
    model = fit_model(frame, hide="salary")
    assert NOTE in model.warnings
    # The note applies to the model's table and to the scored table, but is reported only once.
    of_both = score_table(model, people(seed=1)).run.warnings
    assert [NOTE in text for text in of_both].count(True) == 1
    plain = fit_model(frame.drop("salary"))
    assert NOTE in score_table(plain, people(seed=1), hide="salary").run.warnings


def test_the_command_warns_that_excluding_is_not_hiding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kpca_apps.report.novelty.figures.SCREENING", ())
    people().write_csv("people.csv")
    screen = ("novelty", "screen", "people.csv", "--exclude", "salary", "--to-send", "--out")
    assert main([*screen, "out"]) == 0
    warnings = json.loads(Path("out/result.json").read_text("utf-8"))["run"]["warnings"]
    (note,) = [text for text in warnings if "salary" in text]
    assert note == (
        "Excluded columns are left out of the model, not of the results: values of "
        '"salary" are shown; --hide keeps them out.'
    )
    assert "Excluded columns are left out" in capsys.readouterr().err
    assert main([*screen, "hidden", "--hide", "salary"]) == 0
    assert NOTE in " ".join(capsys.readouterr().err.split())
    assert "salary" not in Path("hidden/flagged.csv").read_text("utf-8")
    # The page to send does not tell how to derive the hidden values.
    assert REVEALED in Path("hidden/report.html").read_text("utf-8")
    assert REVEALED not in Path("hidden/to-send/report.html").read_text("utf-8")
