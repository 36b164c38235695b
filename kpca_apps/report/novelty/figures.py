"""Figures of a screening and of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from kpca_apps.novelty.result import (
    ComparisonResult,
    ComponentMap,
    Curves,
    Evaluation,
    ScoreContours,
    ScoreMark,
    ScreeningResult,
)
from kpca_apps.report.drawing import (
    PALETTE,
    Drawing,
    house_style,
    new_axes,
    plain_ticks,
    shown,
    to_png,
)
from kpca_apps.report.novelty.text import MAX_ROWS, scores_text, threshold_text, without_hidden
from kpca_apps.report.text import count, join, number, percent, plural

__all__ = [
    "comparison_figures",
    "component_map",
    "evaluation_drawings",
    "evenly",
    "flagged_against_threshold",
    "score_contours",
    "score_distribution",
    "scree",
    "screening_drawings",
    "screening_figures",
]

MARK_ROOM = 0.17  # of the width of the axes: what a label such as "about 1 in 1,000" takes
MAX_POINTS = 1000  # dots of rows that are not flagged
MAX_FLAGGED = 400
N_LABELLED = 5  # ranks written beside their marks, where they do not overlap
MARK = 5  # points
BESIDE = ((4, 2), (-4, 2), (4, -9), (-4, -9))  # where, in points from the mark, in this order
MAX_COMPONENTS = 40
WIDE = 30.0  # a spread of variances that only a logarithmic axis shows
N_LEVELS = 7
COLOURS = ("blue", "green", "purple", "orange", "sky", "muted")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (2, 2)), (0, (8, 2, 1, 1, 1, 2)))


def screening_drawings(result: ScreeningResult) -> dict[str, Drawing]:
    """Draw every figure of a screening except those of its evaluations, by name."""
    with house_style():
        drawings = [
            score_distribution(result),
            flagged_against_threshold(result),
            component_map(result.map),
            scree(result.map),
        ]
        if result.contours is not None:
            drawings.append(score_contours(result.contours, result.threshold.value))
    return {drawing.name: drawing for drawing in drawings}


def evaluation_drawings(evaluations: tuple[Evaluation, ...]) -> list[tuple[Drawing, Drawing]]:
    """Draw the ROC and the precision-recall curves of each evaluation."""
    with house_style():
        return [
            (roc(evaluation, f"roc{suffix}"), precision_recall(evaluation, f"pr{suffix}"))
            for evaluation, suffix in zip(evaluations, _suffixes(len(evaluations)), strict=True)
        ]


def screening_figures(result: ScreeningResult) -> dict[str, bytes]:
    """Draw the figures of a screening as files: name without suffix to PNG, twice screen size.

    Hidden columns stay hidden.
    """
    shown = without_hidden(result)
    drawings = [*screening_drawings(shown).values(), *_flat(shown.evaluations)]
    return {drawing.name: to_png(drawing) for drawing in drawings}


def comparison_figures(result: ComparisonResult) -> dict[str, bytes]:
    """Draw the figures of a comparison as files: file name without suffix to PNG."""
    return {drawing.name: to_png(drawing) for drawing in _flat(result.evaluations)}


def _flat(evaluations: tuple[Evaluation, ...]) -> list[Drawing]:
    return [drawing for pair in evaluation_drawings(evaluations) for drawing in pair]


def _suffixes(n: int) -> list[str]:
    """Return suffixes of file names: numbers only where there are several."""
    return [""] if n == 1 else [f"-{i}" for i in range(1, n + 1)]


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
    plain_ticks(axes.xaxis, axes.yaxis)
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
    plain_ticks(axes.xaxis, axes.yaxis)
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
    plain_ticks(bottom.xaxis, bottom.yaxis)
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
    plain_ticks(axes.xaxis, axes.yaxis)
    caption = (
        "The score over the two columns: the darker the ground, the more novel a row would be "
        "there. "
        + "Inside the accented line a row counts as usual, outside it is flagged. " * is_crossed
        + "Dots are usual rows, triangles flagged ones."
    )
    return Drawing("contours", "Contours of the score", caption, figure)


def roc(evaluation: Evaluation, name: str) -> Drawing:
    """Share of the outliers found against share of the other rows flagged with them."""
    figure, (axes,) = new_axes(4.9, 4.1)
    axes.plot([0, 1], [0, 1], color=PALETTE["rule"], lw=1)
    for curve, style in _styled(evaluation.methods):
        axes.plot(
            curve.false_positive_rate,
            curve.true_positive_rate,
            label=f"{shown(curve.name, 30)} {curve.auroc:.3f}",
            **style,
        )
    _finish(axes, "share of other rows flagged", "share of outliers found")
    caption = (
        f"ROC curves for {plural(evaluation.n_positive, 'known outlier')} among "
        f"{plural(evaluation.n_rows, 'row')}. Nearer the upper left corner is better; the number "
        "is the area under the curve, 1 = perfect, 0.5 = by chance (grey diagonal)."
    )
    return Drawing(name, "ROC curves", caption, figure)


def precision_recall(evaluation: Evaluation, name: str) -> Drawing:
    """Share of real outliers on the list against share of all outliers found."""
    figure, (axes,) = new_axes(4.9, 4.1)
    base = evaluation.n_positive / max(evaluation.n_rows, 1)
    axes.axhline(base, color=PALETTE["rule"], lw=1)
    for curve, style in _styled(evaluation.methods):
        axes.plot(
            curve.recall,
            curve.precision,
            label=f"{shown(curve.name, 30)} {curve.auprc:.3f}",
            **style,
        )
    _finish(axes, "share of outliers found (recall)", "share of the list that is right")
    caption = (
        "Precision and recall while walking down the ranking. Higher is better; the number is the "
        f"area under the curve (average precision), {percent(base)} = by chance (grey line)."
    )
    return Drawing(name, "Precision-recall curves", caption, figure)


def _styled(methods: Sequence[Curves]) -> list[tuple[Curves, dict[str, Any]]]:
    """Pair each method with a look of its own; ours is thick and drawn last."""
    rivals = [curve for curve in methods if not curve.ours]
    styled: list[tuple[Curves, dict[str, Any]]] = [
        (
            curve,
            {
                "color": PALETTE[COLOURS[i % len(COLOURS)]],
                "ls": DASHES[i % len(DASHES)],
                "lw": 1.2,
            },
        )
        for i, curve in enumerate(rivals)
    ]
    ours = [curve for curve in methods if curve.ours]
    return [*styled, *((c, {"color": PALETTE["accent"], "lw": 2.2}) for c in ours)]


def _finish(axes: Axes, x_label: str, y_label: str) -> None:
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(-0.01, 1.03)
    axes.set_xticks([0, 0.5, 1])
    axes.set_yticks([0, 0.5, 1])
    plain_ticks(axes.xaxis, axes.yaxis)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    handles, labels = axes.get_legend_handles_labels()
    # Best first, so that the order of the key is the order of the areas.
    order = sorted(range(len(labels)), key=lambda i: (-float(labels[i].rsplit(" ", 1)[1]), i))
    figure = axes.get_figure()
    if figure is not None and handles:
        figure.legend(
            [handles[i] for i in order],
            [labels[i] for i in order],
            loc="outside lower center",
            ncols=2,
            frameon=False,
            handlelength=2.6,
        )
