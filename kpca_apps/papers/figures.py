"""Figures and tables of an experiment as arrays and words; nothing here draws."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Curves", "Figure", "Isolines", "Pictures", "Scatter", "Table"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Isolines:
    """Lines of constant projection on each of several components, over the plane.

    `values` (q, h, w) are projections at the points of the grid `x` (w,), `y` (h,), with a caption
    for each; `points` (n, 2) are drawn over the lines, coloured by their `labels`. The line of the
    `threshold`, such as that from which a point is novel, is drawn apart; the words say what it is.
    """

    title: str
    x: Matrix
    y: Matrix
    values: Matrix
    points: Matrix
    labels: NDArray[np.intp]
    captions: tuple[str, ...]
    threshold: float | None = None
    threshold_words: str = ""


@dataclass(frozen=True, eq=False)
class Scatter:
    """Rows as points of the plane, in groups; arrows are directions from the mean, (a, 2)."""

    title: str
    x_label: str
    y_label: str
    points: Matrix
    labels: NDArray[np.intp]
    arrows: Matrix = field(default_factory=lambda: np.empty((0, 2)))


@dataclass(frozen=True, eq=False)
class Curves:
    """Several series (x, y) of one quantity over another, NaN where there is no value.

    `points` (n, 2) are the rows that the series were fitted to, drawn under them.
    """

    title: str
    x_label: str
    y_label: str
    series: dict[str, tuple[Matrix, Matrix]]
    log_x: bool = False
    log_y: bool = False
    points: Matrix = field(default_factory=lambda: np.empty((0, 2)))


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images side by side, row under row: grey values in [0, 1], (rows, columns, height, width)."""

    title: str
    images: Matrix
    row_captions: tuple[str, ...]
    column_captions: tuple[str, ...]


Figure = Isolines | Scatter | Curves | Pictures


@dataclass(frozen=True)
class Table:
    """A table as the paper has it, our numbers in it; the note says what heads do not."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
