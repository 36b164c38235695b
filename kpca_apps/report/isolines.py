"""Isolines: lines of constant value over the plane, a panel a component, over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from contourpy import contour_generator
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from kpca_apps.papers.figures import Isolines
from kpca_apps.report.components import evenly
from kpca_apps.report.drawing import PALETTE, Drawing, plain_ticks
from kpca_apps.report.drawing import shown as words
from kpca_apps.report.gallery_rows import panels_of
from kpca_apps.report.text import count, number

__all__ = ["COLOURS", "draw_dots", "draw_isolines", "drawn"]

Matrix = NDArray[np.float64]

N_LEVELS = 10
MAX_DOTS = 150  # rows under the lines of one panel
COLOURS = ("blue", "orange", "green", "purple", "sky", "muted", "ink")
# Dots, squares and dashes, so that groups are not told by colour alone: the end of a line, and its
# length as a share of the panel's width.
MARKS = (("round", 1e-4), ("projecting", 1e-4), ("butt", 0.016))


def draw_isolines(shown: Isolines, name: str, size: tuple[float, float]) -> Drawing:
    """Draw the lines of each component in a panel of its own.

    Parameters
    ----------
    shown : Isolines
    name : str
        File name without suffix.
    size : (float, float)
        Width and height in inches.
    """
    figure, panels = _panels(len(shown.values), size)
    for axes, values, caption in zip(panels, shown.values, shown.captions, strict=False):
        draw_dots(axes, shown.points, shown.labels, MAX_DOTS, float(np.ptp(shown.x)))
        _lines(axes, shown.x, shown.y, values)
        _threshold(axes, shown, values)
        axes.set_xlim(shown.x[0], shown.x[-1])
        axes.set_ylim(shown.y[0], shown.y[-1])
        axes.set_aspect("equal")
        if len(panels) > 1:
            axes.set_title(words(caption), fontsize=8, color=PALETTE["ink"])
    return Drawing(name, shown.title, _lines_told(shown), figure)


def _lines_told(shown: Isolines) -> str:
    """Say what the lines are."""
    caption = "Lines of constant value"
    if len(shown.captions) == 1:
        caption += f" ({shown.captions[0]})"
    if np.nanmin(shown.values) < 0:
        caption += ": solid above zero, dashed below, heavy at zero"
    if shown.threshold is not None:
        what = shown.threshold_words or "the threshold"
        caption += f"; the accented one is {what}, {number(shown.threshold)}"
    return f"{caption}.{drawn(len(shown.points), MAX_DOTS)}"


def _panels(n: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """Start a figure of `n` panels of one shape, in rows."""
    across, down = panels_of(n)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in grid[n:]:
        axes.set_axis_off()
    for axes in grid[:n]:
        axes.locator_params(nbins=4)
        axes.tick_params(length=0, labelsize=7)
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
    return figure, list(grid[:n])


def draw_dots(
    axes: Axes, points: Matrix, labels: NDArray[np.intp], most: int, extent: float
) -> None:
    """Draw rows as marks: one path a group, which takes a third of the bytes of markers.

    Parameters
    ----------
    axes : Axes
    points : ndarray of shape (n, 2)
    labels : ndarray of int, shape (n,)
        Groups; each has a colour, and one of three marks.
    most : int
        Rows drawn; of more, some evenly spaced.
    extent : float
        Width of the axes, in units of the points.
    """
    places = evenly(np.arange(len(points)), most)
    for group in np.unique(labels[places]):
        rows = points[places][labels[places] == group]
        cap, length = MARKS[int(group) % len(MARKS)]
        half = np.array([length * extent / 2.0, 0.0])
        ends = np.stack([rows - half, rows + half], axis=1).reshape(-1, 2)
        path = Path(ends, np.tile([Path.MOVETO, Path.LINETO], len(rows)))
        path.should_simplify = False  # or the dots, being short, would be left out
        colour = PALETTE[COLOURS[int(group) % len(COLOURS)]]
        look = {"lw": 2.4, "capstyle": cap, "edgecolor": colour, "alpha": 0.65}
        # Snapped to pixels a dot would have no length, and a picture would leave it out.
        patch = PathPatch(path, fill=False, snap=False, **look)
        axes.add_patch(patch)


def _lines(axes: Axes, x: Matrix, y: Matrix, values: Matrix) -> None:
    """Draw lines of equal value; where the sign changes, zero is one of the levels."""
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
    """Draw the lines of some levels as one path."""
    lines = contour_generator(x, y, np.ma.masked_invalid(values))
    found = [np.asarray(line) for level in levels for line in lines.lines(float(level))]
    if found:
        path = Path.make_compound_path(*[Path(_simpler(line, x, y)) for line in found])
        axes.add_patch(PathPatch(path, fill=False, **look))


def _threshold(axes: Axes, shown: Isolines, values: Matrix) -> None:
    if shown.threshold is not None:
        levels = np.array([shown.threshold])
        _draw(axes, shown.x, shown.y, values, levels, lw=1.8, edgecolor=PALETTE["accent"])


def _simpler(line: Matrix, x: Matrix, y: Matrix) -> Matrix:
    """Leave out points of a line that stand less than two thousandths of the panel off it."""
    scale = np.array([np.ptp(x), np.ptp(y)])
    kept = np.zeros(len(line), dtype=bool)
    kept[[0, -1]] = True
    spans = [(0, len(line) - 1)]
    while spans:
        first, last = spans.pop()
        if last - first < 2:
            continue
        part = (line[first : last + 1] - line[first]) / scale
        along = part[-1]
        length = float(np.hypot(*along))
        if length > 0:
            gaps = np.abs(part[:, 0] * along[1] - part[:, 1] * along[0]) / length
        else:
            gaps = np.hypot(part[:, 0], part[:, 1])
        far = int(gaps.argmax())
        if gaps[far] > 2e-3:
            kept[first + far] = True
            spans += [(first, first + far), (first + far, last)]
    return line[kept]


def drawn(n: int, most: int) -> str:
    """Say that not all rows are drawn, where that is so."""
    return f" {count(most)} of {count(n)} rows are drawn." if n > most else ""
