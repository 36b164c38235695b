"""The condition under which a row breaks a rule, in a language such as SQL or Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import assert_never

from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.rule import AnyRule, RuleColumn


class Language(ABC):
    """How a language writes the parts of a condition; comparisons with missing cells are false."""

    known: str  # text that, written after a cell, tests whether the cell has a value
    missing: str  # text that, written after a cell, tests whether the cell is missing
    equal: str
    both: str  # operator between conditions that must all hold
    either: str  # operator between conditions of which at least one must hold
    absolute: str  # name of the function for absolute values
    power: str  # name of the function for powers

    def __init__(self, columns: Mapping[str, RuleColumn]) -> None:
        self.columns = columns

    @abstractmethod
    def number(self, name: str) -> str:
        """Read a column as a float; dates in seconds since 1970 UTC."""

    @abstractmethod
    def text(self, name: str) -> str:
        """Read a column as stripped text."""

    @abstractmethod
    def constant(self, value: float) -> str:
        """Write a number."""

    @abstractmethod
    def none_of(self, name: str, values: Sequence[str]) -> str:
        """Test a column for a value that is not listed."""

    @abstractmethod
    def differ(self, text: str, other: str) -> str:
        """Test that two texts are present and differ."""

    @abstractmethod
    def other_form(self, name: str, form: str) -> str:
        """Test that a column does not have the form of a code."""

    @abstractmethod
    def of_table(self, rule: kinds.WholeTable) -> list[str]:
        """Write conditions met by rows that break a rule between rows."""

    def broken(self, rule: AnyRule) -> str:
        """Write the condition under which a row breaks a rule; missing cells break none."""
        return _join(self.both, _conditions(rule, self))


def _conditions(rule: AnyRule, of: Language) -> Sequence[str]:
    first, *others = rule.columns
    match rule:
        case kinds.Unique() | kinds.Determines() | kinds.Sorted():
            return of.of_table(rule)
        case kinds.Order():
            sign = ">=" if rule.strict else ">"
            return [f"{of.number(first)} {sign} {of.number(others[0])}"]
        case kinds.Within():
            bounds = (("<", rule.low), (">", rule.high))
            outside = [
                f"{of.number(first)} {sign} {of.constant(bound)}"
                for sign, bound in bounds
                if bound is not None
            ]
            return [_join(of.either, outside)]
        case kinds.Equal() if not all(of.columns[name].format for name in rule.columns):
            return [of.differ(of.text(first), of.text(others[0]))]
        case kinds.Equal() | kinds.Linear() | kinds.Product():
            return _formula(rule, of)
        case kinds.EmptyUnless():
            other = f"{of.text(others[0])}{of.missing}"
            if rule.values:
                other = of.none_of(others[0], rule.values)
            return [f"{of.text(first)}{of.known}", other]
        case kinds.PositiveOnlyIf():
            above = f"{of.number(first)} > {of.constant(0.0)}"
            none_of = [of.none_of(name, rule.values) for name in others]
            if not rule.both:
                return [above, *none_of]
            cells = [of.number(first), *map(of.text, others)]
            none = _join(of.both, none_of)
            return [*(f"{cell}{of.known}" for cell in cells), f"({above}) {of.equal} ({none})"]
        case kinds.Code():
            return [of.other_form(first, rule.form)]
        case _:
            assert_never(rule)


def _formula(rule: kinds.Formula, of: Language) -> list[str]:
    """Write that the first column is farther from its expected value than the tolerance."""
    first, *names = (of.number(name) for name in rule.columns)
    conditions = []
    allowed = of.constant(rule.tolerance)
    match rule:
        case kinds.Equal():
            due = names[0]
        case kinds.Linear():
            pairs = zip(names, rule.coefficients, strict=True)
            due = " + ".join(n if k == 1 else f"{of.constant(k)} * {n}" for n, k in pairs)
            due = f"{of.constant(rule.offset)} + ({due})" if rule.offset else due
        case kinds.Product():
            # The rule does not apply where a power of a number is undefined.
            for name, exponent in zip(
                names[: -1 if rule.per else None], rule.exponents, strict=False
            ):
                if exponent != round(exponent):
                    conditions.append(f"{name} {'>' if exponent < 0 else '>='} {of.constant(0.0)}")
                elif exponent < 0:
                    conditions.append(f"{of.absolute}({name}) > {of.constant(0.0)}")
            if rule.per:
                names[-1] = f"(1.0 + {of.constant(rule.per)} * {names[-1]})"
            powers = [
                name if exponent == 1 else f"{of.power}({name}, {of.constant(exponent)})"
                for name, exponent in zip(names, rule.exponents, strict=True)
            ]
            due = " * ".join([*[of.constant(rule.factor)] * (rule.factor != 1), *powers])
            if rule.relative:
                share = f"{of.constant(rule.relative)} * {of.absolute}({due})"
                allowed = f"{allowed} + {share}" if rule.tolerance else share
    return [*conditions, f"{of.absolute}({first} - ({due})) > {allowed}"]


def _join(operator: str, conditions: Sequence[str]) -> str:
    if len(conditions) == 1:
        return conditions[0]
    return operator.join(f"({condition})" for condition in conditions)
