"""All figures of a result, in the order they are shown."""

from __future__ import annotations

from kpca_apps.novelty.result import ComparisonResult, Evaluation, ScreeningResult
from kpca_apps.report.components import component_map, scree
from kpca_apps.report.contours import score_contours
from kpca_apps.report.curves import precision_recall, roc
from kpca_apps.report.distribution import flagged_against_threshold, score_distribution
from kpca_apps.report.drawing import Drawing, house_style, to_png
from kpca_apps.report.hidden import without_hidden

__all__ = [
    "comparison_figures",
    "evaluation_drawings",
    "screening_drawings",
    "screening_figures",
]


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
    """Draw the figures of a screening as files.

    Parameters
    ----------
    result : ScreeningResult
        Result of a screening; hidden columns stay hidden.

    Returns
    -------
    dict of str to bytes
        File name without suffix (``"scores"``, ``"threshold"``, ``"map"``, ``"scree"``, with two
        columns ``"contours"``, with labels ``"roc"`` and ``"pr"``) to PNG, twice screen size.
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
