"""Convert images of any axes, type and range to planes on one scale, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from kpca_apps.denoise.masks import Mask, both, continued, data_pixels, imputed, padding_in
from kpca_apps.denoise.options import LARGEST_RANGE, LEAST_RANGE, Window
from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import shown
from kpca_apps.options import is_number

SCALE = 255.0  # largest value in planes: the range of an image is scaled to 0..255
# The used range ends at these quantiles, so that a star or a hot spot (below 1 %) cannot widen it.
USED = (0.015, 0.985)
SEEN = 65_536  # about as many pixels are read to find the used range
NARROWEST = 1e-290  # least range: in narrower ranges float64 loses digits, or inverses overflow
# A plane on the scale 0..255 counts as constant if its range is below EVEN. Noise up to 1e-3 is
# ignored anyway, and squares of much smaller values than EVEN underflow in single precision.
EVEN = 1e-6
# Largest span or magnitude of an image, in data ranges: above it, single precision fails.
MOST_BEYOND = 1e6
# Rounding to integers loses light if it changes means over windows of width AROUND by more than
# LOST times the mean light (root mean square). Example: smooth pictures with a mean below 3 counts.
LOST, AROUND = 0.1, 8
# Steps of thresholds from row to row and from column to column, which fill [0, 1) evenly in every
# neighbourhood. They are powers of the inverse of the plastic number (Roberts 2018, "The
# unreasonable effectiveness of quasirandom sequences").
DITHER = (0.5698402909980532, 0.7548776662466927)
NARROW = 2  # unsigned integers of at most this many bytes are taken to fill their dtype's range
LEAST_OF_UNIT = 0.1  # floats spanning a smaller share of [0, 1] are in other units, such as metres


@dataclass(frozen=True)
class Axes:
    """Axes of channels and pages of an image, counted from 0; None for a missing axis."""

    channel: int | None
    stack: int | None

    @classmethod
    def of(cls, shape: tuple[int, ...], channel_axis: Any, stack_axis: Any) -> Axes:
        """Return both axes, checked against the shape of the image."""
        expected = 2 + (channel_axis is not None) + (stack_axis is not None)
        if len(shape) != expected:
            raise InputError(_wrong_shape(shape, channel_axis, stack_axis, expected))
        found: dict[str, int] = {}
        for name, axis in (("stack_axis", stack_axis), ("channel_axis", channel_axis)):
            if axis is None:
                continue
            if not is_number(axis, whole=True):
                raise ConfigError(
                    f"{name} is {shown(axis, whole=True)}; give a whole number, or None"
                )
            if not -expected <= int(axis) < expected:
                of_three = "" if stack_axis is not None else "for three dimensions "
                raise ConfigError(f"{name} is {axis}; {of_three}give {-expected} to {expected - 1}")
            found[name] = int(axis) % expected
        if len(set(found.values())) < len(found):
            raise ConfigError(f"stack_axis and channel_axis are both {stack_axis}")
        return cls(found.get("channel_axis"), found.get("stack_axis"))

    def first(self, image: NDArray[Any]) -> NDArray[Any]:
        """Return a view of the image with shape (channels, pages, h, w)."""
        own = [axis for axis in (self.channel, self.stack) if axis is not None]
        absent = [k for k, axis in enumerate((self.channel, self.stack)) if axis is None]
        return np.expand_dims(np.moveaxis(image, own, range(len(own))), absent)

    def back(self, planes: NDArray[Any]) -> NDArray[Any]:
        """Return the image, contiguous in memory, from its planes (channels, pages, h, w)."""
        own = [axis for axis in (self.channel, self.stack) if axis is not None]
        absent = [k for k, axis in enumerate((self.channel, self.stack)) if axis is None]
        return np.ascontiguousarray(
            np.moveaxis(planes.squeeze(tuple(absent)), range(len(own)), own)
        )


def _wrong_shape(shape: tuple[int, ...], channel: Any, stack: Any, expected: int) -> str:
    if stack is not None:
        return (
            f"image has shape {shape}: with stack_axis={stack} and channel_axis={channel} it has "
            f"{expected} dimensions"
        )
    if channel is not None:
        return (
            f"image has shape {shape} and channel_axis={channel}: an image with channels has three "
            "dimensions; leave channel_axis out for a grey image"
        )
    return (
        f"image has shape {shape} and channel_axis is None, so it is not clear which axis holds "
        "the channels: give channel_axis (-1 for height x width x channels), stack_axis for pages, "
        "or one image of two dimensions at a time"
    )


@dataclass(frozen=True)
class Picture:
    """The planes of an image to denoise, and the data needed to restore the image."""

    colours: NDArray[Any]  # (c, pages * h, w), one grey plane, or red, green and blue
    alpha: NDArray[Any] | None  # (pages * h, w), returned unchanged
    axes: Axes
    n_pages: int  # number of pages, one below the other
    data_range: float  # in the units of the image, as is `lowest`
    lowest: float
    unit: float  # one unit of the image, on the scale 0..255
    # `data` (pages * h, w) marks the pixels that are data; None if all are. `given` holds the
    # colours before holes were filled.
    data: Mask | None = None
    given: NDArray[Any] | None = None
    # The planes with defects filled, if defects were sought.
    corrected: NDArray[np.float32] | None = None

    def planes(self) -> NDArray[np.float32]:
        """Return the colours on the scale 0..255, or `corrected` itself."""
        if self.corrected is not None:
            return self.corrected
        planes = np.empty(self.colours.shape, np.float32)
        for plane, channel in zip(planes, self.colours, strict=True):
            plane[...] = self.plane(channel)
        return planes

    def plane(self, channel: NDArray[Any]) -> NDArray[np.float32]:
        """Return one of the colours on the scale 0..255."""
        scaled = np.empty(channel.shape, np.float32)
        above = channel - np.float64(self.lowest) if self.lowest else channel
        np.multiply(above, self.unit, out=scaled, dtype=np.float64, casting="unsafe")
        if np.ptp(scaled) < EVEN:
            scaled[...] = scaled.flat[0]
        return scaled

    def continued(self) -> NDArray[np.float32]:
        """Return the planes with holes filled by a smooth continuation of the data around."""
        planes = self.planes().copy()
        if self.data is not None:
            pages = self.pages_of(planes)
            for page, data in zip(np.moveaxis(pages, 1, 0), self.pages_of(self.data), strict=True):
                for channel in page:
                    channel[...] = continued(channel, data)
        return planes

    def grey(self) -> Picture:
        """Return the picture of the first channel."""
        return replace(self, colours=self.colours[:1])

    @property
    def step(self) -> float:
        """Difference between successive integers, on the scale 0..255; 0 for non-integers."""
        is_whole = self.colours.dtype.kind in "ui" or np.array_equal(
            self.colours, np.rint(self.colours)
        )
        return self.unit if is_whole else 0.0

    def cut(self, window: Window) -> Picture:
        """Return a window of each page, without alpha, with values on the scale of this picture."""
        (top, bottom), (left, right) = window

        def part(values: NDArray[Any]) -> NDArray[Any]:
            piece = self.pages_of(values)[..., top:bottom, left:right]
            return piece.reshape(*values.shape[:-2], -1, piece.shape[-1])

        data = None if self.data is None else part(self.data)
        return replace(self, colours=part(self.colours), alpha=None, data=data, given=None)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of a page."""
        return self.colours.shape[1] // self.n_pages, self.colours.shape[2]

    def pages_of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a view (..., pages, h, w) of values (..., pages * h, w)."""
        return values.reshape(*values.shape[:-2], self.n_pages, *self.size)

    def restored(self, planes: NDArray[np.float32], strength: float) -> NDArray[np.floating]:
        """Return the planes (channels, pages, h, w) of the image at a strength from 0 to 1.

        At 0, and at pixels without data, they equal the input bit for bit. Integer images are
        clipped to their dtype's range, float images are not.
        """
        dtype = self.colours.dtype
        channels = len(planes) + (self.alpha is not None)
        kind = np.float32 if np.result_type(dtype, np.float32) == np.float32 else np.float64
        # Lay out the result in memory like the image, so that `Axes.back` need not copy it.
        out = np.empty_like(self.colours, kind, shape=(channels, *planes.shape[1:]))
        for channel, clean, value in zip(out, planes, self.colours, strict=False):
            before, plane = self.plane(value), clean
            if strength < 1.0:
                plane = before + np.float32(strength) * (clean - before)
            np.multiply(plane, 1.0 / self.unit, out=channel)
            channel += self.lowest
            if dtype.kind in "ui":
                np.clip(channel, np.iinfo(dtype).min, np.iinfo(dtype).max, out=channel)
            np.copyto(channel, value, where=plane == before, casting="unsafe")
        if self.given is not None and self.data is not None:
            np.copyto(out[: len(planes)], self.given, where=~self.data, casting="unsafe")
        if self.alpha is not None:
            out[-1] = self.alpha
        return self.pages_of(out)


def checked_image(image: NDArray[Any]) -> NDArray[Any]:
    """Return an image as an array of real numbers, or raise InputError."""
    image = np.asarray(image)
    if image.dtype.kind not in "buif":
        raise InputError(f"image has dtype {image.dtype}; give real numbers (integer or float)")
    if image.size == 0:
        raise InputError(f"image of shape {image.shape} has no pixels")
    return image


def read_picture(
    planes: NDArray[Any], axes: Axes, data_range: float | None = None, mask: Mask | None = None
) -> Picture:
    """Return the picture of planes (channels, pages, h, w); a mask (pages, h, w) marks data."""
    if len(planes) not in (1, 3, 4):
        raise InputError(
            f"image has {len(planes)} channels along axis {axes.channel}; give 1 (grey), 3 (RGB) "
            "or 4 (RGB and alpha), or denoise each channel as a grey image"
        )
    data, given, n_pages = data_pixels(planes, mask), None, planes.shape[1]
    if (padding := padding_in(planes[:3])).any():
        seen = both(data, ~padding)
        data = seen if seen is not None and seen.any() else data
    if data is not None:
        given = planes[:3].reshape(len(planes[:3]), -1, planes.shape[-1])
        level, planes = planes[0][data].min(), planes.copy()
        for page, of_page in enumerate(data):
            for channel in planes[:3, page]:
                # Fill a page without data with a constant, so that it shows no noise.
                channel[...] = imputed(channel, of_page) if of_page.any() else level
        data = data.reshape(-1, planes.shape[-1])
    planes = planes.reshape(len(planes), -1, planes.shape[-1])
    colours, alpha = (planes[:3], planes[3]) if len(planes) == 4 else (planes, None)
    low, high = float(colours.min()), float(colours.max())
    if data_range is not None:
        _check_range(data_range, low, high)
    span, lowest = value_range(colours, data_range)
    # Planes and most results are in single precision, and must not overflow.
    if not span * SCALE < float(np.finfo(np.float32).max):
        raise InputError(f"image spans {low:g} to {high:g}, too wide to compute with; rescale it")
    if span and span < NARROWEST:
        raise InputError(f"image spans {low:g} to {high:g}, too narrow to compute with; rescale it")
    return Picture(colours, alpha, axes, n_pages, span, lowest, SCALE / span, data, given)


def _check_range(data_range: Any, low: float, high: float) -> None:
    if not is_number(data_range, LEAST_RANGE, LARGEST_RANGE):
        raise ConfigError(
            f"data_range is {shown(data_range)}; give one number from {LEAST_RANGE:g} to "
            f"{LARGEST_RANGE:g}, or None"
        )
    given = float(data_range)
    if max(high - low, abs(low), abs(high)) > MOST_BEYOND * given:
        raise InputError(
            f"image holds values from {low:g} to {high:g}, far beyond the data range of "
            f"{given:g}: give the data range in the units of the image"
        )


def colours_of(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return an image without its alpha channel."""
    if pixels.ndim == 3 and pixels.shape[2] == 2:
        return pixels[..., 0]
    if pixels.ndim == 3 and pixels.shape[2] == 4:
        return pixels[..., :3]
    return pixels


