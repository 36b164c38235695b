"""Figures and tables of an experiment as arrays and words; nothing here draws."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kpca_apps.papers.data import Labels
from kpca_apps.system.arrays import Matrix


@dataclass(frozen=True, eq=False)
class Contours:
    """Lines of constant projection on each of several components, over the plane."""

    title: str
    x: Matrix  # (w,)
    y: Matrix  # (h,)
    values: Matrix  # (q, h, w), projections at the points of the grid
    points: Matrix  # (n, 2), drawn over the lines and coloured by their labels
    labels: Labels
    captions: tuple[str, ...]  # of each of the values
    threshold: float | None = None  # an accented line, such as that from which a point is novel
    threshold_words: str = ""


@dataclass(frozen=True, eq=False)
class Scatter:
    """Rows as points of the plane, in groups."""

    title: str
    x_label: str
    y_label: str
    points: Matrix
    labels: Labels
    arrows: Matrix = field(default_factory=lambda: np.empty((0, 2)))  # directions from the mean


@dataclass(frozen=True, eq=False)
class Curves:
    """Several series (x, y) of one quantity over another, NaN where there is no value."""

    title: str
    x_label: str
    y_label: str
    series: dict[str, tuple[Matrix, Matrix]]
    log_x: bool = False
    log_y: bool = False
    points: Matrix = field(default_factory=lambda: np.empty((0, 2)))  # what they were fitted to


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images side by side, row under row: grey values in [0, 1], (rows, columns, height, width)."""

    title: str
    images: Matrix
    row_captions: tuple[str, ...]
    column_captions: tuple[str, ...]


Figure = Contours | Scatter | Curves | Pictures


@dataclass(frozen=True)
class Table:
    """A table as the paper has it, our numbers in it; the note says what heads do not."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
