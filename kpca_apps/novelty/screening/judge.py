"""Judge a table by a model: scores, ranks and flags, each row by the model of its group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import polars as pl

from kpca_apps.engine.rows import ArrayRows
from kpca_apps.names import listed, quoted
from kpca_apps.novelty.checks.number_rules import BEYOND, WITHOUT_TAIL
from kpca_apps.novelty.checks.odd_cells import checked, table_of_evidence
from kpca_apps.novelty.columns.encoding import TableEncoder, ValueCoder
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.parts import GroupKey, each_part, group_text, some_rows
from kpca_apps.novelty.detector.detector import NoveltyScores
from kpca_apps.novelty.detector.threshold import (
    Rarity,
    Rule,
    conformal_p_values,
    discovery_limit,
    flag,
    p_value_scale,
    rate_threshold,
    rows_are,
)
from kpca_apps.novelty.evidence import strongest_by_row
from kpca_apps.novelty.ranks import novelty_ranks
from kpca_apps.novelty.redact import Note
from kpca_apps.novelty.result import NEW, GroupInfo, RowScores, ScoreScale, ThresholdInfo
from kpca_apps.novelty.screening.encoded import Encoded, LearnedEncoder
from kpca_apps.novelty.screening.model import (
    MAX_GROUPS,
    AnyModel,
    NoveltyModel,
    ScreeningOptions,
    resolve_rule,
    rows_needed,
)
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.files.windowed import blocks, row_values
from kpca_apps.tables.table import Table

OF_GROUPS = (
    "p-value: the share of rows like those its model was fitted on that would score so high."
)


@dataclass(frozen=True)
class JudgedPiece:
    """Rows of a table that one model judges."""

    name: str  # name of the group for readers; empty for rows judged by the whole table's model
    model: AnyModel
    positions: IntArray  # (k,), increasing; empty if one model judges all rows
    threshold: float = math.inf  # threshold on the scale of the piece's own model

    def places(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        """Find the piece's rows among `positions`; return their indices there and in the model."""
        if not len(self.positions):
            return np.arange(len(positions)), positions
        among = np.searchsorted(self.positions, positions).clip(max=len(self.positions) - 1)
        found = np.flatnonzero(self.positions[among] == positions)
        return found, (positions if self.model.is_whole else among)[found]


@dataclass(frozen=True)
class Verdict:
    """A table scored and flagged by a model."""

    model: NoveltyModel
    rows: Encoded
    scored: RowScores
    rarity: Rarity | None  # distribution of typical rows' scores; tells how rare a score is
    evidence: pl.DataFrame  # findings against cells, the strongest first (`table_of_evidence`)
    n_odd_cells: int  # number of odd cells, listed or not
    rank_by_score: Mapping[int, int]  # for rows with evidence (by row number): rank by score alone
    part_of_relations: Mapping[int, float]  # for these rows: part of the score due to relations
    threshold: ThresholdInfo
    warnings: tuple[str, ...]
    pieces: tuple[JudgedPiece, ...]  # groups, largest first, then all other rows
    groups: tuple[GroupInfo, ...]  # how the rows of each group were judged; empty without groups

    @cached_property
    def n_listed(self) -> int:
        """Number of rows flagged or with evidence against a cell; these have the first ranks."""
        others = np.array([*self.rank_by_score], dtype=np.int64) - 1
        flagged = self.scored.is_flagged
        return int(flagged.sum() + np.count_nonzero(~flagged[others]))


