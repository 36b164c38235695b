"""Figures of the kernel components: the map of the rows, and the scree plot."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from kpca_apps.novelty.result import ComponentMap
from kpca_apps.report.drawing import PALETTE, Drawing, new_axes, plain_ticks
from kpca_apps.report.text import count, join, number, percent

__all__ = ["component_map", "evenly", "scree"]

MAX_POINTS = 1000  # dots of rows that are not flagged
MAX_FLAGGED = 400
N_LABELLED = 5  # ranks written beside their marks, where they do not overlap
MARK = 5  # points
BESIDE = ((4, 2), (-4, 2), (4, -9), (-4, -9))  # where, in points from the mark, in this order
MAX_COMPONENTS = 40
WIDE = 30.0  # a spread of variances that only a logarithmic axis shows


def component_map(points: ComponentMap) -> Drawing:
    """Rows on the first two kernel components; flagged ones as triangles, the oddest named."""
    figure, (axes,) = new_axes(4.9, 3.5)
    usual = evenly(np.flatnonzero(~points.flagged), MAX_POINTS)
    order = np.argsort(
        np.where(points.rank > 0, points.rank, np.iinfo(np.int64).max), kind="stable"
    )
    flagged = order[points.flagged[order]][:MAX_FLAGGED]
    axes.plot(
        points.x[usual], points.y[usual], "o", ms=2.6, color=PALETTE["muted"], alpha=0.6, mew=0
    )
    axes.plot(points.x[flagged], points.y[flagged], "^", ms=MARK, color=PALETTE["accent"], mew=0)
    first, second = (percent(share) for share in points.explained)
    axes.set_xlabel(f"kernel component 1 ({first} of the variance)")
    axes.set_ylabel(f"kernel component 2 ({second})")
    axes.locator_params(nbins=4)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    oddest = [int(place) for place in order[:N_LABELLED] if points.rank[place] > 0]
    labelled = _label_ranks(axes, points, oddest, flagged)
    n_drawn = len(usual) + len(flagged)
    caption = (
        f"Each mark is a row, {count(n_drawn)} of {count(points.n_rows)} drawn: grey dots usual "
        f"rows, triangles flagged ones{_labels_told(labelled)}. Neighbours on the map are alike. "
        "An odd row may still lie inside the crowd, because the map shows two directions and the "
        "score measures all the others too."
    )
    return Drawing("map", "Rows on the first two kernel components", caption, figure)


def _label_ranks(
    axes: Axes, points: ComponentMap, places: list[int], flagged: NDArray[np.int64]
) -> list[int]:
    """Write ranks beside their marks, oddest first, where there is room; return those written."""
    figure = axes.get_figure(root=True)
    if figure is None or not places:
        return []
    figure.draw_without_rendering()  # places of marks on paper are known only after the layout
    marks = _boxes(axes, points, flagged, figure.dpi)
    taken: list[Bbox] = []
    written = []
    for place, own in zip(places, _boxes(axes, points, np.array(places), figure.dpi), strict=True):
        others = [mark for mark in marks if not mark.overlaps(own)]
        for x, y in BESIDE:
            label = axes.annotate(
                str(points.rank[place]),
                (points.x[place], points.y[place]),
                xytext=(x, y),
                textcoords="offset points",
                ha="left" if x > 0 else "right",
                color=PALETTE["accent"] if points.flagged[place] else PALETTE["ink"],
            )
            box = label.get_window_extent()
            if not box.count_overlaps([*taken, *others]):
                taken.append(box)
                written.append(int(points.rank[place]))
                break
            label.remove()
    return written


def _boxes(axes: Axes, points: ComponentMap, places: NDArray[np.int64], dpi: float) -> list[Bbox]:
    """Return what the marks of some rows cover of the figure."""
    half = MARK * dpi / 72 / 2
    centres = axes.transData.transform(np.column_stack([points.x[places], points.y[places]]))
    return [Bbox([centre - half, centre + half]) for centre in centres]


def _labels_told(ranks: list[int]) -> str:
    """Say which ranks stand on the map."""
    if not ranks:
        return ""
    if len(ranks) == 1:
        return f"; the number {ranks[0]} is the rank of the row beside it"
    names = join([str(rank) for rank in ranks])
    return f"; the numbers {names} are ranks, written where there is room"


def scree(points: ComponentMap) -> Drawing:
    """Variance of the leading components, and how much of each the model keeps."""
    figure, (top, bottom) = new_axes(4.9, 3.5, rows=2)
    variances = points.variances[:MAX_COMPONENTS]
    gains = points.gains[:MAX_COMPONENTS]
    places = np.arange(1, len(variances) + 1)
    top.plot(places, np.maximum(variances, 0), "o-", ms=3, color=PALETTE["blue"])
    positive = variances[variances > 0]
    if len(positive) and positive[0] > WIDE * positive[-1]:
        top.set_yscale("log")
    else:
        top.set_ylim(bottom=0)
    top.set_ylabel("variance")
    plain_ticks(top.yaxis)
    bottom.bar(places, gains, width=0.7, color=PALETTE["band"], alpha=0.7)
    bottom.set_ylim(0, 1.05)
    bottom.set_yticks([0, 0.5, 1.0])
    bottom.set_ylabel("share kept")
    bottom.set_xlabel("kernel component")
    plain_ticks(bottom.xaxis)
    plain_ticks(bottom.yaxis)
    is_hard = bool(np.isin(points.gains, (0.0, 1.0)).all())
    kept = (
        _hard_cut(int(points.gains.sum()))
        if is_hard
        else f"each is kept in the share below, in all as much as {number(points.gains.sum())} "
        "whole ones (a soft cut)"
    )
    shown = f"The first {len(variances)} of {count(len(points.variances))} components: " * (
        len(points.variances) > len(variances)
    )
    caption = f"{shown}how much the rows vary along each component; {kept}."
    return Drawing("scree", "Scree plot", caption[0].upper() + caption[1:], figure)


def _hard_cut(n_kept: int) -> str:
    if n_kept == 1:
        return "the first is kept whole and the rest dropped (a hard cut)"
    return f"the first {count(n_kept)} are kept whole and the rest dropped (a hard cut)"


def evenly(places: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Keep at most `n` of the places, evenly spaced."""
    if len(places) <= n:
        return places
    return places[np.linspace(0, len(places) - 1, n).round().astype(np.int64)]
