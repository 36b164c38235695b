from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.novelty.relations.checking import Cells, check
from kpca_apps.novelty.relations.rule import (
    Code,
    Determines,
    EmptyUnless,
    Equal,
    Linear,
    Order,
    PositiveOnlyIf,
    Product,
    Rule,
    Sorted,
    Unique,
    Within,
)
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.values import NumberFormat

Number = float | None
Text = str | None


def by_hand(rule: Rule, rows: Sequence[dict[str, Number | Text]]) -> list[bool | None]:
    """Return a rule's result for each row by definition; None where the rule does not apply."""
    cells = [[row[name] for name in rule.columns] for row in rows]
    expected: list[bool | None] = []
    for place, row in enumerate(cells):
        known = None not in row
        holds: bool | None
        match rule:
            case EmptyUnless():
                others = row[1] is None if not rule.values else row[1] not in (None, *rule.values)
                holds = row[0] is None if others else None
            case PositiveOnlyIf():
                holds = row[0] <= 0 if known and row[1] not in rule.values else None
            case _ if not known:
                holds = None
            case Equal():
                same = row[0] == row[1]
                holds = same if isinstance(row[0], str) else abs(row[0] - row[1]) <= rule.tolerance
            case Order():
                holds = row[0] < row[1] if rule.strict else row[0] <= row[1]
            case Linear():
                due = rule.offset + sum(
                    k * x for k, x in zip(rule.coefficients, row[1:], strict=True)
                )
                holds = abs(row[0] - due) <= rule.tolerance
            case Product():
                factors = row[1:]
                if rule.per:
                    factors = [*factors[:-1], 1 + rule.per * factors[-1]]
                try:
                    due = rule.factor * np.prod(
                        [x**e for x, e in zip(factors, rule.exponents, strict=True)]
                    )
                except ZeroDivisionError:
                    holds = None
                else:
                    off = rule.tolerance + rule.relative * abs(due)
                    holds = bool(abs(row[0] - due) <= off)
            case Unique():
                holds = cells.count(row) == 1
            case Determines():
                others = [other[-1] for other in cells if other[:-1] == row[:-1]]
                others = [value for value in others if value is not None]
                holds = others.count(row[-1]) * 2 > len(others) if len(others) > 1 else None
            case Code():
                form = ["A" if c.isalpha() else "9" if c in "0123456789" else c for c in row[0]]
                holds = "".join(form) == rule.form
            case Within():
                low = -np.inf if rule.low is None else rule.low
                holds = low <= row[0] <= (np.inf if rule.high is None else rule.high)
            case _:
                raise AssertionError(place)
        expected.append(holds)
    return expected


RULES = (
    Equal(columns=("a", "b"), tolerance=0.5),
    Equal(columns=("s", "t")),
    Order(columns=("a", "b")),
    Order(columns=("a", "b"), strict=True),
    Linear(columns=("a", "b", "c"), coefficients=(1.0, -1.0), offset=1.0, tolerance=1.0),
    Product(columns=("a", "b", "c"), exponents=(1.0, -1.0), factor=2.0, tolerance=0.5),
    Product(columns=("a", "b"), exponents=(2.0,), relative=0.5),
    Unique(columns=("a",)),
    Unique(columns=("s", "a")),
    Determines(columns=("s", "t")),
    Determines(columns=("s", "b", "a")),
    EmptyUnless(columns=("a", "s"), values=("x1", "Y")),
    EmptyUnless(columns=("t", "a")),
    PositiveOnlyIf(columns=("a", "s"), values=("x1",)),
    Code(columns=("s",), form="A9"),
    Within(columns=("a",), low=0.0, high=2.0),
    Within(columns=("b",), high=1.0),
)
numbers = st.none() | st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
texts = st.none() | st.sampled_from(["x1", "Y", "é9", "x12"])
rows = st.fixed_dictionaries({"a": numbers, "b": numbers, "c": numbers, "s": texts, "t": texts})


def cells_of(rows: Sequence[dict[str, Number | Text]]) -> Cells:
    types = {name: pl.Float64 if name in "abc" else pl.String for name in "abcst"}
    table = table_from_frame(pl.DataFrame(list(rows), schema=types), "table")
    return Cells(table, {name: NumberFormat() if name in "abc" else None for name in "abcst"})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{type(rule).__name__}{rule.columns}")
@given(rows=st.lists(rows, min_size=1, max_size=8))
@settings(max_examples=25)
def test_each_kind_says_of_each_row_what_its_description_says(
    rule: Rule, rows: list[dict[str, Number | Text]]
) -> None:
    checked = check(rule, cells_of(rows))
    assert [
        bool(holds) if applies else None
        for applies, holds in zip(checked.applies, checked.holds, strict=True)
    ] == by_hand(rule, rows)


@settings(max_examples=25)
@given(order=st.permutations(range(12)), wrong=st.integers(2, 9))
def test_one_number_out_of_order_is_named_alone(order: list[int], wrong: int) -> None:
    values = [10.0 * place for place in range(12)]
    for far in (-50.0, 500.0):
        table = [{"a": far if row == wrong else value} for row, value in enumerate(values)]
        blank = {"b": None, "c": None, "s": None, "t": None}
        cells = cells_of([{**row, **blank} for row in table])
        assert check(Sorted(columns=("a",)), cells).broken.nonzero()[0].tolist() == [wrong]
    # Rows without a value are skipped; negated rising values fall.
    cells = cells_of([{"a": None if n == 3 else -value, **blank} for n, value in enumerate(values)])
    checked = check(Sorted(columns=("a",), falling=True), cells)
    assert checked.applies.sum() == 11 and not checked.broken.any()
    shuffled = cells_of([{"a": float(place), **blank} for place in order])
    assert check(Sorted(columns=("a",)), shuffled).broken.any() == (order != sorted(order))


def test_cells_are_read_as_the_plan_says_and_identifiers_as_they_look() -> None:
    n = 40
    frame = pl.DataFrame(
        {
            "id": [f"{1000 + i}" for i in range(n)],
            "day": [f"{i % 28 + 1:02d}.03.2024" for i in range(n)],
            "price": [f"{i},50 €" for i in range(n)],
            "again": [f"{i},50 €" for i in range(n)],
            "plain": [f"{i + 0.5}" for i in range(n)],
            "card": [f"{4 * 10**17 + i}" for i in range(n)],
        }
    )
    table = table_from_frame(frame, "table")
    cells = Cells.of(table, infer_plan(table))
    assert cells.values("id")[0] == 1000.0
    assert cells.values("day")[1] - cells.values("day")[0] == 86400.0
    for other in ("again", "plain"):
        assert check(Equal(columns=("price", other)), cells).share == 1.0
    assert check(Order(columns=("price", "id")), cells).share == 1.0
    # As floats, some of these numbers would be equal.
    assert check(Unique(columns=("card",)), cells).share == 1.0
