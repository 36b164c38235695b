import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch
from PIL import Image
from scipy.ndimage import label

from kpca_apps.papers.figures import Scatter, Table
from kpca_apps.papers.result import Claim, GalleryResult, Outcome, Reproduction
from kpca_apps.report.drawing import PALETTE
from kpca_apps.report.papers.figures import MAX_POINTS, draw
from kpca_apps.report.papers.page import gallery_figures, numeric_columns, render_gallery
from kpca_apps.report.papers.text import cell, headline, left_out, standing
from kpca_apps.report.result_json import result_to_json
from tests.report import gallery_examples as examples
from tests.report.pages import Page, check_sound


@pytest.fixture(scope="module")
def html() -> str:
    return render_gallery(examples.usual())


def test_the_page_is_sound_and_holds_every_claim(html: str) -> None:
    page = check_sound(html)
    links = [values["href"] for values in page.all("a")]
    ids = [value for key, value in page.attributes if key == "id"]
    assert links == ["#first", "#second", "#third"]
    assert {values["href"][1:] for values in page.all("use")} <= set(ids)
    for words in (
        "an error",
        "0.0380",
        "0.0381",
        "\u00b1 0.005",
        "with images smoothed",
        "A note.",
        "no command",
        "A. Author (2001). On everything. A journal.",
    ):
        assert words in page.text
    assert "Not run: needs a/c" in page.text
    assert "ab12" in page.text and "kpca papers run all --force" in page.text


def test_hostile_words_stay_words() -> None:
    page = Page(render_gallery(examples.hostile()))
    assert page.tags.count("script") == 1 and "alert(1)" in page.text


def test_the_first_sentence_counts_claims() -> None:
    result = examples.usual()
    assert (
        headline(result)
        == "2 of 4 claims are reproduced as published, 1 with a condition, 1 is not."
    )
    assert standing(result.reproductions[1]) == "1 reproduced"
    for verdicts, words in (
        (["reproduced with a condition"] * 2, "2 of 2 claims are reproduced with a condition."),
        (["not reproduced"], "0 of 1 claim is reproduced as published, 1 is not."),
        (["reproduced"], "1 of 1 claim is reproduced as published."),
    ):
        assert headline(GalleryResult((Reproduction("a", "b", "c", _claims(*verdicts)),))) == words
    none = GalleryResult((Reproduction("a", "b", "c", Outcome(()), "lost"),))
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
    assert "the accented one is the threshold, 0.73" in drawing.caption
    named = replace(examples.slope(0.73), threshold_words="the largest error of a training row")
    assert "is the largest error of a training row, 0.73" in draw(named, "slope").caption


@pytest.mark.parametrize(
    ("value", "tolerance", "written"),
    [
        (0.003016, 1e-6, "0.003016"),
        (0.08467, 1e-6, "0.084670"),
        (0.9642, 1e-4, "0.9642"),
        (8.9, 0.5, "8.9"),
        (1.6, 0.08, "1.6"),
        (187.66, 9.4, "187.7"),
        (2.0, 0.0, "2"),
    ],
)
def test_a_quoted_value_has_no_invented_digits(value, tolerance, written) -> None:
    assert cell(value, tolerance, known=True) == written


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
    assert np.array_equal(mosaic[-4:, -4:], images[1, 2]) and np.isnan(mosaic[4]).all()


def test_rows_stand_under_the_curves_fitted_to_them() -> None:
    (axes,) = draw(replace(examples.lines(), points=examples.POINTS), "lines").figure.axes
    (dots,) = axes.patches
    middles = dots.get_path().vertices.reshape(-1, 2, 2).mean(axis=1)
    assert np.allclose(middles, examples.POINTS) and len(axes.lines) == 2


def test_one_panel_needs_no_caption_of_its_own() -> None:
    shown = replace(examples.slope(0.5), values=examples.slope().values[:1], captions=("error",))
    drawing = draw(shown, "slope")
    assert drawing.figure.axes[0].get_title() == ""
    assert drawing.caption.startswith("Lines of constant value (error)")


def test_thinning_of_many_rows_is_reported() -> None:
    rows = np.random.default_rng(0).normal(size=(1000, 2))
    drawing = draw(examples.Scatter("Rows", "x", "y", rows, np.zeros(1000, dtype=int)), "rows")
    (dots,) = drawing.figure.axes[0].patches
    assert len(dots.get_path().vertices) == 2 * MAX_POINTS
    assert f"{MAX_POINTS} of 1,000 rows" in drawing.caption


def test_every_figure_is_a_file() -> None:
    files = gallery_figures(examples.usual())
    assert set(files) == {"first-1", "first-2", "first-3", "first-4", "second-1"}
    with Image.open(io.BytesIO(files["first-3"])) as picture:
        assert picture.format == "PNG"


