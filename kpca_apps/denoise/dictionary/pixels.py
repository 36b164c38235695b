"""Convert images to pixels with range 1, to examples, and to overlapping patches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from kpca_apps.denoise.image import dtype_range, value_range
from kpca_apps.denoise.options import LARGEST_RANGE, LEAST_RANGE
from kpca_apps.denoise.passes.one_pass import patch_grid
from kpca_apps.errors import ConfigError, InputError, ParameterError
from kpca_apps.names import shown
from kpca_apps.options import is_number
from kpca_apps.system.arrays import Matrix

FEWEST = 5  # minimum number of examples, as one in five is held out
BAND = 4608  # number of patches processed at a time (at least one row of patches)


def as_pixels(image: NDArray[Any], name: str, data_range: float | None) -> Matrix:
    """Return an image as float64 divided by its range, shape ``(h, w, channels)``."""
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
    """Return examples as rows, and the height, width and channels of an example."""
    if patch_size is None:
        shape = images[0].shape
        for image, name in zip(images, names, strict=True):
            if image.shape != shape:
                raise InputError(
                    f"{name}: is {size_text(image.shape)}, but {names[0]} is "
                    f"{size_text(shape)}: give whole images of one size, or a patch size"
                )
        rows = np.stack([image.ravel() for image in images])
        if len(rows) > most:
            rows = rows[np.sort(rng.choice(len(rows), most, replace=False))]
    else:
        rows = _drawn_patches(images, names, patch_size, most, rng)
        shape = (patch_size, patch_size, images[0].shape[2])
        rows -= _patch_means(rows, shape[2])
    if len(rows) < FEWEST:
        raise InputError(f"too few examples to learn from ({len(rows)}): give at least {FEWEST}")
    return rows, shape


def _drawn_patches(
    images: Sequence[Matrix],
    names: Sequence[str],
    patch_size: int,
    most: int,
    rng: np.random.Generator,
) -> Matrix:
    """Draw patches uniformly from all images, shape ``(n, pixels)``."""
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


def over_patches(
    function: Callable[[Matrix], Matrix], image: Matrix, patch_size: int, stride: int
) -> Matrix:
    """Apply a function to all patches (n, pixels) less their means, and average the results."""
    sums, counts = np.zeros(image.shape), np.zeros((*image.shape[:2], 1))
    windows, channels = _windows(image, patch_size), image.shape[2]
    grid, columns = (patch_grid(side, patch_size, stride) for side in image.shape[:2])
    step = max(BAND // len(columns), 1)
    for rows in (grid[first : first + step] for first in range(0, len(grid), step)):
        patches = windows[np.ix_(rows, columns)].reshape(len(rows) * len(columns), -1)
        means = _patch_means(patches, channels)
        block = (function(patches - means) + means).reshape(
            len(rows), len(columns), patch_size, patch_size, channels
        )
        for i in range(patch_size):
            for j in range(patch_size):
                where = np.ix_(rows + i, columns + j)
                sums[where] += block[:, :, i, j]
                counts[where] += 1.0
    return np.asarray(sums / counts)


def require_room(image: Matrix, patch_size: int, name: str) -> None:
    """Raise InputError for an image smaller than a patch."""
    if min(image.shape[:2]) < patch_size:
        raise InputError(
            f"{name}: is {size_text(image.shape)}, smaller than a patch of {patch_size} x "
            f"{patch_size}: use a smaller patch size"
        )


def size_text(shape: tuple[int, ...]) -> str:
    """Return a size in words."""
    text = f"{shape[0]} x {shape[1]} pixels"
    return text if shape[2] == 1 else f"{text} with {shape[2]} channels"


def _windows(image: Matrix, patch_size: int) -> Matrix:
    """Return all patches as a view, shape ``(rows, columns, p, p, channels)``."""
    return np.moveaxis(sliding_window_view(image, (patch_size, patch_size), axis=(0, 1)), 2, -1)


def _patch_means(patches: Matrix, channels: int) -> Matrix:
    """Return each patch's mean in each channel, repeated over its pixels, shape ``(n, pixels)``."""
    by_channel = patches.reshape(len(patches), -1, channels).mean(axis=1)
    return np.tile(by_channel, patches.shape[1] // channels)


def check_levels(options: Any, images: Iterable[NDArray[Any]], within: float | None = None) -> None:
    """Refuse a noise level, `sigma` or `examples_sigma`, above the widest range of an image."""
    widest = within or max(value_range(np.asarray(image))[0] for image in images)
    for name in ("sigma", "examples_sigma"):
        if (level := getattr(options, name) or 0.0) > widest:
            raise ParameterError(
                name,
                f"is {level:g}, above the range of the images, {widest:g}: give it in their units",
            )


def unit_of(image: NDArray[Any], data_range: float | None) -> float:
    """Return the range of an image: the given range, that of the dtype, or 1."""
    if data_range is None:
        return dtype_range(image.dtype) or 1.0
    if not is_number(data_range, LEAST_RANGE, LARGEST_RANGE):
        raise ConfigError(f"data_range is {shown(data_range)}; give a finite number > 0")
    return float(data_range)


def as_given(values: Matrix, image: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """Return values in the shape and range of an image: float64 for float64, else float32."""
    out = values.reshape(image.shape)
    if image.dtype.kind in "ui":
        limits = np.iinfo(image.dtype)
        out = np.clip(out, limits.min, limits.max)
    return out.astype(np.float64 if image.dtype == np.float64 else np.float32)
