"""Leave-one-out scores in closed form: what a row would score had the model never seen it.

Symbols: z feature coordinates in the span of the landmarks, zbar and C their mean and covariance
over the n rows of the training subset, A = C + rho I, y = z - zbar, M = y'A^-1 y, r the part of phi
outside the span. The soft reconstruction error of a row is r + rho M (rho times a regularised
Mahalanobis distance: Rudi et al. 2017). A fit has A = L L' (`TikhonovFilter`) and needs no more; in
the coordinates t = U'y of a `KernelSubspace`, with C = U diag(lambda) U', A is diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kpca_apps.engine.rows import map_row_blocks
from kpca_apps.engine.subspace import KernelSubspace, Resolved
from kpca_apps.engine.tikhonov import TikhonovFilter
from kpca_apps.novelty.detector.surprise.combined import CombinedScore
from kpca_apps.novelty.detector.views import SCORED_BLOCK, RawColumns, ViewScales
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class NoveltyScores:
    """Novelty of each row that is none of the training subset, joined with that of its cells."""

    views: ViewScales | RawColumns
    subspace: KernelSubspace
    precision: Resolved = "float64"
    combined: CombinedScore | None = None  # without it the reconstruction error alone

    purpose: ClassVar[str] = "Scoring rows"

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the novelty of rows; those in use are scored like the others."""
        views, combined = self.views, self.combined
        errors = self.subspace.errors(self.precision)

        def scores(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            seen = views.transform(rows)
            found = np.maximum(map_row_blocks(errors, seen, block=SCORED_BLOCK), 0.0)
            return found if combined is None else combined(rows, found)

        return scores


@dataclass(frozen=True, eq=False)
class TrainingScores:
    """Novelty of each row by a Tikhonov filter; those of the training subset as if left out."""

    views: ViewScales | RawColumns
    tikhonov: TikhonovFilter
    precision: Resolved = "float64"
    combined: CombinedScore | None = None  # without it the reconstruction error alone

    purpose: ClassVar[str] = "Scoring rows"

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the novelty of rows, of which some are in use."""
        views, combined, basis = self.views, self.combined, self.tikhonov.basis
        features, of_features = basis.features(self.precision), self.of_features()

        def errors(seen: FloatArray, in_use: BoolArray) -> FloatArray:
            return of_features(features(seen), basis.kernel.diagonal(seen), in_use)

        def scores(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            seen = views.transform(rows)
            found = map_row_blocks(errors, seen, in_use, block=SCORED_BLOCK)
            return found if combined is None else combined(rows, found)

        return scores

    def of_features(self) -> Callable[[FloatArray, FloatArray, BoolArray], FloatArray]:
        """Return the map from z (b, p), k(x, x) (b,) and whether rows are in use to errors (b,)."""
        tikhonov = self.tikhonov
        of_z, rho, n = tikhonov.mahalanobis(self.precision), tikhonov.rho, tikhonov.n

        def errors(z: FloatArray, lengths: FloatArray, in_use: BoolArray) -> FloatArray:
            residual = np.maximum(lengths - np.einsum("ij,ij->i", z, z), 0.0)
            mahalanobis = of_z(z)
            left_out = leave_row_out(residual, mahalanobis, rho, n)
            found = np.where(in_use, left_out, residual + rho * mahalanobis)
            return np.maximum(found, 0.0, out=found)

        return errors


def leave_row_out(residual: FloatArray, mahalanobis: FloatArray, rho: float, n: int) -> FloatArray:
    """Scores of the training subset (r,), each row left out of mean and covariance, from r and M.

    With a_i = M_i / n and the total ridge n rho held fixed, Sherman & Morrison's formula gives
    s_i = r_i + n rho (n/(n-1))^2 a_i / (1 - n a_i / (n-1)), exactly.
    """
    a = mahalanobis / n
    c = n / (n - 1.0)
    scores: FloatArray = residual + n * rho * c * c * a / (1.0 - c * a)
    return scores


def leave_landmark_out(
    subspace: KernelSubspace, rho: float, X: FloatArray, landmarks: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Residual and Mahalanobis square of rows (r, d), each with one landmark (r,) removed."""
    roots = 1.0 / np.sqrt(subspace.variances + rho)  # A^-1/2, which is diagonal
    t, error = subspace.project_and_error(X)
    residual = np.maximum(error - rho * (np.square(t) @ roots**2), 0.0)
    # W = B U, with all components kept, serves for B: B B' = K_mm^-1.
    rows = subspace.weights[landmarks]
    along = np.einsum("ij,ij->i", rows, t + subspace.offset)
    return without_direction(rows, along, residual, rows * roots, t * roots)


def without_direction(
    rows: FloatArray,
    along: FloatArray,
    residual: FloatArray,
    whitened_rows: FloatArray,
    whitened: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Residual and Mahalanobis square of rows (r, .), each with one landmark removed.

    Of each: the row of B of its landmark, the product of that with z, r, and L^-1 times that row
    and times y. What a row holds along v, the unit direction that only the landmark provides, moves
    from the span to the residual, r + (v'z)^2, and A^-1 is restricted to the rest, M -
    (v'A^-1 y)^2 / (v'A^-1 v). For the landmark's own row the first is 1 / (K_mm^-1)_ii, the part of
    it that no other landmark explains.
    """
    # v is along row i of B, for B B' = K_mm^-1: it is orthogonal to the coordinates of every other
    # landmark, since B (B'K) = K^-1 K.
    lost = np.einsum("ij,ij->i", whitened_rows, whitened) ** 2
    lost /= np.einsum("ij,ij->i", whitened_rows, whitened_rows)
    mahalanobis = np.einsum("ij,ij->i", whitened, whitened) - lost
    moved: FloatArray = along * along / np.einsum("ij,ij->i", rows, rows)
    return residual + moved, np.maximum(mahalanobis, 0.0)
