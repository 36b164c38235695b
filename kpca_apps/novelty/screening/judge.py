"""Judge a table by a model: scores, ranks and flags, each row by the model of its group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import polars as pl

from kpca_apps.engine.rows import ArrayRows
from kpca_apps.errors import OptionError
from kpca_apps.names import listed, quoted
from kpca_apps.novelty.checks.number_rules import BEYOND, WITHOUT_TAIL
from kpca_apps.novelty.checks.odd_cells import checked, table_of_evidence
from kpca_apps.novelty.columns.encoding import TableEncoder, ValueCoder
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.parts import GroupKey, each_part, some_rows
from kpca_apps.novelty.detector.detector import NoveltyScores
from kpca_apps.novelty.detector.threshold import (
    Rarity,
    Rule,
    conformal_p_values,
    discovery_limit,
    p_value_scale,
    rate_threshold,
    smallest_rate,
)
from kpca_apps.novelty.evidence import strongest_by_row
from kpca_apps.novelty.ranks import novelty_ranks
from kpca_apps.novelty.redact import Note
from kpca_apps.novelty.result import (
    NEW,
    GroupInfo,
    RowScores,
    ThresholdInfo,
)
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
from kpca_apps.system.files.windowed import (
    blocks_of,
    release_pages,
    row_values,
    rows_where,
    values_at,
)
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

    def parts_of_relations(self, positions: IntArray) -> dict[int, float]:
        """Return the parts of rows' scores, by row number, that relations between cells explain.

        No row has such a part if scores are errors of kernel PCA alone. If groups have models of
        their own, relations of the whole table do not count.
        """
        whole = self.pieces[0].model.detector
        if self.groups or whole.combined is None:
            return {}
        found = (values_at(of, positions) for of in (self.scored.scores, self.rows.surprise))
        parts = whole.combined.part_of_surprise(*found)
        return dict(zip((positions + 1).tolist(), parts.tolist(), strict=True))


def judge(model: NoveltyModel, rows: Encoded, options: ScreeningOptions) -> Verdict:
    """Score, rank and flag the rows of a table; the training table has leave-one-out scores.

    The rule of the options, or else of the model, flags the rows that are not accepted. Accepted
    rows rank last. Rows known to be wrong are always flagged, and rank first.
    """
    rule = resolve_rule(options, clean=model.clean, default=model.rule)
    in_training, detector = rows.is_own, model.detector
    pieces = _pieces(model, rows)
    raw = _raw_scores(pieces, rows)
    judged = np.s_[:] if rows.is_accepted is None else ~rows.is_accepted
    evidence, n_odd_cells = evidence_against(rows)
    calibration = detector.calibration_scores if model.clean else None
    p_values = None if calibration is None else _p_values(calibration, pieces, raw)
    scores, listed = raw, np.zeros(1, dtype=bool)
    if rule.name == "fdr":
        log_p = log_p_of_cells(rows)[judged]
        listed = log_p <= discovery_limit(log_p, len(log_p), rule.setting - rule.of_scores)
    # In later tables, reuse a threshold that the same rule chose on the training table.
    is_kept = rule == model.rule and not rule.calibrated and not model.clean and not in_training
    chosen = model.group_threshold if model.groups else detector.flags_above
    value = chosen if is_kept else None
    if rule.calibrated and model.groups:
        assert p_values is not None and calibration is not None
        rate = rule.rate(p_values[judged])
        value = rate_threshold(calibration, rate)
        scores, pieces = _shifted(raw, rate, value, pieces)
    flagged, calibrated = np.zeros(len(scores), dtype=bool), (calibration, detector.calibration)
    flagged[judged], threshold, too_few = flag(
        rule, scores[judged], *calibrated, set_before=value, listed=listed
    )
    n_wrong = 0
    if rows.accepted is not None and rows.accepted.is_wrong is not None:
        flagged |= rows.accepted.is_wrong
        n_wrong = int(rows.accepted.is_wrong.sum())
    if not (rule.calibrated and model.groups):
        pieces = [replace(piece, threshold=threshold.value) for piece in pieces]
    rarity = None if calibration is not None else rarity_of(model)
    scale = None
    if calibration is not None:
        scale = p_value_scale(calibration)
        if model.groups:
            scale = replace(scale, statement=OF_GROUPS, marks=())
    elif rarity is not None:
        scale = rarity.scale_of_scores
        (at_threshold,) = rarity.share(np.array([threshold.value])).tolist()
        threshold = replace(threshold, rarity=rarity.describe(at_threshold))
    notes: tuple[str, ...] = ()
    if model.groups:
        n_rest = sum(len(piece.positions) for piece in pieces if piece.model.is_whole)
        words = f"{threshold.statement} {judged_sentence(model, n_rest)}"
        threshold = replace(threshold, statement=words)
        notes = (*rest_note(model, *rows.groups), *_notes_of_groups(model, threshold, pieces))
    warnings = model.warnings
    if not in_training:
        where = f"In {model.source.name}, the reference: "
        of_model = (
            note.after(where) if isinstance(note, Note) else f"{where}{note}" for note in warnings
        )
        warnings = (*of_model, *rows.warnings)
    ranks = _ranks(rows, raw, scores)
    rows_of_cells = evidence["row"].explode().unique().to_numpy()
    by_score = values_at(ranks, rows_of_cells - 1).tolist()
    _move_ahead(ranks, evidence, n_wrong, int(flagged.sum()))
    release_pages(raw, scores, ranks, p_values)
    return Verdict(
        model=model,
        rows=rows,
        scored=RowScores(
            scores=scores,
            p_values=p_values,
            rarity_of=None if rarity is None else rarity.share,
            ranks=ranks,
            is_flagged=flagged,
            is_accepted=rows.is_accepted,
            scale=scale,
        ),
        rarity=rarity,
        evidence=evidence,
        n_odd_cells=n_odd_cells,
        rank_by_score=dict(zip(rows_of_cells.tolist(), by_score, strict=True)),
        threshold=threshold,
        warnings=(*warnings, *notes, *too_few),
        pieces=tuple(pieces),
        groups=tuple(
            GroupInfo(
                name=one.name,
                n_rows=len(one.positions),
                n_flagged=int(flagged[one.positions].sum()),
                n_fitted=one.model.n_rows,
                threshold=one.threshold,
            )
            for one in (pieces if model.groups else ())
        ),
    )


def _pieces(model: NoveltyModel, rows: Encoded) -> list[JudgedPiece]:
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


def _raw_scores(pieces: Sequence[JudgedPiece], rows: Encoded) -> FloatArray:
    """Score every row, shape (n,), by the model of its group and on the scale of that model."""
    if len(pieces) == 1 and pieces[0].model.is_whole:
        model = pieces[0].model
        return model.training_scores if rows.is_own else rows.scores(model.detector)
    scores: FloatArray = row_values(rows.n_rows, np.float64)
    for piece in pieces:
        model, positions = piece.model, piece.positions
        if rows.is_own:
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


def _p_values(
    calibration: FloatArray, pieces: Sequence[JudgedPiece], raw: FloatArray
) -> FloatArray:
    """Return the p-value of every row (n,), by the scores of its group or else by `calibration`."""
    p_values = conformal_p_values(calibration, raw)
    for piece in pieces:
        if not piece.model.is_whole:
            own = piece.model.detector.calibration_scores
            p_values[piece.positions] = conformal_p_values(own, raw[piece.positions])
    return p_values


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


def rarity_of(model: NoveltyModel) -> Rarity | None:
    """Return the distribution of typical rows' scores, pooled over the models of all groups."""
    n_rest = model.n_rows - sum(group.n_rows for group in model.groups)
    parts = [(group.detector.rarity, float(group.n_rows)) for group in model.groups]
    if n_rest:
        parts.append((model.detector.rarity, float(n_rest)))
    known = [(rarity, n) for rarity, n in parts if rarity is not None]
    return Rarity.pooled(known) if known else None


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


