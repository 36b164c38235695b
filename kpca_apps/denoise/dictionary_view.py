"""What a report shows of a dictionary: its size, how it was chosen, its leading components."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kpca_apps.denoise.dictionary import DictionaryDenoiser
from kpca_apps.denoise.result import ComponentView, DictionaryView, ImageOutcome, Preview

__all__ = ["choice_sentence", "view_dictionary"]

LEADING = 12


def view_dictionary(
    model: DictionaryDenoiser, name: str, images: Sequence[ImageOutcome] = ()
) -> DictionaryView:
    """Describe a dictionary and draw its leading components.

    Parameters
    ----------
    model : DictionaryDenoiser
        Fitted.
    name : str
        Of its file.
    images : sequence of ImageOutcome
        What was denoised with it: their middle noise level is the one described.

    Returns
    -------
    DictionaryView

    Examples
    --------
    >>> images = np.random.default_rng(0).random((20, 6, 6))
    >>> view = view_dictionary(DictionaryDenoiser(n_components=3, sigma=0.1).fit(images), "m.kpca")
    >>> view.n_examples, view.shape, view.n_components, len(view.components)
    (20, (6, 6, 1), 3, 3)
    """
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
    """Say in a whole sentence how bandwidth and number of components were chosen."""
    free = [
        what
        for what, value in (
            ("the bandwidth", model.bandwidth),
            ("the number of components", model.n_components),
        )
        if value is None
    ]
    if not free:
        return "The bandwidth and the number of components are as given."
    given = {1: "; the other is as given", 2: ""}[len(free)]
    if model.examples_sigma:
        levels = "a noise level near that of the examples"
    elif model.sigma is None:
        levels = f"each of {len(model.choices_)} noise levels"
    else:
        levels = "the noise level given"
    verb = "are" if len(free) == 2 else "is"
    named = " and ".join(free)
    return (
        f"{named[0].upper()}{named[1:]} {verb} what denoised held-out examples best at "
        f"{levels}{given}."
    )


def _components(model: DictionaryDenoiser) -> tuple[ComponentView, ...]:
    below, above = model.component_images(LEADING)
    subspace = model.subspaces_[len(model.subspaces_) // 2]
    total = float(subspace.kernel.diagonal(subspace.points).mean()) - subspace.mean_norm
    shares = subspace.variances / total
    if model.patch_size is None:
        low, high = 0.0, 1.0
    else:
        # Patches are without their mean: one scale for all, with nothing in the middle.
        high = float(max(np.abs(below).max(initial=0.0), np.abs(above).max(initial=0.0))) or 1.0
        low = -high
    return tuple(
        ComponentView(number, float(share), _picture(one, low, high), _picture(other, low, high))
        for number, (share, one, other) in enumerate(zip(shares, below, above, strict=False), 1)
    )


def _picture(pixels: NDArray[np.float64], low: float, high: float) -> Preview:
    scaled = np.clip(np.rint((pixels - low) * (255.0 / (high - low))), 0, 255).astype(np.uint8)
    picture = Image.fromarray(scaled[..., 0] if scaled.shape[2] == 1 else scaled)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return Preview("image/png", buffer.getvalue(), picture.width, picture.height)
