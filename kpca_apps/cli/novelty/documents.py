"""JSON documents that ``kpca novelty`` prints, other than the result of a run."""

from __future__ import annotations

from dataclasses import dataclass

from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.relations.table_rules import BrokenRow
from kpca_apps.novelty.result import RankedRow
from kpca_apps.report.document import Document


@dataclass(frozen=True)
class CheckedRule:
    """A rule, and the first rows of the table that break it."""

    says: str
    columns: tuple[str, ...]
    n_rows: int
    n_broken: int
    broken: tuple[BrokenRow, ...]


_COLUMNS = tuple[ColumnSpec, ...]

COLUMN_PLAN = Document(
    "column plan",
    "The role of each column of a table: kpca novelty screen --dry-run --json.",
    added={"columns": _COLUMNS},
)
FITTED_MODEL = Document(
    "fitted model",
    "A model file and the columns it knows: kpca novelty fit --json.",
    added={"model": str, "columns": _COLUMNS},
)
EXPLAINED_ROW = Document(
    "explained row",
    "One row with its rank and all its reasons: kpca novelty explain --json.",
    ((RankedRow, ()),),
)
RULE_CHECK = Document(
    "rule check",
    "How rules hold in a table, and the rows that break them: kpca novelty rules --rules --json.",
    added={
        "table": str,
        "n_rows": int,
        "n_rules": int,
        "n_broken_rules": int,
        "rules": tuple[CheckedRule, ...],
    },
)
DOCUMENTS = (COLUMN_PLAN, FITTED_MODEL, EXPLAINED_ROW, RULE_CHECK)
