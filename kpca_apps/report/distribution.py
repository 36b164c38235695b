"""Figures of the scores: their distribution, and how many rows a threshold flags."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from kpca_apps.novelty.result import ScoreMark, ScreeningResult
from kpca_apps.report.drawing import PALETTE, Drawing, new_axes, plain_ticks
from kpca_apps.report.text import MAX_ROWS, count, plural, scores_text, threshold_text

__all__ = ["flagged_against_threshold", "score_distribution"]

MARK_ROOM = 0.17  # of the width of the axes: what a label such as "about 1 in 1,000" takes


def score_distribution(result: ScreeningResult) -> Drawing:
    """Histogram of all scores; the threshold as a labelled line, flagged rows as ticks."""
    figure, (axes,) = new_axes()
    found = result.distribution
    if found.logarithmic:
        axes.set_xscale("log")
    heights = np.sqrt(found.counts)
    axes.stairs(heights, found.edges, fill=True, color=PALETTE["band"], alpha=0.55)
    if found.n_flagged:
        top = heights.max()
        ends = (-0.07 * top, -0.015 * top)
        axes.vlines(found.flagged_scores, *ends, color=PALETTE["accent"], lw=1.1)
    _threshold_line(axes, result)
    is_marked = _mark_scale(axes, result)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("novelty score (higher = more novel)")
    plain_ticks(axes.xaxis)
    caption = (
        f"The scores of {plural(found.n_rows, 'row')}; most lie in the grey heap (heights "
        f"are square roots of counts, so that few rows show). {_what_is_marked(result)}"
        f"{_what_is_on_top(result) if is_marked else ''}"
    )
    return Drawing("scores", "Distribution of the scores", caption, figure)


def _mark_scale(axes: Axes, result: ScreeningResult) -> bool:
    """Put round values of the scale people read above the scores; tell whether any are there."""
    if result.scale is None:
        return False
    low, *_, high = result.distribution.edges.tolist()
    x_of = np.log if axes.get_xscale() == "log" else np.asarray
    kept: list[ScoreMark] = []
    room = MARK_ROOM * (x_of(high) - x_of(low))
    for mark in result.scale.marks:
        is_clear = not kept or x_of(mark.score) - x_of(kept[-1].score) > room
        if low < mark.score < high and is_clear:
            kept.append(mark)
    if not kept:
        return False
    above = axes.secondary_xaxis("top")
    above.set_xticks([mark.score for mark in kept], [mark.words for mark in kept])
    above.minorticks_off()
    above.spines["top"].set_visible(False)
    above.set_xlabel(result.scale.name)
    return True


def _what_is_on_top(result: ScreeningResult) -> str:
    """Say what the marks above the scores are."""
    if result.p_values is not None:
        return " The marks on top are scores that such a share of rows like the reference reach."
    return " The marks on top are scores that 1 in so many of the usual rows reach."


def _what_is_marked(result: ScreeningResult) -> str:
    """Say what the line and the ticks of the distribution are."""
    n = result.n_flagged
    if not np.isfinite(result.threshold.value):
        flagged = "nothing" if n == 0 else "every row"
        return f"There is no threshold to draw: {flagged} is flagged."
    rarity = result.threshold.rarity
    reached = f", which {rarity.words} usual rows reach" if rarity else ""
    line = f"The threshold is {threshold_text(result)}{reached}; "
    if n == 0:
        return f"{line}no row scores above it."
    if n == 1:
        return f"{line}the tick below the axis is the one flagged row."
    n_ticks = len(result.distribution.flagged_scores)
    drawn = f" ({n_ticks} of them drawn)" if n > n_ticks else ""
    return f"{line}each tick below the axis is one of the {count(n)} flagged rows{drawn}."


def flagged_against_threshold(result: ScreeningResult) -> Drawing:
    """How many rows would be flagged if the threshold moved."""
    figure, (axes,) = new_axes()
    found = result.distribution
    if found.logarithmic:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.step(found.scores, found.ranks, where="pre", color=PALETTE["ink"])
    axes.set_ylim(0.8, 1.3 * found.n_rows)
    value, n_flagged = result.threshold.value, result.n_flagged
    _threshold_line(axes, result)
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
    value, found = result.threshold.value, result.distribution
    n_flagged, scores = found.n_flagged, found.scores.tolist()
    if n_flagged == 0:
        (highest,), _ = scores_text(scores[:1], value)
        return f"Nothing is flagged; the highest score is {highest}."
    # Rows are flagged above the threshold: at the score ranked n + 1 it flags n, or fewer if tied.
    wanted = {"half": n_flagged / 2, "twice": 2.0 * n_flagged}
    steps = {
        word: int(np.searchsorted(found.ranks, int(n) + 1))
        for word, n in wanted.items()
        if 1 <= n < found.n_rows
    }
    places = {word: scores[step] for word, step in steps.items()}
    counts = {word: int(found.n_above[step]) for word, step in steps.items()}
    told = [word for word, n in counts.items() if n not in (0, n_flagged)]
    listed = [row.score for row in result.ranked[:MAX_ROWS]]  # as many decimals as beside these
    texts, limit = scores_text([*(places[word] for word in told), *listed], value)
    others = [
        f"for {'about ' * (counts[word] != wanted[word])}{word} as many ({count(counts[word])}) "
        f"it would have to stand at {text}"
        for word, text in zip(told, texts, strict=False)
    ]
    return "; ".join([f"Now, at {limit}, it flags {count(n_flagged)}", *others]) + "."


def _threshold_line(axes: Axes, result: ScreeningResult) -> None:
    value, (low, *_, high) = result.threshold.value, result.distribution.edges.tolist()
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
