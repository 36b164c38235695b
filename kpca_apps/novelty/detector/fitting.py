"""Rows of a source -> a fitted subspace and the errors of all rows, with a soft or a hard cut.

Soft cut: every component of the landmark span is kept with gain lambda / (lambda + rho). The
reconstruction error is then r + rho M, rho times a regularised Mahalanobis distance in feature
space (Rudi et al. 2017). It cures self-masking: with a hard cut one isolated row can claim a
component of its own and score as normal.

Rows that may hold outliers are trimmed first: those with the highest kernel density are used, half
of all or more where the table is even, and nothing else learns from the rest.

Landmarks and scalings come from the rows a source holds in memory, means and covariances from all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.landmarks import residual_landmarks, uniform_landmarks
from kpca_apps.engine.linalg.gram import about_mean
from kpca_apps.engine.nystroem import LandmarkBasis, subspace_from_sums
from kpca_apps.engine.plan import require_nystroem
from kpca_apps.engine.precision import FLOAT64_ROWS, scores_agree
from kpca_apps.engine.subspace import KernelSubspace, Resolved
from kpca_apps.novelty.detector.leave_one_out import (
    landmark_directions,
    leave_landmark_out,
    leave_row_out,
)
from kpca_apps.novelty.detector.passes import (
    FeatureSums,
    KernelDensity,
    MeanRow,
    MissedParts,
    NoveltyScores,
    RowViews,
)
from kpca_apps.novelty.detector.row_source import RowFunction, RowSource, map_rows, sum_rows
from kpca_apps.novelty.detector.surprise.combined import CombinedScore, CombinedScores, usual_rows

__all__ = [
    "CellOptions",
    "NoveltyFit",
    "densest",
    "fit_hard",
    "fit_soft",
    "scores_without_landmarks",
    "trim",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MAX_EXACT_ROWS = 5_000
# Rows that stand for all where precision, or what the landmarks miss, is looked at.
PROBE_ROWS = 192
# Rows that what cells add is learned from: all of most tables, and enough for shares of .1 %; of
# many columns fewer, for memory.
MOST_ROWS, MOST_CELLS, FEWEST_ROWS = 10_000, 4_000_000, 200
# Rows looked at for each landmark drawn.
CANDIDATES_A_LANDMARK, MAX_CANDIDATES = 10, 20_000
# Rows whose mean tells where a table is dense, and about which inner products are taken.
MEAN_ROWS = 2_500
# A row below the first part of the typical density is sparse, one above the second is not; between
# them it counts in part.
AS_DENSE = (0.6, 0.8)
# Shares of rows about as dense as the densest half: up to the first half of the rows are kept, from
# the second on as many as these are, between them in proportion.
EVEN = (0.7, 0.9, 1.0)


@dataclass(frozen=True)
class NoveltyFit:
    """A fitted model and the scores of the rows it comes from.

    Attributes
    ----------
    errors : NoveltyScores
        The model, and how it scores rows: those in use as if left out, for a soft cut.
    scores : (n,) array
        Novelty of every row; of rows in use as if left out for a soft cut, in-sample for a hard
        one.
    landmarks : (m,) int array
        Positions of the rows that span the model, increasing.
    combined : CombinedScore or None
        What the cells of a row add; ``None`` where its error is all.
    usual_scores : (u,) array or None
        Scores of the rows that the regressions between columns were learned from.
    missed : float or None
        Share of a row's squared length that the other rows' landmarks miss, on average over the
        rows in use; ``None`` for a hard cut.
    warnings : tuple of str
        What a reader of the scores must know.
    """

    errors: NoveltyScores
    scores: FloatArray
    landmarks: IntArray
    combined: CombinedScore | None = None
    usual_scores: FloatArray | None = None
    missed: float | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class CellOptions:
    """How the cells of rows are to count beside their errors.

    Attributes
    ----------
    groups : sequence of int arrays
        Columns made of one source.
    as_is : (a,) int array
        Columns that are indicators.
    contaminated : bool
        Whether the rows may hold outliers.
    learnable : (n,) bool array
        Rows that may be learned from.
    """

    groups: Sequence[IntArray]
    as_is: IntArray
    contaminated: bool
    learnable: BoolArray


def trim(
    views: RowViews,
    source: RowSource,
    *,
    n_landmarks: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> BoolArray:
    """Mark the rows with the highest kernel density <z, zbar>, as `densest` says.

    Parameters
    ----------
    views : RowViews
        What the kernel sees of the rows.
    source : RowSource
        The rows. Landmarks and zbar come from its sample.
    n_landmarks : int
        Rows that span the density estimate, at most.
    rng : Generator
        Draws them.
    n_jobs : int or None
        Threads for the sample.

    Returns
    -------
    (n,) bool array
    """
    sample = source.sample
    # Not about the mean: a density is a product with the mean, of which nothing would be left.
    landmarks = _landmarks(views.kernel, views, sample, n_landmarks, rng, n_jobs)
    basis = LandmarkBasis.from_cholesky(views.kernel, views.transform(sample[landmarks]))
    typical = sample[uniform_landmarks(len(sample), MEAN_ROWS, rng)]
    typical_row = sum_rows(MeanRow(views, basis.points), typical, n_jobs=n_jobs).mean
    weights = basis.transform @ (basis.transform.T @ typical_row)
    density = partial(KernelDensity, views, basis.points, weights)
    probe = sample[_probe(len(sample), landmarks)]
    return densest(source.map(density(_enough(density, probe, source.n_rows))))


def densest(density: FloatArray) -> BoolArray:
    """Mark the rows with the highest density: half of them, or more of an even table.

    Where most rows are about as dense as the densest half there is no sparse half: a ring, say,
    would lose an arc that is as good as the rest. How many rows are kept changes gradually with
    how many are about as dense, so that one row more or less in the table never decides it.

    Parameters
    ----------
    density : (n,) array
        Kernel density of each row, or any multiple of it; n >= 2.

    Returns
    -------
    (n,) bool array
        At least two rows are marked, and with the last of them all that are as dense: equal rows
        are kept or left out together.

    Examples
    --------
    >>> densest(np.array([5.0, 1.0, 4.0, 3.0, 3.0])).tolist()
    [True, False, True, True, True]
    >>> densest(np.r_[np.full(19, 2.0), 0.1]).sum()
    np.int64(19)
    """
    n, half = len(density), (len(density) + 1) // 2
    ordered = np.sort(density)
    typical = float(ordered[n - half :].sum()) / half
    dense = np.interp(ordered, np.multiply(AS_DENSE, typical), (0.0, 1.0)) if typical > 0 else 0.0
    kept = np.interp(np.mean(dense), EVEN, (0.5, *EVEN[1:]))
    least = ordered[n - max(2, math.ceil(n * float(kept) - 1e-9))]
    marked: BoolArray = np.asarray(density) >= least
    return marked


def fit_soft(
    views: RowViews,
    source: RowSource,
    in_use: BoolArray,
    *,
    ridge: float,
    n_landmarks: int,
    rng: np.random.Generator,
    cells: CellOptions | None = None,
    n_jobs: int | None = None,
) -> NoveltyFit:
    """Fit with the soft cut and score every row, those in use as if each had been left out.

    Parameters
    ----------
    views : RowViews
        What the kernel, a positive semi-definite one, sees of the rows.
    source : RowSource
        The rows.
    in_use : (n,) bool array
        Which of them the model is fitted on.
    ridge : float
        rho as a share of the total variance tau in feature space.
    n_landmarks : int
        Rows that span the model, at most.
    rng : Generator
        Draws the landmarks.
    cells : CellOptions, optional
        How cells count; without them a row's score is its error.
    n_jobs : int or None
        Threads for the sample.

    Returns
    -------
    NoveltyFit
    """
    index, sample = _sample_in_use(source, in_use)
    kernel = _kernel_about_mean(views, sample)
    landmarks = _landmarks(kernel, views, sample, n_landmarks, rng, n_jobs)
    basis = LandmarkBasis.from_cholesky(kernel, views.transform(sample[landmarks]))
    probe = sample[_probe(len(sample), landmarks)]
    missed = partial(MissedParts, views, basis)
    precision = _enough(missed, probe, source.n_rows)
    sums = source.sum(FeatureSums(views, basis, precision), in_use).in_features(basis, precision)
    rho = ridge * sums.variance
    subspace = subspace_from_sums(basis, sums.covariance, ridge=rho)
    scoring = partial(NoveltyScores, views, subspace, rho)
    errors = scoring(_enough(scoring, probe, source.n_rows))
    of_landmarks, alone = _landmark_scores(subspace, rho, errors.precision)
    # A landmark with an equal row beside it keeps that one when it is left out.
    single = _occur_once(sample, landmarks)
    positions, of_landmarks = index[landmarks[single]], of_landmarks[single]
    combined = usual_scores = None
    if cells is None:
        scores = source.map(errors, in_use)
        scores[positions] = of_landmarks
    else:
        learned, X = _learned_rows(source, cells, rng)
        of_rows = map_rows(errors, X, in_use[learned], n_jobs=n_jobs)
        _, here, of_these = np.intersect1d(learned, positions, return_indices=True)
        of_rows[here] = of_landmarks[of_these]
        combined, own = CombinedScore.fit(
            X, of_rows, cells.groups, cells.as_is, contaminated=cells.contaminated
        )
        usual_scores = own[usual_rows(of_rows, contaminated=cells.contaminated)]
        scores = own
        if len(X) < source.n_rows:
            scores = source.map(CombinedScores(errors, combined), in_use)
            scores[positions] = combined(sample[landmarks[single]], of_landmarks)
            scores[learned] = own
    # Landmarks explain themselves; what the jitter leaves of them gives way to what others miss.
    unseen = float((alone - basis.own_residuals).sum())
    others = map_rows(missed(precision=errors.precision), probe)
    return NoveltyFit(
        errors,
        scores,
        index[landmarks],
        combined,
        usual_scores,
        (sums.missed + unseen) / sums.norm,
        _sparse_warning(np.concatenate([alone, others]), sums.typical_norm),
    )


def _occur_once(X: FloatArray, rows: IntArray) -> BoolArray:
    """Mark those of some rows of X (n, d) that no other row of X is equal to."""
    # Equal rows have equal sums; rows of equal sums are compared to the bit. No minus zero.
    sums = X.sum(axis=1)
    alike = X[np.isin(sums, sums[rows])]
    times = Counter(row.tobytes() for row in alike + 0.0)
    return np.array([times[row.tobytes()] == 1 for row in X[rows] + 0.0], dtype=bool)


def _learned_rows(
    source: RowSource, cells: CellOptions, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Rows in memory that what cells add is learned from: their positions, and they."""
    learnable = np.flatnonzero(cells.learnable[source.sample_index])
    most = max(FEWEST_ROWS, min(MOST_ROWS, MOST_CELLS // source.sample.shape[1]))
    if len(learnable) > most:
        learnable = np.sort(rng.choice(learnable, most, replace=False))
    everyone = len(learnable) == len(source.sample)
    X = source.sample if everyone else source.sample[learnable]
    return source.sample_index[learnable], X


def _sample_in_use(source: RowSource, in_use: BoolArray) -> tuple[IntArray, FloatArray]:
    """Rows in use that are held in memory, with their positions in the table."""
    kept = in_use[source.sample_index]
    sample = source.sample if kept.all() else source.sample[kept]
    return source.sample_index[kept], sample


def _kernel_about_mean(views: RowViews, sample: FloatArray) -> Kernel:
    """Return the kernel with the column means taken away, where inner products need that.

    The covariance is the same; far from 0 the landmarks' jitter would cover its small directions.
    """
    some = sample[:: 1 + (len(sample) - 1) // MEAN_ROWS]
    return about_mean(views.kernel, views.transform(some))


def _landmarks(
    kernel: Kernel,
    views: RowViews,
    sample: FloatArray,
    n_landmarks: int,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> IntArray:
    n_columns = views.transform(sample[:1]).shape[1]
    require_nystroem(min(n_landmarks, len(sample)), n_columns)
    return residual_landmarks(
        kernel,
        sample,
        n_landmarks,
        rng,
        transform=views.transform,
        candidates=min(MAX_CANDIDATES, CANDIDATES_A_LANDMARK * n_landmarks),
        n_jobs=n_jobs,
    )


def _probe(n: int, landmarks: IntArray) -> IntArray:
    """Return some of n rows, evenly drawn, that are no landmarks: those fit too well."""
    drawn = np.linspace(0, n - 1, min(n, PROBE_ROWS)).astype(np.int64)
    return np.setdiff1d(drawn, landmarks)


def _enough(function: Callable[..., RowFunction], probe: FloatArray, n_rows: int) -> Resolved:
    """Return the precision that gives a function's numbers to 1e-3 of each.

    Float64 up to 2,000 rows, where it costs little; above, float32 where that agrees with it on
    some rows, every second of them in use.
    """
    if n_rows <= FLOAT64_ROWS or not len(probe):
        return "float64"
    in_use = np.arange(len(probe)) % 2 == 0
    single = map_rows(function(precision="float32"), probe, in_use)
    double = map_rows(function(precision="float64"), probe, in_use)
    return "float32" if scores_agree(single, double) else "float64"


def _landmark_scores(
    subspace: KernelSubspace, rho: float, precision: Resolved
) -> tuple[FloatArray, FloatArray]:
    """Scores of the landmarks without themselves, and what the other landmarks miss of them."""
    everyone = np.arange(len(subspace.points))
    residual, mahalanobis = _without_landmarks(subspace, rho, subspace.points, everyone, precision)
    return leave_row_out(residual, mahalanobis, rho, subspace.n), residual


def scores_without_landmarks(
    subspace: KernelSubspace, rho: float, X: FloatArray, landmarks: IntArray
) -> FloatArray:
    """Scores of rows (r, d), each with the landmark at position `landmarks` (r,) taken out."""
    residual, mahalanobis = _without_landmarks(subspace, rho, X, landmarks)
    scores: FloatArray = residual + rho * mahalanobis
    return scores


def _without_landmarks(
    subspace: KernelSubspace,
    rho: float,
    X: FloatArray,
    landmarks: IntArray,
    precision: Resolved = "float64",
) -> tuple[FloatArray, FloatArray]:
    """Residual and Mahalanobis square of rows, each with one landmark taken out."""
    inverse = 1.0 / (subspace.variances + rho)
    t, error = subspace.project_and_error(X, precision=precision)
    residual = np.maximum(error - rho * ((t * t) @ inverse), 0.0)
    directions = landmark_directions(subspace.weights[landmarks])
    return leave_landmark_out(residual, t, directions, subspace.offset, inverse)


def fit_hard(
    views: RowViews,
    source: RowSource,
    in_use: BoolArray,
    *,
    n_components: int,
    n_landmarks: int | None,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> NoveltyFit:
    """Fit Hoffmann's classic: keep `n_components` components, score by what they leave.

    Up to 5,000 rows in use without `n_landmarks` the fit is exact; otherwise it rests on
    landmarks (1,000 by default). No closed form of leave-one-out exists: scores of rows in use
    are in-sample. Parameters otherwise as in `fit_soft`.

    Raises
    ------
    ValueError
        If the components span the rows in use, so that their scores are rounding noise.
    """
    index, sample = _sample_in_use(source, in_use)
    n = np.count_nonzero(in_use)
    if n_landmarks is None and len(sample) == n <= MAX_EXACT_ROWS:
        landmarks = np.arange(n)
        subspace = fit_exact(
            views.kernel,
            views.transform(sample),
            n_components=n_components,
            rng=rng,
            n_jobs=n_jobs,
        )
    else:
        kernel = _kernel_about_mean(views, sample)
        landmarks = _landmarks(kernel, views, sample, n_landmarks or 1000, rng, n_jobs)
        basis = LandmarkBasis.from_eigen(kernel, views.transform(sample[landmarks]))
        sums = source.sum(FeatureSums(views, basis), in_use).covariance
        subspace = subspace_from_sums(basis, sums, n_components=n_components)
    scoring = partial(NoveltyScores, views, subspace, None)
    precision = _enough(scoring, sample[_probe(len(sample), landmarks)], source.n_rows)
    scores = source.map(scoring(precision))
    typical = subspace.kernel.diagonal(subspace.points).mean()
    if np.median(scores[index]) < 1e-10 * typical:
        raise ValueError(
            f"n_components={n_components} components span the {n} rows in use: their "
            "reconstruction errors are rounding noise. Choose fewer components."
        )
    return NoveltyFit(scoring(precision), scores, index[landmarks])


def _sparse_warning(missed: FloatArray, typical_norm: float) -> tuple[str, ...]:
    """Say so when the bandwidth is so small that most rows resemble no other row."""
    if np.median(missed) < 0.95 * typical_norm:
        return ()
    return (
        "Most rows resemble no landmark at all (bandwidth too small, or too many unrelated "
        "columns): scores of such rows differ little and mean little.",
    )
