"""Fit a model to a table: plan its columns, encode its rows, fit all rows and each group.

For more than 100,000 rows, all is learned from 100,000 drawn with the seed; with
`learn_from="all"`, sums and trimming use all rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpca_apps.engine.rows import ArrayRows, RowSource
from kpca_apps.errors import ConfigError, InputError, KpcaError, OptionError
from kpca_apps.names import MISSING, listed, quoted, quoted_cell
from kpca_apps.novelty.accepted import Accepted
from kpca_apps.novelty.columns.lookup import resolve_columns
from kpca_apps.novelty.columns.parts import (
    AnyTable,
    Execution,
    GroupKey,
    Sample,
    draw_sample,
    find_groups,
    group_text,
)
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec, infer_plan
from kpca_apps.novelty.detector.detector import Detector, Parameters
from kpca_apps.novelty.detector.fit import fit_detector, half_of
from kpca_apps.novelty.detector.large_groups import LargeGroup, LargeGroups, find_large_group
from kpca_apps.novelty.detector.surprise.marked import KnownRows, Marked, marked_rows
from kpca_apps.novelty.detector.threshold import Rule
from kpca_apps.novelty.detector.views import ColumnRoles
from kpca_apps.novelty.redact import Note, without_values
from kpca_apps.novelty.relations.revealed import revealed_notes
from kpca_apps.novelty.screening.encoded import Encoded, LearnedEncoder, encode
from kpca_apps.novelty.screening.model import (
    DEFAULT_ALPHA,
    DEFAULT_SHARE,
    MAX_GROUPS,
    GroupModel,
    NoveltyModel,
    ScreeningOptions,
    library_versions,
    n_training_rows,
    resolve_rule,
    rows_needed,
)
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.files.windowed import row_values
from kpca_apps.tables.table import Table

# Up to FULL_LANDMARKS groups have as many landmarks each as a whole table. With more groups, each
# has fewer, but at least FEWEST_LANDMARKS, so that the matrices of all models do not grow.
FULL_LANDMARKS, FEWEST_LANDMARKS = 8, 100
LANDMARKS = {False: 300, True: 700}  # number of landmarks, by whether the table is clean
MAX_LARGE_GROUPS = 3  # maximum number of large groups, as each takes one more fit
IN_PARTS = "and is read in parts"


@dataclass(frozen=True)
class Planned:
    """A table to fit a model to, and the plan of its columns."""

    options: ScreeningOptions
    clean: bool  # whether all rows are known to be normal
    rule: Rule
    sample: Sample
    training: Sample  # training rows of the sample: all, or half
    plan: ColumnPlan


def fit_table(
    table: AnyTable,
    options: ScreeningOptions | None = None,
    *,
    clean: bool = True,
    execution: Execution | None = None,
) -> tuple[NoveltyModel, Encoded]:
    """Return a model fitted to a table, and the encoded rows; if `clean`, all rows are normal."""
    options, execution = options or ScreeningOptions(), execution or Execution()
    options = replace(options, columns=resolve_columns(options.columns, table, execution))
    with without_values(options.columns.hide):
        sample = draw_sample(table, options.seed, execution)
        model, rows = fit_planned(plan_fit(sample, options, clean), execution)
        revealed = revealed_notes(
            rows.sample_table, rows.encoder.plan, rows.encoder.relations.rules, options.seed
        )
        return replace(model, warnings=(*revealed, *model.warnings)), rows


def plan_fit(sample: Sample, options: ScreeningOptions, clean: bool) -> Planned:
    """Plan each column's role from a sample; `resolve_columns` must have resolved the options."""
    rule = resolve_rule(options, clean=clean)
    if options.columns.by and options.method == "hoffmann":
        raise OptionError(
            "method",
            "hoffmann gives scores that cannot be compared between groups: leave out --method or "
            "--by",
        )
    training = training_rows(sample, options, clean)
    plan = infer_plan(training.table, options.columns)
    return Planned(options, clean, rule, sample, training, plan)


