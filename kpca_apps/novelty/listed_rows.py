"""Rows put into words: the ranked list, the flagged rows, and those with an odd cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl
from scipy.spatial.distance import cdist

from kpca_apps.engine.precision import evenly_drawn
from kpca_apps.names import quoted
from kpca_apps.novelty.checks.hints import MAX_COMPARED, hint_rows
from kpca_apps.novelty.checks.odd_cells import checked, odd_cells
from kpca_apps.novelty.columns.encoded import Encoded, encode, rows_of
from kpca_apps.novelty.columns.encoding import TableEncoder, ValueCoder
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.detector.detector import Detector
from kpca_apps.novelty.detector.reasons import ColumnDrop
from kpca_apps.novelty.marks import row_keys
from kpca_apps.novelty.result import (
    CONTRADICTED,
    MISSPELT,
    FlaggedRow,
    OddCell,
    RankedRow,
    Reason,
    UsualRow,
)
from kpca_apps.novelty.row_values import let_go
from kpca_apps.novelty.screening.judge import JudgedPiece, Verdict, rarity_of
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column, ValueFormat

# Reasons below this share are noise to a reader, unless a row has no larger one.
MIN_SHARE = 0.05
# Where one other column is more of a row's score than this, a misspelt cell does not come first.
MOST_SHARE = 0.5
# Columns whose cells a listed row carries, besides those among its reasons; the scored table has
# all of them, and a report of a wide table stays small.
MAX_CELLS = 60
# Flagged rows that are listed, each with its first reason: so many cells, whatever the width of
# the table, but at least and at most so many rows. Those of a row of 20 columns take half
# a millisecond.
MOST_CELLS, FEWEST_ROWS, MOST_ROWS = 400_000, 500, 20_000
# Rows explained together; reasons depend on it in their last bits, so it is no one's choice.
ROWS_A_BLOCK = 256
# Rows a report lists whether or not they are explained.
MIN_LISTED = 100
# Flagged rows that are explained in full however few were asked for: some seconds' work. As many
# as a page lists are ranked with their first reason, which the list of flagged rows has anyway.
MAX_FLAGGED_EXPLAINED, MAX_RANKED = 500, 2_000
N_NEAREST = 2  # usual rows beside each
MAX_DRAWN = 1_500  # rows of a picture
# A longer text stands in full in its own cell.
MAX_TEXT = 200
SHARE_DIGITS = 4


@dataclass(frozen=True)
class JudgedRows:
    """Rows to explain that one model judges."""

    table: Table  # they as they stand
    matrix: FloatArray  # (r, d), they encoded
    own: IntArray  # (r,), positions among the training rows of the model, or -1

    @property
    def n_rows(self) -> int:
        """Number r of rows."""
        return len(self.own)


def judged_by(
    verdict: Verdict, table: Table, positions: IntArray
) -> Iterator[tuple[JudgedPiece, IntArray, IntArray, JudgedRows]]:
    """Part rows at some positions, the first of `table`, by who judges them.

    With each come their places among `positions`, and their positions among the rows of the model.
    """
    for piece in verdict.pieces:
        places, among = piece.places(positions)
        if len(places):
            rows = rows_of(table, places)
            own = among if verdict.in_training else np.full(len(among), -1)
            yield piece, places, among, JudgedRows(rows, piece.model.encoder.matrix(rows), own)


def explain_rows(
    encoder: TableEncoder, detector: Detector, rows: JudgedRows, n_jobs: int | None = None
) -> list[tuple[Reason, ...]]:
    """Reasons of some rows, most important first."""
    explained = []
    found = detector.explain(rows.matrix, rows.own, least=MIN_SHARE, n_jobs=n_jobs)
    for row, drops in enumerate(found):
        reasons = [_described(encoder, rows.table, row, drop) for drop in drops]
        explained.append(_differing(reasons))
    return explained


def first_reasons(
    rows: JudgedRows, encoder: TableEncoder, detector: Detector
) -> list[tuple[Reason, ...]]:
    """Return the first of the reasons of some rows, of one column or of several together."""
    first = []
    for row, drops in enumerate(detector.explain(rows.matrix, rows.own, least=MIN_SHARE)):
        # Columns of one set follow each other.
        sets = groupby(drops, key=lambda drop: drop.together or drop.group)
        of_sets = ([_described(encoder, rows.table, row, one) for one in of] for _, of in sets)
        found: list[Reason] = []
        for reasons in of_sets:
            found = found or reasons
            if any(map(_differs, reasons)):
                found = reasons
                break
        first.append(_differing(found))
    return first


def _described(encoder: TableEncoder, table: Table, row: int, drop: ColumnDrop) -> Reason:
    """Put a column's part in the score of a row of a table into words."""
    names = encoder.groups
    seen, seen_value = encoder.seen(table, row, drop.group)
    expected, expected_value = encoder.coders[drop.group].describe(drop.expected, seen_value)
    together = tuple(names[group].name for group in drop.together)
    values = seen, expected, seen_value, expected_value
    return Reason(names[drop.group].name, drop.share, *values, together)


