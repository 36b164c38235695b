"""Figures and tables of an experiment as arrays and text."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kpca_apps.papers.data import Labels
from kpca_apps.system.arrays import Matrix


@dataclass(frozen=True, eq=False)
class Contours:
    """Contours of components over the plane."""

    title: str
    x: Matrix  # (w,)
    y: Matrix  # (h,)
    values: Matrix  # (q, h, w), projections at the grid points
    points: Matrix  # (n, 2), drawn over the contours
    labels: Labels
    captions: tuple[str, ...]  # one per component
    threshold: float | None = None  # value of a highlighted contour
    threshold_words: str = ""


@dataclass(frozen=True, eq=False)
class Scatter:
    """Points of the plane, coloured by group."""

    title: str
    x_label: str
    y_label: str
    points: Matrix
    labels: Labels
    arrows: Matrix = field(default_factory=lambda: np.empty((0, 2)))  # directions from the mean


@dataclass(frozen=True, eq=False)
class Curves:
    """Several series (x, y); NaN marks missing values."""

    title: str
    x_label: str
    y_label: str
    series: dict[str, tuple[Matrix, Matrix]]
    log_x: bool = False
    log_y: bool = False
    points: Matrix = field(default_factory=lambda: np.empty((0, 2)))  # data that the curves fit


@dataclass(frozen=True, eq=False)
class Pictures:
    """A grid of grey images with values in [0, 1], shape (rows, columns, height, width)."""

    title: str
    images: Matrix
    row_captions: tuple[str, ...]
    column_captions: tuple[str, ...]


Figure = Contours | Scatter | Curves | Pictures


@dataclass(frozen=True)
class Table:
    """A table in the paper's layout with our numbers; the note explains the column heads."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
