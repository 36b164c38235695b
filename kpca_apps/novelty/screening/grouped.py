"""Rows judged within their group: a model for each of enough rows, that of the table for others.

The score of the default detector is a logarithm of joined p-values, so that scores of models of
different groups are nearly on one scale, and are ranked as they are: on tables with planted faults
that found more of them than ranking by how rare a score is in its group (a tail estimated from few
rows) or flagging the same share of every group (which flags rows where nothing is wrong). With a
clean reference each group has its own threshold, and its scores are shifted to meet that of the
others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError
from kpca_apps.names import one_line
from kpca_apps.novelty.columns.parted_rows import (
    Execution,
    draw_sample,
    in_parts,
    table_groups,
    table_subset,
)
from kpca_apps.novelty.columns.plan import (
    ColumnPlan,
    ColumnSpec,
    check_options,
    listed,
    quoted,
)
from kpca_apps.novelty.columns.rows import AnyTable, GroupKey, TableRows, column_names
from kpca_apps.novelty.detector.threshold import (
    Rule,
    benjamini_hochberg,
    conformal_p_values,
    rate_threshold,
)
from kpca_apps.novelty.redact import Note, without_values
from kpca_apps.novelty.result import GroupInfo, ScoreMark, ScoreScale, ThresholdInfo
from kpca_apps.novelty.row_values import blocks_of, row_values
from kpca_apps.novelty.screening.model import MAX_GROUPS, GroupModel, NoveltyModel, fit_table
from kpca_apps.novelty.screening.options import ScreeningOptions, resolve_rule
from kpca_apps.novelty.screening.verdict import (
    Piece,
    Verdict,
    flag,
    is_fitted_on,
    novelty_ranks,
    p_value_scale,
    require_own_scores,
    score_rows,
    warnings_of_new,
)
from kpca_apps.tables.table import Table

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Rows from which on a model of their own found more planted faults than one of the whole table that
# takes the group for a category: at 50 to 200 rows on average over groups that differ in how their
# columns go together, in place only, or in curvature; at 30 fewer.
MIN_ROWS = 50
# So many groups have as many landmarks each as a table; of more groups each has fewer, so that the
# matrices of all models stay as large.
FULL_LANDMARKS, FEWEST_LANDMARKS = 8, 100
LANDMARKS = {False: 300, True: 700}  # of a table that may hold outliers, and of a clean one
P_VALUES = "p-value: the share of rows like those its model was fitted on that would score so high."
NAMED = 5  # groups named in one sentence
STEPS = 60  # of a bisection


def fit_groups(
    table: AnyTable,
    options: ScreeningOptions,
    *,
    clean: bool = True,
    is_accepted: BoolArray | None = None,
    execution: Execution | None = None,
) -> tuple[NoveltyModel, TableRows]:
    """Fit a model to a table, as `fit_table`, and one to each group of rows that is asked for."""
    by, execution = options.columns.by, execution or Execution()
    with without_values(options.columns.hide):
        if not by:
            return fit_table(
                table, options, clean=clean, is_accepted=is_accepted, execution=execution
            )
        _refuse_accepted(is_accepted)
        return _fit_by(table, options, clean, execution)


def _fit_by(
    table: AnyTable, options: ScreeningOptions, clean: bool, execution: Execution
) -> tuple[NoveltyModel, TableRows]:
    """Fit a model to a table and to each of its groups."""
    by = options.columns.by
    if options.kernel is not None or options.n_components is not None:
        flag_of = "kernel" if options.n_components is None else "components"
        raise ConfigError(
            f"--{flag_of} scores rows by an error whose scale differs from group to group: leave "
            f"it or --by out"
        )
    table = in_parts(table)
    check_options(options.columns, column_names(table), table.source.name)
    rule = resolve_rule(options, clean=clean)
    keys, codes = table_groups(table, by, execution)
    enough = rows_needed(rule)
    own = _own_groups(keys, codes, by, enough, table.source.name)
    whole, rows = fit_table(table, options, clean=clean, execution=execution)
    share = rule.setting / rows.n_rows if rule.name == "count" else rule.setting
    settings = replace(
        options,
        columns=replace(options.columns, by=()),
        share=None if clean else share,
        count=None,
        alpha=None,
        fdr=None,
        n_landmarks=options.n_landmarks or _landmarks(len(own), clean),
    )
    groups = []
    for place in own:
        subset = table_subset(table, np.flatnonzero(codes == place), execution)
        sample = draw_sample(subset, options.seed, execution).table
        plan = _own_plan(whole.encoder.plan, by, sample)
        if not plan.used:  # nothing varies
            continue
        model, _ = fit_table(subset, settings, clean=clean, execution=execution, plan=plan)
        groups.append(GroupModel(keys[place], model))
    whole = replace(whole, groups=tuple(groups))
    if not clean:
        scores = _raw_scores(_pieces(whole, keys, codes), rows, in_training=True)
        whole = replace(whole, group_threshold=rule.threshold(scores))
    return whole, rows


def _refuse_accepted(is_accepted: BoolArray | None) -> None:
    """Refuse rows that are accepted, whose groups would each be judged by other rows."""
    if is_accepted is not None:
        raise ConfigError(
            "--accept and --by exclude each other: leave one out, or screen the groups one by one"
        )


def rows_needed(rule: Rule) -> int:
    """Rows that a group must have for a model of its own: enough to calibrate a rate, too."""
    # The smallest n with 1 / (n + 1) <= alpha.
    calibrating = math.ceil(1.0 / rule.setting - 1e-9) - 1 if rule.name == "alpha" else 0
    return max(MIN_ROWS, calibrating)


def _own_groups(
    keys: Sequence[GroupKey],
    codes: IntArray,
    by: Sequence[str],
    enough: int,
    where: str,
) -> list[int]:
    """Places of the groups that get a model of their own, largest first; ConfigError if none."""
    if len(keys) == 1:
        raise ConfigError(f"{where}: --by {listed(by)} makes one group only: leave it out")
    sizes = np.bincount(codes, minlength=len(keys))
    names = [[text or "" for text in key] for key in keys]
    order = sorted(range(len(keys)), key=lambda place: (-int(sizes[place]), names[place]))
    own = [place for place in order if sizes[place] >= enough]
    if not own:
        few = (
            f"{where}: none of the {len(keys):,} groups by {listed(by)} has the {enough:,} rows "
            "that a model needs: the largest"
        )
        size = f" has {sizes[order[0]]:,}; leave --by out, or name a column of fewer values"
        largest = f", {quoted(_text(keys[order[0]]))},"
        raise ConfigError(Note(f"{few}{largest}{size}", f"{few}{size}", tuple(by)))
    return own[:MAX_GROUPS]


def _landmarks(n_groups: int, clean: bool) -> int | None:
    """Landmarks of each of so many groups, `None` for those of a table."""
    if n_groups <= FULL_LANDMARKS:
        return None
    fewer = LANDMARKS[clean] * math.sqrt(FULL_LANDMARKS / n_groups)
    return max(FEWEST_LANDMARKS, round(fewer))


def _own_plan(plan: ColumnPlan, by: Sequence[str], table: Table) -> ColumnPlan:
    """Plan of the columns of one group: as in the whole table, but for what does not vary in it."""
    return ColumnPlan(
        tuple(
            replace(spec, role="excluded", why="the same in all rows of the group", format=None)
            if spec.name in by
            else _own_spec(spec, table)
            for spec in plan.specs
        )
    )


def _own_spec(spec: ColumnSpec, table: Table) -> ColumnSpec:
    if not spec.used:
        return spec
    column = table.column(spec.name)
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
        return replace(spec, role="empty", why="hardly a value in the group", format=None)
    # A category that some rows lack varies.
    if n_distinct == 1 and not (spec.has_levels and n_missing):
        return replace(spec, role="constant", why="one value only in the group", format=None)
    return spec


def judge_rows(model: NoveltyModel, rows: TableRows, options: ScreeningOptions) -> Verdict:
    """Score, rank and flag the rows of a table, those of a group by the model of that group."""
    if not model.groups:
        return score_rows(model, rows, options)
    _refuse_accepted(rows.is_accepted)
    rule = resolve_rule(options, clean=model.clean, default=model.rule)
    in_training = is_fitted_on(model, rows)
    keys, codes = rows.groups(model.options.columns.by)
    pieces = _pieces(model, keys, codes)
    everyone = np.arange(rows.n_rows)
    for piece in pieces if in_training else ():
        require_own_scores(piece.model, rows, piece.positions if piece.name else everyone)
    raw = _raw_scores(pieces, rows, in_training=in_training)
    calibration, p_values, scores = None, None, raw
    is_kept = rule == model.rule and not rule.calibrated and not model.clean and not in_training
    value = model.group_threshold if is_kept else None
    if model.clean:
        calibration = model.detector.calibration_scores
        p_values = row_values(rows.n_rows, np.float64)
        for piece in pieces:
            own = piece.model.detector.calibration_scores
            p_values[piece.positions] = conformal_p_values(own, raw[piece.positions])
    if rule.calibrated:
        assert p_values is not None
        scores, value, pieces = _meeting_one_threshold(rule, model, pieces, raw, p_values)
    flagged, threshold, too_few = flag(
        rule, scores, calibration, model.detector.calibration, set_before=value
    )
    if not rule.calibrated:
        pieces = [replace(piece, threshold=threshold.value) for piece in pieces]
    rarities, scale = None, None
    if calibration is not None:
        scale = replace(p_value_scale(calibration), statement=P_VALUES, marks=())
    elif model.detector.rarity is not None:
        rarities, scale = _rarities(model, scores), _scale(model)
        (at_threshold,) = _rarities(model, np.array([threshold.value])).tolist()
        words = model.detector.rarity.describe(at_threshold)
        threshold = replace(threshold, rarity=words)
    threshold = replace(threshold, statement=f"{threshold.statement} {_how_judged(model, pieces)}")
    return Verdict(
        rows=rows,
        in_training=in_training,
        scores=scores,
        p_values=p_values,
        rarities=rarities,
        # Scores that were shifted to a threshold, which none of them may pass, keep their order.
        ranks=novelty_ranks(scores, lambda places: raw[places]),
        flagged=flagged,
        threshold=threshold,
        scale=scale,
        warnings=(
            *(model.warnings if in_training else warnings_of_new(model, rows)),
            *_rest_note(model, keys, codes),
            *_model_notes(model, pieces),
            *_too_few_note(model, threshold, pieces),
            *too_few,
        ),
        pieces=tuple(pieces),
    )


def group_infos(verdict: Verdict) -> tuple[GroupInfo, ...]:
    """Say how the rows of each group were judged."""
    return tuple(
        GroupInfo(
            piece.name,
            len(piece.positions),
            int(verdict.flagged[piece.positions].sum()),
            piece.model.source.n_rows,
            piece.threshold,
        )
        for piece in verdict.pieces
    )


def _pieces(model: NoveltyModel, keys: Sequence[GroupKey], codes: IntArray) -> list[Piece]:
    """Part rows, whose groups are `codes` (n,), by who judges them; those of the rest come last."""
    by = model.options.columns.by
    place_of = {key: place for place, key in enumerate(keys)}
    pieces, is_rest = [], np.ones(len(codes), dtype=bool)
    for group in model.groups:
        positions = np.flatnonzero(codes == place_of.get(group.values, -1))
        if len(positions):
            is_rest[positions] = False
            pieces.append(Piece(_name(by, group.values), group.model, positions, math.inf))
    if is_rest.any():
        pieces.append(Piece("", model, np.flatnonzero(is_rest), math.inf))
    return pieces


def _raw_scores(pieces: Sequence[Piece], rows: TableRows, *, in_training: bool) -> FloatArray:
    """Score every row by its own model, shape (n,), on the scale of that model."""
    scores: FloatArray = row_values(rows.n_rows, np.float64)
    for piece in pieces:
        model, positions = piece.model, piece.positions
        if in_training:
            own = model.training_scores
            scores[positions] = own if piece.name else own[positions]
            continue
        seen = rows.seen_by(model.encoder, positions)
        scores[positions] = seen.map(model.detector.row_scores())
    return scores


def _meeting_one_threshold(
    rule: Rule,
    model: NoveltyModel,
    pieces: Sequence[Piece],
    raw: FloatArray,
    p_values: FloatArray,
) -> tuple[FloatArray, float, list[Piece]]:
    """Calibrate each group by its own rows; shift its scores so that one threshold holds for all.

    Return the scores, that threshold, and the pieces with their own. A false discovery rate is that
    of the list of all rows.
    """
    calibration, rate = model.detector.calibration_scores, rule.setting
    if rule.name == "fdr":
        is_listed = benjamini_hochberg(p_values, rate)
        if not is_listed.any():
            alone = rate_threshold(calibration, rate / len(raw))
            value = max(alone, float(raw.max()))
            return raw, value, [replace(piece, threshold=value) for piece in pieces]
        rate = float(p_values[is_listed].max())
    value = rate_threshold(calibration, rate)
    limits = [
        rate_threshold(piece.model.detector.calibration_scores, rate) if piece.name else value
        for piece in pieces
    ]
    if math.isinf(value):
        return raw, value, [replace(piece, threshold=math.inf) for piece in pieces]
    scores: FloatArray = row_values(len(raw), np.float64)
    for piece, limit in zip(pieces, limits, strict=True):
        own = raw[piece.positions]
        # Rounding must move no row to the other side.
        above = np.maximum(own - limit + value, np.nextafter(value, math.inf))
        below = np.minimum(own - limit + value if math.isfinite(limit) else own, value)
        scores[piece.positions] = np.where(own > limit, above, below)
    found = zip(pieces, limits, strict=True)
    return scores, value, [replace(piece, threshold=limit) for piece, limit in found]


def _rarities(model: NoveltyModel, scores: FloatArray) -> FloatArray:
    """Share of usual rows, each judged by the model of its group, that would score as high (r,)."""
    n_rows = model.source.n_rows
    n_rest = n_rows - sum(group.model.source.n_rows for group in model.groups)
    shares: FloatArray = row_values(len(scores), np.float64)
    judges = [(group.model.source.n_rows, group.model) for group in model.groups]
    for n_judged, judge in [*judges, *([(n_rest, model)] if n_rest else [])]:
        rarity = judge.detector.rarity
        assert rarity is not None
        for block in blocks_of(len(scores)):
            shares[block] += n_judged / n_rows * rarity.share(scores[block])
    return shares


def _scale(model: NoveltyModel) -> ScoreScale | None:
    """Say what shares mean, and the scores that round ones of the usual rows reach."""
    rarity = model.detector.rarity
    assert rarity is not None
    scale, knots = rarity.scale_of_scores, [rarity.knots, *(_knots(g.model) for g in model.groups)]
    marks = []
    for place, mark in enumerate(scale.marks, 1):
        low, high = min(float(of[0]) for of in knots), max(float(of[-1]) for of in knots)
        unit = high - low or 1.0
        while _rarities(model, np.array([high]))[0] > 0.1**place:
            low, high, unit = high, high + unit, 2.0 * unit
        for _ in range(STEPS):
            middle = 0.5 * (low + high)
            if _rarities(model, np.array([middle]))[0] > 0.1**place:
                low = middle
            else:
                high = middle
        marks.append(ScoreMark(high, mark.words))
    statement = f"{scale.statement} Each row is judged by the model of its group."
    return replace(scale, statement=statement, marks=tuple(marks))


def _knots(model: NoveltyModel) -> FloatArray:
    assert model.detector.rarity is not None
    return model.detector.rarity.knots


def _how_judged(model: NoveltyModel, pieces: Sequence[Piece]) -> str:
    """Say in a sentence which rows are judged among themselves."""
    n_own, by = len(model.groups), listed(model.options.columns.by)
    models = "1 group has a model" if n_own == 1 else f"{n_own} groups have models"
    calibrated = ", and a threshold," if model.clean else ""
    n_rest = sum(len(piece.positions) for piece in pieces if not piece.name)
    rest = f"; {_rows(n_rest)} judged by that of the whole table" if n_rest else ""
    return f"By {by}: {models}{calibrated} of {'its' if n_own == 1 else 'their'} own{rest}."


def _rest_note(model: NoveltyModel, keys: Sequence[GroupKey], codes: IntArray) -> Iterator[Note]:
    """Say which groups have no model of their own."""
    by, own = model.options.columns.by, {group.values for group in model.groups}
    others = [place for place, key in enumerate(keys) if key not in own]
    if not others:
        return
    sizes = np.bincount(codes, minlength=len(keys))
    others.sort(key=lambda place: (-int(sizes[place]), _text(keys[place])))
    names = ", ".join(quoted(_text(keys[place])) for place in others[:NAMED])
    more = f" and {len(others) - NAMED:,} more" if len(others) > NAMED else ""
    groups = "1 group" if len(others) == 1 else f"{len(others):,} groups"
    verb, its = ("has", "its") if len(others) == 1 else ("have", "their")
    most = f", and at most {MAX_GROUPS} groups have one" if len(own) == MAX_GROUPS else ""
    judged = (
        f" {verb} no model of {its} own, which takes "
        f"{rows_needed(model.rule):,} rows of {one_line(model.source.name)}{most}: their "
        f"{_rows(int(sizes[others].sum()))} judged by the model of the whole table."
    )
    which = f"{groups} by {listed(by)}"
    yield Note(f"{which} ({names}{more}){judged}", f"{which}{judged}", by)


def _model_notes(model: NoveltyModel, pieces: Sequence[Piece]) -> Iterator[Note]:
    """Say what the models of groups warn of."""
    told: dict[str, list[str]] = {}
    for piece in pieces:
        if piece.name:
            detector = piece.model.detector
            few = piece.model.clean and not np.isfinite(detector.flags_above)
            for text in detector.warnings[:-1] if few else detector.warnings:
                told.setdefault(text, []).append(piece.name)
    for text, where in told.items():
        bare = "1 group" if len(where) == 1 else f"{len(where):,} groups"
        by = model.options.columns.by
        yield Note(f"In {listed(where)}: {text}", f"In {bare}: {text}", by)


def _too_few_note(
    model: NoveltyModel, threshold: ThresholdInfo, pieces: Sequence[Piece]
) -> Iterator[Note]:
    """Say in which groups alone nothing can be flagged at the rate asked for."""
    few = [piece.name for piece in pieces if math.isinf(piece.threshold)]
    if few and math.isfinite(threshold.value):
        nothing = (
            " nothing can be flagged: the reference has too few rows there for "
            f"{threshold.rule} {threshold.setting:.3g}; take a larger rate, or fit with this one, "
            "and the model of the whole table judges them."
        )
        bare = "1 group" if len(few) == 1 else f"{len(few):,} groups"
        by = model.options.columns.by
        yield Note(f"In {listed(few)}{nothing}", f"In {bare}{nothing}", by)


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count:,} rows are"


def _text(key: GroupKey) -> str:
    return ", ".join("(missing)" if text is None else text for text in key)


def _name(by: Sequence[str], key: GroupKey) -> str:
    """Name a group to readers, as "species Adelie"."""
    pairs = zip(by, key, strict=True)
    return ", ".join(f"{name} {'(missing)' if text is None else text}" for name, text in pairs)
