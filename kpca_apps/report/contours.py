"""Contours of the score over a table of two columns, as in Hoffmann (2007)."""

from __future__ import annotations

import numpy as np

from kpca_apps.novelty.result import ScoreContours
from kpca_apps.report.components import MAX_FLAGGED, MAX_POINTS, evenly
from kpca_apps.report.drawing import PALETTE, Drawing, new_axes, plain_ticks, shown

__all__ = ["score_contours"]

N_LEVELS = 7


def score_contours(contours: ScoreContours, threshold: float) -> Drawing:
    """Draw the score over the plane of the two columns, the threshold as the accented line.

    References
    ----------
    Hoffmann, H. (2007). Kernel PCA for novelty detection. Pattern Recognition 40, 863-874,
    figures 2 to 5.
    """
    figure, (axes,) = new_axes(4.9, 3.9)
    scores = contours.scores
    finite = scores[np.isfinite(scores)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    if high > low:
        levels = np.linspace(low, high, N_LEVELS + 1)
        for lower in levels[1:-1]:
            # One pale layer above another: the page's theme decides their colour.
            axes.contourf(
                contours.x, contours.y, scores, [lower, high], colors=PALETTE["band"], alpha=0.16
            )
    is_crossed = low < threshold < high
    if is_crossed:
        axes.contour(
            contours.x, contours.y, scores, [threshold], colors=PALETTE["accent"], linewidths=1.4
        )
    usual = evenly(np.flatnonzero(~contours.points_flagged), MAX_POINTS)
    flagged = evenly(np.flatnonzero(contours.points_flagged), MAX_FLAGGED)
    axes.plot(
        contours.points_x[usual], contours.points_y[usual], "o", ms=2.6, mew=0, color=PALETTE["ink"]
    )
    axes.plot(
        contours.points_x[flagged], contours.points_y[flagged], "^", ms=5, color=PALETTE["accent"]
    )
    axes.set_xlabel(shown(contours.x_name))
    axes.set_ylabel(shown(contours.y_name))
    axes.locator_params(nbins=5)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    caption = (
        "The score over the two columns: the darker the ground, the more novel a row would be "
        "there. "
        + "Inside the accented line a row counts as usual, outside it is flagged. " * is_crossed
        + "Dots are usual rows, triangles flagged ones."
    )
    return Drawing("contours", "Contours of the score", caption, figure)
