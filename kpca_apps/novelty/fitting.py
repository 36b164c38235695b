"""Training rows -> a fitted subspace and their scores, with a soft or a hard cut.

Soft cut: every component of the landmark span is kept with gain lambda / (lambda + rho). The
reconstruction error is then r + rho M, rho times a regularised Mahalanobis distance in feature
space (Rudi et al. 2017). It cures self-masking: with a hard cut one isolated row can claim a
component of its own and score as normal.

Rows that may hold outliers are trimmed first: the half with the highest kernel density is used, and
nothing else learns from the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.blocks import map_row_blocks
from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.landmarks import residual_landmarks
from kpca_apps.engine.memory import require_nystroem
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis, subspace_from_sums
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.novelty.leave_one_out import (
    landmark_directions,
    leave_landmark_out,
    leave_row_out,
)

__all__ = ["NoveltyFit", "densest_half", "fit_hard", "fit_soft", "scores_without_landmarks"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_EXACT_ROWS = 5_000
ROWS_A_BLOCK = 4_096
# A table is even where this share of its rows has at least this part of the median density.
MOST_ROWS, ABOUT_AS_DENSE = 0.9, 0.8


@dataclass(frozen=True)
class NoveltyFit:
    """A fitted model and what is known of its training rows.

    Attributes
    ----------
    subspace : KernelSubspace
        The model.
    scores : (n,) array
        Novelty of each training row; leave-one-out for a soft cut, plain for a hard one.
    landmarks : (m,) int array
        Rows that span the model, increasing.
    rho : float or None
        Absolute ridge of a soft cut; ``None`` for a hard one.
    missed : float or None
        Share of a row's squared length that the other rows' landmarks miss, on average; ``None``
        for a hard cut.
    warnings : tuple of str
        What a reader of the scores must know.
    """

    subspace: KernelSubspace
    scores: FloatArray
    landmarks: IntArray
    rho: float | None
    missed: float | None = None
    warnings: tuple[str, ...] = ()


def densest_half(
    kernel: Kernel,
    X: FloatArray,
    *,
    n_landmarks: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> IntArray:
    """Return the half of the rows with the highest kernel density <z, zbar>, in input order.

    Where nine rows in ten are about as dense as the median row there is no sparse half: a ring,
    say, would lose an arc that is as good as the rest. Then only rows less dense than that go.

    Parameters
    ----------
    kernel : Kernel
        Positive semi-definite.
    X : (n, d) array
        Rows as the kernel takes them.
    n_landmarks : int
        Rows that span the density estimate, at most.
    rng : Generator
        Draws them.
    n_jobs : int or None
        Threads.
    """
    require_nystroem(min(n_landmarks, len(X)), X.shape[1])
    landmarks = residual_landmarks(kernel, X, n_landmarks, rng, n_jobs=n_jobs)
    basis = LandmarkBasis.from_cholesky(kernel, X[landmarks])
    mean = CovarianceSums.of_rows(basis, X, n_jobs=n_jobs).mean
    rows_of, weights = kernel.against(basis.points), basis.transform @ mean
    density = map_row_blocks(lambda block: rows_of(block) @ weights, X, n_jobs=n_jobs)
    even = np.flatnonzero(density >= ABOUT_AS_DENSE * np.median(density))
    if len(even) >= MOST_ROWS * len(X):
        return even
    kept = max(2, (len(X) + 1) // 2)
    return np.sort(np.argsort(-density, kind="stable")[:kept])


def fit_soft(
    kernel: Kernel,
    X: FloatArray,
    *,
    ridge: float,
    n_landmarks: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> NoveltyFit:
    """Fit with the soft cut and score every training row as if it had been left out.

    Parameters
    ----------
    kernel : Kernel
        Positive semi-definite.
    X : (n, d) array
        Training rows as the kernel takes them.
    ridge : float
        rho as a share of the total variance tau in feature space.
    n_landmarks : int
        Rows that span the model, at most.
    rng : Generator
        Draws the landmarks.
    n_jobs : int or None
        Threads.

    Returns
    -------
    NoveltyFit
    """
    require_nystroem(min(n_landmarks, len(X)), X.shape[1])
    landmarks = residual_landmarks(kernel, X, n_landmarks, rng, n_jobs=n_jobs)
    basis = LandmarkBasis.from_cholesky(kernel, X[landmarks])
    sums = CovarianceSums.of_rows(basis, X, n_jobs=n_jobs)
    # tau = tr C + mean r = mean k(x, x) - |zbar|^2, the total variance in feature space.
    norm = float(kernel.diagonal(X).mean())
    rho = ridge * (norm - float(sums.mean @ sums.mean))
    subspace = subspace_from_sums(basis, sums, ridge=rho)
    scores, misses = _leave_one_out_scores(subspace, rho, X, landmarks, n_jobs)
    warnings = _sparse_warning(float(np.median(misses)), norm)
    return NoveltyFit(subspace, scores, landmarks, rho, float(misses.mean()) / norm, warnings)


def _leave_one_out_scores(
    subspace: KernelSubspace,
    rho: float,
    X: FloatArray,
    landmarks: IntArray,
    n_jobs: int | None,
) -> tuple[FloatArray, FloatArray]:
    """Scores of training rows without themselves, and what the span misses of them."""
    precision = 1.0 / (subspace.variances + rho)
    residual, mahalanobis = np.empty(len(X)), np.empty(len(X))
    for start in range(0, len(X), ROWS_A_BLOCK):
        part = slice(start, start + ROWS_A_BLOCK)
        t, error = subspace.project_and_error(X[part], n_jobs=n_jobs)
        mahalanobis[part] = (t * t) @ precision
        residual[part] = error - rho * mahalanobis[part]
    residual = np.maximum(residual, 0.0)
    residual[landmarks], mahalanobis[landmarks] = leave_landmark_out(
        residual[landmarks],
        subspace.project(subspace.points),
        landmark_directions(subspace.weights),
        subspace.offset,
        precision,
    )
    return leave_row_out(residual, mahalanobis, rho, len(X)), residual


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
    kernel: Kernel,
    X: FloatArray,
    *,
    n_components: int,
    n_landmarks: int | None,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> NoveltyFit:
    """Fit Hoffmann's classic: keep `n_components` components, score by what they leave.

    Up to 5,000 rows without `n_landmarks` the fit is exact; otherwise it rests on
    landmarks (1,000 by default). No closed form of leave-one-out exists: scores of training rows
    are in-sample. Parameters otherwise as in `fit_soft`.

    Raises
    ------
    ValueError
        If the components span the training rows, so that their scores are rounding noise.
    """
    if n_landmarks is None and len(X) <= MAX_EXACT_ROWS:
        landmarks = np.arange(len(X))
        subspace = fit_exact(kernel, X, n_components=n_components, rng=rng, n_jobs=n_jobs)
    else:
        n_landmarks = n_landmarks or 1000
        require_nystroem(min(n_landmarks, len(X)), X.shape[1])
        landmarks = residual_landmarks(kernel, X, n_landmarks, rng, n_jobs=n_jobs)
        basis = LandmarkBasis.from_eigen(kernel, X[landmarks])
        sums = CovarianceSums.of_rows(basis, X, n_jobs=n_jobs)
        subspace = subspace_from_sums(basis, sums, n_components=n_components)
    scores = subspace.reconstruction_error(X, n_jobs=n_jobs)
    if np.median(scores) < 1e-10 * kernel.diagonal(X).mean():
        raise ValueError(
            f"n_components={n_components} components span the {len(X)} rows in use: their "
            "reconstruction errors are rounding noise. Choose fewer components."
        )
    return NoveltyFit(subspace, scores, landmarks, None)


def _sparse_warning(typical_miss: float, typical_norm: float) -> tuple[str, ...]:
    """Say so when the bandwidth is so small that most rows resemble no other row."""
    if typical_miss < 0.95 * typical_norm:
        return ()
    return (
        "Most rows resemble no landmark at all (bandwidth too small, or too many unrelated "
        "columns): scores of such rows differ little and mean little.",
    )