def judge(model: NoveltyModel, rows: Encoded, options: ScreeningOptions) -> Verdict:
    """Score, rank and flag the rows of a table; the training table has leave-one-out scores.

    The rule of the options, or else of the model, flags the rows that are not accepted. Accepted
    rows rank last. Rows known to be wrong are always flagged, and rank first.
    """
    rule = resolve_rule(options, clean=model.clean, default=model.rule)
    pieces = _assign_rows(model, rows)
    raw = _score_rows(pieces, rows)
    p_values = _p_values(model, pieces, raw) if model.clean else None
    flags = _flag_rows(model, rows, rule, pieces, raw, p_values)
    evidence, n_odd_cells = evidence_against(rows)
    with_evidence = evidence["row"].explode().unique().to_numpy() - 1
    ranks, by_score = _rank_rows(rows, raw, flags, evidence, with_evidence)
    parts = np.zeros(len(with_evidence))
    # If groups have models of their own, relations of the whole table do not count.
    if not model.groups and (combined := model.detector.combined) is not None:
        scores, surprise = flags.scores[with_evidence], rows.surprise[with_evidence]
        parts = combined.part_of_surprise(scores, surprise)
    rarity, scale, threshold = _describe_rarity(model, flags.threshold)
    threshold, notes = _describe_groups(model, rows, threshold, flags.pieces)
    numbers = (with_evidence + 1).tolist()
    return Verdict(
        model=model,
        rows=rows,
        scored=RowScores(
            scores=flags.scores,
            p_values=p_values,
            rarity_of=None if rarity is None else rarity.share,
            ranks=ranks,
            is_flagged=flags.is_flagged,
            is_accepted=rows.is_accepted,
            scale=scale,
        ),
        rarity=rarity,
        evidence=evidence,
        n_odd_cells=n_odd_cells,
        rank_by_score=dict(zip(numbers, by_score.tolist(), strict=True)),
        part_of_relations=dict(zip(numbers, parts.tolist(), strict=True)),
        threshold=threshold,
        warnings=(*_warnings(model, rows), *notes, *flags.warnings),
        pieces=flags.pieces,
        groups=tuple(
            GroupInfo(
                name=one.name,
                n_rows=len(one.positions),
                n_flagged=int(flags.is_flagged[one.positions].sum()),
                n_fitted=one.model.n_rows,
                threshold=one.threshold,
            )
            for one in (flags.pieces if model.groups else ())
        ),
    )


def _assign_rows(model: NoveltyModel, rows: Encoded) -> list[JudgedPiece]:
    """Return the rows that each model judges, those of the whole table's model last."""
    if not model.groups:
        return [JudgedPiece("", model, np.arange(0))]
    by, (keys, codes) = model.options.columns.by, rows.groups
    place_of = {key: place for place, key in enumerate(keys)}
    pieces, is_rest = [], np.ones(len(codes), dtype=bool)
    for group in model.groups:
        positions = np.flatnonzero(codes == place_of.get(group.values, -1))
        if len(positions):
            is_rest[positions] = False
            pieces.append(JudgedPiece(group_name(by, group.values), group, positions))
    if is_rest.any():
        pieces.append(JudgedPiece("", model, np.flatnonzero(is_rest)))
    return pieces


def _score_rows(pieces: Sequence[JudgedPiece], rows: Encoded) -> FloatArray:
    """Score every row, shape (n,), by the model of its group and on the scale of that model."""
    if len(pieces) == 1 and pieces[0].model.is_whole:
        model = pieces[0].model
        return model.training_scores if rows.are_training else rows.scores(model.detector)
    scores: FloatArray = row_values(rows.n_rows, np.float64)
    for piece in pieces:
        model, positions = piece.model, piece.positions
        if rows.are_training:
            own = model.training_scores
            scores[positions] = own[positions] if model.is_whole else own
        else:
            scores[positions] = _scores_of_some(model, rows, positions)
    return scores


def _scores_of_some(model: AnyModel, rows: Encoded, positions: IntArray) -> FloatArray:
    """Encode and score new rows of a table, at increasing `positions`, by one model."""
    function = model.detector.row_scores()
    n_jobs = rows.n_jobs if rows.stored is None else None
    score = partial(_mapped, encoder=model.encoder, function=function, n_jobs=n_jobs)
    table = some_rows(rows.table, positions)
    return np.concatenate([*each_part(table, function.purpose, score, rows.execution)])


def _mapped(
    table: Table, encoder: LearnedEncoder, function: NoveltyScores, n_jobs: int | None
) -> FloatArray:
    scores = ArrayRows(encoder.matrix(table), n_jobs=n_jobs).map(function)
    if function.combined is None:
        return scores
    return function.combined.with_surprise(scores, encoder.judge(table).surprise)


def _p_values(model: NoveltyModel, pieces: Sequence[JudgedPiece], raw: FloatArray) -> FloatArray:
    """Return the p-value of every row (n,), by the calibration scores of its model."""
    p_values = conformal_p_values(model.detector.calibration_scores, raw)
    for piece in pieces:
        if not piece.model.is_whole:
            own = piece.model.detector.calibration_scores
            p_values[piece.positions] = conformal_p_values(own, raw[piece.positions])
    return p_values


class _Flags(NamedTuple):
    scores: FloatArray  # (n,), raw, or shifted so that one threshold holds for all groups
    pieces: tuple[JudgedPiece, ...]  # with their thresholds
    is_flagged: BoolArray  # (n,)
    threshold: ThresholdInfo
    warnings: tuple[str, ...]


