from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kpca_apps.novelty.result import PlaneAxis, ScoreMark, ScoreScale, ScreeningResult
from kpca_apps.report.drawing import PALETTE, Drawing, house_style, to_svg
from kpca_apps.report.novelty.figures import (
    ScreeningDrawings,
    comparison_figures,
    component_map,
    flagged_against_threshold,
    score_contours,
    score_distribution,
    scree,
    screening_figures,
)
from kpca_apps.report.novelty.marks import evenly
from kpca_apps.report.novelty.plane import column_plane
from kpca_apps.report.text import join
from tests.report import examples


@pytest.mark.release
def test_figures_as_files() -> None:
    result = replace(examples.two_columns(), evaluations=examples.evaluations())
    files = screening_figures(ScreeningDrawings.of(result))
    assert list(files) == ["plane", "scores", "threshold", "contours", "map", "scree", "roc", "pr"]
    assert all(png.startswith(b"\x89PNG") for png in files.values())


def test_comparisons_in_several_settings_number_their_files() -> None:
    assert list(comparison_figures(examples.comparison())) == ["roc-1", "pr-1", "roc-2", "pr-2"]


def drawn(draw: Callable[[ScreeningResult], Drawing | None], result: ScreeningResult) -> Drawing:
    with house_style():
        drawing = draw(result)
    assert drawing is not None
    return drawing


@pytest.mark.parametrize(
    "scores", [np.full(344, 0.0), np.full(344, -3.0), np.geomspace(1e-6, 10.0, 344)]
)
def test_scores_alike_or_over_many_magnitudes_are_drawn(scores: np.ndarray) -> None:
    result = replace(examples.screening(), scores=scores, ranks=np.arange(344, 0, -1))
    drawing = drawn(score_distribution, result)
    assert drawing.figure.axes[0].get_xscale() == ("log" if np.ptp(scores) else "linear")
    assert to_svg(drawing) and to_svg(drawn(flagged_against_threshold, result))


def test_the_scale_people_read_is_marked_above_the_scores() -> None:
    result = examples.screening()
    assert result.scale is not None
    beyond = replace(result.scale, marks=(*result.scale.marks, ScoreMark(99.0, "1 in 1,000")))
    drawing = drawn(score_distribution, replace(result, scale=beyond))
    svg = to_svg(drawing)
    assert ">1 in 10<" in svg and ">1 in 100<" in svg and ">how rare<" in svg
    assert "1 in 1,000" not in svg
    assert result.threshold.rarity is not None
    assert f"which {result.threshold.rarity.words} usual rows reach" in drawing.caption
    plain = drawn(score_distribution, replace(result, scale=None))
    assert "marks on top" in drawing.caption and "marks on top" not in plain.caption
    # Marks that would touch are left out.
    marks = tuple(ScoreMark(0.3 + 0.01 * i, f"1 in {10**i}") for i in range(1, 5))
    close = replace(result, scale=ScoreScale("how rare", "", marks))
    assert to_svg(drawn(score_distribution, close)).count(">1 in ") == 1


def test_the_curve_of_counts_is_right_at_the_threshold() -> None:
    result = examples.screening()
    curve = drawn(flagged_against_threshold, result).figure.axes[0].get_lines()[0]
    for score, n in zip(np.asarray(curve.get_xdata()), curve.get_ydata(), strict=True):
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
    caption = drawn(flagged_against_threshold, result).caption
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
    caption = drawn(flagged_against_threshold, result).caption
    assert "half" not in caption  # none or ten rows score above any threshold up there
    assert told_counts(caption) == {20: 0.1}


def test_an_infinite_threshold_is_said_not_drawn() -> None:
    result = examples.infinite_threshold()
    drawing = drawn(score_distribution, result)
    curve = drawn(flagged_against_threshold, result)
    assert "There is no threshold to draw: nothing is flagged." in drawing.caption
    assert not drawing.figure.axes[0].texts
    assert "Nothing is flagged; the highest score is 0.589." in curve.caption
    assert "inf" not in drawing.caption + curve.caption


@pytest.mark.parametrize(
    ("n_flagged", "said"),
    [(0, "no row scores above it"), (1, "the tick below the axis is the one flagged row")],
)
def test_the_distribution_of_few_flagged_rows(n_flagged: int, said: str) -> None:
    assert said in drawn(score_distribution, examples.screening(n_flagged=n_flagged)).caption


def test_contours_without_a_line_say_nothing_of_one() -> None:
    result = examples.two_columns()
    for value, has_line in ((0.5, True), (np.inf, False)):
        at = replace(result, threshold=replace(result.threshold, value=value))
        assert ("accented line" in drawn(score_contours, at).caption) == has_line
    assert score_contours(replace(result, contours=None)) is None


