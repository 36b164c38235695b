import re
from dataclasses import replace

import numpy as np
import pytest

from kpca_apps.novelty.result import ScoreMark, ScoreScale
from kpca_apps.report.drawing import house_style, to_svg
from kpca_apps.report.novelty.figures import (
    comparison_figures,
    component_map,
    flagged_against_threshold,
    score_contours,
    score_distribution,
    scree,
)
from kpca_apps.report.novelty.marks import evenly
from kpca_apps.report.text import in_prose
from tests.novelty.tables import changed
from tests.report import examples
from tests.report.pages import drawn


def test_comparisons_in_several_settings_number_their_files() -> None:
    assert list(comparison_figures(examples.comparison())) == ["roc-1", "pr-1", "roc-2", "pr-2"]


@pytest.mark.parametrize(
    "scores", [np.full(344, 0.0), np.full(344, -3.0), np.geomspace(1e-6, 10.0, 344)]
)
def test_equal_scores_and_scores_over_many_magnitudes_are_drawn(scores: np.ndarray) -> None:
    result = changed(examples.screening(), scores=scores, ranks=np.arange(344, 0, -1))
    drawing = drawn(score_distribution, result)
    assert drawing.figure.axes[0].get_xscale() == ("log" if np.ptp(scores) else "linear")
    assert to_svg(drawing) and to_svg(drawn(flagged_against_threshold, result))


def test_the_scale_people_read_is_marked_above_the_scores() -> None:
    result = examples.screening()
    assert result.rows.scale is not None
    beyond = replace(
        result.rows.scale, marks=(*result.rows.scale.marks, ScoreMark(99.0, "1 in 1,000"))
    )
    drawing = drawn(score_distribution, changed(result, scale=beyond))
    svg = to_svg(drawing)
    assert ">1 in 10<" in svg and ">1 in 100<" in svg and ">how rare<" in svg
    assert "1 in 1,000" not in svg
    assert result.threshold.rarity is not None
    assert f"which {result.threshold.rarity.in_prose} usual rows reach" in drawing.caption
    plain = drawn(score_distribution, changed(result, scale=None))
    assert "mark on top" in drawing.caption and "mark on top" not in plain.caption
    # Marks that would overlap are omitted.
    marks = tuple(ScoreMark(0.3 + 0.01 * i, f"1 in {10**i}") for i in range(1, 5))
    close = changed(result, scale=ScoreScale("how rare", "", marks))
    assert to_svg(drawn(score_distribution, close)).count(">1 in ") == 1


def test_the_curve_of_counts_is_right_at_the_threshold() -> None:
    result = examples.screening()
    curve = drawn(flagged_against_threshold, result).figure.axes[0].get_lines()[0]
    for score, n in zip(np.asarray(curve.get_xdata()), curve.get_ydata(), strict=True):
        assert n == (result.rows.scores >= score).sum()


def read_counts(caption: str) -> dict[int, float]:
    matches = re.findall(
        r"(half|twice) as many \((\d+)\) it would have to stand at ([\d.]+\d)", caption
    )
    return {int(n): float(at) for _, n, at in matches}


