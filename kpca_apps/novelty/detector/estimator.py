"""KernelPCANovelty: the scikit-learn interface of a detector."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from kpca_apps.engine.checked_rows import Number, as_given, checked_rows, fit_context
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.rows import ArrayRows, RowSource, sample_positions
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.errors import KpcaWarning, OptionError
from kpca_apps.novelty.detector.detector import Detector, Parameters
from kpca_apps.novelty.detector.fit import OwnKernel, fit_detector, half_of, normal_rows
from kpca_apps.novelty.detector.reasons import ColumnDrop
from kpca_apps.novelty.detector.surprise.combined import LARGEST
from kpca_apps.novelty.detector.surprise.marked import KnownRows
from kpca_apps.novelty.detector.threshold import conformal_p_values, smallest_rate
from kpca_apps.novelty.detector.views import ColumnRoles
from kpca_apps.options import MOST_JOBS, RIDGES, CalibrationName, MethodName, in_keywords
from kpca_apps.system.arrays import FloatArray, IntArray


class KernelPCANovelty(OutlierMixin, BaseEstimator):
    """Novelty detection by the reconstruction error of kernel PCA.

    A row's error is its squared distance, in the feature space of the kernel, to the subspace that
    kernel PCA of the training rows keeps (Hoffmann 2007). By default components are shrunk, not
    cut, and the kernel is a mean over four scalings of the columns. A second kernel PCA, whose
    kernel is a sum over columns, measures how surprising cells are given the row's other cells. The
    score combines both: it is the negative logarithm of a weighted harmonic mean of p-values,
    without an upper bound. Training rows are scored as if each had been left out.

    Parameters
    ----------
    contaminated : bool, default=True
        Whether the training rows may hold outliers. If so, method "blocks" is fitted on the rows
        with the highest kernel density: half of all, or more if most are about as dense. If not, it
        is fitted on all rows. The wrong choice costs 4 to 9 points of AUROC.
    share : float in (0, 1), default=0.01
        If contaminated: share of training rows to flag, at least one row. Rows that tie with the
        last of them to eight digits are flagged, too, unless that would flag all the rest of the
        table. A choice, not an error rate.
    alpha : float in (0, 1), default=0.05
        If clean: share of new normal rows that may be flagged falsely.
    method : {"blocks", "hoffmann"}, default="blocks"
        ``"hoffmann"`` is the paper's: one RBF kernel on standardised columns, fitted to all rows,
        leading components kept whole, and the error alone as the score.
    kernel : Kernel, callable or None, default=None
        Your own kernel on unscaled columns, with the error alone as the score. A function of two
        rows stands for `kpca_apps.engine.kernels.FromFunction` of it.
    sigma : float or None, default=None
        Method "hoffmann": width of its kernel exp(-r^2 / (2 sigma^2)), in standard deviations of
        the columns. By default 2 sigma^2 is the median squared distance between rows.
    components : int, float in (0, 1) or None, default=None
        Method "hoffmann": number of components, or the share of the variance that they hold, 0.8 by
        default. 0 is Hoffmann's spherical potential (a Parzen density estimate).
    ridge : float or None, default=None
        Method "blocks": ridge of the Tikhonov filter, as a share of the variance in feature space,
        from 1e-12 to 1e12. Default 0.1 if contaminated, else 0.1 / n.
    n_landmarks : int or None, default=None
        Number of rows that span the model. Default 300 if contaminated, else 700. Method "hoffmann"
        uses all, up to 5,000 for a number of components and 2,000 for a share, else 1,000.
    calibration : {"auto", "leave-one-out", "split"}, default="auto"
        If clean: what the threshold is calibrated on. ``"split"`` holds half the rows back and has
        a finite-sample guarantee; leave-one-out uses all rows and holds approximately. Auto is
        leave-one-out for method "blocks", split for "hoffmann", which has no closed form.
    as_is : array-like of int or None, default=None
        Columns that are taken unscaled, such as indicators of categories.
    groups : sequence of sequences of int or None, default=None
        Columns made of one source, such as a date's day and hour: together they weigh as much as
        one column, and they are explained as one. Default: each column alone.
    n_jobs : int or None, default=None
        Number of threads; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds landmarks, bandwidths and splits. None stands for a fixed seed: a fit repeated
        without a seed gives the same detector.

    Attributes
    ----------
    detector_ : Detector
        The fitted form: all that scores and explains new rows, and what a model file holds.
    novelty_scores_ : (n,) array
        Score of each training row, higher = more novel: as if left out with method "blocks",
        in-sample for rows that "hoffmann" was fitted on.
    novelty_p_values_ : (n,) array or None
        Calibrated p-values of the training rows; ``None`` if contaminated, NaN for rows whose score
        is in-sample (those "hoffmann" was fitted on). A p-value is at most `alpha` if the score
        exceeds `threshold_`. A calibrating row counts itself, so its p-value p is at least 2 / (c +
        1); its rank among the other rows alone is ((c + 1) p - 1) / c.
    training_labels_ : (n,) int array
        +1 / -1 from `novelty_scores_`. Training rows are judged by these, never by `predict`.
    threshold_ : float
        Rows that score above are novel, and no others. Contaminated: the highest score that is not
        flagged. Infinite if too few rows can calibrate `alpha`.
    offset_ : float
        Minus `threshold_`, as in scikit-learn. If that is infinite, minus a score that no row
        exceeds, so that `decision_function` is finite and ordered as the scores. (If scores are
        errors alone, rows longer in feature space than all landmarks may exceed that score.)
    calibration_ : str or None
        ``"leave-one-out"``, ``"split"``, or ``None`` where the threshold is a choice.
    calibration_scores_ : (c,) array
        Sorted scores the threshold was calibrated on; empty if contaminated.
    rarity_ : Rarity or None
        Contaminated with method "blocks": ``rarity_.share(scores)`` says how rare scores are among
        rows like those the model was fitted on. ``None`` otherwise: a clean reference has p-values,
        and of the rows of "hoffmann" only in-sample scores are known.
    subspace_ : KernelSubspace
        The fitted kernel PCA.
    combined_ : CombinedScore or None
        Combines errors and cells into a score; ``None`` if the score is the error alone.
    precision_ : {"float64", "float32"}
        Precision of kernel values when rows are scored: float32 for more than 2,000 training rows
        if the scores of some of them agree with those in float64 to 1e-3.
    warnings_ : tuple of str
        What a reader of the scores must know.
    n_samples_fit_, n_features_in_ : int
        Rows and columns seen in fit.
    landmark_miss_ : float or None
        Share of a training row's squared length in feature space that the landmarks miss, on
        average and without the row itself; ``None`` with method "hoffmann".

    Notes
    -----
    float32 rows are computed and judged in float64; `score_samples` and `decision_function` then
    return float32, rounded at the end. All other results are float64, because rounding would move
    scores across `threshold_`: judge rows by `predict`, or `novelty_scores`.

    References
    ----------
    Hoffmann, Kernel PCA for novelty detection, Pattern Recognition 40, 2007.
    Rudi, De Vito, Verri & Odone, Regularized kernel algorithms for support estimation,
    Frontiers in Applied Mathematics and Statistics 3, 2017 (the Tikhonov filter).
    Wilson, The harmonic mean p-value for combining dependent tests, PNAS 116, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from kpca_apps.novelty.detector.estimator import KernelPCANovelty
    >>> ring = np.random.default_rng(0).normal(size=(300, 2))
    >>> ring /= np.linalg.norm(ring, axis=1, keepdims=True)
    >>> detector = KernelPCANovelty(contaminated=False, random_state=0).fit(ring)
    >>> detector.predict([[0.6, 0.8], [0.0, 0.0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "contaminated": ["boolean"],
        "share": [Number(Real, 0, 1, closed="neither")],
        "alpha": [Number(Real, 0, 1, closed="neither")],
        "method": [StrOptions({"blocks", "hoffmann"})],
        "kernel": [Kernel, callable, None],
        "sigma": [Number(Real, 0, None, closed="neither"), None],
        "components": [
            Number(Integral, 0, None, closed="left"),
            Number(Real, 0, 1, closed="neither"),
            None,
        ],
        "ridge": [Number(Real, *RIDGES, closed="both"), None],
        "n_landmarks": [Number(Integral, 2, None, closed="left"), None],
        "calibration": [StrOptions({"auto", "leave-one-out", "split"})],
        "as_is": ["array-like", None],
        "groups": [list, tuple, None],
        "n_jobs": [Number(Integral, -MOST_JOBS, MOST_JOBS, closed="both"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        contaminated: bool = True,
        share: float = 0.01,
        alpha: float = 0.05,
        method: MethodName = "blocks",
        kernel: OwnKernel | None = None,
        sigma: float | None = None,
        components: float | None = None,
        ridge: float | None = None,
        n_landmarks: int | None = None,
        calibration: CalibrationName = "auto",
        as_is: ArrayLike | None = None,
        groups: Sequence[Sequence[int]] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.contaminated = contaminated
        self.share = share
        self.alpha = alpha
        self.method = method
        self.kernel = kernel
        self.sigma = sigma
        self.components = components
        self.ridge = ridge
        self.n_landmarks = n_landmarks
        self.calibration = calibration
        self.as_is = as_is
        self.groups = groups
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None, *, normal: ArrayLike | None = None) -> Self:
        """Fit the model to `X` of shape (n, d): at least 3 rows of finite numbers.

        Parameters
        ----------
        X : (n, d) array
            The rows.
        y : None
            Ignored.
        normal : (n,) array of bool, optional
            Rows known to be normal in a table that may hold outliers: the model is always fitted on
            them, however sparse they are, and never flags them; `share` counts only other rows.
            Scales of columns stay those of the dense rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For NaN or infinity, fewer than 3 rows, no varying column, contradictory parameters, if
            all rows are `normal`, or if `normal` is given for a clean reference.
        """
        table: FloatArray = checked_rows(self, X, ensure_min_samples=3)
        sample = sample_positions(len(table), self.random_state)
        self._fit(ArrayRows(table, sample, n_jobs=self.n_jobs), normal)
        for sentence in self._warnings_of_rule():
            # The stack level skips the decorator of scikit-learn.
            warnings.warn(sentence, KpcaWarning, stacklevel=3)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_rows(self, source: RowSource, *, normal: ArrayLike | None = None) -> Self:
        """Fit the model to rows that need not be in memory: at least 3 rows of finite numbers.

        Parameters
        ----------
        source : RowSource
            The rows. Scalings, landmarks and calibration come from its sample (all rows, up to
            100,000); means, covariances and trimming from all rows.
        normal : (n,) array of bool, optional
            As in `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`.
        """
        validate_data(self, source.sample, dtype=np.float64, ensure_min_samples=3)
        return self._fit(source, normal)

    def _fit(self, source: RowSource, normal: ArrayLike | None) -> Self:
        index, whole = source.sample_index, source
        try:
            parameters = Parameters(
                **{one.name: getattr(self, one.name) for one in fields(Parameters)}
            )
            is_normal = normal_rows(normal, source.n_rows, parameters)
            if parameters.calibrated_on == "split":
                learned = half_of(len(index), self.random_state)
                source = ArrayRows(np.asarray(source.sample[learned]), n_jobs=self.n_jobs)
            found = fit_detector(
                source,
                parameters,
                ColumnRoles.of(source.sample.shape[1], self.as_is, self.groups),
                KnownRows(None if normal is None else is_normal),
                kernel=self.kernel,
                n_jobs=self.n_jobs,
                random_state=self.random_state,
            )
        except OptionError as error:
            raise ValueError(in_keywords(str(error))) from None
        if source is not whole:
            scores = whole.map(found.detector.row_scores())
            found = found.among(index[learned], scores, np.delete(index, learned))
        self.detector_ = detector = found.detector
        self.novelty_scores_ = scores = found.scores
        self.threshold_ = detector.flags_above
        self.offset_ = -self.threshold_
        if detector.threshold is None:
            self.offset_ = -largest_score(detector)
        self.calibration_ = detector.calibration
        self.calibration_scores_ = detector.calibration_scores
        self.training_labels_ = np.where((scores > self.threshold_) & ~is_normal, -1, 1)
        self.novelty_p_values_: FloatArray | None = None
        if self.calibration_ is not None:
            self.novelty_p_values_ = conformal_p_values(self.calibration_scores_, scores)
            if detector.parameters.truncates:
                # In-sample errors of a truncated model say nothing about the scores of new rows.
                self.novelty_p_values_[found.in_use] = np.nan
        self.combined_, self.rarity_ = detector.combined, detector.rarity
        self.landmark_miss_, self.precision_ = detector.landmark_miss, detector.precision
        self.warnings_, self.n_samples_fit_ = detector.warnings, detector.n_samples_fit
        return self

    @property
    def subspace_(self) -> KernelSubspace:
        """The fitted kernel PCA."""
        return self.detector_.viewed

    def _warnings_of_rule(self) -> Iterator[str]:
        """Warn about parameters that have no effect, or with which no row is flagged."""
        if not np.isfinite(self.threshold_):
            n = len(self.calibration_scores_)
            yield (
                f"{n} calibrating rows are too few for a false-alarm rate of {self.alpha:g}: the "
                "threshold is infinite and nothing is flagged. The smallest rate they allow is "
                f"{smallest_rate(n):.3g}."
            )
        name, given, usual = "share", self.share, 0.01
        what = "a reference of normal rows is flagged at a false-alarm rate, alpha"
        if self.contaminated:
            name, given, usual = "alpha", self.alpha, 0.05
            what = "of rows that may hold outliers a share is flagged; a rate needs a clean "
            what += "reference, contaminated=False"
        if given != usual:
            yield f"{name}={given:g} has no effect: {what}."

    def __sklearn_tags__(self) -> Any:
        """Declare that sparse rows are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def score_samples(self, X: ArrayLike) -> NDArray[np.floating[Any]]:
        """Minus the novelty score of each row, shape (r,): higher = more normal.

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.

        Returns
        -------
        ndarray of shape (r,)
            The scores.
        """
        return as_given(X, -self.novelty_scores(X))

    def novelty_scores(self, X: ArrayLike) -> FloatArray:
        """Novelty score of each row, shape (r,): higher = more novel, float64 for any rows.

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.

        Returns
        -------
        ndarray of shape (r,)
            The scores, comparable with `novelty_scores_` of the training rows.
        """
        rows = self._check_rows(X)
        return self.detector_.scores(rows, n_jobs=self.n_jobs)

    def decision_function(self, X: ArrayLike) -> NDArray[np.floating[Any]]:
        """`score_samples` minus `offset_`: negative = novel.

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.

        Returns
        -------
        ndarray of shape (r,)
            The differences.
        """
        return as_given(X, -self.novelty_scores(X) - self.offset_)

    def predict(self, X: ArrayLike) -> IntArray:
        """+1 for rows like the training ones, -1 for novel rows, shape (r,).

        For new rows only: training rows are judged by `training_labels_`.

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.

        Returns
        -------
        ndarray of int of shape (r,)
            The labels.
        """
        return np.where(self.novelty_scores(X) > self.threshold_, -1, 1)

    def fit_predict(
        self, X: ArrayLike, y: object = None, *, normal: ArrayLike | None = None
    ) -> IntArray:
        """Fit, and judge the training rows by their leave-one-out scores.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training rows.
        y : Ignored
            For scikit-learn's pipelines.
        normal : array-like of bool of shape (n,), optional
            As in `fit`.

        Returns
        -------
        ndarray of int of shape (n,)
            `training_labels_`.
        """
        return self.fit(X, normal=normal).training_labels_

    def p_values(self, X: ArrayLike) -> FloatArray:
        """Share of normal rows expected to score at least as high as each row, shape (r,).

        For new rows only: training rows have `novelty_p_values_`.

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.

        Returns
        -------
        ndarray of shape (r,)
            The p-values.

        Raises
        ------
        ValueError
            If the detector was fitted with ``contaminated=True``: no rate exists without rows
            known to be normal.
        """
        rows = self._check_rows(X)
        if self.calibration_ is None:
            raise ValueError(
                "p-values need rows known to be normal: fit with contaminated=False on a clean "
                "reference."
            )
        scores = self.detector_.scores(rows, n_jobs=self.n_jobs)
        return conformal_p_values(self.calibration_scores_, scores)

    def explain(
        self, X: ArrayLike, *, training_rows: ArrayLike | None = None
    ) -> list[tuple[ColumnDrop, ...]]:
        """Return for each row the columns that made it odd, and their expected values.

        Parameters
        ----------
        X : (r, d) array
            Rows to explain.
        training_rows : (r,) array of int, optional
            Positions of the rows among those of `fit`, if they are training rows, so that a row
            serves neither as its own neighbour nor as its own landmark.

        Returns
        -------
        list of tuples of ColumnDrop
            One tuple per row: the columns that explain the score first, then others by share;
            columns that explain it only together are adjacent. If no replacement lowers the score:
            the column farthest from its expected value; empty if no column is off.
        """
        rows = self._check_rows(X)
        own, n = np.full(len(rows), -1), self.n_samples_fit_
        if training_rows is not None:
            own = np.asarray(training_rows, dtype=np.int64)
        if own.shape != (len(rows),) or not ((-1 <= own) & (own < n)).all():
            raise ValueError(
                f"training_rows must hold {len(rows)} positions from 0 to {n - 1}, or -1 for new "
                "rows."
            )
        return self.detector_.explain(rows, own, n_jobs=self.n_jobs)

    def _check_rows(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return checked_rows(self, X, reset=False)


def largest_score(detector: Detector) -> float:
    """Return an upper bound of the scores.

    An error is at most the squared distance of phi(x) to the mean in feature space, hence at most
    the square of the sum of their lengths.
    """
    if detector.combined is not None:
        return LARGEST
    subspace = detector.viewed
    longest = subspace.kernel.diagonal(subspace.points).max()
    return float((np.sqrt(longest) + np.sqrt(max(subspace.mean_norm, 0.0))) ** 2)
