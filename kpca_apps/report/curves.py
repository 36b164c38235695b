"""Figures and verdicts where labels are known: our detector beside its rivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from kpca_apps.novelty.result import Curves, Evaluation
from kpca_apps.report.drawing import PALETTE, Drawing, new_axes, plain_ticks, shown
from kpca_apps.report.text import cut, join, ordinal, percent, plural

__all__ = ["PRECISION", "ROC", "Area", "precision_recall", "roc", "standing", "verdict"]


@dataclass(frozen=True)
class Area:
    """One of the two areas that methods are judged by: what to call it, and its attribute."""

    label: str
    attribute: str

    def of(self, curve: Curves) -> float:
        """Return the area of one method."""
        return float(getattr(curve, self.attribute))


ROC = Area("area under the ROC curve", "auroc")
PRECISION = Area("average precision", "auprc")
WELL_BELOW_CHANCE = 0.4  # an area that asks whether the label is the right way round
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


def standing(evaluations: Sequence[Evaluation], area: Area) -> str:
    """Say in one sentence which place our detector takes in every test, by one of the areas.

    Parameters
    ----------
    evaluations : sequence of Evaluation
        The tests, in the order of the page.
    area : Area
        The area they are judged by.

    Returns
    -------
    str
        Empty where there is no rival to compare with.
    """
    judged = [(number, *_sides(e)) for number, e in enumerate(evaluations, 1)]
    places = {
        number: _standing(ours, rivals, area) for number, ours, rivals in judged if ours and rivals
    }
    name = next((cut(ours.name) for _, ours, _ in judged if ours), "")
    if not places:
        return ""
    if len(evaluations) == 1:
        said = places[1]
    elif len(places) > 1 and len(set(places.values())) == 1:
        tests = "both tests" if len(places) == 2 else "every test"
        said = f"{next(iter(places.values()))} in {tests}"
    else:
        said = join([f"{place} in test {number}" for number, place in places.items()])
    return f"By {area.label}, {name} {said}."


def _standing(ours: Curves, rivals: Sequence[Curves], area: Area) -> str:
    """Say which place our method takes, with whom it shares it."""
    ahead, level, _ = _beside(ours, rivals, area)
    place, n = ordinal(1 + len(ahead)), len(rivals) + 1
    if level:
        return f"shares {place} place of {n} with {join([cut(r.name) for r in level])}"
    return f"comes {place} of {n}"


def verdict(evaluation: Evaluation) -> str:
    """Say where our detector stands by both areas, rivals named.

    Parameters
    ----------
    evaluation : Evaluation
        Methods judged against the same labels.

    Returns
    -------
    str
        A sentence, and a hint where the known outliers look usual; empty where there is no rival
        to compare with and nothing to hint at.
    """
    ours, rivals = _sides(evaluation)
    if ours is None:
        return ""
    said = []
    if rivals:
        by_roc, by_pr = _place(ours.name, ours, rivals, ROC), _place("it", ours, rivals, PRECISION)
        said.append(f"By {ROC.label} {by_roc}; by {PRECISION.label} {by_pr}.")
    if ours.auroc < WELL_BELOW_CHANCE:
        said.append(
            f"An area of {ours.auroc:.3f}, well below 0.5, means that the known outliers score "
            "lower than the other rows: perhaps another value of the label is the one that means "
            "outlier, or these outliers lie where rows are densest."
        )
    return " ".join(said)


def _sides(evaluation: Evaluation) -> tuple[Curves | None, list[Curves]]:
    """Return our method and its rivals."""
    ours = next((curve for curve in evaluation.methods if curve.ours), None)
    return ours, [curve for curve in evaluation.methods if not curve.ours]


def _beside(
    ours: Curves, rivals: Sequence[Curves], area: Area
) -> tuple[list[Curves], list[Curves], list[Curves]]:
    """Return the rivals ahead of us, level with us and behind us; areas that read alike are level.

    Each best first.
    """
    own = round(area.of(ours), 3)
    ranked = sorted(rivals, key=lambda rival: (-area.of(rival), rival.name))
    signs = [float(np.sign(round(area.of(rival), 3) - own)) for rival in ranked]
    ahead, level, after = (
        [rival for rival, sign in zip(ranked, signs, strict=True) if sign == wanted]
        for wanted in (1, 0, -1)
    )
    return ahead, level, after


def _place(name: str, ours: Curves, rivals: Sequence[Curves], area: Area) -> str:
    """Rank our method among its rivals, each named with its area."""
    ahead, level, after = (
        [f"{rival.name} ({area.of(rival):.3f})" for rival in group]
        for group in _beside(ours, rivals, area)
    )
    place, n = ordinal(1 + len(ahead)), len(rivals) + 1
    own = f"{name} ({area.of(ours):.3f})"
    takes = f"shares {place} place of {n} with {join(level)}" if level else f"is {place} of {n}"
    others = [f"behind {join(ahead)}"] * bool(ahead) + [f"ahead of {join(after)}"] * bool(after)
    return f"{own} {': '.join(filter(None, [takes, ', '.join(others)]))}"


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
