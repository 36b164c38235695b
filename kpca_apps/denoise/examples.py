"""Image files as examples for a dictionary, and files whose noise is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.denoiser import measure_noise
from kpca_apps.denoise.naming import find_images
from kpca_apps.denoise.work import colours_of
from kpca_apps.errors import InputError, KpcaError
from kpca_apps.files.images.front_door import read_image
from kpca_apps.files.names import one_line

__all__ = ["MeasuredFile", "are_all_alike", "measure_file", "read_examples", "widest_range"]


@dataclass(frozen=True)
class MeasuredFile:
    """The noise of an image file, or why it could not be measured.

    Attributes
    ----------
    name : str
    reason : str
        Why it failed, in one line; empty if it did not.
    shape : tuple of int
        (h, w) or (h, w, channels) of the first page, which is the one that is measured.
    dtype : str
    sigma : float
        In the units of the image.
    channel_sigma : tuple of float
    data_range : float
    correlated : bool
        Whether neighbouring pixels share their noise.
    established : bool
        Whether there is noise for sure; where not, denoising leaves the image as it is.
    impulses : bool
        Whether single pixels stand out as those of impulse noise do.
    """

    name: str
    reason: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    sigma: float = 0.0
    channel_sigma: tuple[float, ...] = ()
    data_range: float = 0.0
    correlated: bool = False
    established: bool = True
    impulses: bool = False


def measure_file(path: str | Path, name: str, *, data_range: float | None = None) -> MeasuredFile:
    """Measure the noise of an image file.

    Parameters
    ----------
    path : str or Path
    name : str
        What to call it.
    data_range : float, optional
        As for `kpca_apps.denoise.denoiser.denoise_kpca`.

    Returns
    -------
    MeasuredFile
        What is wrong with a file is in it.
    """
    try:
        image = read_image(path, label=name)
        pixels = colours_of(image.page(0))
        info = measure_noise(
            pixels, data_range=data_range, channel_axis=-1 if pixels.ndim == 3 else None
        )
    except KpcaError as error:
        reason = str(error)
        named = reason if reason.startswith(name) else f"{one_line(name)}: {reason}"
        return MeasuredFile(name, reason=one_line(named, 400))
    return MeasuredFile(
        name,
        shape=image.pages[0].shape,
        dtype=str(image.pages[0].dtype),
        sigma=info.sigma,
        channel_sigma=info.channel_sigma,
        data_range=info.data_range,
        correlated=info.correlated,
        established=info.established,
        impulses=info.impulses,
    )


def read_examples(inputs: Iterable[str | Path]) -> tuple[list[NDArray[Any]], Sequence[str]]:
    """Read the images a dictionary is to learn from: first pages, without alpha.

    Parameters
    ----------
    inputs : iterable of str or Path
        Files, folders and patterns.

    Returns
    -------
    images : list of ndarray of shape (h, w) or (h, w, 3)
    names : sequence of str

    Raises
    ------
    InputError
        If there is none, one cannot be read, or they are of different types.
    """
    found, _ = find_images(inputs)
    images: list[NDArray[Any]] = []
    for name, path in found:
        images.append(colours_of(read_image(path, label=name).page(0)))
        if images[-1].dtype != images[0].dtype:
            raise InputError(
                f"{one_line(name)}: holds {images[-1].dtype} and {one_line(found[0][0])} "
                f"{images[0].dtype}; give examples of one type."
            )
    return images, [name for name, _ in found]


def are_all_alike(images: Sequence[NDArray[Any]], *, whole: bool) -> bool:
    """Whether a dictionary would have nothing to tell apart.

    Parameters
    ----------
    images : sequence of ndarray
    whole : bool
        Whether each image is an example; else their patches are, less their mean.

    Returns
    -------
    bool

    Examples
    --------
    >>> rows = [np.arange(4).reshape(2, 2)] * 3
    >>> are_all_alike(rows, whole=True), are_all_alike(rows, whole=False)
    (True, False)
    """
    if whole:
        return len(images) > 1 and all(np.array_equal(image, images[0]) for image in images)
    # Patches are learned without their mean.
    return all(bool(np.all(image == image[:1, :1])) for image in images)


def widest_range(images: Sequence[NDArray[Any]]) -> float:
    """Return the range of an integer type, or that of the values, at least 1.

    Parameters
    ----------
    images : sequence of ndarray
        Of one type.

    Returns
    -------
    float
    """
    if images[0].dtype.kind in "ui":
        limits = np.iinfo(images[0].dtype)
        return float(limits.max - limits.min)
    low, high = min(float(i.min()) for i in images), max(float(i.max()) for i in images)
    return max(1.0, high - low)