def _move_ahead(ranks: IntArray, evidence: pl.DataFrame, n_wrong: int, n_flagged: int) -> None:
    """Give better ranks to rows that probably hold a wrong cell; other rows keep their order.

    Rows known to be wrong stay first; rows neither flagged nor with such evidence come last.
    """
    if evidence.is_empty():
        return
    strongest = strongest_by_row(evidence)
    rows = strongest["row"].to_numpy() - 1
    own = values_at(ranks, rows) - n_wrong
    alike = len(ranks) * np.exp(strongest["log_p"].to_numpy())
    kept = own > 0
    rows, own, alike = rows[kept], own[kept], alike[kept]
    places = np.minimum(own * alike / (own + alike), n_flagged - n_wrong + 0.5)
    order = np.lexsort((own, places))
    rows, places, own = rows[order], places[order], np.sort(own)
    for block in blocks_of(ranks):
        others = ranks[block] - n_wrong
        ranks[block] += places.searchsorted(others, "right") - own.searchsorted(others)
    n_others = np.ceil(places).astype(np.int64) - 1 - own.searchsorted(places)
    ranks[rows] = n_wrong + n_others + np.arange(1, len(rows) + 1)


def _ranks(rows: Encoded, raw: FloatArray, scores: FloatArray) -> IntArray:
    """Rank every row: rows known to be wrong first, accepted rows last."""
    ranks = novelty_ranks(scores, raw)
    if rows.accepted is not None:
        last = rows.accepted.is_accepted.astype(np.int8)
        wrong = rows.accepted.is_wrong
        order = np.lexsort((ranks, last if wrong is None else last - wrong))
        ranks[order] = np.arange(1, len(ranks) + 1)
    return ranks


