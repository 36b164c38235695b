"""Figures of a batch: what is drawn is what was measured."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from PIL import Image

from kpca_apps.denoise.result import DenoisingResult
from kpca_apps.report.denoising.figures import MOST_NAMED, denoising_drawings, denoising_figures
from tests.report.denoising_examples import compared, failed, image, many


def marks(result: DenoisingResult, name: str) -> dict[str, list[float]]:
    """Return the values marked in a figure, by method, from the lowest line up."""
    (axes,) = denoising_drawings(result)[name].figure.axes
    return {str(line.get_label()): [float(x) for x in line.get_xdata()] for line in axes.lines}


def names(result: DenoisingResult, name: str) -> list[str]:
    (axes,) = denoising_drawings(result)[name].figure.axes
    return [label.get_text() for label in axes.get_yticklabels()]


TWO = DenoisingResult(
    (
        image("a.png", 20.0, comparison=compared(20.0, 31.0, nl_means=29.0)),
        image("b.png", 10.0, comparison=compared(25.0, 33.0, nl_means=33.5)),
        failed(),
    )
)


def test_ratios_stand_one_line_an_image_the_best_on_top() -> None:
    assert marks(TWO, "psnr") == {
        "noisy": [20.0, 25.0],
        "non-local means": [29.0, 33.5],
        "kernel PCA": [31.0, 33.0],
    }
    assert names(TWO, "psnr") == ["a.png", "b.png"]


def test_noise_stands_beside_what_was_taken_out() -> None:
    drawn = marks(TWO, "noise")
    assert drawn["noise level"] == pytest.approx([1000 / 255, 2000 / 255])
    assert drawn["removed"] == pytest.approx([900 / 255, 1800 / 255])
    assert names(TWO, "noise") == ["b.png", "a.png"]
    speckle = DenoisingResult((image(noise="speckle", sigma=0.1), image()))
    assert sum(map(math.isnan, marks(speckle, "noise")["noise level"])) == 1


def test_only_what_there_is_is_drawn() -> None:
    assert set(denoising_drawings(DenoisingResult((image(),)))) == set()
    assert set(denoising_drawings(DenoisingResult((image(), image("b"))))) == {"noise"}
    assert set(denoising_drawings(DenoisingResult((failed(),)))) == set()
    endless = image(comparison=compared(20.0, math.inf))
    assert set(denoising_drawings(DenoisingResult((endless,)))) == set()


def test_many_images_have_no_names_and_no_more_room() -> None:
    result = many(MOST_NAMED + 1)
    assert names(result, "noise") == []
    figures = [denoising_drawings(many(n))["noise"].figure for n in (MOST_NAMED + 1, 400)]
    assert figures[0].get_figheight() == figures[1].get_figheight()


def test_files_are_pictures_the_same_for_the_same_result() -> None:
    files = denoising_figures(TWO)
    assert set(files) == {"noise", "psnr"}
    assert denoising_figures(TWO) == files
    with Image.open(io.BytesIO(files["psnr"])) as picture:
        assert picture.width > 1000
        assert np.asarray(picture.convert("L")).min() < 120