def training_rows(sample: Sample, options: ScreeningOptions, clean: bool) -> Sample:
    """Return the rows of a sample that a model learns from: all, or half in split calibration.

    The others are judged as new rows: split conformal calibration (Vovk et al. 2005, section 4.1).
    """
    by_split = options.calibration == "split"
    by_split |= options.calibration == "auto" and options.method == "hoffmann"
    if not (clean and by_split):
        return sample
    places = half_of(len(sample.index), options.seed)
    return Sample(sample.table.take(places), sample.index[places], sample.whole)


def fit_planned(
    planned: Planned, execution: Execution, accepted: Accepted | None = None
) -> tuple[NoveltyModel, Encoded]:
    """Fit a model to a planned table; also return its rows.

    Rows judged fine are learned as normal ones, unless the table is clean.
    """
    sample, training = planned.sample, planned.training
    options, clean, plan = planned.options, planned.clean, planned.plan
    table, rule, by, own = sample.whole, planned.rule, options.columns.by, list[int]()
    is_fine = None if accepted is None else accepted.is_fine
    judged = ... if accepted is None else ~accepted.is_accepted
    keys, codes = find_groups(table, by, execution)
    if by:
        own = own_groups(keys, codes[judged], by, rows_needed(rule), table.source.name)
    seed = options.seed
    encoder = LearnedEncoder.learn(training.table, plan, contaminated=not clean, seed=seed)
    n_jobs, of = options.jobs, training.index
    rows = encode(encoder, sample, execution, n_jobs=n_jobs, accepted=accepted, training=of)
    rows = replace(rows, groups=(keys, codes))
    parameters = _parameters(rule, options, rows.n_judged, clean)
    detector, fitted_scores, large_groups = _fit_detector(rows, parameters, options)
    if not clean:
        # The threshold depends on all rows, in the sample or not, except those a reader accepted.
        value = rule.threshold(fitted_scores[judged])
        detector = replace(detector, threshold=value if math.isfinite(value) else None)
    warnings = (
        *((_size_note(rows, options),) if rows.size_of_parts is not None else ()),
        *plan.warnings,
        *(_running_note(plan) if clean else ()),
        *rows.warnings,
        *large_groups,
        *detector.warnings,
    )
    n_landmarks = options.n_landmarks
    if n_landmarks is None and len(own) > FULL_LANDMARKS:
        fewer = LANDMARKS[clean] * math.sqrt(FULL_LANDMARKS / len(own))
        n_landmarks = max(FEWEST_LANDMARKS, round(fewer))
    parameters = replace(parameters, alpha=DEFAULT_ALPHA, n_landmarks=n_landmarks)
    groups, scores = list[GroupModel](), fitted_scores
    if own:
        scores = row_values(rows.n_rows, np.float64)
        scores[...] = fitted_scores
    for place in own:
        positions = np.flatnonzero(codes == place)
        of_group = None if is_fine is None else is_fine[positions]
        group = draw_sample(table, options.seed, execution, positions)
        piece = _fit_group(keys[place], group, plan, options, parameters, of_group, execution)
        if piece is not None:
            groups.append(piece)
            scores[positions] = piece.training_scores
    model = NoveltyModel(
        encoder=encoder,
        detector=detector,
        training_scores=fitted_scores,
        rule=rule,
        options=options,
        source=table.source,
        versions=library_versions(),
        warnings=warnings,
        groups=tuple(groups),
        group_threshold=rule.threshold(scores[judged]) if own and not clean else None,
    )
    return model, rows


def _fit_group(
    key: GroupKey,
    sample: Sample,
    plan: ColumnPlan,
    options: ScreeningOptions,
    parameters: Parameters,
    is_fine: BoolArray | None,
    execution: Execution,
) -> GroupModel | None:
    """Fit a model to the rows of one group; None if no column varies in it."""
    training = training_rows(sample, options, not parameters.contaminated)
    plan = plan_of_group(plan, options.columns.by, training.table)
    if not plan.used:
        return None
    contaminated, seed = parameters.contaminated, options.seed
    encoder = LearnedEncoder.learn(training.table, plan, contaminated=contaminated, seed=seed)
    n_jobs, of = options.jobs, training.index
    rows = encode(encoder, sample, execution, n_jobs=n_jobs, checked=False, training=of)
    fine = None if is_fine is None else Accepted(is_fine, "", ())
    detector, scores, _ = _fit_detector(replace(rows, accepted=fine), parameters, options)
    return GroupModel(key, rows.n_rows, encoder, detector, scores)


