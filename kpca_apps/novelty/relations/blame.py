"""Which cell of a broken rule is wrong, and its corrected value.

Each column of the rule is assumed wrong in turn. In a formula, the corrected value follows from the
other columns, rounded as the column is, and the formula must then hold. The other values and the
corrected one must be usual in their columns. The column that fits best is wrong; if others fit
nearly as well, any of them may be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.names import quoted
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.evidence import Evidence
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.checking import Cells, check, expected
from kpca_apps.novelty.relations.rule import AnyRule, HeldRule, RuleColumn
from kpca_apps.novelty.relations.sentences import either, phrase, sentence
from kpca_apps.novelty.result import CONTRADICTED
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.values import DateFormat, NumberFormat, ValueFormat

ENDS = (0.05, 0.5, 0.95)  # quantiles of a column
# Misfit: how unusual a column's value stays if it is corrected by the rule. Blame a column only if
# this is at most FENCE (Tukey's fence over the normal 95 % quantile), or TWICE the rule's smallest.
FENCE, TWICE = 2.698 / 1.645, 2.0
# Up to MOST_DECIMALS decimals are tried, until they suffice for the share NEARLY of the numbers.
MOST_DECIMALS, NEARLY = 6, 0.97
ROUNDING = 1e-9  # relative rounding error
DAY = 86400.0
LARGEST = 1e300
HeldFormula = tuple[AnyRule, BoolArray]  # a formula, and the rows (n,) in which it holds
LOG_BY_CHANCE = float(np.log(0.01))  # log of the probability that a row breaking a rule is correct


@dataclass(frozen=True)
class UsualValues:
    """Quantiles `ENDS` and notation of a column's numbers in training; dates in seconds."""

    name: str
    low: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
    middle: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
    high: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
    decimals: Annotated[int, Meta(ge=-1, le=MOST_DECIMALS)]  # what 97 % of numbers need; -1: over 6
    notation: Notation

    @classmethod
    def learn(cls, cells: Cells) -> tuple[UsualValues, ...]:
        """Learn the quantiles and the notation of each column of numbers or dates."""
        found = []
        for name in filter(cells.is_number, cells.formats):
            values = cells.values(name)
            values = values[np.abs(values) <= LARGEST]
            if len(values):
                low, middle, high = np.quantile(values, ENDS).tolist()
                decimals = (
                    k
                    for k in range(MOST_DECIMALS + 1)
                    if np.isclose(np.round(values, k), values, rtol=ROUNDING, atol=0).mean()
                    >= NEARLY
                )
                notation = Notation.of(cells.table.column[name], cells.formats[name])
                found.append(cls(name, low, middle, high, next(decimals, -1), notation))
        return tuple(found)

    def write(self, value: float, format: ValueFormat) -> str:
        """Write a corrected number or date in the column's notation."""
        if isinstance(format, NumberFormat):
            is_rounded = self.decimals >= 0
            value = round(value, self.decimals) if is_rounded else float(f"{value:.10g}")
        return self.notation.write_exactly(value, format)

    def distance(self, values: FloatArray) -> FloatArray:
        """Return distances (r,) from the median, divided by the 5 % or 95 % quantile's distance."""
        units = np.where(values > self.middle, self.high - self.middle, self.middle - self.low)
        far = np.abs(values - self.middle)
        with np.errstate(all="ignore"):
            return np.where(far > 0, far / units, 0.0)


@dataclass(frozen=True)
class Supposed:
    """Consequences of assuming one column wrong in r rows that break a rule."""

    corrected: FloatArray | None  # (r,), the column's value by the rule; None if not computable
    misfit: FloatArray  # (r,), largest `UsualValues.distance` after correction; inf: impossible


