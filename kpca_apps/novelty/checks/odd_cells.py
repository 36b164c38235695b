"""Collect odd and unreadable cells of a table, part by part.

Each check learns what a column allows (`CHECKS`). The clearness of a cell depends on no other row,
so the results of parts can be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from kpca_apps.errors import InputError
from kpca_apps.names import listed, quoted
from kpca_apps.novelty.checks.cell_check import CellCheck, OddValue
from kpca_apps.novelty.checks.check_digits import learn_codes
from kpca_apps.novelty.checks.forms import learn_forms
from kpca_apps.novelty.checks.number_rules import (
    LIKE_NUMBER,
    UNREADABLE,
    KnownNumbers,
    learn_numbers,
)
from kpca_apps.novelty.checks.spelling import learn_spelling
from kpca_apps.novelty.checks.stuck import MIN_ROWS, learn_stuck
from kpca_apps.novelty.checks.words import learn_words
from kpca_apps.novelty.columns.kinds import KINDS, Notation
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec
from kpca_apps.novelty.evidence import MAX_EVIDENCE, NO_EVIDENCE, SCHEMA, Evidence, in_findings
from kpca_apps.novelty.redact import Note
from kpca_apps.novelty.relations.finding.keys import NAMING
from kpca_apps.novelty.result import OddCell
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import PART_OF_DATE, WITH_NUMBER, Column, DateFormat

CellRule = tuple[CellCheck, ...]  # the checks learned from one column

# `learn(table, spec)` learns from a column of a table, or of rows sampled from it. It returns None
# if the check does not apply.
Learn = Callable[[Table, ColumnSpec], CellCheck | None]
CHECKS: tuple[Learn, ...] = (learn_stuck, learn_spelling, learn_words, learn_forms)
# Fields of `OddCell` that have the same name as a column of the data frame of evidence.
SHARED = ("column", "kind", "seen", "sentence", "suggestion", "expected", "rule", "n_cells")
MAX_CELLS = 20_000  # maximum number of odd cells kept for a column; the clearest are kept


def cell_rules(
    table: Table,
    plan: ColumnPlan,
    n_rows: int,
    known: Mapping[str, KnownNumbers] = MappingProxyType({}),
) -> tuple[CellRule, ...]:
    """Learn the checks of each checked column, from a table of `n_rows` rows or a sample of it.

    `known` maps columns of numbers to what a reference allows. Columns of codes get no other check.
    """
    is_series = is_time_series(table, plan, n_rows)
    checks = [check for check in CHECKS if is_series or check is not learn_stuck]
    rules = list[CellRule]()
    for spec in checked(plan, table):
        given = table, spec
        if (codes := learn_codes(*given)) is not None:
            rules.append((codes,))
            continue
        numbers = learn_numbers(*given, n_rows, known.get(spec.name))
        learned = (numbers, *(check(*given) for check in checks))
        rules.append(tuple(rule for rule in learned if rule is not None))
    return tuple(rules)


def is_time_series(table: Table, plan: ColumnPlan, n_rows: int) -> bool:
    """Return whether dates are sorted, in all rows or within the adjacent rows of each sensor.

    Rows sampled from a table of `n_rows` are not consecutive, so they are no time series.
    """
    n = len(table.frame)
    if not MIN_ROWS <= n == n_rows:
        return False
    columns = [(of, table.column[of.name]) for of in plan.specs if of.name in table.columns]
    dates = ((of.format, column) for of, column in columns if isinstance(of.format, DateFormat))
    steps = [np.diff(column.read(of).values) for of, column in dates]
    within = [np.ones(n - 1, dtype=bool)]
    for _, column in columns if steps else ():
        codes = column.levels.codes
        same = np.diff(codes) == 0
        if 0 < (~same).sum() == codes.max() <= n / MIN_ROWS:
            within.append(same)
    both = (step[of] for step in steps for of in within)
    return any((step >= 0).all() or (step <= 0).all() for step in both)


def checked(plan: ColumnPlan, table: Table) -> tuple[ColumnSpec, ...]:
    """Return the checked columns: those of the model, then identifiers."""
    naming = (of for of in plan.specs if of.role in NAMING and of.name in table.columns)
    return (*plan.used, *naming)


# Schema: one row for each odd value of a checked column; `row` and `line` list where it was found.
ODD: dict[str, Any] = {
    **dict.fromkeys(("column", "check"), pl.Int64),  # index of the column and of its check
    **dict.fromkeys(("kind", "seen"), pl.String),
    **dict.fromkeys(("clearness", "value"), pl.Float64),  # see `FoundValue`
    "n_cells": pl.Int64,
    **dict.fromkeys(("row", "line"), pl.List(pl.Int64)),  # counted from 1, in table order
}
NONE_ODD = pl.DataFrame(schema=ODD)


def _merged(odd: pl.DataFrame) -> pl.DataFrame:
    """Merge equal odd values, given in table order, and keep the clearest cells of each column.

    Rows play no part in the sort order, because a part knows only its own rows.
    """
    if odd.is_empty():  # polars 1.39 would lose the types of its columns
        return odd
    alike = odd.group_by("column", "check", "kind", "seen", maintain_order=True).agg(
        pl.first("clearness", "value"), pl.sum("n_cells"), pl.col("row", "line").explode()
    )
    by = ["column", "clearness", "kind", "seen"]
    alike = alike.sort(by, descending=[False, True, False, False], maintain_order=True)
    return _clearest(alike, MAX_CELLS, "column")


def _clearest(odd: pl.DataFrame, most: int, of: str | pl.Expr) -> pl.DataFrame:
    """For each value of `of` (a column or an expression), keep the first `most` cells of `odd`."""
    n = pl.col("row").list.len().cast(pl.Int64)
    left = odd.with_columns(left=most - (n.cum_sum() - n).over(of)).filter(pl.col("left") > 0)
    return left.with_columns(pl.col("row", "line").list.head("left")).drop("left")


@cache  # not at import: polars starts threads for it, which a process forked later would wait for
def _no_findings() -> pl.DataFrame:
    return in_findings(NO_EVIDENCE.with_columns(line="row", n_cells="row"))


def table_of_evidence(
    columns: Sequence[tuple[ColumnSpec, CellRule, Notation]], faults: CellFaults, *, n_rows: int
) -> tuple[pl.DataFrame, int]:
    """Return the evidence against cells as findings, strongest first, and the number of odd cells.

    `columns` holds spec, checks and notation of each checked column. Cells count as missing, not as
    odd, if several hold the same text instead of a number ("n.b."), or if several hold partial
    dates ("XX/05/2024"). Equal odd cells of a column are one finding, whose `n_cells` includes
    cells that are not listed.
    """
    if not (len(faults.odd) or len(faults.contradicted)):
        return _no_findings(), 0
    of_dates = [k for k, (spec, *_) in enumerate(columns) if spec.role == "datetime"]
    is_unread, seen = pl.col("kind") == UNREADABLE, pl.col("seen").str
    is_token = (pl.col("n_cells") > 1) & ~seen.contains(f"{WITH_NUMBER}|{LIKE_NUMBER}")
    is_part = pl.col("column").is_in(of_dates) & seen.contains(PART_OF_DATE)
    is_part &= is_unread & seen.contains(r"[xX?]|^\d{4}$")
    is_token |= is_part & (pl.col("n_cells").filter(is_part).sum().over("column") > 1)
    is_token &= is_unread
    n_cells = faults.n_odd - int(faults.odd.filter(is_token)["n_cells"].sum())
    by = ["clearness", pl.col("row").list.first()]
    found = faults.odd.filter(~is_token).sort(by, descending=[True, False], maintain_order=True)
    # Clearness is -log10(e), where e is the number of values at least as odd that are expected in a
    # column by chance. The p-value of a cell is e * len(columns) / n_rows.
    looks = np.log(max(len(columns), 1) / max(n_rows, 1))
    lines = list[tuple[Any, ...]]()
    for of in _clearest(found, MAX_EVIDENCE, pl.lit(0)).iter_rows(named=True):
        spec, rule, notation = columns[of["column"]]
        value, rows = OddValue(*(of[name] for name in OddValue._fields)), of["row"]
        says, meant = rule[of["check"]].explain(value, spec, notation)
        log_p = min(looks - of["clearness"] * np.log(10.0), 0.0)
        cell = Evidence(0, spec.name, value.kind, log_p, value.seen, meant, "", n_rows, says)
        counts = [1 + value.n_cells - len(rows), *[1] * (len(rows) - 1)]
        lines.append((rows, *cell[1:], of["line"], counts, spec.has_levels))
    each = {"row": ODD["row"], "line": ODD["line"], "n_cells": pl.List(pl.Int64)}
    schema = SCHEMA | {"line": pl.Int64, "n_cells": pl.Int64, "has_levels": pl.Boolean}
    own = pl.DataFrame(lines, schema=schema | each, orient="row").explode(*each)
    at = ["column", "row"]
    # For each contradicted cell, keep the strongest evidence, preferably with a suggestion. Add a
    # rule if any evidence names one.
    other = faults.contradicted.with_columns(
        n_cells=pl.lit(1, pl.Int64), has_levels=pl.lit(False), rule=pl.col("rule").max().over(at)
    ).sort(pl.col("suggestion") == "", "log_p", "row", maintain_order=True)
    other = other.unique(at, keep="first", maintain_order=True).select([*schema])
    # If a cell is odd by itself, its check explains it. A value suggested by other cells of its row
    # replaces the value suggested by the check, unless the check corrected a misspelt level.
    beside = own.join(other, on=at, how="left", suffix="_other", maintain_order="left")
    is_open = ~pl.col("has_levels") | (pl.col("suggestion") == "")
    replaces = is_open & (pl.col("suggestion_other") != "").fill_null(False)
    is_given = replaces | (pl.col("has_levels") & pl.col("given_other").is_not_null())
    both = pl.concat_str("sentence", "sentence_other", separator=" ")
    own = beside.with_columns(
        log_p=pl.when(replaces).then(pl.min_horizontal("log_p", "log_p_other")).otherwise("log_p"),
        sentence=pl.when(replaces).then(both).otherwise("sentence"),
        suggestion=pl.when(replaces).then("suggestion_other").otherwise("suggestion"),
        given=pl.when(is_given).then("given_other").otherwise("given"),
    ).select([*schema])
    # Drop cells that are contradicted by a cell that is odd by itself.
    involved = other.select(*at, of=pl.concat_list("column", "given")).explode("of")
    settled = involved.join(own, left_on=["of", "row"], right_on=at, how="semi")
    other = other.join(settled, on=at, how="anti")
    n_cells += len(other)
    evidence = pl.concat([own, other]).drop("has_levels").sort("log_p", "row", maintain_order=True)
    return in_findings(evidence.head(MAX_EVIDENCE)), n_cells


def listed_cells(evidence: pl.DataFrame, *, in_lines: bool) -> tuple[OddCell, ...]:
    """Convert findings to odd cells."""
    return tuple(
        OddCell(
            **{name: of[name] for name in SHARED},
            row=of["row"][0],
            more_rows=tuple(of["row"][1:]),
            line=of["line"][0] if in_lines else None,
            more_lines=tuple(of["line"][1:]) if in_lines else None,
            given=tuple(of["given"]),
            others=tuple(of["others"]),
            p_value=float(np.exp(of["log_p"])),
        )
        for of in evidence.iter_rows(named=True)
    )


# Words in the note that every table with missing cells gets.
FILLED = "filled with what the other columns suggest"


@dataclass(frozen=True)
class ColumnFaults:
    """Counts of the cells without a value in a column, or in a part of it."""

    n_cells: int
    n_missing: int  # number of cells that are empty or hold a text for missing values
    n_unreadable: int
    first_place: int = 0  # line or row (from 1) of the first unreadable cell; 0: none
    first: str = ""  # the text of the first unreadable cell

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec, places: IntArray) -> ColumnFaults:
        """Count the faults of a column; `places` (n,) are the cells' lines or rows."""
        readings = column.read(spec.format)
        n_missing, rows = int(readings.missing.sum()), np.flatnonzero(readings.unreadable)
        if not rows.size:
            return cls(len(column), n_missing, 0)
        first = int(places[rows[0]]), column.text(int(rows[0]))
        return cls(len(column), n_missing, rows.size, *first)

    def __add__(self, other: ColumnFaults) -> ColumnFaults:
        return ColumnFaults(
            self.n_cells + other.n_cells,
            self.n_missing + other.n_missing,
            self.n_unreadable + other.n_unreadable,
            self.first_place or other.first_place,
            self.first if self.n_unreadable else other.first,
        )


