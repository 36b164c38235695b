"""The ranked list: the oddest rows with their reasons, in the words of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from kpca_apps.files.tables import Table
from kpca_apps.files.values import cell_text
from kpca_apps.novelty.attribution import ColumnDrop
from kpca_apps.novelty.model import NoveltyModel
from kpca_apps.novelty.ranking import novelty_order
from kpca_apps.novelty.result import ColumnProfile, RankedRow, Reason

__all__ = ["MAX_CELLS", "explain_rows", "list_rows", "rank_rows", "share_of_reasons"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Reasons below this share are noise to a reader.
MIN_SHARE = 0.05
# Columns whose cells a listed row carries, besides those among its reasons; the scored table has
# all of them, and a report of a wide table stays small.
MAX_CELLS = 60
# Ties are broken by distance among this many of the oddest rows; below, duplicates abound.
MAX_TIES = 1_000
ROWS_A_BATCH = 1_024


def rank_rows(
    model: NoveltyModel, matrix: FloatArray, scores: FloatArray, own: IntArray
) -> IntArray:
    """Give every row its own rank, 1 = most novel.

    Parameters
    ----------
    model : NoveltyModel
        Tells rows that are too far out to score differently apart.
    matrix : (n, d) array
        The encoded rows.
    scores : (n,) array
        Their scores.
    own : (n,) int array
        Position of each row among the training rows, -1 for a new one.

    Returns
    -------
    (n,) int array
    """
    neighbours = model.detector.neighbours_
    n = len(scores)
    oddest = np.partition(scores, max(0, n - MAX_TIES))[max(0, n - MAX_TIES)]

    def distances(rows: IntArray) -> FloatArray:
        # To the rows of the model's core, not to its landmarks: training rows may be landmarks.
        found = np.zeros(len(rows))
        told_apart = np.flatnonzero(scores[rows] >= oddest)
        for start in range(0, len(told_apart), ROWS_A_BATCH):
            part = told_apart[start : start + ROWS_A_BATCH]
            standardised = model.detector.views_.standardised(matrix[rows[part]])
            squares = cdist(standardised, neighbours.standardised, "sqeuclidean")
            squares[own[rows[part]][:, None] == neighbours.index] = np.inf
            found[part] = squares.min(axis=1)
        return found

    ranks = np.empty(n, dtype=np.int64)
    ranks[novelty_order(scores, distances)] = np.arange(1, n + 1)
    return ranks


def explain_rows(
    model: NoveltyModel, table: Table, matrix: FloatArray, rows: IntArray, own: IntArray
) -> list[tuple[Reason, ...]]:
    """Reasons of some rows of a table, in the words of the table.

    Parameters
    ----------
    model : NoveltyModel
        The model that scored them.
    table : Table
        The table, for the values seen.
    matrix : (n, d) array
        The table encoded.
    rows : (r,) int array
        Positions of the rows to explain.
    own : (n,) int array
        Position of each row of the table among the training rows, -1 for a new one.

    Returns
    -------
    list of tuples of Reason
        One tuple a row, largest share first; empty where no single column explains the score.
    """
    if not len(rows):
        return []
    drops = model.detector.explain(matrix[rows], training_rows=own[rows])
    return [
        tuple(_reason(model, table, int(row), drop) for drop in found if drop.share >= MIN_SHARE)
        for row, found in zip(rows, drops, strict=True)
    ]


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
    )


def list_rows(
    table: Table,
    id_column: str | None,
    hidden: frozenset[str],
    scores: FloatArray,
    p_values: FloatArray | None,
    flagged: BoolArray,
    rows: IntArray,
    reasons: Sequence[tuple[Reason, ...]],
) -> tuple[RankedRow, ...]:
    """Ranked list of some rows, oddest first; the first `len(reasons)` of them are explained.

    Parameters
    ----------
    table : Table
        The table.
    id_column : str or None
        Column that names its rows.
    hidden : frozenset of str
        Columns whose cells stay out. Of the others, a row carries the first 60, and those among
        its reasons.
    scores, flagged : (n,) array
        Of every row of the table.
    p_values : (n,) array or None
        Likewise.
    rows : (r,) int array
        Positions of the rows to list, in order of rank from rank 1.
    reasons : sequence of tuples of Reason
        Of the first rows listed.

    Returns
    -------
    tuple of RankedRow
    """
    shown = [name for name in table.frame.columns if name not in hidden]
    listed = []
    for rank, row in enumerate(rows.tolist(), start=1):
        why = reasons[rank - 1] if rank <= len(reasons) else ()
        told = {reason.column for reason in why}
        listed.append(
            RankedRow(
                rank=rank,
                row=row + 1,
                line=None if table.lines is None else int(table.lines[row]),
                id=None if id_column is None else cell_text(table.frame[id_column], row),
                score=float(scores[row]),
                p_value=None if p_values is None else float(p_values[row]),
                flagged=bool(flagged[row]),
                reasons=why,
                explained=rank <= len(reasons),
                cells=tuple(
                    (name, cell_text(table.frame[name], row))
                    for place, name in enumerate(shown)
                    if place < MAX_CELLS or name in told
                ),
            )
        )
    return tuple(listed)


def share_of_reasons(
    columns: Sequence[ColumnProfile], ranked: Sequence[RankedRow]
) -> tuple[ColumnProfile, ...]:
    """Fill in each column's share of all reasons of the flagged rows."""
    totals: dict[str, float] = {}
    for row in ranked:
        if row.flagged:
            for reason in row.reasons:
                totals[reason.column] = totals.get(reason.column, 0.0) + reason.share
    whole = sum(totals.values()) or 1.0
    return tuple(replace(c, reason_share=totals.get(c.name, 0.0) / whole) for c in columns)
