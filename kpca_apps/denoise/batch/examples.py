"""The images that a dictionary is to learn from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.batch.inputs import find_images
from kpca_apps.denoise.batch.pages import colours_of
from kpca_apps.denoise.image import value_range
from kpca_apps.errors import InputError
from kpca_apps.images.files import read_image
from kpca_apps.names import one_line


def read_examples(inputs: Iterable[str | Path]) -> tuple[list[NDArray[Any]], Sequence[str]]:
    """Read the images a dictionary is to learn from: first pages, without alpha."""
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
    """Whether examples do not differ, so that there is nothing to learn."""
    if whole:
        return len(images) > 1 and all(np.array_equal(image, images[0]) for image in images)
    # Patches are learned without their mean.
    return all(bool(np.all(image == image[:1, :1])) for image in images)


def widest_range(images: Sequence[NDArray[Any]]) -> float:
    """Return the widest range of values of images."""
    return max(value_range(image)[0] for image in images)
