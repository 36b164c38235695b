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

    Attributes
    ----------
    title : str
    x, y : ndarray of shape (w,), (h,)
        The grid.
    values : ndarray of shape (q, h, w)
        Projections at the grid's points.
    points : ndarray of shape (n, 2)
        The rows, drawn over the lines.
    labels : ndarray of int, shape (n,)
        Their groups, for colour.
    captions : tuple of str
        One for each component.
    threshold : float, optional
        A value whose line is drawn apart, such as that from which a point is novel.
    threshold_words : str
        What that value is, such as "the largest error of a training row".
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
    """Rows as points of the plane.

    Attributes
    ----------
    title, x_label, y_label : str
    points : ndarray of shape (n, 2)
    labels : ndarray of int, shape (n,)
    arrows : ndarray of shape (a, 2)
        Directions from the mean, such as principal axes; may be empty.
    """

    title: str
    x_label: str
    y_label: str
    points: Matrix
    labels: NDArray[np.intp]
    arrows: Matrix = field(default_factory=lambda: np.empty((0, 2)))


@dataclass(frozen=True, eq=False)
class Curves:
    """Several series of one quantity over another.

    Attributes
    ----------
    title, x_label, y_label : str
    series : dict of str to (x, y)
        Arrays of the same length; NaN where there is no value.
    log_x, log_y : bool
    points : ndarray of shape (n, 2)
        The rows that the series were fitted to, drawn under them; may be empty.
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
    """Images side by side, row under row.

    Attributes
    ----------
    title : str
    images : ndarray of shape (rows, columns, height, width)
        Grey values in [0, 1].
    row_captions, column_captions : tuple of str
    """

    title: str
    images: Matrix
    row_captions: tuple[str, ...]
    column_captions: tuple[str, ...]


Figure = Isolines | Scatter | Curves | Pictures


@dataclass(frozen=True)
class Table:
    """A table as the paper has it, our numbers in it.

    Attributes
    ----------
    title : str
    heads : tuple of str
    rows : tuple of tuple of str
    note : str
        What the columns mean, where their heads do not say it; may be empty.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