def suppose(rule: AnyRule, cells: Cells, usual: Mapping[str, UsualValues]) -> dict[str, Supposed]:
    """Assume in turn that each column of a rule is wrong; all rows of `cells` break the rule."""
    supposed, none = {}, np.zeros(len(cells))
    far = {
        name: usual[name].distance(cells.values(name)) if name in usual else none
        for name in rule.columns
    }
    for name in rule.columns:
        others = (far[other] for other in rule.columns if other != name)
        misfit, corrected = np.max([none, *others], axis=0), None
        if name in usual and isinstance(rule, kinds.Formula):
            with np.errstate(all="ignore"):
                corrected = _solve(rule, rule.columns.index(name), cells)
            rounded = corrected
            if isinstance(format := cells.formats[name], DateFormat):
                step = 1.0 if format.has_time else DAY
                rounded = np.round(corrected / step) * step
            elif usual[name].decimals >= 0:
                rounded = np.round(corrected, usual[name].decimals)
            holds = holds_with(rule, cells, name, rounded)
            corrected = np.where(holds, rounded, corrected)
            misfit = np.maximum(misfit, np.where(holds, usual[name].distance(corrected), np.inf))
        supposed[name] = Supposed(corrected, misfit)
    return supposed


def holds_with(rule: AnyRule, cells: Cells, name: str, numbers: FloatArray) -> BoolArray:
    """Return in which of r rows a rule holds once `numbers` (r,) replace those of a column."""
    return check(rule, replace(cells, replaced={name: numbers})).holds


def fitting(supposed: Mapping[str, Supposed], place: int) -> list[str]:
    """Return the columns that may be wrong in the row at `place`, the most likely first."""
    misfit = {name: float(of.misfit[place]) for name, of in supposed.items()}
    worst = max(FENCE, TWICE * min(misfit.values()))
    return sorted((name for name in misfit if misfit[name] <= worst), key=misfit.__getitem__)


def _solve(rule: kinds.Formula, place: int, cells: Cells) -> FloatArray:
    if isinstance(rule, kinds.Equal):
        return cells.values(rule.columns[1 - place])
    if place == 0:
        return expected(rule, cells)
    read, is_linear = cells.values(rule.columns[0]), isinstance(rule, kinds.Linear)
    is_rate = isinstance(rule, kinds.Product) and bool(rule.per) and place == len(rule.columns) - 1
    # Compute the rest of the formula, with this term at 0 or this factor at 1.
    neutral = np.zeros(len(cells)) if is_linear or is_rate else np.ones(len(cells))
    rest = expected(rule, replace(cells, replaced={rule.columns[place]: neutral}))
    if isinstance(rule, kinds.Linear):
        return (read - rest) / rule.coefficients[place - 1]
    factor = (read / rest) ** (1.0 / rule.exponents[place - 1])
    return (factor - 1.0) / rule.per if is_rate else factor


