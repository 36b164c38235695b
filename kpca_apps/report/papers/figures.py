"""Draw the figures of the papers' experiments."""

from __future__ import annotations

from typing import Any

import numpy as np
from contourpy import contour_generator
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator, NullLocator
from numpy.typing import NDArray
from skimage.measure import approximate_polygon

from kpca_apps.papers.figures import Contours, Curves, Figure, Pictures, Scatter
from kpca_apps.report.drawing import PALETTE, Drawing, drawable, house_style, new_axes, plain_ticks
from kpca_apps.report.novelty.marks import evenly
from kpca_apps.report.text import count, number
from kpca_apps.system.arrays import Matrix

Size = tuple[float, float]
MAX_POINTS = 500  # maximum number of rows in a scatter plot
MOST_TICKS = 10
LEAST_GAP = 0.08  # smallest gap between ticks of a logarithmic axis, as a share of the axis
LEGEND_WIDTH, HANDLE = 60, 8  # widths of a row of the legend, and of a sample line, in characters
MOST_MARKS = 40
MARKS = ("o", "^", "s", "D", "v", "x", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (6, 2)))
GREY = colormaps["gray"].with_extremes(bad=(0.0, 0.0, 0.0, 0.0))
N_LEVELS = 10
MAX_DOTS = 150  # maximum number of rows in a panel of contours
COLOURS = ("blue", "orange", "green", "purple", "sky", "muted", "ink")
# Marks that distinguish groups without colour: cap style, and length as a share of the panel's
# width.
DOTS = (("round", 1e-4), ("projecting", 1e-4), ("butt", 0.016))
FULL_WIDTH, USUAL_WIDTH = 10.6, 3.6  # widths of the page and of a figure, in inches
SQUARISH = 1.18
FEWEST_PANELS = 3  # minimum number of panels for which a figure takes the whole page width
FLATTEST, TALLEST = 0.35, 1.5  # limits of height / width of a contour panel


def draw(figure: Figure, name: str) -> Drawing:
    """Draw a figure of an experiment."""
    size = size_of(figure)
    with house_style():
        if isinstance(figure, Contours):
            return _contours(figure, name, size)
        if isinstance(figure, Scatter):
            return _scatter(figure, name, size)
        if isinstance(figure, Curves):
            return _curves(figure, name, size)
        return _pictures(figure, name, size)


def _scatter(content: Scatter, name: str, size: Size) -> Drawing:
    figure, (axes,) = new_axes(*size)
    draw_dots(axes, content.points, content.labels, MAX_POINTS, float(np.ptp(content.points[:, 0])))
    axes.autoscale_view()
    centre = content.points.mean(axis=0)
    look_of_arrow = {"arrowstyle": "-|>", "color": PALETTE["ink"], "lw": 1.4, "shrinkA": 0}
    for arrow in content.arrows:
        axes.annotate("", centre + arrow, centre, arrowprops=look_of_arrow)
    if len(content.arrows):
        axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel=drawable(content.x_label), ylabel=drawable(content.y_label))
    axes.locator_params(nbins=5)
    plain_ticks(axes.xaxis, axes.yaxis)
    return Drawing(name, content.title, drawn(len(content.points), MAX_POINTS).strip(), figure)


