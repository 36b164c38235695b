"""How the cells of a column lie, in numbers few enough for a model file: quantiles or levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.tables.values import Column, DateFormat

# From so many quantiles a Kolmogorov-Smirnov distance is known to 1 / 65.
N_QUANTILES = 65
MOST_LEVELS = 50  # counted by name


@dataclass(frozen=True)
class ColumnSummary:
    """How the cells of a column lie."""

    name: str
    n_cells: Annotated[int, Meta(ge=0)]
    n_missing: Annotated[int, Meta(ge=0)]
    quantiles: tuple[float, ...] = ()  # of numbers, or of dates in seconds; even steps
    levels: tuple[str, ...] = ()  # of a category, the most frequent; the others count together
    counts: tuple[int, ...] = ()  # their cells
    is_date: bool = False
    runs_on: bool = False  # with the rows: that it lies beyond is no news

    def validate(self) -> None:
        """Refuse what no column leads to."""
        steps = np.diff(self.quantiles)
        if len(self.levels) != len(self.counts) or (steps.size and not (steps >= 0).all()):
            raise ValueError(f"a summary of {self.name!r:.40} that contradicts itself")
        if self.n_missing + sum(self.counts) > self.n_cells or min(self.counts, default=0) < 0:
            raise ValueError(f"a summary of {self.name!r:.40} with more cells than there are")

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec) -> ColumnSummary:
        """Sum up a column, read as its plan says."""
        n_cells, is_date = len(column), isinstance(spec.format, DateFormat)
        if spec.format is not None:
            values = column.read(spec.format).ordered
            n_missing = n_cells - len(values)
            if len(values) > N_QUANTILES:
                steps = np.linspace(0.0, 1.0, N_QUANTILES)
                values = np.quantile(values, steps, method="inverted_cdf")
            quantiles = tuple(values.tolist())
            return cls(spec.name, n_cells, n_missing, quantiles, (), (), is_date, spec.runs_on)
        levels = spec.levels(column)
        n_missing = n_cells - int(levels.counts.sum())
        # Free text has as many levels as cells: only its gaps are compared.
        found = levels.most_frequent(MOST_LEVELS) if spec.has_levels else []
        names, counts = tuple(name for name, _ in found), tuple(int(count) for _, count in found)
        return cls(spec.name, n_cells, n_missing, levels=names, counts=counts)

    @property
    def n_values(self) -> int:
        """Cells that hold a value."""
        return self.n_cells - self.n_missing
