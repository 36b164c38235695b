"""The page of the papers' experiments: what it says is what came out."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch
from PIL import Image

from kpca_apps.papers.result import GalleryResult, Outcome, Reproduction
from kpca_apps.report.drawing import PALETTE
from kpca_apps.report.gallery import gallery_figures, render_gallery
from kpca_apps.report.gallery_figures import MAX_POINTS, draw
from kpca_apps.report.gallery_text import headline, standing
from kpca_apps.report.result_json import result_to_json
from tests.report import gallery_examples as examples
from tests.report.pages import Page


@pytest.fixture(scope="module")
def html() -> str:
    return render_gallery(examples.usual())


def test_the_page_is_sound_and_holds_every_claim(html: str) -> None:
    page = Page(html)
    assert page.csp.startswith("default-src 'none'; img-src data:;")
    assert not [key for key, _ in page.attributes if key.startswith("on")]
    links = [values["href"] for values in page.all("a")]
    ids = [value for key, value in page.attributes if key == "id"]
    assert links == ["#first", "#second", "#third"]
    assert {link[1:] for link in links} <= set(ids) and len(ids) == len(set(ids))
    for words in (
        "an error",
        "0.0380",
        "0.0381",
        "\u00b1 0.005",
        "with images smoothed",
        "A note.",
        "no command",
    ):
        assert words in page.text
    assert "Not run: needs a/c" in page.text
    assert "ab12" in page.text and "kpca papers run all --force" in page.text
    assert not re.search(r"(?i)(https?:)?//[a-z0-9.-]+\.[a-z]{2,}", html), "an address outside"


def test_the_same_result_gives_the_same_bytes(html: str) -> None:
    assert render_gallery(examples.usual()) == html


def test_hostile_words_stay_words() -> None:
    page = Page(render_gallery(examples.hostile()))
    assert page.tags.count("script") == 1
    assert "alert(1)" in page.text


def test_the_first_sentence_counts_claims() -> None:
    result = examples.usual()
    assert (
        headline(result) == "2 of 4 claims come out as published, 1 with a condition, 1 does not."
    )
    assert standing(result.reproductions[1]) == "1 reproduced"
    none = GalleryResult((Reproduction("a", "b", "c", Outcome(()), "gone"),))
    assert headline(none) == "No claim could be tried."


def test_lines_lie_where_the_field_has_their_value() -> None:
    (axes, empty) = draw(examples.slope(), "slope").figure.axes[:2]
    solid, dashed, heavy = (
        np.unique(patch.get_path().vertices[:, 0].round(6))
        for patch in sorted(_lines(axes), key=lambda patch: (patch.get_lw(), patch.get_ls() != "-"))
    )
    assert (solid > 0).all() and (dashed < 0).all() and heavy.tolist() == [0.0]
    assert np.allclose(np.diff(solid), solid[1] - solid[0])
    assert _lines(empty) == []


def test_a_threshold_is_drawn_where_it_stands() -> None:
    drawing = draw(examples.slope(0.73), "slope")
    line = drawing.figure.axes[0].patches[-1]
    assert to_hex(line.get_edgecolor()) == PALETTE["accent"]
    assert np.allclose(line.get_path().vertices[:, 0], 0.73)
    assert "0.73" in drawing.caption


def test_every_row_is_a_dot_in_the_colour_of_its_group() -> None:
    axes = draw(examples.slope(), "slope").figure.axes[0]
    dots = [patch for patch in axes.patches if patch not in _lines(axes)]
    assert [len(patch.get_path().vertices) for patch in dots] == [40, 40]
    assert len({patch.get_edgecolor() for patch in dots}) == 2


def test_curves_are_the_numbers_and_gaps_stay_gaps() -> None:
    (axes,) = draw(examples.lines(), "lines").figure.axes
    ours, theirs = axes.lines
    assert ours.get_xdata().tolist() == [1.0, 4.0] and ours.get_ydata().tolist() == [3.0, 1.0]
    assert theirs.get_label() == "theirs"
    assert axes.get_xscale() == "log" and axes.get_xticks().tolist() == [1.0, 2.0, 4.0]


def test_pictures_keep_their_pixels() -> None:
    (axes,) = draw(examples.spots(), "spots").figure.axes
    mosaic = np.ma.filled(axes.images[0].get_array(), np.nan)
    images = examples.spots().images
    assert np.array_equal(mosaic[:4, :4], images[0, 0])
    assert np.array_equal(mosaic[-4:, -4:], images[1, 2])
    assert np.isnan(mosaic[4]).all()


def test_many_rows_are_thinned_and_it_is_said() -> None:
    rows = np.random.default_rng(0).normal(size=(1000, 2))
    shown = examples.Scatter("Rows", "x", "y", rows, np.zeros(1000, dtype=int))
    drawing = draw(shown, "rows")
    assert len(drawing.figure.axes[0].lines[0].get_xdata()) == MAX_POINTS
    assert f"{MAX_POINTS} of 1,000 rows" in drawing.caption


def test_every_figure_is_a_file() -> None:
    files = gallery_figures(examples.usual())
    assert set(files) == {"first-1", "first-2", "first-3", "first-4", "second-1"}
    with Image.open(io.BytesIO(files["first-3"])) as picture:
        assert picture.format == "PNG"


def test_numbers_are_there_for_programs() -> None:
    told = json.loads(result_to_json(examples.usual()))
    first, second, third = told["experiments"]
    assert told["kind"] == "papers"
    assert first["claims"][0] | {"what": "", "why": ""} == {
        "what": "", "paper": 0.038, "ours": 0.0381, "tolerance": 0.005, "verdict": "reproduced",
        "why": "", "origin": "the paper",
    }  # fmt: skip
    assert "figures" not in first and first["tables"][0]["rows"] == [["linear", "0.038", "0.0381"]]
    assert second["files"] == {"a/b": "ab12"} and third["failed"] == "needs a/c"


def _lines(axes) -> list[PathPatch]:
    """Return the isolines of a panel: what is drawn in ink."""
    ink = tuple(int(PALETTE["ink"][i : i + 2], 16) / 255 for i in (1, 3, 5))
    return [p for p in axes.patches if np.allclose(p.get_edgecolor()[:3], ink)]