@pytest.mark.parametrize("n_flagged", [1, 12, 13, 200])
def test_the_caption_says_where_half_and_twice_as_many_would_be_flagged(n_flagged: int) -> None:
    result = examples.screening(n_flagged=n_flagged)
    caption = drawn(flagged_against_threshold, result).caption
    counts = read_counts(caption)
    assert set(counts) == {n for n in ({n_flagged // 2, 2 * n_flagged} - {0}) if n < 344}
    for n, at in counts.items():
        assert at == pytest.approx(np.sort(result.rows.scores)[-n - 1], abs=1e-3)
        assert f"about half as many ({n})" not in caption or n_flagged % 2


def test_tied_scores_promise_no_impossible_list() -> None:
    scores = np.repeat([0.9, 0.5, 0.1], [10, 10, 324])
    result = changed(
        examples.screening(n_flagged=10),
        scores=scores,
        ranks=np.arange(1, 345),
        is_flagged=np.arange(344) < 10,
        threshold=replace(examples.screening().threshold, value=0.5),
    )
    caption = drawn(flagged_against_threshold, result).caption
    assert "half" not in caption  # no threshold lists five rows, as ten are equal
    assert read_counts(caption) == {20: 0.1}


def test_an_infinite_threshold_is_stated_not_drawn() -> None:
    result = examples.infinite_threshold()
    drawing = drawn(score_distribution, result)
    curve = drawn(flagged_against_threshold, result)
    nothing = "There is no threshold to draw: no row is flagged for its score."
    assert nothing in drawing.caption
    assert not drawing.figure.axes[0].texts
    assert "No row is flagged for its score; the highest score is 0.589." in curve.caption
    assert "inf" not in drawing.caption + curve.caption
    # A single row listed for an odd cell does not change the caption.
    by_cell = changed(result, is_flagged=np.arange(len(result.rows.scores)) == 7)
    assert by_cell.n_flagged == 1
    assert nothing in drawn(score_distribution, by_cell).caption
    above = replace(result.threshold, value=-np.inf)
    every = drawn(score_distribution, replace(result, threshold=above))
    assert "There is no threshold to draw: every row is flagged." in every.caption


def test_contours_without_a_line_do_not_mention_one() -> None:
    result = examples.two_columns()
    for value, has_line in ((0.5, True), (np.inf, False)):
        at = replace(result, threshold=replace(result.threshold, value=value))
        assert ("accented line" in drawn(score_contours, at).caption) == has_line
    assert score_contours(changed(result, contours=None)) is None


def test_the_map_names_the_oddest_rows_where_there_is_room() -> None:
    result = examples.screening()
    drawing = drawn(component_map, result)
    ranks = [text.get_text() for text in drawing.figure.axes[0].texts]
    assert ranks and set(ranks) <= {"1", "2", "3", "4", "5"}
    assert f"the numbers {in_prose(ranks)} are ranks" in drawing.caption
    points = result.pictures.map
    oddest = (points.rank > 0) & (points.rank <= 5)
    heap = replace(points, x=np.where(oddest, 0.0, points.x), y=np.where(oddest, 0.0, points.y))
    drawing = drawn(component_map, changed(result, map=heap))
    drawing.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in drawing.figure.axes[0].texts]
    assert 1 <= len(boxes) < 5
    assert not any(box.count_overlaps(boxes[:i]) for i, box in enumerate(boxes))


def test_truncation_and_a_filter_are_distinguished() -> None:
    soft = examples.screening()
    hard = changed(soft, map=replace(soft.pictures.map, gains=(np.arange(60) < 7).astype(float)))
    assert "(a Tikhonov filter)" in drawn(scree, soft).caption
    assert "the first 7 are kept whole and the rest dropped" in drawn(scree, hard).caption


def test_thinning_keeps_the_ends() -> None:
    places = np.arange(10_000)
    kept = evenly(places, 100)
    assert (len(kept), kept[0], kept[-1]) == (100, 0, 9_999)
    assert evenly(places, 20_000) is places


def test_the_axis_of_scores_ends_where_the_threshold_can_be_seen() -> None:
    scores = np.append(np.random.default_rng(0).uniform(0.9, 1.1, 340), [1.12, 1.2, 20.0, 25.0])
    result = changed(
        examples.screening(n_flagged=4),
        scores=scores,
        is_flagged=scores > 1.11,
        scale=None,
        threshold=replace(examples.screening().threshold, value=1.11),
    )
    assert result.distribution.n_beyond == 2 and result.distribution.counts.sum() == 342
    drawing = drawn(score_distribution, result)
    low, high = drawing.figure.axes[0].get_xlim()
    assert 0.2 < (1.11 - low) / (high - low) < 0.8
    assert "2 rows score above its end, up to 25.0" in drawing.caption


def test_a_threshold_beyond_all_scores_is_on_the_axis() -> None:
    result = examples.screening()
    threshold = replace(result.threshold, value=float(result.rows.scores.max()) * 4)
    result = changed(result, threshold=threshold, is_flagged=np.zeros(result.n_rows, dtype=bool))
    with house_style():
        (axes, *_) = score_distribution(result).figure.axes
    assert axes.get_xlim()[1] > threshold.value
