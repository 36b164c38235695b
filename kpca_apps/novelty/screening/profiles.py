"""Describe the role and values of each column, and find the column that identifies rows."""

from __future__ import annotations

from collections.abc import Iterator

from kpca_apps.names import quoted
from kpca_apps.novelty.columns.lookup import naming_identifier
from kpca_apps.novelty.columns.plan import UNKNOWN, ColumnSpec
from kpca_apps.novelty.result import CategoryProfile, ColumnProfile, NumericProfile
from kpca_apps.novelty.screening.encoded import Encoded
from kpca_apps.tables.values import Column, DateFormat

SHOWN_LEVELS = 12  # maximum number of levels in the small figures of the report
NAMED_BY, TELLS_APART = "Rows are named by", "shows which row is meant"


def column_profiles(rows: Encoded) -> tuple[ColumnProfile, ...]:
    """Describe each column: its role, missing cells in all rows, and values in the sample."""
    table = rows.sample_table
    specs = {spec.name: spec for spec in rows.encoder.plan.specs}
    return tuple(
        _column_profile(
            table.column[name], specs.get(name) or ColumnSpec(name, "excluded", UNKNOWN), n_missing
        )
        for name, n_missing in zip(table.frame.columns, rows.faults.n_missing, strict=True)
    )


def _column_profile(column: Column, spec: ColumnSpec, n_missing: int) -> ColumnProfile:
    """Describe a column's role and values; `n_missing` counts missing cells in the whole table.

    The plan may come from another table; distinct values and distribution are this column's own.
    """
    distribution: NumericProfile | CategoryProfile | None = None
    if spec.format is not None:
        values = column.read(spec.format).ordered
        n_distinct = column.n_distinct(spec.format)
        if spec.used and values.size:
            distribution = NumericProfile.of(values, isinstance(spec.format, DateFormat))
    else:
        levels = spec.levels(column)
        n_distinct = len(levels.texts)
        if spec.has_levels and n_distinct:
            names, counts = zip(*levels.most_frequent(SHOWN_LEVELS), strict=True)
            distribution = CategoryProfile(names, counts, int(levels.counts.sum()) - sum(counts))
    return ColumnProfile(
        name=spec.name,
        role=spec.role,
        used=spec.used,
        hidden=spec.hidden,
        why=spec.why,
        n_missing=n_missing,
        n_distinct=n_distinct,
        distribution=distribution,
    )


def naming_column(rows: Encoded, requested: str | None) -> str | None:
    """Find the column that identifies the rows: the requested one, or a visible identifier."""
    return requested or naming_identifier(rows.sample_table, rows.sample_index, rows.encoder.plan)


def id_notes(rows: Encoded, requested: str | None, found: str | None) -> Iterator[str]:
    """Note which column identifies rows if the user requested none, or that ids repeat."""
    drawn, table = "" if rows.size_of_parts is None else " drawn", rows.sample_table
    if requested is None:
        if found is not None:
            yield (
                f"{NAMED_BY} {quoted(found)}, which differs in every row{drawn}; --id names "
                "another column."
            )
        return
    n_rows, n_ids = table.n_rows, len(table.column[requested].levels.texts)
    if n_ids < n_rows:
        place = "row number" if table.lines is None else "line"
        yield (
            f"{quoted(requested)} has {n_ids:,} different values in {n_rows:,} rows{drawn}: "
            f"the {place} {TELLS_APART}."
        )
