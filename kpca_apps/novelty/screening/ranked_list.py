"""The ranked list: the oddest rows with their reasons, in the words of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kpca_apps.novelty.checks.hints import MAX_COMPARED, hint_rows
from kpca_apps.novelty.checks.suggestions import Suggestions
from kpca_apps.novelty.columns.encoded import Encoded, encode
from kpca_apps.novelty.columns.encoding import TableEncoder
from kpca_apps.novelty.columns.parts import rows_of
from kpca_apps.novelty.detector.detector import Detector
from kpca_apps.novelty.result import ColumnProfile, RankedRow, Reason
from kpca_apps.novelty.screening.judge import Verdict
from kpca_apps.novelty.screening.model import ModelPiece, NoveltyModel
from kpca_apps.tables.table import Table

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
    suggestions: Suggestions,
) -> tuple[RankedRow, ...]:
    """Put some rows into words, those of `table`; reasons and hints for the first of them.

    `positions` are their places in the table that was scored, of which `id_column` names the rows.
    What is expected of cells that are odd by themselves agrees with what is suggested for them.
    """
    reasons: dict[int, tuple[Reason, ...]] = {}
    hints: dict[int, tuple[str, ...]] = {}
    for part in judged_by(verdict, table, positions[:n_explained]):
        encoder, places = part.model.encoder, part.places.tolist()
        detector, n_jobs = part.model.detector, verdict.rows.n_jobs
        found = explain_rows(encoder, detector, part.table, part.matrix, part.own, n_jobs)
        rows = [int(positions[place]) + 1 for place in places]
        found = [suggestions.reasons(*one) for one in zip(rows, found, strict=True)]
        reasons |= zip(places, found, strict=True)
        meant = [suggestions.numbers(row) for row in rows]
        compared = part.compared(verdict)
        told = hint_rows(part.model, compared, part.table, part.matrix, part.positions, meant)
        hints |= zip(places, told, strict=True)
    group_of = np.full(len(positions), "", dtype=object)
    for piece in verdict.pieces:
        group_of[piece.places(positions)[0]] = piece.name
    rarity, rarities, p_values = model.detector.rarity, verdict.rarities, verdict.p_values
    listed = []
    for place, position in enumerate(positions.tolist()):
        rare = None
        if rarity is not None and rarities is not None:
            rare = rarity.describe(float(rarities[position]))
        why = reasons.get(place, ())
        names = {*table.frame.columns[:MAX_CELLS], *(reason.column for reason in why)}
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
                hints=hints.get(place, ()),
                cells=tuple(
                    (n, table.column(n).text(place)) for n in table.frame.columns if n in names
                ),
                rarity=rare,
                group=group_of[place],
            )
        )
    return tuple(listed)


@dataclass(frozen=True)
class JudgedRows:
    """Rows to explain that one model judges."""

    model: ModelPiece
    table: Table  # they as they stand
    matrix: FloatArray  # (r, d), they encoded
    places: IntArray  # (r,), among all that are to be explained
    positions: IntArray  # (r,), among the rows that the model judges
    own: IntArray  # (r,), among its training rows, or -1
    judged: IntArray  # positions of all rows of the table that the model judges

    def compared(self, verdict: Verdict) -> Encoded:
        """Return rows of the table that the model judges, to compare these with."""
        if self.model.is_whole:
            return verdict.rows
        judged = self.judged
        drawn = np.unique(np.linspace(0, len(judged) - 1, MAX_COMPARED).astype(np.int64))
        rows = encode(self.model.encoder, verdict.rows.take(judged[drawn]), checked=False)
        return replace(rows, sample_index=drawn)


def judged_by(verdict: Verdict, table: Table, positions: IntArray) -> Iterator[JudgedRows]:
    """Part rows at some positions, the first of `table`, by the model that judges them."""
    for piece in verdict.pieces:
        places, among = piece.places(positions)
        if len(places):
            rows = rows_of(table, places)
            matrix = piece.model.encoder.matrix(rows)
            own = among if verdict.in_training else np.full(len(among), -1)
            yield JudgedRows(piece.model, rows, matrix, places, among, own, piece.positions)


def explain_rows(
    encoder: TableEncoder,
    detector: Detector,
    table: Table,
    matrix: FloatArray,
    own: IntArray,
    n_jobs: int | None = None,
) -> list[tuple[Reason, ...]]:
    """Reasons of the first rows of a table, most important first.

    `matrix` (r, d) are they encoded, `own` (r,) their positions among the training rows or -1.
    """
    names = [group.name for group in encoder.groups]
    explained = []
    for row, drops in enumerate(detector.explain(matrix, own, n_jobs=n_jobs)):
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
        off = [one for one in reasons if one.seen != one.expected]
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
