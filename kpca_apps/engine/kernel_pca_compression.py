"""How KernelPCA is made smaller for serving."""

from __future__ import annotations

from copy import copy
from typing import Self

from sklearn.utils.validation import check_is_fitted

from kpca_apps.engine.kernel_pca_preimages import PreImageMixin
from kpca_apps.engine.reduced_set import ReducedSet, reduced_set

__all__ = ["CompressionMixin"]


class CompressionMixin(PreImageMixin):
    """Fewer points for a fitted model, and the way back from them."""

    reduced_set_: ReducedSet

    def compress(self, n_points: int) -> Self:
        """Return a model like this one that compares rows with fewer points.

        Its ``reduced_set_`` says how far components and mean have moved, and tells the changes of
        scores on rows of one's own.

        Parameters
        ----------
        n_points : int
            From the number of components to the number of points stored now.

        Returns
        -------
        KernelPCA
            A new one; rows can no longer be added to it.

        Raises
        ------
        ValueError
            If the kernel is indefinite, or ``n_points`` out of range.

        References
        ----------
        .. [1] Burges (1996), Simplified support vector decision rules, ICML 1996, 71-77.

        Examples
        --------
        >>> import numpy as np
        >>> from kpca_apps.engine.kernel_pca import KernelPCA
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> smaller = KernelPCA(2, gamma=0.1).fit(X).compress(20)
        >>> len(smaller.subspace_.points), bool(smaller.reduced_set_.component_distances[0] < 0.01)
        (20, True)
        """
        check_is_fitted(self)
        smaller = copy(self)
        smaller.reduced_set_ = reduced_set(self.subspace_, n_points, n_jobs=self.n_jobs)
        smaller.subspace_ = smaller.reduced_set_.subspace
        smaller._learned = None
        return smaller
