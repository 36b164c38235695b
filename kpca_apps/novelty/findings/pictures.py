"""Compute the points of a screening's figures: two columns, kernel components, a score grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.findings.listed_rows import MAX_DRAWN, Lists
from kpca_apps.novelty.result import (
    N_KINDS,
    CategoryProfile,
    ColumnPlane,
    ColumnProfile,
    ComponentMap,
    NumericProfile,
    Pictures,
    PlaneAxis,
    ScoreContours,
)
from kpca_apps.novelty.screening.encoded import Encoded
from kpca_apps.novelty.screening.judge import Verdict
from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.tables.values import Column

N_VARIANCES = 30
GRID = 60
OTHER_LEVELS = "(other)"


def draw_rows(verdict: Verdict, lists: Lists, columns: Sequence[ColumnProfile]) -> Pictures:
    """Place rows for three pictures: kernel components, contours of scores, and two columns."""
    return Pictures(
        map=_map_rows(verdict, lists.first[: len(lists.ranked)]),
        contours=_score_grid(verdict, lists.first[:MAX_DRAWN]),
        plane=_column_plane(verdict, lists, columns),
    )


def _map_rows(verdict: Verdict, listed: IntArray) -> ComponentMap:
    """Place drawn rows and the `listed` ones (by rank) on the two leading kernel components."""
    model = verdict.model
    drawn, matrix = _drawn(verdict.rows, listed, model.options.seed)
    points = model.detector.map_components(matrix, n_jobs=model.options.jobs)
    rank = np.zeros(len(drawn), dtype=np.int64)
    rank[np.searchsorted(drawn, listed)] = np.arange(1, len(listed) + 1)
    subspace = model.detector.viewed
    leading = np.zeros(2)
    leading[: min(2, len(subspace.variances))] = subspace.variances[:2] / (
        model.detector.feature_variance or 1.0
    )
    return ComponentMap(
        x=points[:, 0],
        y=points[:, 1],
        rank=rank,
        flagged=np.asarray(verdict.scored.is_flagged[drawn]),
        n_rows=verdict.rows.n_rows,
        variances=subspace.variances[:N_VARIANCES],
        gains=subspace.gain[:N_VARIANCES],
        explained=(float(leading[0]), float(leading[1])),
    )


def _column_plane(
    verdict: Verdict, lists: Lists, columns: Sequence[ColumnProfile]
) -> ColumnPlane | None:
    """Place rows by the columns with the largest part in the reasons of the flagged rows.

    A sample and the ranked rows are drawn. One of the two columns holds numbers or dates, if any
    does. Hidden columns and free text are not drawn; ``None`` if no other column is left.
    """
    rows, ranked, seed = verdict.rows, lists.ranked, verdict.model.options.seed
    parts = {column.name: column.reason_share for column in columns}
    if not any(parts.values()):  # no row is flagged: use the reasons of the oddest rows
        for reason in (reason for row in ranked[:N_KINDS] for reason in row.reasons):
            parts[reason.column] = parts.get(reason.column, 0.0) + reason.share
    shown = [c for c in columns if c.distribution is not None and c.used and not c.hidden]
    shown.sort(key=lambda column: -parts[column.name])
    if not shown:
        return None
    first, *others = shown
    if isinstance(first.distribution, CategoryProfile):  # pair it with a column of numbers
        others.sort(key=lambda c: (parts[c.name] == 0, isinstance(c.distribution, CategoryProfile)))
    listed = np.array([row.row - 1 for row in ranked], dtype=np.int64)
    sample = np.flatnonzero(~np.isin(rows.sample_index, listed))
    drawn = np.random.default_rng(seed).permutation(sample)[:MAX_DRAWN]
    positions = np.concatenate([listed, rows.sample_index[drawn]])
    specs = {spec.name: spec for spec in rows.encoder.plan.used}

    def axis(profile: ColumnProfile) -> PlaneAxis:
        spec, distribution = specs[profile.name], profile.distribution
        levels = distribution.levels if isinstance(distribution, CategoryProfile) else ()
        here, elsewhere = (
            _values(of.column[spec.name], spec, levels) for of in (lists.table, rows.sample_table)
        )
        values = np.concatenate([here, elsewhere[drawn]])
        is_date = isinstance(distribution, NumericProfile) and distribution.is_date
        others = (OTHER_LEVELS,) * bool(levels and (values == len(levels)).any())
        return PlaneAxis(spec.name, values, is_date, (*levels, *others))

    return ColumnPlane(
        x=axis(first),
        y=axis(others[0]) if others else None,
        scores=verdict.scored.scores[positions],
        rank=np.concatenate([[row.rank for row in ranked], np.zeros(len(drawn))]).astype(np.int64),
        flagged=np.asarray(verdict.scored.is_flagged[positions]),
        n_rows=rows.n_rows,
    )


def _values(column: Column, spec: ColumnSpec, levels: tuple[str, ...]) -> FloatArray:
    """Return cells as numbers or, with levels, as positions among them; NaN if missing."""
    if not levels:
        return column.read(spec.format).values
    of, known = spec.levels(column), {level: place for place, level in enumerate(levels)}
    places = np.array([known.get(text, len(known)) for text in of.texts], dtype=float)
    return of.each(places, np.nan)


def _score_grid(verdict: Verdict, first: IntArray) -> ScoreContours | None:
    """Return scores on a grid over two columns; None unless the table uses two numeric ones.

    The points are a sample of the rows, and the flagged rows among `first`.
    """
    model = verdict.model
    used = model.encoder.plan.used
    if len(used) != 2 or any(spec.role != "numeric" for spec in used):
        return None
    # A column with missing cells adds an indicator column, which is 0 throughout the picture.
    left, right = (group.columns[0] for group in model.encoder.groups)
    drawn, matrix = _drawn(
        verdict.rows, first[verdict.scored.is_flagged[first]], model.options.seed
    )
    held = np.vstack([verdict.rows.sample, matrix])
    low, high = held.min(axis=0), held.max(axis=0)
    margin = 0.05 * (high - low)
    x, y = (np.linspace((low - margin)[j], (high + margin)[j], GRID) for j in (left, right))
    grid = np.zeros((GRID * GRID, matrix.shape[1]))
    grid[:, left], grid[:, right] = np.tile(x, GRID), np.repeat(y, GRID)
    return ScoreContours(
        x_name=used[0].name,
        y_name=used[1].name,
        x=x,
        y=y,
        scores=model.detector.scores(grid, n_jobs=model.options.jobs).reshape(GRID, GRID),
        points_x=matrix[:, left],
        points_y=matrix[:, right],
        points_flagged=np.asarray(verdict.scored.is_flagged[drawn]),
    )


def _drawn(rows: Encoded, kept: IntArray, seed: int) -> tuple[IntArray, FloatArray]:
    """Draw up to 1,500 rows at random, add `kept`; return sorted positions and encoded rows."""
    index, rng = rows.sample_index, np.random.default_rng(seed)
    drawn = index[rng.choice(len(index), min(len(index), MAX_DRAWN), replace=False)]
    positions = np.union1d(drawn, kept)
    place = np.searchsorted(index, positions).clip(max=len(index) - 1)
    is_held = index[place] == positions
    matrix = rows.sample[place]
    if not is_held.all():
        matrix[~is_held] = rows.encoded(positions[~is_held])
    return positions, matrix
