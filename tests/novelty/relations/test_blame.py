"""The wrong column of a broken rule, and its suggested value."""

from dataclasses import replace

import msgspec
import numpy as np
import polars as pl
import pytest

from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.novelty.evidence import Evidence
from kpca_apps.novelty.relations.relations import Relations
from kpca_apps.tables.frames import table_from_frame


def stays(n: int = 400) -> dict[str, np.ndarray]:
    """Return hotel stays with start < end < paid, net = price * number and gross = net + tax."""
    rng = np.random.default_rng(3)
    start = np.datetime64("2021-01-01") + rng.integers(0, 700, n)
    price, number = rng.lognormal(4, 0.6, n).round(2), rng.integers(1, 9, n)
    net = (price * number).round(2)
    tax = (net * rng.choice([0.07, 0.19], n)).round(2)
    return {
        "start": start, "end": start + rng.integers(1, 25, n),
        "paid": start + rng.integers(25, 65, n),
        "price": price, "number": number, "net": net, "tax": tax, "gross": (net + tax).round(2),
    }  # fmt: skip


def days(count: int) -> np.timedelta64:
    return np.timedelta64(count, "D")


def judged(columns: dict[str, np.ndarray], row: int = 7) -> list[Evidence]:
    frame = pl.DataFrame(columns).with_columns(pl.col("start", "end", "paid").cast(pl.String))
    table = table_from_frame(frame, "stays")
    own = np.ones(frame.height, dtype=bool)
    found = Relations.learn(table, infer_plan(table)).judge(table, own=own).evidence
    return [Evidence(*line) for line in found.filter(pl.col("row") == row).rows()]


# By case: the wrong column in row 7, how to break it, and the expected text (None: the right
# value).
CASES = {
    "a century too late": ("start", lambda c: c["end"] + days(36500), "at most 20"),
    "a century too early": ("end", lambda c: c["start"] - days(36500), "at least 20"),
    "no whole number fits": ("price", lambda c: c["price"] * 10, None),
    "the total keeps another rule": ("number", lambda c: c["number"] + 1, None),
    "in both formulas": ("net", lambda c: c["net"] + 31.17, None),
    "far above all": ("tax", lambda c: c["tax"] * 100 + 1, None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_wrong_one_of_several_columns_is_named(case: str) -> None:
    name, fault, expected = CASES[case]
    columns = stays()
    right = columns[name][7]
    columns[name][7] = fault({name: values[7] for name, values in columns.items()})
    faults = judged(columns)
    assert faults
    for cell in faults:
        assert (cell.column, [*cell.others]) == (name, [])
        if expected is not None:
            assert cell.expected.startswith(expected)
    if expected is None:
        assert float(faults[0].suggestion) == pytest.approx(float(right), abs=0.02)


def test_all_columns_are_named_if_any_may_be_wrong() -> None:
    columns = stays()
    start = columns["start"][7] = np.datetime64("2022-01-30")
    columns["paid"][7] = start + days(30)
    end = columns["end"][7] = start - days(40)
    (faults,) = judged(columns)
    assert {faults.column, *faults.others} == {"start", "end"} and not faults.suggestion
    assert f"at most {end}" in faults.expected and f"at least {start}" in faults.expected
    assert faults.expected in faults.sentence


@pytest.mark.parametrize("form", ["{:.2f}", "{:,.2f} EUR"])
def test_a_suggested_value_is_exact_and_written_as_its_column(form: str) -> None:
    columns = {name: values.astype(str) for name, values in stays().items()}
    gross = stays()["gross"]
    right, gross[7] = gross[7], gross[7] + 1000
    marks = str.maketrans(".,", ",.") if "EUR" in form else {}
    columns["gross"] = np.array([form.format(value).translate(marks) for value in gross])
    (faults,) = judged(columns)
    assert (faults.column, faults.suggestion) == ("gross", form.format(right).translate(marks))


def test_of_columns_in_the_same_broken_rules_that_which_fits_them_all_is_named() -> None:
    columns = stays()
    del columns["price"], columns["number"]
    columns["tax"] = (0.19 * columns["net"]).round(2)
    columns["gross"] = (columns["net"] + columns["tax"]).round(2)
    right = columns["net"][7]
    columns["net"][7] = right + 1000
    faults = judged(columns)
    # The suggestion is exact to the cent; the rounded tax alone would allow several values.
    named = {(fault.column, *fault.others, fault.suggestion) for fault in faults}
    assert named == {("net", f"{right:.2f}")}


def test_a_rule_that_many_rows_break_takes_no_contradiction_of_another_away() -> None:
    net = stays()["net"]
    columns = {"net": net, "tax": (0.19 * net).round(2)}
    columns["gross"] = (net + columns["tax"]).round(2)
    learned = table_from_frame(pl.DataFrame(columns), "right")
    relations = Relations.learn(learned, infer_plan(learned))
    assert len(relations.rules) == 2
    # Only the sum rule gives the exact net, but half of the rows break the rule.
    rules = [
        msgspec.structs.replace(item, n_broken=200 if len(item.rule.columns) == 3 else 1)
        for item in relations.rules
    ]
    # In this row, the rounded tax and the sum give different nets.
    net[np.flatnonzero((columns["tax"] / 0.19).round(2) != net)[0]] += 1000
    table = table_from_frame(pl.DataFrame(columns), "wrong")
    assert {*replace(relations, rules=tuple(rules)).judge(table).evidence["column"]} == {"net"}
