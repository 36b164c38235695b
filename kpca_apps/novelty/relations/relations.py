"""What goes with what in a table: its levels given each other, and rules between its columns.

Both are learned with the encoding of a table, count in the scores of rows, and name cells that the
others of their rows contradict.
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
from kpca_apps.novelty.relations.blame import Supposed, UsualValues, fitting, kept, suppose
from kpca_apps.novelty.relations.checking import LISTED_ROWS, Cells, check, code_forms
from kpca_apps.novelty.relations.conditional.levels import LevelRelations
from kpca_apps.novelty.relations.finding.discovery import find_rules
from kpca_apps.novelty.relations.rule import WHOLE_TABLE, AnyRule, HeldRule
from kpca_apps.novelty.relations.rule_file import require_sound
from kpca_apps.novelty.relations.rules import RuleColumn, cites_values, columns_of
from kpca_apps.novelty.relations.sentences import either, phrase, sentence
from kpca_apps.novelty.result import CONTRADICTED, FoundRule
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table

# Of rules that hold in nearly all rows by more than chance, the share whose exceptions are there by
# right: so much less probable than its share of the rows is a row that breaks one.
LOG_BY_CHANCE = float(np.log(0.01))


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """What the relations say of n rows."""

    surprise: FloatArray  # (n,), -log of the probability of what contradicts them; 0: nothing does
    evidence: pl.DataFrame  # against the cells that are named, of `checks.evidence.SCHEMA`


@dataclass(frozen=True, eq=False)
class Relations:
    """The relations between the columns of a table."""

    levels: LevelRelations
    rules: tuple[HeldRule, ...]  # all that were found, with how they held in the rows learned from
    columns: tuple[RuleColumn, ...]  # that rules name
    usual: tuple[UsualValues, ...]  # what those of numbers and dates, and of levels, usually hold

    def validate(self) -> None:
        """Refuse rules that no table leads to."""
        require_sound(self.columns, self.rules)
        numbers = {column.name for column in self.columns if column.format is not None}
        if (
            not self.levels.numbers.names
            <= {of.name for of in self.usual}
            <= numbers | self.levels.numbers.names
        ):
            raise ValueError("usual values of other columns")

    @classmethod
    def learn(cls, table: Table, plan: ColumnPlan, *, seed: int = 0) -> Relations:
        """Learn from the rows of a table, or some drawn from it."""
        found = find_rules(table, plan, seed=seed)
        cells = Cells.of(table, plan)
        columns = columns_of(found, cells)
        # Which rows break a rule is found again where they are judged.
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
        """Judge rows; those that were learned from (`own`, (n,)) as if left out.

        What it says of a row depends on no other row, so rules that compare rows are not asked. Of
        rules about hidden columns nothing is said, nor of the width of later codes in columns
        `naming` the rows.
        """
        usual = {of.name: of for of in self.usual}
        notations = {name: of.notation for name, of in usual.items()}
        judged = self.levels.judge(table, own=own, notations=notations)
        surprise = judged.surprise.copy()
        own = np.zeros(table.frame.height, dtype=bool) if own is None else own
        cells = Cells(table, {column.name: column.format for column in self.columns})
        asked = [
            held
            for held in self.rules
            if not isinstance(held.rule, WHOLE_TABLE)
            and {*held.rule.columns}.issubset(table.columns)
        ]
        broken: list[_Broken] = []
        formulas: list[tuple[AnyRule, BoolArray]] = []  # and the rows in which each holds
        for held in asked:
            checked = check(held.rule, cells)
            rows = np.flatnonzero(checked.broken & ~(_has_grown(held.rule, cells, naming) & ~own))
            is_visible = {*held.rule.columns}.isdisjoint(hidden)
            if is_visible and isinstance(held.rule, kinds.Equal | kinds.Linear | kinds.Product):
                formulas.append((held.rule, checked.holds))
            if not rows.size:
                continue
            # The share of rows that break it, this one among them.
            is_new = ~own[rows]
            p = (held.n_broken + is_new) / (held.n_rows + is_new)
            # A term of the harmonic mean of p-values, of so many: (1/p - 1) / n.
            surprise[rows] += np.log1p(np.exp(-surprise[rows]) * (1.0 / p - 1.0) / len(asked))
            if is_visible:
                of_rows = replace(cells, table=replace(table, frame=table.frame[rows], lines=None))
                broken.append(_Broken(held, of_rows, rows, np.log(p * len(asked)), usual))
        # What a rule says of a row is more than what numbers like its own usually are.
        ruled = {
            (row, name)
            for of in broken
            for row in of.rows.tolist()
            for name in of.held.rule.columns
        }
        numbers = (one for one in judged.numbers if (one.row, one.column) not in ruled)
        # The terms of a formula that holds in a row confirm each other; a copy confirms nothing.
        found = [
            one
            for one in (*judged.cells, *numbers)
            if not any(
                holds[one.row] and one.column in rule.columns and not isinstance(rule, kinds.Equal)
                for rule, holds in formulas
            )
        ]
        of_rules = self._of_rules(broken, formulas, found)
        return JudgedRows(surprise, as_table([*found, *of_rules]))

    def found(
        self, table: Table, positions: IntArray, naming: Collection[str] = ()
    ) -> tuple[FoundRule, ...]:
        """Say how the rules hold in rows at some positions of a table; `naming` as of `judge`."""
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
                says = Note(phrase(rule, by_name), phrase(rule, by_name, cited), cited)
                found.append(
                    FoundRule(
                        rule=says,
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
        formulas: Sequence[tuple[AnyRule, BoolArray]],
        found: Sequence[Evidence],
    ) -> Iterator[Evidence]:
        """Say of each row that breaks rules which of its cells are wrong, or may be."""
        of_row = defaultdict[int, list[tuple[_Broken, int]]](list)
        for of in broken:
            for place, row in enumerate(of.rows.tolist()):
                of_row[row].append((of, place))
        known = {(one.row, one.column) for one in found}
        columns = {column.name: column for column in self.columns}
        for row, left in sorted(of_row.items()):
            holding = [rule.columns for rule, holds in formulas if holds[row]]
            while left:
                counts = {
                    # Broken rules and levels against a column, and formulas for it.
                    name: (
                        sum(name in one.held.rule.columns for one, _ in left)
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
                one = worst[0] if len(worst) == 1 and most[0] > 1 else None
                about = [of for of in left if one is None or one in of[0].held.rule.columns]
                left = [of for of in left if of not in about]
                named = [(of, place) for of, place in about if of.log_p[place] < 0]
                if one is not None and len(named) > 1:
                    rules = [of.held.rule for of, _ in named]
                    named = [(of, at) for of, at in named if of.mends(rules, one, at)] or named
                for of, place in named:
                    most = max(counts[name] for name in of.held.rule.columns)
                    likely = [name for name in of.held.rule.columns if counts[name] == most]
                    yield of.say(place, likely if one is None else [one], columns)


def _has_grown(rule: AnyRule, cells: Cells, naming: Collection[str]) -> BoolArray:
    """Tell where codes that name rows have the form of a rule but for the number of last digits."""
    if not isinstance(rule, kinds.Code) or rule.columns[0] not in naming:
        return np.zeros(len(cells), dtype=bool)
    forms = code_forms(cells.texts(rule.columns[0])).fill_null("")
    has_start = forms.str.strip_chars_end("9") == rule.form.rstrip("9")
    return (has_start & forms.str.ends_with("9") & rule.form.endswith("9")).to_numpy()


@dataclass(frozen=True, eq=False)
class _Broken:
    """A rule in the r rows that break it."""

    held: HeldRule
    cells: Cells
    rows: IntArray  # (r,), from 0
    log_p: FloatArray  # (r,), of a row that breaks any of so many rules in so few rows
    usual: Mapping[str, UsualValues]
    _kept: dict[tuple[str, AnyRule], BoolArray] = field(default_factory=dict, init=False)

    @cached_property
    def supposed(self) -> dict[str, Supposed]:
        """What follows if the value of each column is the wrong one."""
        return suppose(self.held.rule, self.cells, self.usual)

    def may_be(self, name: str, names: Collection[str], place: int) -> bool:
        """Whether a column may be wrong in a row, of some; true where the rule is not about it."""
        of_rule = {one: self.supposed[one] for one in self.held.rule.columns if one in names}
        return name not in of_rule or name in fitting(of_rule, place)

    def mends(self, rules: Iterable[AnyRule], name: str, place: int) -> bool:
        """Whether what should stand in a column keeps other rules of a row too."""
        mended = self.supposed[name].mended
        if mended is None:
            return False
        for rule in rules:
            if (name, rule) not in self._kept:
                self._kept[name, rule] = kept(rule, self.cells, name, mended)
        return all(self._kept[name, rule][place] for rule in rules)

    def say(self, place: int, names: Sequence[str], columns: Mapping[str, RuleColumn]) -> Evidence:
        """Say which cell of a row is wrong: of those in some columns, any that may be."""
        rule = self.held.rule
        name, *others = fitting({name: self.supposed[name] for name in names}, place)
        suggestion = "" if others else self._meant(place, name, columns)
        says, allowed = f"{sentence(self.held, columns)}.", suggestion
        if not suggestion:
            meant = [self._allowed(place, one, columns) for one in (name, *others)]
            names = [f"{quoted(one)} " for one in others]
            allowed = ", or ".join(map("".join, zip(["", *names], meant, strict=True)))
        if others:
            says = f"{says[:-1]}: here {quoted(name)} should be {allowed}."
        return Evidence(
            row=int(self.rows[place]),
            column=name,
            kind=CONTRADICTED,
            log_p=float(self.log_p[place]) + LOG_BY_CHANCE,
            seen=self.cells.table.column(name).text(place).strip(),
            suggestion=suggestion,
            expected=allowed,
            support=self.held.n_rows - self.held.n_broken,
            sentence=says,
            given=tuple(one for one in rule.columns if one != name),
            others=tuple(others),
            rule=phrase(rule, columns),
        )

    def _meant(self, place: int, name: str, columns: Mapping[str, RuleColumn]) -> str:
        """Write the value that a formula gives for a column; empty where there is none."""
        rule, mended = self.held.rule, self.supposed[name].mended
        if mended is not None and np.isfinite(mended[place]):
            format = columns[name].format
            assert format is not None
            return self.usual[name].write(float(mended[place]), format)
        if not isinstance(rule, kinds.Equal):
            return ""
        other = rule.columns[rule.columns[0] == name]
        return self.cells.table.column(other).text(place).strip()

    def _allowed(self, place: int, name: str, columns: Mapping[str, RuleColumn]) -> str:
        """Say what a rule allows in one of its columns, given the other cells of a row."""
        if meant := self._meant(place, name, columns):
            return meant
        rule, is_first = self.held.rule, name == self.held.rule.columns[0]
        match rule:
            case kinds.Order():
                other = self.cells.table.column(rule.columns[is_first]).text(place).strip()
                words = ("below", "above") if rule.strict else ("at most", "at least")
                return f"{words[not is_first]} {other}"
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
