"""Where the figures of an experiment stand: side by side, so that every row is filled.

Figures of one row get the same height and share the width of the page by their shapes: four of a
kind stand in one row, as papers print them, and a flat figure has more room than a square one. The
widths told here are those on a page of full width, so that the letters of all figures are of one
size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

import numpy as np

from kpca_apps.papers.figures import Curves, Figure, Isolines, Pictures, Scatter

__all__ = ["FULL_WIDTH", "Spot", "panels_of", "rows_of"]

FULL_WIDTH = 10.6
"""Inches of a figure that takes a row of its own."""

GAP = 0.25
SQUARISH = 1.18
FLATTER = 1.8  # of two curves in a row
USUAL = 4.0  # shapes of one row added up: three or four figures that are nearly square
LONE_WIDTH = 3.6  # a third of the page: a table stands beside it
FEWEST_PANELS = 3  # that need the whole width
FLATTEST, TALLEST = 0.35, 1.5  # panels of isolines: height over width


@dataclass(frozen=True)
class Spot:
    """Where one figure stands.

    Attributes
    ----------
    place : int
        Of the figure in its experiment, from 0.
    width, height : float
        In inches.
    """

    place: int
    width: float
    height: float

    @property
    def shape(self) -> float:
        """Width over height."""
        return self.width / self.height

    @property
    def is_full(self) -> bool:
        """Whether it takes a row of its own."""
        return self.width >= FULL_WIDTH


def panels_of(n: int) -> tuple[int, int]:
    """Return how many of `n` panels stand side by side, and how many rows they make.

    Examples
    --------
    >>> panels_of(3), panels_of(8)
    ((3, 1), (4, 2))
    """
    across = min(n, 4)
    return across, -(-n // across)


def _shape(figure: Figure) -> float:
    """Return width over height of a figure as it would be drawn alone."""
    if isinstance(figure, Scatter | Curves):
        return SQUARISH
    if isinstance(figure, Pictures):
        rows, columns, height, width = figure.images.shape
        return float((columns + 1.6) / (rows * height / width + 0.5))
    panel = min(max(float(np.ptp(figure.y) / np.ptp(figure.x)), FLATTEST), TALLEST)
    across, down = panels_of(len(figure.values))
    # A panel of a number has its caption above it.
    return across / (down * (panel + (0.1 if len(figure.values) > 1 else 0.05)))


def rows_of(figures: Sequence[Figure]) -> list[tuple[Spot, ...]]:
    """Arrange figures in rows, in their order; two or more that would stand alone stand together.

    Parameters
    ----------
    figures : sequence of Figure

    Returns
    -------
    list of tuple of Spot
    """
    runs = [list(run) for _, run in groupby(range(len(figures)), lambda i: _is_wide(figures[i]))]
    alone = [run for run in runs if len(run) == 1 and not _is_wide(figures[run[0]])]
    for run in alone[1:]:
        alone[0].extend(run)
        runs.remove(run)
    rows: list[tuple[Spot, ...]] = []
    for run in runs:
        if _is_wide(figures[run[0]]):
            rows += [(_spot(place, FULL_WIDTH, _shape(figures[place])),) for place in run]
        else:
            rows += _balanced(run, _shapes([figures[place] for place in run]))
    return rows


def _is_wide(figure: Figure) -> bool:
    if isinstance(figure, Isolines):
        return len(figure.values) >= FEWEST_PANELS
    return isinstance(figure, Pictures) and _shape(figure) > 2.0


def _shapes(figures: list[Figure]) -> list[float]:
    """Return shapes of figures side by side: two without a shape of their own are made flatter."""
    if len(figures) == 2 and all(isinstance(figure, Curves) for figure in figures):
        return [FLATTER] * 2
    return [_shape(figure) for figure in figures]


def _balanced(run: list[int], shapes: list[float]) -> list[tuple[Spot, ...]]:
    """Break a run into rows whose shapes add up to much the same."""
    gaps = range(1, len(run))
    breaks = (cut for k in range(len(run)) for cut in combinations(gaps, k))
    spans = [list(zip((0, *cut), (*cut, len(run)), strict=True)) for cut in breaks]
    best = min(spans, key=lambda span: sum((sum(shapes[a:b]) - USUAL) ** 2 for a, b in span))
    return [_filled(run[a:b], shapes[a:b]) for a, b in best]


def _filled(run: list[int], shapes: list[float]) -> tuple[Spot, ...]:
    """Share the width among the figures of one row."""
    if len(run) == 1:
        return (_spot(run[0], LONE_WIDTH, shapes[0]),)
    unit = (FULL_WIDTH - GAP * (len(run) - 1)) / sum(shapes)
    return tuple(
        _spot(place, unit * shape, shape) for place, shape in zip(run, shapes, strict=True)
    )


def _spot(place: int, width: float, shape: float) -> Spot:
    return Spot(place, width, width / shape)