def _fit_detector(
    rows: Encoded, parameters: Parameters, options: ScreeningOptions
) -> tuple[Detector, FloatArray, list[Note]]:
    """Fit a detector; refit it, with a note, if the oddest rows are one large group.

    Also return the scores (n,) of the rows. Columns by which rows are grouped make no such group.
    """
    is_drawn = len(rows.training) < len(rows.sample_index)
    is_drawn |= n_training_rows(options, rows.n_rows) < rows.n_rows
    source: RowSource = rows
    known = KnownRows(beside=_marked_unsampled(rows), surprise=rows.surprise)
    if (accepted := rows.accepted) is not None:
        known = known._replace(normal=accepted.is_fine, wrong=accepted.is_wrong)
    if is_drawn:  # drawn rows are in memory
        places = np.searchsorted(rows.sample_index, rows.training)
        source = ArrayRows(rows.sample[places], n_jobs=rows.n_threads)
        known = known.take(rows.training)
    encoder, notes = rows.encoder, list[Note]()
    of_columns = [group.columns for group in encoder.groups]
    roles = ColumnRoles.of(rows.sample.shape[1], encoder.as_is, of_columns)
    columns = [*encoder.state_columns(options.columns.by)] if parameters.contaminated else []
    jobs, seed = options.jobs, options.seed
    try:
        while True:
            fitted = fit_detector(source, parameters, roles, known, n_jobs=jobs, random_state=seed)
            if fitted.detector.combined is None or len(notes) == MAX_LARGE_GROUPS:
                break
            scores, found = fitted.scores[source.sample_index], known.large_groups.groups
            if known.normal is not None:
                scores = np.where(known.normal[source.sample_index], -np.inf, scores)
            one = find_large_group(rows.sample, scores, columns, encoder.as_is)
            if one is None or one in found:
                break
            notes.append(_large_group_note(rows, one))
            known = known._replace(large_groups=LargeGroups((*found, one)))
    except ValueError as error:
        if isinstance(error, KpcaError):
            raise
        why = " ".join(str(error).split())
        if (rows.sample == rows.sample[0]).all():
            used = ", ".join(
                f"{quoted(spec.name)} is {spec.role}" for spec in encoder.plan.used[:5]
            )
            why = (
                f"all rows look equal in the columns used ({used}), so none is odd: texts are "
                "compared by their length and kinds of characters. Exclude fewer columns, or "
                "screen a table that also has numbers, dates or repeated categories."
            )
        raise InputError(f"{rows.source.name}: {why}") from error
    if is_drawn:  # score the other rows; drawn rows keep the scores of the fit
        calibrating = np.setdiff1d(rows.sample_index, rows.training)
        fitted = fitted.among(rows.training, rows.scores(fitted.detector), calibrating)
    return fitted.detector, fitted.scores, notes


def _marked_unsampled(rows: Encoded) -> Marked | None:
    accepted = rows.accepted
    if accepted is None or accepted.is_wrong is None or not accepted.is_wrong.any():
        return None
    outside = np.ones(rows.n_rows, dtype=bool)
    outside[rows.sample_index] = False
    positions = marked_rows(accepted.is_wrong & outside, accepted.is_fine & outside)
    return Marked(rows.encoded(positions), accepted.is_wrong[positions])


def _size_note(rows: Encoded, options: ScreeningOptions) -> str:
    start, drawn = f"The table has {rows.n_rows:,} rows {IN_PARTS}", len(rows.sample_index)
    if n_training_rows(options, rows.n_rows) < rows.n_rows:
        return (
            f"{start}: what its columns are and how usual rows lie was learned from {drawn:,} rows "
            "drawn (--learn-from); scores and ranks are those of all rows."
        )
    return (
        f"{start}: what its columns are, their scalings and figures, and the landmarks come from "
        f"{drawn:,} rows drawn; means, covariances, scores and ranks are those of all rows."
    )


