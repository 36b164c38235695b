"""Rows of a source -> a fitted subspace and the scores of all rows, with a soft or a hard cut.

Soft cut: every component of the landmark span is kept with gain lambda / (lambda + rho). The
reconstruction error is then r + rho M, rho times a regularised Mahalanobis distance in feature
space (Rudi et al. 2017). It cures self-masking: with a hard cut one isolated row can claim a
component of its own and score as normal.

Rows that may hold outliers are trimmed first: the half with the highest kernel density is used, and
nothing else learns from the rest.

Landmarks and scalings come from the rows a source holds in memory, means and covariances from all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.landmarks import residual_landmarks
from kpca_apps.engine.memory import require_nystroem
from kpca_apps.engine.nystroem import LandmarkBasis, subspace_from_sums
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.novelty.leave_one_out import (
    landmark_directions,
    leave_landmark_out,
    leave_row_out,
)
from kpca_apps.novelty.passes import FeatureSums, KernelDensity, NoveltyScores, RowViews
from kpca_apps.novelty.row_source import RowSource, sum_rows
from kpca_apps.novelty.selection import largest, median

__all__ = ["NoveltyFit", "densest", "fit_hard", "fit_soft", "scores_without_landmarks", "trim"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MAX_EXACT_ROWS = 5_000
# Rows that say what the landmarks miss of a typical row.
TYPICAL_ROWS = 1_000
# A table is even where this share of its rows has at least this part of the median density.
MOST_ROWS, ABOUT_AS_DENSE = 0.9, 0.8


@dataclass(frozen=True)
class NoveltyFit:
    """A fitted model and the scores of the rows it comes from.

    Attributes
    ----------
    subspace : KernelSubspace
        The model.
    scores : (n,) array
        Novelty of every row; of rows in use as if left out for a soft cut, in-sample for a hard
        one.
    landmarks : (m,) int array
        Positions of the rows that span the model, increasing.
    rho : float or None
        Absolute ridge of a soft cut; ``None`` for a hard one.
    missed : float or None
        Share of a row's squared length that the other rows' landmarks miss, on average over the
        rows in use; ``None`` for a hard cut.
    warnings : tuple of str
        What a reader of the scores must know.
    """

    subspace: KernelSubspace
    scores: FloatArray
    landmarks: IntArray
    rho: float | None
    missed: float | None = None
    warnings: tuple[str, ...] = ()


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
    basis = _basis(views, sample, _landmarks(views, sample, n_landmarks, rng, n_jobs))
    mean = sum_rows(FeatureSums(views, basis), sample, n_jobs=n_jobs).covariance.mean
    return densest(source.map(KernelDensity(views, basis.points, basis.transform @ mean)))


def densest(density: FloatArray) -> BoolArray:
    """Mark the half of the rows with the highest density; of equal ones the first.

    Where nine rows in ten are about as dense as the median row there is no sparse half: a ring,
    say, would lose an arc that is as good as the rest. Then only rows less dense than that go.

    Parameters
    ----------
    density : (n,) array
        Kernel density of each row, or any multiple of it; n >= 2.

    Returns
    -------
    (n,) bool array
        At least two rows are marked.

    Examples
    --------
    >>> densest(np.array([5.0, 1.0, 4.0, 3.0, 3.0])).tolist()
    [True, False, True, True, False]
    >>> densest(np.r_[np.full(19, 2.0), 0.1]).sum()
    np.int64(19)
    """
    even: BoolArray = density >= ABOUT_AS_DENSE * median(density)
    if np.count_nonzero(even) >= MOST_ROWS * len(density):
        return even
    return largest(density, max(2, (len(density) + 1) // 2))


def fit_soft(
    views: RowViews,
    source: RowSource,
    in_use: BoolArray,
    *,
    ridge: float,
    n_landmarks: int,
    rng: np.random.Generator,
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
    n_jobs : int or None
        Threads for the sample.

    Returns
    -------
    NoveltyFit
    """
    index, sample = _sample_in_use(source, in_use)
    landmarks = _landmarks(views, sample, n_landmarks, rng, n_jobs)
    basis = _basis(views, sample, landmarks)
    sums = source.sum(FeatureSums(views, basis), in_use)
    rho = ridge * sums.variance
    subspace = subspace_from_sums(basis, sums.covariance, ridge=rho)
    scores = source.map(NoveltyScores(views, subspace, rho), in_use)
    own, missed = _landmark_scores(subspace, rho)
    scores[index[landmarks]] = own
    of_landmarks = _residuals(basis, basis.points)
    typical = _typical_miss(views, basis, sample, landmarks, missed)
    share = (sums.missed + float((missed - of_landmarks).sum())) / sums.norm
    return NoveltyFit(
        subspace,
        scores,
        index[landmarks],
        rho,
        share,
        _sparse_warning(typical, sums.typical_norm),
    )


