"""An image of any dtype and layout as float32 planes on the scale 0..255, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError

__all__ = ["Picture", "read_picture"]

SCALE = 255.0
LEAST_RANGE, LARGEST_RANGE = 1e-30, 1e30  # beyond, single precision would over- or underflow
MOST_BEYOND = 1e6  # data ranges an image may span, for a like reason
NARROW = 16  # bits: integers no wider than this fill the range of their dtype


@dataclass(frozen=True)
class Picture:
    """What of an image is denoised, and what it takes to put the result back.

    Attributes
    ----------
    planes : ndarray of shape (c, h, w), float32
        One grey plane, or red, green and blue: ``(values - lowest) * 255 / data_range``.
    colours : ndarray of shape (c, h, w)
        The values themselves.
    alpha : ndarray of shape (h, w) or None
        Left as it is.
    channel_axis : int or None
    data_range, lowest : float
        In the units of the image.
    """

    planes: NDArray[np.float32]
    colours: NDArray[Any]
    alpha: NDArray[Any] | None
    channel_axis: int | None
    data_range: float
    lowest: float

    @property
    def unit(self) -> float:
        """How much of the scale 0..255 one unit of the image is."""
        return SCALE / self.data_range

    def restored(self, planes: NDArray[np.float32]) -> NDArray[np.floating]:
        """Return denoised planes as an image of the shape, units and channels given.

        Parameters
        ----------
        planes : ndarray of shape (c, h, w)

        Returns
        -------
        ndarray
            float32 where that holds every value of the image's dtype, else float64. Values of an
            integer image stay within its dtype's range; those of a float image are not clipped.
            Where a plane was not changed, the value is that of the image, to the last bit.
        """
        dtype = self.colours.dtype
        out_type = np.result_type(dtype, np.float32)
        channels = len(planes) + (self.alpha is not None)
        out = np.empty((channels, *planes.shape[1:]), out_type)
        for channel, plane in zip(out, planes, strict=False):
            np.multiply(plane, 1.0 / self.unit, out=channel)
            channel += self.lowest
        if dtype.kind in "ui":
            limits = np.iinfo(dtype)
            np.clip(out, limits.min, limits.max, out=out)
        for channel, plane, before, value in zip(
            out, planes, self.planes, self.colours, strict=False
        ):
            np.copyto(channel, value, where=plane == before, casting="unsafe")
        if self.alpha is not None:
            out[-1] = self.alpha
        if self.channel_axis is None:
            return np.asarray(out[0])
        return np.ascontiguousarray(np.moveaxis(out, 0, self.channel_axis))


def read_picture(
    image: NDArray[Any], *, data_range: float | None = None, channel_axis: int | None = None
) -> Picture:
    """Check an image and return its planes.

    Parameters
    ----------
    image : ndarray of shape (h, w), or with an axis of 1, 3 or 4 channels
        Any real dtype; not changed.
    data_range : float, optional
        Default: the range of an integer dtype of 8 or 16 bits; 1 for booleans and for floats that
        all lie in [0, 1]; else the largest value minus the smallest.
    channel_axis : int, optional
        Which axis holds the channels; needed for three-dimensional images.

    Returns
    -------
    Picture

    Raises
    ------
    InputError
        The image is empty, not real, not two-dimensional with or without channels, or holds NaN or
        infinite values (the first such pixel is named).
    ConfigError
        ``data_range`` is not from 1e-30 to 1e30, or ``channel_axis`` is not an axis.

    Examples
    --------
    >>> picture = read_picture(np.full((4, 5), 51, np.uint8))
    >>> picture.data_range, picture.planes.shape, float(picture.planes.max())
    (255.0, (1, 4, 5), 51.0)
    """
    if isinstance(image, np.ma.MaskedArray):
        raise InputError(
            "image is a masked array, and masked pixels cannot be left out: fill them first"
        )
    image = np.asarray(image)
    if image.dtype.kind not in "buif":
        raise InputError(f"image has dtype {image.dtype}; give real numbers (integer or float)")
    if image.size == 0:
        raise InputError(f"image of shape {image.shape} has no pixels")
    channels, axis = _channels_first(image, channel_axis)
    _refuse_non_finite(channels)
    colours, alpha = (channels[:3], channels[3]) if len(channels) == 4 else (channels, None)
    span, lowest = _range(colours, data_range)
    planes = np.empty(colours.shape, np.float32)
    for plane, channel in zip(planes, colours, strict=True):
        np.multiply(channel - np.float64(lowest), SCALE / span, out=plane, casting="unsafe")
    return Picture(planes, colours, alpha, axis, span, lowest)


def _channels_first(
    image: NDArray[Any], channel_axis: int | None
) -> tuple[NDArray[Any], int | None]:
    """Return a view of shape (c, h, w), and the axis the channels came from."""
    if channel_axis is None:
        if image.ndim == 2:
            return image[np.newaxis], None
        raise InputError(
            f"image has shape {image.shape} and channel_axis is None, so it is not clear which "
            "axis holds the channels: give channel_axis (-1 for height x width x channels), or "
            "one image of two dimensions at a time"
        )
    if image.ndim != 3:
        raise InputError(
            f"image has shape {image.shape} and channel_axis={channel_axis}: an image with "
            "channels has three dimensions; leave channel_axis out for a grey image"
        )
    if not -3 <= channel_axis < 3:
        raise ConfigError(f"channel_axis is {channel_axis}; for three dimensions give -3 to 2")
    channels = np.moveaxis(image, channel_axis, 0)
    if len(channels) not in (1, 3, 4):
        raise InputError(
            f"image has {len(channels)} channels along axis {channel_axis}; give 1 (grey), 3 (RGB) "
            "or 4 (RGB and alpha), or denoise each channel as a grey image"
        )
    return channels, channel_axis


def _refuse_non_finite(channels: NDArray[Any]) -> None:
    if channels.dtype.kind != "f":
        return
    for channel, plane in enumerate(channels):
        # A finite sum means finite terms, unless huge terms overflowed; only then look at each.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(plane.sum()) or np.isfinite(plane).all():
                continue
        row, column = np.argwhere(~np.isfinite(plane))[0]
        where = f", channel {channel}" if len(channels) > 1 else ""
        raise InputError(
            f"image holds {plane[row, column]} at row {row}, column {column}{where}; "
            "replace such pixels first"
        )


def _refuse_range(colours: NDArray[Any], data_range: float) -> None:
    if not LEAST_RANGE <= data_range <= LARGEST_RANGE:
        raise ConfigError(
            f"data_range is {data_range:g}; give a number from {LEAST_RANGE:g} to {LARGEST_RANGE:g}"
        )
    low, high = float(colours.min()), float(colours.max())
    if max(high - low, abs(low), abs(high)) > MOST_BEYOND * data_range:
        raise InputError(
            f"image holds values from {low:g} to {high:g}, far beyond the data range of "
            f"{data_range:g}: give the data range in the units of the image"
        )


def _range(colours: NDArray[Any], data_range: float | None) -> tuple[float, float]:
    """Return the data range and the value that becomes 0 on the scale 0..255."""
    if data_range is not None:
        _refuse_range(colours, data_range)
    kind, bits = colours.dtype.kind, 8 * colours.dtype.itemsize
    if kind == "b":
        return float(data_range or 1.0), 0.0
    if kind in "ui" and bits <= NARROW:
        limits = np.iinfo(colours.dtype)
        return float(data_range or (limits.max - limits.min)), float(limits.min)
    low, high = float(colours.min()), float(colours.max())
    if kind == "f" and low >= 0.0 and high <= 1.0:
        return float(data_range or 1.0), 0.0
    span = high - low
    # Planes, previews and most results are of single precision, and must not overflow either.
    if not span * SCALE < float(np.finfo(np.float32).max):
        raise InputError(f"image spans {low:g} to {high:g}, too wide to compute with; rescale it")
    return float(data_range or span or 1.0), low