# Rules that flag rows: meaning and threshold of each.


NO_RATE = "no false-alarm rate is known without clean rows"
P_VALUES = "p-values say how rare each score is among normal rows"


def flag(
    rule: Rule,
    scores: FloatArray,
    calibration_scores: FloatArray | None = None,
    calibration: str | None = None,
    *,
    set_before: float | None = None,
    listed: BoolArray | bool = False,
) -> tuple[BoolArray, ThresholdInfo, tuple[str, ...]]:
    """Flag rows by a rule; also return a plain sentence on its meaning, and warnings.

    `calibration_scores` are those of clean rows, if any, and `calibration` is how they were
    obtained. A threshold `set_before`, such as one chosen on another table, is used unchanged. Rows
    `listed` (n,) for one of their cells are also flagged.
    """
    n, setting = len(scores), rule.setting
    if rule.name == "count" and set_before is None and setting >= n:
        raise OptionError(
            "count", f"{setting:g} would flag every one of the {n} rows: choose fewer"
        )
    value = rule.threshold(scores, calibration_scores) if set_before is None else set_before
    is_above = rows_where(scores, lambda part: part > value)
    n_flagged, n_calibration = len(is_above), 0
    flagged = np.zeros(n, dtype=bool) | listed
    flagged[is_above] = True
    warnings: tuple[str, ...] = ()
    if rule.calibrated:
        assert calibration_scores is not None and calibration is not None
        n_calibration = len(calibration_scores)
        if rule.name == "alpha":
            statement = rate_statement(setting, value, n_calibration, calibration)
        else:
            by_cell = int(flagged.sum()) - n_flagged
            how = _calibrated_on(n_calibration, calibration)
            statement = _list_statement(rule, n_flagged, by_cell, value, n, n_calibration, how)
        if math.isinf(value):
            # The smallest number n of clean rows with 1 / (n + 1) <= alpha.
            enough = math.ceil(1.0 / setting - 1e-9) - 1
            instead = f"give at least {enough:,}, or a larger --alpha."
            if rule.name == "fdr":
                instead = "give more of them, a larger --fdr, or a false-alarm rate (--alpha)."
            few = f"{n_calibration:,} reference rows are too few for {rule.name} {setting:.3g}"
            warnings = (f"{few}: {instead}",)
    elif set_before is not None:
        statement = (
            f"The threshold was set by {rule.name} {setting:.3g} on the table the model was fitted "
            f"on; {NO_RATE}."
        )
    else:
        statement = _choice_statement(rule, n_flagged, n)
        statement += f"; {NO_RATE if calibration_scores is None else P_VALUES}."
    used = calibration if rule.calibrated else None
    info = ThresholdInfo(rule.name, setting, value, used, n_calibration, statement)
    return flagged, info, warnings


