"""Figures of the scores: their distribution, and how many rows a threshold flags."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.report.drawing import PALETTE, Drawing, new_axes, plain_ticks
from kpca_apps.report.text import count, number

__all__ = ["flagged_against_threshold", "score_distribution"]

MAX_TICKS = 200  # flagged rows drawn as ticks
MAX_STEPS = 400  # corners of the curve of counts
WIDE = 30.0  # a spread of scores that only a logarithmic axis shows


def score_distribution(result: ScreeningResult) -> Drawing:
    """Histogram of all scores; the threshold as a labelled line, flagged rows as ticks."""
    figure, (axes,) = new_axes()
    scores = np.sort(result.scores[np.isfinite(result.scores)])
    low, high, is_log = _range(scores)
    if is_log:
        axes.set_xscale("log")
        edges = np.geomspace(low, high, 61)
    else:
        edges = np.linspace(low, high, 61)
    counts, _ = np.histogram(np.clip(scores, low, high), edges)
    axes.stairs(np.sqrt(counts), edges, fill=True, color=PALETTE["band"], alpha=0.55)
    flagged = np.sort(result.scores[result.flagged & np.isfinite(result.scores)])
    if len(flagged):
        keep = np.linspace(0, len(flagged) - 1, min(len(flagged), MAX_TICKS)).round().astype(int)
        top = np.sqrt(counts.max())
        axes.vlines(flagged[keep], -0.07 * top, -0.015 * top, color=PALETTE["accent"], lw=1.1)
    _threshold_line(axes, result.threshold.value, low, high)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("novelty score (higher = more novel)")
    plain_ticks(axes.xaxis)
    where = (
        f"The threshold is {_label(result.threshold.value)}"
        if np.isfinite(result.threshold.value)
        else "The threshold is infinite, so no line is drawn"
    )
    caption = (
        f"Most of the {count(len(result.scores))} rows lie in the grey heap (heights are square "
        f"roots of counts, so that few rows show). {where}; each tick below the axis is one of "
        f"the {count(result.n_flagged)} flagged rows"
        + (f" ({MAX_TICKS} of them drawn)." if len(flagged) > MAX_TICKS else ".")
    )
    return Drawing("scores", "Distribution of the scores", caption, figure)


def flagged_against_threshold(result: ScreeningResult) -> Drawing:
    """How many rows would be flagged if the threshold moved."""
    figure, (axes,) = new_axes()
    scores = np.sort(result.scores[np.isfinite(result.scores)])[::-1]
    keep = np.unique(np.geomspace(1, len(scores), MAX_STEPS).round().astype(int)) - 1
    low, high, is_log = _range(scores[::-1])
    if is_log:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.step(scores[keep], keep + 1, where="pre", color=PALETTE["ink"])
    axes.set_ylim(0.8, 1.3 * len(scores))
    value, n_flagged = result.threshold.value, result.n_flagged
    _threshold_line(axes, value, low, high)
    if np.isfinite(value) and n_flagged:
        axes.plot([value], [n_flagged], "o", color=PALETTE["accent"], ms=5, clip_on=False)
        axes.annotate(
            f"{count(n_flagged)} flagged",
            (value, n_flagged),
            xytext=(7, 9),
            textcoords="offset points",
            color=PALETTE["accent"],
        )
    axes.set_xlabel("if the threshold stood here")
    axes.set_ylabel("rows flagged")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    return Drawing(
        "threshold",
        "How many rows if the threshold moved",
        "Rows flagged at each possible threshold. Where the line falls steeply a small move of "
        f"the threshold changes the list; {_sensitivity(result)}",
        figure,
    )


def _sensitivity(result: ScreeningResult) -> str:
    value = result.threshold.value
    if not np.isfinite(value):
        return "the threshold is infinite, so nothing is flagged."
    lower, higher = 0.9 * value, 1.1 * value
    n_lower = int((result.scores > lower).sum())
    n_higher = int((result.scores > higher).sum())
    return (
        f"10 % lower ({_label(lower)}) it would flag {count(n_lower)} rows, "
        f"10 % higher ({_label(higher)}) {count(n_higher)}."
    )


def _label(value: float) -> str:
    """Write a score in a figure: four digits, because scores often crowd at the top."""
    return number(value, 4, keep_zeros=True)


def _range(scores: NDArray[np.float64]) -> tuple[float, float, bool]:
    """Return the ends of the score axis, and whether it is logarithmic; `scores` ascend."""
    if len(scores) == 0:
        return 0.0, 1.0, False
    low, high = float(scores[0]), float(scores[-1])
    if high - low <= 1e-12 * max(abs(high), 1e-300):  # all alike: a heap still needs a width
        room = 0.5 * abs(high) or 0.5
        return low - room, high + room, False
    median = float(np.median(scores))
    if low > 0 and high > WIDE * median:
        return low, high, True
    return low, high, False


def _threshold_line(axes: Axes, value: float, low: float, high: float) -> None:
    if not np.isfinite(value):
        return
    axes.axvline(value, color=PALETTE["accent"], ls=(0, (4, 2)), lw=1.1)
    x_of = np.log if axes.get_xscale() == "log" and value > 0 else np.asarray
    is_right = x_of(value) > (x_of(low) + x_of(high)) / 2
    axes.annotate(
        f"threshold {_label(value)}",
        (value, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if is_right else 4, -2),
        textcoords="offset points",
        ha="right" if is_right else "left",
        va="top",
        color=PALETTE["accent"],
    )
