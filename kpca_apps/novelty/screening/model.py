"""A fitted novelty model, of one piece or of one a group of rows, and its file."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.engine.rows import SAMPLE_ROWS
from kpca_apps.novelty.columns.encoding import TableEncoder
from kpca_apps.novelty.columns.parts import GroupKey
from kpca_apps.novelty.detector.detector import Detector
from kpca_apps.novelty.detector.threshold import Rule
from kpca_apps.novelty.screening.options import ScreeningOptions, resolve_rule
from kpca_apps.system.model_files import load_model_file, save_model_file
from kpca_apps.tables.source_info import SourceInfo

FloatArray = NDArray[np.float64]

KIND = "novelty"
MAX_GROUPS = 100  # with a model of their own
LIBRARIES = ("kpca-apps", "numpy", "scipy", "scikit-learn", "polars")


@dataclass(frozen=True)
class ModelPiece:
    """What judges the rows of one group, or those that no group's own piece judges."""

    values: GroupKey | None  # of the group in the columns it is grouped by; None: the whole table
    n_rows: int  # fitted on
    encoder: TableEncoder  # the column plan and how the columns became numbers
    detector: Detector  # fitted on the encoded rows, of which it holds some
    # (n,), of the rows fitted on, each as if left out; of more than 100,000 rows they are not
    # saved, and empty in a model that was read back.
    training_scores: FloatArray

    @property
    def clean(self) -> bool:
        """Whether it was fitted on a clean reference, so that rates are calibrated."""
        return not self.detector.parameters.contaminated


@dataclass(frozen=True)
class NoveltyModel:
    """What is needed to score and flag rows of a table."""

    encoder: TableEncoder  # of the piece that was fitted on the whole table, as the next two
    detector: Detector
    training_scores: FloatArray
    rule: Rule  # flags rows unless another one is asked for
    options: ScreeningOptions  # of the fit
    source: SourceInfo  # the table fitted on
    versions: Mapping[str, str]  # of the libraries it was fitted with
    warnings: tuple[str, ...] = ()  # about the table fitted on
    groups: tuple[ModelPiece, ...] = ()  # that have a piece of their own, largest first
    # With groups: that the choice of the fit set on the scores of all rows; None: a rate.
    group_threshold: float | None = None

    @property
    def whole(self) -> ModelPiece:
        """The piece that was fitted on the whole table."""
        n_rows = self.source.n_rows
        return ModelPiece(None, n_rows, self.encoder, self.detector, self.training_scores)

    @property
    def clean(self) -> bool:
        """Whether it was fitted on a clean reference, so that rates are calibrated."""
        return self.whole.clean

    @property
    def chosen_threshold(self) -> float | None:
        """The threshold that a choice set on the table fitted on, for the tables after it."""
        return self.group_threshold if self.groups else self.detector.flags_above


@dataclass(frozen=True)
class StoredGroup:
    """What a model file holds of a group."""

    values: tuple[str | None, ...]
    n_rows: Annotated[int, Meta(ge=3)]
    encoder: TableEncoder
    detector: Detector
    training_scores: Annotated[FloatArray, "n"]

    def validate(self) -> None:
        """Refuse parts that are sound by themselves but do not belong together."""
        if tuple(group.columns for group in self.encoder.groups) != self.detector.groups:
            raise ValueError("the encoder and the detector of a group differ in their columns")
        if self.detector.n_samples_fit != self.n_rows:
            raise ValueError("a group was fitted on other rows")


