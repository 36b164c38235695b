"""How KernelPCA goes back from projections to rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from kpca_apps.engine.kernel_gradients import is_differentiable
from kpca_apps.engine.kernels import RBF, Kernel
from kpca_apps.engine.preimage import PreImages, fixed_point
from kpca_apps.engine.preimage_gradient import gradient_descent
from kpca_apps.engine.preimage_ridge import LearnedPreImage, learn_preimage
from kpca_apps.engine.subspace import KernelSubspace

__all__ = ["PREIMAGES", "PreImageMixin"]

Matrix = NDArray[np.float64]

PREIMAGES = ("fixed-point", "gradient", "ridge")


class PreImageMixin:
    """Pre-images of a fitted model with ``subspace_``, ``kernel_`` and ``preimage_``."""

    subspace_: KernelSubspace
    kernel_: Kernel
    preimage_: str
    _learned: LearnedPreImage | None
    _alpha: float
    preimage: str
    alpha: float
    n_jobs: int | None

    def inverse_transform(self, X: ArrayLike) -> Matrix:
        """Return rows of input space whose images are near the given projections.

        Parameters
        ----------
        X : array-like of shape (n, q)
            Projections, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n, d)

        See Also
        --------
        preimages : With a start of one's own, and with what became of each row.
        """
        T = self._projections(X)
        if self.preimage_ == "ridge":
            return self.learned_preimage_(T, n_jobs=self.n_jobs)
        return self._iterate(T, None).points

    def preimages(self, X: ArrayLike, start: ArrayLike | None = None) -> PreImages:
        """Return pre-images by iteration, and how each was found.

        Parameters
        ----------
        X : array-like of shape (n, q)
            Projections, as `transform` returns them.
        start : array-like of shape (n, d), optional
            Where to begin: for denoising the noisy rows. If None, the stored point whose image
            is nearest to each projection.

        Returns
        -------
        PreImages

        Raises
        ------
        ValueError
            If pre-images are learned (``preimage_ == "ridge"``), so that nothing iterates.
        """
        T = self._projections(X)
        begin = None if start is None else self._rows(start)
        if begin is not None and len(begin) != len(T):
            raise ValueError(f"start has {len(begin)} rows, but there are {len(T)} projections.")
        return self._iterate(T, begin)

    def _iterate(self, T: Matrix, start: Matrix | None) -> PreImages:
        if self.preimage_ == "ridge":
            raise ValueError("A learned pre-image iterates nothing: use inverse_transform.")
        search = fixed_point if self.preimage_ == "fixed-point" else gradient_descent
        return search(self.subspace_, T, start, n_jobs=self.n_jobs)

    def _projections(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        q = self.subspace_.n_components
        T: Matrix = check_array(X, dtype=np.float64, order="C", ensure_min_features=min(q, 1))
        if T.shape[1] != q:
            raise ValueError(f"X has {T.shape[1]} columns, but the model has {q} components.")
        return T

    @property
    def learned_preimage_(self) -> LearnedPreImage:
        """The learned way back; its regression is solved when it is first asked for.

        Two threads that ask at once both solve it, and get the same.
        """
        if getattr(self, "preimage_", None) != "ridge":
            raise AttributeError("Pre-images are learned by a model fitted with preimage='ridge'.")
        if self._learned is None:
            self._learned = learn_preimage(self.subspace_, self._alpha, n_jobs=self.n_jobs)
        return self._learned

    def _resolve_preimage(self) -> None:
        """Choose how to go back; nothing is learned before it is asked for."""
        self.preimage_ = self._chosen_preimage()
        self._learned, self._alpha = None, float(self.alpha)

    def _chosen_preimage(self) -> str:
        kernel, chosen = self.kernel_, self.preimage
        descends = kernel.is_psd and is_differentiable(kernel)
        if chosen == "auto":
            if isinstance(kernel, RBF):
                return "fixed-point"
            return "gradient" if descends else "ridge"
        if chosen == "fixed-point" and not isinstance(kernel, RBF):
            raise ValueError(
                f"preimage='fixed-point' is for the RBF kernel, not {kernel.describe()}: use "
                "'gradient' or 'ridge'."
            )
        if chosen == "gradient" and not descends:
            raise ValueError(
                f"preimage='gradient' needs a positive semi-definite kernel with a known "
                f"gradient, and {kernel.describe()} is none: use 'ridge'."
            )
        return chosen

    def _rows(self, X: ArrayLike) -> Matrix:
        raise NotImplementedError
