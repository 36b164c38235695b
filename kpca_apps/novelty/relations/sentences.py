"""Rules as lines of plain English."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import assert_never

from kpca_apps.names import one_line
from kpca_apps.novelty.redact import HIDDEN
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.rule import AnyRule, HeldRule, RuleColumn, cites_values
from kpca_apps.tables.values import date_text

_NAME = 40  # maximum number of characters shown of a name or value
_VALUES = 3  # maximum number of values quoted in a sentence
_WORD = re.compile(r"\w+")
_DAY = 86400.0
# Number of seconds in each unit of time.
_SPANS = {
    "year": 365.25 * _DAY, "month": 365.25 * _DAY / 12, "week": 7 * _DAY, "day": _DAY,
    "hour": 3600.0, "minute": 60.0, "second": 1.0,
}  # fmt: skip
_WHOLE = ("day", "hour", "minute")  # a duration is written in the largest unit that divides it
_SAME = 1e-9  # maximum relative difference of numbers that count as equal


def sentence(held: HeldRule, columns: Mapping[str, RuleColumn]) -> str:
    """Write a rule and its counts: ``departure <= arrival in 1,198 of 1,200 rows``."""
    n_holds = f"{held.n_rows - held.n_broken:,}" if held.n_broken else "all"
    return f"{phrase(held.rule, columns)} in {n_holds} of {_rows(held)}"


def broken_in(held: HeldRule) -> str:
    """Write in how many rows a rule is broken: ``broken in 2 of 1,200 rows``."""
    return f"broken in {held.n_broken:,} of {_rows(held)}"


def _rows(held: HeldRule) -> str:
    return f"{held.n_rows:,} row{'s' * (held.n_rows != 1)}"


def phrase(rule: AnyRule, columns: Mapping[str, RuleColumn], hidden: Collection[str] = ()) -> str:
    """Write a rule without counts or values of hidden columns: ``departure <= arrival``."""
    is_hidden = not {*cites_values(rule)}.isdisjoint(hidden)
    first, *others = map(_name, rule.columns)
    match rule:
        case kinds.Equal():
            return f"{first} = {HIDDEN if is_hidden else others[0]}"
        case kinds.Order():
            return f"{first} {'<' if rule.strict else '<='} {others[0]}"
        case kinds.Linear():
            return f"{first} = {HIDDEN if is_hidden else _terms(rule, columns)}"
        case kinds.Product():
            return f"{first} = {HIDDEN if is_hidden else _factors(rule)}"
        case kinds.Sorted():
            return f"{first} never {'rises' if rule.falling else 'falls'} from row to row"
        case kinds.Unique():
            return f"no two rows have the same {_joined([first, *others], 'and')}"
        case kinds.Determines():
            *keys, value = [first, *others]
            return f"rows of the same {_joined(keys, 'and')} have the same {value}"
        case kinds.EmptyUnless():
            where = "has a value"
            if rule.values:
                where = f"is {HIDDEN if is_hidden else either(rule.values)}"
            return f"{first} is empty unless {others[0]} {where}"
        case kinds.PositiveOnlyIf():
            values = HIDDEN if is_hidden else either(rule.values)
            where = "if and only if one of" if rule.both else "only where"
            return f"{first} is above 0 {where} {_joined(others, 'or')} is {values}"
        case kinds.Code():
            form = HIDDEN if is_hidden else one_line(rule.form, _NAME)
            return f"{first} has the form {form}"
        case kinds.Within():
            return f"{first} within {HIDDEN}" if is_hidden else _bounds(rule, first, columns)
        case _:
            assert_never(rule)


def _name(name: str) -> str:
    shown = one_line(name, _NAME)
    return shown if _WORD.fullmatch(shown) else f'"{shown}"'


def either(values: tuple[str, ...]) -> str:
    """Join alternatives by "or"; of many, show the first few and the number of the rest."""
    shown = [f'"{one_line(value, _NAME)}"' for value in values[:_VALUES]]
    if more := len(values) - len(shown):
        shown.append(f"one of {more:,} more")
    return _joined(shown, "or")


def _joined(names: Sequence[str], word: str) -> str:
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def _number(value: float) -> str:
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.6g}"


def _terms(rule: kinds.Linear, columns: Mapping[str, RuleColumn]) -> str:
    """Write the right-hand side of a linear rule as a sum, with durations in a common unit."""
    total, *parts = (columns[name] for name in rule.columns)
    names = [_name(name) for name in rule.columns[1:]]
    if total.dates is None and len(parts) == 2 and all(part.dates for part in parts):
        if between := _between(rule, names):
            return between + _signed([("", rule.offset)])
    if total.dates is not None and any(part.dates for part in parts):
        terms = [
            (name if part.dates else _span_column(name, abs(factor)), factor)
            for name, part, factor in zip(names, parts, rule.coefficients, strict=True)
        ]
        return _signed([*terms, (_span(abs(rule.offset)), rule.offset)], bare=True)
    terms = [
        (name if abs(factor) == 1 else f"{_number(abs(factor))} * {name}", factor)
        for name, factor in zip(names, rule.coefficients, strict=True)
    ]
    constant = (_number(abs(rule.offset)), rule.offset)
    # Write 100 - a rather than -a + 100.
    first = rule.offset > 0 and rule.coefficients[0] < 0
    return _signed([constant, *terms] if first else [*terms, constant], bare=True)


def _signed(terms: Sequence[tuple[str, float]], *, bare: bool = False) -> str:
    """Join terms by plus and minus; a term without words is a number. `bare`: no first plus."""
    text = ""
    for words, number in terms:
        if number:
            sign = "-" if number < 0 else "+"
            text += f" {sign} {words or _number(abs(number))}"
    if not bare:
        return text
    return f"-{text[3:]}" if text.startswith(" - ") else text[3:]


def _between(rule: kinds.Linear, names: Sequence[str]) -> str:
    """Write the time between two dates in the unit of the rule; empty if no unit fits."""
    first, second = rule.coefficients
    late, early = names if first > 0 else names[::-1]
    for unit, seconds in _SPANS.items():
        if first == -second and abs(abs(first) * seconds - 1) < _SAME:
            return f"{unit}s from {early} to {late}"
    return ""


def _span(seconds: float) -> str:
    unit, size = _unit(seconds)
    n = seconds / size
    return f"{_number(n)} {unit}{'s' * (n != 1)}"


def _span_column(name: str, seconds: float) -> str:
    """Write a column of durations, in units of `seconds`, as a term added to a date."""
    unit, size = _unit(seconds)
    words = f"{name} (in {unit}s)"
    return words if seconds == size else f"{_number(seconds / size)} * {words}"


def _unit(seconds: float) -> tuple[str, float]:
    whole = (one for one in _SPANS.items() if one[0] in _WHOLE and seconds % one[1] == 0)
    return next(whole, ("second", 1.0))


def _factors(rule: kinds.Product) -> str:
    names = [_name(name) for name in rule.columns[1:]]
    if rule.per:
        whole = abs(1 / rule.per)
        rate = names[-1] if whole == 1 else f"{names[-1]} / {_number(whole)}"
        names[-1] = f"(1 {'-' if rule.per < 0 else '+'} {rate})"
    above: list[str] = []
    below: list[str] = []
    for name, exponent in zip(names, rule.exponents, strict=True):
        size = abs(exponent)
        words = name if size == 1 else f"{name}^{_number(size)}"
        (above if exponent > 0 else below).append(words)
    if rule.factor != 1 or not above:
        above.insert(0, _number(rule.factor))
    return " / ".join([" * ".join(above), *below])


def _bounds(rule: kinds.Within, name: str, columns: Mapping[str, RuleColumn]) -> str:
    dates = columns[rule.columns[0]].dates
    low, high = (
        "" if value is None else date_text(value) if dates else _number(value)
        for value in (rule.low, rule.high)
    )
    if not low:
        return f"{name} <= {high}"
    return f"{low} <= {name} <= {high}" if high else f"{name} >= {low}"
