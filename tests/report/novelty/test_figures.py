from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from kpca_apps.novelty.result import ScoreMark, ScoreScale
from kpca_apps.report.drawing import house_style, to_svg
from kpca_apps.report.novelty.figures import (
    ScreeningDrawings,
    comparison_figures,
    component_map,
    evenly,
    flagged_against_threshold,
    score_contours,
    score_distribution,
    scree,
    screening_figures,
)
from kpca_apps.report.text import join
from tests.report import examples


def test_figures_as_files() -> None:
    result = replace(examples.two_columns(), evaluations=examples.evaluations())
    files = screening_figures(ScreeningDrawings.of(result))
    assert list(files) == ["plane", "scores", "threshold", "contours", "map", "scree", "roc", "pr"]
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
    result = replace(
        examples.screening(), scores=np.geomspace(1e-6, 10.0, 344), ranks=np.arange(344, 0, -1)
    )
    with house_style():
        drawing = score_distribution(result)
        assert drawing.figure.axes[0].get_xscale() == "log"
        assert to_svg(drawing)


def test_the_scale_people_read_is_marked_above_the_scores() -> None:
    result = examples.screening()
    assert result.scale is not None
    beyond = replace(result.scale, marks=(*result.scale.marks, ScoreMark(99.0, "1 in 1,000")))
    with house_style():
        drawing = score_distribution(replace(result, scale=beyond))
        plain = score_distribution(replace(result, scale=None))
    svg = to_svg(drawing)
    assert ">1 in 10<" in svg and ">1 in 100<" in svg and ">how rare<" in svg
    assert "1 in 1,000" not in svg
    assert result.threshold.rarity is not None
    assert f"which {result.threshold.rarity.words} usual rows reach" in drawing.caption
    assert "marks on top" in drawing.caption and "marks on top" not in plain.caption


def test_marks_that_would_touch_are_left_out() -> None:
    result = examples.screening()
    marks = tuple(ScoreMark(0.3 + 0.01 * i, f"1 in {10**i}") for i in range(1, 5))
    scale = ScoreScale("how rare", "", marks)
    with house_style():
        svg = to_svg(score_distribution(replace(result, scale=scale)))
    assert svg.count(">1 in ") == 1


def test_the_curve_of_counts_is_right_at_the_threshold() -> None:
    result = examples.screening()
    with house_style():
        drawing = flagged_against_threshold(result)
    curve = drawing.figure.axes[0].get_lines()[0]
    scores, counts = np.asarray(curve.get_xdata()), np.asarray(curve.get_ydata())
    for score, n in zip(scores, counts, strict=True):
        assert n == (result.scores >= score).sum()


def told_counts(caption: str) -> dict[int, float]:
    """Read counts and thresholds back from a caption."""
    told = re.findall(
        r"(half|twice) as many \((\d+)\) it would have to stand at ([\d.]+\d)", caption
    )
    return {int(n): float(at) for _, n, at in told}


@pytest.mark.parametrize("n_flagged", [1, 12, 13, 200])
def test_the_caption_says_where_half_and_twice_as_many_would_be_flagged(n_flagged: int) -> None:
    result = examples.screening(n_flagged=n_flagged)
    with house_style():
        caption = flagged_against_threshold(result).caption
    told = told_counts(caption)
    wanted = {n_flagged // 2, 2 * n_flagged} - {0}
    assert set(told) == {n for n in wanted if n < 344}
    for n, at in told.items():
        assert at == pytest.approx(np.sort(result.scores)[-n - 1], abs=1e-3)
        assert f"about half as many ({n})" not in caption or n_flagged % 2


def test_tied_scores_promise_no_list_that_cannot_be() -> None:
    scores = np.repeat([0.9, 0.5, 0.1], [10, 10, 324])
    result = replace(
        examples.screening(n_flagged=10),
        scores=scores,
        ranks=np.arange(1, 345),
        is_flagged=np.arange(344) < 10,
        threshold=replace(examples.screening().threshold, value=0.5),
    )
    with house_style():
        caption = flagged_against_threshold(result).caption
    assert "half" not in caption  # none or ten rows score above any threshold up there
    assert told_counts(caption) == {20: 0.1}


def test_an_infinite_threshold_is_said_not_drawn() -> None:
    result = examples.infinite_threshold()
    with house_style():
        drawing = score_distribution(result)
        curve = flagged_against_threshold(examples.infinite_threshold())
    assert "There is no threshold to draw: nothing is flagged." in drawing.caption
    assert not drawing.figure.axes[0].texts
    assert "Nothing is flagged; the highest score is 0.589." in curve.caption
    assert "inf" not in drawing.caption + curve.caption


@pytest.mark.parametrize(
    ("n_flagged", "said"),
    [(0, "no row scores above it"), (1, "the tick below the axis is the one flagged row")],
)
def test_the_distribution_of_few_flagged_rows(n_flagged: int, said: str) -> None:
    with house_style():
        assert said in score_distribution(examples.screening(n_flagged=n_flagged)).caption


def test_contours_without_a_line_say_nothing_of_one() -> None:
    result = examples.two_columns()
    captions = []
    for value in (0.5, np.inf):
        with house_style():
            drawing = score_contours(
                replace(result, threshold=replace(result.threshold, value=value))
            )
        captions.append(drawing.caption if drawing else "")
    assert "accented line" in captions[0]
    assert "line" not in captions[1]
    assert score_contours(replace(result, contours=None)) is None


def test_the_map_names_the_oddest_rows() -> None:
    with house_style():
        drawing = component_map(examples.screening())
    ranks = [text.get_text() for text in drawing.figure.axes[0].texts]
    assert ranks
    assert set(ranks) <= {"1", "2", "3", "4", "5"}
    assert f"the numbers {join(ranks)} are ranks" in drawing.caption


def test_labels_on_the_map_do_not_overlap() -> None:
    result = examples.screening()
    points = result.map
    oddest = (points.rank > 0) & (points.rank <= 5)
    heap = replace(points, x=np.where(oddest, 0.0, points.x), y=np.where(oddest, 0.0, points.y))
    with house_style():
        drawing = component_map(replace(result, map=heap))
    drawing.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in drawing.figure.axes[0].texts]
    assert 1 <= len(boxes) < 5
    for i, box in enumerate(boxes):
        assert box.count_overlaps(boxes[:i]) == 0


def test_hard_and_soft_cuts_are_told_apart() -> None:
    soft = examples.screening()
    hard = replace(soft, map=replace(soft.map, gains=(np.arange(60) < 7).astype(float)))
    with house_style():
        assert "(a soft cut)" in scree(soft).caption
        assert "the first 7 are kept whole and the rest dropped" in scree(hard).caption


def test_thinning_keeps_the_ends() -> None:
    places = np.arange(10_000)
    kept = evenly(places, 100)
    assert len(kept) == 100
    assert kept[0] == 0 and kept[-1] == 9_999
    assert evenly(places, 20_000) is places
