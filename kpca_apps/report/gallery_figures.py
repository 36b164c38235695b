"""Figures of the papers' experiments, each drawn from the arrays of its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from kpca_apps.papers.result import Curves, Figure, Isolines, Pictures, Scatter
from kpca_apps.report.components import evenly
from kpca_apps.report.drawing import PALETTE, Drawing, house_style, new_axes, plain_ticks
from kpca_apps.report.drawing import shown as words
from kpca_apps.report.isolines import COLOURS, draw_isolines, drawn

__all__ = ["WIDE", "draw"]

Matrix = NDArray[np.float64]

WIDE = 6.0
"""Inches from which a figure takes the whole width of a page."""

MAX_POINTS = 160  # rows of a scatter plot
MOST_TICKS = 10
MOST_MARKS = 40
MARKS = ("o", "^", "s", "D", "v", "x", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (6, 2)))
GREY = colormaps["gray"].with_extremes(bad=(0.0, 0.0, 0.0, 0.0))


def draw(figure: Figure, name: str) -> Drawing:
    """Draw one figure of an experiment.

    Parameters
    ----------
    figure : Isolines, Scatter, Curves or Pictures
    name : str
        File name without suffix.
    """
    with house_style():
        if isinstance(figure, Isolines):
            return draw_isolines(figure, name)
        if isinstance(figure, Scatter):
            return _scatter(figure, name)
        if isinstance(figure, Curves):
            return _curves(figure, name)
        return _pictures(figure, name)


def _scatter(shown: Scatter, name: str) -> Drawing:
    """Rows as points, a mark and a colour a group; axes of most variance as arrows."""
    figure, (axes,) = new_axes(3.9, 3.3)
    places = evenly(np.arange(len(shown.points)), MAX_POINTS)
    for group in np.unique(shown.labels):
        rows = shown.points[places][shown.labels[places] == group]
        look = int(group) % len(COLOURS)
        edge = 0.4 if MARKS[look] == "x" else 0
        colour = PALETTE[COLOURS[look]]
        axes.plot(*rows.T, MARKS[look], ms=3, mew=edge, color=colour, alpha=0.75)
    centre = shown.points.mean(axis=0)
    look_of_arrow = {"arrowstyle": "-|>", "color": PALETTE["ink"], "lw": 1.4, "shrinkA": 0}
    for arrow in shown.arrows:
        axes.annotate("", centre + arrow, centre, arrowprops=look_of_arrow)
    if len(shown.arrows):
        axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel(words(shown.x_label))
    axes.set_ylabel(words(shown.y_label))
    axes.locator_params(nbins=5)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    caption = "Principal axes as arrows." * bool(len(shown.arrows))
    caption = f"{caption}{drawn(len(shown.points), MAX_POINTS)}".strip()
    return Drawing(name, shown.title, caption, figure)


def _curves(shown: Curves, name: str) -> Drawing:
    """Several series over one axis, named where they end."""
    figure, (axes,) = new_axes(3.9, 3.0)
    for place, (label, (x, y)) in enumerate(shown.series.items()):
        look = place % len(COLOURS)
        known = np.isfinite(y)
        few = int(known.sum()) <= 40
        axes.plot(
            x[known],
            y[known],
            ls=LINES[look],
            lw=1.3,
            color=PALETTE[COLOURS[look]],
            label=words(label),
            marker=MARKS[look] if few else "",
            ms=3.2,
            mew=0.8 if MARKS[look] == "x" else 0,
        )
    if shown.log_x:
        _logarithmic(axes, np.unique(np.concatenate([x for x, _ in shown.series.values()])))
    if shown.log_y:
        axes.set_yscale("log")
    axes.set_xlabel(words(shown.x_label))
    axes.set_ylabel(words(shown.y_label))
    if not shown.log_x and not shown.log_y:
        axes.locator_params(nbins=6)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    if len(shown.series) > 1:
        axes.legend(frameon=False, labelcolor=PALETTE["muted"], fontsize=7.5, handlelength=2.4)
    return Drawing(name, shown.title, "", figure)


def _logarithmic(axes: Axes, x: Matrix) -> None:
    """Make the horizontal axis logarithmic, with ticks where the numbers are, if these are few."""
    axes.set_xscale("log")
    if len(x) <= MOST_TICKS:
        axes.set_xticks(x)
        axes.xaxis.set_minor_locator(NullLocator())


def _pictures(shown: Pictures, name: str) -> Drawing:
    """Images in a grid, a gap between them."""
    rows, columns, height, width = shown.images.shape
    gap = max(width // 8, 1)
    mosaic = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap), np.nan)
    for i, j in np.ndindex(rows, columns):
        top, left = i * (height + gap), j * (width + gap)
        mosaic[top : top + height, left : left + width] = shown.images[i, j]
    side = 0.62 if columns > 6 else 0.8
    size = (columns * side + 1.3, rows * side * height / width + 0.35)
    figure = Canvas(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.imshow(mosaic, cmap=GREY, vmin=0.0, vmax=1.0, interpolation="none")
    _name(axes.set_xticks, shown.column_captions, width, gap)
    _name(axes.set_yticks, shown.row_captions, height, gap)
    axes.tick_params(length=0, labelsize=7.5)
    axes.xaxis.tick_top()
    for spine in axes.spines.values():
        spine.set_visible(False)
    return Drawing(name, shown.title, "", figure)


def _name(put: Callable[..., object], captions: Sequence[str], side: int, gap: int) -> None:
    places = np.arange(len(captions)) * (side + gap) + side / 2 - 0.5
    put(places, [words(caption) for caption in captions])
