"""The interface of a check of cells: learn from a column, find odd values, explain them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np

from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.system.arrays import IntArray
from kpca_apps.tables.values import Column


class FoundValue(NamedTuple):
    """An odd value of a column, found in the whole table or in a part of its rows."""

    kind: str  # see `OddCell`
    seen: str  # the text of the cell
    clearness: float  # -log10 of the number of such values expected in the column
    cells: IntArray  # row numbers in the table or part, from 0, increasing
    value: float = np.nan  # the number that was read, if any


class OddValue(NamedTuple):
    """An odd value of a column, found in the whole table."""

    kind: str
    seen: str
    value: float
    n_cells: int  # number of cells with this value


class CellCheck(Protocol):
    """A check fitted to a column. It keeps no rows of the table, since it is sent to workers."""

    def find(self, column: Column, spec: ColumnSpec) -> Iterable[FoundValue]:
        """Yield each odd value of a column once; the column may hold a part of the table's rows."""

    def explain(self, value: OddValue, spec: ColumnSpec, notation: Notation) -> tuple[str, str]:
        """Return why a value is odd, and the suggested value or an empty text."""
