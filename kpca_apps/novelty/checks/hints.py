"""What may have gone wrong with a row: slips of a number, several gaps, a row of totals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from kpca_apps.engine.rows import SAMPLE_ROWS
from kpca_apps.names import in_prose
from kpca_apps.novelty.checks.slips import HintFinder
from kpca_apps.novelty.columns.encoded import Encoded
from kpca_apps.novelty.columns.plan import listed, quoted
from kpca_apps.novelty.detector.reasons import NeighbourRows
from kpca_apps.novelty.screening.model import ModelPiece
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import NumberFormat

# Of more columns of numbers no slips are sought: what the others suggest of each would take
# minutes, and chance would fit some factor in every row.
MAX_COLUMNS = 300
# Rows of a table that slips are found by.
MAX_COMPARED = 2_500
# A cell of a column is hardly ever missing if fewer rows than these lack it.
RARELY_MISSING = 0.01
SUM_ROUNDING = 1e-4  # of a sum, which may be of values before they were rounded


def hint_rows(
    model: ModelPiece,
    rows: Encoded,
    table: Table,
    matrix: FloatArray,
    positions: IntArray,
    meant: Sequence[Mapping[str, float]],
) -> list[tuple[str, ...]]:
    """Say what may have gone wrong with the rows at `positions` (r,), a sentence each.

    `table` holds these rows as they stand, `matrix` (r, d) encoded; `rows` are all of their table.
    `meant` (r,) are numbers that stand for cells of theirs that are odd by themselves.
    """
    found = _slips(model, rows, matrix, positions, meant)
    for row, names in _in_several(_rare_gaps(model, table)):
        which = in_prose([quoted(name) for name in names])
        found[row] += (f"{which} are missing, each of which fewer than 1 in 100 rows lack.",)
    # A row may be the sum of the others by chance in one column, not in two.
    for row, names in _in_several(_totals(model, rows, table)):
        found[row] = (f"{listed(names)} hold the sums of all other rows: a row of totals?",)
    return found


def _slips(
    model: ModelPiece,
    rows: Encoded,
    matrix: FloatArray,
    positions: IntArray,
    meant: Sequence[Mapping[str, float]],
) -> list[tuple[str, ...]]:
    """Find slips by the rows of a clean reference, else by those of the table."""
    encoder, views = model.encoder, model.detector.views
    neighbours, own = model.detector.reference, np.full(len(matrix), -1)
    if not model.clean:
        drawn = np.unique(np.linspace(0, len(rows.sample) - 1, MAX_COMPARED).astype(np.int64))
        raw, index, own = rows.sample[drawn], rows.sample_index[drawn], positions
        neighbours = NeighbourRows(raw, views.standardised(raw), neighbours.as_is, index)
    names, units = {}, {}
    for place, coder in enumerate(encoder.coders):
        format = coder.spec.format
        if isinstance(format, NumberFormat) and not format.clock:
            names[place], units[coder.spec.name] = coder.spec.name, format.word
    groups = [np.array(group.columns) for group in encoder.groups]
    finder = HintFinder(neighbours, groups, names if len(names) <= MAX_COLUMNS else {}, units)
    each = zip(matrix, views.standardised(matrix), own.tolist(), meant, strict=True)
    return [finder.hints(*one) for one in each]


def _in_several(marked: Iterable[tuple[str, BoolArray]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are marked in more than one column, and the names of these columns."""
    names_of: defaultdict[int, list[str]] = defaultdict(list)
    for name, is_marked in marked:
        for row in np.flatnonzero(is_marked).tolist():
            names_of[row].append(name)
    yield from ((row, names) for row, names in names_of.items() if len(names) > 1)


def _rare_gaps(model: ModelPiece, table: Table) -> Iterator[tuple[str, BoolArray]]:
    """Mark the missing cells of columns in which they hardly ever are."""
    n_learned = min(model.n_rows, SAMPLE_ROWS)
    for spec in model.encoder.plan.used:
        if spec.n_missing / n_learned < RARELY_MISSING:
            yield spec.name, table.column(spec.name).read(spec.format).missing


def _totals(model: ModelPiece, rows: Encoded, table: Table) -> Iterator[tuple[str, BoolArray]]:
    """Mark the numbers that are the sum of all others of their column, of a table in memory."""
    for spec in model.encoder.plan.used if rows.size_of_parts is None else ():
        if isinstance(spec.format, NumberFormat) and not spec.format.clock:
            whole = float(np.nansum(rows.sample_table.column(spec.name).read(spec.format).values))
            values = table.column(spec.name).read(spec.format).values
            with np.errstate(invalid="ignore"):
                is_sum = np.abs(whole - 2 * values) <= SUM_ROUNDING * np.abs(values)
            yield spec.name, is_sum & (values != 0)
