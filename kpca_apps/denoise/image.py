"""An image of any dtype and layout as float32 planes on the scale 0..255, and back.

Colours become one plane of luminance and two of colour, by a rotation: white noise of one deviation
in red, green and blue is white noise of the same deviation in each of the three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError

SCALE = 255.0
LEAST_RANGE, LARGEST_RANGE = 1e-30, 1e30  # beyond, single precision would over- or underflow
MOST_BEYOND = 1e6  # data ranges an image may span, for a like reason
NARROW = 2  # bytes: integers no wider fill the range of their dtype

# Rows: luminance, red against blue, green against both. Orthonormal.
OPPONENT = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
OPPONENT /= np.linalg.norm(OPPONENT, axis=1, keepdims=True)


@dataclass(frozen=True)
class Picture:
    """What of an image is denoised, and what it takes to put the result back."""

    # (c, h, w), one grey plane, or red, green and blue: (values - lowest) * unit
    planes: NDArray[np.float32]
    colours: NDArray[Any]  # (c, h, w), the values themselves
    alpha: NDArray[Any] | None  # (h, w), left as it is
    channel_axis: int | None
    data_range: float  # in the units of the image, as `lowest`
    lowest: float
    unit: float  # how much of the scale 0..255 one unit of the image is


def read_picture(
    image: NDArray[Any], *, data_range: float | None = None, channel_axis: int | None = None
) -> Picture:
    """Check an image and return its planes; the arguments are those of `denoise_kpca`.

    An `InputError` says so where the image is empty, not real, not two-dimensional with or without
    channels, or holds NaN or infinite values (the first such pixel is named); a `ConfigError` where
    `data_range` cannot be, or `channel_axis` is not an axis.
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
    for number, plane in enumerate(channels if channels.dtype.kind == "f" else ()):
        # A finite sum means finite terms, unless huge terms overflowed; only then look at each.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(plane.sum()) or np.isfinite(plane).all():
                continue
        row, column = np.argwhere(~np.isfinite(plane))[0]
        where = f", channel {number}" if len(channels) > 1 else ""
        raise InputError(
            f"image holds {plane[row, column]} at row {row}, column {column}{where}; "
            "replace such pixels first"
        )
    colours, alpha = (channels[:3], channels[3]) if len(channels) == 4 else (channels, None)
    low, high = float(colours.min()), float(colours.max())
    if data_range is not None:
        if not LEAST_RANGE <= data_range <= LARGEST_RANGE:
            raise ConfigError(
                f"data_range is {data_range:g}; "
                f"give a number from {LEAST_RANGE:g} to {LARGEST_RANGE:g}"
            )
        if max(high - low, abs(low), abs(high)) > MOST_BEYOND * data_range:
            raise InputError(
                f"image holds values from {low:g} to {high:g}, far beyond the data range of "
                f"{data_range:g}: give the data range in the units of the image"
            )
    span, lowest = value_range(colours, data_range)
    # Planes, previews and most results are of single precision, and must not overflow either.
    if not span * SCALE < float(np.finfo(np.float32).max):
        raise InputError(f"image spans {low:g} to {high:g}, too wide to compute with; rescale it")
    planes = np.empty(colours.shape, np.float32)
    for plane, channel in zip(planes, colours, strict=True):
        np.multiply(channel - np.float64(lowest), SCALE / span, out=plane, casting="unsafe")
    return Picture(planes, colours, alpha, axis, span, lowest, SCALE / span)


def dtype_range(dtype: np.dtype[Any]) -> float | None:
    """Return the range of values a dtype stands for: integers of 8 or 16 bits and booleans.

    None for floats and wider integers, whose values seldom fill what they can hold.
    """
    if dtype.kind == "b":
        return 1.0
    if dtype.kind in "ui" and dtype.itemsize <= NARROW:
        return float(np.iinfo(dtype).max) - float(np.iinfo(dtype).min)
    return None


def value_range(pixels: NDArray[Any], data_range: float | None = None) -> tuple[float, float]:
    """Return the range of values of an image, and the value that is black: the one rule there is.

    The range given; that of the dtype; 1 for floats that all lie in [0, 1]; else the largest value
    minus the smallest (1 if they are equal).
    """
    by_dtype = dtype_range(pixels.dtype)
    if by_dtype is not None:
        lowest = float(np.iinfo(pixels.dtype).min) if pixels.dtype.kind in "ui" else 0.0
        return float(data_range or by_dtype), lowest
    low, high = float(pixels.min()), float(pixels.max())
    if pixels.dtype.kind == "f" and low >= 0.0 and high <= 1.0:
        return float(data_range or 1.0), 0.0
    return float(data_range or (high - low) or 1.0), low


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


def to_opponent(rgb: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return luminance, red, green and blue over the root of 3, and two colour differences."""
    return _mixed(OPPONENT, rgb)


def from_opponent(planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the red, green and blue of which `to_opponent` made the planes."""
    return _mixed(OPPONENT.T, planes)


def noise_in_opponent(sigma: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the deviations in the opponent planes of independent noise in red, green and blue."""
    return np.asarray(np.sqrt(OPPONENT**2 @ np.square(sigma)))


def _mixed(matrix: NDArray[np.float64], planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return sums of planes with the weights in each row, added in one order for all pixels."""
    mixed = np.empty_like(planes)
    for out, row in zip(mixed, matrix.astype(np.float32), strict=True):
        np.multiply(planes[0], row[0], out=out)
        out += row[1] * planes[1]
        out += row[2] * planes[2]
    return mixed
