"""The ranked list: the oddest rows with their reasons, in the words of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.rows import SAMPLE_ROWS
from kpca_apps.files.tables.numbers import NumberFormat
from kpca_apps.files.tables.table import Table
from kpca_apps.novelty.detector.attribution import ColumnDrop, NeighbourRows
from kpca_apps.novelty.result import ColumnProfile, RankedRow, Reason
from kpca_apps.novelty.screening.hints import HintFinder, NumberColumn, missing_hint
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.novelty.screening.scoring import Judged
from kpca_apps.novelty.table.table_rows import TableRows

__all__ = ["MAX_CELLS", "explain_rows", "hint_rows", "list_rows", "share_of_reasons"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Reasons below this share are noise to a reader, unless a row has no larger one.
MIN_SHARE = 0.05
# Columns whose cells a listed row carries, besides those among its reasons; the scored table has
# all of them, and a report of a wide table stays small.
MAX_CELLS = 60
# Of more columns of numbers no slips are sought: what the others suggest of each would take
# minutes, and chance would fit some factor in every row.
MAX_COLUMNS_HINTED = 300
# Rows of a table that hints are found by.
MAX_COMPARED = 2_500


def explain_rows(
    model: NoveltyModel, table: Table, matrix: FloatArray, own: IntArray
) -> list[tuple[Reason, ...]]:
    """Reasons of some rows, in the words of the table.

    Parameters
    ----------
    model : NoveltyModel
        The model that scored them.
    table : Table
        These rows, for the values seen.
    matrix : (r, d) array
        They encoded.
    own : (r,) int array
        Position of each among the training rows, -1 for a new one.

    Returns
    -------
    list of tuples of Reason
        One tuple a row, what explains it first and then by share; empty where every column reads
        what is expected there.
    """
    if not len(matrix):
        return []
    drops = model.detector.explain(matrix, training_rows=own)
    return [_reasons(model, table, row, found) for row, found in enumerate(drops)]


def _reasons(
    model: NoveltyModel, table: Table, row: int, drops: Sequence[ColumnDrop]
) -> tuple[Reason, ...]:
    """Put what is worth telling of one row into words."""
    told = [
        drop
        for drop in drops
        if drop.share * max(len(drop.together), 1) >= MIN_SHARE
        or drop.group in (drops[0].group, *drops[0].together)
    ]
    reasons = [_reason(model, table, row, drop) for drop in told]
    # Gaps are filled with numbers that differ from each other, of which a reader sees nothing.
    hidden = {coder.spec.name for coder in model.encoder.coders if coder.spec.hidden}
    off = [one for one in reasons if one.seen != one.expected or one.column in hidden] or reasons
    names = {reason.column for reason in off}
    sets = [tuple(name for name in reason.together if name in names) for reason in off]
    return tuple(
        replace(reason, together=together if len(together) > 1 else ())
        for reason, together in zip(off, sets, strict=True)
    )


def _reason(model: NoveltyModel, table: Table, row: int, drop: ColumnDrop) -> Reason:
    seen, seen_value = model.encoder.seen(table, row, drop.group)
    expected, expected_value = model.encoder.describe(drop.group, drop.expected)
    return Reason(
        column=model.encoder.groups[drop.group].name,
        share=drop.share,
        seen=seen,
        expected=expected,
        seen_value=seen_value,
        expected_value=expected_value,
        together=tuple(model.encoder.groups[group].name for group in drop.together),
    )


def hint_rows(
    model: NoveltyModel, rows: TableRows, table: Table, matrix: FloatArray, positions: IntArray
) -> list[tuple[str, ...]]:
    """Say what may have gone wrong with some rows; slips in tables of up to 300 columns of numbers.

    Parameters
    ----------
    model : NoveltyModel
        The model that scored them.
    rows : TableRows
        All rows of their table: what is ordinary is learned from these, unless the model is one
        of a clean reference.
    table, matrix : Table and (r, d) array
        The rows as they stand, and encoded.
    positions : (r,) int array
        Where they are in their table.
    """
    if not len(matrix):
        return []
    encoder, views = model.encoder, model.detector.views_
    if model.clean:
        neighbours, own = model.detector.neighbours_, np.full(len(matrix), -1)
    else:
        drawn = np.unique(np.linspace(0, len(rows.sample) - 1, MAX_COMPARED).astype(np.int64))
        ordinary = rows.sample[drawn]
        as_is = np.array(encoder.as_is, dtype=np.int64)
        scaled = views.standardised(ordinary)
        neighbours = NeighbourRows(ordinary, scaled, as_is, rows.sample_index[drawn])
        own = positions
    columns = [
        NumberColumn(group.name, place, group.columns[0])
        for place, (coder, group) in enumerate(zip(encoder.coders, encoder.groups, strict=True))
        if isinstance(coder.spec.format, NumberFormat) and not coder.spec.hidden
    ]
    if len(columns) > MAX_COLUMNS_HINTED:
        columns = []
    groups = [np.array(group.columns) for group in encoder.groups]
    finder = HintFinder.fit(neighbours, groups, columns)
    standardised = views.standardised(matrix)
    missing = _missing_cells(model, table)
    return [
        tuple(filter(None, (*finder.hints(row, scaled, int(position)), missing_hint(lacking))))
        for row, scaled, position, lacking in zip(matrix, standardised, own, missing, strict=True)
    ]


def _missing_cells(model: NoveltyModel, table: Table) -> list[list[tuple[str, float]]]:
    """Columns whose cells are missing in each row, and the share of rows that lack each."""
    missing: list[list[tuple[str, float]]] = [[] for _ in range(table.frame.height)]
    n_learned = min(model.source.n_rows, SAMPLE_ROWS)
    for spec in model.encoder.plan.used:
        if not spec.hidden:
            for row in np.flatnonzero(table.column(spec.name).read(spec.format).missing):
                missing[row].append((spec.name, spec.n_missing / n_learned))
    return missing


def list_rows(
    table: Table,
    positions: IntArray,
    id_column: str | None,
    hidden: frozenset[str],
    judged: Judged,
    reasons: Sequence[tuple[Reason, ...]],
    hints: Sequence[tuple[str, ...]],
) -> tuple[RankedRow, ...]:
    """Put some rows into words; the first `len(reasons)` of them are explained.

    Parameters
    ----------
    table : Table
        These rows as they stand.
    positions : (r,) int array
        Where they are in the table that was judged.
    id_column : str or None
        Column that names its rows.
    hidden : frozenset of str
        Columns whose cells stay out. Of the others, a row carries the first 60, and those among
        its reasons.
    judged : Judged
        Scores and what they mean, flags and ranks of all rows of the table.
    reasons : sequence of tuples of Reason
        Of the first rows.
    hints : sequence of tuples of str
        Of the same rows.

    Returns
    -------
    tuple of RankedRow
        In the order of `positions`.
    """
    shown = [name for name in table.frame.columns if name not in hidden]
    listed = []
    for place, position in enumerate(positions.tolist()):
        explained = place < len(reasons)
        why = reasons[place] if explained else ()
        told = {reason.column for reason in why}
        p_values = judged.p_values
        listed.append(
            RankedRow(
                rank=int(judged.ranks[position]),
                row=position + 1,
                line=None if table.lines is None else int(table.lines[place]),
                id=None if id_column is None else table.column(id_column).text(place),
                score=float(judged.scores[position]),
                p_value=None if p_values is None else float(p_values[position]),
                flagged=bool(judged.flagged[position]),
                reasons=why,
                explained=explained,
                hints=hints[place] if explained else (),
                cells=tuple(
                    (name, table.column(name).text(place))
                    for number, name in enumerate(shown)
                    if number < MAX_CELLS or name in told
                ),
                rarity=judged.rarity_of(position),
            )
        )
    return tuple(listed)


def share_of_reasons(
    columns: Sequence[ColumnProfile], ranked: Sequence[RankedRow]
) -> tuple[ColumnProfile, ...]:
    """Fill in each column's share of the reasons of the flagged rows that are explained."""
    totals: dict[str, float] = {}
    for row in ranked:
        if row.flagged:
            for reason in row.reasons:
                totals[reason.column] = totals.get(reason.column, 0.0) + reason.share
    whole = sum(totals.values()) or 1.0
    return tuple(replace(c, reason_share=totals.get(c.name, 0.0) / whole) for c in columns)
