"""Figures of the scores: their distribution, and how many rows a threshold flags."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.report.drawing import PALETTE, Drawing, new_axes, plain_ticks
from kpca_apps.report.text import MAX_ROWS, count, plural, scores_text, threshold_text

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
    _threshold_line(axes, result, low, high)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("novelty score (higher = more novel)")
    plain_ticks(axes.xaxis)
    caption = (
        f"The scores of {plural(len(result.scores), 'row')}; most lie in the grey heap (heights "
        f"are square roots of counts, so that few rows show). {_what_is_marked(result)}"
    )
    return Drawing("scores", "Distribution of the scores", caption, figure)


def _what_is_marked(result: ScreeningResult) -> str:
    """Say what the line and the ticks of the distribution are."""
    n = result.n_flagged
    if not np.isfinite(result.threshold.value):
        flagged = "nothing" if n == 0 else "every row"
        return f"There is no threshold to draw: {flagged} is flagged."
    line = f"The threshold is {threshold_text(result)}; "
    if n == 0:
        return f"{line}no row scores above it."
    if n == 1:
        return f"{line}the tick below the axis is the one flagged row."
    drawn = f" ({MAX_TICKS} of them drawn)" if n > MAX_TICKS else ""
    return f"{line}each tick below the axis is one of the {count(n)} flagged rows{drawn}."


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
    _threshold_line(axes, result, low, high)
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
        f"the threshold changes the list. {_elsewhere(result)}",
        figure,
    )


def _elsewhere(result: ScreeningResult) -> str:
    """Say where the threshold would have to stand for about half and for twice as many rows."""
    value, n_flagged = result.threshold.value, result.n_flagged
    scores = np.sort(result.scores[np.isfinite(result.scores)])[::-1]
    if len(scores) == 0:
        return "No row has a score."
    if n_flagged == 0:
        (highest,), _ = scores_text([float(scores[0])], value)
        return f"Nothing is flagged; the highest score is {highest}."
    # Rows are flagged above the threshold: at the score ranked n + 1 it flags n, or fewer if tied.
    wanted = {"half": n_flagged / 2, "twice": 2.0 * n_flagged}
    places = {word: float(scores[int(n)]) for word, n in wanted.items() if 1 <= n < len(scores)}
    counts = {word: int((scores > place).sum()) for word, place in places.items()}
    told = [word for word, n in counts.items() if n not in (0, n_flagged)]
    listed = [row.score for row in result.ranked[:MAX_ROWS]]  # as many decimals as beside these
    texts, limit = scores_text([*(places[word] for word in told), *listed], value)
    others = [
        f"for {'about ' * (counts[word] != wanted[word])}{word} as many ({count(counts[word])}) "
        f"it would have to stand at {text}"
        for word, text in zip(told, texts, strict=False)
    ]
    return "; ".join([f"Now, at {limit}, it flags {count(n_flagged)}", *others]) + "."


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


def _threshold_line(axes: Axes, result: ScreeningResult, low: float, high: float) -> None:
    value = result.threshold.value
    if not np.isfinite(value):
        return
    axes.axvline(value, color=PALETTE["accent"], ls=(0, (4, 2)), lw=1.1)
    x_of = np.log if axes.get_xscale() == "log" and value > 0 else np.asarray
    is_right = x_of(value) > (x_of(low) + x_of(high)) / 2
    axes.annotate(
        f"threshold {threshold_text(result)}",
        (value, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if is_right else 4, -2),
        textcoords="offset points",
        ha="right" if is_right else "left",
        va="top",
        color=PALETTE["accent"],
    )