@dataclass(frozen=True, eq=False)
class Broken:
    """A rule, and the rows of a table that break it."""

    held: HeldRule
    cells: Cells
    rows: IntArray  # (r,), row indices from 0
    log_p: FloatArray  # (r,), log p-values corrected for the number of rules
    usual: Mapping[str, UsualValues]
    _holds: dict[tuple[str, AnyRule], BoolArray] = field(default_factory=dict, init=False)

    @cached_property
    def supposed(self) -> dict[str, Supposed]:
        """Consequences of assuming each column wrong."""
        return suppose(self.held.rule, self.cells, self.usual)

    def may_be(self, name: str, names: Collection[str], place: int) -> bool:
        """Whether `name` may be the wrong one of columns `names`; true if the rule lacks `name`."""
        of_rule = {of: self.supposed[of] for of in self.held.rule.columns if of in names}
        return name not in of_rule or name in fitting(of_rule, place)

    def keeps(self, rules: Iterable[AnyRule], name: str, place: int) -> bool:
        """Whether all `rules` hold in a row if a column has its corrected value."""
        corrected = self.supposed[name].corrected
        if corrected is None:
            return False
        for rule in rules:
            if (name, rule) not in self._holds:
                self._holds[name, rule] = holds_with(rule, self.cells, name, corrected)
        return all(self._holds[name, rule][place] for rule in rules)

    def evidence(
        self, place: int, names: Sequence[str], columns: Mapping[str, RuleColumn]
    ) -> Evidence:
        """Return evidence against the likeliest wrong cell of a row, among the columns `names`."""
        rule = self.held.rule
        name, *others = fitting({name: self.supposed[name] for name in names}, place)
        suggestion = "" if others else self._corrected(place, name, columns)
        says, allowed = f"{sentence(self.held, columns)}.", suggestion
        if not suggestion:
            first, *more = (self._allowed(place, of, columns) for of in (name, *others))
            pairs = zip(others, more, strict=True)
            allowed = ", or ".join([first, *(f"{quoted(of)} {text}" for of, text in pairs)])
        if others:
            says = f"{says[:-1]}: here {quoted(name)} should be {allowed}."
        return Evidence(
            row=int(self.rows[place]),
            column=name,
            kind=CONTRADICTED,
            log_p=float(self.log_p[place]) + LOG_BY_CHANCE,
            seen=self._cell(place, name),
            suggestion=suggestion,
            expected=allowed,
            support=self.held.n_rows - self.held.n_broken,
            sentence=says,
            given=tuple(of for of in rule.columns if of != name),
            others=tuple(others),
            rule=phrase(rule, columns),
        )

    def _cell(self, place: int, name: str) -> str:
        return self.cells.table.column[name].text(place).strip()

    def _corrected(self, place: int, name: str, columns: Mapping[str, RuleColumn]) -> str:
        """Write the value that a formula gives for a column, or an empty text."""
        rule, corrected = self.held.rule, self.supposed[name].corrected
        if corrected is not None and np.isfinite(corrected[place]):
            format = columns[name].format
            assert format is not None
            return self.usual[name].write(float(corrected[place]), format)
        if not isinstance(rule, kinds.Equal):
            return ""
        return self._cell(place, rule.columns[rule.columns[0] == name])

    def _allowed(self, place: int, name: str, columns: Mapping[str, RuleColumn]) -> str:
        """Write what a rule allows in one of its columns, given the other cells of a row."""
        if text := self._corrected(place, name, columns):
            return text
        rule, is_first = self.held.rule, name == self.held.rule.columns[0]
        match rule:
            case kinds.Order():
                words = ("below", "above") if rule.strict else ("at most", "at least")
                return f"{words[not is_first]} {self._cell(place, rule.columns[is_first])}"
            case kinds.PositiveOnlyIf() if self.cells.values(rule.columns[0])[place] <= 0:
                return "above 0" if is_first else f"other than {either(rule.values)}"
            case kinds.EmptyUnless() | kinds.PositiveOnlyIf() if not is_first:
                return either(rule.values) if rule.values else "given"
            case kinds.EmptyUnless():
                return "no value"
            case kinds.PositiveOnlyIf():
                return "at most 0"
            case kinds.Code():
                return f"a code like {rule.form}"
            case _:
                return phrase(rule, columns)


def blamed(
    broken: Sequence[Broken],
    formulas: Sequence[HeldFormula],
    found: Sequence[Evidence],
    columns: Mapping[str, RuleColumn],
) -> Iterator[Evidence]:
    """Yield evidence against cells that are or may be wrong in rows that break rules."""
    of_row = defaultdict[int, list[tuple[Broken, int]]](list)
    for of in broken:
        for place, row in enumerate(of.rows.tolist()):
            of_row[row].append((of, place))
    known = {(of.row, of.column) for of in found}
    for row, left in sorted(of_row.items()):
        holding = [rule.columns for rule, holds in formulas if holds[row]]
        while left:
            # For each column: the number of broken rules that name it, plus 1 if its cell is
            # in `known`; then minus the number of formulas that name it and hold in the row.
            counts = {
                name: (
                    sum(name in of.held.rule.columns for of, _ in left) + ((row, name) in known),
                    -sum(name in of_rule for of_rule in holding),
                )
                for of, _ in left
                for name in of.held.rule.columns
            }
            most = max(counts.values())
            worst = [name for name, count in counts.items() if count == most]
            if len(worst) > 1 and most[0] > 1:
                worst = [
                    name for name in worst if all(of.may_be(name, worst, at) for of, at in left)
                ]
            wrong = worst[0] if len(worst) == 1 and most[0] > 1 else None
            about = [of for of in left if wrong is None or wrong in of[0].held.rule.columns]
            left = [of for of in left if of not in about]
            named = [(of, place) for of, place in about if of.log_p[place] < 0]
            if wrong is not None and len(named) > 1:
                rules = [of.held.rule for of, _ in named]
                named = [(of, at) for of, at in named if of.keeps(rules, wrong, at)] or named
            for of, place in named:
                most = max(counts[name] for name in of.held.rule.columns)
                likely = [name for name in of.held.rule.columns if counts[name] == most]
                yield of.evidence(place, likely if wrong is None else [wrong], columns)
