"""Relations between the columns of a table: levels that predict each other, and rules.

Relations are learned when a table is encoded. They contribute to the scores of rows, and find the
cells that other cells of the row contradict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from kpca_apps.names import quoted
from kpca_apps.novelty.columns.plan import ColumnPlan
from kpca_apps.novelty.evidence import Evidence, as_table
from kpca_apps.novelty.redact import Note
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.blame import Supposed, UsualValues, fitting, holds_with, suppose
from kpca_apps.novelty.relations.checking import LISTED_ROWS, Cells, check, code_forms
from kpca_apps.novelty.relations.conditional.levels import JudgedCells, LevelRelations
from kpca_apps.novelty.relations.finding.discovery import columns_of, find_rules
from kpca_apps.novelty.relations.rule import (
    WHOLE_TABLE,
    AnyRule,
    HeldRule,
    RuleColumn,
    cites_values,
)
from kpca_apps.novelty.relations.rule_file import require_sound
from kpca_apps.novelty.relations.sentences import either, phrase, sentence
from kpca_apps.novelty.result import CONTRADICTED, FoundRule
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table

_Formula = tuple[AnyRule, BoolArray]  # a formula, and the rows (n,) in which it holds
LOG_BY_CHANCE = float(np.log(0.01))  # log of the probability that a row breaking a rule is correct


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Surprise of n rows, and evidence against their cells, by all relations."""

    surprise: FloatArray  # (n,), -log of the probability of the contradictions; 0 without any
    evidence: pl.DataFrame  # evidence against cells, with the schema `novelty.evidence.SCHEMA`


