"""Read the examples of a dictionary, and describe the dictionary for a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kpca_apps.denoise.batch.examine.previews import encoded
from kpca_apps.denoise.batch.inputs import find_images, named_reason
from kpca_apps.denoise.image import colours_of
from kpca_apps.denoise.result import ComponentView, DictionaryView, ImageOutcome, Preview
from kpca_apps.errors import InputError
from kpca_apps.images.files import read_image
from kpca_apps.names import one_line
from kpca_apps.system.stores.addresses import AnyPath
from kpca_apps.system.stores.buckets import here

if TYPE_CHECKING:
    from kpca_apps.denoise.dictionary import DictionaryDenoiser

LEADING = 12  # number of leading components shown as pictures


def read_examples(inputs: Iterable[str | AnyPath]) -> tuple[list[NDArray[Any]], Sequence[str]]:
    """Return the first pages of the example images, without alpha, and their names."""
    found, _ = find_images(inputs)
    images: list[NDArray[Any]] = []
    for one in found:
        if one.refused:
            raise InputError(named_reason(one.name, one.refused))
        with here(one.source) as path:
            images.append(colours_of(read_image(path, label=one.name).page(0)))
        if images[-1].dtype != images[0].dtype:
            raise InputError(
                f"{one_line(one.name)}: holds {images[-1].dtype} and {one_line(found[0].name)} "
                f"{images[0].dtype}; give examples of one type."
            )
    return images, [one.name for one in found]


def are_all_alike(images: Sequence[NDArray[Any]], *, whole: bool) -> bool:
    """Return whether examples are all alike, so that there is nothing to learn."""
    if whole:
        return len(images) > 1 and all(np.array_equal(image, images[0]) for image in images)
    # The mean of each patch is removed, so constant images teach nothing.
    return all(bool(np.all(image == image[:1, :1])) for image in images)


def view_dictionary(
    model: DictionaryDenoiser, name: str, images: Sequence[ImageOutcome] = ()
) -> DictionaryView:
    """Describe and draw a dictionary at the median noise level of the denoised images."""
    levels = [
        image.sigma / image.data_range for image in images if image.sigma and image.data_range
    ]
    middle = model.choices_[len(model.choices_) // 2].level
    choice, subspace = model.at_level(float(np.median(levels)) if levels else middle)
    return DictionaryView(
        name=name,
        n_examples=len(subspace.points),
        patch_size=model.patch_size,
        shape=model.shape_,
        n_components=subspace.n_components,
        bandwidth=choice.bandwidth,
        rule=choice_sentence(model),
        components=_components(model),
    )


def choice_sentence(model: DictionaryDenoiser) -> str:
    """Return a sentence on how bandwidth and number of components were chosen."""
    free = ["the bandwidth"] if model.bandwidth is None else []
    free += ["the number of components"] if model.n_components is None else []
    if not free:
        return "The bandwidth and the number of components are as given."
    if model.examples_sigma:
        levels = "a noise level near that of the examples"
    elif model.sigma is None:
        levels = f"each of {len(model.choices_)} noise levels"
    else:
        levels = "the noise level given"
    named = " and ".join(free)
    return (
        f"{named[0].upper()}{named[1:]} {'are' if len(free) == 2 else 'is'} what denoised held-out "
        f"examples best at {levels}{'' if len(free) == 2 else '; the other is as given'}."
    )


def _components(model: DictionaryDenoiser) -> tuple[ComponentView, ...]:
    below, above = model.component_images(LEADING)
    subspace = model.subspaces_[len(model.subspaces_) // 2]
    total = float(subspace.kernel.diagonal(subspace.points).mean()) - subspace.mean_norm
    shares = subspace.variances / total
    if model.patch_size is None:
        low, high = 0.0, 1.0
    else:
        # Patches have zero mean: draw all components on one scale, with 0 in the middle.
        high = float(max(np.abs(below).max(initial=0.0), np.abs(above).max(initial=0.0))) or 1.0
        low = -high
    return tuple(
        ComponentView(number, float(share), _picture(one, low, high), _picture(other, low, high))
        for number, (share, one, other) in enumerate(zip(shares, below, above, strict=False), 1)
    )


def _picture(pixels: NDArray[np.float64], low: float, high: float) -> Preview:
    scaled = np.clip(np.rint((pixels - low) * (255.0 / (high - low))), 0, 255).astype(np.uint8)
    return encoded(Image.fromarray(scaled[..., 0] if scaled.shape[2] == 1 else scaled), None)
