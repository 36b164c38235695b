"""Images as rows of pixels, whole or in overlapping patches, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError

__all__ = [
    "PatchAverage",
    "as_given",
    "as_pixels",
    "drawn_patches",
    "examples_from",
    "grid",
    "over_patches",
    "patch_bands",
    "patch_means",
    "require_room",
    "size_text",
    "stacked_images",
    "unit_of",
]

Matrix = NDArray[np.float64]
Index = NDArray[np.intp]

FEWEST = 5
"""Examples below which nothing can be held out."""

BAND = 4608
"""Patches held at a time, at least one row of them."""


def as_pixels(image: NDArray[Any], name: str, data_range: float | None) -> Matrix:
    """Return an image as float64 on the scale where its range is 1, shape ``(h, w, channels)``.

    Parameters
    ----------
    image : ndarray of shape (h, w) or (h, w, channels)
    name : str
        What errors call it.
    data_range : float, optional
        None: the largest value of an integer dtype, 1 for floats.

    Raises
    ------
    InputError
        If it is no image, or holds values that are not finite.
    """
    image = np.asarray(image)
    if image.dtype.kind not in "buif":
        raise InputError(f"{name}: has dtype {image.dtype}; give real numbers (integer or float)")
    if image.ndim not in (2, 3) or image.size == 0:
        raise InputError(
            f"{name}: has shape {image.shape}; give one image, height x width, or height x width "
            "x channels"
        )
    pixels = np.array(image, dtype=np.float64).reshape(*image.shape[:2], -1)
    pixels /= unit_of(image, data_range)
    if not np.isfinite(pixels).all():
        row, column, _ = np.argwhere(~np.isfinite(pixels))[0]
        raise InputError(
            f"{name}: is not finite at row {row}, column {column}; replace such pixels first"
        )
    return pixels


def examples_from(
    images: Sequence[Matrix],
    names: Sequence[str],
    patch_size: int | None,
    most: int,
    rng: np.random.Generator,
) -> tuple[Matrix, tuple[int, ...]]:
    """Return examples as rows, and the height, width and channels of one.

    Parameters
    ----------
    images : sequence of ndarray of shape (h, w, channels)
    names : sequence of str
    patch_size : int, optional
        None for whole images; patches lose their mean.
    most : int
        Examples kept, drawn at random from more.
    rng : numpy.random.Generator

    Raises
    ------
    InputError
        If an image does not fit the others, or there are too few.
    """
    if patch_size is None:
        rows, shape = stacked_images(images, names), images[0].shape
        if len(rows) > most:
            rows = rows[np.sort(rng.choice(len(rows), most, replace=False))]
    else:
        rows = drawn_patches(images, names, patch_size, most, rng)
        shape = (patch_size, patch_size, images[0].shape[2])
        rows -= patch_means(rows, shape[2])
    if len(rows) < FEWEST:
        raise InputError(f"too few examples to learn from ({len(rows)}): give at least {FEWEST}")
    return rows, shape


def stacked_images(images: Sequence[Matrix], names: Sequence[str]) -> Matrix:
    """Return whole images as rows, shape ``(n, pixels)``.

    Raises
    ------
    InputError
        If one has another shape than the first.
    """
    for image, name in zip(images, names, strict=True):
        if image.shape != images[0].shape:
            raise InputError(
                f"{name}: is {size_text(image.shape)}, but {names[0]} is "
                f"{size_text(images[0].shape)}: give whole images of one size, or a patch size"
            )
    return np.stack([image.ravel() for image in images])


def drawn_patches(
    images: Sequence[Matrix],
    names: Sequence[str],
    patch_size: int,
    most: int,
    rng: np.random.Generator,
) -> Matrix:
    """Draw patches, each of all images' patches as likely as any other, shape ``(n, pixels)``.

    Parameters
    ----------
    images : sequence of ndarray of shape (h, w, channels)
    names : sequence of str
    patch_size : int
    most : int
        Patches wanted; fewer if there are fewer.
    rng : numpy.random.Generator

    Raises
    ------
    InputError
        If an image is smaller than a patch, or has another number of channels than the first.
    """
    windows = []
    for image, name in zip(images, names, strict=True):
        require_room(image, patch_size, name)
        if image.shape[2] != images[0].shape[2]:
            raise InputError(
                f"{name}: has {image.shape[2]} channels, but {names[0]} has "
                f"{images[0].shape[2]}: fit one model for grey and one for colour images"
            )
        windows.append(_windows(image, patch_size))
    ends = np.cumsum([w.shape[0] * w.shape[1] for w in windows])
    total = int(ends[-1])
    chosen = np.sort(rng.choice(total, size=min(most, total), replace=False))
    which = np.searchsorted(ends, chosen, side="right")
    rows = [
        windows[i][np.divmod(k - (ends[i - 1] if i else 0), windows[i].shape[1])].ravel()
        for i, k in zip(which.tolist(), chosen.tolist(), strict=True)
    ]
    return np.stack(rows)


def grid(length: int, patch_size: int, stride: int) -> Index:
    """Return where patches begin along an axis; the last one ends at the border.

    Examples
    --------
    >>> grid(10, 4, 4)
    array([0, 4, 6])
    """
    last = length - patch_size
    starts = np.arange(0, last + 1, stride)
    return starts if starts[-1] == last else np.append(starts, last)


def patch_bands(
    image: Matrix, patch_size: int, stride: int
) -> Iterator[tuple[Index, Index, Matrix]]:
    """Yield the patches of an image in bands: their first rows, first columns, and pixels.

    Yields
    ------
    rows : ndarray of shape (a,)
    columns : ndarray of shape (b,)
    patches : ndarray of shape (a * b, pixels)
    """
    windows = _windows(image, patch_size)
    rows = grid(image.shape[0], patch_size, stride)
    columns = grid(image.shape[1], patch_size, stride)
    step = max(BAND // len(columns), 1)
    for first in range(0, len(rows), step):
        band = rows[first : first + step]
        patches = windows[np.ix_(band, columns)]
        yield band, columns, patches.reshape(len(band) * len(columns), -1)


class PatchAverage:
    """The mean of overlapping patches at each pixel.

    Parameters
    ----------
    shape : tuple of int
        Height, width, channels of the image.
    patch_size : int
    """

    def __init__(self, shape: tuple[int, ...], patch_size: int) -> None:
        self.sums = np.zeros(shape)
        self.counts = np.zeros((*shape[:2], 1))
        self.patch_size = patch_size

    def add(self, rows: Index, columns: Index, patches: Matrix) -> None:
        """Add a band of patches, as `patch_bands` yields them."""
        p, channels = self.patch_size, self.sums.shape[2]
        block = patches.reshape(len(rows), len(columns), p, p, channels)
        for i in range(p):
            for j in range(p):
                where = np.ix_(rows + i, columns + j)
                self.sums[where] += block[:, :, i, j]
                self.counts[where] += 1.0

    def result(self) -> Matrix:
        """Return the mean image; every pixel must have been covered."""
        mean: Matrix = self.sums / self.counts
        return mean


def over_patches(
    function: Callable[[Matrix], Matrix], image: Matrix, patch_size: int, stride: int
) -> Matrix:
    """Apply a function to all patches of an image, without their means, and average the results.

    Parameters
    ----------
    function : callable
        Maps patches ``(n, pixels)`` to as many.
    image : ndarray of shape (h, w, channels)
    patch_size, stride : int

    Returns
    -------
    ndarray of shape (h, w, channels)
    """
    average = PatchAverage(image.shape, patch_size)
    for rows, columns, patches in patch_bands(image, patch_size, stride):
        means = patch_means(patches, image.shape[2])
        average.add(rows, columns, function(patches - means) + means)
    return average.result()


def require_room(image: Matrix, patch_size: int, name: str) -> None:
    """Refuse an image smaller than a patch."""
    if min(image.shape[:2]) < patch_size:
        raise InputError(
            f"{name}: is {size_text(image.shape)}, smaller than a patch of {patch_size} x "
            f"{patch_size}: use a smaller patch size"
        )


def size_text(shape: tuple[int, ...]) -> str:
    """Return a size for people.

    Examples
    --------
    >>> size_text((16, 20, 1)), size_text((8, 8, 3))
    ('16 x 20 pixels', '8 x 8 pixels with 3 channels')
    """
    text = f"{shape[0]} x {shape[1]} pixels"
    return text if shape[2] == 1 else f"{text} with {shape[2]} channels"


def _windows(image: Matrix, patch_size: int) -> Matrix:
    """Return all patches without copying, shape ``(rows, columns, p, p, channels)``."""
    windows = sliding_window_view(image, (patch_size, patch_size), axis=(0, 1))
    return np.moveaxis(windows, 2, -1)


def patch_means(patches: Matrix, channels: int) -> Matrix:
    """Return each patch's mean in each channel, repeated over its pixels, shape ``(n, pixels)``."""
    by_channel = patches.reshape(len(patches), -1, channels).mean(axis=1)
    return np.tile(by_channel, patches.shape[1] // channels)


def unit_of(image: NDArray[Any], data_range: float | None) -> float:
    """Return the value that counts as 1: the range given, an integer dtype's largest value, or 1.

    Raises
    ------
    ConfigError
        If ``data_range`` is not a finite number > 0.
    """
    if data_range is None:
        return float(np.iinfo(image.dtype).max) if image.dtype.kind in "ui" else 1.0
    if not (np.isfinite(data_range) and data_range > 0.0):
        raise ConfigError(f"data_range is {data_range}; give a finite number > 0")
    return data_range


def as_given(values: Matrix, image: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """Return values in the shape of an image: float64 for float64, else float32.

    An integer image's values are held within its dtype's range.
    """
    out = values.reshape(image.shape)
    if image.dtype.kind in "ui":
        limits = np.iinfo(image.dtype)
        out = np.clip(out, limits.min, limits.max)
    return out.astype(np.float64 if image.dtype == np.float64 else np.float32)
