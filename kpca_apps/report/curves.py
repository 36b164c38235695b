"""Figures and verdicts where labels are known: our detector beside its rivals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from kpca_apps.novelty.result import Curves, Evaluation
from kpca_apps.report.drawing import PALETTE, Drawing, new_axes, plain_ticks, shown
from kpca_apps.report.text import count, cut, join, ordinal, percent

__all__ = ["precision_recall", "roc", "standing", "verdict"]

COLOURS = ("blue", "green", "purple", "orange", "sky", "muted")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (2, 2)), (0, (8, 2, 1, 1, 1, 2)))


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
        f"ROC curves for {count(evaluation.n_positive)} known outliers among "
        f"{count(evaluation.n_rows)} rows. Nearer the upper left corner is better; the number is "
        "the area under the curve, 1 = perfect, 0.5 = by chance (grey diagonal)."
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


def standing(evaluation: Evaluation) -> str:
    """Say in a short sentence which place our detector takes by both areas."""
    ours, rivals = _sides(evaluation)
    if ours is None or not rivals:
        return "There is no rival to compare with."
    by_roc, by_pr = (
        ordinal(1 + sum(round(getattr(r, area), 3) > round(getattr(ours, area), 3) for r in rivals))
        for area in ("auroc", "auprc")
    )
    name = cut(ours.name)
    return (
        f"{name[:1].upper()}{name[1:]} comes {by_roc} of {len(rivals) + 1} by area under the ROC "
        f"curve, and {by_pr} by average precision."
    )


def verdict(evaluation: Evaluation) -> str:
    """Say in one sentence where our detector stands by both areas, rivals named.

    Parameters
    ----------
    evaluation : Evaluation
        Methods judged against the same labels.

    Returns
    -------
    str
        Empty where there is no rival to compare with.
    """
    ours, rivals = _sides(evaluation)
    if ours is None or not rivals:
        return ""
    by_roc = _place(ours.name, ours.auroc, [(r.name, r.auroc) for r in rivals])
    by_pr = _place("it", ours.auprc, [(r.name, r.auprc) for r in rivals])
    return f"By area under the ROC curve {by_roc}; by average precision {by_pr}."


def _sides(evaluation: Evaluation) -> tuple[Curves | None, list[Curves]]:
    """Return our method and its rivals."""
    ours = next((curve for curve in evaluation.methods if curve.ours), None)
    return ours, [curve for curve in evaluation.methods if not curve.ours]


def _place(name: str, area: float, rivals: Sequence[tuple[str, float]]) -> str:
    """Rank one method among its rivals; areas that read alike are level."""
    ours = round(area, 3)
    ranked = sorted(rivals, key=lambda rival: (-rival[1], rival[0]))
    groups: dict[str, list[str]] = {"behind": [], "level with": [], "ahead of": []}
    for rival, their_area in ranked:
        theirs = round(their_area, 3)
        word = "behind" if theirs > ours else "level with" if theirs == ours else "ahead of"
        groups[word].append(f"{rival} ({theirs:.3f})")
    place = ordinal(1 + len(groups["behind"]))
    relations = [f"{word} {join(names)}" for word, names in groups.items() if names]
    return f"{name} ({ours:.3f}) is {place} of {len(ranked) + 1}: {', '.join(relations)}"


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
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
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