def _choice_statement(rule: Rule, n_flagged: int, n: int) -> str:
    """State which rows a choice (share or count) flags, and whether ties add or remove rows."""
    count = rule.count(n)
    chosen = f"The share of {_percent(rule.setting)}" if rule.name == "share" else "The count"
    rows = f"{count:,} row{'s' if count > 1 else ''}"
    if n_flagged < count:
        rest = "all score alike: none is flagged"
        if n_flagged:
            only = f"only the other {n_flagged:,} {'is' if n_flagged == 1 else 'are'} flagged"
            rest = f"{n - n_flagged:,} of them score alike: {only}"
        return f"{chosen} asks for {rows} of {n:,}, but {rest}"
    verb = "scores" if count == 1 else "score"
    statement = f"{chosen} flags the {rows} of {n:,} that {verb} highest"
    if n_flagged == count:
        return statement
    more = n_flagged - count
    return f"{statement}, and {more:,} more that score{'s' if more == 1 else ''} like the last"


def rate_statement(alpha: float, threshold: float, n_calibration: int, calibration: str) -> str:
    """State what a false-alarm rate means, or that too few clean rows calibrate it."""
    if math.isinf(threshold):
        return (
            f"Nothing can be flagged at {_percent(alpha)}: {n_calibration:,} reference rows allow "
            f"{100 * smallest_rate(n_calibration):.2g} % at best."
        )
    how = _calibrated_on(n_calibration, calibration)
    return f"About {_percent(alpha)} of new rows like the reference would be flagged; {how}."


def _list_statement(
    rule: Rule, n_above: int, by_cell: int, value: float, n: int, n_calibration: int, how: str
) -> str:
    """State what a false discovery rate means for a list, or why the list is empty."""
    rate = rule.setting
    if n_above or by_cell:
        if by_cell:
            rest = f"and {_rows(by_cell)} listed for one cell, by the tail of its column"
            how = f"{_rows(n_above)} listed by score, {how}; {rest}"
        return (
            f"A list of which at most {_percent(rate)} are expected to be false alarms "
            f"(Benjamini-Hochberg); {how}."
        )
    if math.isfinite(value):
        return (
            f"The list is empty: no p-value of the {n:,} rows is small enough for a false "
            f"discovery rate of {_percent(rate)} (Benjamini-Hochberg); {how}."
        )
    smallest = smallest_rate(n_calibration)
    needed = math.ceil(smallest * n / rule.of_scores - 1e-9)
    why = f"which is above the {_percent(rule.of_scores)} that scores have of it"
    if needed <= n:
        why = f"and among {n:,} rows it takes {needed:,} that have it"
    return (
        f"No list can be given at a false discovery rate of {_percent(rate)} from "
        f"{n_calibration:,} reference rows: the smallest p-value they allow is {smallest:.2g}, "
        f"{why}."
    )


def _calibrated_on(n_calibration: int, calibration: str) -> str:
    if calibration == "split":
        return f"calibrated on {n_calibration:,} reference rows held back (guaranteed)"
    return f"calibrated on {n_calibration:,} reference rows, each left out (approximate)"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


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


def group_text(key: GroupKey) -> str:
    """Write the values that the rows of a group share."""
    return ", ".join("(missing)" if text is None else text for text in key)


def judged_sentence(model: NoveltyModel, n_rest: int) -> str:
    """State which rows are judged within their groups; `n_rest` rows are not."""
    n_own, by = len(model.groups), listed(model.options.columns.by)
    models = "1 group has a model" if n_own == 1 else f"{n_own} groups have models"
    calibrated = ", and a threshold," if model.clean else ""
    rest = f"; {_rows(n_rest)} judged by that of the whole table" if n_rest else ""
    return f"By {by}: {models}{calibrated} of {'its' if n_own == 1 else 'their'} own{rest}."


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
        f"{_rows(int(sizes[others].sum()))} judged by the model of the whole table."
    )
    which = f"{groups} by {listed(by)}"
    yield Note(f"{which} ({names}{more}){judged}", f"{which}{judged}", by)


def note_of_groups(names: Sequence[str], text: str, by: tuple[str, ...]) -> Note:
    """Write a note on some groups, which names them if their values may be shown."""
    bare = "1 group" if len(names) == 1 else f"{len(names):,} groups"
    return Note(f"In {listed(names)}{text}", f"In {bare}{text}", by)


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count:,} rows are"
