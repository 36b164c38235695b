"""The napari widget: options, a preview of the visible part, and denoising of all planes."""

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
    CancelledError,
    DenoiseRequest,
    denoise_planes,
    describe_noise,
    plane_at,
    preview,
    visible_window,
)

if TYPE_CHECKING:
    import napari

STEPS = 1000  # number of steps of the progress bar
MEASURED = "measured"
NEEDS_2D = "Show the image in 2-D, with its last two axes on the screen."


class DenoiseWidget(QWidget):
    """Denoise an image layer by kernel PCA, in the background."""

    advanced = Signal(float)  # share of work done, emitted from the worker thread

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.viewer = napari_viewer
        self.cancelled = threading.Event()
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
        self.try_preview, self.run, self.cancel = map(QPushButton, ("Preview", "Denoise", "Cancel"))
        self.bar, self.message = QProgressBar(), QLabel()
        self.message.setTextFormat(Qt.TextFormat.PlainText)  # file names are not markup
        self.bar.setRange(0, STEPS)
        self.message.setWordWrap(True)
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
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
        for button in (self.try_preview, self.run, self.cancel):
            buttons.addWidget(button)
        form.addRow(buttons)
        form.addRow(self.bar)
        form.addRow(self.message)
        self.try_preview.clicked.connect(self.show_preview)
        self.run.clicked.connect(self.denoise_all)
        self.cancel.clicked.connect(self.cancelled.set)
        self.advanced.connect(lambda share: self.bar.setValue(round(STEPS * share)))
        self.layer.currentTextChanged.connect(self._update_stack_option)
        for event in ("inserted", "removed", "reordered"):
            getattr(self.viewer.layers.events, event).connect(self._list_layers)
        self._list_layers()
        self._reset()

    def show_preview(self) -> None:
        """Denoise the visible part of the image, and show it as a new layer."""
        layer, request = self._selected_layer(), self._read_request(together=False)
        if layer is None or request is None:
            return
        dims = self.viewer.dims
        if dims.ndisplay != 2 or tuple(dims.order) != tuple(sorted(dims.order)):
            self.message.setText(NEEDS_2D)
            return
        data, corners = _finest(layer), np.asarray(layer.corner_pixels, float)
        if layer.multiscale:  # corners refer to the displayed scale
            corners = corners * layer.downsample_factors[layer.data_level]
        step = tuple(dims.current_step[dims.ndim - layer.ndim :])
        plane = plane_at(data, step, rgb=layer.rgb)
        window = visible_window(corners[:, -2:].round().astype(int), plane.shape[:2])

        def show(result: Any) -> None:
            pixels, info = result
            corner = [*step[: layer.ndim - 2], window[0][0], window[1][0]]
            pixels = pixels.reshape((1,) * (layer.ndim - 2) + pixels.shape)
            self._add_layer(f"{layer.name} (preview)", layer, pixels, corner)
            self.message.setText(describe_noise([info]))

        self._start(lambda report: preview(plane, window, request, report), show)

    def denoise_all(self) -> None:
        """Denoise all planes of the image into a new layer."""
        layer, request = self._selected_layer(), self._read_request(together=True)
        if layer is None or request is None:
            return
        data, rgb = _finest(layer), layer.rgb

        def show(result: Any) -> None:
            pixels, infos = result
            self._add_layer(f"{layer.name} (denoised)", layer, pixels, [0] * layer.ndim)
            self.message.setText(describe_noise(infos))

        self._start(lambda report: denoise_planes(data, request, report, rgb=rgb), show)

    def _read_request(self, *, together: bool) -> DenoiseRequest | None:
        """Return the options in the fields, or show a message and return None if invalid."""
        stack = together and self.stack.isEnabled() and self.stack.isChecked()
        try:
            options = Options(
                noise=self.noise.currentText(),
                quality=self.quality.currentText(),
                strength=self.strength.value(),
                pages=2 if stack else 1,  # with 2, `Options` refuses what stacks do not support
            )
        except KpcaError as error:
            self.message.setText(str(error))
            return None
        return DenoiseRequest(options, self.sigma.value() or None, stack)

    def _start(
        self, work: Callable[[Callable[[float], None]], Any], show: Callable[..., None]
    ) -> None:
        """Run work in the background, where users can cancel it, and show its result."""
        self.cancelled.clear()
        self.message.setText("At work; the first time takes some 15 seconds longer.")

        def report(share: float) -> None:
            if self.cancelled.is_set():
                raise CancelledError
            self.advanced.emit(share)

        self.worker = create_worker(work, report, _start_thread=False, _ignore_errors=True)
        self.worker.returned.connect(show)
        self.worker.errored.connect(self._failed)
        self.worker.finished.connect(self._reset)
        self.cancel.setEnabled(True)
        self._update_buttons()
        self.worker.start()

    def _failed(self, error: Exception) -> None:
        if isinstance(error, CancelledError):
            self.message.setText("Cancelled.")
        elif isinstance(error, KpcaError | MemoryError):
            self.message.setText(str(error) or "It takes more memory than there is.")
        else:
            raise error

    def _reset(self) -> None:
        self.bar.setValue(0)
        self.cancel.setEnabled(False)
        self._update_buttons()

    def _update_buttons(self) -> None:
        for button in (self.try_preview, self.run):
            button.setEnabled(self.layer.count() > 0 and not self.cancel.isEnabled())

    def _add_layer(self, name: str, like: Image, pixels: Any, corner: Sequence[int]) -> None:
        """Show a part of an image as a new layer, placed at `corner` of the image."""
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

    def _selected_layer(self) -> Image | None:
        name = self.layer.currentText()
        return self.viewer.layers[name] if name in self.viewer.layers else None

    def _list_layers(self, _: Any = None) -> None:
        """List the image layers, and keep the selection."""
        chosen = self.layer.currentText()
        names = [layer.name for layer in self.viewer.layers if isinstance(layer, Image)]
        self.layer.clear()
        self.layer.addItems(names)
        if chosen in names:
            self.layer.setCurrentText(chosen)
        self._update_buttons()

    def _update_stack_option(self, _: str = "") -> None:
        layer = self._selected_layer()
        self.stack.setEnabled(layer is not None and layer.ndim > 2)


def _finest(layer: Image) -> Any:
    return layer.data[0] if layer.multiscale else layer.data
