"""Figures of a screening and of a comparison; the tables at the end say where each stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from kpca_apps.novelty.result import (
    ComparisonResult,
    ComponentMap,
    Curves,
    Evaluation,
    ScoreMark,
    ScreeningResult,
)
from kpca_apps.report.drawing import (
    PALETTE,
    Drawing,
    drawable,
    house_style,
    new_axes,
    plain_ticks,
    to_files,
)
from kpca_apps.report.novelty.text import MAX_ROWS, scores_text, threshold_text, without_hidden
from kpca_apps.report.text import count, join, number, percent, plural

Fold = tuple[str, str, list[Drawing]]  # of a page: title, hint and the figures in it
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
        f"are square roots of counts, so that few rows show). {_threshold_words(result)}"
    )
    if is_marked:
        one_in = "1 in so many of the usual rows reach"
        usual = "such a share of rows like the reference reach"
        caption += (
            f" The marks on top are scores that {one_in if result.p_values is None else usual}."
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


def _threshold_words(result: ScreeningResult) -> str:
    """Say what the line and the ticks of the distribution are."""
    n = result.n_flagged
    if not np.isfinite(result.threshold.value):
        return f"There is no threshold to draw: {'every row' if n else 'nothing'} is flagged."
    rarity = result.threshold.rarity
    reached = f", which {rarity.words} usual rows reach" if rarity else ""
    ticks = f"each tick below the axis is one of the {count(n)} flagged rows"
    if n > (n_ticks := len(result.distribution.flagged_scores)):
        ticks += f" ({n_ticks} of them drawn)"
    few = ("no row scores above it", "the tick below the axis is the one flagged row")
    return f"The threshold is {threshold_text(result)}{reached}; {few[n] if n < 2 else ticks}."


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
    words = [word for word, n in counts.items() if n not in (0, n_flagged)]
    listed = [row.score for row in result.ranked[:MAX_ROWS]]  # as many decimals as beside these
    texts, limit = scores_text([*(places[word] for word in words), *listed], value)
    others = [
        f"for {'about ' * (counts[word] != wanted[word])}{word} as many ({count(counts[word])}) "
        f"it would have to stand at {text}"
        for word, text in zip(words, texts, strict=False)
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


def component_map(result: ScreeningResult) -> Drawing:
    """Rows on the first two kernel components; flagged ones as triangles, the oddest named."""
    points = result.map
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
    ranks = [str(rank) for rank in _label_ranks(axes, points, oddest, flagged)]
    labels = f"; the numbers {join(ranks)} are ranks, written where there is room"
    if len(ranks) < 2:
        labels = "".join(f"; the number {rank} is the rank of the row beside it" for rank in ranks)
    n_drawn = len(usual) + len(flagged)
    caption = (
        f"Each mark is a row, {count(n_drawn)} of {count(points.n_rows)} drawn: grey dots usual "
        f"rows, triangles flagged ones{labels}. Neighbours on the map are alike. "
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


def scree(result: ScreeningResult) -> Drawing:
    """Variance of the leading components, and how much of each the model keeps."""
    points = result.map
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
    total = points.gains.sum()
    kept = (
        f"each is kept in the share below, in all as much as {number(total)} whole ones "
        "(a soft cut)"
    )
    if np.isin(points.gains, (0.0, 1.0)).all():
        first = "the first is" if total == 1 else f"the first {count(int(total))} are"
        kept = f"{first} kept whole and the rest dropped (a hard cut)"
    n_all, n_drawn = len(points.variances), len(variances)
    start = f"The first {n_drawn} of {count(n_all)} components: h" if n_all > n_drawn else "H"
    caption = f"{start}ow much the rows vary along each component; {kept}."
    return Drawing("scree", "Scree plot", caption, figure)


def evenly(places: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Keep at most `n` of the places, evenly spaced."""
    if len(places) <= n:
        return places
    return places[np.linspace(0, len(places) - 1, n).round().astype(np.int64)]


def score_contours(result: ScreeningResult) -> Drawing | None:
    """Draw the score over the plane of the two columns, the threshold as the accented line.

    References
    ----------
    Hoffmann, H. (2007). Kernel PCA for novelty detection. Pattern Recognition 40, 863-874,
    figures 2 to 5.
    """
    contours, threshold = result.contours, result.threshold.value
    if contours is None:
        return None
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
    axes.set_xlabel(drawable(contours.x_name))
    axes.set_ylabel(drawable(contours.y_name))
    axes.locator_params(nbins=5)
    plain_ticks(axes.xaxis, axes.yaxis)
    caption = (
        "The score over the two columns: the darker the ground, the more novel a row would be "
        "there. "
        + "Inside the accented line a row counts as usual, outside it is flagged. " * is_crossed
        + "Dots are usual rows, triangles flagged ones."
    )
    return Drawing("contours", "Contours of the score", caption, figure)


