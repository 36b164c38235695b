import io
import math

import numpy as np
import pytest
from matplotlib.axes import Axes
from PIL import Image

from kpca_apps.denoise.result import DenoisingResult, NoiseLaw
from kpca_apps.report.denoising.figures import MOST_NAMED, denoising_drawings, denoising_figures
from kpca_apps.report.denoising.text import has_figures
from tests.report.denoising_examples import compared, counted, failed, image, law, many


def marks(result: DenoisingResult, name: str) -> dict[str, list[float]]:
    """Return the values marked in a figure by method, from the lowest line up."""
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


def test_noise_is_shown_beside_the_removed_part() -> None:
    drawn = marks(TWO, "noise")
    assert drawn["noise level"] == pytest.approx([1000 / 255, 2000 / 255])
    assert drawn["removed"] == pytest.approx([900 / 255, 1800 / 255])
    assert names(TWO, "noise") == ["b.png", "a.png"]
    speckle = DenoisingResult((image(noise="speckle", sigma=0.1), image()))
    assert sum(map(math.isnan, marks(speckle, "noise")["noise level"])) == 1


def test_only_available_data_are_drawn() -> None:
    assert set(denoising_drawings(DenoisingResult((image(),)))) == set()
    assert set(denoising_drawings(DenoisingResult((image(), image("b"))))) == {"noise"}
    assert set(denoising_drawings(DenoisingResult((failed(),)))) == set()
    endless = image(comparison=compared(20.0, math.inf))
    assert set(denoising_drawings(DenoisingResult((endless,)))) == set()


def test_many_images_have_no_names_and_no_more_room() -> None:
    assert names(many(MOST_NAMED + 1), "noise") == []
    figures = [denoising_drawings(many(n))["noise"].figure for n in (MOST_NAMED + 1, 400)]
    assert figures[0].get_figheight() == figures[1].get_figheight()


def law_axes(*laws: NoiseLaw) -> Axes:
    (axes,) = denoising_drawings(DenoisingResult((counted("a", *laws),)))["law_0001"].figure.axes
    return axes


def test_a_law_is_drawn_with_its_points_and_its_interval() -> None:
    found = law(interval=(0.8, 1.3))
    axes = law_axes(found)
    line, _, points = axes.lines
    np.testing.assert_allclose(line.get_xdata(), [4, 80])
    np.testing.assert_allclose(line.get_ydata(), [3.76 * 4 - 12.45, 3.76 * 80 - 12.45])
    np.testing.assert_allclose(points.get_xdata(), found.brightness)
    np.testing.assert_allclose(points.get_ydata(), found.variances)
    (band,) = axes.collections
    (corners,) = (path.vertices for path in band.get_paths())
    assert corners[:, 1].max() == pytest.approx(1.3 * (3.76 * 80 - 12.45))
    right = corners[np.isclose(corners[:, 0], 80), 1]
    assert right.min() == pytest.approx(0.8 * (3.76 * 80 - 12.45))
    assert line.get_label() == "variance = 3.76 x - 12.45"


def test_texture_far_above_a_law_does_not_press_it_to_the_floor() -> None:
    lively = law(variances=(*law().variances[:-1], 1e5))
    axes = law_axes(lively)
    assert axes.get_ylim()[1] < 1000
    _, above, points = axes.lines
    assert len(points.get_xdata()) == len(lively.variances) - 1
    assert list(above.get_xdata()) == [80] and above.get_ydata()[0] == axes.get_ylim()[1]
    result = DenoisingResult((counted("a", lively),))
    assert "triangles: still more" in denoising_drawings(result)["law_0001"].caption


def test_channels_are_distinguished_by_more_than_colour() -> None:
    axes = law_axes(law(), law(3.0, 5.0), law(2.0, 1.0))
    points = axes.lines[2::3]
    assert len({line.get_marker() for line in points}) == 3
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["red", "green", "blue"]
    assert axes.get_ylim()[1] > 3.76 * 80 - 12.45


def test_laws_are_drawn_where_they_are_sure_and_not_too_many() -> None:
    sure = [counted(f"{n:02d}", law(1.0 + n)) for n in range(20)]
    unsure = counted("unsure", law(established=False))
    drawn = denoising_drawings(DenoisingResult((unsure, failed(), image(), *sure)))
    numbers = [int(name[4:]) for name in drawn if name.startswith("law_")]
    # Image 1 is `unsure` and image 2 is `image()`: neither has a reliable law. The failed image is
    # not numbered, so the images of `sure` are 3 to 22.
    assert numbers == [*range(3, 9), *range(17, 23)]
    assert has_figures(DenoisingResult((counted(),)))
    assert not has_figures(DenoisingResult((unsure,)))


def test_files_are_pictures_the_same_for_the_same_result() -> None:
    files = denoising_figures(TWO)
    assert set(files) == {"noise", "psnr"}
    assert denoising_figures(TWO) == files
    with Image.open(io.BytesIO(files["psnr"])) as picture:
        assert picture.width > 1000
        assert np.asarray(picture.convert("L")).min() < 120
