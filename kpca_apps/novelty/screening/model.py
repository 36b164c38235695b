"""Options of a fit, the fitted model of a table and its groups, and the model file."""

from __future__ import annotations

import math
import platform
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from kpca_apps.engine.rows import SAMPLE_ROWS
from kpca_apps.errors import OptionError, flag_of
from kpca_apps.novelty.columns.parts import GroupKey
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.detector.detector import Detector
from kpca_apps.novelty.detector.threshold import Rule
from kpca_apps.novelty.detector.views import RawColumns
from kpca_apps.novelty.screening.encoded import LearnedEncoder
from kpca_apps.options import (
    CalibrationName,
    LayoutName,
    LearnFrom,
    MethodName,
    NoveltyOptions,
    check_limits,
)
from kpca_apps.system.arrays import FloatArray
from kpca_apps.system.files.model_files import load_model_file, save_model_file
from kpca_apps.tables.source_info import SourceInfo

KIND = "novelty"
MAX_GROUPS = 100  # maximum number of groups with models of their own
# A group with fewer rows gets no model of its own. In tests with 50 to 200 rows per group (not with
# 30), such models found more planted faults, on average, than one model of all rows with the group
# as a column. Groups differed in location, in curvature, or in how columns depend on each other.
MIN_ROWS = 50
LIBRARIES = ("kpca-apps", "numpy", "scipy", "scikit-learn", "polars")
DEFAULT_SHARE = 0.01
DEFAULT_ALPHA = 0.05
RULES = ("share", "count", "alpha", "fdr")


@dataclass(frozen=True)
class ScreeningOptions:
    """The screening options of `NoveltyOptions`; ``None``: the value depends on the table."""

    share: float | None = None
    count: int | None = None
    alpha: float | None = None
    fdr: float | None = None
    columns: ColumnOptions = field(default_factory=ColumnOptions)
    positive: str | None = None
    explain: int = NoveltyOptions.explain
    method: MethodName = NoveltyOptions.method
    sigma: float | None = None
    components: int | float | None = None
    ridge: float | None = None
    n_landmarks: int | None = None
    calibration: CalibrationName = NoveltyOptions.calibration
    learn_from: LearnFrom = NoveltyOptions.learn_from
    seed: int = NoveltyOptions.seed
    jobs: int | None = None
    layout: LayoutName | None = None  # `layout` for `open_table`, now and for files scored later

    def __post_init__(self) -> None:
        given = [name for name in RULES if getattr(self, name) is not None]
        if len(given) > 1:
            others = " ".join(f"and {flag_of(name)}" for name in given[1:])
            raise OptionError(
                given[0], f"{others} cannot be combined: each sets which rows are flagged; give one"
            )
        check_limits(self)
        if self.positive is not None and self.columns.label is None:
            raise OptionError("positive", "names a value of the label column: give --label too")

    @classmethod
    def of(cls, options: NoveltyOptions) -> ScreeningOptions:
        """Return the options of a command or call; options that are None keep their defaults."""
        columns = ColumnOptions(**options.given(ColumnOptions))
        return cls(**options.given(cls), columns=columns)


def resolve_rule(options: ScreeningOptions, *, clean: bool, default: Rule | None = None) -> Rule:
    """Return the rule that flags rows: the given one of share, count, alpha and fdr.

    If none is given: `default`, or else share 0.01, or alpha 0.05 with a `clean` reference.
    """
    for name in RULES:
        if (setting := getattr(options, name)) is not None:
            rule = Rule(name, setting)
            if rule.calibrated and not clean:
                raise OptionError(
                    name,
                    "needs rows known to be normal; give them with --reference, or use --share "
                    "or --count",
                )
            return rule
    return default or (Rule("alpha", DEFAULT_ALPHA) if clean else Rule("share", DEFAULT_SHARE))


def rows_needed(rule: Rule) -> int:
    """Return the minimum number of rows for a group's own model and its calibration, if any."""
    # The smallest number n of clean rows with 1 / (n + 1) <= alpha.
    calibrating = math.ceil(1.0 / rule.setting - 1e-9) - 1 if rule.name == "alpha" else 0
    return max(MIN_ROWS, calibrating)


def n_training_rows(options: ScreeningOptions, n_rows: int) -> int:
    """Return the number of `n_rows` rows that a model learns from: all, or a sample."""
    return n_rows if options.learn_from == "all" else min(n_rows, SAMPLE_ROWS)


@dataclass(frozen=True)
class GroupModel:
    """The model that judges the rows of one group."""

    stored_as: ClassVar[str] = "StoredGroup"  # name of the class in model files

    is_whole: ClassVar[bool] = False

    values: GroupKey  # texts that the group's rows share in the grouping columns
    n_rows: Annotated[int, Meta(ge=3)]  # number of training rows
    encoder: LearnedEncoder  # column plan, and encoding of the columns
    detector: Detector  # detector fitted on the encoded rows; holds some of them
    # Leave-one-out scores of the training rows; not saved for more than 100,000 rows, and then
    # empty in a model read from a file.
    training_scores: Annotated[FloatArray, "n"]

    @property
    def clean(self) -> bool:
        """Whether the model was fitted on a clean reference, so that p-values are calibrated."""
        return not self.detector.parameters.contaminated

    def validate(self) -> None:
        """Raise if parts that are valid by themselves do not belong together."""
        _require_one_fit(self)


