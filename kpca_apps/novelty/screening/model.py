"""A fitted novelty model: column plan, encoder and detector, in memory and in a file."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.kernels import (
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
)
from kpca_apps.engine.rows import SAMPLE_ROWS
from kpca_apps.errors import ConfigError, InputError, KpcaError
from kpca_apps.files.models import load_model_file, save_model_file
from kpca_apps.files.tables.table import SourceInfo
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.detector.state import DetectorState
from kpca_apps.novelty.screening.options import (
    DEFAULT_ALPHA,
    DEFAULT_SHARE,
    Rule,
    ScreeningOptions,
    resolve_rule,
)
from kpca_apps.novelty.table.columns import check_options, infer_plan
from kpca_apps.novelty.table.encoding import TableEncoder
from kpca_apps.novelty.table.parted_rows import Execution, draw_sample, in_parts, table_rows
from kpca_apps.novelty.table.table_rows import AnyTable, TableRows, column_names

__all__ = [
    "NoveltyModel",
    "fit_model",
    "fit_table",
    "library_versions",
    "load_model",
    "save_model",
]

FloatArray = NDArray[np.float64]

KIND = "novelty"
LIBRARIES = ("kpca-apps", "numpy", "scipy", "scikit-learn", "polars")


@dataclass(frozen=True)
class NoveltyModel:
    """What is needed to judge rows of a table.

    Attributes
    ----------
    encoder : TableEncoder
        The column plan and how the columns became numbers.
    detector : KernelPCANovelty
        Fitted on the encoded rows. It holds rows of its reference.
    training_scores : (n,) array
        Scores of the rows fitted on, each as if it had been left out; of more than 100,000 rows
        they are not saved, and empty in a model that was read back.
    rule : Rule
        What flags rows unless another rule is asked for.
    options : ScreeningOptions
        As the fit was told.
    source : SourceInfo
        The table fitted on.
    versions : mapping of str to str
        Of the libraries it was fitted with.
    warnings : tuple of str
        What was said of the table fitted on.
    """

    encoder: TableEncoder
    detector: KernelPCANovelty
    training_scores: FloatArray
    rule: Rule
    options: ScreeningOptions
    source: SourceInfo
    versions: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether it was fitted on a clean reference, so that rates are calibrated."""
        return not self.detector.contaminated


def fit_model(
    table: AnyTable,
    options: ScreeningOptions | None = None,
    *,
    clean: bool = True,
    execution: Execution | None = None,
) -> NoveltyModel:
    """Fit a model to a table.

    Parameters
    ----------
    table : Table or PartedTable
        The reference, or the table to screen, of at least 3 rows. Of more than 100,000 rows,
        columns, scalings and landmarks are learned from 100,000 drawn with the seed; what is
        summed or trimmed, from all.
    options : ScreeningOptions, optional
        How.
    clean : bool
        Whether its rows are known to be normal.
    execution : Execution, optional
        Who works on a table that is read in parts.

    Returns
    -------
    NoveltyModel

    Raises
    ------
    ConfigError
        If the options contradict each other or the table.
    InputError
        If the table cannot be used: too few rows, no usable column.
    """
    return fit_table(table, options, clean=clean, execution=execution)[0]


def fit_table(
    table: AnyTable,
    options: ScreeningOptions | None = None,
    *,
    clean: bool,
    execution: Execution | None = None,
) -> tuple[NoveltyModel, TableRows]:
    """Fit a model as `fit_model` does, and hand out the rows it was fitted on."""
    options, execution = options or ScreeningOptions(), execution or Execution()
    table = in_parts(table)
    rule = resolve_rule(options, clean=clean)
    check_options(options.columns, column_names(table), table.source.name)
    sample = draw_sample(table, options.seed, execution)
    plan = infer_plan(sample.table, options.columns)
    encoder = TableEncoder.fit(sample.table, plan, contaminated=not clean)
    rows = table_rows(
        encoder, table, seed=options.seed, n_jobs=options.jobs, execution=execution, sample=sample
    )
    detector = _detector(rule, options, encoder, rows.n_rows, clean)
    try:
        detector.fit_rows(rows)
    except ValueError as error:
        if isinstance(error, KpcaError):
            raise
        raise InputError(f"{table.source.name}: {_one_sentence(error)}") from error
    model = NoveltyModel(
        encoder=encoder,
        detector=detector,
        training_scores=detector.novelty_scores_,
        rule=rule,
        options=options,
        source=table.source,
        versions=library_versions(),
        warnings=(*_of_size(rows), *plan.warnings, *rows.warnings(), *_of_fit(detector)),
    )
    return model, rows


def _of_size(rows: TableRows) -> tuple[str, ...]:
    """Say what a fit to a table in parts rests on."""
    if rows.size_of_parts is None:
        return ()
    return (
        f"The table has {rows.n_rows:,} rows and is read in parts: what its columns are, their "
        f"scalings and figures, and the landmarks come from {len(rows.sample_index):,} rows drawn; "
        "means, covariances, scores and ranks are those of all rows.",
    )