def as_stored(
    values: NDArray[Any], dtype: np.dtype[Any], *, dithered: bool = False
) -> NDArray[Any]:
    """Return values in a file's dtype; for integer dtypes, round (or dither) and clip them.

    Dithering rounds up or down so that local means are kept.

    >>> as_stored(np.full((4, 6), 0.25), np.dtype("u1"), dithered=True).sum()
    np.uint64(6)
    """
    if dtype.kind not in "ui":
        return values.astype(dtype)
    limits, whole = np.iinfo(dtype), np.rint(values)
    if dithered:
        rows, columns = (np.arange(n) * step for n, step in zip(values.shape, DITHER, strict=False))
        thresholds = np.add.outer(rows, columns) % 1.0
        whole = np.floor(values + thresholds.reshape(*thresholds.shape, *[1] * (values.ndim - 2)))
    return np.asarray(np.clip(whole, limits.min, limits.max, out=whole), dtype)


def loses_light(values: NDArray[np.floating], dtype: np.dtype[Any]) -> bool:
    """Return whether rounding values to a type changes local means by more than `LOST`.

    >>> loses_light(np.full((16, 16), 0.3), np.dtype("u1"))
    True
    """
    if dtype.kind not in "ui":
        return False
    limits, light = np.iinfo(dtype), float(np.mean(values, dtype=np.float64))
    # Rounding moves values within the limits by at most 1/2: too little for bright pictures.
    if limits.min <= values.min() and values.max() <= limits.max and LOST * light >= 0.5:
        return False
    given = np.nan_to_num(values)
    around = (AROUND, AROUND, 1)[: values.ndim]
    lost = uniform_filter(as_stored(given, dtype) - given, around, mode="reflect")
    light = float(np.mean(np.abs(given), dtype=np.float64))
    return float(np.sqrt(np.mean(np.square(lost), dtype=np.float64))) > LOST * light