@dataclass(frozen=True)
class CellFaults:
    """Cells without a value and odd cells of a table, or of a part of it."""

    used: tuple[ColumnFaults, ...]  # faults of the model's columns (`ColumnPlan.used`)
    n_missing: tuple[int, ...]  # number of cells without a value in each column of the table
    odd: pl.DataFrame  # schema `ODD`: the clearest 20,000 cells of each checked column
    n_odd: int  # number of all odd cells, kept or not
    contradicted: (
        pl.DataFrame
    )  # the 100,000 strongest pieces of evidence from rules between columns

    @classmethod
    def of(
        cls,
        table: Table,
        plan: ColumnPlan,
        rules: Sequence[CellRule],
        first_row: int = 0,
        is_accepted: BoolArray | None = None,
        judged: pl.DataFrame = NO_EVIDENCE,
    ) -> CellFaults:
        """Check the cells of a table, or of a part that starts at `first_row`.

        `judged` is evidence from rules between columns. Cells of accepted rows (n,) are never odd.
        """
        rows = np.arange(first_row + 1, first_row + table.n_rows + 1)
        places = rows if table.lines is None else table.lines
        # Line numbers are ambiguous if the rows come from several files.
        named = places if table.source.file_column is None else rows
        skipped = np.zeros(len(rows), dtype=bool) if is_accepted is None else is_accepted
        used = tuple(ColumnFaults.of(table.column[one.name], one, named) for one in plan.used)
        found = list[tuple[Any, ...]]()
        for number, (spec, rule) in enumerate(zip(checked(plan, table), rules, strict=True)):
            column, over = table.column[spec.name], skipped.copy()
            for place, check in enumerate(rule):
                of_check = [*check.find(column, spec)]
                for of in of_check:
                    if (cells := of.cells[~over[of.cells]]).size:
                        stand = rows[cells].tolist(), places[cells].tolist()
                        found.append((number, place, *of[:3], of.value, cells.size, *stand))
                # The first check that finds a cell explains it.
                for of in of_check:
                    over[of.cells] = True
        odd = pl.DataFrame(found, schema=ODD, orient="row") if found else NONE_ODD
        n_missing, formats = [], plan.formats
        for name in table.frame.columns:
            readings = table.column[name].read(formats.get(name))
            n_missing.append(int((readings.missing | readings.unreadable).sum()))
        at = judged["row"].to_numpy()
        contradicted = judged.with_columns(row=rows[at], line=places[at]).filter(~skipped[at])
        return cls(used, tuple(n_missing), _merged(odd), int(odd["n_cells"].sum()), contradicted)

    def __add__(self, other: CellFaults) -> CellFaults:
        used = tuple(a + b for a, b in zip(self.used, other.used, strict=True))
        n_missing = tuple(a + b for a, b in zip(self.n_missing, other.n_missing, strict=True))
        odd = _merged(pl.concat([self.odd, other.odd]))
        both = pl.concat([self.contradicted, other.contradicted])
        if len(both) > MAX_EVIDENCE:
            both = both.sort("log_p", maintain_order=True).head(MAX_EVIDENCE)
        return CellFaults(used, n_missing, odd, self.n_odd + other.n_odd, both)

    def sentences(
        self, plan: ColumnPlan, name: str, *, in_lines: bool, drawn: bool = False
    ) -> Iterator[str]:
        """Yield notes on unreadable and missing cells of the table `name`.

        `drawn`: whether the columns were learned from a sample of the table. InputError if most
        cells of a column cannot be read.
        """
        filled, n_filled = [], 0
        for spec, column in zip(plan.used, self.used, strict=True):
            if column.n_unreadable:
                yield _unreadable_note(name, spec, column, "line" if in_lines else "row")
            n_gaps = column.n_missing + column.n_unreadable
            if n_gaps and not spec.n_missing:
                rows = "1 row lacks" if n_gaps == 1 else f"{n_gaps} rows lack"
                what = (
                    "which no training row did; a missing value does not change their scores."
                    if drawn
                    else "which no row of the reference did; false alarms may be more frequent "
                    "than stated."
                )
                yield f"Column {quoted(spec.name)}: {rows} a value, {what}"
            if n_gaps and not spec.has_levels:
                filled.append(spec.name)
                n_filled += n_gaps
        if filled:
            cells = "1 missing value was" if n_filled == 1 else f"{n_filled:,} missing values were"
            yield f"{cells} {FILLED}, in {listed(filled)}."


def _unreadable_note(name: str, spec: ColumnSpec, faults: ColumnFaults, word: str) -> Note:
    """Return a note on unreadable cells, or raise InputError if there are too many."""
    n, noun = faults.n_unreadable, KINDS[spec.role].noun
    # Say "possible date", since an impossible date still looks like a date.
    noun = noun if noun == "number" else f"possible {noun}"
    first = f" ({quoted(faults.first)})"
    if n > 1 and 2 * n > faults.n_cells - faults.n_missing:
        which = (
            f"{name}, {word} {faults.first_place}: column {quoted(spec.name)} holds {noun}s in "
            f"the reference, but {n} cells are not {noun}s, this one first"
        )
        rest = "; correct them, or fit a model without the column."
        raise InputError(Note(f"{which}{first}{rest}", f"{which}{rest}", (spec.name,)))
    bad = f"1 cell is not a {noun} and counts" if n == 1 else f"{n} cells are not {noun}s and count"
    where = f"{'first ' * (n > 1)}{'on' if word == 'line' else 'in'} {word} {faults.first_place}"
    which = f"Column {quoted(spec.name)}: {bad} as missing, {where}"
    return Note(f"{which}{first}.", f"{which}.", (spec.name,))
