"""The detector under the names and signs of pyod: higher scores are more novel, 1 is an outlier.

References
----------
L. Perini, V. Vercruyssen, J. Davis (2020), "Quantifying the confidence of anomaly detectors in
their example-wise predictions", ECML PKDD.
L. Perini, J. Davis (2023), "Unsupervised anomaly detection with rejection", NeurIPS 36.
H.-P. Kriegel, P. Kroger, E. Schubert, A. Zimek (2011), "Interpreting and unifying outlier scores",
SIAM International Conference on Data Mining.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf
from scipy.stats import beta, binom
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from kpca_apps.names import shown
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.options import is_number


class PyodNovelty(BaseEstimator):
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
        if not (is_number(self.contamination, 0, 0.5) and self.contamination):
            raise ValueError(
                f"contamination is {shown(self.contamination)}; give a share above 0, at most .5"
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
        scores: NDArray[np.float64] = self.detector_.novelty_scores(X)
        return scores

    def predict(
        self, X: ArrayLike, return_confidence: bool = False
    ) -> NDArray[np.int64] | tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return 1 for new rows that are outliers, else 0.

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.
        return_confidence : bool, default=False
            Whether `predict_confidence` comes with it.

        Returns
        -------
        ndarray of int of shape (r,)
            The labels; a pair with the confidence if asked for.
        """
        scores = self.decision_function(X)
        labels = self._labels(scores)
        return (labels, self._confidence(scores)) if return_confidence else labels

    def _labels(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.asarray(scores > self.threshold_, dtype=np.int64)

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

    def fit_predict_score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        scoring: Literal["roc_auc_score", "prc_n_score"] = "roc_auc_score",
    ) -> float:
        """Fit, and judge the scores of the training rows by known labels.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training rows.
        y : array-like of shape (n,)
            1 for outliers, else 0: never seen by the detector.
        scoring : {"roc_auc_score", "prc_n_score"}, default="roc_auc_score"
            Area under the ROC curve, or precision at the number of outliers.

        Returns
        -------
        float
            The score.

        Raises
        ------
        NotImplementedError
            If `scoring` is neither, as pyod has it.
        """
        truth = np.asarray(y)
        scores = self.fit(X).decision_scores_
        if scoring == "roc_auc_score":
            return float(roc_auc_score(truth, scores))
        if scoring != "prc_n_score":
            raise NotImplementedError(f"scoring is {scoring!r}; give roc_auc_score or prc_n_score")
        first = np.argsort(-scores, kind="stable")[: int(truth.sum())]
        return float(truth[first].mean())

    def predict_proba(
        self,
        X: ArrayLike,
        method: Literal["linear", "unify"] = "linear",
        return_confidence: bool = False,
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (r, 2) shares of not and of being an outlier, by pyod's scalings.

        An order, no probability.

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.
        method : {"linear", "unify"}, default="linear"
            From 0 at the lowest score of the training rows to 1 at the highest; or by the error
            function of the standardised score, 0 below the mean (Kriegel et al. 2011).
        return_confidence : bool, default=False
            Whether `predict_confidence` comes with it.

        Returns
        -------
        ndarray of shape (r, 2)
            The shares; a pair with the confidence if asked for.

        Raises
        ------
        ValueError
            If `method` is neither.
        """
        known, scores = self.decision_scores_, self.decision_function(X)
        if method == "linear":
            low, high = known.min(), known.max()
            share = (scores - low) / max(high - low, 1e-300)
        elif method == "unify":
            share = erf((scores - known.mean()) / max(known.std() * np.sqrt(2.0), 1e-300))
        else:
            raise ValueError(f"method is {method!r}; give linear or unify")
        share = np.clip(share, 0, 1)
        shares = np.column_stack([1 - share, share])
        return (shares, self._confidence(scores)) if return_confidence else shares

    def predict_confidence(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how surely each label would be the same had other rows been trained on.

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.

        Returns
        -------
        ndarray of shape (r,)
            Probabilities (Perini et al. 2020).
        """
        return self._confidence(self.decision_function(X))

    def _confidence(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        n, labels = len(self.decision_scores_), self._labels(scores)
        below = np.searchsorted(np.sort(self.decision_scores_), scores, side="right")
        # P(outlier) of a row, with a uniform prior; then that it is among the n * contamination.
        posterior = (1 + below) / (2 + n)
        of_outlier = 1 - binom.cdf(n - int(n * self.contamination), n, posterior)
        return np.asarray(np.where(labels == 1, of_outlier, 1 - of_outlier))

    def predict_with_rejection(
        self,
        X: ArrayLike,
        T: float = 32,
        return_stats: bool = False,
        delta: float = 0.1,
        c_fp: float = 1,
        c_fn: float = 1,
        c_r: float = -1,
    ) -> NDArray[np.int64] | tuple[NDArray[np.int64], list[float]]:
        """Return labels, -2 for rows whose label is too unsure.

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.
        T : float, default=32
            The label of a row is rejected where its confidence is less than 1 - 2 exp(-T) from
            certain: larger values reject more (Perini & Davis 2023).
        return_stats : bool, default=False
            Whether a list of what `compute_rejection_stats` returns comes with it.
        delta, c_fp, c_fn, c_r : float
            As there.

        Returns
        -------
        ndarray of int of shape (r,)
            The labels; a pair with the list if asked for.
        """
        scores = self.decision_function(X)
        labels, confidence = self._labels(scores), self._confidence(scores)
        labels[2 * np.abs(confidence - 0.5) <= 1 - 2 * np.exp(-T)] = -2
        if return_stats:
            return labels, list(self.compute_rejection_stats(T, delta, c_fp, c_fn, c_r))
        return labels

    def compute_rejection_stats(
        self, T: float = 32, delta: float = 0.1, c_fp: float = 1, c_fn: float = 1, c_r: float = -1
    ) -> tuple[float, float, float]:
        """Return what rejection costs, before any new row is seen.

        Parameters
        ----------
        T : float, default=32
            As for `predict_with_rejection`.
        delta : float in (0, 1), default=0.1
            Chance that the second number is exceeded.
        c_fp, c_fn, c_r : float
            Costs of a false alarm, a missed outlier and a rejection; `contamination` for the last
            if it is negative, which lets no detector gain by rejecting everything.

        Returns
        -------
        tuple of float
            The expected share of rejected rows, an upper bound of it, and one of the mean cost.

        Raises
        ------
        ValueError
            If `delta` is no share.
        """
        check_is_fitted(self)
        if not 0 < delta < 1:
            raise ValueError(f"delta is {delta!r}; give a share above 0 and below 1")
        n, share = len(self.decision_scores_), self.contamination
        # Labels are unsure where this share of rows lies above (Perini & Davis 2023).
        n_outliers = max(int(n * share), 1)
        unsure = beta(n_outliers, n - n_outliers + 1)
        low, high = float(unsure.ppf(np.exp(-T))), float(unsure.isf(np.exp(-T)))
        # Their bounds of both ends, as pyod computes them: one beyond all scores bounds nothing.
        right = (n + 1 - share * (n + 2)) / n + (n + 2) * np.sqrt(T / (2 * n**3))
        spread = 2 * n * (4 * share - 3 - 3 * share**2 - 2 * n * (1 - share) ** 2)
        spread += T * (n + 2) ** 2 - 8
        left = (2 + n * (n + 1) * (1 - share)) / n**2 - np.sqrt(max(spread, 0.0) / (2 * n**3))
        left = left if spread >= 0 else 0.0
        bound = min(1.0, right) - max(0.0, left) + np.sqrt(2 * np.log(2 / delta) / n)
        cost = min(share, low) * c_fp + min(1 - high, share) * c_fn
        cost += (high - low) * (share if c_r < 0 else c_r)
        return high - low, float(bound), float(cost)