def _sample_in_use(source: RowSource, in_use: BoolArray) -> tuple[IntArray, FloatArray]:
    """Rows in use that are held in memory, with their positions in the table."""
    kept = in_use[source.sample_index]
    sample = source.sample if kept.all() else source.sample[kept]
    return source.sample_index[kept], sample


def _landmarks(
    views: RowViews,
    sample: FloatArray,
    n_landmarks: int,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> IntArray:
    n_columns = views.transform(sample[:1]).shape[1]
    require_nystroem(min(n_landmarks, len(sample)), n_columns)
    return residual_landmarks(
        views.kernel, sample, n_landmarks, rng, transform=views.transform, n_jobs=n_jobs
    )


def _basis(views: RowViews, sample: FloatArray, landmarks: IntArray) -> LandmarkBasis:
    return LandmarkBasis.from_cholesky(views.kernel, views.transform(sample[landmarks]))


def _landmark_scores(subspace: KernelSubspace, rho: float) -> tuple[FloatArray, FloatArray]:
    """Scores of the landmarks without themselves, and what the other landmarks miss of them."""
    precision = 1.0 / (subspace.variances + rho)
    t, error = subspace.project_and_error(subspace.points)
    residual, mahalanobis = leave_landmark_out(
        np.maximum(error - rho * ((t * t) @ precision), 0.0),
        t,
        landmark_directions(subspace.weights),
        subspace.offset,
        precision,
    )
    return leave_row_out(residual, mahalanobis, rho, subspace.n), residual


def _residuals(basis: LandmarkBasis, inputs: FloatArray) -> FloatArray:
    """Return k(x, x) - |z|^2, the part outside the landmarks' span, of rows the kernel takes."""
    z = basis.features()(inputs)
    missed: FloatArray = basis.kernel.diagonal(inputs) - np.einsum("ij,ij->i", z, z)
    return np.maximum(missed, 0.0)


def _typical_miss(
    views: RowViews,
    basis: LandmarkBasis,
    sample: FloatArray,
    landmarks: IntArray,
    of_landmarks: FloatArray,
) -> float:
    """Median of what the other rows' landmarks miss of a row."""
    drawn = np.linspace(0, len(sample) - 1, min(TYPICAL_ROWS, len(sample))).astype(np.int64)
    missed = _residuals(basis, views.transform(sample[drawn]))
    place = np.minimum(np.searchsorted(landmarks, drawn), len(landmarks) - 1)
    return float(np.median(np.where(landmarks[place] == drawn, of_landmarks[place], missed)))


def scores_without_landmarks(
    subspace: KernelSubspace, rho: float, X: FloatArray, landmarks: IntArray
) -> FloatArray:
    """Scores of rows (r, d), each with the landmark at position `landmarks` (r,) taken out."""
    precision = 1.0 / (subspace.variances + rho)
    t, error = subspace.project_and_error(X)
    residual = np.maximum(error - rho * ((t * t) @ precision), 0.0)
    directions = landmark_directions(subspace.weights[landmarks])
    residual, mahalanobis = leave_landmark_out(residual, t, directions, subspace.offset, precision)
    scores: FloatArray = residual + rho * mahalanobis
    return scores


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
        landmarks = _landmarks(views, sample, n_landmarks or 1000, rng, n_jobs)
        basis = LandmarkBasis.from_eigen(views.kernel, views.transform(sample[landmarks]))
        sums = source.sum(FeatureSums(views, basis), in_use).covariance
        subspace = subspace_from_sums(basis, sums, n_components=n_components)
    scores = source.map(NoveltyScores(views, subspace))
    typical = subspace.kernel.diagonal(subspace.points).mean()
    if np.median(scores[index]) < 1e-10 * typical:
        raise ValueError(
            f"n_components={n_components} components span the {n} rows in use: their "
            "reconstruction errors are rounding noise. Choose fewer components."
        )
    return NoveltyFit(subspace, scores, index[landmarks], None)


def _sparse_warning(typical_miss: float, typical_norm: float) -> tuple[str, ...]:
    """Say so when the bandwidth is so small that most rows resemble no other row."""
    if typical_miss < 0.95 * typical_norm:
        return ()
    return (
        "Most rows resemble no landmark at all (bandwidth too small, or too many unrelated "
        "columns): scores of such rows differ little and mean little.",
    )
