"""Cells that are odd by themselves, collected part by part in bounded memory and put into words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.novelty.checks.number_rules import ODDITIES, NumberRule
from kpca_apps.novelty.checks.spelling import SpellingRule, folded
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec, quoted
from kpca_apps.novelty.result import OddCell
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column, DateFormat, NumberFormat, ValueFormat

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
CellRule = NumberRule | SpellingRule | None  # none for free text

# Of a column with more, and of a table, the clearest: nobody mends so many one by one.
MAX_CELLS, MAX_CELLS_OF_TABLE = 20_000, 100_000
UNREADABLE, MISSPELT = "unreadable", "misspelt"
UNREADABLE_CLEARNESS = 6.0
MAX_OF_A_WORD, MAX_SHARE_OF_A_WORD = 5, 0.01
# Letters typed for the digits they look like.
LOOKALIKES = str.maketrans("OoQDlI|SsBZz", "000011155822")


def cell_rules(table: Table, plan: ColumnPlan, n_rows: int) -> tuple[CellRule, ...]:
    """Learn what each used column allows, from a table of `n_rows` rows or from some drawn."""
    rules: list[CellRule] = []
    levels = {
        spec.name: spec.levels(table.column(spec.name)) for spec in plan.used if spec.has_levels
    }
    for spec in plan.used:
        column = table.column(spec.name)
        if spec.has_levels:
            own = levels[spec.name]
            rule = SpellingRule.fit(dict(own.most_frequent()))
            beside = ((of.codes, of.counts) for name, of in levels.items() if name != spec.name)
            rules.append(rule.beside(own.texts.to_list(), own.codes, beside))
        elif spec.format is None:
            rules.append(None)
        else:
            values, times = column.read(spec.format).ordered, n_rows / len(table.frame)
            is_date = isinstance(spec.format, DateFormat)
            rules.append(NumberRule.fit(values, times, is_date=is_date))
    return tuple(rules)


@dataclass(frozen=True)
class OddValue:
    """A value of a column that is odd by itself, and where it stands."""

    kind: str  # see `OddCell`
    seen: str  # as it stands in the table
    value: float  # as a number; NaN where it is none
    clearness: float  # in decimal digits; depends on the value and its column alone
    n_cells: int  # that hold it
    rows: tuple[int, ...]  # from 1, in the order of the table; all, or the first
    places: tuple[int, ...]  # lines of the file (or the same)

    def first(self, most: int) -> OddValue:
        """Return the value at the first places it stands."""
        return replace(self, rows=self.rows[:most], places=self.places[:most])


@dataclass(frozen=True)
class OddValues:
    """Odd values of a column, or of a part of it: those of the clearest 20,000 cells.

    A cell that was dropped for clearer or earlier ones never comes back, for how clear it is
    depends on no other row: parts add up to what the whole would give.
    """

    values: tuple[OddValue, ...] = ()
    n_cells: int = 0

    @classmethod
    def of(
        cls,
        column: Column,
        spec: ColumnSpec,
        rule: CellRule,
        first_row: int,
        places: IntArray,
        is_accepted: BoolArray | None = None,
    ) -> OddValues:
        """Look through a part of a column from `first_row` on, that stands in lines `places`.

        Cells of accepted rows are passed over.
        """
        judged = np.ones(len(column), dtype=bool) if is_accepted is None else ~is_accepted
        if isinstance(rule, SpellingRule):
            values = _misspelt(column, spec, rule, first_row, places, judged)
        else:
            values = _unusual(column, spec, rule, first_row, places, judged)
        found = _merged(values)
        return cls(_clearest(found, MAX_CELLS), sum(value.n_cells for value in found))

    def __add__(self, other: OddValues) -> OddValues:
        """Put together the values of both parts, of which `other` comes later in the table."""
        found = _merged((*self.values, *other.values))
        return OddValues(_clearest(found, MAX_CELLS), self.n_cells + other.n_cells)


def _merged(values: Iterable[OddValue]) -> list[OddValue]:
    """Put equal values, given in the order of the table, together; the clearest first."""
    found: dict[tuple[str, str], list[OddValue]] = {}
    for value in values:
        found.setdefault((value.kind, value.seen), []).append(value)
    merged = [
        replace(
            alike[0],
            n_cells=sum(one.n_cells for one in alike),
            rows=tuple(row for one in alike for row in one.rows),
            places=tuple(place for one in alike for place in one.places),
        )
        for alike in found.values()
    ]
    # By the value alone, not by where it stands: that would differ from part to part.
    return sorted(merged, key=lambda value: (-value.clearness, value.kind, value.seen))


def _clearest(values: Iterable[OddValue], most: int) -> tuple[OddValue, ...]:
    """Keep so many places of values, which come in their order."""
    kept: list[OddValue] = []
    for value in values:
        if most <= 0:
            break
        kept.append(value.first(most))
        most -= len(kept[-1].rows)
    return tuple(kept)


def _unusual(
    column: Column,
    spec: ColumnSpec,
    rule: NumberRule | None,
    first_row: int,
    places: IntArray,
    judged: BoolArray,
) -> Iterator[OddValue]:
    """Yield the cells of a column that its rule finds odd, or that cannot be read."""
    readings = column.read(spec.format)
    kinds = np.zeros(len(column), dtype=np.int64) if rule is None else rule.judge(readings.values)
    kinds[readings.unreadable] = len(ODDITIES)
    odd = np.flatnonzero(judged & (kinds != 0))
    cells = column.take(odd)
    is_text = cells.cells.dtype == pl.String
    clearness: dict[tuple[str, str], float] = {}
    for i, row in enumerate(odd.tolist()):
        kind, value = (*ODDITIES, UNREADABLE)[kinds[row]], float(readings.values[row])
        seen = cells.cells[i].strip() if is_text else cells.text(i)
        if (kind, seen) not in clearness:
            clearness[kind, seen] = UNREADABLE_CLEARNESS
            if rule is not None and kind != UNREADABLE:
                clearness[kind, seen] = rule.clearness(kind, value)
        at = (first_row + row + 1,), (int(places[row]),)
        yield OddValue(kind, seen, value, clearness[kind, seen], 1, *at)


def _misspelt(
    column: Column,
    spec: ColumnSpec,
    rule: SpellingRule,
    first_row: int,
    places: IntArray,
    judged: BoolArray,
) -> Iterator[OddValue]:
    """Yield the levels of a column that are common ones mistyped."""
    levels = spec.levels(column)
    for code, seen in enumerate(levels.texts):
        meant = rule.meant(seen)
        if meant is None:
            continue
        rows = np.flatnonzero(judged & (levels.codes == code))
        if rows.size:
            at = tuple((first_row + rows + 1).tolist()), tuple(places[rows].tolist())
            clear = 3.0 + float(np.log10(rule.counts[meant]))
            yield OddValue(MISSPELT, seen, np.nan, clear, len(rows), *at)


def odd_cells(
    columns: Sequence[tuple[ColumnSpec, CellRule, Notation, OddValues]],
    *,
    n_rows: int,
    in_lines: bool,
) -> tuple[tuple[OddCell, ...], int]:
    """Put the odd cells of a table of `n_rows` into words, clearest first; say how many were found.

    Of each column the model uses: what it is, allows, how it is written, and what was found. A word
    that stands for numbers again and again, "empty", is how the column says that one is missing.
    """
    few = max(MAX_OF_A_WORD, MAX_SHARE_OF_A_WORD * n_rows)
    found, n_cells = [], 0
    for spec, rule, notation, values in columns:
        n_cells += values.n_cells
        for value in values.values:
            if value.kind == UNREADABLE and value.n_cells > few and value.seen.isalpha():
                n_cells -= value.n_cells
            else:
                found.append((value, spec, rule, notation))
    found.sort(key=lambda entry: (-entry[0].clearness, entry[0].rows[0]))
    kept = _clearest((value for value, *_ in found), MAX_CELLS_OF_TABLE)
    listed = tuple(
        _in_words(value, spec, rule, notation, in_lines=in_lines)
        for value, (_, spec, rule, notation) in zip(kept, found, strict=False)
    )
    return listed, n_cells


def _in_words(
    value: OddValue, spec: ColumnSpec, rule: CellRule, notation: Notation, *, in_lines: bool
) -> OddCell:
    format, kind = spec.format, value.kind
    if kind == UNREADABLE:
        sentence = "Not a possible date." if isinstance(format, DateFormat) else "Not a number."
        if isinstance(format, NumberFormat) and format.clock:
            sentence = "Not a clock time."
        elif isinstance(format, NumberFormat) and format.word:
            sentence = f"Not a number with {quoted(format.word)} behind it."
        suggestion = _readable(value.seen, format, rule)
    elif isinstance(rule, SpellingRule):
        suggestion = rule.meant(value.seen) or ""
        times = rule.counts[suggestion]
        how = "Written like" if folded(value.seen) == folded(suggestion) else "One slip from"
        sentence = f"{how} {quoted(suggestion)}, which is in {times:,} cells."
    else:
        assert rule is not None and format is not None
        sentence, suggestion = _of_number(value, rule, format, notation)
        kind = "date" if rule.is_date else kind
    return OddCell(
        column=spec.name,
        kind=kind,
        seen=value.seen,
        sentence=sentence,
        suggestion=suggestion,
        row=value.rows[0],
        line=value.places[0] if in_lines else None,
        n_cells=value.n_cells,
        more_rows=value.rows[1:],
        more_lines=value.places[1:] if in_lines else None,
    )


def _of_number(
    value: OddValue, rule: NumberRule, format: ValueFormat, notation: Notation
) -> tuple[str, str]:
    """Say what is odd about a number or a date, and what was probably meant."""
    if value.kind == "sign":
        positive = rule.sign is not None and rule.sign.sign > 0
        others = "0 or more" if positive else "0 or less"
        return (
            f"The column's other numbers are {others}, and this one without its sign is usual.",
            value.seen[1:] if positive else f"-{value.seen}",
        )
    if value.kind == "placeholder":
        low, high = rule.middle
        where = "far above all others" if value.value > high else "far below all others"
        if value.value < 0 <= low:
            where = "below 0, as no other number"
        return f"In {value.n_cells:,} cells, {where}: a code for a missing value?", ""
    if value.kind == "zero":
        return "The column's other numbers are all far from 0: a missing value?", ""
    side = rule.side_beyond(value.value)
    upper = ("after", "latest") if rule.is_date else ("above", "largest")
    lower = ("before", "earliest") if rule.is_date else ("below", "smallest")
    where, end = upper if side.turn > 0 else lower
    reach = notation.write(side.reach, format)
    sentence = f"Far {where} the rest of the column, whose {end} is {reach}."
    meant = rule.meant(value.value)
    # Of a clock time no digit is likelier to be wrong than another.
    if meant is None or (isinstance(format, NumberFormat) and format.clock):
        return sentence, ""
    return sentence, notation.write(meant, format)


def _readable(seen: str, format: ValueFormat | None, rule: CellRule) -> str:
    """Return what would read as a usual number with letters for the digits they look like."""
    if not isinstance(format, NumberFormat) or not isinstance(rule, NumberRule):
        return ""
    spaced, swapped = "".join(seen.split()), seen.translate(str.maketrans(".,", ",."))
    tried = [seen.translate(LOOKALIKES), spaced, spaced.translate(LOOKALIKES), swapped]
    values = Column(pl.Series(tried)).read(format).values
    low, high = rule.middle
    usual = [text for text, value in zip(tried, values, strict=True) if low <= value <= high]
    return usual[0] if usual else ""
