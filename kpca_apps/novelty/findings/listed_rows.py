"""Describe rows: the ranked list, the flagged rows, and those with an odd cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from scipy.spatial.distance import cdist

from kpca_apps.engine.precision import evenly_drawn
from kpca_apps.names import MISSING, quoted
from kpca_apps.novelty.accepted import row_keys
from kpca_apps.novelty.checks.odd_cells import listed_cells
from kpca_apps.novelty.columns.encoding import RARER, TableEncoder
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.parts import Execution, Sample
from kpca_apps.novelty.detector.detector import Detector
from kpca_apps.novelty.detector.reasons import ColumnDrop
from kpca_apps.novelty.findings.hints import MAX_COMPARED, AloneCell, hint_rows
from kpca_apps.novelty.result import (
    CONTRADICTED,
    NEW,
    FlaggedRow,
    OddCell,
    RankedRow,
    Reason,
    UsualRow,
)
from kpca_apps.novelty.screening.encoded import Encoded, encode
from kpca_apps.novelty.screening.judge import JudgedPiece, Verdict, notations_of
from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.system.files.windowed import rows_where
from kpca_apps.system.workers import Workers
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column, ValueFormat

MIN_SHARE = 0.05  # minimum share of a reason to be shown, unless the row has no larger one
# Maximum number of cells shown of a listed row, apart from those in its reasons. The limit keeps
# reports of wide tables small; the scored table has all cells.
MAX_CELLS = 60
# Limits on the flagged rows listed with their first reason: at most MOST_CELLS cells, but at least
# FEWEST_ROWS and at most MOST_ROWS rows. One row of 20 columns takes half a millisecond.
MOST_CELLS, FEWEST_ROWS, MOST_ROWS = 400_000, 500, 20_000
# Number of rows explained together. It is fixed, because it changes the last bits of the shares.
ROWS_A_BLOCK = 256
MIN_LISTED = 100  # minimum number of rows that a report lists, explained or not
# Up to 500 flagged rows are always explained in full, which takes seconds. Up to 2,000 ranked rows,
# as many as a page lists, get at least their first reason.
MAX_FLAGGED_EXPLAINED, MAX_RANKED = 500, 2_000
N_NEAREST = 2  # number of unflagged rows shown beside each row
MAX_DRAWN = 1_500  # number of rows drawn in a picture
MAX_TEXT = 200  # maximum number of characters of a cell in the reason of a flagged row
SHARE_DIGITS = 4


@dataclass(frozen=True)
class RowsToExplain:
    """Rows to be explained, all judged by the same model."""

    table: Table  # as written
    matrix: FloatArray  # (r, d), encoded
    own: IntArray  # (r,), positions among the model's training rows, or -1

    @property
    def n_rows(self) -> int:
        """Number of rows, to report progress."""
        return len(self.own)


def judged_by(
    verdict: Verdict, table: Table, positions: IntArray
) -> Iterator[tuple[JudgedPiece, IntArray, IntArray, RowsToExplain]]:
    """Group rows by the model that judges them.

    The first rows of `table` are those at `positions` of the scored table. Each group comes with
    the places of its rows among `positions`, and with their positions among the model's rows.
    """
    for piece in verdict.pieces:
        places, among = piece.places(positions)
        if len(places):
            rows = table.take(places)
            own = among if verdict.rows.are_training else np.full(len(among), -1)
            yield piece, places, among, RowsToExplain(rows, piece.model.encoder.matrix(rows), own)


def explain_rows(
    rows: RowsToExplain, encoder: TableEncoder, detector: Detector, n_jobs: int | None = None
) -> list[tuple[Reason, ...]]:
    """Return the reasons of some rows, most important first."""
    explained = []
    found = detector.explain(rows.matrix, rows.own, least=MIN_SHARE, n_jobs=n_jobs)
    for row, drops in enumerate(found):
        reasons = [_described(encoder, rows.table, row, drop) for drop in drops]
        explained.append(_differing(reasons))
    return explained


def _first_set(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """Return the first reason, with the columns that are odd together with it."""
    return tuple(one for one in reasons if one is reasons[0] or one.column in reasons[0].together)


def _described(encoder: TableEncoder, table: Table, row: int, drop: ColumnDrop) -> Reason:
    names = encoder.groups
    seen, seen_value = encoder.seen(table, row, drop.group)
    expected, expected_value = encoder.coders[drop.group].describe(drop.expected, seen_value)
    together = tuple(names[group].name for group in drop.together)
    values = seen, expected, seen_value, expected_value
    return Reason(names[drop.group].name, drop.share, *values, together)


def _differs(reason: Reason) -> bool:
    """Whether a cell differs from its expected value, apart from outer spaces and spelling.

    Expected values that read "missing" or "a rarer value" make no difference.
    """
    is_level = isinstance(reason.seen_value, str)
    is_same = is_level and reason.seen_value == reason.expected_value
    is_same |= reason.seen.strip() == reason.expected.strip()
    return not is_same and reason.expected not in (MISSING, RARER)


def _differing(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """Drop reasons whose cells read as expected; put reasons for missing values last.

    A cell may read as expected if it is missing and was filled with another number, or if no
    replacement lowers the score of its row, so that the farthest column is the reason.
    """
    differing = [reason for reason in reasons if _differs(reason)]
    differing.sort(key=lambda reason: reason.seen == MISSING and not reason.together)
    return _among(differing, {reason.column for reason in differing})


def _among(reasons: Iterable[Reason], names: Collection[str]) -> tuple[Reason, ...]:
    """Return the reasons of some columns, which are odd together with these columns only."""
    kept = [reason for reason in reasons if reason.column in names]
    sets = [tuple(name for name in reason.together if name in names) for reason in kept]
    return tuple(
        replace(reason, together=together if len(together) > 1 else ())
        for reason, together in zip(kept, sets, strict=True)
    )


@dataclass(frozen=True)
class Lists:
    """Descriptions of the first rows by rank, and the odd cells with their suggested values."""

    first: IntArray  # indices, by rank, of all rows that are listed or drawn
    table: Table  # the ranked rows as written
    n_explained: int
    ranked: tuple[RankedRow, ...]
    listed: tuple[FlaggedRow, ...]
    odd_cells: tuple[OddCell, ...]
    n_odd_cells: int  # number of odd cells, listed or not
    usual: tuple[UsualRow, ...]


@dataclass(frozen=True)
class Words:
    """Descriptions of rows by row number, and the odd cells with their suggested values."""

    reasons: Mapping[int, tuple[Reason, ...]]
    hints: Mapping[int, tuple[str, ...]]
    explained: Container[int]  # rows whose scores have been explained by reasons
    cells: tuple[OddCell, ...]


def list_table(verdict: Verdict, explain: int, id_column: str | None) -> Lists:
    """Describe the first rows by rank: at least those listed, and at least `explain` rows."""
    rows, n_all, n_explained = verdict.rows, verdict.n_listed, 0
    if explain:
        n_explained = min(max(explain, min(n_all, MAX_FLAGGED_EXPLAINED)), rows.n_judged)
    n_columns = max(len(rows.sample_table.frame.columns), 1)
    n_listed = min(n_all, max(MOST_CELLS // n_columns, FEWEST_ROWS), MOST_ROWS)
    n_ranked = max(n_explained, MIN_LISTED, min(n_listed, MAX_RANKED) if explain else 0)
    n_ranked, n_shown = min(n_ranked, rows.n_judged), max(n_explained, n_listed)
    first = top_rows(verdict.scored.ranks, max(n_ranked, n_shown, MAX_DRAWN))
    taken = rows.take(first[: max(n_ranked, n_shown)])
    table, shown = (taken.take(np.arange(n)) for n in (n_ranked, n_shown))
    words = put_into_words(verdict, shown, first[:n_shown], n_explained, in_short=bool(explain))
    top = first[:n_ranked]
    ranked = list_rows(verdict, table, top, n_explained, id_column, words)
    listed = tuple(
        FlaggedRow(
            rank=rank,
            **name,
            hint=" ".join(words.hints[name["row"]]),
            flagged=bool(verdict.scored.is_flagged[name["row"] - 1]),
            **_first_reason(words.reasons[name["row"]]),
        )
        for rank, name in enumerate(_names(shown, first[:n_listed], id_column), 1)
    )
    ranked, usual = _compare(verdict, ranked, table, top[:n_explained], id_column)
    n_cells = verdict.n_odd_cells + len(words.cells) - len(verdict.evidence)
    return Lists(first, table, n_explained, ranked, listed, words.cells, n_cells, usual)


def put_into_words(
    verdict: Verdict, table: Table, positions: IntArray, n_explained: int, *, in_short: bool = False
) -> Words:
    """Explain why the rows of `table` at some positions are odd, and what may be wrong.

    The first `n_explained` rows get all their reasons; the others, if `in_short`, their first one.
    """
    some = positions[:n_explained]
    parts = [*judged_by(verdict, table, some)]
    by_score = dict[int, tuple[Reason, ...]]()
    for piece, places, _, part in parts:
        found = explain_rows(part, piece.model.encoder, piece.model.detector, verdict.rows.n_jobs)
        by_score |= zip((some[places] + 1).tolist(), found, strict=True)
    if in_short:
        others = positions[n_explained:]
        further = table.take(np.arange(n_explained, len(positions)))
        found = _first_reasons(verdict, further, others)
        by_score |= zip((others + 1).tolist(), found, strict=True)
    cells = OddCells(
        listed_cells(verdict.evidence, in_lines=verdict.rows.sample_table.lines is not None),
        verdict.model.encoder.plan.formats,
        verdict.part_of_relations,
        verdict.rank_by_score,
        verdict.rows.n_rows,
    ).settled(by_score)
    rows = (positions + 1).tolist()
    reasons = {row: cells.reasons(row, by_score.get(row, ())) for row in rows}
    slips, alone = dict[int, tuple[str, ...]](), list[OddCell]()
    for piece, places, among, part in parts:
        numbers = (some[places] + 1).tolist()
        meant = [cells.numbers(row) for row in numbers]
        compared, notations = _compared(verdict, piece), notations_of(piece.model.encoder)
        hinted = hint_rows(piece.model, compared, part.table, part.matrix, among, meant)
        for place, row, of in zip(places.tolist(), numbers, hinted, strict=True):
            slips[row] = of.sentences
            # Cells farther off than all others of their column are added for listed rows only.
            if verdict.scored.ranks[row - 1] <= verdict.n_listed:
                line = None if table.lines is None else int(table.lines[place])
                for cell in cells.alone(row, line, reasons[row], of.alone, notations):
                    alone.append(cell)
                    reason, *rest = reasons[row]
                    reasons[row] = cells.suggesting(reason, cell), *rest
    hints = {row: cells.hints(row, slips.get(row, ())) for row in rows}
    strongest = sorted((*cells.cells, *alone), key=lambda cell: cell.p_value)
    return Words(reasons, hints, by_score, tuple(strongest))


def _compare(
    verdict: Verdict,
    ranked: tuple[RankedRow, ...],
    table: Table,
    positions: IntArray,
    id_column: str | None,
) -> tuple[tuple[RankedRow, ...], tuple[UsualRow, ...]]:
    """Add to each of the first ranked rows its nearest usual rows; return ranked and usual rows.

    The first rows are at `positions` of the table. Usual rows are rows in memory that are not
    flagged. Distances are city-block: one absurd cell adds about the same to each of them.
    """
    rows, nearest = verdict.rows, dict[int, IntArray]()
    usual = np.flatnonzero(~verdict.scored.is_flagged[rows.sample_index])
    for piece, places, _, part in judged_by(verdict, table, positions):
        among = usual[piece.places(rows.sample_index[usual])[0]]
        among = among[evenly_drawn(len(among), MAX_COMPARED)]
        if not len(among):
            continue
        encoder, views = piece.model.encoder, piece.model.detector.views
        matrix = rows.sample[among]
        if not piece.model.is_whole:
            matrix = encoder.matrix(rows.sample_table.take(among))
        others = views.standardised(matrix)
        for start in range(0, len(part.own), ROWS_A_BLOCK):
            block = slice(start, start + ROWS_A_BLOCK)
            distances = cdist(views.standardised(part.matrix[block]), others, "cityblock")
            # A ranked row that is not flagged is a usual row, too, but not its own neighbour.
            own = rows.sample_index[among] == positions[places[block], None]
            distances[own] = np.inf
            closest = np.argsort(distances, axis=1, kind="stable")[:, :N_NEAREST]
            nearest |= zip(places[block].tolist(), among[closest], strict=True)
    compared = np.unique(np.concatenate([*nearest.values(), np.arange(0)]))
    found = rows.sample_table.take(compared)
    names = _names(found, rows.sample_index[compared], id_column)
    columns = [found.column[name] for name in found.frame.columns[:MAX_CELLS]]
    described = tuple(
        UsualRow(**name, cells=tuple((column.name, column.text(place)) for column in columns))
        for place, name in enumerate(names)
    )
    number = {place: one.row for place, one in zip(compared.tolist(), described, strict=True)}
    with_nearest = (
        replace(row, nearest=tuple(number[one] for one in nearest.get(place, ())))
        for place, row in enumerate(ranked)
    )
    return tuple(with_nearest), described


def top_rows(ranks: IntArray, count: int) -> IntArray:
    """Return the positions of the first `count` rows of a list, by rank."""
    rows = rows_where(ranks, lambda part: part <= count)
    return rows[np.argsort(ranks[rows])]


def list_rows(
    verdict: Verdict,
    table: Table,
    positions: IntArray,
    n_whole: int,
    id_column: str | None,
    words: Words,
) -> tuple[RankedRow, ...]:
    """List the rows of `table` with their reasons (`words`), the first `n_whole` with all cells.

    `positions` are the places of these rows in the scored table. `id_column` names rows.
    """
    group_of = np.full(len(positions), "", dtype=object)
    for piece in verdict.pieces:
        group_of[piece.places(positions)[0]] = piece.name
    rarity, scored, listed = verdict.rarity, verdict.scored, []
    keys = row_keys(table, verdict.model.encoder.plan.hidden)
    p_values = None if scored.p_values is None else scored.p_values[positions]
    scores, ranks = (of[positions].tolist() for of in (scored.scores, scored.ranks))
    names = _names(table, positions, id_column)
    for place, (position, name) in enumerate(zip(positions.tolist(), names, strict=True)):
        rare = None
        if rarity is not None:
            rare = rarity.describe(float(rarity.share(scores[place])))
        why = words.reasons.get(position + 1, ())
        is_whole = place < max(n_whole, MIN_LISTED)
        odd = {reason.column for reason in why}
        shown = {*table.frame.columns[:MAX_CELLS], *odd} if is_whole else set()
        cells = ((n, table.column[n].text(place)) for n in table.frame.columns if n in shown)
        listed.append(
            RankedRow(
                rank=ranks[place],
                **name,
                score=scores[place],
                p_value=None if p_values is None else float(p_values[place]),
                flagged=bool(scored.is_flagged[position]),
                reasons=why,
                explained=position + 1 in words.explained,
                hints=words.hints.get(position + 1, ()),
                cells=tuple(cells),
                rarity=rare,
                group=group_of[place],
                key=keys[place],
            )
        )
    return tuple(listed)


def _compared(verdict: Verdict, piece: JudgedPiece) -> Encoded:
    """Return the rows to compare with for hints: those the model judges, or a sample of them."""
    if piece.model.is_whole:
        return verdict.rows
    judged = piece.positions
    drawn = np.unique(np.linspace(0, len(judged) - 1, MAX_COMPARED).astype(np.int64))
    table = Sample.of(verdict.rows.take(judged[drawn]))
    rows = encode(piece.model.encoder, table, checked=False)
    return replace(rows, sample_index=drawn)


def _names(table: Table, positions: IntArray, id_column: str | None) -> Iterator[dict[str, Any]]:
    """Yield row, line and id of each row of `table`, at `positions` of the scored table."""
    ids = None if id_column is None else table.column[id_column]
    for place, position in enumerate(positions.tolist()):
        yield {
            "row": position + 1,
            "line": None if table.lines is None else int(table.lines[place]),
            "id": None if ids is None else ids.text(place),
        }


def _first_reasons(verdict: Verdict, table: Table, positions: IntArray) -> list[tuple[Reason, ...]]:
    """Return the first reasons of rows of a table, found in blocks by the workers."""
    reasons: dict[int, tuple[Reason, ...]] = {}
    for piece, places, _, part in judged_by(verdict, table, positions):
        blocks = [
            RowsToExplain(part.table.take(at), part.matrix[at], part.own[at])
            for at in np.split(
                np.arange(len(part.own)), range(ROWS_A_BLOCK, len(part.own), ROWS_A_BLOCK)
            )
        ]
        model, rows = piece.model, verdict.rows
        with Workers(n_workers=rows.n_jobs) as threads:
            work = Execution(threads) if rows.stored is None else rows.execution
            shared = model.encoder, model.detector
            found = work.over("Finding reasons", explain_rows, blocks, len(part.own), *shared)
            of_part = (_first_set(reasons) for of_block in found for reasons in of_block)
            reasons |= zip(places.tolist(), of_part, strict=True)
    return [reasons[place] for place in range(len(positions))]


def _first_reason(reasons: Sequence[Reason]) -> dict[str, Any]:
    """Return the first reason (one column, or several together) as fields of a `FlaggedRow`."""
    if not (first := _first_set(reasons)):
        return {}
    return {
        "columns": tuple(reason.column for reason in first),
        "seen": tuple(_cut(reason.seen) for reason in first),
        "expected": tuple(_cut(reason.expected) for reason in first),
        "share": round(sum(reason.share for reason in first), SHARE_DIGITS),
    }


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


# Each cell has one expected value. Reasons take it from the most similar rows; an odd cell may get
# a suggested value from its column alone. If a level is one typing error from a common one, the
# spelling outweighs the neighbours. A suggested number or date must agree with the neighbours;
# otherwise it is dropped, and the neighbours' value is shown.


# Ending of a sentence about a cell that is far from its expected value.
ALONE = ", and almost no other cell of the column is as far from its expected value."

# Values agree if |suggested - expected| is at most this share of |suggested - seen|.
PART_OF_WAY = 0.25
# Words, by kind of odd cell, that replace the expected value if no value can be suggested.
INSTEAD = {
    "far above": "less",
    "far below": "more",
    **dict.fromkeys(("zero", "placeholder"), "a value"),
    "form": "the usual form",
    "stuck": "other readings",
    "date": "another date",
    "code": "another code",
    "new": "a known value",
    "unreadable": "a possible value",
}


@dataclass(frozen=True)
class OddCells:
    """The odd cells of a table, and their suggested values.

    `rank_by_score` has the ranks by score, among `n_rows` rows, of the rows with odd cells.
    `part_of_relations` has the parts of these rows' scores that come from relations between cells.
    """

    cells: tuple[OddCell, ...]  # by strength of evidence, the strongest first
    formats: Mapping[str, ValueFormat | None]  # by column name
    part_of_relations: Mapping[int, float]
    rank_by_score: Mapping[int, int]
    n_rows: int

    @cached_property
    def of_row(self) -> dict[int, list[OddCell]]:
        """Odd cells by row number."""
        of_row = defaultdict[int, list[OddCell]](list)
        for cell in self.cells:
            for row in cell.rows:
                of_row[row].append(cell)
        return dict(of_row)

    def settled(self, reasons: Mapping[int, Sequence[Reason]]) -> OddCells:
        """Drop suggestions that contradict the number expected by a row's neighbours.

        Suggestions that follow from other cells of the row are kept.
        """
        denied = {
            cell
            for row, of in reasons.items()
            for cell in self.of_row.get(row, ())
            for one in of
            if one.column == cell.column
            and cell.suggestion
            and not cell.given
            and (format := self.formats[cell.column]) is not None
            and not _agree(*_values([cell.seen, cell.suggestion, one.expected], format))
        }
        cells = (replace(one, suggestion="") if one in denied else one for one in self.cells)
        return replace(self, cells=tuple(cells))

    def alone(
        self,
        row: int,
        line: int | None,
        reasons: Sequence[Reason],
        alone: Mapping[str, AloneCell],
        notations: Mapping[str, Notation],
    ) -> Iterator[OddCell]:
        """Yield the cell that is a row's first reason, if no other in its column is as far off."""
        for one in reasons[:1]:
            known = self.of_row.get(row, ())
            is_known = any(cell.given or cell.column == one.column for cell in known)
            if one.column not in alone or is_known:
                continue
            (meant, p_value), format, suggestion = alone[one.column], self.formats[one.column], ""
            if meant is not None and format is not None:
                suggestion = notations[one.column].write_exactly(meant, format)
            about = f"about {one.expected}"
            sentence = f"The rows most like it read {about}{ALONE}"
            named = one.column, CONTRADICTED, one.seen, sentence, suggestion, row, line
            yield OddCell(*named, expected=about, p_value=p_value)

    def numbers(self, row: int) -> dict[str, float]:
        """Return the suggested numbers of the cells of a row, by column."""
        return {
            cell.column: _values([cell.suggestion], format)[0]
            for cell in reversed(self.of_row.get(row, ()))
            if cell.suggestion and (format := self.formats[cell.column]) is not None
        }

    def reasons(self, row: int, reasons: Sequence[Reason]) -> tuple[Reason, ...]:
        """Return the reasons of a row, with the values suggested for its cells.

        Odd cells that are rarer than the row's score come first, with the part of the score that is
        due to them. Other odd cells come last, unless they are among the reasons.
        """
        cells = self.of_row.get(row, [])
        # Whether relations between columns make each cell odd.
        related = [bool(cell.given) or cell.kind == NEW for cell in cells]
        n_given = sum(related)
        # The related cells share the part of the score that is due to relations.
        part = self.part_of_relations[row] if n_given else 0.0
        reasons = [replace(one, share=(1.0 - part) * one.share) for one in reasons]
        by_score = {one.column: one for one in reversed(reasons)}
        # A cell comes first if its expected rank (p-value times rows) is at most its row's rank.
        leads = [cell.p_value * self.n_rows <= self.rank_by_score[row] for cell in cells]
        first, last = list[Reason](), list[Reason]()
        for cell, is_first, is_related in zip(cells, leads, related, strict=True):
            share = part / n_given if is_related else 0.0
            if is_first or cell.column not in by_score:
                of_cell = self._reason(cell, by_score.get(cell.column), share)
                (first if is_first else last).append(of_cell)
        names = {one.column for one in first}
        # Columns that are only odd in combination stay together if `first` has all of them.
        together = {one.column: one.together for one in reasons if {*one.together} <= names}
        first = [replace(one, together=together.get(one.column, ())) for one in first]
        rest = _among(reasons, by_score.keys() - names)
        expected = {cell.column: cell for cell in reversed(cells)}
        corrected = [
            self.suggesting(one, expected[one.column]) if one.column in expected else one
            for one in rest
        ]
        return (*first, *corrected, *last)

    def hints(self, row: int, others: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the hints `others` and sentences on the row's odd cells, without repetitions."""
        cells = self.of_row.get(row, ())
        names = [quoted(cell.column) for cell in cells]
        says = [f"{name}: {cell.sentence}" for name, cell in zip(names, cells, strict=True)]
        is_named = [any(name in hint for hint in others) for name in names]
        both = [*zip(says, cells, is_named, strict=True)]
        of_row = (text for text, cell, _ in both if cell.given)
        return (*of_row, *others, *(text for text, c, named in both if not (c.given or named)))

    def _reason(self, cell: OddCell, known: Reason | None, share: float) -> Reason:
        """Turn an odd cell into a reason, merged with the reason already `known` for it, if any."""
        instead = cell.expected or INSTEAD.get(cell.kind, "")
        value = self._value(cell.column, cell.seen)
        reason = known or Reason(cell.column, 0.0, cell.seen, instead, value)
        reason = replace(self.suggesting(reason, cell), share=reason.share + share, together=())
        if not cell.expected or cell.suggestion:
            return reason
        return replace(reason, expected=cell.expected, expected_value=None)

    def suggesting(self, reason: Reason, cell: OddCell) -> Reason:
        """Return the reason, with the cell's suggestion (if any) as its expected value."""
        if not cell.suggestion:
            return reason
        meant = self._value(cell.column, cell.suggestion)
        return replace(reason, expected=cell.suggestion, expected_value=meant)

    def _value(self, column: str, text: str) -> float | str | None:
        format = self.formats.get(column)
        if format is None:
            return text or None
        (value,) = _values([text], format)
        return None if np.isnan(value) else value


def _values(texts: list[str], format: ValueFormat) -> list[float]:
    return [float(value) for value in Column(pl.Series(texts)).read(format).values]


def _agree(seen: float, meant: float, expected: float) -> bool:
    """Whether a suggested value is near the expected one, relative to the suggested change."""
    if np.isnan(expected):
        return True  # no value, or no number, is expected
    if min(meant, expected) > 0 and not seen <= 0:
        seen, meant, expected = np.log([seen, meant, expected])
    # The suggestion for an unreadable cell cannot be compared with the cell, so it is kept.
    return bool(np.isnan(seen) or abs(meant - expected) <= PART_OF_WAY * abs(seen - meant))
