import re
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from kpca_apps.report.drawing import (
    PALETTE,
    Drawing,
    drawable,
    house_style,
    new_axes,
    settle,
    to_png,
    to_svg,
)
from kpca_apps.report.novelty.figures import evaluation_drawings
from tests.report import examples
from tests.report.pages import screening_drawings

FIGURES = ("plane", "scores", "threshold", "map", "scree", "contours", "roc", "pr")


@pytest.fixture(scope="module")
def drawings() -> dict[str, Drawing]:
    result = examples.huge()
    ((roc, precision_recall),) = evaluation_drawings(result.evaluations)
    return screening_drawings(result) | {"roc": roc, "pr": precision_recall}


def test_every_figure_is_drawn(drawings: dict[str, Drawing]) -> None:
    assert set(drawings) == set(FIGURES)
    assert all(len(drawing.caption) > 60 for drawing in drawings.values())


@pytest.mark.parametrize("name", FIGURES)
def test_svg_fits_a_page(drawings: dict[str, Drawing], name: str) -> None:
    svg = str(to_svg(drawings[name]))
    root = ElementTree.fromstring(svg)
    assert root.tag == "svg"
    assert "width" not in root.attrib  # the page sets the width
    assert root.attrib["role"] == "img"
    assert not re.search(r"#[0-9a-f]{6}\b", svg), "a colour the theme cannot change"
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids))
    assert all(i.startswith(f"{name}-") for i in ids)
    targets = re.findall(r'(?:url\(|href=")#([^")]+)', svg)
    assert set(targets) <= set(ids)
    assert len(svg) < 150_000


def test_png_has_twice_the_pixels_of_the_screen() -> None:
    png = to_png(screening_drawings(examples.screening())["scores"])
    assert png.startswith(b"\x89PNG")
    width = int.from_bytes(png[16:20], "big")
    assert width == round(4.9 * 96 * 2) or width == int(4.9 * 96 * 2)
    assert b"Software" not in png


def test_user_settings_neither_matter_nor_change() -> None:
    before = str(to_svg(screening_drawings(examples.screening())["scree"]))
    with mpl.rc_context({"lines.linewidth": 20.0, "font.size": 40.0}):
        assert str(to_svg(screening_drawings(examples.screening())["scree"])) == before
        assert mpl.rcParams["font.size"] == 40.0


def test_text_of_a_table_is_text() -> None:
    with house_style():
        figure, (axes,) = new_axes()
        axes.set_xlabel(drawable(examples.HOSTILE))
        axes.set_ylabel(drawable("$x^2$ " + PALETTE["ink"]))
    svg = str(to_svg(Drawing("figure", "title <b>", 'caption "', figure)))
    texts = [element.text or "" for element in ElementTree.fromstring(svg).iter("text")]
    assert any("$x^2$ #1d1d21" in text for text in texts)
    assert "<script" not in svg and "\u202e" not in svg and "\x0b" not in svg


@pytest.mark.parametrize("rows", [1, 2])
def test_axes_get_the_room_that_a_constrained_layout_gives_them(rows: int) -> None:
    places = []
    for lay_out in (settle, lambda figure: figure.get_layout_engine().execute(figure)):
        figure, axes = new_axes(4.9, 3.5, rows=rows)
        for number, ax in enumerate(axes):
            ax.plot([0, 1, 2], [0, -1234.5 * (number + 1), 7])
            ax.set(xlabel="a column", ylabel="what it is\nin two lines", title="above" * number)
        lay_out(figure)
        places.append([ax.get_window_extent().extents for ax in axes])
    np.testing.assert_allclose(*places, atol=1.0)
