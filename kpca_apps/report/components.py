"""Figures of the kernel components: the map of the rows, and the scree plot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.novelty.result import ComponentMap
from kpca_apps.report.drawing import PALETTE, Drawing, new_axes, plain_ticks
from kpca_apps.report.text import count, number, percent

__all__ = ["component_map", "evenly", "scree"]

MAX_POINTS = 1000  # dots of rows that are not flagged
MAX_FLAGGED = 400
N_LABELLED = 10  # ranks written beside their marks
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
    axes.plot(points.x[flagged], points.y[flagged], "^", ms=5, color=PALETTE["accent"], mew=0)
    labelled = [i for i in order[:N_LABELLED] if points.rank[i] > 0]
    for place in labelled:
        axes.annotate(
            str(points.rank[place]),
            (points.x[place], points.y[place]),
            xytext=(4, 2),
            textcoords="offset points",
            color=PALETTE["accent"] if points.flagged[place] else PALETTE["ink"],
        )
    first, second = (percent(share) for share in points.explained)
    axes.set_xlabel(f"kernel component 1 ({first} of the variance)")
    axes.set_ylabel(f"kernel component 2 ({second})")
    axes.locator_params(nbins=4)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    n_drawn = len(usual) + len(flagged)
    caption = (
        f"Each mark is a row, {count(n_drawn)} of {count(points.n_rows)} drawn: grey dots usual "
        "rows, triangles flagged ones; numbers are ranks. Neighbours on the map are alike. An odd "
        "row may still lie inside the crowd, because the map shows two directions and the score "
        "measures all the others too."
    )
    return Drawing("map", "Rows on the first two kernel components", caption, figure)


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
        f"the first {int(points.gains.sum())} are kept whole and the rest dropped (a hard cut)"
        if is_hard
        else f"each is kept in the share below, in all as much as {number(points.gains.sum())} "
        "whole ones (a soft cut)"
    )
    shown = f"The first {len(variances)} of {count(len(points.variances))} components: " * (
        len(points.variances) > len(variances)
    )
    caption = f"{shown}how much the rows vary along each component; {kept}."
    return Drawing("scree", "Scree plot", caption[0].upper() + caption[1:], figure)


def evenly(places: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Keep at most `n` of the places, evenly spaced."""
    if len(places) <= n:
        return places
    return places[np.linspace(0, len(places) - 1, n).round().astype(np.int64)]