def test_a_picture_shows_every_dot() -> None:
    """Dots are lines of almost no length, which a raster image might drop."""
    side = np.linspace(0.0, 1.0, 5)
    points = np.column_stack([np.tile(side, 5), np.repeat(side, 5)]) + 0.013
    dots = Outcome((), (Scatter("A grid", "x", "y", points, np.zeros(25, dtype=np.intp)),))
    result = GalleryResult((Reproduction("dots", "Author (2001)", "A grid", dots),))
    with Image.open(io.BytesIO(gallery_figures(result)["dots-1"])) as picture:
        pixels = np.asarray(picture.convert("RGB"), dtype=np.int64)
    assert label(pixels[..., 2] - pixels[..., 0] > 60)[1] == 25


def test_numbers_are_there_for_programs() -> None:
    content = json.loads(result_to_json(examples.usual()))
    first, second, third = content["experiments"]
    assert content["kind"] == "papers"
    assert first["claims"][0] | {"what": "", "why": ""} == {
        "what": "", "paper": 0.038, "ours": 0.0381, "tolerance": 0.005, "verdict": "reproduced",
        "why": "", "source": "1998 journal",
    }  # fmt: skip
    assert "figures" not in first and first["tables"][0]["rows"] == [["linear", "0.038", "0.0381"]]
    assert content["references"][0]["title"] == "On everything"
    assert second["files"] == {"a/b": "ab12"} and third["failed"] == "needs a/c"


def _claims(*verdicts: str) -> Outcome:
    return Outcome(tuple(Claim("c", 1.0, 2.0, 0.1, verdict, "why") for verdict in verdicts))


def test_experiments_without_a_result_are_counted_with_their_reason() -> None:
    lost = Reproduction("lost", "p", "Lost", _claims("not run"))
    unavailable = Reproduction("absent", "p", "Absent", _claims("not run"), "needs a/c")
    some = Reproduction("some", "p", "Some", _claims("not run", "reproduced"))
    assert left_out(GalleryResult((some,))) == ""
    assert left_out(GalleryResult((some, lost))) == "lost cannot be tried: the data cannot be had."
    sentence = "1 of 3 experiments could not be run; lost cannot be tried: the data cannot be had."
    assert left_out(GalleryResult((some, lost, unavailable))) == sentence
    html = render_gallery(GalleryResult((some, lost, unavailable)))
    assert sentence in html and len(re.findall(r'class="marks"[^>]*>not run<', html)) == 2


def test_a_condition_of_several_claims_is_stated_once() -> None:
    claim, plain = examples.close_to("a", "images smoothed"), examples.close_to("a")
    other = examples.close_to("a", "C = 10", "Table 9")
    run = Reproduction("one", "p", "One", Outcome((claim, other, claim, plain)), method="By hand.")
    text = Page(render_gallery(GalleryResult((run,)))).text
    assert text.count("images smoothed") == 1 and text.count("C = 10") == 1
    assert text.count("(a)") == 3 and "Table 9" in text and "By hand." in text
    alone = render_gallery(GalleryResult((replace(run, outcome=Outcome((claim,))),)))
    assert "images smoothed" in Page(alone).text and "(a)" not in Page(alone).text


def test_columns_that_would_be_empty_are_left_out() -> None:
    claim = Claim("a", "nicely", "nicely", None, "reproduced")
    lost = Claim("a", "nicely", "", None, "not run", "the images cannot be had")
    number = Claim("a", 1.0, 1.0, 0.1, "reproduced")
    for claims, heads in (
        ((claim,), ["claim", "paper", "ours", "verdict"]),
        ((lost,), ["claim", "paper", "verdict"]),
        ((claim, number), ["claim", "paper", "ours", "tolerance", "verdict"]),
    ):
        html = render_gallery(GalleryResult((Reproduction("one", "p", "One", Outcome(claims)),)))
        assert re.findall(r'<th scope="col">([^<]*)</th>', html)[: len(heads)] == heads


def test_numbers_stand_on_the_right_and_words_on_the_left() -> None:
    rows = (
        ("0.05", "paper", "2,058", "8.7 / 8.57", "-1.2e-05", "\u00b1 0.1", "n.a."),
        ("0.05", "ours", "917", "n.a.", "3", "0.7 \u00b1 0.1", ""),
    )
    numeric = numeric_columns(Table("t", ("",) * 7, rows))
    assert numeric == [True, False, True, True, True, True, True]
    assert numeric_columns(Table("t", ("a",), (("q 50",), ("3-4",)))) == [False]
    outcome = Outcome((), tables=(Table("Errors", ("kernel", "error"), (("x", "1"),), "In all."),))
    html = render_gallery(GalleryResult((Reproduction("one", "p", "One", outcome),)))
    assert '<td>x</td><td class="n">1</td>' in html and "In all." in html


def _lines(axes) -> list[PathPatch]:
    """Return the contours of a panel: lines in the ink colour."""
    ink = tuple(int(PALETTE["ink"][i : i + 2], 16) / 255 for i in (1, 3, 5))
    return [p for p in axes.patches if np.allclose(p.get_edgecolor()[:3], ink)]
