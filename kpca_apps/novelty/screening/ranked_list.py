"""The ranked list: the oddest rows with their reasons, in the words of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kpca_apps.files.tables.table import Table
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.result import ColumnProfile, RankedRow, Reason
from kpca_apps.novelty.screening.hints import hint_rows
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.novelty.screening.verdict import Verdict
from kpca_apps.novelty.table.encoding import TableEncoder

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Reasons below this share are noise to a reader, unless a row has no larger one.
MIN_SHARE = 0.05
# Columns whose cells a listed row carries, besides those among its reasons; the scored table has
# all of them, and a report of a wide table stays small.
MAX_CELLS = 60


def list_rows(
    model: NoveltyModel,
    verdict: Verdict,
    table: Table,
    positions: IntArray,
    n_explained: int,
    id_column: str | None,
) -> tuple[RankedRow, ...]:
    """Put some rows into words, those of `table`; reasons and hints for the first of them.

    `positions` are their places in the table that was scored, of which `id_column` names the rows.
    """
    explained = positions[:n_explained]
    reasons: list[tuple[Reason, ...]] = []
    hints: list[tuple[str, ...]] = []
    if n_explained:
        matrix = verdict.rows.encoded(explained)
        own = explained if verdict.in_training else np.full(n_explained, -1)
        reasons = explain_rows(model.encoder, model.detector, table, matrix, own)
        hints = hint_rows(model, verdict.rows, table, matrix, explained)
    hidden = {spec.name for spec in model.encoder.plan.specs if spec.hidden}
    shown = [name for name in table.frame.columns if name not in hidden]
    rarity, rarities, p_values = model.detector.rarity_, verdict.rarities, verdict.p_values
    listed = []
    for place, position in enumerate(positions.tolist()):
        rare = None
        if rarity is not None and rarities is not None:
            rare = rarity.describe(float(rarities[position]))
        why = reasons[place] if place < n_explained else ()
        names = {*shown[:MAX_CELLS], *(reason.column for reason in why)}
        listed.append(
            RankedRow(
                rank=int(verdict.ranks[position]),
                row=position + 1,
                line=None if table.lines is None else int(table.lines[place]),
                id=None if id_column is None else table.column(id_column).text(place),
                score=float(verdict.scores[position]),
                p_value=None if p_values is None else float(p_values[position]),
                flagged=bool(verdict.flagged[position]),
                reasons=why,
                explained=place < n_explained,
                hints=hints[place] if place < n_explained else (),
                cells=tuple((n, table.column(n).text(place)) for n in shown if n in names),
                rarity=rare,
            )
        )
    return tuple(listed)


def explain_rows(
    encoder: TableEncoder,
    detector: KernelPCANovelty,
    table: Table,
    matrix: FloatArray,
    own: IntArray,
) -> list[tuple[Reason, ...]]:
    """Reasons of the first rows of a table, most important first.

    `matrix` (r, d) are they encoded, `own` (r,) their positions among the training rows or -1.
    """
    names = [group.name for group in encoder.groups]
    hidden = {coder.spec.name for coder in encoder.coders if coder.spec.hidden}
    explained = []
    for row, drops in enumerate(detector.explain(matrix, training_rows=own)):
        reasons = []
        for drop in drops:
            is_first = drop.group in (drops[0].group, *drops[0].together)
            if is_first or drop.share * max(len(drop.together), 1) >= MIN_SHARE:
                seen, seen_value = encoder.seen(table, row, drop.group)
                expected, expected_value = encoder.describe(drop.group, drop.expected)
                together = tuple(names[group] for group in drop.together)
                values = seen, expected, seen_value, expected_value
                reasons.append(Reason(names[drop.group], drop.share, *values, together))
        # Gaps are filled with numbers that differ from each other, of which a reader sees nothing.
        off = [one for one in reasons if one.seen != one.expected or one.column in hidden]
        off = off or reasons
        left = {reason.column for reason in off}
        sets = [tuple(name for name in reason.together if name in left) for reason in off]
        explained.append(
            tuple(
                replace(reason, together=together if len(together) > 1 else ())
                for reason, together in zip(off, sets, strict=True)
            )
        )
    return explained


def with_reason_shares(
    columns: Sequence[ColumnProfile], ranked: Sequence[RankedRow]
) -> tuple[ColumnProfile, ...]:
    """Fill in each column's share of the reasons of the flagged rows that are explained."""
    totals: dict[str, float] = {}
    for reason in (reason for row in ranked if row.flagged for reason in row.reasons):
        totals[reason.column] = totals.get(reason.column, 0.0) + reason.share
    whole = sum(totals.values()) or 1.0
    return tuple(replace(c, reason_share=totals.get(c.name, 0.0) / whole) for c in columns)
