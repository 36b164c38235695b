"""Rules of a table of any size: found in a sample in memory, checked on all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from kpca_apps.errors import InputError, about
from kpca_apps.names import quoted, suggest
from kpca_apps.novelty.columns.lookup import naming_identifier, resolve_columns
from kpca_apps.novelty.columns.parts import AnyTable, Execution, draw_sample, each_part, take_rows
from kpca_apps.novelty.columns.plan import ColumnOptions, infer_plan
from kpca_apps.novelty.redact import HIDDEN, redact_source
from kpca_apps.novelty.relations.checking import LISTED_ROWS, Cells, check
from kpca_apps.novelty.relations.finding.discovery import columns_of, find_rules
from kpca_apps.novelty.relations.finding.evidence import NEARLY
from kpca_apps.novelty.relations.rule import (
    WHOLE_TABLE,
    AnyRule,
    HeldRule,
    HeldRules,
    without_values,
)
from kpca_apps.novelty.relations.sentences import phrase
from kpca_apps.system.limits import require_table
from kpca_apps.tables.table import Table, require_formats
from kpca_apps.tables.values import ValueFormat


@dataclass(frozen=True)
class BrokenRow:
    """A row that breaks a rule."""

    row: int  # number of the row, from 1
    line: int | None  # line of the file where the row starts; None without lines
    file: str  # name of the file if the table is several files, else ""
    id: str  # id of the row, else ""
    cells: tuple[str, ...]  # cells of the rule's columns, as in the table


def find_table_rules(
    table: AnyTable, options: ColumnOptions, *, seed: int, execution: Execution
) -> HeldRules:
    """Find the rules of a table that do not quote values of hidden columns."""
    options = resolve_columns(options, table, execution)
    sample = draw_sample(table, seed, execution)
    table = sample.whole
    plan = infer_plan(sample.table, options, for_model=False)
    found = find_rules(sample.table, plan, seed=seed)
    id = options.id or naming_identifier(sample.table, sample.index, plan)
    columns = columns_of(found, Cells.of(sample.table, plan))
    name, notes = table.source.short_name, redact_source(table.source, options.hide).notes
    rules = HeldRules(name, table.n_rows, columns, found, id, notes, options.hide)
    if not isinstance(table, Table):
        rules = count_rows(rules, table, execution)
        held = (of for of in rules.rules if of.n_broken <= (1 - NEARLY) * of.n_rows)
        rules = replace(rules, rules=tuple(held))
    return without_values(rules)


def count_rows(rules: HeldRules, table: AnyTable, execution: Execution) -> HeldRules:
    """Check rules on all rows of a table; InputError if it lacks one of their columns.

    Notes name the rules that apply to no row.
    """
    names = table.columns
    for column in rules.columns:
        if column.name not in names:
            raise InputError(
                f"has no column {quoted(column.name)}, which the rules of "
                f"{rules.table or 'the file'} need.{suggest(column.name, names)}",
                table.source.name,
            )
    formats = {column.name: column.format for column in rules.columns}
    open_orders = require_formats(draw_sample(table, 0, execution).table, formats, "the rules")
    counted, start = {of.rule: HeldRule(of.rule) for of in rules.rules}, 0
    alone = [rule for rule in counted if not isinstance(rule, WHOLE_TABLE)]
    count = partial(_count, rules=alone, formats=formats)
    for n_rows, of_part in each_part(table, "Checking rules", count, execution):
        for more in of_part:
            of, listed = counted[more.rule], (start + row for row in more.broken)
            counted[more.rule] = HeldRule(
                more.rule,
                of.n_rows + more.n_rows,
                of.n_broken + more.n_broken,
                (*of.broken, *listed)[:LISTED_ROWS],
            )
        start += n_rows
    if together := [rule for rule in counted if isinstance(rule, WHOLE_TABLE)]:
        cells = Cells(_columns_of(table, together, execution), formats)
        counted |= {rule: check(rule, cells).summary(rule) for rule in together}
    held = tuple(counted[of.rule] for of in rules.rules)
    silent = [phrase(of.rule, rules.by_name, rules.hidden) for of in held if not of.n_rows]
    of_files = redact_source(table.source, rules.hidden).notes
    notes = (*of_files, *open_orders, *(f"This rule applies to no row: {s}." for s in silent))
    return replace(rules, table=table.source.short_name, n_rows=start, rules=held, notes=notes)


def check_table_rules(
    rules: HeldRules, table: AnyTable, options: ColumnOptions, execution: Execution
) -> tuple[HeldRules, tuple[tuple[BrokenRow, ...], ...]]:
    """Check rules on all rows of a table; return also the first 1,000 rows that break each.

    Of the `options`, only `id` and `hide` are used.
    """
    options = resolve_columns(options, table, execution)
    checked = count_rows(replace(rules, hidden=options.hide), table, execution)
    return checked, listed_rows(checked, table, LISTED_ROWS, execution, id=options.id)


def _count(
    table: Table, rules: Sequence[AnyRule], formats: Mapping[str, ValueFormat | None]
) -> tuple[int, list[HeldRule]]:
    """Check rules on some rows; return the number of rows, and each rule's counts."""
    cells = Cells(table, formats)
    return len(cells), [check(rule, cells).summary(rule) for rule in rules]


def _columns_of(table: AnyTable, rules: Sequence[AnyRule], execution: Execution) -> Table:
    """Return the columns of some rules, with all rows."""
    if isinstance(table, Table):
        return table
    names = list(dict.fromkeys(name for rule in rules for name in rule.columns))
    with about(table.source.name):
        require_table(table.n_rows, len(names))
    pieces = each_part(table, "Fetching columns", partial(_take_columns, names=names), execution)
    return Table(pl.concat(pieces), None, table.source)


def _take_columns(table: Table, names: list[str]) -> pl.DataFrame:
    return table.frame[names]


def listed_rows(
    rules: HeldRules, table: AnyTable, most: int, execution: Execution, *, id: str | None = None
) -> tuple[tuple[BrokenRow, ...], ...]:
    """Return the first rows that break each rule, with ids from column `id` or `rules.id`."""
    positions = [np.array(held.broken[:most], dtype=np.int64) - 1 for held in rules.rules]
    wanted = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *positions]))
    if not len(wanted):
        return tuple(() for _ in positions)
    rows, n = take_rows(table, wanted, execution), len(wanted)
    named = id or (rules.id if rules.id in table.columns else None)
    file = table.source.file_column
    texts = {
        name: [HIDDEN if name in rules.hidden else rows.column[name].text(i) for i in range(n)]
        for name in {named, file, *(column.name for column in rules.columns)}
        if name is not None
    }
    ids, files = (texts[name] if name else [""] * n for name in (named, file))
    lines = [None] * n if rows.lines is None else rows.lines.tolist()
    heads = [*zip((wanted + 1).tolist(), lines, files, ids, strict=True)]

    def row_at(place: int, columns: Sequence[str]) -> BrokenRow:
        return BrokenRow(*heads[place], tuple(texts[name][place] for name in columns))

    return tuple(
        tuple(row_at(place, held.rule.columns) for place in np.searchsorted(wanted, of).tolist())
        for held, of in zip(rules.rules, positions, strict=True)
    )