def dtype_range(dtype: np.dtype[Any]) -> float | None:
    """Return the range of an unsigned dtype of 8 or 16 bits, 1 for booleans, else None."""
    if dtype.kind == "b":
        return 1.0
    if dtype.kind == "u" and dtype.itemsize <= NARROW:
        return float(np.iinfo(dtype).max)
    return None


def value_range(pixels: NDArray[Any], data_range: float | None = None) -> tuple[float, float]:
    """Return data range (1 if constant) and black value, by the rule of `denoise_kpca`."""
    by_dtype = dtype_range(pixels.dtype)
    if by_dtype is not None:
        return float(data_range or by_dtype), 0.0
    low, high = float(pixels.min()), float(pixels.max())
    if pixels.dtype.kind == "f" and low >= 0.0 and high <= 1.0 and high - low >= LEAST_OF_UNIT:
        return float(data_range or 1.0), 0.0
    return float(data_range or (high - low) or 1.0), low


def used_range(plane: NDArray[np.float32], most: tuple[float, float] = USED) -> float:
    """Return the range of most values of a plane."""
    step = max(1, plane.size // SEEN)
    while math.gcd(step, plane.shape[-1]) > 1:  # else some columns would never be seen
        step += 1
    low, high = np.quantile(plane.ravel()[::step], most)
    return float(high - low)
