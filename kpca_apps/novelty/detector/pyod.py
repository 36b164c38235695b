"""The detector under the names and signs of pyod: higher scores are more novel, 1 is an outlier."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils.validation import check_is_fitted

from kpca_apps.novelty.detector.estimator import KernelPCANovelty

__all__ = ["PyodNovelty"]


class PyodNovelty(OutlierMixin, BaseEstimator):
    """`KernelPCANovelty` for code written for pyod's detectors.

    Parameters
    ----------
    contamination : float, default=0.1
        Share of the training rows that are taken for outliers, from 0 to .5, as in pyod.
    detector : KernelPCANovelty or None, default=None
        Its options; None for the defaults. It is not changed.

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
        self.contamination = contamination
        self.detector = detector

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fit to rows (n, d) that may hold outliers; `y` is ignored.

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
        if not 0 < self.contamination <= 0.5:
            raise ValueError(
                f"contamination is {self.contamination!r}; give a share above 0, at most .5"
            )
        given = KernelPCANovelty(random_state=0) if self.detector is None else self.detector
        self.detector_ = clone(given).set_params(contaminated=True, share=self.contamination)
        self.detector_.fit(X)
        self.decision_scores_ = self.detector_.novelty_scores_
        self.threshold_ = self.detector_.threshold_
        self.labels_ = (self.detector_.training_labels_ == -1).astype(np.int64)
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
        scores: NDArray[np.float64] = -self.detector_.score_samples(X)
        return scores

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return 1 for new rows that are outliers, else 0.

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.

        Returns
        -------
        ndarray of int of shape (r,)
            The labels.
        """
        return np.asarray(self.decision_function(X) > self.threshold_, dtype=np.int64)

    def fit_predict(self, X: ArrayLike, y: object = None) -> NDArray[np.int64]:
        """Fit, and return `labels_`.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training rows.
        y : Ignored
            For scikit-learn's pipelines.

        Returns
        -------
        ndarray of int of shape (n,)
            The labels.
        """
        labels: NDArray[np.int64] = self.fit(X).labels_
        return labels

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return (n, 2) shares of not and of being an outlier, by pyod's linear scaling.

        0 at the lowest score of the training rows, 1 at the highest: an order, no probability.

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.

        Returns
        -------
        ndarray of shape (r, 2)
            The shares.
        """
        low, high = self.decision_scores_.min(), self.decision_scores_.max()
        share = np.clip((self.decision_function(X) - low) / max(high - low, 1e-300), 0, 1)
        return np.column_stack([1 - share, share])