def _curves(content: Curves, name: str, size: Size) -> Drawing:
    figure, (axes,) = new_axes(*size)
    if len(content.points):
        nowhere = np.full(len(content.points), COLOURS.index("ink"))
        draw_dots(axes, content.points, nowhere, MAX_POINTS, float(np.ptp(content.points[:, 0])))
    for place, (label, (x, y)) in enumerate(content.series.items()):
        look = place % len(COLOURS)
        known = np.isfinite(y)
        (line,) = axes.plot(x[known], y[known], lw=1.3, ms=3.2, label=drawable(label))
        line.set(color=PALETTE[COLOURS[look]], ls=LINES[look])
        if known.sum() <= MOST_MARKS:
            line.set(marker=MARKS[look], mew=0.8 if MARKS[look] == "x" else 0)
    if content.log_x:
        _logarithmic(axes, np.unique(np.concatenate([x for x, _ in content.series.values()])))
    if content.log_y:
        axes.set_yscale("log")
    axes.set(xlabel=drawable(content.x_label), ylabel=drawable(content.y_label))
    if not content.log_x and not content.log_y:
        axes.locator_params(nbins=6)
    plain_ticks(axes.xaxis, axes.yaxis)
    if len(content.series) > 1:
        longest = max(map(len, content.series))
        figure.legend(
            loc="outside lower center",
            ncols=min(max(LEGEND_WIDTH // (longest + HANDLE), 1), len(content.series)),
            frameon=False,
            labelcolor=PALETTE["muted"],
            fontsize=7.5,
            handlelength=2.4,
        )
    return Drawing(name, content.title, "", figure)


def _logarithmic(axes: Axes, x: Matrix) -> None:
    """Make the horizontal axis logarithmic; if x has few values, use them as ticks."""
    axes.set_xscale("log")
    if len(x) <= MOST_TICKS:
        gap = LEAST_GAP * np.log(x[-1] / x[0])
        ticks = [x[-1]]
        for place in x[-2::-1]:
            if np.log(ticks[-1] / place) >= gap:
                ticks.append(place)
        axes.set_xticks(ticks[::-1])
        axes.xaxis.set_minor_locator(NullLocator())


def _pictures(content: Pictures, name: str, size: Size) -> Drawing:
    rows, columns, height, width = content.images.shape
    gap = max(width // 8, 1)
    mosaic = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap), np.nan)
    for i, j in np.ndindex(rows, columns):
        top, left = i * (height + gap), j * (width + gap)
        mosaic[top : top + height, left : left + width] = content.images[i, j]
    figure = Canvas(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.imshow(mosaic, cmap=GREY, vmin=0.0, vmax=1.0, interpolation="none")
    sides = (
        (axes.set_xticks, content.column_captions, width),
        (axes.set_yticks, content.row_captions, height),
    )
    for set_ticks, captions, side in sides:
        middles = np.arange(len(captions)) * (side + gap) + side / 2 - 0.5
        set_ticks(middles, [drawable(caption) for caption in captions])
    axes.tick_params(length=0, labelsize=7.5)
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    return Drawing(name, content.title, "", figure)


def _contours(content: Contours, name: str, size: Size) -> Drawing:
    figure, panels = _panels(len(content.values), size)
    for axes, values, caption in zip(panels, content.values, content.captions, strict=False):
        draw_dots(axes, content.points, content.labels, MAX_DOTS, float(np.ptp(content.x)))
        _lines(axes, content.x, content.y, values)
        if content.threshold is not None:
            level = np.array([content.threshold])
            look = {"lw": 1.8, "edgecolor": PALETTE["accent"]}
            _draw(axes, content.x, content.y, values, level, **look)
        axes.set(xlim=content.x[[0, -1]], ylim=content.y[[0, -1]], aspect="equal")
        if len(panels) > 1:
            axes.set_title(drawable(caption), fontsize=8, color=PALETTE["ink"])
    caption = "Lines of constant value"
    if len(content.captions) == 1:
        caption += f" ({content.captions[0]})"
    if np.nanmin(content.values) < 0:
        caption += ": solid above zero, dashed below, heavy at zero"
    if content.threshold is not None:
        what = content.threshold_words or "the threshold"
        caption += f"; the accented one is {what}, {number(content.threshold)}"
    caption += f".{drawn(len(content.points), MAX_DOTS)}"
    return Drawing(name, content.title, caption, figure)


def _panels(n: int, size: Size) -> tuple[Canvas, list[Axes]]:
    across, down = panels_of(n)
    figure = Canvas(figsize=size, layout="constrained")
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in grid[n:]:
        axes.set_axis_off()
    for axes in grid[:n]:
        axes.locator_params(nbins=4)
        axes.tick_params(length=0, labelsize=7)
        plain_ticks(axes.xaxis, axes.yaxis)
    return figure, list(grid[:n])


def draw_dots(
    axes: Axes, points: Matrix, labels: NDArray[np.intp], most: int, extent: float
) -> None:
    """Draw rows as marks, one path for each group.

    Of more than `most` rows, evenly spaced ones are drawn. Each group has a colour and one of three
    marks. `extent` is the width of the axes, in units of the points.
    """
    places = evenly(np.arange(len(points)), most)
    for group in np.unique(labels[places]):
        rows = points[places][labels[places] == group]
        cap, length = DOTS[int(group) % len(DOTS)]
        half = np.array([length * extent / 2.0, 0.0])
        ends = np.stack([rows - half, rows + half], axis=1).reshape(-1, 2)
        path = Path(ends, np.tile([Path.MOVETO, Path.LINETO], len(rows)))
        path.should_simplify = False  # simplifying would remove short dots
        colour = PALETTE[COLOURS[int(group) % len(COLOURS)]]
        look = {"lw": 2.4, "capstyle": cap, "edgecolor": colour, "alpha": 0.65}
        # If snapped to pixels, a dot would have no length and be left out.
        axes.add_patch(PathPatch(path, fill=False, snap=False, **look))


def _lines(axes: Axes, x: Matrix, y: Matrix, values: Matrix) -> None:
    """Draw lines of equal value, dashed below zero."""
    finite = values[np.isfinite(values)]
    if not len(finite) or finite.min() == finite.max():
        return
    extent = float(finite.min()), float(finite.max())
    levels = np.asarray(MaxNLocator(N_LEVELS).tick_values(*extent))
    for wanted, style, width in (
        (levels[levels > 0], "-", 0.8),
        (levels[levels < 0], (0, (3, 2)), 0.8),
        (levels[levels == 0], "-", 1.5),
    ):
        _draw(axes, x, y, values, wanted, lw=width, ls=style, edgecolor=PALETTE["ink"])


def _draw(axes: Axes, x: Matrix, y: Matrix, values: Matrix, levels: Matrix, **look: Any) -> None:
    """Draw the contour lines of the given levels as one path.

    The lines are off by at most two thousandths of the panel.
    """
    scale = np.array([np.ptp(x), np.ptp(y)])
    lines = contour_generator(x, y, np.ma.masked_invalid(values))
    found = [
        Path(approximate_polygon(np.asarray(line) / scale, 2e-3) * scale)
        for level in levels
        for line in lines.lines(float(level))
    ]
    if found:
        axes.add_patch(PathPatch(Path.make_compound_path(*found), fill=False, **look))


def drawn(n: int, most: int) -> str:
    """State how many rows are drawn, if not all."""
    return f" {count(most)} of {count(n)} rows are drawn." if n > most else ""


def size_of(figure: Figure) -> Size:
    """Return the size of a figure in inches."""
    width = FULL_WIDTH if is_wide(figure) else USUAL_WIDTH
    return width, width / _shape(figure)


def is_wide(figure: Figure) -> bool:
    """Whether a figure takes a whole row of the page."""
    if isinstance(figure, Contours):
        return len(figure.values) >= FEWEST_PANELS
    return isinstance(figure, Pictures) and _shape(figure) > 2.0


def panels_of(n: int) -> tuple[int, int]:
    """Return how many of `n` panels are in a row, and the number of rows.

    >>> panels_of(3), panels_of(8)
    ((3, 1), (4, 2))
    """
    across = min(n, 4)
    return across, -(-n // across)


def _shape(figure: Figure) -> float:
    """Return the width over the height of a figure that is drawn alone."""
    if isinstance(figure, Scatter | Curves):
        return SQUARISH
    if isinstance(figure, Pictures):
        rows, columns, height, width = figure.images.shape
        return float((columns + 1.6) / (rows * height / width + 0.5))
    panel = min(max(float(np.ptp(figure.y) / np.ptp(figure.x)), FLATTEST), TALLEST)
    across, down = panels_of(len(figure.values))
    # If there are several panels, each has a caption above it.
    return across / (down * (panel + (0.1 if len(figure.values) > 1 else 0.05)))