def _flag_rows(
    model: NoveltyModel,
    rows: Encoded,
    rule: Rule,
    pieces: Sequence[JudgedPiece],
    raw: FloatArray,
    p_values: FloatArray | None,
) -> _Flags:
    """Choose the threshold by the rule; flag rows above it, listed for one cell, or known wrong."""
    detector, scores, value = model.detector, raw, None
    judged = ... if rows.is_accepted is None else ~rows.is_accepted
    if p_values is None:
        # In later tables, reuse a threshold that the same rule chose on the training table.
        if rule == model.rule and not rows.are_training:
            value = model.group_threshold if model.groups else detector.flags_above
    elif rule.calibrated and model.groups:
        rate = rule.rate(p_values[judged])
        value = rate_threshold(detector.calibration_scores, rate)
        scores, pieces = _shifted(raw, rate, value, pieces)
    listed: BoolArray | bool = False
    if rule.name == "fdr":
        log_p = log_p_of_cells(rows)[judged]
        listed = log_p <= discovery_limit(log_p, len(log_p), rule.setting - rule.of_scores)
    calibrated = detector.calibration_scores if model.clean else None, detector.calibration
    flagged = np.zeros(len(scores), dtype=bool)
    flagged[judged], threshold, warnings = flag(
        rule, scores[judged], *calibrated, set_before=value, listed=listed
    )
    if rows.is_wrong is not None:
        flagged |= rows.is_wrong
    if not (rule.calibrated and model.groups):
        pieces = [replace(piece, threshold=threshold.value) for piece in pieces]
    return _Flags(scores, tuple(pieces), flagged, threshold, warnings)


def _shifted(
    raw: FloatArray, rate: float, value: float, pieces: Sequence[JudgedPiece]
) -> tuple[FloatArray, list[JudgedPiece]]:
    """Calibrate each group by its own rows; shift scores so that one threshold holds for all.

    Return the scores, and the pieces with their own thresholds.
    """
    if math.isinf(value):
        return raw, [replace(piece, threshold=value) for piece in pieces]
    scores: FloatArray = row_values(len(raw), np.float64)
    judged = []
    for piece in pieces:
        limit = value
        if not piece.model.is_whole:
            limit = rate_threshold(piece.model.detector.calibration_scores, rate)
        own = raw[piece.positions]
        # Rounding must not move a row to the other side of the threshold.
        above = np.maximum(own - limit + value, np.nextafter(value, math.inf))
        below = np.minimum(own - limit + value if math.isfinite(limit) else own, value)
        scores[piece.positions] = np.where(own > limit, above, below)
        judged.append(replace(piece, threshold=limit))
    return scores, judged


def _describe_rarity(
    model: NoveltyModel, threshold: ThresholdInfo
) -> tuple[Rarity | None, ScoreScale | None, ThresholdInfo]:
    """Return the scale of p-values with a clean reference, else the rarity of scores, if known.

    The rarity is the distribution of typical rows' scores, pooled over the models of all groups;
    also return its scale, and the threshold with its rarity.
    """
    if model.clean:
        scale = p_value_scale(model.detector.calibration_scores)
        if model.groups:
            scale = replace(scale, statement=OF_GROUPS, marks=())
        return None, scale, threshold
    n_rest = model.n_rows - sum(group.n_rows for group in model.groups)
    parts = [(group.detector.rarity, float(group.n_rows)) for group in model.groups]
    if n_rest:
        parts.append((model.detector.rarity, float(n_rest)))
    known = [(rarity, n) for rarity, n in parts if rarity is not None]
    if not known:
        return None, None, threshold
    rarity = Rarity.pooled(known)
    (share,) = rarity.share(np.array([threshold.value])).tolist()
    return rarity, rarity.scale_of_scores, replace(threshold, rarity=rarity.describe(share))


def _describe_groups(
    model: NoveltyModel, rows: Encoded, threshold: ThresholdInfo, pieces: Sequence[JudgedPiece]
) -> tuple[ThresholdInfo, tuple[Note, ...]]:
    """Say with the threshold which models judge, if groups have models; also return notes."""
    if not model.groups:
        return threshold, ()
    n_rest = sum(len(piece.positions) for piece in pieces if piece.model.is_whole)
    n_own, calibrated = len(model.groups), ", and a threshold," if model.clean else ""
    models = "1 group has a model" if n_own == 1 else f"{n_own} groups have models"
    rest = f"; {rows_are(n_rest)} judged by that of the whole table" if n_rest else ""
    own = f"{models}{calibrated} of {'its' if n_own == 1 else 'their'} own{rest}"
    words = f"{threshold.statement} By {listed(model.options.columns.by)}: {own}."
    threshold = replace(threshold, statement=words)
    notes = (*rest_note(model, *rows.groups), *_notes_of_groups(model, threshold, pieces))
    return threshold, notes


