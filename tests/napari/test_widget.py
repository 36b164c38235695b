"""The widget in napari's viewer: a preview, all planes in the background, and cancelling."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("napari", reason='napari is not installed: pip install "kpca-apps[napari]"')
pytest.importorskip("pytestqt", reason="pytest-qt is not installed, which napari's tests need")

from kpca_apps.napari.widget import NEEDS_2D, DenoiseWidget
from tests.napari.test_layers import FILM

pytestmark = [
    pytest.mark.release,
    # Warnings of napari and its dependencies are no errors.
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture
def shown(make_napari_viewer: Any) -> Iterator[tuple[Any, DenoiseWidget]]:
    viewer = make_napari_viewer()
    viewer.add_image(FILM, name="film", scale=(1, 0.5, 0.5), translate=(0, 10, 20))
    _, widget = viewer.window.add_plugin_dock_widget("kpca-apps", "Denoise (kernel PCA)")
    widget.quality.setCurrentText("draft")
    yield viewer, widget


def wait(qtbot: Any, widget: DenoiseWidget) -> None:
    qtbot.waitUntil(lambda: not widget.cancel.isEnabled(), timeout=120_000)


def test_the_part_that_is_seen_is_shown_where_it_lies(shown: Any, qtbot: Any) -> None:
    viewer, widget = shown
    viewer.dims.set_point(0, 2)
    film = viewer.layers["film"]
    film.corner_pixels = np.array([[2, 16, 24], [2, 80, 104]])
    widget.show_preview()
    wait(qtbot, widget)
    made = viewer.layers["film (preview)"]
    assert made.data.shape == (1, 64, 80)
    assert np.allclose(made.data_to_world((0, 0, 0)), film.data_to_world((2, 16, 24)))
    assert widget.message.text().startswith("Noise: gaussian, level ")
    assert not np.array_equal(made.data[0], FILM[2, 16:80, 24:104])
    viewer.dims.ndisplay = 3
    widget.show_preview()
    assert widget.message.text() == NEEDS_2D


def test_all_planes_are_denoised_in_the_background(shown: Any, qtbot: Any) -> None:
    viewer, widget = shown
    widget.sigma.setValue(8)
    widget.stack.setChecked(True)
    widget.denoise_all()
    assert widget.cancel.isEnabled() and not widget.run.isEnabled()
    wait(qtbot, widget)
    made = viewer.layers["film (denoised)"]
    assert made.data.shape == FILM.shape and made.data.dtype == FILM.dtype
    assert np.array_equal(made.scale, viewer.layers["film"].scale)
    assert widget.message.text() == "Noise: gaussian, level 8."


def test_work_that_is_not_wanted_ends(shown: Any, qtbot: Any) -> None:
    viewer, widget = shown
    widget.denoise_all()
    widget.cancel.click()
    wait(qtbot, widget)
    assert widget.message.text() == "Cancelled."
    assert [layer.name for layer in viewer.layers] == ["film"]


def test_impossible_settings_are_reported(shown: Any, qtbot: Any) -> None:
    viewer, widget = shown
    widget.stack.setChecked(True)
    widget.noise.setCurrentText("camera")
    widget.denoise_all()
    assert "a stack is only denoised for" in widget.message.text()
    viewer.layers.clear()
    assert not widget.run.isEnabled()
    viewer.add_image(np.full((32, 32), np.inf, np.float32), contrast_limits=(0, 1))
    widget.noise.setCurrentText("auto")
    widget.denoise_all()
    wait(qtbot, widget)
    assert "inf at row 0, column 0" in widget.message.text()


def test_the_plugin_is_described_as_napari_wants_it() -> None:
    import kpca_apps.napari

    manifests = pytest.importorskip("npe2").PluginManifest
    manifest = manifests.from_file(Path(kpca_apps.napari.__file__).parent / "napari.yaml")
    assert manifest.name == "kpca-apps" and manifest.contributions.widgets
