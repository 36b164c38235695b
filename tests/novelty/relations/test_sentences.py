import pytest

from kpca_apps.novelty.relations.rule import (
    AnyRule,
    Code,
    Determines,
    EmptyUnless,
    Equal,
    HeldRule,
    Linear,
    Order,
    PositiveOnlyIf,
    Product,
    RuleColumn,
    Sorted,
    Unique,
    Within,
)
from kpca_apps.novelty.relations.sentences import broken_in, phrase, sentence
from kpca_apps.tables.values import DateFormat, NumberFormat

DAY = 86400.0
YEAR = 365.25 * DAY
DATES = {name: RuleColumn(name, dates=DateFormat()) for name in ("start", "end")}
NUMBERS = {
    name: RuleColumn(name, numbers=NumberFormat()) for name in ("a", "b", "c", "days", "Net price")
}
COLUMNS = DATES | NUMBERS | {name: RuleColumn(name) for name in ("ZIP", "city", "line\nbreak")}
PHRASES: tuple[tuple[AnyRule, str], ...] = (
    (Equal(columns=("a", "b")), "a = b"),
    (Order(columns=("start", "end")), "start <= end"),
    (Order(columns=("a", "Net price"), strict=True), 'a < "Net price"'),
    (Linear(columns=("a", "b", "c"), coefficients=(1.0, 1.0)), "a = b + c"),
    (Linear(columns=("a", "b", "c"), coefficients=(-1.0, 0.5), offset=3.0), "a = 3 - b + 0.5 * c"),
    (Linear(columns=("a", "b"), coefficients=(1000.0,), offset=-2.5), "a = 1,000 * b - 2.5"),
    (
        Linear(columns=("days", "end", "start"), coefficients=(1 / DAY, -1 / DAY)),
        "days = days from start to end",
    ),
    (
        Linear(columns=("a", "start", "end"), coefficients=(-1.0, 1.0), offset=2.0),
        "a = seconds from start to end + 2",
    ),
    (
        Linear(columns=("end", "start", "days"), coefficients=(1.0, DAY)),
        "end = start + days (in days)",
    ),
    (
        Linear(columns=("end", "start"), coefficients=(1.0,), offset=30 * DAY),
        "end = start + 30 days",
    ),
    (Linear(columns=("end", "start"), coefficients=(1.0,), offset=-3600.0), "end = start - 1 hour"),
    (Linear(columns=("a", "b", "c"), coefficients=(-1.0, 1.0)), "a = -b + c"),
    (Linear(columns=("a", "b"), coefficients=(-1.0,), offset=100.0), "a = 100 - b"),
    (Linear(columns=("a", "start"), coefficients=(2.0,), offset=-1.0), "a = 2 * start - 1"),
    (
        Linear(columns=("a", "end", "start"), coefficients=(1 / YEAR, -1 / YEAR), offset=-0.5),
        "a = years from start to end - 0.5",
    ),
    (Product(columns=("a", "b", "c"), exponents=(1.0, 1.0)), "a = b * c"),
    (Product(columns=("a", "b", "c"), exponents=(1.0, -2.0), factor=703.0), "a = 703 * b / c^2"),
    (Product(columns=("a", "b"), exponents=(-1.0,)), "a = 1 / b"),
    (Product(columns=("a", "b", "c"), exponents=(1.0, 1.0), per=-1.0), "a = b * (1 - c)"),
    (Product(columns=("a", "b", "c"), exponents=(1.0, 1.0), per=0.01), "a = b * (1 + c / 100)"),
    (Product(columns=("a", "b", "c"), exponents=(-1.0, -1.0)), "a = 1 / b / c"),
    (Sorted(columns=("a",)), "a never falls from row to row"),
    (Sorted(columns=("a",), falling=True), "a never rises from row to row"),
    (Unique(columns=("ZIP", "city")), "no two rows have the same ZIP and city"),
    (Determines(columns=("ZIP", "city")), "rows of the same ZIP have the same city"),
    (EmptyUnless(columns=("a", "city")), "a is empty unless city has a value"),
    (EmptyUnless(columns=("a", "city"), values=("x",)), 'a is empty unless city is "x"'),
    (
        PositiveOnlyIf(columns=("a", "city"), values=("x", "y", "z", "u", "v")),
        'a is above 0 only where city is "x", "y", "z" or one of 2 more',
    ),
    (Code(columns=("ZIP",), form="AA-99"), "ZIP has the form AA-99"),
    (Within(columns=("a",), low=0.0, high=100.0), "0 <= a <= 100"),
    (Within(columns=("a",), low=0.001), "a >= 0.001"),
    (Within(columns=("start",), high=30 * DAY), "start <= 1970-01-31"),
    (Unique(columns=("line\nbreak",)), 'no two rows have the same "line\\nbreak"'),
)


@pytest.mark.parametrize(("rule", "written"), PHRASES)
def test_rules_are_written_in_plain_english(rule: AnyRule, written: str) -> None:
    assert phrase(rule, COLUMNS) == written


def test_a_sentence_says_in_how_many_rows_a_rule_holds() -> None:
    rule = Order(columns=("start", "end"))
    assert sentence(HeldRule(rule, 1200, 2), COLUMNS) == "start <= end in 1,198 of 1,200 rows"
    assert sentence(HeldRule(rule, 1, 0), COLUMNS) == "start <= end in all of 1 row"
    assert broken_in(HeldRule(rule, 1200, 2)) == "broken in 2 of 1,200 rows"


@pytest.mark.parametrize(
    ("rule", "column", "written"),
    [
        (EmptyUnless(columns=("a", "city"), values=("x",)), "city", "unless city is (hidden)"),
        (PositiveOnlyIf(columns=("a", "city"), values=("x",)), "city", "where city is (hidden)"),
        (Within(columns=("a",), low=7.0), "a", "a within (hidden)"),
        (Code(columns=("ZIP",), form="AA-9"), "ZIP", "ZIP has the form (hidden)"),
    ],
)
def test_values_of_hidden_columns_are_not_printed(rule: AnyRule, column: str, written: str) -> None:
    assert phrase(rule, COLUMNS, (column,)).endswith(written)
    assert phrase(rule, COLUMNS, ("days",)) == phrase(rule, COLUMNS)