def _differs(reason: Reason) -> bool:
    """Whether a reader sees that a cell is not what is expected; of levels space is no part."""
    is_level = isinstance(reason.seen_value, str)
    is_same = is_level and reason.seen_value == reason.expected_value
    return not is_same and reason.seen.strip() != reason.expected.strip()


def _differing(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """Leave out reasons that read as expected.

    Gaps are filled with numbers that differ from each other, of which a reader sees nothing; and
    of a row that no replacement makes more usual, the farthest column is given as a reason.
    """
    differing = [*filter(_differs, reasons)]
    left = {reason.column for reason in differing}
    sets = [tuple(name for name in reason.together if name in left) for reason in differing]
    return tuple(
        replace(reason, together=together if len(together) > 1 else ())
        for reason, together in zip(differing, sets, strict=True)
    )


@dataclass(frozen=True)
class Lists:
    """The first rows of a table in words, and its odd cells, whose suggestions agree with them."""

    first: IntArray  # positions by rank, of all rows that are listed or drawn
    table: Table  # the ranked ones as they stand
    n_explained: int
    ranked: tuple[RankedRow, ...]
    flagged: tuple[FlaggedRow, ...]
    odd_cells: tuple[OddCell, ...]
    n_odd_cells: int  # listed or not
    odd_cell_rows: tuple[FlaggedRow, ...]
    usual: tuple[UsualRow, ...]


def list_table(model: NoveltyModel, verdict: Verdict, explain: int, id_column: str | None) -> Lists:
    """Put the first rows into words: all flagged ones, or as many as there are to `explain`."""
    rows, n_flagged, n_explained = verdict.rows, int(verdict.flagged.sum()), 0
    if explain:
        n_explained = min(max(explain, min(n_flagged, MAX_FLAGGED_EXPLAINED)), rows.n_judged)
    # A flagged row scores higher than any other: they are the first of the list.
    n_listed = min(n_flagged, _most_listed(verdict))
    n_ranked = max(n_explained, MIN_LISTED, min(n_listed, MAX_RANKED) if explain else 0)
    n_ranked = min(n_ranked, rows.n_judged)
    first = top_rows(verdict.ranks, max(n_ranked, n_listed, MAX_DRAWN))
    taken = rows.take(first[: max(n_ranked, n_listed)])
    # What the ranked rows say of flagged ones is not sought again.
    n_known = min(n_explained if explain else n_ranked, n_listed)
    table, others = (
        rows_of(taken, np.arange(*cut)) for cut in ((0, n_ranked), (n_known, n_listed))
    )
    odd_cells, n_odd_cells = odd_cells_of(rows)
    specs = model.encoder.plan.specs
    suggestions = Suggestions(odd_cells, specs, verdict.part_of_relations)
    top, beyond = first[:n_ranked], first[n_known:n_listed]
    reasons = _first_reasons(verdict, others, beyond) if explain else [()] * len(beyond)
    ranked = list_rows(
        model, verdict, table, top, n_explained, id_column, suggestions, reasons if explain else ()
    )
    flagged = _list_flagged(verdict, ranked[:n_known], others, beyond, id_column, reasons)
    mended = tuple(suggestions.row(one) for one in flagged)
    cells = suggestions.cells
    of_cells = _list_odd_cell_rows(verdict, cells, id_column)
    ranked, usual = _compare(verdict, ranked, table, top[:n_explained], id_column)
    n_odd_cells += len(cells) - len(odd_cells)
    return Lists(first, table, n_explained, ranked, mended, cells, n_odd_cells, of_cells, usual)


def _compare(
    verdict: Verdict,
    ranked: tuple[RankedRow, ...],
    table: Table,
    positions: IntArray,
    id_column: str | None,
) -> tuple[tuple[RankedRow, ...], tuple[UsualRow, ...]]:
    """Put beside the first rows, those at some positions, the usual ones most like each.

    They are sought among the rows held in memory that are not flagged. The distance is the sum of
    those in the columns, which one absurd cell makes greater by the same for all.
    """
    rows, nearest = verdict.rows, dict[int, IntArray]()
    usual = np.flatnonzero(~verdict.flagged[rows.sample_index])
    for piece, places, _, part in judged_by(verdict, table, positions):
        among = usual[piece.places(rows.sample_index[usual])[0]]
        among = among[evenly_drawn(len(among), MAX_COMPARED)]
        if not len(among):
            continue
        encoder, views = piece.model.encoder, piece.model.detector.views
        matrix = rows.sample[among]
        if not piece.model.is_whole:
            matrix = encoder.matrix(rows_of(rows.sample_table, among))
        others = views.standardised(matrix)
        for start in range(0, part.n_rows, ROWS_A_BLOCK):
            block = slice(start, start + ROWS_A_BLOCK)
            distances = cdist(views.standardised(part.matrix[block]), others, "cityblock")
            # A row that nothing but its rank keeps from being flagged is not compared with itself.
            own = rows.sample_index[among] == positions[places[block], None]
            distances[own] = np.inf
            closest = np.argsort(distances, axis=1, kind="stable")[:, :N_NEAREST]
            nearest |= zip(places[block].tolist(), among[closest], strict=True)
    compared = np.unique(np.concatenate([*nearest.values(), np.arange(0)]))
    found = rows_of(rows.sample_table, compared)
    names = _names(verdict, found, rows.sample_index[compared], id_column)
    columns = [found.column(name) for name in found.frame.columns[:MAX_CELLS]]
    described = tuple(
        UsualRow(
            name["row"],
            name["line"],
            name["id"],
            tuple((column.name, column.text(place)) for column in columns),
        )
        for place, name in enumerate(names)
    )
    number = {place: one.row for place, one in zip(compared.tolist(), described, strict=True)}
    with_nearest = (
        replace(row, nearest=tuple(number[one] for one in nearest.get(place, ())))
        for place, row in enumerate(ranked)
    )
    return tuple(with_nearest), described


def top_rows(ranks: IntArray, count: int) -> IntArray:
    """Positions of the first rows of a list, in its order."""
    (rows,) = np.nonzero(ranks <= count)
    let_go(ranks)
    return np.asarray(rows[np.argsort(ranks[rows])], dtype=np.int64)


def list_rows(
    model: NoveltyModel,
    verdict: Verdict,
    table: Table,
    positions: IntArray,
    n_explained: int,
    id_column: str | None,
    suggestions: Suggestions,
    first_reasons: Sequence[tuple[Reason, ...]] = (),
) -> tuple[RankedRow, ...]:
    """Put some rows into words, those of `table`; reasons and hints for the first of them.

    `positions` are their places in the table that was scored, of which `id_column` names the rows.
    What is expected of cells that are odd by themselves agrees with what is suggested for them. Of
    rows after those explained the `first_reasons` may be known.
    """
    explained = _explained(verdict, table, positions[:n_explained], suggestions)
    for place, reasons in enumerate(first_reasons[: len(positions) - n_explained], n_explained):
        row = int(positions[place]) + 1
        explained[place] = suggestions.reasons(row, reasons), suggestions.hints(row)
    group_of = np.full(len(positions), "", dtype=object)
    for piece in verdict.pieces:
        group_of[piece.places(positions)[0]] = piece.name
    rarity, rarities, p_values = rarity_of(model), verdict.rarities, verdict.p_values
    listed = []
    names = _names(verdict, table, positions, id_column)
    hidden = {spec.name for spec in model.encoder.plan.specs if spec.hidden}
    keys = row_keys(table, hidden)
    for place, (position, name) in enumerate(zip(positions.tolist(), names, strict=True)):
        rare = None
        if rarity is not None and rarities is not None:
            rare = rarity.describe(float(rarities[position]))
        why, hints = explained.get(place, ((), ()))
        is_whole = place < max(n_explained, MIN_LISTED)
        odd = {reason.column for reason in why}
        shown = {*table.frame.columns[:MAX_CELLS], *odd} if is_whole else set()
        cells = ((n, table.column(n).text(place)) for n in table.frame.columns if n in shown)
        listed.append(
            RankedRow(
                **name,
                score=float(verdict.scores[position]),
                p_value=None if p_values is None else float(p_values[position]),
                flagged=bool(verdict.flagged[position]),
                reasons=why,
                explained=place in explained,
                hints=hints,
                cells=tuple(cells),
                rarity=rare,
                group=group_of[place],
                key=keys[place],
            )
        )
    return tuple(listed)


def _explained(
    verdict: Verdict, table: Table, positions: IntArray, suggestions: Suggestions
) -> dict[int, tuple[tuple[Reason, ...], tuple[str, ...]]]:
    """Return reasons and hints of rows, the first of `table`, by their places there."""
    explained: dict[int, tuple[tuple[Reason, ...], tuple[str, ...]]] = {}
    for piece, places, among, part in judged_by(verdict, table, positions):
        model = piece.model
        found = explain_rows(model.encoder, model.detector, part, verdict.rows.n_jobs)
        rows = [int(positions[place]) + 1 for place in places]
        reasons = [suggestions.reasons(*one) for one in zip(rows, found, strict=True)]
        meant = [suggestions.numbers(row) for row in rows]
        compared = _compared(verdict, piece)
        hinted = hint_rows(model, compared, part.table, part.matrix, among, meant)
        hints = [
            (*suggestions.hints(row), *of.sentences) for row, of in zip(rows, hinted, strict=True)
        ]
        notations = _notations(model.encoder)
        for place, row, why, of in zip(places.tolist(), rows, reasons, hinted, strict=True):
            line = None if table.lines is None else int(table.lines[place])
            suggestions.add_alone(row, line, why, of.alone, notations)
        explained |= zip(places.tolist(), zip(reasons, hints, strict=True), strict=True)
    return explained


def _compared(verdict: Verdict, piece: JudgedPiece) -> Encoded:
    """Return rows of the table that a piece judges, to compare some of them with."""
    if piece.model.is_whole:
        return verdict.rows
    judged = piece.positions
    drawn = np.unique(np.linspace(0, len(judged) - 1, MAX_COMPARED).astype(np.int64))
    rows = encode(piece.model.encoder, verdict.rows.take(judged[drawn]), checked=False)
    return replace(rows, sample_index=drawn)


def _list_flagged(
    verdict: Verdict,
    known: Sequence[RankedRow],
    table: Table,
    others: IntArray,
    id_column: str | None,
    reasons: Sequence[tuple[Reason, ...]],
) -> tuple[FlaggedRow, ...]:
    """List flagged rows: those `known` as ranked ones, and at `others` positions, of `table`.

    The first `reasons` are those of the others.
    """
    found = [
        FlaggedRow(
            row.rank,
            row.row,
            row.line,
            row.id,
            hint=" ".join(row.hints),
            **_first_reason(row.reasons),
        )
        for row in known
    ]
    if len(others):
        names = _names(verdict, table, others, id_column)
        found += [
            FlaggedRow(**name, **_first_reason(why))
            for name, why in zip(names, reasons, strict=True)
        ]
    return tuple(found)


def _list_odd_cell_rows(
    verdict: Verdict, cells: Sequence[OddCell], id_column: str | None
) -> tuple[FlaggedRow, ...]:
    """List the rows that are not flagged, but have a cell that is odd by itself, by rank."""
    of_row: dict[int, list[OddCell]] = {}
    for cell in cells:
        for row in cell.rows:
            if not verdict.flagged[row - 1]:
                of_row.setdefault(row, []).append(cell)
    ranked = sorted(of_row, key=lambda row: int(verdict.ranks[row - 1]))[: _most_listed(verdict)]
    if not ranked:
        return ()
    positions = np.array(ranked, dtype=np.int64) - 1
    names = _names(verdict, verdict.rows.take(positions), positions, id_column)
    return tuple(
        FlaggedRow(
            **name,
            columns=tuple(cell.column for cell in of_row[row]),
            seen=tuple(_cut(cell.seen) for cell in of_row[row]),
            expected=tuple(_cut(cell.suggestion) for cell in of_row[row]),
            hint=" ".join(f"{quoted(cell.column)}: {cell.sentence}" for cell in of_row[row]),
            flagged=False,
        )
        for row, name in zip(ranked, names, strict=True)
    )


def _names(
    verdict: Verdict, table: Table, positions: IntArray, id_column: str | None
) -> Iterator[dict[str, Any]]:
    """Rank, row, line and id of rows at some positions, those of `table`."""
    ids = None if id_column is None else table.column(id_column)
    for place, position in enumerate(positions.tolist()):
        yield {
            "rank": int(verdict.ranks[position]),
            "row": position + 1,
            "line": None if table.lines is None else int(table.lines[place]),
            "id": None if ids is None else ids.text(place),
        }


def _most_listed(verdict: Verdict) -> int:
    n_cells = max(len(verdict.rows.sample_table.frame.columns), 1)
    return min(max(MOST_CELLS // n_cells, FEWEST_ROWS), MOST_ROWS)


def _notations(encoder: TableEncoder) -> dict[str, Notation]:
    """Return how numbers and dates are written, by column."""
    return {c.spec.name: c.notation for c in encoder.coders if isinstance(c, ValueCoder)}


def odd_cells_of(rows: Encoded) -> tuple[tuple[OddCell, ...], int]:
    """Return the cells that are odd by themselves, the clearest first, and how many.

    Those of accepted rows are not.
    """
    specs, notations = checked(rows.encoder.plan, rows.sample_table), _notations(rows.encoder)
    each = (notations.get(spec.name, Notation()) for spec in specs)
    columns = zip(specs, rows.rules, each, rows.faults.odd, strict=True)
    in_lines = rows.sample_table.lines is not None
    contradicted = rows.faults.contradicted
    return odd_cells(
        tuple(columns), n_rows=rows.n_rows, in_lines=in_lines, contradicted=contradicted
    )


def _first_reasons(verdict: Verdict, table: Table, positions: IntArray) -> list[tuple[Reason, ...]]:
    """Explain rows of a table, a block at a time, by whoever works on the table."""
    reasons: dict[int, tuple[Reason, ...]] = {}
    for piece, places, _, part in judged_by(verdict, table, positions):
        blocks = [
            JudgedRows(rows_of(part.table, at), part.matrix[at], part.own[at])
            for at in np.split(
                np.arange(part.n_rows), range(ROWS_A_BLOCK, part.n_rows, ROWS_A_BLOCK)
            )
        ]
        model = piece.model
        found = verdict.rows.over(
            "Finding reasons", first_reasons, blocks, part.n_rows, model.encoder, model.detector
        )
        of_part = (reason for of_block in found for reason in of_block)
        reasons |= zip(places.tolist(), of_part, strict=True)
    return [reasons[place] for place in range(len(positions))]


def _first_reason(reasons: Sequence[Reason]) -> dict[str, Any]:
    """Take the first of some reasons, of one column or several, as fields of a `FlaggedRow`."""
    if not reasons:
        return {}
    first = [one for one in reasons if one is reasons[0] or one.column in reasons[0].together]
    return {
        "columns": tuple(reason.column for reason in first),
        "seen": tuple(_cut(reason.seen) for reason in first),
        "expected": tuple(_cut(reason.expected) for reason in first),
        "share": round(sum(reason.share for reason in first), SHARE_DIGITS),
    }


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


# One expected value a cell: the reasons of a row expect what the rows most like it read; a cell
# that is odd by itself may be mended from its column alone. Of a level one slip from a common one
# the letters say more than the neighbours do. A number or date is mended where the neighbours
# agree; else it stays open, and they alone count.


# What is said of a cell that is alone in its column.
ALONE = ", and no other cell of the column lies nearly as far from what such rows read."

# A mended value agrees with what is expected if it lies within this part of the way it came.
PART_OF_WAY = 0.25


class Suggestions:
    """What was probably meant by the odd cells of a table; those that are denied are dropped."""

    def __init__(
        self,
        cells: Sequence[OddCell],
        specs: Iterable[ColumnSpec],
        part_of_relations: Callable[[int], float],
    ) -> None:
        self._cells, self._part = [*cells], part_of_relations
        self._formats = {spec.name: spec.format for spec in specs}
        self._of_row = defaultdict[int, dict[str, OddCell]](dict)
        # Cells of a row that its others contradict, the clearest first.
        self._contradicted = defaultdict[int, list[OddCell]](list)
        self._misspelt = defaultdict[int, list[OddCell]](list)
        self._odd = set[tuple[int, str]]()  # rows and columns of cells odd by themselves
        for cell in cells:
            for row in cell.rows:
                if cell.kind != CONTRADICTED:
                    self._odd.add((row, cell.column))
                if cell.kind == MISSPELT:
                    self._misspelt[row].append(cell)
                elif cell.given:
                    self._contradicted[row].append(cell)
                if cell.suggestion:
                    self._of_row[row][cell.column] = cell
        self._dropped: set[OddCell] = set()

    def add_alone(
        self,
        row: int,
        line: int | None,
        reasons: Sequence[Reason],
        alone: Mapping[str, float | None],
        notations: Mapping[str, Notation],
    ) -> None:
        """Add the cell that is a row's first reason, if it is alone in its column."""
        for one in reasons[:1]:
            is_known = (row, one.column) in self._odd or row in self._contradicted
            if one.column not in alone or is_known:
                continue
            meant, format, suggestion = alone[one.column], self._formats[one.column], ""
            if meant is not None and format is not None:
                suggestion = notations[one.column].write_exactly(meant, format)
            about = f"about {one.expected}"
            sentence = f"The rows most like it read {about}{ALONE}"
            named = one.column, CONTRADICTED, one.seen, sentence, suggestion, row, line
            self._cells.append(OddCell(*named, expected=about))

    def numbers(self, row: int) -> dict[str, float]:
        """Return the numbers that were probably meant by cells of a row, by column."""
        found = {}
        for column, cell in self._of_row.get(row, {}).items():
            format = self._formats[column]
            if format is not None and cell not in self._dropped:
                found[column] = _values([cell.suggestion], format)[0]
        return found

    def weigh(self, row: int, column: str, expected: str) -> str:
        """Return the value that is expected of a cell, of which its neighbours say `expected`."""
        cell, format = self._of_row.get(row, {}).get(column), self._formats.get(column)
        if cell is None or cell in self._dropped:
            return expected
        texts = [cell.seen, cell.suggestion, expected]
        # What follows from the others of the row, the neighbours know no better.
        if format is not None and not cell.given and not _agree(*_values(texts, format)):
            self._dropped.add(cell)
            return expected
        return cell.suggestion

    def reasons(self, row: int, reasons: Sequence[Reason]) -> tuple[Reason, ...]:
        """Return the reasons of a row with what is expected of its cells.

        Cells that the others of the row contradict come first, with the part of the score that is
        due to them, unless hardly any is and the first cell is odd by itself. Without any, misspelt
        cells do, unless another is, or has most of the score and no other contradicts them.
        """
        found: list[Reason] = []
        contradicted = self._contradicted.get(row, [])
        # What the relations say of the row is said of these cells.
        if cells := contradicted or self._leading(row, reasons):
            part, names = self._part(row), {cell.column for cell in cells}
            total = sum(one.share for one in reasons) or 1.0 if contradicted else 1.0
            shares = {one.column: (1.0 - part) * one.share / total for one in reasons}
            for cell in cells:
                share = part / len(cells) + shares.get(cell.column, 0.0)
                found.append(self._reason(cell, share))
            left = [_without(one, names) for one in reasons if one.column not in names]
            reasons = [replace(one, share=shares[one.column]) for one in left]
            is_slight = bool(contradicted) and part < MIN_SHARE
            if is_slight and reasons and (row, reasons[0].column) in self._odd:
                reasons, found = [*reasons, *found], []
        for reason in reasons:
            expected = self.weigh(row, reason.column, reason.expected)
            if expected != reason.expected:
                format = self._formats[reason.column]
                value = expected if format is None else _values([expected], format)[0]
                reason = replace(reason, expected=expected, expected_value=value)
            found.append(reason)
        return tuple(found)

    def row(self, listed: FlaggedRow) -> FlaggedRow:
        """Return a listed row with what is expected of its cells."""
        contradicted = self._contradicted.get(listed.row, [])
        # What is explained in full begins with them.
        if contradicted and not listed.hint:
            listed = replace(listed, hint=" ".join(self.hints(listed.row)))
            part, first = self._part(listed.row), contradicted[0]
            is_other = listed.columns[:1] and (listed.row, listed.columns[0]) in self._odd
            if part >= MIN_SHARE or not is_other:
                own = (listed.share or 0.0) if listed.columns == (first.column,) else 0.0
                share = part / len(contradicted) + (1.0 - part) * own
                return replace(listed, **_first_reason([self._reason(first, share)]))
        elif not contradicted and listed.columns:
            share = (listed.share or 0.0) / len(listed.columns)
            given = [
                Reason(name, share, "", "", together=listed.columns) for name in listed.columns
            ]
            if misspelt := self._leading(listed.row, given):
                part = self._part(listed.row)
                own = (1.0 - part) * share if misspelt[0].column in listed.columns else 0.0
                share = part / len(misspelt) + own
                return replace(listed, **_first_reason([self._reason(misspelt[0], share)]))
        pairs = zip(listed.columns, listed.expected, strict=True)
        expected = tuple(self.weigh(listed.row, column, text) for column, text in pairs)
        return replace(listed, expected=expected)

    def _leading(self, row: int, reasons: Sequence[Reason]) -> list[OddCell]:
        """Return the misspelt cells of a row that come before its other reasons."""
        cells = self._misspelt.get(row, [])
        if not cells or not reasons:
            return []
        first = {reasons[0].column, *reasons[0].together}
        if any((row, column) in self._odd for column in first):
            return []
        share = (1.0 - self._part(row)) * sum(one.share for one in reasons if one.column in first)
        return cells if share <= MOST_SHARE or any(cell.given for cell in cells) else []

    def hints(self, row: int) -> tuple[str, ...]:
        """Say what the other cells of a row have against some."""
        cells = self._contradicted.get(row, [])
        return tuple(f"{quoted(cell.column)}: {cell.sentence}" for cell in cells)

    def _reason(self, cell: OddCell, share: float) -> Reason:
        """Give an odd cell as a reason."""
        texts, format = [cell.seen, cell.suggestion], self._formats.get(cell.column)
        seen, expected = (
            [text or None for text in texts]
            if format is None
            else [None if np.isnan(value) else value for value in _values(texts, format)]
        )
        allowed = cell.suggestion or cell.expected
        return Reason(cell.column, share, cell.seen, allowed, seen, expected)

    @property
    def cells(self) -> tuple[OddCell, ...]:
        """The odd cells, without what was denied."""
        return tuple(
            replace(cell, suggestion="") if cell in self._dropped else cell for cell in self._cells
        )


def _without(reason: Reason, names: Collection[str]) -> Reason:
    """Take columns out of those that a reason is odd together with."""
    together = tuple(name for name in reason.together if name not in names)
    return replace(reason, together=together if len(together) > 1 else ())


def _values(texts: list[str], format: ValueFormat) -> list[float]:
    return [float(value) for value in Column(pl.Series(texts)).read(format).values]


def _agree(seen: float, meant: float, expected: float) -> bool:
    """Whether a mended value is near to what is expected, for the way it came."""
    if np.isnan(expected):
        return True  # nothing is expected, or no value
    if min(meant, expected) > 0 and not seen <= 0:
        seen, meant, expected = np.log([seen, meant, expected])
    # What cannot be read came from anywhere: within the usual is what its column says.
    return bool(np.isnan(seen) or abs(meant - expected) <= PART_OF_WAY * abs(seen - meant))
