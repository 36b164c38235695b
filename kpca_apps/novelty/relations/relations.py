"""Relations between the columns of a table: levels that predict each other, and rules.

Relations are learned when a table is encoded. They contribute to the scores of rows, and find the
cells that other cells of the row contradict.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from kpca_apps.novelty.columns.plan import ColumnPlan
from kpca_apps.novelty.evidence import Evidence, as_table
from kpca_apps.novelty.redact import Note
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.blame import Broken, HeldFormula, UsualValues, blamed
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
from kpca_apps.novelty.relations.sentences import phrase
from kpca_apps.novelty.result import FoundRule
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table


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
        broken: list[Broken] = []
        formulas: list[HeldFormula] = []
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
                broken.append(Broken(held, of_rows, rows, np.log(p * len(tested)), usual))
        found = _unsettled(judged, broken, formulas)
        of_rules = blamed(broken, formulas, found, {of.name: of for of in self.columns})
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


def _unsettled(
    judged: JudgedCells, broken: Sequence[Broken], formulas: Sequence[HeldFormula]
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
