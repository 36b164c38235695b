"""A fitted dictionary as plain values and arrays, and back: what a model file holds of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.dictionary_choice import LevelChoice
from kpca_apps.denoise.dictionary_level import ResidualLevel
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.errors import ModelFileError
from kpca_apps.files.models import load_archive, save_archive

if TYPE_CHECKING:
    from kpca_apps.denoise.dictionary import DictionaryDenoiser

__all__ = ["dictionary_state", "load_dictionary", "restore_dictionary", "save_dictionary"]

Arrays = dict[str, NDArray[Any]]

KIND = "denoise-dictionary"
LARGEST = 1e100
"""Modulus above which no number of a fitted dictionary lies."""

_GIVEN = ("n_components", "bandwidth", "sigma", "examples_sigma")


def save_dictionary(path: str | Path, model: DictionaryDenoiser) -> None:
    """Write a fitted dictionary to a model file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    meta, arrays = dictionary_state(model)
    versions = {"kpca-apps": metadata.version("kpca-apps")}
    save_archive(path, {"kind": KIND, "versions": versions, **meta}, arrays)


def load_dictionary(make: type[DictionaryDenoiser], path: str | Path) -> DictionaryDenoiser:
    """Read what `save_dictionary` wrote.

    Raises
    ------
    ModelFileError
        If the file is missing, damaged, or holds another kind of model.
    """
    meta, arrays = load_archive(path)
    name = Path(path).name
    if meta.get("kind") != KIND:
        raise ModelFileError(f"{name}: not a denoising model; fit one with kpca denoise fit")
    try:
        return restore_dictionary(make, meta, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from error


def dictionary_state(model: DictionaryDenoiser) -> tuple[dict[str, Any], Arrays]:
    """Return what `restore_dictionary` needs.

    The examples are part of it, once for all noise levels: a model file holds what it learned
    from.
    """
    level, level_arrays = model.level_.to_state()
    arrays: Arrays = {f"level.{name}": array for name, array in level_arrays.items()}
    subspaces = []
    for i, subspace in enumerate(model.subspaces_):
        meta, parts = subspace.to_state()
        subspaces.append(meta)
        arrays["points"] = parts.pop("points")
        arrays |= {f"subspace{i}.{name}": array for name, array in parts.items()}
    meta = {
        "patch_size": model.patch_size,
        "stride": model.stride,
        "given": {name: getattr(model, name) for name in _GIVEN},
        "shape": list(model.shape_),
        "choices": [asdict(choice) for choice in model.choices_],
        "subspaces": subspaces,
        "level": level,
    }
    return meta, arrays


def restore_dictionary(
    make: type[DictionaryDenoiser], meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> DictionaryDenoiser:
    """Rebuild a fitted dictionary from `dictionary_state`.

    Raises
    ------
    ModelFileError
        If a part is missing or parts do not fit together.
    """
    try:
        return _restore(make, meta, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        reason = str(error) if isinstance(error, ModelFileError) else f"unusable part: {error}"
        raise ModelFileError(
            f"The dictionary in the model file is damaged ({reason}); fit it again."
        ) from error


def _restore(
    make: type[DictionaryDenoiser], meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> DictionaryDenoiser:
    def part(prefix: str) -> Arrays:
        return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

    given = {name: _number(meta["given"][name]) for name in _GIVEN}
    model = make(patch_size=meta["patch_size"], stride=meta["stride"], **given)
    model.shape_ = tuple(int(length) for length in meta["shape"])
    model.choices_ = tuple(
        LevelChoice(
            level=float(choice["level"]),
            bandwidth=float(choice["bandwidth"]),
            components=int(choice["components"]),
            error=float(choice["error"]),
        )
        for choice in meta["choices"]
    )
    model.subspaces_ = tuple(
        KernelSubspace.from_state(state, {"points": arrays["points"], **part(f"subspace{i}.")})
        for i, state in enumerate(meta["subspaces"])
    )
    model.level_ = ResidualLevel.from_state(meta["level"], part("level."))
    _check_fit(model)
    return model


def _number(value: Any) -> Any:
    """Return a parameter as it was given, if it can have been."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ModelFileError("its parameters are no numbers")
    return value


def _check_fit(model: DictionaryDenoiser) -> None:
    """Refuse parts that do not fit together here, before they fail in a user's run."""
    model.check_parameters()
    levels = np.array([choice.level for choice in model.choices_])
    errors = np.array([choice.error for choice in model.choices_])
    pixels = int(np.prod(model.shape_))
    fits = (
        len(model.shape_) == 3
        and len(levels) == len(model.subspaces_) > 0
        and bool(np.isfinite(levels).all() and (levels > 0.0).all())
        and bool(np.isfinite(errors).all() and (errors >= 0.0).all())
        and len(model.level_.mean) == pixels
        and all(s.points.shape[1] == pixels and _usable(s) for s in model.subspaces_)
        and model.patch_size in (None, model.shape_[0])
    )
    if not fits:
        raise ModelFileError("its parts do not fit together")


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
