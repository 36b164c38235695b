"""Leave-one-out scores in closed form: what a row would score had the model never seen it.

Symbols: z feature coordinates in the span of the landmarks, zbar and C their mean and covariance
over the n rows of the training subset, A = C + rho I, y = z - zbar, M = y'A^-1 y, r the part of phi
outside the span. The soft reconstruction error of a row is r + rho M (rho times a regularised
Mahalanobis distance: Rudi et al. 2017). With C = U diag(lambda) U', everything here is written in
the coordinates t = U'y of a `KernelSubspace`, where A is diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kpca_apps.engine.rows import map_row_blocks
from kpca_apps.engine.subspace import KernelSubspace, Resolved
from kpca_apps.novelty.detector.surprise.combined import CombinedScore
from kpca_apps.novelty.detector.views import RawColumns, Seen, ViewScales
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray

SCORED_BLOCK = 192
"""Rows compared with the landmarks at once: a multiple of 64 and of 24, as `rows.BLOCK` explains;
few, for the kernel over views keeps several arrays of them."""


@dataclass(frozen=True, eq=False)
class NoveltyScores:
    """Novelty of each row, joined with that of its cells; training rows as if left out."""

    views: ViewScales | RawColumns | Seen
    subspace: KernelSubspace
    # Of a Tikhonov filter; without it the training subset is scored like other rows.
    rho: float | None = None
    precision: Resolved = "float64"
    combined: CombinedScore | None = None  # without it the reconstruction error alone

    purpose: ClassVar[str] = "Scoring rows"

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the novelty of rows, of which some are in use."""
        views, subspace, rho, combined = self.views, self.subspace, self.rho, self.combined
        errors: Callable[..., FloatArray]
        if rho is None:
            errors = subspace.errors(self.precision)
        else:
            parts = subspace.error_parts(1.0 / (subspace.variances + rho), self.precision)

            def errors(seen: FloatArray, in_use: BoolArray) -> FloatArray:
                error, mahalanobis = parts(seen)
                residual = np.maximum(error - rho * mahalanobis, 0.0)
                left_out = leave_row_out(residual, mahalanobis, rho, subspace.n)
                return np.where(in_use, left_out, error)

        def scores(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            seen = (views.transform(rows),) if rho is None else (views.transform(rows), in_use)
            found = np.maximum(map_row_blocks(errors, *seen, block=SCORED_BLOCK), 0.0)
            return found if combined is None else combined(rows, found)

        return scores


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
    subspace: KernelSubspace,
    rho: float,
    X: FloatArray,
    landmarks: IntArray,
    precision: Resolved = "float64",
) -> tuple[FloatArray, FloatArray]:
    """Residual and Mahalanobis square of rows (r, d), each with one landmark (r,) removed.

    What a row holds along v, the unit direction that only the landmark provides, moves from the
    span to the residual, r + (v'z)^2, and A^-1 is restricted to the rest, M - (v'A^-1 y)^2 /
    (v'A^-1 v). For the landmark's own row the first is 1 / (K_mm^-1)_ii, the part of it that no
    other landmark explains.
    """
    inverse = 1.0 / (subspace.variances + rho)  # diagonal of A^-1
    t, error = subspace.project_and_error(X, precision=precision)
    mahalanobis = np.square(t) @ inverse
    residual = np.maximum(error - rho * mahalanobis, 0.0)
    # v is along row i of W = B U, of shape (m, m) with all m components kept and B B' = K_mm^-1: it
    # is orthogonal to the coordinates of every other landmark, since W (U'B'K) = K^-1 K.
    rows = subspace.weights[landmarks]
    along = np.einsum("ij,ij->i", rows, t) + rows @ subspace.offset
    residual += along * along / np.einsum("ij,ij->i", rows, rows)
    scaled = rows * inverse
    lost = np.einsum("ij,ij->i", scaled, t) ** 2 / np.einsum("ij,ij->i", scaled, rows)
    return residual, np.maximum(mahalanobis - lost, 0.0)