def _detector(
    rule: Rule, options: ScreeningOptions, encoder: TableEncoder, n_rows: int, clean: bool
) -> KernelPCANovelty:
    """Build the unfitted detector that the options describe."""
    # With a clean reference a choice is about the tables judged later, not about this one.
    chosen = not rule.calibrated and not clean
    if chosen and rule.name == "count" and rule.setting >= n_rows:
        raise ConfigError(
            f"--count {rule.setting:g} would flag every one of the {n_rows} rows: choose fewer"
        )
    share = rule.setting / n_rows if rule.name == "count" else rule.setting
    _check_cut(options, n_rows, clean)
    return KernelPCANovelty(
        contaminated=not clean,
        share=share if chosen else DEFAULT_SHARE,
        alpha=rule.setting if rule.name == "alpha" else DEFAULT_ALPHA,
        n_components=options.n_components,
        kernel=_kernel(options),
        gamma=_gamma(options) if options.kernel == "rbf" else None,
        ridge=options.ridge,
        n_landmarks=options.n_landmarks,
        calibration=options.calibration,
        as_is=list(encoder.as_is),
        groups=[group.columns for group in encoder.groups],
        n_jobs=options.jobs,
        random_state=options.seed,
    )


def _check_cut(options: ScreeningOptions, n_rows: int, clean: bool) -> None:
    """Refuse a calibration that would be ignored, and as many components as rows can span.

    So many components would leave no error to score by.
    """
    if options.calibration != "auto" and not clean:
        raise ConfigError(
            f"--calibration {options.calibration} needs a clean reference: give one with "
            "--reference, or leave calibration out"
        )
    wanted = options.n_components
    # A hard cut is fitted on half of a clean reference: the other half calibrates it.
    n_used = max(2, n_rows // 2) if clean else n_rows
    spanned = min(n_used, options.n_landmarks or n_used)
    if wanted is not None and wanted >= spanned:
        rows = "rows in use" if spanned == n_used else "landmarks"
        raise ConfigError(
            f"--components {wanted} would span all that {spanned:,} {rows} can: choose fewer"
        )


def _of_fit(detector: KernelPCANovelty) -> tuple[str, ...]:
    """Return what the fit warned of, without the last word on a threshold that cannot be.

    What a rule means for a table is said by the rule (`flagging.py`), once.
    """
    said: tuple[str, ...] = detector.warnings_
    return said if np.isfinite(detector.threshold_) else said[:-1]


def _gamma(options: ScreeningOptions) -> float | None:
    return options.gamma if options.sigma is None else 1.0 / (2.0 * options.sigma**2)


def _kernel(options: ScreeningOptions) -> str | Kernel | None:
    """Turn the name of a kernel into the kernel; ``None`` for the mean over four views."""
    name, gamma = options.kernel, _gamma(options)
    if name is None or name == "rbf":
        return name
    if name == "laplacian" and gamma is not None:
        return Laplacian(gamma)
    if name == "polynomial":
        return Polynomial(degree=2, gamma=gamma or 1.0, coef0=1.0)
    return Linear() if name == "linear" else Cosine()


def _one_sentence(error: ValueError) -> str:
    return " ".join(str(error).split())


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
    stored = StoredModel(
        encoder=model.encoder,
        detector=DetectorState.of(model.detector),
        training_scores=model.training_scores if few else np.empty(0),
        rule=model.rule,
        # Threads are left to the next machine.
        options=replace(model.options, jobs=None),
        source=model.source,
        versions=dict(model.versions),
        warnings=model.warnings,
    )
    save_model_file(path, KIND, stored)


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
    return NoveltyModel(
        encoder=stored.encoder,
        detector=stored.detector.restored(),
        training_scores=stored.training_scores,
        rule=stored.rule,
        options=stored.options,
        source=stored.source,
        versions=stored.versions,
        warnings=(*stored.warnings, *_version_warning(stored.versions)),
    )


@dataclass(frozen=True)
class StoredModel:
    """What a model file holds."""

    encoder: TableEncoder
    detector: DetectorState
    training_scores: Annotated[FloatArray, "n"]
    rule: Rule
    options: ScreeningOptions
    source: SourceInfo
    versions: dict[str, str]
    warnings: tuple[str, ...]

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


def _version_warning(fitted_with: Mapping[str, str]) -> tuple[str, ...]:
    now = library_versions()
    changed = [
        f"{name} {version} (here {now.get(name, 'none')})"
        for name, version in sorted(fitted_with.items())
        if now.get(name) != version
    ]
    if not changed:
        return ()
    return (
        f"The model was fitted with {', '.join(changed)}: scores may differ in their last digits.",
    )
