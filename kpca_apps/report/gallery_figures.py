"""Figures of the papers' experiments, each drawn from the arrays of its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from kpca_apps.papers.figures import Curves, Figure, Isolines, Pictures, Scatter
from kpca_apps.report.drawing import PALETTE, Drawing, house_style, new_axes, plain_ticks
from kpca_apps.report.drawing import shown as words
from kpca_apps.report.isolines import COLOURS, draw_dots, draw_isolines, drawn

__all__ = ["draw"]

Matrix = NDArray[np.float64]
Size = tuple[float, float]

MAX_POINTS = 500  # rows of a scatter plot
MOST_TICKS = 10
LEAST_GAP = 0.08  # between ticks of a logarithmic axis, as a share of it
LEGEND_WIDTH, HANDLE = 60, 8  # in letters: of a row of the legend, of the line before a name
MOST_MARKS = 40
MARKS = ("o", "^", "s", "D", "v", "x", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (6, 2)))
GREY = colormaps["gray"].with_extremes(bad=(0.0, 0.0, 0.0, 0.0))


def draw(figure: Figure, name: str, size: Size = (3.6, 3.0)) -> Drawing:
    """Draw one figure of an experiment.

    Parameters
    ----------
    figure : Isolines, Scatter, Curves or Pictures
    name : str
        File name without suffix.
    size : (float, float)
        Width and height in inches.
    """
    with house_style():
        if isinstance(figure, Isolines):
            return draw_isolines(figure, name, size)
        if isinstance(figure, Scatter):
            return _scatter(figure, name, size)
        if isinstance(figure, Curves):
            return _curves(figure, name, size)
        return _pictures(figure, name, size)


def _scatter(shown: Scatter, name: str, size: Size) -> Drawing:
    """Rows as points, a mark and a colour a group; directions as arrows."""
    figure, (axes,) = new_axes(*size)
    draw_dots(axes, shown.points, shown.labels, MAX_POINTS, float(np.ptp(shown.points[:, 0])))
    axes.autoscale_view()
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
    return Drawing(name, shown.title, drawn(len(shown.points), MAX_POINTS).strip(), figure)


def _curves(shown: Curves, name: str, size: Size) -> Drawing:
    """Several series over one axis, the rows they were fitted to under them."""
    figure, (axes,) = new_axes(*size)
    if len(shown.points):
        nowhere = np.full(len(shown.points), COLOURS.index("ink"))
        extent = float(np.ptp(shown.points[:, 0]))
        draw_dots(axes, shown.points, nowhere, MAX_POINTS, extent)
    for place, (label, (x, y)) in enumerate(shown.series.items()):
        look = place % len(COLOURS)
        known = np.isfinite(y)
        few = int(known.sum()) <= MOST_MARKS
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
        longest = max(map(len, shown.series))
        figure.legend(
            loc="outside lower center",
            ncols=min(max(LEGEND_WIDTH // (longest + HANDLE), 1), len(shown.series)),
            frameon=False,
            labelcolor=PALETTE["muted"],
            fontsize=7.5,
            handlelength=2.4,
        )
    return Drawing(name, shown.title, "", figure)


def _logarithmic(axes: Axes, x: Matrix) -> None:
    """Make the horizontal axis logarithmic, with ticks where the numbers are, if these are few."""
    axes.set_xscale("log")
    if len(x) <= MOST_TICKS:
        gap = LEAST_GAP * np.log(x[-1] / x[0])
        ticks = [x[-1]]
        for place in x[-2::-1]:
            if np.log(ticks[-1] / place) >= gap:
                ticks.append(place)
        axes.set_xticks(ticks[::-1])
        axes.xaxis.set_minor_locator(NullLocator())


def _pictures(shown: Pictures, name: str, size: Size) -> Drawing:
    """Images in a grid, a gap between them."""
    rows, columns, height, width = shown.images.shape
    gap = max(width // 8, 1)
    mosaic = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap), np.nan)
    for i, j in np.ndindex(rows, columns):
        top, left = i * (height + gap), j * (width + gap)
        mosaic[top : top + height, left : left + width] = shown.images[i, j]
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