def _warnings(model: NoveltyModel, rows: Encoded) -> Iterator[str]:
    """Yield the warnings on the training table and, if other rows are judged, on these."""
    where = "" if rows.are_training else f"In {model.source.name}, the reference: "
    for note in model.warnings:
        yield note.after(where) if isinstance(note, Note) else f"{where}{note}"
    if not rows.are_training:
        yield from rows.warnings


def _notes_of_groups(
    model: NoveltyModel, threshold: ThresholdInfo, pieces: Sequence[JudgedPiece]
) -> Iterator[Note]:
    """Collect the warnings of group models, and note the groups in which no row can be flagged."""
    by, names = model.options.columns.by, dict[str, list[str]]()
    for piece in pieces:
        if not piece.model.is_whole:
            for text in piece.model.detector.warnings:
                names.setdefault(text, []).append(piece.name)
    for text, where in names.items():
        yield note_of_groups(where, f": {text}", by)
    if few_rows := [piece.name for piece in pieces if math.isinf(piece.threshold)]:
        if math.isfinite(threshold.value):
            nothing = (
                " nothing can be flagged: the reference has too few rows there for "
                f"{threshold.rule} {threshold.setting:.3g}; take a larger rate, or fit with this "
                "one, and the model of the whole table judges them."
            )
            yield note_of_groups(few_rows, nothing, by)


def notations_of(encoder: TableEncoder) -> dict[str, Notation]:
    """Return the notation of numbers and dates by column."""
    return {c.spec.name: c.notation for c in encoder.coders if isinstance(c, ValueCoder)}


def evidence_against(rows: Encoded) -> tuple[pl.DataFrame, int]:
    """Return the evidence against single cells of a table, and the number of odd cells."""
    checks, notations = checked(rows.encoder.plan, rows.sample_table), notations_of(rows.encoder)
    each = [notations.get(spec.name, Notation()) for spec in checks]
    columns = [*zip(checks, rows.rules, each, strict=True)]
    return table_of_evidence(columns, rows.faults, n_rows=rows.n_rows)


# A row is ranked by its score and by its oddest cell. Its score alone has rank r among n rows. If
# the cell has p-value p, n p of n correct rows are expected to have a cell as odd. The harmonic sum
# 1 / (1/r + 1/(n p)), which is below both r and n p, combines them (Wilson 2019).


# Maximum number of tests of a cell: four limits (upper and lower, of numbers and logs), new level.
LOOKS = 5


def log_p_of_cells(rows: Encoded) -> FloatArray:
    """Return the log p-value of the oddest cell of each row, (n,); 0 if no cell is odd.

    A number beyond all others is as rare as the tail of its column says; a level seen once is as
    rare as new levels are. Other evidence does not count: its rate in correct rows is not known
    well enough. Nor do numbers within one width of the reference's range, as a few correct numbers
    may be fifty times the rest.
    """
    beyond = pl.col("kind").is_in(BEYOND) & (pl.col("clearness") > WITHOUT_TAIL)
    found = rows.faults.odd.filter(beyond)
    columns = [rows.encoder.summaries[place] for place in found["column"]]
    is_apart = [one.is_far(value) for one, value in zip(columns, found["value"], strict=True)]
    # Clearness is -log10 of the expected number of such values in a column. That number over the
    # number of rows is a p-value; multiply it by the number of columns (Bonferroni).
    of_one = np.log(len(rows.rules) / rows.n_judged) - np.log(10.0) * pl.col("clearness")
    far = found.filter(is_apart).select("row", log_p=of_one).explode("row")
    new = rows.faults.contradicted.filter(pl.col("kind") == NEW).select("row", "log_p")
    # "relaxed", because in polars 1.39 the columns of a frame without rows have no types.
    each = pl.concat([far, new], how="vertical_relaxed")
    log_p = np.zeros(rows.n_rows)
    np.minimum.at(log_p, each["row"].to_numpy() - 1, each["log_p"].to_numpy() + np.log(LOOKS))
    return log_p


