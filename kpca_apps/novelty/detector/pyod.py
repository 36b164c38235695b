"""The pyod interface of the detector: a higher score is more novel; label 1 means outlier."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from kpca_apps.errors import install_extra
from kpca_apps.novelty.detector.estimator import KernelPCANovelty

try:
    from pyod.models.base import BaseDetector
except ImportError:
    raise ImportError(f"PyodNovelty needs pyod; install it with: {install_extra('pyod')}") from None


class PyodNovelty(BaseDetector):
    """`KernelPCANovelty` with the interface of pyod's detectors.

    Parameters
    ----------
    contamination : float, default=0.1
        Share of the training rows that are taken for outliers, above 0 and at most .5.
    detector : KernelPCANovelty or None, default=None
        Detector with the options to use; None for the defaults. It is not changed.

    Attributes
    ----------
    decision_scores_ : (n,) array
        Score of each training row, as if it had been left out; higher = more novel.
    labels_ : (n,) int array
        1 for the training rows that are outliers, else 0.
    threshold_ : float
        Rows that score above it are outliers.
    detector_ : KernelPCANovelty
        The fitted detector.

    Raises
    ------
    ValueError
        If `contamination` is out of its range.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(100, 3))
    >>> rows[:3] += 8
    >>> detector = PyodNovelty(contamination=0.03).fit(rows)
    >>> np.flatnonzero(detector.labels_)
    array([0, 1, 2])
    >>> detector.predict([[0, 0, 0], [8, 8, 8]])
    array([0, 1])
    """

    def __init__(
        self, contamination: float = 0.1, *, detector: KernelPCANovelty | None = None
    ) -> None:
        super().__init__(contamination)
        self.detector = detector

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fit to rows that may hold outliers.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training rows.
        y : Ignored
            For scikit-learn's pipelines.

        Returns
        -------
        self
        """
        given = KernelPCANovelty(random_state=0) if self.detector is None else self.detector
        self.detector_ = clone(given).set_params(contaminated=True, share=self.contamination)
        self.decision_scores_ = self.detector_.fit(X).novelty_scores_
        self._set_n_classes(None)
        self._process_decision_scores()
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of new rows, higher = more novel.

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.

        Returns
        -------
        ndarray of shape (r,)
            The scores.
        """
        check_is_fitted(self)
        scores: NDArray[np.float64] = self.detector_.novelty_scores(X)
        return scores
