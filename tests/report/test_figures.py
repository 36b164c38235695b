from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kpca_apps.report.components import component_map, evenly, scree
from kpca_apps.report.distribution import flagged_against_threshold, score_distribution
from kpca_apps.report.drawing import house_style, to_svg
from kpca_apps.report.figures import comparison_figures, screening_figures
from tests.report import examples


def test_figures_as_files() -> None:
    files = screening_figures(replace(examples.two_columns(), evaluations=examples.evaluations()))
    assert list(files) == ["scores", "threshold", "map", "scree", "contours", "roc", "pr"]
    assert all(png.startswith(b"\x89PNG") for png in files.values())


def test_comparisons_in_several_settings_number_their_files() -> None:
    assert list(comparison_figures(examples.comparison())) == ["roc-1", "pr-1", "roc-2", "pr-2"]


@pytest.mark.parametrize("value", [0.0, 0.5, -3.0])
def test_scores_all_alike(value: float) -> None:
    result = replace(examples.screening(), scores=np.full(344, value))
    with house_style():
        assert to_svg(score_distribution(result))
        assert to_svg(flagged_against_threshold(result))


def test_scores_over_many_magnitudes() -> None:
    scores = np.geomspace(1e-6, 10.0, 344)
    result = replace(examples.screening(), scores=scores)
    with house_style():
        drawing = score_distribution(result)
        assert drawing.figure.axes[0].get_xscale() == "log"
        assert to_svg(drawing)


def test_the_curve_of_counts_is_right_at_the_threshold() -> None:
    result = examples.screening()
    with house_style():
        drawing = flagged_against_threshold(result)
    curve = drawing.figure.axes[0].get_lines()[0]
    scores, counts = np.asarray(curve.get_xdata()), np.asarray(curve.get_ydata())
    for score, n in zip(scores, counts, strict=True):
        assert n == (result.scores >= score).sum()
    lower, higher = 0.9 * result.threshold.value, 1.1 * result.threshold.value
    assert f"flag {(result.scores > lower).sum()} rows" in drawing.caption
    assert drawing.caption.endswith(f" {(result.scores > higher).sum()}.")


def test_an_infinite_threshold_is_said_not_drawn() -> None:
    result = examples.infinite_threshold()
    with house_style():
        drawing = score_distribution(result)
    assert "infinite" in drawing.caption
    assert not drawing.figure.axes[0].texts


def test_the_map_names_the_oddest_rows() -> None:
    with house_style():
        drawing = component_map(examples.huge().map)
    assert [text.get_text() for text in drawing.figure.axes[0].texts] == [
        str(rank) for rank in range(1, 11)
    ]


def test_hard_and_soft_cuts_are_told_apart() -> None:
    points = examples.screening().map
    hard = replace(points, gains=(np.arange(60) < 7).astype(float))
    with house_style():
        assert "(a soft cut)" in scree(points).caption
        assert "the first 7 are kept whole and the rest dropped" in scree(hard).caption


def test_thinning_keeps_the_ends() -> None:
    places = np.arange(10_000)
    kept = evenly(places, 100)
    assert len(kept) == 100
    assert kept[0] == 0 and kept[-1] == 9_999
    assert evenly(places, 20_000) is places
