"""A fitted novelty model: column plan, encoder and detector, in memory and in a file."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.engine.kernels import Cosine, Kernel, Laplacian, Linear, Polynomial
from kpca_apps.engine.rows import SAMPLE_ROWS
from kpca_apps.errors import ConfigError, InputError, KpcaError
from kpca_apps.names import one_line
from kpca_apps.novelty.columns.encoding import MISSING, TableEncoder
from kpca_apps.novelty.columns.parted_rows import Execution, draw_sample, in_parts, table_rows
from kpca_apps.novelty.columns.plan import (
    ColumnPlan,
    check_options,
    infer_plan,
    listed,
    quoted,
)
from kpca_apps.novelty.columns.rows import AnyTable, GroupKey, TableRows, column_names
from kpca_apps.novelty.detector.detector import Detector, Parameters
from kpca_apps.novelty.detector.fit import Fit, fit_detector
from kpca_apps.novelty.detector.large_groups import (
    LargeGroup,
    LargeGroups,
    find_large_group,
)
from kpca_apps.novelty.detector.threshold import Rule
from kpca_apps.novelty.detector.views import ColumnRoles
from kpca_apps.novelty.redact import Note
from kpca_apps.novelty.screening.options import (
    DEFAULT_ALPHA,
    DEFAULT_SHARE,
    ScreeningOptions,
    resolve_rule,
)
from kpca_apps.system.model_files import load_model_file, save_model_file
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import PartedTable

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

KIND = "novelty"
MAX_GROUPS = 100  # with a model of their own
MAX_LARGE_GROUPS = 3  # that are ranked among themselves: each takes one more fit
LIBRARIES = ("kpca-apps", "numpy", "scipy", "scikit-learn", "polars")
IN_PARTS = "and is read in parts"


@dataclass(frozen=True)
class NoveltyModel:
    """What is needed to score and flag rows of a table."""

    encoder: TableEncoder  # the column plan and how the columns became numbers
    detector: Detector  # fitted on the encoded rows, of which it holds some
    # (n,), of the rows fitted on, each as if left out; of more than 100,000 rows they are not
    # saved, and empty in a model that was read back.
    training_scores: FloatArray
    rule: Rule  # flags rows unless another one is asked for
    options: ScreeningOptions  # of the fit
    source: SourceInfo  # the table fitted on
    versions: Mapping[str, str]  # of the libraries it was fitted with
    warnings: tuple[str, ...] = ()  # about the table fitted on
    groups: tuple[GroupModel, ...] = ()  # that have a model of their own, largest first
    # With groups: that the choice of the fit set on the scores of all rows; None: a rate.
    group_threshold: float | None = None

    @property
    def clean(self) -> bool:
        """Whether it was fitted on a clean reference, so that rates are calibrated."""
        return not self.detector.parameters.contaminated


@dataclass(frozen=True)
class GroupModel:
    """What judges the rows of one group."""

    values: GroupKey  # of its rows in the columns they are grouped by
    model: NoveltyModel


@dataclass(frozen=True)
class StoredGroup:
    """What a model file holds of a group: its values, and the fields that are its own."""

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


def fit_table(
    table: AnyTable,
    options: ScreeningOptions | None = None,
    *,
    clean: bool = True,
    is_accepted: BoolArray | None = None,
    execution: Execution | None = None,
    plan: ColumnPlan | None = None,
) -> tuple[NoveltyModel, TableRows]:
    """Fit a model to a table, whose rows may be known to be normal; return the rows as well.

    Of a table that is not `clean`, rows that are accepted (n,) are learned from as normal ones.
    `plan` says what the columns become, where those of a table that has these rows were planned
    and looked at before; by default the options and the rules do.

    Of more than 100,000 rows, columns, scalings and landmarks are learned from 100,000 drawn with
    the seed; what is summed or trimmed, from all.
    """
    options, execution = options or ScreeningOptions(), execution or Execution()
    table = in_parts(table)
    rule = resolve_rule(options, clean=clean)
    check_options(options.columns, column_names(table), table.source.name)
    sample = draw_sample(table, options.seed, execution)
    is_new, plan = plan is None, plan or infer_plan(sample.table, options.columns)
    encoder = TableEncoder.fit(sample.table, plan, contaminated=not clean)
    if is_new or isinstance(table, PartedTable):
        rows = table_rows(
            encoder,
            table,
            seed=options.seed,
            n_jobs=options.jobs,
            execution=execution,
            sample=sample,
            is_accepted=is_accepted,
        )
    else:
        rows = TableRows(encoder, table, n_jobs=options.jobs)
    n_judged = rows.n_rows - (0 if is_accepted is None else int(is_accepted.sum()))
    parameters, kernel = _parameters(rule, options, rows.n_rows, n_judged, clean)
    fit = partial(
        fit_detector,
        rows,
        parameters,
        ColumnRoles.of(
            rows.sample.shape[1], encoder.as_is, [group.columns for group in encoder.groups]
        ),
        kernel=kernel,
        normal=is_accepted,
        n_jobs=options.jobs,
        random_state=options.seed,
    )
    try:
        fitted, large_groups = _rank_within_large_groups(fit, rows, options, is_accepted)
    except ValueError as error:
        if isinstance(error, KpcaError):
            raise
        raise InputError(f"{table.source.name}: {' '.join(str(error).split())}") from error
    # Whether a rule can flag anything is said of each table that it is applied to (`verdict.py`):
    # the detector's last warning, on a threshold that is infinite, would repeat it.
    detector = fitted.detector
    of_fit = detector.warnings if detector.threshold is not None else detector.warnings[:-1]
    of_size = (
        f"The table has {rows.n_rows:,} rows {IN_PARTS}: what its columns are, their "
        f"scalings and figures, and the landmarks come from {len(rows.sample_index):,} rows drawn; "
        "means, covariances, scores and ranks are those of all rows."
    )
    model = NoveltyModel(
        encoder=encoder,
        detector=detector,
        training_scores=fitted.scores,
        rule=rule,
        options=options,
        source=table.source,
        versions=library_versions(),
        warnings=(
            *((of_size,) if rows.size_of_parts is not None else ()),
            *plan.warnings,
            *(_running_note(plan) if clean else ()),
            *(rows.warnings() if is_new else ()),
            *large_groups,
            *of_fit,
        ),
    )
    return model, rows


def _running_note(plan: ColumnPlan) -> Iterator[str]:
    """Say which columns run on, and what that means for rows that are scored later."""
    names = [spec.name for spec in plan.used if spec.runs_on]
    if names:
        verb = "runs" if len(names) == 1 else "run"
        yield (
            f"{listed(names)} {verb} on with the rows: of later rows, what repeats there is "
            "compared (time of day, day of the week), not how far it has run."
        )


def _rank_within_large_groups(
    fit: Callable[..., Fit],
    rows: TableRows,
    options: ScreeningOptions,
    is_accepted: BoolArray | None,
) -> tuple[Fit, tuple[str, ...]]:
    """Fit, again where a group too large to be odd fills the list, and say so of each."""
    fitted, found, notes = fit(), LargeGroups(), []
    contaminated = fitted.detector.parameters.contaminated
    columns = [*rows.encoder.state_columns(options.columns.by)] if contaminated else []
    while fitted.detector.combined is not None and len(found) < MAX_LARGE_GROUPS:
        scores = fitted.scores[rows.sample_index]
        if is_accepted is not None:
            scores = np.where(is_accepted[rows.sample_index], -np.inf, scores)
        one = find_large_group(rows.sample, scores, columns, rows.encoder.as_is)
        if one is None or one in found.groups:
            break
        notes.append(_large_group_note(rows, one))
        found = LargeGroups((*found.groups, one))
        fitted = fit(large_groups=found)
    return fitted, tuple(notes)


def _large_group_note(rows: TableRows, large: LargeGroup) -> Note:
    """Say which rows lie apart and are too many to be odd."""
    encoder, is_of = rows.encoder, rows.sample[:, large.column] == large.value
    group = next(g for g, of in enumerate(encoder.groups) if large.column in of.columns)
    name = encoder.groups[group].name
    text, _ = encoder.seen(rows.sample_table, int(is_of.argmax()), group)
    start = f"{100 * is_of.mean():.0f} % of the rows have"
    value = f"no {quoted(name)}" if text == MISSING else f"{quoted(name)} {one_line(text, 40)}"
    rest = (
        "and lie apart from the others. So many are not odd by themselves: they are ranked among "
        "each other, and the oddest of them are listed."
    )
    bare = f"{start} one value of {quoted(name)} {rest}"
    return Note(f"{start} {value} {rest}", bare, (name,))


def _parameters(
    rule: Rule, options: ScreeningOptions, n_rows: int, n_judged: int, clean: bool
) -> tuple[Parameters, Literal["rbf"] | Kernel | None]:
    """Return the parameters and kernel that the options describe, if `n_rows` can bear them.

    Of these `n_judged` may be flagged.
    """
    # With a clean reference a choice is about the tables scored later, not about this one.
    chosen = not rule.calibrated and not clean
    if chosen and rule.name == "count" and rule.setting >= n_judged:
        raise ConfigError(
            f"--count {rule.setting:g} would flag every one of the {n_judged} rows: choose fewer"
        )
    share = rule.setting / n_judged if rule.name == "count" else rule.setting
    if options.calibration != "auto" and not clean:
        raise ConfigError(
            f"--calibration {options.calibration} needs a clean reference: give one with "
            "--reference, or leave calibration out"
        )
    # As many components as the rows can span would leave no error to score by. Truncation is
    # fitted on half of a clean reference: the other half calibrates it.
    n_used = max(2, n_rows // 2) if clean else n_rows
    spanned = min(n_used, options.n_landmarks or n_used)
    if options.n_components is not None and options.n_components >= spanned:
        spanning = "training rows" if spanned == n_used else "landmarks"
        raise ConfigError(
            f"--components {options.n_components} would span all that {spanned:,} {spanning} can: "
            "choose fewer"
        )
    gamma = options.gamma if options.sigma is None else 1.0 / (2.0 * options.sigma**2)
    kernel: Literal["rbf"] | Kernel | None = None  # the mean over four views
    if options.kernel == "rbf":
        kernel = "rbf"
    elif options.kernel == "laplacian" and gamma is not None:
        kernel = Laplacian(gamma)
    elif options.kernel == "poly":
        kernel = Polynomial(degree=2, gamma=gamma or 1.0, coef0=1.0)
    elif options.kernel in ("linear", "cosine"):
        kernel = Linear() if options.kernel == "linear" else Cosine()
    parameters = Parameters(
        contaminated=not clean,
        share=share if chosen else DEFAULT_SHARE,
        alpha=rule.setting if rule.name == "alpha" else DEFAULT_ALPHA,
        n_components=options.n_components,
        gamma=gamma if kernel == "rbf" else None,
        ridge=options.ridge,
        n_landmarks=options.n_landmarks,
        calibration=options.calibration,
    )
    return parameters, kernel


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
    groups = tuple(
        StoredGroup(
            group.values,
            group.model.source.n_rows,
            group.model.encoder,
            group.model.detector,
            group.model.training_scores if few else np.empty(0),
        )
        for group in model.groups
    )
    changed = {
        "training_scores": model.training_scores if few else np.empty(0),
        # Threads are left to the next machine.
        "options": replace(model.options, jobs=None),
        "versions": dict(model.versions),
        # Who loads it may hide other columns.
        "warnings": tuple(map(str, model.warnings)),
        "groups": groups,
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
    model = NoveltyModel(
        **{**vars(stored), "warnings": warnings, "groups": (), "group_threshold": None}
    )
    groups = tuple(
        GroupModel(
            group.values,
            replace(
                model,
                encoder=group.encoder,
                detector=group.detector,
                training_scores=group.training_scores,
                source=replace(model.source, n_rows=group.n_rows),
                warnings=(),
            ),
        )
        for group in stored.groups
    )
    return replace(model, groups=groups, group_threshold=stored.group_threshold)