@dataclass(frozen=True)
class NoveltyModel:
    """All that scoring and flagging need: the models of the whole table and of each group."""

    stored_as: ClassVar[str] = "StoredModel"  # name of the class in model files
    is_whole: ClassVar[bool] = True

    encoder: LearnedEncoder  # encoder of the whole table's model
    detector: Detector
    training_scores: Annotated[FloatArray, "n"]
    rule: Rule  # rule that flags rows unless another is requested
    options: ScreeningOptions  # options of the fit
    source: SourceInfo  # the training table
    versions: dict[str, str]  # versions of the libraries in the fit
    warnings: tuple[str, ...] = ()  # warnings about the training table
    groups: tuple[GroupModel, ...] = ()  # models of groups, largest first
    # One threshold for all groups, chosen in the fit; None without groups or with a reference.
    group_threshold: float | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows of the training table."""
        return self.source.n_rows

    @property
    def n_training(self) -> int:
        """Number of training rows: all rows, or a sample."""
        return n_training_rows(self.options, self.n_rows)

    @property
    def models(self) -> tuple[AnyModel, ...]:
        """The model of the whole table, and the models of groups of its rows."""
        return (self, *self.groups)

    @property
    def clean(self) -> bool:
        """Whether the model was fitted on a clean reference, so that p-values are calibrated."""
        return not self.detector.parameters.contaminated

    def validate(self) -> None:
        """Raise if parts that are valid by themselves do not belong together."""
        _require_one_fit(self)
        if self.rule != resolve_rule(self.options, clean=self.clean):
            raise ValueError("the rule is not the one its options lead to")
        n_rows, by = self.n_rows, self.options.columns.by
        used = {spec.name for spec in self.encoder.plan.used}
        sound = (
            bool(by) == bool(self.groups)
            and len({group.values for group in self.groups}) == len(self.groups) <= MAX_GROUPS
            and sum(group.n_rows for group in self.groups) <= n_rows
            and {*by} <= used
            and (self.group_threshold is None) == (self.clean or not self.groups)
        )
        for group in self.groups:
            names = {spec.name for spec in group.encoder.plan.used}
            sound &= len(group.values) == len(by) and names <= used - {*by}
            sound &= group.clean == self.clean and group.detector.combined is not None
        if not sound:
            raise ValueError("the groups do not fit the rest")
        has_scores = n_rows <= SAMPLE_ROWS
        for piece in self.models:
            if len(piece.training_scores) != piece.n_rows * has_scores:
                raise ValueError("the scores are not those of the rows fitted on")


AnyModel = NoveltyModel | GroupModel


def _require_one_fit(model: AnyModel) -> None:
    """Raise if an encoder and a detector come from different fits."""
    if tuple(group.columns for group in model.encoder.groups) != model.detector.groups:
        raise ValueError("the encoder and the detector differ in their columns")
    if model.detector.n_samples_fit != model.n_rows:
        raise ValueError("the detector was fitted on other rows")
    if type(model.detector.views) is RawColumns:
        raise ValueError("the detector has a kernel that no method has")


_version = cache(metadata.version)  # cached, as `version` reads a file each time


def library_versions() -> dict[str, str]:
    """Return versions of this package and of the libraries that the numbers depend on."""
    found = {name: _version(name) for name in LIBRARIES}
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
        Path of the file; an existing model is replaced, any other file is not.

    Raises
    ------
    TypeError
        For an estimator, such as `KernelPCA`: `joblib.dump` saves it.
    """
    if not isinstance(model, NoveltyModel):
        raise TypeError(
            f"save_model writes what fit_model returns, not {type(model).__name__}: save an "
            "estimator with joblib.dump(estimator, path)."
        )
    few = len(model.training_scores) <= SAMPLE_ROWS

    def kept(scores: FloatArray) -> FloatArray:
        return scores if few else np.empty(0)

    stored = replace(
        model,
        training_scores=kept(model.training_scores),
        # The number of threads is not saved, as it depends on the machine.
        options=replace(model.options, jobs=None),
        # Save notes without values of cells: a user of the model may have to hide their columns.
        warnings=tuple(map(str, model.warnings)),
        groups=tuple(
            replace(group, training_scores=kept(group.training_scores)) for group in model.groups
        ),
    )
    save_model_file(path, KIND, stored)


def load_model(path: str | Path) -> NoveltyModel:
    """Read a model from a file.

    Parameters
    ----------
    path : str or Path
        A file that `save_model` wrote.

    Returns
    -------
    NoveltyModel
        The model; its warnings name the library versions that differ from those of the fit.

    Raises
    ------
    ModelFileError
        If the file is damaged, or no novelty model.
    """
    stored = load_model_file(
        path, KIND, NoveltyModel, "a novelty model; fit one with kpca novelty fit"
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
    return replace(stored, warnings=warnings)
