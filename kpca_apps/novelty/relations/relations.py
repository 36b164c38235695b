"""What goes with what in a table: its levels given each other, and rules between its columns.

Both are learned with the encoding of a table, count in the scores of rows, and name cells that the
others of their rows contradict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kpca_apps.names import one_line, quoted
from kpca_apps.novelty.columns.plan import ColumnPlan
from kpca_apps.novelty.redact import Note
from kpca_apps.novelty.relations.checking import (
    LISTED_ROWS,
    WHOLE_TABLE,
    Cells,
    Checked,
    check,
    expected,
)
from kpca_apps.novelty.relations.conditional.levels import (
    Evidence,
    JudgedCell,
    JudgedNumber,
    LevelRelations,
)
from kpca_apps.novelty.relations.finding.discovery import find_rules
from kpca_apps.novelty.relations.rule import (
    AnyRule,
    Code,
    EmptyUnless,
    Equal,
    HeldRule,
    Linear,
    Order,
    PositiveOnlyIf,
    Product,
)
from kpca_apps.novelty.relations.rule_file import require_sound
from kpca_apps.novelty.relations.rules import RuleColumn, cites_values, columns_of
from kpca_apps.novelty.relations.sentences import phrase, sentence
from kpca_apps.novelty.result import FoundRule
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import date_text, rounded_text


class Contradiction(NamedTuple):
    """A cell that the others of its row contradict."""

    row: int  # from 0
    column: str
    seen: str
    suggestion: str  # the value that was probably meant; empty where that is open
    expected: str  # the same, or what would be allowed
    clearness: float  # in decimal digits
    sentence: str  # what contradicts it
    given: tuple[str, ...]  # the other columns


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """What the relations say of n rows."""

    surprise: FloatArray  # (n,), -log of the probability of what contradicts them; 0: nothing does
    contradictions: tuple[Contradiction, ...]


@dataclass(frozen=True, eq=False)
class Relations:
    """The relations between the columns of a table."""

    levels: LevelRelations
    rules: tuple[HeldRule, ...]  # all that were found, with how they held in the rows learned from
    columns: tuple[RuleColumn, ...]  # that rules name

    def validate(self) -> None:
        """Refuse rules that no table leads to."""
        require_sound(self.columns, self.rules)

    @classmethod
    def learn(cls, table: Table, plan: ColumnPlan, *, seed: int = 0) -> Relations:
        """Learn from the rows of a table, or some drawn from it."""
        found = find_rules(table, plan, seed=seed)
        columns = columns_of(found, Cells.of(table, plan))
        # Which rows break a rule is found again where they are judged.
        rules = tuple(HeldRule(of.rule, int(of.n_rows), int(of.n_broken)) for of in found)
        return cls(LevelRelations.learn(table, plan), rules, columns)

    def judge(
        self, table: Table, *, own: BoolArray | None = None, hidden: Collection[str] = ()
    ) -> JudgedRows:
        """Judge rows; those that were learned from (`own`, (n,)) as if left out.

        What it says of a row depends on no other row, so rules that compare rows are not asked. Of
        rules about hidden columns nothing is said.
        """
        judged = self.levels.judge(table, own=own)
        surprise, found = judged.surprise.copy(), [_of_levels(one) for one in judged.cells]
        found += [_of_usual(one, table) for one in judged.numbers]
        own = np.zeros(table.frame.height, dtype=bool) if own is None else own
        cells = Cells(table, {column.name: column.format for column in self.columns})
        asked = [
            held
            for held in self.rules
            if not isinstance(held.rule, WHOLE_TABLE)
            and {*held.rule.columns}.issubset(table.columns)
        ]
        by_rule: list[Contradiction] = []
        equations: list[tuple[AnyRule, Collection[int]]] = []
        for held in asked:
            checked = check(held.rule, cells)
            rows = np.flatnonzero(checked.broken)
            if isinstance(held.rule, Linear | Product):
                equations.append((held.rule, {*rows.tolist()}))
            if not rows.size:
                continue
            # The share of rows that break it, this one among them.
            is_new = ~own[rows]
            p = (held.n_broken + is_new) / (held.n_rows + is_new)
            # A term of the harmonic mean of p-values, of so many: (1/p - 1) / n.
            surprise[rows] += np.log1p(np.exp(-surprise[rows]) * (1.0 / p - 1.0) / len(asked))
            of_rule: FloatArray = -np.log(np.minimum(p * len(asked), 1.0))
            if {*held.rule.columns}.isdisjoint(hidden):
                clearness = of_rule / np.log(10.0)
                by_rule += self._of_rule(held, cells, checked, clearness)
        return JudgedRows(surprise, (*found, *_to_blame(by_rule, equations)))

    def found(self, table: Table, positions: IntArray) -> tuple[FoundRule, ...]:
        """Say how the rules hold in rows at some positions of a table."""
        by_name = {column.name: column for column in self.columns}
        cells, found = Cells(table, {name: of.format for name, of in by_name.items()}), []
        for held in self.rules:
            rule = held.rule
            if {*rule.columns}.issubset(table.columns):
                checked = check(rule, cells)
                n_broken = int(checked.broken.sum())
                first = np.flatnonzero(checked.broken)[:LISTED_ROWS]
                lines = None if table.lines is None else tuple(table.lines[first].tolist())
                cited = cites_values(rule)
                says = Note(phrase(rule, by_name), phrase(rule, by_name, cited), cited)
                found.append(
                    FoundRule(
                        rule=says,
                        kind=str(rule.__struct_config__.tag),
                        columns=rule.columns,
                        n_rows=int(checked.applies.sum()),
                        n_broken=n_broken,
                        rows=tuple((positions[first] + 1).tolist()),
                        lines=lines,
                    )
                )
        return tuple(found)

    def _of_rule(
        self, held: HeldRule, cells: Cells, checked: Checked, clearness: FloatArray
    ) -> Iterator[Contradiction]:
        """Say of each row that breaks a rule what it breaks."""
        rule, by_name = held.rule, {column.name: column for column in self.columns}
        says = f"{sentence(held, by_name)}."
        first, *others = (cells.table.column(name) for name in rule.columns)
        due = expected(rule, cells) if isinstance(rule, Linear | Product) else None
        rows = np.flatnonzero(checked.broken)[clearness > 0].tolist()
        for row, clear in zip(rows, clearness[clearness > 0], strict=True):
            suggestion, allowed = "", ""
            if due is not None:
                suggestion = _written(float(due[row]), by_name[rule.columns[0]])
            elif isinstance(rule, Equal):
                suggestion = others[0].text(row)
            else:
                allowed = _allowed(rule, [column.text(row) for column in others], by_name)
            yield Contradiction(
                row=row,
                column=rule.columns[0],
                seen=first.text(row).strip(),
                suggestion=suggestion,
                expected=suggestion or allowed,
                clearness=float(clear),
                sentence=says,
                given=rule.columns[1:],
            )


def _of_levels(cell: JudgedCell) -> Contradiction:
    """Say what the rows like that of a cell hold instead."""
    first, *more = cell.evidence
    given, n, others = _shared(first), first.n_agreeing, first.n_rows
    says = f"{n:,} of the {others:,} other rows with {given}"
    if more:
        # Columns that say little each say it together.
        read, meant = one_line(cell.seen, 40), one_line(cell.expected, 40)
        says = f'Of the {others:,} other rows with {given}, {n:,} read "{meant}" and '
        says += f'{first.n_same or "none"} "{read}"; of the {more[0].n_rows:,} with '
        says += f"{_shared(more[0])}, {more[0].n_agreeing:,} and {more[0].n_same or 'none'}."
    elif cell.expected:
        says += f' read "{one_line(cell.expected, 40)}".'
    elif 2 * n > others:
        says += " have no value there."
    else:
        says = f"Hardly any of the {others:,} other rows with {given} read so."
    return Contradiction(
        row=cell.row,
        column=cell.column,
        seen=cell.seen,
        suggestion=cell.expected,
        expected=cell.expected,
        clearness=cell.clearness,
        sentence=says,
        given=tuple(name for of in cell.evidence for name in of.columns),
    )


def _of_usual(number: JudgedNumber, table: Table) -> Contradiction:
    """Say what a number usually is in the rows of its level."""
    name, odd = number.spec.name, number.odd
    about = f"about {rounded_text(odd.expected, number.spec.format)}"
    return Contradiction(
        row=odd.row,
        column=name,
        seen=table.column(name).text(odd.row).strip(),
        suggestion="",
        expected=about,
        clearness=-odd.log_p / float(np.log(10.0)),
        sentence=(
            f"The {odd.n_rows:,} other rows with {quoted(number.given)} "
            f"{one_line(number.level, 40)} lie {about}, this one {odd.times:,.0f} times as far "
            "from that as they do."
        ),
        given=(number.given,),
    )


def _shared(evidence: Evidence) -> str:
    pairs = zip(evidence.columns, evidence.values, strict=True)
    return " and ".join(f"{quoted(name)} {one_line(text, 40)}" for name, text in pairs)


def _written(value: float, column: RuleColumn) -> str:
    """Write a number with the decimal sign of its column, or seconds as a date."""
    if column.dates is not None:
        return date_text(value, column.dates.has_time)
    digits = f"{value:.6g}" if abs(value) < 1e6 else f"{value:.10g}"
    return digits.replace(".", column.numbers.decimal) if column.numbers else digits


def _allowed(rule: AnyRule, others: list[str], columns: dict[str, RuleColumn]) -> str:
    """Say what a rule allows in the first of its columns, given the cells of the others."""
    match rule:
        case Order():
            return f"{'below' if rule.strict else 'at most'} {others[0]}"
        case EmptyUnless():
            return "no value"
        case PositiveOnlyIf():
            return "at most 0"
        case Code():
            return f"a code like {rule.form}"
        case _:
            return phrase(rule, columns)


def _to_blame(
    found: Sequence[Contradiction], broken: Sequence[tuple[AnyRule, Collection[int]]]
) -> Iterator[Contradiction]:
    """Keep, of a row that breaks several equations, what is said of the column that all name.

    `broken` are the equations, each with the rows that break it: to blame is the column in most
    of those that a row breaks and fewest of those that hold.
    """
    blamed: dict[int, set[str]] = {}
    n_of_row = Counter(row for _, rows in broken for row in rows)
    for row in {one.row for one in found if n_of_row[one.row] > 1}:
        counts: dict[str, tuple[int, int]] = {}
        for rule, rows in broken:
            for name in rule.columns:
                n_broken, n_holding = counts.get(name, (0, 0))
                counts[name] = (n_broken + (row in rows), n_holding - (row not in rows))
        most = max(counts.values())
        blamed[row] = {name for name, count in counts.items() if count == most}
    for one in found:
        to_blame = blamed.get(one.row, set())
        if len(to_blame) != 1 or one.column in to_blame or to_blame.isdisjoint(one.given):
            yield one
