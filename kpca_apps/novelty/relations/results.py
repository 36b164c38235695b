"""Rules in Python: found, saved, exported, and checked on a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kpca_apps.names import one_line, safe_stem
from kpca_apps.novelty.relations.exports.pandera_schema import rules_as_pandera
from kpca_apps.novelty.relations.exports.sql import rules_as_dqx, rules_as_sql
from kpca_apps.novelty.relations.rule import HeldRules
from kpca_apps.novelty.relations.rule_file import save_rules
from kpca_apps.novelty.relations.sentences import broken_in, phrase, sentence
from kpca_apps.novelty.relations.table_rules import BrokenRow
from kpca_apps.tables.frames import frame_like

_SHOWN, _WIDTH = 8, 79  # number of lines that `repr` shows, and their maximum length


@dataclass(frozen=True, repr=False)
class Rules(HeldRules):
    r"""The rules that hold in nearly all rows of a table.

    Attributes
    ----------
    table : str
        Name of the table.
    n_rows : int
        Number of rows of the table.
    rules : tuple of HeldRule
        Each rule with the number of rows to which it applies (`n_rows`) and that break it
        (`n_broken`), and the first 1,000 rows that break it (`broken`, from 1).
    columns : tuple of RuleColumn
        The columns of the rules, with their formats.
    id : str or None
        The column that identifies rows.
    notes : tuple of str
        What to know before relying on the rules.
    hidden : tuple of str
        The columns whose values are not shown.

    Examples
    --------
    >>> from kpca_apps import find_rules
    >>> low = [i * i % 97 for i in range(200)]
    >>> rules = find_rules({"low": low, "high": [x + i % 3 for i, x in enumerate(low)]})
    >>> rules
    1 rule of table, 200 rows
    low <= high in all of 200 rows
    >>> print(rules.to_sql("prices").rpartition("\n\n")[2])
    -- low <= high in all of 200 rows
    SELECT * FROM "prices"
    WHERE kpca_number("low") > kpca_number("high");
    """

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each rule in plain English, with the numbers of rows."""
        return tuple(sentence(held, self.by_name) for held in self.rules)

    def save(self, path: str | Path) -> None:
        """Write the rules as JSON, for `check_rules` and ``kpca novelty rules --rules``.

        Parameters
        ----------
        path : str or Path
            A new file, or a file of rules, which is replaced.
        """
        save_rules(self, path)

    def to_sql(self, table: str | None = None) -> str:
        """Write queries for DuckDB that select the rows that break each rule.

        Parameters
        ----------
        table : str, optional
            Name of the table in the database; by default the name of the file.

        Returns
        -------
        str
            Macros that read cells, then queries, with the rules as comments.
        """
        return rules_as_sql(self, safe_stem(self.table) if table is None else table)

    def to_pandera(self) -> str:
        """Write a schema of pandera as Python source, for frames of pandas.

        Returns
        -------
        str
            Source without other dependencies; its `schema` validates a frame.
        """
        return rules_as_pandera(self)

    def to_dqx(self) -> str:
        """Write checks for dqx of Databricks Labs.

        Returns
        -------
        str
            A list of checks as YAML, with rules that dqx cannot express as comments.
        """
        return rules_as_dqx(self)

    def __repr__(self) -> str:
        n = len(self.rules)
        title = f"{n:,} rule{'s' * (n != 1)} of {one_line(self.table)}, {self.n_rows:,} rows"
        return _few([title, *self.sentences])


@dataclass(frozen=True, repr=False)
class RuleCheck(HeldRules):
    """Rules that were checked on a table.

    Attributes
    ----------
    table, n_rows, rules, columns, id, notes, hidden
        As in `Rules`, counted in this table.
    rows : tuple of tuple of BrokenRow
        At most 1,000 rows that break each rule: `row` (from 1), `line`, `file`, `id` and the
        `cells` of the rule's columns.

    Examples
    --------
    >>> from kpca_apps import check_rules, find_rules
    >>> low = [i * i % 97 for i in range(200)]
    >>> rules = find_rules({"low": low, "high": [x + i % 3 for i, x in enumerate(low)]})
    >>> check_rules({"low": [1, 5], "high": [2, 3]}, rules)
    1 of 1 rules broken in table, 2 rows
    low <= high: broken in 1 of 2 rows
    """

    rows: tuple[tuple[BrokenRow, ...], ...] = ()
    _frame: Any = None  # the checked frame; None for a path or a table

    @property
    def passed(self) -> bool:
        """Whether no row breaks a rule."""
        return not any(held.n_broken for held in self.rules)

    def to_frame(self) -> Any:
        """Return the rows that break a rule, one line for each rule and row.

        Returns
        -------
        DataFrame
            In the library of the table, with the columns rule, row, line, file, id and cells.
        """
        found = []
        for held, rows in zip(self.rules, self.rows, strict=True):
            rule, names = phrase(held.rule, self.by_name, self.hidden), held.rule.columns
            for row in rows:
                cells = ", ".join(map(" ".join, zip(names, row.cells, strict=True)))
                found.append((rule, row.row, row.line, row.file or None, row.id or None, cells))
        text, number = pl.String, pl.Int64
        types = {"rule": text, "row": number, "line": number, "file": text, "id": text}
        frame = pl.DataFrame(found, schema={**types, "cells": text}, orient="row")
        return frame_like(self._frame, frame.to_dict())

    def __repr__(self) -> str:
        broken = [held for held in self.rules if held.n_broken]
        title = (
            f"{len(broken):,} of {len(self.rules):,} rules broken in {one_line(self.table)}, "
            f"{self.n_rows:,} rows"
        )
        rules = (phrase(held.rule, self.by_name, self.hidden) for held in broken)
        counts = map(broken_in, broken)
        return _few([title, *map(": ".join, zip(rules, counts, strict=True))])


def _few(lines: list[str]) -> str:
    more = len(lines) - 1 - _SHOWN
    shown = [*lines[: 1 + _SHOWN], *[f"... and {more:,} more"] * (more > 0)]
    return "\n".join(one_line(line, _WIDTH) for line in shown)