def roc(evaluation: Evaluation, suffix: str) -> Drawing:
    """Share of the outliers found against share of the other rows flagged with them."""
    figure, (axes,) = new_axes(4.9, 4.1)
    axes.plot([0, 1], [0, 1], color=PALETTE["rule"], lw=1)
    _plot_methods(
        axes,
        evaluation.methods,
        lambda curve: (curve.false_positive_rate, curve.true_positive_rate, curve.auroc),
    )
    axes.set_xlabel("share of other rows flagged")
    axes.set_ylabel("share of outliers found")
    caption = (
        f"ROC curves for {plural(evaluation.n_positive, 'known outlier')} among "
        f"{plural(evaluation.n_rows, 'row')}. Nearer the upper left corner is better; the number "
        "is the area under the curve, 1 = perfect, 0.5 = by chance (grey diagonal)."
    )
    return Drawing(f"roc{suffix}", "ROC curves", caption, figure)


def precision_recall(evaluation: Evaluation, suffix: str) -> Drawing:
    """Share of real outliers on the list against share of all outliers found."""
    figure, (axes,) = new_axes(4.9, 4.1)
    base = evaluation.n_positive / max(evaluation.n_rows, 1)
    axes.axhline(base, color=PALETTE["rule"], lw=1)
    _plot_methods(
        axes, evaluation.methods, lambda curve: (curve.recall, curve.precision, curve.auprc)
    )
    axes.set_xlabel("share of outliers found (recall)")
    axes.set_ylabel("share of the list that is right")
    caption = (
        "Precision and recall while walking down the ranking. Higher is better; the number is the "
        f"area under the curve (average precision), {percent(base)} = by chance (grey line)."
    )
    return Drawing(f"pr{suffix}", "Precision-recall curves", caption, figure)


def _plot_methods(
    axes: Axes,
    methods: Sequence[Curves],
    curve_of: Callable[[Curves], tuple[NDArray[np.float64], NDArray[np.float64], float]],
) -> None:
    """Draw the curve of each method, ours last and thick; the key has the largest area first.

    `curve_of` gives the points of a method's curve, x and y, and the area under it.
    """
    looks = [(PALETTE[color], dash, 1.2) for color, dash in zip(COLOURS, DASHES, strict=True)]
    handles = []
    for place, curve in enumerate(sorted(methods, key=lambda curve: curve.ours)):
        color, dash, width = (
            (PALETTE["accent"], "-", 2.2) if curve.ours else looks[place % len(looks)]
        )
        x, y, area = curve_of(curve)
        label = f"{drawable(curve.name, 30)} {area:.3f}"
        handles += axes.plot(x, y, color=color, ls=dash, lw=width, label=label)
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(-0.01, 1.03)
    axes.set_xticks([0, 0.5, 1])
    axes.set_yticks([0, 0.5, 1])
    plain_ticks(axes.xaxis, axes.yaxis)
    handles.sort(key=lambda line: -float(str(line.get_label()).rsplit(" ", 1)[1]))
    figure = axes.get_figure()
    if figure is not None and handles:
        figure.legend(
            handles=handles, loc="outside lower center", ncols=2, frameon=False, handlelength=2.6
        )


# Every figure of a screening: title and hint of the part of the page it stands in, and what draws
# it, or nothing. The page and the folder of figures both follow this table.
SCREENING: tuple[tuple[str, str, tuple[Callable[[ScreeningResult], Drawing | None], ...]], ...] = (
    (
        "Scores and threshold",
        "how the flagged rows stand apart",
        (score_distribution, flagged_against_threshold),
    ),
    ("Contours", "the score over the two columns", (score_contours,)),
    ("Map of the rows", "on the first two kernel components", (component_map, scree)),
)
# Every figure of a comparison with labels; the second argument ends the name of its file.
EVALUATION: tuple[Callable[[Evaluation, str], Drawing], ...] = (roc, precision_recall)


def screening_folds(result: ScreeningResult) -> list[Fold]:
    """Draw every figure of a screening except those of its evaluations, part by part."""
    with house_style():
        folds = [
            (title, hint, [drawing for draw in figures if (drawing := draw(result))])
            for title, hint, figures in SCREENING
        ]
    return [fold for fold in folds if fold[-1]]


def evaluation_drawings(evaluations: Sequence[Evaluation]) -> list[list[Drawing]]:
    """Draw the figures of each evaluation; their files have numbers where there are several."""
    with house_style():
        return [
            [draw(evaluation, f"-{number}" * (len(evaluations) > 1)) for draw in EVALUATION]
            for number, evaluation in enumerate(evaluations, 1)
        ]


def screening_figures(result: ScreeningResult) -> dict[str, bytes]:
    """Draw the figures of a screening as files; hidden columns stay hidden."""
    result = without_hidden(result)
    drawings = [fold[-1] for fold in screening_folds(result)]
    return to_files(*drawings, *evaluation_drawings(result.evaluations))


def comparison_figures(result: ComparisonResult) -> dict[str, bytes]:
    """Draw the figures of a comparison as files."""
    return to_files(*evaluation_drawings(result.evaluations))
