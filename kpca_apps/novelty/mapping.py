"""What the pictures of a screening need: rows on kernel components, and scores on a grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.novelty.model import NoveltyModel
from kpca_apps.novelty.result import ComponentMap, ScoreContours

__all__ = ["map_rows", "score_grid"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MAX_DRAWN = 1_500
N_VARIANCES = 30
GRID = 60


def map_rows(
    model: NoveltyModel, matrix: FloatArray, ranks: IntArray, flagged: BoolArray, n_ranked: int
) -> ComponentMap:
    """Place a drawn sample of rows, and every ranked one, on the leading two kernel components.

    Parameters
    ----------
    model : NoveltyModel
        The fitted model; its seed draws the sample.
    matrix : (n, d) array
        The encoded table.
    ranks, flagged : (n,) array
        Of every row.
    n_ranked : int
        Rows in the ranked list.

    Returns
    -------
    ComponentMap
    """
    drawn = _sample(ranks <= n_ranked, model.options.seed)
    points = model.detector.map_components(matrix[drawn])
    subspace = model.detector.subspace_
    # Total variance in feature space, mean k(x, x) - |mu|^2, over the rows the model keeps.
    kept = model.detector.views_.transform(model.detector.neighbours_.rows)
    total = float(subspace.kernel.diagonal(kept).mean() - subspace.mean_norm)
    leading = np.zeros(2)
    leading[: min(2, len(subspace.variances))] = subspace.variances[:2] / (total or 1.0)
    return ComponentMap(
        x=points[:, 0],
        y=points[:, 1],
        rank=np.where(ranks[drawn] <= n_ranked, ranks[drawn], 0),
        flagged=flagged[drawn],
        n_rows=len(matrix),
        variances=subspace.variances[:N_VARIANCES],
        gains=subspace.gain[:N_VARIANCES],
        explained=(float(leading[0]), float(leading[1])),
    )


def score_grid(model: NoveltyModel, matrix: FloatArray, flagged: BoolArray) -> ScoreContours | None:
    """Scores on a grid over the two columns of a table; ``None`` unless it uses two numeric ones.

    Parameters
    ----------
    model : NoveltyModel
        The fitted model.
    matrix : (n, d) array
        The encoded table.
    flagged : (n,) bool array
        Flagged rows, all of which are drawn.

    Returns
    -------
    ScoreContours or None
    """
    used = model.encoder.plan.used
    if len(used) != 2 or any(spec.role != "numeric" for spec in used):
        return None
    # A column with gaps brings an indicator of them, which is 0 all over the picture.
    first, second = (group.columns[0] for group in model.encoder.groups)
    x, y = (_grid_lines(matrix[:, column]) for column in (first, second))
    grid = np.zeros((GRID * GRID, matrix.shape[1]))
    grid[:, first], grid[:, second] = np.tile(x, GRID), np.repeat(y, GRID)
    drawn = _sample(flagged, model.options.seed)
    return ScoreContours(
        x_name=used[0].name,
        y_name=used[1].name,
        x=x,
        y=y,
        scores=-model.detector.score_samples(grid).reshape(GRID, GRID),
        points_x=matrix[drawn, first],
        points_y=matrix[drawn, second],
        points_flagged=flagged[drawn],
    )


def _sample(kept: BoolArray, seed: int) -> IntArray:
    """At most 1,500 drawn rows and all that must be kept, in the order of the table."""
    n = len(kept)
    rng = np.random.default_rng(seed)
    chosen = kept.copy()
    chosen[rng.choice(n, min(n, MAX_DRAWN), replace=False)] = True
    return np.flatnonzero(chosen)


def _grid_lines(values: FloatArray) -> FloatArray:
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low)
    lines: FloatArray = np.linspace(low - margin, high + margin, GRID)
    return lines
