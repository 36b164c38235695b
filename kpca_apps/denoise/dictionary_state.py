"""A fitted dictionary as a tree of dataclasses: what a model file holds of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.denoise.dictionary_choice import LevelChoice
from kpca_apps.denoise.dictionary_level import LARGEST, ResidualLevel
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.files.models import load_model_file, save_model_file

if TYPE_CHECKING:
    from kpca_apps.denoise.dictionary import DictionaryDenoiser

__all__ = ["load_dictionary", "save_dictionary"]

KIND = "denoise-dictionary"


@dataclass(frozen=True)
class Parameters:
    """Parameters of a dictionary that its noise levels and patches depend on."""

    n_components: Annotated[int, Meta(ge=1)] | None
    bandwidth: Annotated[float, Meta(gt=0)] | None
    patch_size: Annotated[int, Meta(ge=2)] | None
    stride: Annotated[int, Meta(ge=1)] | None
    sigma: Annotated[float, Meta(gt=0)] | None
    examples_sigma: Annotated[float, Meta(ge=0)]


@dataclass(frozen=True, eq=False)
class DictionaryState:
    """What a dictionary learned; its examples are part of it, once for all noise levels."""

    parameters: Parameters
    shape: tuple[int, ...]
    choices: tuple[LevelChoice, ...]
    subspaces: tuple[KernelSubspace, ...]
    level: ResidualLevel

    def validate(self) -> None:
        """Refuse parts that do not fit together here, before they fail in a user's run."""
        pixels = int(np.prod(self.shape, dtype=object))
        fits = (
            len(self.choices) == len(self.subspaces) > 0
            and len(self.shape) == 3
            and min(self.shape) > 0
            and len(self.level.mean) == pixels
            and all(s.points.shape[1] == pixels and _usable(s) for s in self.subspaces)
            and self.parameters.patch_size in (None, self.shape[0])
            and (self.parameters.stride or 0) <= (self.parameters.patch_size or np.inf)
        )
        if not fits:
            raise ValueError("its parts do not fit together")


def save_dictionary(path: str | Path, model: DictionaryDenoiser) -> None:
    """Write a fitted dictionary to a model file."""
    first, *others = model.subspaces_
    parameters = {name: getattr(model, name) for name in Parameters.__dataclass_fields__}
    state = DictionaryState(
        parameters=Parameters(**parameters),
        shape=model.shape_,
        choices=model.choices_,
        subspaces=(first, *(replace(other, points=first.points) for other in others)),
        level=model.level_,
    )
    save_model_file(path, KIND, state)


def load_dictionary(make: type[DictionaryDenoiser], path: str | Path) -> DictionaryDenoiser:
    """Read what `save_dictionary` wrote."""
    wanted = "a denoising model; fit one with kpca denoise fit"
    state = load_model_file(path, KIND, DictionaryState, wanted)
    model = make(**vars(state.parameters))
    model.shape_, model.choices_ = state.shape, state.choices
    model.subspaces_, model.level_ = state.subspaces, state.level
    return model


def _usable(subspace: KernelSubspace) -> bool:
    """Return whether a subspace can have been fitted here, and no square in it overflows."""
    kernel = subspace.kernel
    arrays = (subspace.points, subspace.weights, subspace.offset, subspace.mean_weights)
    return (
        isinstance(kernel, RBF)
        and kernel.gamma < LARGEST
        and bool((subspace.variances >= 0.0).all())
        and all(np.abs(array).max(initial=0.0) < LARGEST for array in arrays)
    )
