"""Draw the landmarks of a Nystrom fit: points that represent all rows."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.kernels.base import squared_lengths
from kpca_apps.engine.linalg.cholesky import BLOCK, greedy_pivots, random_pivots
from kpca_apps.engine.linalg.gram import overflow, require_finite
from kpca_apps.engine.nystroem import LandmarkBasis
from kpca_apps.engine.precision import LARGEST_CHANGE, SAMPLE, agreeing_precision
from kpca_apps.engine.rows import SampleRows, map_row_blocks
from kpca_apps.system.arrays import Index, Matrix

LANDMARKS = ("kmeans", "rpcholesky", "residual", "uniform", "greedy")  # methods to draw landmarks
# Number of candidate rows for each method.
CANDIDATES = {"kmeans": 20_000, "rpcholesky": 10_000, "residual": 20_000, "greedy": 10_000}
CANDIDATES_A_LANDMARK = 10  # number of candidate rows per landmark for "residual"


def draw_landmarks(
    kind: str,
    kernel: Kernel,
    X: SampleRows,
    m: int,
    rng: np.random.Generator,
    *,
    n_jobs: int | None = None,
) -> tuple[Matrix, Index | None]:
    """Return at most ``m`` landmarks and their row numbers.

    ``kind`` is one of `LANDMARKS`. "kmeans" returns cluster centres, which have no row numbers;
    other kinds return rows of ``X``.
    """
    if kind == "uniform" or m >= len(X):
        index = uniform_landmarks(len(X), m, rng)
    elif kind == "residual":
        index = residual_landmarks(kernel, X, m, rng, n_jobs=n_jobs)
    else:
        index = uniform_landmarks(len(X), max(CANDIDATES[kind], m), rng)
        pool = X[index]
        if kind == "kmeans":
            return cluster_centres(pool, m, rng, n_jobs=n_jobs), None
        require_finite(kernel, pool)
        if kind == "rpcholesky":
            pivots = random_pivots(kernel, pool, m, rng)
        else:
            pivots = greedy_pivots(kernel, pool, m)
        index = index[np.sort(pivots)]
    return X[index], index


def drawing_bytes(kind: str, n: int, m: int, d: int) -> int:
    """Return the bytes needed to draw ``m`` landmarks from n rows."""
    # "residual" needs little memory: one number, the residual, for each candidate row.
    if kind not in CANDIDATES or kind == "residual" or m >= n:
        return 0
    candidates = min(max(CANDIDATES[kind], m), n)
    factor = m + BLOCK if kind in ("rpcholesky", "greedy") else 0
    return 8 * candidates * (d + factor)


def uniform_landmarks(n: int, m: int, rng: np.random.Generator) -> Index:
    """Draw ``min(m, n)`` of ``n`` rows uniformly; return increasing row numbers."""
    if m >= n:
        return np.arange(n)
    return np.sort(rng.choice(n, size=m, replace=False))


def cluster_centres(
    X: Matrix, m: int, rng: np.random.Generator, *, rounds: int = 10, n_jobs: int | None = None
) -> Matrix:
    """Return ``m`` cluster centres ``(m, d)`` after a few rounds of Lloyd's algorithm."""
    # Zhang, Tsang and Kwok (2008), Improved Nystrom low-rank approximation and error analysis, ICML
    # 2008, 1232-1239.
    centres: Matrix = X[np.sort(rng.choice(len(X), size=m, replace=False))]
    middle: Matrix = X.mean(axis=0)
    # Multiplying by `unit`, a power of two, is exact; squares of the products fit into float32.
    reach = np.maximum(X.max(axis=0) - middle, middle - X.min(axis=0)).max(initial=0.0)
    unit = float(np.ldexp(1.0, -int(np.frexp(reach)[1])))
    for _ in range(rounds):
        nearest = _nearest_centres(centres, X, middle, unit, n_jobs)
        counts = np.bincount(nearest, minlength=m)
        belongs = csr_array((np.ones(len(X)), (nearest, np.arange(len(X)))), shape=(m, len(X)))
        # A centre without rows stays unchanged.
        has_rows = counts > 0
        centres[has_rows] = (belongs @ X)[has_rows] / counts[has_rows, None]
    return centres


def _nearest_centres(
    centres: Matrix, X: Matrix, middle: Matrix, unit: float, n_jobs: int | None
) -> NDArray[Any]:
    centred = (centres - middle) * unit
    columns = np.ascontiguousarray(centred.T, dtype=np.float32)
    half = (0.5 * squared_lengths(centred)).astype(np.float32)

    def nearest(rows: Matrix) -> NDArray[Any]:
        gaps = ((rows - middle) * unit).astype(np.float32) @ columns
        gaps -= half
        return np.asarray(gaps.argmax(axis=1))

    return map_row_blocks(nearest, X, n_jobs=n_jobs)


def residual_landmarks(
    kernel: Kernel, X: SampleRows, m: int, rng: np.random.Generator, *, n_jobs: int | None = None
) -> Index:
    """Draw half of the landmarks uniformly, and half by their residual.

    Return increasing row numbers, fewer than m if the first half spans the other rows.
    """
    # A row's probability in the second draw is proportional to r(x) = k(x,x) - |z(x)|^2, the
    # squared feature-space distance to the span of the first half. Chen, Epperly, Tropp and Webber
    # (2023), Randomly pivoted Cholesky, arXiv 2207.06503.
    candidates = max(min(CANDIDATES["residual"], CANDIDATES_A_LANDMARK * m), m)
    pool = uniform_landmarks(len(X), candidates, rng)
    if m >= len(pool):
        return pool
    first = uniform_landmarks(len(pool), (m + 1) // 2, rng)
    basis = LandmarkBasis.from_cholesky(kernel, X[pool[first]])
    # Use float32 if it changes no residual by more than LARGEST_CHANGE of the mean residual.
    probe, resolved = X[pool[:SAMPLE]], 0.0
    residuals = cache(basis.residuals)
    probe_residuals = cache(lambda precision: residuals(precision)(probe))
    precision = agreeing_precision(
        probe_residuals, len(pool), lambda r: LARGEST_CHANGE * float(r.mean())
    )
    if precision == "float32":
        resolved = LARGEST_CHANGE * float(probe_residuals("float64").mean())
    row_residuals = residuals(precision)
    with np.errstate(over="ignore", invalid="ignore"):
        residual = map_row_blocks(lambda index: row_residuals(X[index]), pool, n_jobs=n_jobs)
    if not np.isfinite(residual).all():
        raise overflow(kernel)
    # Rows equal to a landmark have residuals of about the jitter: set these, with a margin, to 0.
    residual[residual <= max(2.0 * basis.jitter, resolved)] = 0.0
    residual[first] = 0.0
    wanted = min(m - len(first), int(np.count_nonzero(residual)))
    if wanted == 0:
        return pool[first]
    chances = residual / residual.sum()
    second = rng.choice(len(pool), size=wanted, replace=False, p=chances)
    return np.sort(pool[np.concatenate([first, second])])
