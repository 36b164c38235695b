"""A fitted detector as plain values and arrays, and back: what a model file holds of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.gram import about_origin
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.errors import ModelFileError
from kpca_apps.novelty.attribution import NeighbourRows
from kpca_apps.novelty.column_scales import ColumnScales
from kpca_apps.novelty.detector_parameters import calibration_of, column_groups, finite_offset
from kpca_apps.novelty.rarity import Rarity
from kpca_apps.novelty.surprise.state import combined_state, restore_combined
from kpca_apps.novelty.views import ColumnViews, RawColumns

if TYPE_CHECKING:
    from kpca_apps.novelty.detector import KernelPCANovelty

__all__ = ["detector_state", "restore_detector"]

Arrays = dict[str, NDArray[Any]]

PARAMETERS = (
    "contaminated",
    "share",
    "alpha",
    "n_components",
    "gamma",
    "ridge",
    "n_landmarks",
    "calibration",
)
SCALES = tuple(field.name for field in fields(ColumnScales))
VIEWS = tuple(field.name for field in fields(ColumnViews) if field.name != "scales")
NEIGHBOURS = ("rows", "standardised", "as_is", "index")


def detector_state(detector: KernelPCANovelty) -> tuple[dict[str, Any], Arrays]:
    """Return what `restore_detector` needs; scores of the training rows are not kept.

    The rows that expected values are taken from are part of it: a model file holds rows of its
    reference.
    """
    subspace_meta, subspace_arrays = detector.subspace_.to_state()
    views = detector.views_
    raw = isinstance(views, RawColumns)
    meta = {
        "parameters": {name: getattr(detector, name) for name in PARAMETERS},
        "n_features": detector.n_features_in_,
        "n_samples": detector.n_samples_fit_,
        "landmark_miss": detector.landmark_miss_,
        "calibration": detector.calibration_,
        "threshold": float(detector.threshold_) if np.isfinite(detector.threshold_) else None,
        "ridge": detector.ridge_,
        "precision": detector.precision_,
        "warnings": list(detector.warnings_),
        "raw_columns": raw,
        "combined": detector.combined_ is not None,
        "groups": [group.tolist() for group in detector.groups_],
        "subspace": subspace_meta,
    }
    arrays: Arrays = {f"subspace.{name}": array for name, array in subspace_arrays.items()}
    named = (
        {"mean": views.mean, "sd": views.sd}
        if isinstance(views, RawColumns)
        else {name: getattr(views, name) for name in VIEWS}
        | {name: getattr(views.scales, name) for name in SCALES}
    )
    arrays |= {f"views.{name}": array for name, array in named.items()}
    arrays |= {f"neighbours.{name}": getattr(detector.neighbours_, name) for name in NEIGHBOURS}
    arrays |= {
        "calibration_scores": detector.calibration_scores_,
        "landmarks": detector.landmarks_,
        "as_is": detector.neighbours_.as_is,
    }
    if detector.combined_ is not None:
        combined = combined_state(detector.combined_)
        arrays |= {f"combined.{name}": array for name, array in combined.items()}
    if detector.rarity_ is not None:
        meta["rarity"], rarity_arrays = detector.rarity_.to_state()
        arrays |= {f"rarity.{name}": array for name, array in rarity_arrays.items()}
    return meta, arrays


def restore_detector(
    make: type[KernelPCANovelty], meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> KernelPCANovelty:
    """Rebuild a fitted detector from `detector_state`.

    Raises
    ------
    ModelFileError
        If a part is missing or parts do not fit together.
    """
    try:
        return _restore(make, meta, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"The detector in the model file is damaged ({error}); fit it again."
        ) from error


def _restore(
    make: type[KernelPCANovelty], meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> KernelPCANovelty:
    def part(prefix: str) -> Arrays:
        return {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }

    subspace = KernelSubspace.from_state(meta["subspace"], part("subspace."))
    parameters = {name: meta["parameters"][name] for name in PARAMETERS}
    as_is = arrays["as_is"].astype(np.int64)
    # A model may take column means away, of which the kernel it was asked for knows nothing.
    kernel = about_origin(subspace.kernel)
    detector = make(
        **parameters,
        kernel=kernel if meta["raw_columns"] else None,
        as_is=as_is.tolist() or None,
        groups=meta["groups"],
    )
    detector._validate_params()
    views = part("views.")
    detector.views_ = (
        RawColumns(kernel, views["mean"], views["sd"])
        if meta["raw_columns"]
        else ColumnViews(
            scales=ColumnScales(**{name: views[name] for name in SCALES}),
            **{name: views[name] for name in VIEWS},
        )
    )
    detector.n_features_in_ = int(meta["n_features"])
    if arrays["neighbours.rows"].shape[1:] != (detector.n_features_in_,):
        # Before anything is made of a size that only the file vouches for.
        raise ModelFileError(
            "The detector in the model file is damaged (rows and n_features do not fit); fit it "
            "again."
        )
    detector.n_samples_fit_ = int(meta["n_samples"])
    miss = meta["landmark_miss"]
    detector.landmark_miss_ = None if miss is None else float(miss)
    detector.groups_ = column_groups(detector.groups, detector.n_features_in_)
    detector.subspace_ = subspace
    detector.neighbours_ = NeighbourRows(**{n: arrays[f"neighbours.{n}"] for n in NEIGHBOURS})
    detector.landmarks_ = arrays["landmarks"].astype(np.int64)
    detector.calibration_scores_ = arrays["calibration_scores"].astype(np.float64)
    detector.calibration_ = calibration_of(
        detector.calibration,
        contaminated=detector.contaminated,
        hard=detector.n_components is not None,
    )
    # Of a contaminated soft cut only; models of the first version have none.
    rarity = meta.get("rarity")
    detector.rarity_ = None if rarity is None else Rarity.from_state(rarity, part("rarity."))
    # Models of the first version know nothing of float32.
    detector.precision_ = meta.get("precision", "float64")
    detector.ridge_ = None if meta["ridge"] is None else float(meta["ridge"])
    detector.threshold_ = np.inf if meta["threshold"] is None else float(meta["threshold"])
    # Models of before there was a combined score know nothing of it.
    combined = part("combined.")
    detector.combined_ = (
        restore_combined(combined, detector.n_features_in_) if meta.get("combined") else None
    )
    detector.offset_ = finite_offset(detector.threshold_, subspace, detector.combined_)
    detector.warnings_ = tuple(str(sentence) for sentence in meta["warnings"])
    _check_values(detector, meta)
    _check_fit(detector)
    return detector


def _check_values(detector: KernelPCANovelty, meta: Mapping[str, Any]) -> None:
    """Refuse values no fit leads to."""
    miss, scores = detector.landmark_miss_, detector.calibration_scores_
    sound = {
        "calibration": meta["calibration"] == detector.calibration_,
        "landmark_miss": miss is None or 0.0 <= miss < np.inf,
        "ridge": detector.ridge_ is None or 0.0 <= detector.ridge_ < np.inf,
        "threshold": not np.isnan(detector.threshold_),
        "calibration_scores": scores.ndim == 1
        and np.isfinite(scores).all()
        and (scores.size > 0) == (detector.calibration_ is not None),
        "rarity": detector.rarity_ is None
        or (detector.calibration_ is None and detector.n_components is None),
        "warnings": isinstance(meta["warnings"], list),
        "precision": detector.precision_ in ("float32", "float64"),
        "n_samples": detector.n_samples_fit_ >= len(detector.neighbours_.index),
    }
    wrong = [name for name, is_sound in sound.items() if not is_sound]
    if wrong:
        raise ValueError(", ".join(wrong))


def _check_fit(detector: KernelPCANovelty) -> None:
    """Refuse parts that do not fit together here, before they fail in a user's run."""
    views, neighbours, d = detector.views_, detector.neighbours_, detector.n_features_in_
    s = len(neighbours.index)
    shapes = {"neighbours": (neighbours.rows.shape, (s, d)), "index": (neighbours.index.ndim, 1)}
    shapes["standardised"] = (neighbours.standardised.shape, (s, d))
    if isinstance(views, ColumnViews):
        width, v = (len(views.varying),), (len(views.widths),)
        shapes |= {name: (getattr(views.scales, name).shape[-1:], width) for name in SCALES}
        shapes["order_statistics"] = (views.scales.order_statistics.shape[1:], width)
        shapes["weight"] = (views.weight.shape, width)
        shapes["block_factors"] = (views.block_factors.shape, v)
        used = np.concatenate([views.varying, views.as_is, detector.neighbours_.as_is])
    else:
        shapes |= {"mean": (views.mean.shape, (d,)), "sd": (views.sd.shape, (d,))}
        used = neighbours.as_is
    wrong = [name for name, (found, due) in shapes.items() if found != due]
    if wrong or s < 2 or (used.size and not 0 <= used.min() <= used.max() < d):
        raise ModelFileError(
            f"The detector in the model file is damaged ({', '.join(wrong) or 'columns'} do not "
            "fit the rest); fit it again."
        )
    detector.score_samples(neighbours.rows[:1])  # which refuses scores that are no numbers
