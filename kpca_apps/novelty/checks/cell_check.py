"""What a check of cells is: what it learned of a column, the cells it finds odd there, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np

from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.system.arrays import IntArray
from kpca_apps.tables.values import Column


class FoundValue(NamedTuple):
    """A value of a column, or of a part of it, that is odd by itself."""

    kind: str  # see `OddCell`
    seen: str  # as it stands in the table
    clearness: float  # in decimal digits; depends on the value and its column alone
    cells: IntArray  # those that hold it, by their places in the part, increasing
    value: float = np.nan  # as a number; NaN where it is none


class OddValue(NamedTuple):
    """A value that is odd by itself in a table."""

    kind: str
    seen: str
    value: float
    n_cells: int  # that hold it


class CellCheck(Protocol):
    """What one check learned of a column. It is sent to workers: plain data, no tables."""

    def find(self, column: Column, spec: ColumnSpec) -> Iterable[FoundValue]:
        """Find the odd values of the column, or of a part of it, each once."""

    def explain(self, value: OddValue, spec: ColumnSpec, notation: Notation) -> tuple[str, str]:
        """Say why a value is odd, and what was probably meant (empty where that is open)."""
