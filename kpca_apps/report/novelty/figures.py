"""Figures of a screening, and of a comparison with baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from kpca_apps.novelty.result import (
    ComparisonResult,
    Curves,
    Evaluation,
    ScoreDistribution,
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
from kpca_apps.report.novelty.marks import (
    MARK,
    MAX_FLAGGED,
    MAX_POINTS,
    N_LABELLED,
    by_rank,
    evenly,
    label_marks,
)
from kpca_apps.report.novelty.plane import column_plane
from kpca_apps.report.novelty.text import MAX_ROWS, scores_text, threshold_text
from kpca_apps.report.text import count, in_prose, number, percent, plural

Fold = tuple[str, str, list[Drawing]]  # title, hint and figures of a section of the page
MARK_ROOM = 0.17  # width of a tick label, as a share of the axes' width
MAX_COMPONENTS = 40
WIDE = 30.0  # ratio of variances above which their axis is logarithmic
N_LEVELS = 7
COLOURS = ("blue", "green", "purple", "orange", "sky", "muted")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (2, 2)), (0, (8, 2, 1, 1, 1, 2)))


def score_distribution(result: ScreeningResult) -> Drawing:
    """Draw a histogram of all scores, with the threshold and the flagged rows."""
    figure, (axes,) = new_axes()
    found = result.distribution
    _score_axis(axes, found, result.threshold.value)
    heights = np.sqrt(found.counts)
    top = float(heights.max())
    axes.stairs(heights, found.edges, fill=True, color=PALETTE["band"], alpha=0.55)
    if found.n_flagged:
        inside = found.flagged_scores[found.flagged_scores <= found.edges[-1]]
        axes.vlines(inside, -0.07 * top, -0.015 * top, color=PALETTE["accent"], lw=1.1)
    axes.set_ylim(-0.09 * top, 1.05 * top)
    _threshold_line(axes, result)
    is_marked = _mark_scale(axes, result)
    powers = [10**power for power in range(9) if 10**power <= top**2]
    counts = powers[-2:] if len(powers) > 1 else [1, int(top**2)][: int(top)]
    axes.set_yticks([0.0, *np.sqrt(counts)], ["0", *map(count, counts)])
    axes.set_ylabel("rows (square-root scale)")
    plain_ticks(axes.xaxis)
    beyond = ""
    if found.n_beyond:
        highest = scores_text(found.scores[:1].tolist(), result.threshold.value)[0][0]
        rows = plural(found.n_beyond, "row")
        axes.annotate(
            f"{rows} beyond,\nup to {highest} \u25b8",
            (1.0, 0.45),
            xycoords="axes fraction",
            ha="right",
            color=PALETTE["accent"],
        )
        beyond = (
            f" The axis ends where the threshold is still distinct from most scores: {rows} "
            f"{'scores' if found.n_beyond == 1 else 'score'} above its end, up to {highest}."
        )
    caption = (
        f"The scores of {plural(found.n_rows, 'row')}; most are in the grey bars. "
        f"{_threshold_words(result)}{beyond}"
    )
    if is_marked:
        usual = "usual rows" if result.rows.p_values is None else "rows like the reference"
        caption += f" Each mark on top gives the share of {usual} that reach its score."
    return Drawing("scores", "Distribution of the scores", caption, figure)


def _score_axis(axes: Axes, found: ScoreDistribution, threshold: float) -> None:
    """Set the horizontal axis to the range of the scores, extended to include the threshold."""
    axes.set_xlabel("novelty score (no unit; higher = more novel)")
    low, high = found.edges[[0, -1]].tolist()
    # All scores may be far above or below the threshold.
    if np.isfinite(threshold) and (threshold > 0 or not found.logarithmic):
        low, high = min(low, threshold), max(high, threshold)
    if found.logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(low * (low / high) ** 0.02, high * (high / low) ** 0.02)
        return
    axes.set_xlim(low - 0.02 * (high - low), high + 0.02 * (high - low))


def _mark_scale(axes: Axes, result: ScreeningResult) -> bool:
    """Add ticks such as "1 in 100" on top; return whether any fits."""
    if result.rows.scale is None:
        return False
    low, *_, high = result.distribution.edges.tolist()
    x_of = np.log if axes.get_xscale() == "log" else np.asarray
    kept: list[ScoreMark] = []
    room = MARK_ROOM * (x_of(high) - x_of(low))
    for mark in result.rows.scale.marks:
        is_clear = not kept or x_of(mark.score) - x_of(kept[-1].score) > room
        if low < mark.score < high and is_clear:
            kept.append(mark)
    if not kept:
        return False
    above = axes.secondary_xaxis("top")
    above.set_xticks([mark.score for mark in kept], [mark.words for mark in kept])
    above.minorticks_off()
    above.spines["top"].set_visible(False)
    above.set_xlabel(result.rows.scale.name)
    return True


def _threshold_words(result: ScreeningResult) -> str:
    n = result.distribution.n_flagged
    if not np.isfinite(result.threshold.value):
        flagged = "every row is flagged" if n else "no row is flagged for its score"
        return f"There is no threshold to draw: {flagged}."
    rarity = result.threshold.rarity
    reached = f", which {rarity.in_prose} usual rows reach" if rarity else ""
    ticks = f"each tick below the axis is one of the {count(n)} rows above it"
    if n > (n_ticks := len(result.distribution.flagged_scores)):
        ticks += f" ({n_ticks} of them drawn)"
    few = ("no row scores above it", "the tick below the axis is the one row above it")
    return f"The threshold is {threshold_text(result)}{reached}; {few[n] if n < 2 else ticks}."


def flagged_against_threshold(result: ScreeningResult) -> Drawing:
    """Draw the number of rows that other thresholds would flag."""
    figure, (axes,) = new_axes()
    found = result.distribution
    _score_axis(axes, found, result.threshold.value)
    axes.set_yscale("log")
    axes.step(found.scores, found.ranks, where="pre", color=PALETTE["ink"])
    axes.set_ylim(0.8, 1.3 * found.n_rows)
    value, n_flagged = result.threshold.value, found.n_flagged
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
    axes.set(xlabel="threshold: novelty score (no unit)", ylabel="rows flagged (log scale)")
    plain_ticks(axes.xaxis, axes.yaxis)
    return Drawing(
        "threshold",
        "Flagged rows by threshold",
        "Rows flagged at each possible threshold. Where the line falls steeply a small move of "
        f"the threshold changes the list. {_elsewhere(result)}",
        figure,
    )


def _elsewhere(result: ScreeningResult) -> str:
    value, found = result.threshold.value, result.distribution
    n_flagged, scores = found.n_flagged, found.scores.tolist()
    if n_flagged == 0:
        (highest,), _ = scores_text(scores[:1], value)
        return f"No row is flagged for its score; the highest score is {highest}."
    # A threshold at the score of rank n + 1 flags the n rows above, or fewer if scores are tied.
    wanted = {"half": n_flagged / 2, "twice": 2.0 * n_flagged}
    steps = {
        word: int(np.searchsorted(found.ranks, int(n) + 1))
        for word, n in wanted.items()
        if 1 <= n < found.n_rows
    }
    counts = {word: int(found.n_above[step]) for word, step in steps.items()}
    words = [word for word, n in counts.items() if n not in (0, n_flagged)]
    # Scores in this sentence get as many decimals as in the list of rows, so format both together.
    listed = [row.score for row in result.ranked[:MAX_ROWS]]
    texts, limit = scores_text([*(scores[steps[word]] for word in words), *listed], value)
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
    """Draw rows on two kernel components."""
    points = result.pictures.map
    figure, (axes,) = new_axes(4.9, 3.5)
    usual = evenly(np.flatnonzero(~points.flagged), MAX_POINTS)
    order = by_rank(points.rank)
    flagged = order[points.flagged[order]][:MAX_FLAGGED]
    marks = np.column_stack([points.x, points.y])
    axes.plot(*marks[usual].T, "o", ms=2.6, color=PALETTE["muted"], alpha=0.6, mew=0)
    axes.plot(*marks[flagged].T, "^", ms=MARK, color=PALETTE["accent"], mew=0)
    first, second = (percent(share) for share in points.explained)
    axes.set_xlabel(f"kernel component 1 ({first} of the variance)")
    axes.set_ylabel(f"kernel component 2 ({second})")
    axes.locator_params(nbins=4)
    plain_ticks(axes.xaxis, axes.yaxis)
    oddest = np.array([place for place in order[:N_LABELLED] if points.rank[place] > 0], dtype=int)
    names = [str(points.rank[place]) for place in oddest]
    colours = [PALETTE["accent" if points.flagged[place] else "ink"] for place in oddest]
    ranks = label_marks(axes, marks[oddest], names, colours, marks[flagged])
    labels = f"; the numbers {in_prose(ranks)} are ranks, written where there is room"
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


def scree(result: ScreeningResult) -> Drawing:
    """Draw the variances of leading components, and the share of each variance the model keeps."""
    points = result.pictures.map
    figure, (top, bottom) = new_axes(4.9, 3.5, rows=2)
    variances, gains = points.variances[:MAX_COMPONENTS], points.gains[:MAX_COMPONENTS]
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
    bottom.set(ylim=(0, 1.05), yticks=(0, 0.5, 1.0))
    bottom.set(ylabel="share kept", xlabel="kernel component")
    plain_ticks(bottom.xaxis, bottom.yaxis)
    total = points.gains.sum()
    kept = (
        f"each is kept in the share below, in all as much as {number(total)} whole ones "
        "(a Tikhonov filter)"
    )
    if np.isin(points.gains, (0.0, 1.0)).all():
        first = "the first is" if total == 1 else f"the first {count(int(total))} are"
        kept = f"{first} kept whole and the rest dropped (truncation)"
    n_all, n_drawn = len(points.variances), len(variances)
    start = f"The first {n_drawn} of {count(n_all)} components: h" if n_all > n_drawn else "H"
    caption = f"{start}ow much the rows vary along each component; {kept}."
    return Drawing("scree", "Scree plot", caption, figure)


def score_contours(result: ScreeningResult) -> Drawing | None:
    """Draw the score over the plane of two columns, with the threshold as an accented line.

    References
    ----------
    Hoffmann, H. (2007). Kernel PCA for novelty detection. Pattern Recognition 40, 863-874,
    figures 2 to 5.
    """
    contours, threshold = result.pictures.contours, result.threshold.value
    if contours is None:
        return None
    figure, (axes,) = new_axes(4.9, 3.9)
    grid = contours.x, contours.y, contours.scores
    finite = contours.scores[np.isfinite(contours.scores)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    for lower in np.linspace(low, high, N_LEVELS + 1)[1:-1] if high > low else ():
        # Overlay pale layers, whose colour the page's theme sets.
        axes.contourf(*grid, [lower, high], colors=PALETTE["band"], alpha=0.16)
    is_crossed = low < threshold < high
    if is_crossed:
        axes.contour(*grid, [threshold], colors=PALETTE["accent"], linewidths=1.4)
    usual = evenly(np.flatnonzero(~contours.points_flagged), MAX_POINTS)
    flagged = evenly(np.flatnonzero(contours.points_flagged), MAX_FLAGGED)
    points = np.column_stack([contours.points_x, contours.points_y])
    axes.plot(*points[usual].T, "o", ms=2.6, mew=0, color=PALETTE["ink"])
    axes.plot(*points[flagged].T, "^", ms=5, color=PALETTE["accent"])
    axes.set(xlabel=drawable(contours.x_name), ylabel=drawable(contours.y_name))
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
    """Draw the share of outliers found against the share of other rows flagged."""
    figure, (axes,) = new_axes(4.9, 4.1)
    axes.plot([0, 1], [0, 1], color=PALETTE["rule"], lw=1)
    _plot_methods(axes, evaluation.methods, "false_positive_rate", "true_positive_rate", "auroc")
    axes.set(xlabel="share of other rows flagged", ylabel="share of outliers found")
    caption = (
        f"ROC curves for {plural(evaluation.n_positive, 'known outlier')} among "
        f"{plural(evaluation.n_rows, 'row')}. Nearer the upper left corner is better; the number "
        "is the area under the curve, 1 = perfect, 0.5 = by chance (grey diagonal)."
    )
    return Drawing(f"roc{suffix}", "ROC curves", caption, figure)


def precision_recall(evaluation: Evaluation, suffix: str) -> Drawing:
    """Draw the share of outliers among flagged rows against the share of outliers found."""
    figure, (axes,) = new_axes(4.9, 4.1)
    base = evaluation.n_positive / max(evaluation.n_rows, 1)
    axes.axhline(base, color=PALETTE["rule"], lw=1)
    _plot_methods(axes, evaluation.methods, "recall", "precision", "auprc")
    axes.set_xlabel("share of outliers found (recall)")
    axes.set_ylabel("share of the list that is right")
    caption = (
        "Precision and recall while walking down the ranking. Higher is better; the number is the "
        f"area under the curve (average precision), {percent(base)} = by chance (grey line)."
    )
    return Drawing(f"pr{suffix}", "Precision-recall curves", caption, figure)


def _plot_methods(axes: Axes, methods: Sequence[Curves], x: str, y: str, area: str) -> None:
    """Draw the curve of each method, ours last.

    `x`, `y` and `area` name the fields of the curve's points and of its area.
    """
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.03), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    handles = []
    for place, curve in enumerate(sorted(methods, key=lambda curve: curve.ours)):
        look = place % len(COLOURS)
        handles += axes.plot(
            getattr(curve, x),
            getattr(curve, y),
            color=PALETTE["accent" if curve.ours else COLOURS[look]],
            ls="-" if curve.ours else DASHES[look],
            lw=2.2 if curve.ours else 1.2,
            label=f"{drawable(curve.name, 30)} {getattr(curve, area):.3f}",
        )
    plain_ticks(axes.xaxis, axes.yaxis)
    handles.sort(key=lambda line: -float(str(line.get_label()).rsplit(" ", 1)[1]))
    figure = axes.get_figure()
    if figure is not None and handles:
        figure.legend(
            handles=handles, loc="outside lower center", ncols=2, frameon=False, handlelength=2.6
        )


# Sections of figures: title, hint, and functions that draw a figure or return None.
SCREENING: tuple[tuple[str, str, tuple[Callable[[ScreeningResult], Drawing | None], ...]], ...] = (
    (
        "Scores and threshold",
        "how the flagged rows stand apart",
        (score_distribution, flagged_against_threshold),
    ),
    ("Contours", "the score over the two columns", (score_contours,)),
    ("Map of the rows", "on the first two kernel components", (component_map, scree)),
)
# Functions that draw figures of an evaluation; the second argument is appended to file names.
EVALUATION: tuple[Callable[[Evaluation, str], Drawing], ...] = (roc, precision_recall)


@dataclass(frozen=True)
class ScreeningDrawings:
    """All figures of a screening."""

    plane: Drawing | None  # shown before the sections
    folds: list[Fold]
    evaluations: list[list[Drawing]]

    @classmethod
    def of(cls, result: ScreeningResult) -> ScreeningDrawings:
        """Draw the figures of a screening."""
        with house_style():
            folds = [
                (title, hint, [drawing for draw in figures if (drawing := draw(result))])
                for title, hint, figures in SCREENING
            ]
            plane = column_plane(result)
        evaluations = evaluation_drawings(result.evaluations)
        return cls(plane, [fold for fold in folds if fold[-1]], evaluations)


def evaluation_drawings(evaluations: Sequence[Evaluation]) -> list[list[Drawing]]:
    """Draw the figures of each evaluation."""
    with house_style():
        return [
            [draw(evaluation, f"-{number}" * (len(evaluations) > 1)) for draw in EVALUATION]
            for number, evaluation in enumerate(evaluations, 1)
        ]


def screening_figures(drawn: ScreeningDrawings) -> dict[str, bytes]:
    """Return the figures of a screening as files."""
    first = [drawn.plane] if drawn.plane else []
    return to_files(first, *(fold[-1] for fold in drawn.folds), *drawn.evaluations)


def comparison_figures(result: ComparisonResult) -> dict[str, bytes]:
    """Draw the figures of a comparison as files."""
    return to_files(*evaluation_drawings(result.evaluations))
