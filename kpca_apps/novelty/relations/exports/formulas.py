"""When a row breaks a rule of numbers, as a formula that SQL and Python read alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kpca_apps.novelty.relations.rule import Equal, Linear, Order, Product, Within

NumberRule = Equal | Order | Linear | Product | Within


@dataclass(frozen=True)
class Language:
    """How a language writes the parts of a formula."""

    # A column as a floating-point number, dates in seconds. Where there is none it is NULL or NaN,
    # with which no comparison is true.
    number: Callable[[str], str]
    constant: Callable[[float], str]
    absolute: str  # the name of a function, as are the next
    power: str
    both: str  # between two conditions
    either: str


def broken(rule: NumberRule, language: Language) -> str:
    """Write when a row breaks a rule; where a cell is missing it is not true."""
    conditions = _conditions(rule, language)
    return conditions[0] if len(conditions) == 1 else language.both.join(map(_bracket, conditions))


def _conditions(rule: NumberRule, language: Language) -> Sequence[str]:
    first, *others = rule.columns
    if isinstance(rule, Order):
        sign = ">=" if rule.strict else ">"
        return [f"{language.number(first)} {sign} {language.number(others[0])}"]
    if isinstance(rule, Within):
        number = language.number(first)
        bounds = (("<", rule.low), (">", rule.high))
        outside = [f"{number} {s} {language.constant(b)}" for s, b in bounds if b is not None]
        return [outside[0] if len(outside) == 1 else language.either.join(map(_bracket, outside))]
    due, allowed = _due(rule, language), language.constant(rule.tolerance)
    apart = f"{language.absolute}({language.number(first)} - {_bracket(due)})"
    if not isinstance(rule, Product):
        return [f"{apart} > {allowed}"]
    if rule.relative:
        share = f"{language.constant(rule.relative)} * {language.absolute}({due})"
        allowed = f"{allowed} + {share}" if rule.tolerance else share
    n_plain = len(others) - bool(rule.per)
    pairs = zip(others[:n_plain], rule.exponents[:n_plain], strict=True)
    return [*filter(None, (_domain(*pair, language) for pair in pairs)), f"{apart} > {allowed}"]


def _domain(name: str, exponent: float, language: Language) -> str:
    """Write that a number has this power; of others, a rule says nothing."""
    value = language.number(name)
    if exponent == round(exponent):
        return f"{language.absolute}({value}) > 0" if exponent < 0 else ""
    return f"{value} {'>' if exponent < 0 else '>='} 0"


def _due(rule: Equal | Linear | Product, language: Language) -> str:
    """Write what the first column should be."""
    names = [language.number(name) for name in rule.columns[1:]]
    if isinstance(rule, Equal):
        return names[0]
    constant = language.constant
    if isinstance(rule, Product):
        if rule.per:
            names[-1] = _bracket(f"1.0 + {constant(rule.per)} * {names[-1]}")
        factors = [] if rule.factor == 1 else [constant(rule.factor)]
        for name, exponent in zip(names, rule.exponents, strict=True):
            is_plain = exponent == 1
            factors.append(name if is_plain else f"{language.power}({name}, {constant(exponent)})")
        return " * ".join(factors)
    terms = [
        name if factor == 1 else f"{constant(factor)} * {name}"
        for name, factor in zip(names, rule.coefficients, strict=True)
    ]
    text = " + ".join(terms)
    return f"{constant(rule.offset)} + {_bracket(text)}" if rule.offset else text


def _bracket(text: str) -> str:
    return f"({text})"
