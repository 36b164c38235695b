"""What KernelPCA keeps of rows that it sees through landmarks: sums, to which rows can be added."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from kpca_apps.engine.bandwidth import COMPARED_ROWS
from kpca_apps.engine.exact import ExactPlan
from kpca_apps.engine.gram import about_mean, require_finite
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.landmarks import draw_landmarks
from kpca_apps.engine.nystroem import (
    CovarianceSums,
    LandmarkBasis,
    missed_share,
    subspace_from_sums,
)
from kpca_apps.engine.regime import NystroemPlan, choose_landmarks
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.errors import KpcaWarning

__all__ = ["LandmarkMixin"]

Matrix = NDArray[np.float64]


class LandmarkMixin:
    """Landmarks of a model with ``kernel_`` and ``plan_``, and the sums over its rows."""

    kernel_: Kernel
    plan_: ExactPlan | NystroemPlan
    basis_: LandmarkBasis
    sums_: CovarianceSums
    missed_: float
    n_components: int | None
    kernel: str | Kernel
    gamma: float | None
    sigma: float | None
    center: bool
    ridge: float | None
    n_landmarks: int
    landmarks: str | ArrayLike
    n_jobs: int | None

    def _warn_of_few_first_rows(self) -> None:
        """Say so where rows are added to choices that were made from too few of them."""
        drawn = isinstance(self.landmarks, str)
        width = self.kernel in ("rbf", "laplacian") and self.gamma is None and self.sigma is None
        enough = max(int(self.n_landmarks) if drawn else 0, COMPARED_ROWS if width else 0)
        if self._first_rows >= enough:
            return
        chosen = ["the landmarks"] * drawn + ["the width of the kernel"] * width
        given = ["landmarks"] * drawn + ["gamma"] * width
        warnings.warn(
            f"{' and '.join(chosen).capitalize()} come from the first {self._first_rows} rows and "
            f"stay as they are: begin with at least {enough} rows, or give {' and '.join(given)}.",
            KpcaWarning,
            stacklevel=4,
        )

    def _start_stream(self, X: Matrix, rng: np.random.Generator) -> None:
        kernel = about_mean(self.kernel_, X) if self.center else self.kernel_
        require_finite(kernel, X)
        points = self._given_landmarks(X)
        if points is None:
            way = choose_landmarks(self.kernel_, str(self.landmarks))
            points = draw_landmarks(way, kernel, X, self.n_landmarks, rng, n_jobs=self.n_jobs)
        self.basis_ = LandmarkBasis.from_eigen(kernel, points)
        self._first_rows, self._missed_of = len(X), 0.0
        self._count_missed(X)

    def _count_missed(self, X: Matrix) -> None:
        """Let ``missed_`` count more rows."""
        share, rows = missed_share(self.basis_, X)
        missed = share * rows + (self.missed_ * self._missed_of if self._missed_of else 0.0)
        self._missed_of += rows
        self.missed_ = missed / self._missed_of if self._missed_of else 0.0

    def _sums(self, X: Matrix) -> CovarianceSums:
        return CovarianceSums.of_rows(
            self.basis_, X, precision=self.plan_.precision, n_jobs=self.n_jobs
        )

    def _solve(self) -> KernelSubspace:
        subspace = subspace_from_sums(
            self.basis_,
            self.sums_,
            n_components=self.n_components,
            center=self.center,
            precision=self.plan_.precision,
        )
        # As in an exact fit, a soft cut is one of the components found.
        return subspace if self.ridge is None else subspace.with_soft_cut(self.ridge)

    def _landmark_count(self, X: Matrix) -> int:
        points = self._given_landmarks(X)
        return int(self.n_landmarks) if points is None else len(points)

    def _given_landmarks(self, X: Matrix) -> Matrix | None:
        if isinstance(self.landmarks, str):
            return None
        points: Matrix = check_array(self.landmarks, dtype=np.float64, order="C", copy=True)
        if points.shape[1] != X.shape[1]:
            raise ValueError(f"landmarks has {points.shape[1]} features, but X has {X.shape[1]}.")
        return points