@dataclass(frozen=True)
class StoredModel:
    """What a model file holds: the fields of a `NoveltyModel`."""

    encoder: TableEncoder
    detector: Detector
    training_scores: Annotated[FloatArray, "n"]
    rule: Rule
    options: ScreeningOptions
    source: SourceInfo
    versions: dict[str, str]
    warnings: tuple[str, ...]
    groups: tuple[StoredGroup, ...]
    group_threshold: float | None

    def validate(self) -> None:
        """Refuse parts that are sound by themselves but do not belong together."""
        clean = not self.detector.parameters.contaminated
        if self.rule != resolve_rule(self.options, clean=clean):
            raise ValueError("the rule is not the one its options lead to")
        if tuple(group.columns for group in self.encoder.groups) != self.detector.groups:
            raise ValueError("the encoder and the detector differ in their columns")
        n_rows = self.source.n_rows
        n_scores = n_rows * (n_rows <= SAMPLE_ROWS)
        if self.detector.n_samples_fit != n_rows or len(self.training_scores) != n_scores:
            raise ValueError("the scores are not those of the rows fitted on")
        by, keys = self.options.columns.by, {group.values for group in self.groups}
        used = {spec.name for spec in self.encoder.plan.used}
        sound = (
            bool(by) == bool(self.groups)
            and len(keys) == len(self.groups) <= MAX_GROUPS
            and all(len(key) == len(by) for key in keys)
            and sum(group.n_rows for group in self.groups) <= n_rows
            and {*by} <= used
            and (self.group_threshold is None) == (self.rule.calibrated or not self.groups)
        )
        for group in self.groups:
            names = {spec.name for spec in group.encoder.plan.used}
            few = group.n_rows if n_scores else 0
            sound &= names <= used - {*by} and len(group.training_scores) == few
            sound &= group.detector.parameters.contaminated != clean
            sound &= group.detector.combined is not None
        if not sound:
            raise ValueError("the groups do not fit the rest")


def library_versions() -> dict[str, str]:
    """Versions of this package and of the libraries the numbers depend on."""
    found = {name: metadata.version(name) for name in LIBRARIES}
    return {"python": platform.python_version(), **found}


def save_model(model: NoveltyModel, path: str | Path) -> None:
    """Write a model to one file: a zip of JSON and arrays, never pickle.

    The file holds rows of the reference (reasons are found among them): share it as you would
    share the data.

    Parameters
    ----------
    model : NoveltyModel
        The model.
    path : str or Path
        Where to; replaced if it exists.
    """
    few = len(model.training_scores) <= SAMPLE_ROWS

    def stored(piece: ModelPiece | NoveltyModel) -> dict[str, Any]:
        # A file holds an array that is one object once: here each piece has one of its own.
        return {"training_scores": piece.training_scores if few else np.empty(0)}

    changed = {
        **stored(model),
        # Threads are left to the next machine.
        "options": replace(model.options, jobs=None),
        "versions": dict(model.versions),
        # Who loads it may hide other columns.
        "warnings": tuple(map(str, model.warnings)),
        "groups": tuple(StoredGroup(**{**vars(one), **stored(one)}) for one in model.groups),
    }
    save_model_file(path, KIND, StoredModel(**{**vars(model), **changed}))


def load_model(path: str | Path) -> NoveltyModel:
    """Read a model back.

    Parameters
    ----------
    path : str or Path
        A file that `save_model` wrote.

    Returns
    -------
    NoveltyModel
        Fitted with other versions of the libraries, it says so among its warnings.

    Raises
    ------
    ModelFileError
        If the file is damaged, or no novelty model.
    """
    stored = load_model_file(
        path, KIND, StoredModel, "a novelty model; fit one with kpca novelty fit"
    )
    now, warnings = library_versions(), stored.warnings
    changed = [
        f"{name} {version} (here {now.get(name, 'none')})"
        for name, version in sorted(stored.versions.items())
        if now.get(name) != version
    ]
    if changed:
        fitted_with = ", ".join(changed)
        warnings += (
            f"The model was fitted with {fitted_with}: scores may differ in their last digits.",
        )
    groups = tuple(ModelPiece(**vars(group)) for group in stored.groups)
    return NoveltyModel(**{**vars(stored), "warnings": warnings, "groups": groups})
