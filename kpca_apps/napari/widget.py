"""The widget of napari: what to denoise and how, a preview of what is seen, and the whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Image
from napari.qt.threading import create_worker
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QWidget,
)

from kpca_apps.denoise.options import NOISES, QUALITIES, Options
from kpca_apps.errors import KpcaError
from kpca_apps.napari.layers import (
    Asked,
    CancelledError,
    denoised,
    found,
    plane_at,
    preview,
    seen_window,
)

if TYPE_CHECKING:
    import napari

STEPS = 1000  # of the bar that shows how far the work is
MEASURED = "measured"
OF_ONE_PLANE = "Show the image in 2-D, with its last two axes on the screen."


class DenoiseWidget(QWidget):
    """Denoise an image layer by kernel PCA, in the background."""

    advanced = Signal(float)  # the share of the work that is done, from its thread

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.viewer = napari_viewer
        self.unwanted = threading.Event()
        self.worker: Any = None
        self.layer = QComboBox()
        self.noise, self.quality = QComboBox(), QComboBox()
        self.noise.addItems(["auto", *NOISES[:-1]])
        self.quality.addItems(QUALITIES)
        self.quality.setCurrentText("balanced")
        self.sigma, self.strength = QDoubleSpinBox(), QDoubleSpinBox()
        self.sigma.setDecimals(4)
        self.sigma.setMaximum(1e9)
        self.sigma.setSpecialValueText(MEASURED)
        self.sigma.setToolTip("Standard deviation in the units of the image; 0 to measure it")
        self.strength.setRange(0.0, 1.0)
        self.strength.setSingleStep(0.1)
        self.strength.setValue(1.0)
        self.stack = QCheckBox("planes are one volume or film")
        self.try_it, self.run, self.cancel = map(QPushButton, ("Preview", "Denoise", "Cancel"))
        self.bar, self.said = QProgressBar(), QLabel()
        self.said.setTextFormat(Qt.TextFormat.PlainText)  # names of files are no markup
        self.bar.setRange(0, STEPS)
        self.said.setWordWrap(True)
        self.said.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        form, buttons = QFormLayout(self), QHBoxLayout()
        for name, field in (
            ("Image", self.layer),
            ("Kind of noise", self.noise),
            ("Noise level", self.sigma),
            ("Quality", self.quality),
            ("Strength", self.strength),
        ):
            form.addRow(name, field)
        form.addRow(self.stack)
        for button in (self.try_it, self.run, self.cancel):
            buttons.addWidget(button)
        form.addRow(buttons)
        form.addRow(self.bar)
        form.addRow(self.said)
        self.try_it.clicked.connect(self.show_preview)
        self.run.clicked.connect(self.denoise_all)
        self.cancel.clicked.connect(self.unwanted.set)
        self.advanced.connect(lambda share: self.bar.setValue(round(STEPS * share)))
        self.layer.currentTextChanged.connect(self._offer)
        for event in ("inserted", "removed", "reordered"):
            getattr(self.viewer.layers.events, event).connect(self._list_layers)
        self._list_layers()
        self._rest()

    def show_preview(self) -> None:
        """Denoise the part of the image that is seen, and show it as a layer of its own."""
        layer, asked = self._chosen(), self._asked(together=False)
        if layer is None or asked is None:
            return
        dims = self.viewer.dims
        if dims.ndisplay != 2 or tuple(dims.order) != tuple(sorted(dims.order)):
            self.said.setText(OF_ONE_PLANE)
            return
        data, corners = _finest(layer), np.asarray(layer.corner_pixels, float)
        if layer.multiscale:  # seen at one of its scales
            corners = corners * layer.downsample_factors[layer.data_level]
        step = tuple(dims.current_step[dims.ndim - layer.ndim :])
        plane = plane_at(data, step, rgb=layer.rgb)
        window = seen_window(corners[:, -2:].round().astype(int), plane.shape[:2])

        def show(result: Any) -> None:
            pixels, info = result
            corner = [*step[: layer.ndim - 2], window[0][0], window[1][0]]
            pixels = pixels.reshape((1,) * (layer.ndim - 2) + pixels.shape)
            self._show(f"{layer.name} (preview)", layer, pixels, corner)
            self.said.setText(found([info]))

        self._start(lambda heard: preview(plane, window, asked, heard), show)

    def denoise_all(self) -> None:
        """Denoise all planes of the image into a new layer."""
        layer, asked = self._chosen(), self._asked(together=True)
        if layer is None or asked is None:
            return
        data, rgb = _finest(layer), layer.rgb

        def show(result: Any) -> None:
            pixels, infos = result
            self._show(f"{layer.name} (denoised)", layer, pixels, [0] * layer.ndim)
            self.said.setText(found(infos))

        self._start(lambda heard: denoised(data, asked, heard, rgb=rgb), show)

    def _asked(self, *, together: bool) -> Asked | None:
        """Return what the fields say; None, having said why, where that cannot be done."""
        stack = together and self.stack.isEnabled() and self.stack.isChecked()
        try:
            options = Options(
                noise=self.noise.currentText(),
                quality=self.quality.currentText(),
                strength=self.strength.value(),
                pages=2 if stack else 1,  # refuses what is not for stacks
            )
        except KpcaError as error:
            self.said.setText(str(error))
            return None
        return Asked(options, self.sigma.value() or None, stack)

    def _start(
        self, work: Callable[[Callable[[float], None]], Any], show: Callable[..., None]
    ) -> None:
        """Have work done in the background, and its result shown; it may be cancelled."""
        self.unwanted.clear()
        self.said.setText("At work; the first time takes some 15 seconds longer.")

        def heard(share: float) -> None:
            if self.unwanted.is_set():
                raise CancelledError
            self.advanced.emit(share)

        self.worker = create_worker(work, heard, _start_thread=False, _ignore_errors=True)
        self.worker.returned.connect(show)
        self.worker.errored.connect(self._failed)
        self.worker.finished.connect(self._rest)
        self.cancel.setEnabled(True)
        self._offer_work()
        self.worker.start()

    def _failed(self, error: Exception) -> None:
        if isinstance(error, CancelledError):
            self.said.setText("Cancelled.")
        elif isinstance(error, KpcaError | MemoryError):
            self.said.setText(str(error) or "It takes more memory than there is.")
        else:
            raise error

    def _rest(self) -> None:
        self.bar.setValue(0)
        self.cancel.setEnabled(False)
        self._offer_work()

    def _offer_work(self) -> None:
        """Let work be started where there is an image, and none going on."""
        for button in (self.try_it, self.run):
            button.setEnabled(self.layer.count() > 0 and not self.cancel.isEnabled())

    def _show(self, name: str, like: Image, pixels: Any, corner: Sequence[int]) -> None:
        """Show pixels of an image, from a corner on, as they lie in it."""
        moved = like.data_to_world(corner) - np.asarray(like.data_to_world([0] * like.ndim))
        within = np.linalg.inv(like.affine.linear_matrix) @ moved
        if name in self.viewer.layers:
            self.viewer.layers.remove(name)
        self.viewer.add_image(
            pixels,
            name=name,
            rgb=like.rgb,
            scale=like.scale,
            rotate=like.rotate,
            shear=like.shear,
            translate=like.translate + within,
            affine=like.affine,
            colormap=None if like.rgb else like.colormap,
            contrast_limits=None if like.rgb else like.contrast_limits,
            gamma=like.gamma,
        )

    def _chosen(self) -> Image | None:
        name = self.layer.currentText()
        return self.viewer.layers[name] if name in self.viewer.layers else None

    def _list_layers(self, _: Any = None) -> None:
        """List the images there are, and keep the one that was chosen."""
        chosen = self.layer.currentText()
        names = [one.name for one in self.viewer.layers if isinstance(one, Image)]
        self.layer.clear()
        self.layer.addItems(names)
        if chosen in names:
            self.layer.setCurrentText(chosen)
        self._offer_work()

    def _offer(self, _: str = "") -> None:
        """Offer to take planes for a stack where there are several."""
        layer = self._chosen()
        self.stack.setEnabled(layer is not None and layer.ndim > 2)


def _finest(layer: Image) -> Any:
    return layer.data[0] if layer.multiscale else layer.data
