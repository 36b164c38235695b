from dataclasses import replace
from typing import Any

import numpy as np

from kpca_apps.novelty.result import PlaneAxis
from kpca_apps.report.drawing import PALETTE, Drawing, to_svg
from kpca_apps.report.novelty.plane import column_plane
from tests.novelty.tables import changed
from tests.report import examples
from tests.report.pages import drawn


def drawn_plane(**changes: Any) -> Drawing:
    result = examples.screening()
    assert result.pictures.plane is not None
    return drawn(column_plane, changed(result, plane=replace(result.pictures.plane, **changes)))


def marks(drawing: Drawing, colour: str) -> int:
    lines = drawing.figure.axes[0].get_lines()
    return sum(len(line.get_xdata()) for line in lines if line.get_color() == PALETTE[colour])


def test_the_plane_draws_every_flagged_row_or_says_why_not() -> None:
    drawing = drawn_plane()
    # Of the 12 flagged rows, one lacks a value. Of the 11 drawn, one lies far to the right.
    assert marks(drawing, "accent") == 11
    assert "1 flagged row lacks one of the values and cannot be drawn." in drawing.caption
    assert "1 row lies far beyond the rim" in drawing.caption
    assert "Flipper Length (mm)\u2069 (34 %)" in drawing.caption
    axes = drawing.figure.axes[0]
    assert axes.get_xlabel() == "Flipper Length (mm)" and axes.get_ylabel() == "Body Mass (g)"
    assert axes.get_xlim()[1] < 300  # the row at 1950 does not compress all other rows
    svg = str(to_svg(drawing))
    assert ">1 N262A1<" in svg and ">2 N" not in svg
    # Flagged rows are drawn over all other rows.
    colours = [line.get_color() for line in axes.get_lines() if len(line.get_xdata())]
    assert (colours[0], {*colours[1:]}) == (PALETTE["band"], {PALETTE["accent"]})


def test_one_column_is_drawn_against_the_score() -> None:
    axes = drawn_plane(y=None).figure.axes[0]
    assert axes.get_ylabel() == "novelty score (higher = more novel)"
    threshold = examples.screening().threshold.value
    assert any(np.array_equal(line.get_ydata(), [threshold] * 2) for line in axes.get_lines())


def test_categories_dates_and_long_tails_have_axes_of_their_own() -> None:
    plane = examples.screening().pictures.plane
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
    assert "12 flagged rows lack one of the values" in drawn.caption and to_svg(drawn)