def test_the_map_names_the_oddest_rows_where_there_is_room() -> None:
    result = examples.screening()
    drawing = drawn(component_map, result)
    ranks = [text.get_text() for text in drawing.figure.axes[0].texts]
    assert ranks and set(ranks) <= {"1", "2", "3", "4", "5"}
    assert f"the numbers {join(ranks)} are ranks" in drawing.caption
    points = result.map
    oddest = (points.rank > 0) & (points.rank <= 5)
    heap = replace(points, x=np.where(oddest, 0.0, points.x), y=np.where(oddest, 0.0, points.y))
    drawing = drawn(component_map, replace(result, map=heap))
    drawing.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in drawing.figure.axes[0].texts]
    assert 1 <= len(boxes) < 5
    assert not any(box.count_overlaps(boxes[:i]) for i, box in enumerate(boxes))


def test_truncation_and_a_filter_are_distinguished() -> None:
    soft = examples.screening()
    hard = replace(soft, map=replace(soft.map, gains=(np.arange(60) < 7).astype(float)))
    assert "(a Tikhonov filter)" in drawn(scree, soft).caption
    assert "the first 7 are kept whole and the rest dropped" in drawn(scree, hard).caption


def test_thinning_keeps_the_ends() -> None:
    places = np.arange(10_000)
    kept = evenly(places, 100)
    assert (len(kept), kept[0], kept[-1]) == (100, 0, 9_999)
    assert evenly(places, 20_000) is places


def drawn_plane(**changes: Any) -> Drawing:
    result = examples.screening()
    assert result.plane is not None
    return drawn(column_plane, replace(result, plane=replace(result.plane, **changes)))


def marks(drawing: Drawing, colour: str) -> int:
    lines = drawing.figure.axes[0].get_lines()
    return sum(len(line.get_xdata()) for line in lines if line.get_color() == PALETTE[colour])


def test_the_plane_draws_every_flagged_row_or_says_why_not() -> None:
    drawing = drawn_plane()
    # One of the twelve lacks a value, and one lies far to the right.
    assert marks(drawing, "accent") == 11
    assert "1 flagged row lacks one of the values and cannot be drawn." in drawing.caption
    assert "1 mark at the rim lies far beyond it" in drawing.caption
    assert "Flipper Length (mm)\u2069 (34 %)" in drawing.caption
    axes = drawing.figure.axes[0]
    assert axes.get_xlabel() == "Flipper Length (mm)" and axes.get_ylabel() == "Body Mass (g)"
    assert axes.get_xlim()[1] < 300  # the row at 1950 does not press the crowd together
    svg = str(to_svg(drawing))
    assert ">1 N262A1<" in svg and ">2 N" not in svg
    # Flagged rows are drawn over the crowd.
    colours = [line.get_color() for line in axes.get_lines() if len(line.get_xdata())]
    assert (colours[0], {*colours[1:]}) == (PALETTE["band"], {PALETTE["accent"]})


def test_one_column_is_drawn_against_the_score() -> None:
    drawing = drawn_plane(y=None)
    axes = drawing.figure.axes[0]
    assert axes.get_ylabel() == "novelty score (higher = more novel)"
    threshold = examples.screening().threshold.value
    assert any(np.array_equal(line.get_ydata(), [threshold] * 2) for line in axes.get_lines())


def test_categories_dates_and_long_tails_have_axes_of_their_own() -> None:
    plane = examples.screening().plane
    assert plane is not None
    n = len(plane.rank)
    sizes = np.random.default_rng(0).lognormal(3, 3, n)
    seconds = np.linspace(1.1e9, 1.2e9, n)
    axes = drawn_plane(
        x=PlaneAxis("size", sizes), y=PlaneAxis("day", seconds, is_date=True)
    ).figure.axes[0]
    assert axes.get_xscale() == "log" and axes.get_xlabel() == "size (log scale)"
    drawn = drawn_plane(
        x=PlaneAxis("kind", np.arange(n) % 3.0, levels=("a", "b", examples.ARABIC)),
        y=PlaneAxis("size", np.full(n, np.nan)),
    )
    axes = drawn.figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", examples.ARABIC]
    assert "12 flagged rows lack one of the values" in drawn.caption
    assert to_svg(drawn)


def test_the_axis_of_scores_ends_where_the_threshold_can_be_seen() -> None:
    scores = np.append(np.random.default_rng(0).uniform(0.9, 1.1, 340), [1.12, 1.2, 20.0, 25.0])
    result = replace(
        examples.screening(n_flagged=4),
        scores=scores,
        is_flagged=scores > 1.11,
        scale=None,
        threshold=replace(examples.screening().threshold, value=1.11),
    )
    assert result.distribution.n_beyond == 2
    assert result.distribution.counts.sum() == 342
    drawing = drawn(score_distribution, result)
    low, high = drawing.figure.axes[0].get_xlim()
    assert 0.2 < (1.11 - low) / (high - low) < 0.8
    assert "2 rows score above its end, up to 25.0" in drawing.caption


def test_a_threshold_beyond_all_scores_is_on_the_axis() -> None:
    result = examples.screening()
    threshold = replace(result.threshold, value=float(result.scores.max()) * 4)
    result = replace(result, threshold=threshold, is_flagged=np.zeros(result.n_rows, dtype=bool))
    with house_style():
        (axes, *_) = score_distribution(result).figure.axes
    assert axes.get_xlim()[1] > threshold.value