def _rank_rows(
    rows: Encoded, raw: FloatArray, flags: _Flags, evidence: pl.DataFrame, positions: IntArray
) -> tuple[IntArray, IntArray]:
    """Rank every row (n,): rows known to be wrong first, accepted rows last.

    Also return the ranks by score alone of the rows with evidence, which are at `positions`.
    """
    ranks, n_wrong = novelty_ranks(flags.scores, raw), 0
    if rows.accepted is not None:
        last = rows.accepted.is_accepted.astype(np.int8)
        if rows.is_wrong is not None:
            last, n_wrong = last - rows.is_wrong, int(rows.is_wrong.sum())
        order = np.lexsort((ranks, last))
        ranks[order] = np.arange(1, len(ranks) + 1)
    by_score: IntArray = ranks[positions]
    _move_ahead(ranks, evidence, n_wrong, int(flags.is_flagged.sum()))
    return ranks, by_score


def _move_ahead(ranks: IntArray, evidence: pl.DataFrame, n_wrong: int, n_flagged: int) -> None:
    """Give better ranks to rows that probably hold a wrong cell; other rows keep their order.

    Rows known to be wrong stay first; rows neither flagged nor with such evidence come last.
    """
    if evidence.is_empty():
        return
    strongest = strongest_by_row(evidence)
    rows = strongest["row"].to_numpy() - 1
    own = ranks[rows] - n_wrong
    alike = len(ranks) * np.exp(strongest["log_p"].to_numpy())
    kept = own > 0
    rows, own, alike = rows[kept], own[kept], alike[kept]
    places = np.minimum(own * alike / (own + alike), n_flagged - n_wrong + 0.5)
    order = np.lexsort((own, places))
    rows, places, own = rows[order], places[order], np.sort(own)
    for block in blocks(len(ranks)):
        others = ranks[block] - n_wrong
        ranks[block] += places.searchsorted(others, "right") - own.searchsorted(others)
    n_others = np.ceil(places).astype(np.int64) - 1 - own.searchsorted(places)
    ranks[rows] = n_wrong + n_others + np.arange(1, len(rows) + 1)


# How groups are compared. Scores of the default detector are logarithms of combined p-values, so
# scores of different groups are nearly on one scale, and all rows are ranked by their scores. On
# tables with planted faults, this found more faults than ranking by rarity within a group (a tail
# estimated from few rows) or flagging the same share of every group (which flags rows of groups
# without faults). With a clean reference, each group has its own threshold, and its scores are
# shifted so that all thresholds coincide. The functions below write sentences on groups.

NAMED = 5  # maximum number of groups named in one sentence


def group_name(by: Sequence[str], key: GroupKey) -> str:
    """Name a group for readers, as "species Adelie"."""
    pairs = zip(by, key, strict=True)
    return ", ".join(f"{name} {'(missing)' if text is None else text}" for name, text in pairs)


def rest_note(model: NoveltyModel, keys: Sequence[GroupKey], codes: IntArray) -> Iterator[Note]:
    """Note which groups have no model of their own."""
    by, own = model.options.columns.by, {group.values for group in model.groups}
    others = [place for place, key in enumerate(keys) if key not in own]
    if not others:
        return
    sizes = np.bincount(codes, minlength=len(keys))
    others.sort(key=lambda place: (-int(sizes[place]), group_text(keys[place])))
    names = ", ".join(quoted(group_text(keys[place])) for place in others[:NAMED])
    more = f" and {len(others) - NAMED:,} more" if len(others) > NAMED else ""
    groups = "1 group" if len(others) == 1 else f"{len(others):,} groups"
    verb, its = ("has", "its") if len(others) == 1 else ("have", "their")
    most = f", and at most {MAX_GROUPS} groups have one" if len(own) == MAX_GROUPS else ""
    judged = (
        f" {verb} no model of {its} own, which takes "
        f"{rows_needed(model.rule):,} rows of {model.source.short_name}{most}: their "
        f"{rows_are(int(sizes[others].sum()))} judged by the model of the whole table."
    )
    which = f"{groups} by {listed(by)}"
    yield Note(f"{which} ({names}{more}){judged}", f"{which}{judged}", by)


def note_of_groups(names: Sequence[str], text: str, by: tuple[str, ...]) -> Note:
    """Write a note on some groups, which names them if their values may be shown."""
    bare = "1 group" if len(names) == 1 else f"{len(names):,} groups"
    return Note(f"In {listed(names)}{text}", f"In {bare}{text}", by)