def _large_group_note(rows: Encoded, large: LargeGroup) -> Note:
    encoder, is_of = rows.encoder, rows.sample[:, large.column] == large.value
    group = next(g for g, of in enumerate(encoder.groups) if large.column in of.columns)
    name = encoder.groups[group].name
    text, _ = encoder.seen(rows.sample_table, int(is_of.argmax()), group)
    start = f"{100 * is_of.mean():.0f} % of the rows have"
    value = f"no {quoted(name)}" if text == MISSING else f"{quoted_cell(text)} in {quoted(name)}"
    rest = (
        "and lie apart from the others. So many are not odd by themselves: they are ranked among "
        "each other, and the oddest of them are listed."
    )
    bare = f"{start} one value of {quoted(name)} {rest}"
    return Note(f"{start} {value} {rest}", bare, (name,))


def _running_note(plan: ColumnPlan) -> Iterator[str]:
    """Note which columns rise or fall with the row number, and how later rows are compared."""
    names = [spec.name for spec in plan.used if spec.runs_on]
    if names:
        verb = "runs" if len(names) == 1 else "run"
        yield (
            f"{listed(names)} {verb} on with the rows: of later rows, what repeats there is "
            "compared (time of day, day of the week), not how far it has run."
        )


def _parameters(rule: Rule, options: ScreeningOptions, n_judged: int, clean: bool) -> Parameters:
    """Return the detector's parameters; a count to flag becomes a share of `n_judged` rows."""
    share = DEFAULT_SHARE
    # With a clean reference, a choice (share or count) applies only to tables scored later.
    if not rule.calibrated and not clean:
        share = rule.count(n_judged) / n_judged if rule.name == "count" else rule.setting
    same = ("method", "sigma", "components", "ridge", "n_landmarks", "calibration")
    return Parameters(
        contaminated=not clean,
        share=share,
        alpha=rule.setting if rule.name == "alpha" else DEFAULT_ALPHA,
        **{name: getattr(options, name) for name in same},
    )


def own_groups(
    keys: Sequence[GroupKey], codes: IntArray, by: Sequence[str], enough: int, where: str
) -> list[int]:
    """Return the groups large enough for own models, largest first; ConfigError if none is."""
    if len(keys) == 1:
        raise OptionError("by", f"{listed(by)} makes one group only: leave it out", where)
    sizes = np.bincount(codes, minlength=len(keys))
    names = [[text or "" for text in key] for key in keys]
    order = sorted(range(len(keys)), key=lambda place: (-int(sizes[place]), names[place]))
    own = [place for place in order if sizes[place] >= enough]
    if not own:
        few = (
            f"{where}: none of the {len(keys):,} groups by {listed(by)} has the {enough:,} rows "
            "that a model needs: the largest"
        )
        size = f" has {sizes.max():,}; leave --by out, or name a column with fewer different values"
        largest = f", {quoted(group_text(keys[order[0]]))},"
        raise ConfigError(Note(f"{few}{largest}{size}", f"{few}{size}", tuple(by)))
    return own[:MAX_GROUPS]


def plan_of_group(plan: ColumnPlan, by: Sequence[str], table: Table) -> ColumnPlan:
    """Return the column plan of one group: that of the whole table, without constant columns."""
    return ColumnPlan(tuple(_spec_of_group(spec, by, table) for spec in plan.specs))


def _spec_of_group(spec: ColumnSpec, by: Sequence[str], table: Table) -> ColumnSpec:
    if spec.name in by:
        why = "the same in all rows of the group"
        return replace(spec, role="excluded", why=why, format=None)
    if not spec.used:
        return spec
    column = table.column[spec.name]
    if spec.format is None:
        levels = spec.levels(column)
        n_distinct, n_read, n_unreadable = len(levels.texts), int(levels.counts.sum()), 0
    else:
        readings = column.read(spec.format)
        n_distinct, n_read = len(np.unique(readings.ordered)), readings.ordered.size
        n_unreadable = int(readings.unreadable.sum())
    n_missing = len(column) - n_read
    spec = replace(spec, n_missing=n_missing, n_distinct=n_distinct, notes=())
    if n_unreadable > n_read or not n_read:
        return replace(spec, role="empty", why="almost no value in the group", format=None)
    # A category that is missing in some rows varies.
    if n_distinct == 1 and not (spec.has_levels and n_missing):
        return replace(spec, role="constant", why="one value only in the group", format=None)
    return spec
