"""One expected value a cell: what its neighbours suggest, and what was probably meant by it.

The reasons of a row expect what the rows most like it read; a cell that is odd by itself may be
mended from its column alone. Of a level one slip from a common one the letters say more than the
neighbours do. A number or date is mended where the neighbours agree; else it stays open, and they
alone count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.result import FlaggedRow, OddCell, Reason
from kpca_apps.tables.values import Column, ValueFormat

# A mended value agrees with what is expected if it lies within this part of the way it came.
PART_OF_WAY = 0.25


class Suggestions:
    """What was probably meant by the odd cells of a table; those that are denied are dropped."""

    def __init__(self, cells: Sequence[OddCell], specs: Iterable[ColumnSpec]) -> None:
        self._cells = cells
        self._formats = {spec.name: spec.format for spec in specs}
        self._of_row: dict[int, dict[str, OddCell]] = {}
        for cell in cells:
            for row in (cell.row, *cell.more_rows) if cell.suggestion else ():
                self._of_row.setdefault(row, {})[cell.column] = cell
        self._dropped: set[OddCell] = set()

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
        if format is not None and not _agree(*_values(texts, format)):
            self._dropped.add(cell)
            return expected
        return cell.suggestion

    def reasons(self, row: int, reasons: Sequence[Reason]) -> tuple[Reason, ...]:
        """Return the reasons of a row with what is expected of its cells."""
        found = []
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
        pairs = zip(listed.columns, listed.expected, strict=True)
        expected = tuple(self.weigh(listed.row, column, text) for column, text in pairs)
        return replace(listed, expected=expected)

    @property
    def cells(self) -> tuple[OddCell, ...]:
        """The odd cells, without what was denied."""
        return tuple(
            replace(cell, suggestion="") if cell in self._dropped else cell for cell in self._cells
        )


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
