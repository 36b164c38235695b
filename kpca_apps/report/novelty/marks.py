"""Choose, order and label the rows that a figure draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from kpca_apps.report.drawing import settle

MAX_POINTS = 500  # maximum number of drawn rows that are not flagged
MAX_FLAGGED = 400
N_LABELLED = 5  # number of rows labelled with their ranks
MARK = 5  # points
BESIDE = ((4, 2), (-4, 2), (4, -9), (-4, -9))  # offsets of a label to try, in points


def evenly(places: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return at most `n` of the positions, evenly spaced."""
    if len(places) <= n:
        return places
    return places[np.linspace(0, len(places) - 1, n).round().astype(np.int64)]


def by_rank(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of rows by rank; rows without rank (0) are last."""
    return np.argsort(np.where(ranks > 0, ranks, np.iinfo(np.int64).max), kind="stable")


def label_marks(
    axes: Axes,
    places: NDArray[np.float64],
    names: Sequence[str],
    colours: Sequence[str],
    marks: NDArray[np.float64],
) -> list[str]:
    """Write labels next to their marks where there is room; return those written.

    `places` (k, 2) are the labelled marks; labels must not cover any of the `marks` (m, 2).
    """
    figure = axes.get_figure(root=True)
    if figure is None or not len(places):
        return []
    settle(figure)  # the positions of marks are known only after the layout
    frame = axes.get_window_extent()
    others = _boxes(axes, marks, figure.dpi)
    written: list[str] = []
    taken: list[Bbox] = []
    own_boxes = _boxes(axes, places, figure.dpi)
    for place, name, colour, own in zip(places, names, colours, own_boxes, strict=True):
        clear_of = [mark for mark in others if not mark.overlaps(own)]
        for x, y in BESIDE:
            label = axes.annotate(
                name,
                (float(place[0]), float(place[1])),
                xytext=(x, y),
                textcoords="offset points",
                ha="left" if x > 0 else "right",
                color=colour,
            )
            box = label.get_window_extent()
            is_inside = frame.x0 <= box.x0 and box.x1 <= frame.x1
            if is_inside and not box.count_overlaps([*taken, *clear_of]):
                taken.append(box)
                written.append(name)
                break
            label.remove()
    return written


def _boxes(axes: Axes, places: NDArray[np.float64], dpi: float) -> list[Bbox]:
    half = MARK * dpi / 72 / 2
    centres = axes.transData.transform(places) if len(places) else places
    return [Bbox([centre - half, centre + half]) for centre in centres]