@dataclass(frozen=True, eq=False)
class Relations:
    """The relations between the columns of a table."""

    levels: LevelRelations
    rules: tuple[HeldRule, ...]  # rules with their counts in the training rows
    columns: tuple[RuleColumn, ...]  # columns of the rules
    usual: tuple[UsualValues, ...]  # usual values of columns of numbers and dates

    def validate(self) -> None:
        """Refuse rules that cannot come from a table."""
        require_sound(self.columns, self.rules)
        numbers = {column.name for column in self.columns if column.format is not None}
        predicted, usual = self.levels.numbers.names, {of.name for of in self.usual}
        if not predicted <= usual <= numbers | predicted:
            raise ValueError("usual values of other columns")

    @classmethod
    def learn(cls, table: Table, plan: ColumnPlan, *, seed: int = 0) -> Relations:
        """Learn from the rows of a table."""
        found = find_rules(table, plan, seed=seed)
        cells = Cells.of(table, plan)
        columns = columns_of(found, cells)
        rules = tuple(HeldRule(of.rule, int(of.n_rows), int(of.n_broken)) for of in found)
        levels = LevelRelations.learn(table, plan)
        named = [*(column.name for column in columns), *sorted(levels.numbers.names)]
        return cls(levels, rules, columns, UsualValues.learn(cells.take(named)))

    def judge(
        self,
        table: Table,
        *,
        own: BoolArray | None = None,
        hidden: Collection[str] = (),
        naming: Collection[str] = (),
    ) -> JudgedRows:
        """Judge each row; a training row (marked in `own`, (n,)) as if training had left it out.

        Rules that compare rows are not used. Rules about `hidden` columns give no evidence. Codes
        in columns that identify rows (`naming`) may have more digits than the rule says.
        """
        usual = {of.name: of for of in self.usual}
        notations = {name: of.notation for name, of in usual.items()}
        judged = self.levels.judge(table, own=own, notations=notations)
        surprise = judged.surprise.copy()
        own = np.zeros(table.n_rows, dtype=bool) if own is None else own
        cells = Cells(table, {column.name: column.format for column in self.columns})
        tested = [
            held
            for held in self.rules
            if not isinstance(held.rule, WHOLE_TABLE)
            and {*held.rule.columns}.issubset(table.columns)
        ]
        broken: list[_Broken] = []
        formulas: list[_Formula] = []
        for held in tested:
            checked = check(held.rule, cells)
            rows = np.flatnonzero(checked.broken & ~(_has_grown(held.rule, cells, naming) & ~own))
            is_visible = {*held.rule.columns}.isdisjoint(hidden)
            if is_visible and isinstance(held.rule, kinds.Formula):
                formulas.append((held.rule, checked.holds))
            if not rows.size:
                continue
            is_new = ~own[rows]
            p = (held.n_broken + is_new) / (held.n_rows + is_new)
            # exp(surprise) is the reciprocal of the harmonic mean of n p-values. One of these falls
            # from 1 to p, which adds (1/p - 1) / n.
            surprise[rows] += np.log1p(np.exp(-surprise[rows]) * (1.0 / p - 1.0) / len(tested))
            if is_visible:
                of_rows = replace(cells, table=replace(table, frame=table.frame[rows], lines=None))
                broken.append(_Broken(held, of_rows, rows, np.log(p * len(tested)), usual))
        found = _unsettled(judged, broken, formulas)
        of_rules = self._of_rules(broken, formulas, found)
        return JudgedRows(surprise, as_table([*found, *of_rules]))

    def found(
        self, table: Table, positions: IntArray, naming: Collection[str] = ()
    ) -> tuple[FoundRule, ...]:
        """Describe how the rules hold in rows at given `positions`; `naming` as in `judge`."""
        by_name = {column.name: column for column in self.columns}
        cells, found = Cells(table, {name: of.format for name, of in by_name.items()}), []
        for held in self.rules:
            rule = held.rule
            if {*rule.columns}.issubset(table.columns):
                checked = check(rule, cells)
                broken = np.flatnonzero(checked.broken & ~_has_grown(rule, cells, naming))
                first = broken[:LISTED_ROWS]
                lines = None if table.lines is None else tuple(table.lines[first].tolist())
                cited = cites_values(rule)
                found.append(
                    FoundRule(
                        rule=Note(phrase(rule, by_name), phrase(rule, by_name, cited), cited),
                        kind=str(rule.__struct_config__.tag),
                        columns=rule.columns,
                        n_rows=int(checked.applies.sum()),
                        n_broken=len(broken),
                        rows=tuple((positions[first] + 1).tolist()),
                        lines=lines,
                    )
                )
        return tuple(found)

    def _of_rules(
        self,
        broken: Sequence[_Broken],
        formulas: Sequence[_Formula],
        found: Sequence[Evidence],
    ) -> Iterator[Evidence]:
        """Yield evidence against cells that are or may be wrong in rows that break rules."""
        of_row = defaultdict[int, list[tuple[_Broken, int]]](list)
        for of in broken:
            for place, row in enumerate(of.rows.tolist()):
                of_row[row].append((of, place))
        known = {(of.row, of.column) for of in found}
        columns = {column.name: column for column in self.columns}
        for row, left in sorted(of_row.items()):
            holding = [rule.columns for rule, holds in formulas if holds[row]]
            while left:
                # For each column: the number of broken rules that name it, plus 1 if its cell is
                # in `known`; then minus the number of formulas that name it and hold in the row.
                counts = {
                    name: (
                        sum(name in of.held.rule.columns for of, _ in left)
                        + ((row, name) in known),
                        -sum(name in columns for columns in holding),
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


def _unsettled(
    judged: JudgedCells, broken: Sequence[_Broken], formulas: Sequence[_Formula]
) -> list[Evidence]:
    """Return the evidence against cells that no rule settles."""
    # A broken rule takes precedence over a prediction for the same cell.
    ruled = {
        (row, name) for of in broken for row in of.rows.tolist() for name in of.held.rule.columns
    }
    numbers = (of for of in judged.numbers if (of.row, of.column) not in ruled)
    # A formula that holds confirms its cells, except `Equal`: both cells may copy one error.
    confirming = [of for of in formulas if not isinstance(of[0], kinds.Equal)]
    return [
        of
        for of in (*judged.cells, *numbers)
        if not any(holds[of.row] and of.column in rule.columns for rule, holds in confirming)
    ]


def _has_grown(rule: AnyRule, cells: Cells, naming: Collection[str]) -> BoolArray:
    """Return which rows have codes of the rule's form, with more or fewer digits at the end."""
    if not isinstance(rule, kinds.Code) or rule.columns[0] not in naming:
        return np.zeros(len(cells), dtype=bool)
    forms = code_forms(cells.texts(rule.columns[0])).fill_null("")
    has_start = forms.str.strip_chars_end("9") == rule.form.rstrip("9")
    return (has_start & forms.str.ends_with("9") & rule.form.endswith("9")).to_numpy()


@dataclass(frozen=True, eq=False)
class _Broken:
    held: HeldRule
    cells: Cells
    rows: IntArray  # (r,), row indices from 0
    log_p: FloatArray  # (r,), log p-values corrected for the number of rules
    usual: Mapping[str, UsualValues]
    _holds: dict[tuple[str, AnyRule], BoolArray] = field(default_factory=dict, init=False)

    @cached_property
    def supposed(self) -> dict[str, Supposed]:
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
