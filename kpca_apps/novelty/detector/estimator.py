"""The estimator: rows of numbers in, novelty scores, calibrated decisions and reasons out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.seeding import seeded_generator
from kpca_apps.errors import InputError, KpcaWarning
from kpca_apps.novelty.detector.fitting import scores_without_landmarks
from kpca_apps.novelty.detector.leave_one_out import RIDGES
from kpca_apps.novelty.detector.parameters import (
    calibration_of,
    column_groups,
    column_indices,
    finite_offset,
    refuse_contradictions,
    training_positions,
)
from kpca_apps.novelty.detector.passes import NoveltyScores
from kpca_apps.novelty.detector.rarity import Rarity
from kpca_apps.novelty.detector.reasons import (
    TYPICAL,
    TYPICAL_ROWS,
    Attribution,
    ColumnDrop,
    NeighbourRows,
    rows_without_strays,
)
from kpca_apps.novelty.detector.row_source import ArrayRows, RowFunction, RowSource, map_rows
from kpca_apps.novelty.detector.steps import fit_model, fit_views, rows_to_use
from kpca_apps.novelty.detector.surprise.combined import CombinedScores
from kpca_apps.novelty.detector.threshold import (
    choice_threshold,
    conformal_p_values,
    rate_threshold,
    smallest_rate,
    top_count,
)

__all__ = ["KernelPCANovelty"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MAX_NEIGHBOUR_ROWS = 2_500


class KernelPCANovelty(OutlierMixin, BaseEstimator):
    """Novelty detection by the reconstruction error of kernel PCA.

    A row's error is its squared distance, in the feature space of the kernel, to what kernel PCA
    of the training rows explains (Hoffmann 2007). By default the cut between explained and not is
    soft, the kernel is a mean over four scalings of the columns, and the score joins the error
    with how surprising the row's cells are given its other cells, by a second kernel PCA whose
    kernel is a sum over columns: a weighted harmonic mean of p-values, as its negative logarithm,
    which grows without bound. With `kernel` or `n_components` the score is the error alone.
    Training rows are scored as if each had been left out.

    Parameters
    ----------
    contaminated : bool, default=True
        Whether the training rows may hold outliers. If so, the model is fitted on those with the
        highest kernel density, half of all or more where most are about as dense; if not, on all.
        The wrong choice costs 4 to 9 points of AUROC.
    share : float in (0, 1), default=0.01
        Contaminated: share of training rows to flag, at least one row, and with the last of them
        all that score alike to eight digits; fewer where these would be all the rest of the table.
        A choice, not a rate.
    alpha : float in (0, 1), default=0.05
        Clean: share of new normal rows that may be flagged falsely.
    n_components : int or None, default=None
        ``None`` for the soft cut. A number q keeps q components, as Hoffmann did; 0 is his
        spherical potential (a Parzen density estimate).
    kernel : "rbf", Kernel or None, default=None
        ``None`` for the mean over four views. A kernel sees the columns as they come.
    gamma : float or None, default=None
        Of ``kernel="rbf"``, exp(-gamma r^2); default 1 / median squared distance. A width sigma
        in exp(-r^2 / (2 sigma^2)) is gamma = 1 / (2 sigma^2).
    ridge : float or None, default=None
        Of the soft cut, as a share of the variance in feature space, from 1e-12 to 1e12. Default
        0.1 if contaminated, else 0.1 / n.
    n_landmarks : int or None, default=None
        Rows that span the model. Default 300 if contaminated, else 700; a hard cut uses all rows
        up to 5000.
    calibration : {"auto", "leave-one-out", "split"}, default="auto"
        Clean: what the threshold is calibrated on. ``"split"`` holds half the rows back and has a
        finite-sample guarantee; leave-one-out uses all rows and holds approximately. Auto is
        leave-one-out for a soft cut, split for a hard one, which has no closed form.
    as_is : array-like of int or None, default=None
        Columns that every view takes unscaled, such as indicators of categories.
    groups : sequence of sequences of int or None, default=None
        Columns made of one source, such as a date's day and hour: together they weigh as much as
        one column, and they are explained as one. Default: each column alone.
    n_jobs : int or None, default=None
        Threads. The result does not depend on their number.
    random_state : int, RandomState or None, default=None
        Seeds landmarks, bandwidths and splits.

    Attributes
    ----------
    novelty_scores_ : (n,) array
        Score of each training row, higher = more novel: as if left out for a soft cut, in-sample
        for rows that a hard cut was fitted on.
    novelty_p_values_ : (n,) array or None
        Calibrated p-values of the training rows; ``None`` if contaminated, NaN for rows whose
        score is in-sample (those a hard cut was fitted on). They go with `threshold_`: a row is
        at most `alpha` where it exceeds the threshold. A row that calibrates counts itself, so
        that its p-value is 2 / (c + 1) at least; among the other rows alone its rank is
        ((c + 1) p - 1) / c.
    training_labels_ : (n,) int array
        +1 / -1 from `novelty_scores_`. Training rows are judged by these, never by `predict`.
    threshold_ : float
        Rows that score above it are novel, and no others. Contaminated: the highest score that is
        not flagged. Infinite if too few rows can calibrate `alpha`.
    offset_ : float
        Minus `threshold_`, as in scikit-learn. Where that is infinite, minus a score that no row
        exceeds (with `kernel` or `n_components`: no row as long in feature space as the
        landmarks): `decision_function` stays finite and keeps the order of the scores.
    calibration_ : str or None
        ``"leave-one-out"``, ``"split"``, or ``None`` where the threshold is a choice.
    calibration_scores_ : (c,) array
        Sorted scores the threshold was calibrated on; empty if contaminated.
    rarity_ : Rarity or None
        Contaminated with a soft cut: ``rarity_.share(scores)`` says how rare scores are among rows
        like those the model was fitted on. ``None`` otherwise: a clean reference has p-values, and
        of a hard cut's rows only in-sample scores are known.
    groups_ : list of int arrays
        Columns that are explained together.
    subspace_ : KernelSubspace
        The fitted kernel PCA.
    combined_ : CombinedScore or None
        What makes a score of errors and cells; ``None`` with `kernel` or `n_components`.
    precision_ : {"float64", "float32"}
        Of kernel values when rows are scored: float32 for more than 2,000 training rows where it
        gave the scores to 1e-3 of each on some of them.
    warnings_ : tuple of str
        What a reader of the scores must know.
    n_samples_fit_, n_features_in_ : int
        Rows and columns seen in fit.
    landmark_miss_ : float or None
        Share of a training row's squared length in feature space that the landmarks miss, on
        average and without the row itself; ``None`` for a hard cut.

    References
    ----------
    Hoffmann, Kernel PCA for novelty detection, Pattern Recognition 40, 2007.
    Rudi, De Vito, Verri & Odone, Regularized kernel algorithms for support estimation,
    Frontiers in Applied Mathematics and Statistics 3, 2017 (the soft cut).
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

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn's convention)
        "contaminated": ["boolean"],
        "share": [Interval(Real, 0, 1, closed="neither")],
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "n_components": [Interval(Integral, 0, None, closed="left"), None],
        "kernel": [StrOptions({"rbf"}), Kernel, None],
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
        "ridge": [Interval(Real, *RIDGES, closed="both"), None],
        "n_landmarks": [Interval(Integral, 2, None, closed="left"), None],
        "calibration": [StrOptions({"auto", "leave-one-out", "split"})],
        "as_is": ["array-like", None],
        "groups": [list, tuple, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        contaminated: bool = True,
        share: float = 0.01,
        alpha: float = 0.05,
        n_components: int | None = None,
        kernel: str | Kernel | None = None,
        gamma: float | None = None,
        ridge: float | None = None,
        n_landmarks: int | None = None,
        calibration: str = "auto",
        as_is: ArrayLike | None = None,
        groups: Sequence[Sequence[int]] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.contaminated = contaminated
        self.share = share
        self.alpha = alpha
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.ridge = ridge
        self.n_landmarks = n_landmarks
        self.calibration = calibration
        self.as_is = as_is
        self.groups = groups
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fit the model to rows `X` of shape (n, d), finite numbers, n >= 3.

        Raises
        ------
        ValueError
            For NaN or infinity, fewer than 3 rows, no varying column, or parameters that do not
            go together.
        """
        table: FloatArray = validate_data(self, X, dtype=np.float64, ensure_min_samples=3)
        self._fit_source(ArrayRows(table, self.random_state, n_jobs=self.n_jobs))
        for sentence in self._threshold_warning():
            # Past scikit-learn's decorator, to whoever called.
            warnings.warn(sentence, KpcaWarning, stacklevel=3)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_rows(self, source: RowSource) -> Self:
        """Fit the model to rows that need not be in memory, finite numbers, n >= 3.

        Parameters
        ----------
        source : RowSource
            The rows. Scalings, landmarks and calibration come from its sample, which up to
            100,000 rows is all of them; means, covariances and trimming from all rows.

        Raises
        ------
        ValueError
            As `fit`.
        """
        validate_data(self, source.sample, dtype=np.float64, ensure_min_samples=3)
        return self._fit_source(source)

    def _fit_source(self, source: RowSource) -> Self:
        rng = seeded_generator(self.random_state)
        refuse_contradictions(self)
        n_columns = source.sample.shape[1]
        as_is = column_indices(self.as_is, n_columns)
        self.groups_ = column_groups(self.groups, n_columns)
        self.calibration_ = calibration_of(
            self.calibration, contaminated=self.contaminated, hard=self.n_components is not None
        )
        in_use = rows_to_use(self, source, as_is, rng)
        sample_in_use = np.flatnonzero(in_use[source.sample_index])
        self.views_ = fit_views(self, source.sample, sample_in_use, as_is, rng)
        fit = fit_model(self, self.views_, source, in_use, as_is, rng)
        self.subspace_, self.ridge_ = fit.errors.subspace, fit.errors.rho
        self.precision_, self.combined_ = fit.errors.precision, fit.combined
        self.landmark_miss_ = fit.missed
        self.landmarks_ = fit.landmarks
        self.n_samples_fit_ = source.n_rows
        self.novelty_scores_ = fit.scores
        self._keep_neighbours(source, sample_in_use, as_is, rng)
        calibrating = ~in_use if self.calibration_ == "split" else in_use
        self._set_threshold(calibrating, source, fit.usual_scores)
        self.warnings_ = (*fit.warnings, *self._threshold_warning())
        return self

    def _keep_neighbours(
        self, source: RowSource, in_use: IntArray, as_is: IntArray, rng: np.random.Generator
    ) -> None:
        """Keep rows that expected values are taken from.

        Of a clean reference those in use; of other tables, dense or not, all but the share that
        is flagged.
        """
        drawn = np.arange(len(source.sample)) if self.contaminated else in_use
        if len(drawn) > MAX_NEIGHBOUR_ROWS:
            drawn = np.sort(rng.choice(drawn, MAX_NEIGHBOUR_ROWS, replace=False))
        rows, index = source.sample[drawn], source.sample_index[drawn]
        standardised = self.views_.standardised(rows)
        if self.contaminated:
            # Half of all rows remain, and two at least, whatever share of them is flagged.
            n_novel = min(top_count(len(rows), self.share), len(rows) // 2)
            kept = rows_without_strays(standardised, self.novelty_scores_[index], n_novel)
            rows, standardised, index = rows[kept], standardised[kept], index[kept]
        self.neighbours_ = NeighbourRows(rows, standardised, as_is, index)

    def _set_threshold(
        self, calibrating: BoolArray, source: RowSource, usual_scores: FloatArray | None
    ) -> None:
        scores = self.novelty_scores_
        sampled = source.sample_index[calibrating[source.sample_index]]
        is_left_out = self.calibration_ is None and self.n_components is None
        usual = scores[sampled] if usual_scores is None else usual_scores
        self.rarity_ = Rarity.fit(usual) if is_left_out else None
        if self.calibration_ is None:
            self.calibration_scores_ = np.empty(0)
            self.novelty_p_values_ = None
            self.threshold_ = choice_threshold(scores, top_count(len(scores), self.share))
        else:
            self.calibration_scores_ = np.sort(scores[sampled])
            self.novelty_p_values_ = conformal_p_values(self.calibration_scores_, scores)
            if self.n_components is not None:
                # In-sample errors of a hard cut are no sample of what new rows would score.
                self.novelty_p_values_[~calibrating] = np.nan
            self.threshold_ = rate_threshold(self.calibration_scores_, self.alpha)
        self.offset_ = finite_offset(self.threshold_, self.subspace_, self.combined_)
        self.training_labels_ = np.where(scores > self.threshold_, -1, 1)

    def _threshold_warning(self) -> tuple[str, ...]:
        if self.calibration_ is None or np.isfinite(self.threshold_):
            return ()
        n = len(self.calibration_scores_)
        return (
            f"{n} calibrating rows are too few for a false-alarm rate of {self.alpha:g}: the "
            "threshold is infinite and nothing is flagged. The smallest rate they allow is "
            f"{smallest_rate(n):.3g}.",
        )

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Minus the novelty score of each row, shape (r,): higher = more normal."""
        return -self._novelty_scores(self._check_rows(X))

    def row_scores(self) -> RowFunction:
        """Return what scores new rows, higher = more novel, wherever they are."""
        check_is_fitted(self)
        errors = NoveltyScores(self.views_, self.subspace_, precision=self.precision_)
        return errors if self.combined_ is None else CombinedScores(errors, self.combined_)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """`score_samples` minus `offset_`: negative = novel."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> IntArray:
        """+1 for rows like the training ones, -1 for novel rows, shape (r,).

        New rows only: training rows are judged by `training_labels_`.
        """
        novel = (self.decision_function(X) < 0) & np.isfinite(self.threshold_)
        return np.where(novel, -1, 1)

    def fit_predict(self, X: ArrayLike, y: object = None) -> IntArray:
        """Fit, and judge the training rows by their leave-one-out scores."""
        labels: IntArray = self.fit(X).training_labels_
        return labels

    def p_values(self, X: ArrayLike) -> FloatArray:
        """Share of normal rows expected to score at least as high as each row, shape (r,).

        New rows only: training rows have `novelty_p_values_`.

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
        return conformal_p_values(self.calibration_scores_, self._novelty_scores(rows))

    def map_components(self, X: ArrayLike) -> FloatArray:
        """Coordinates of rows on the leading two kernel components, shape (r, 2)."""
        features = self.views_.transform(self._check_rows(X))
        leading = np.zeros((len(features), 2))
        projected = self.subspace_.leading(2).project(features, n_jobs=self.n_jobs)
        leading[:, : projected.shape[1]] = projected
        return leading

    def explain(
        self,
        X: ArrayLike,
        *,
        training_rows: ArrayLike | None = None,
    ) -> list[tuple[ColumnDrop, ...]]:
        """Say for each row which columns made it odd, and what was expected instead.

        Parameters
        ----------
        X : (r, d) array
            Rows to explain.
        training_rows : (r,) array of int, optional
            Positions of the rows among those of `fit`, where they come from it: a row then serves
            neither as its own neighbour nor as its own landmark.

        Returns
        -------
        list of tuples of ColumnDrop
            One tuple a row: what explains it first, then by share; columns that only together
            explain it follow each other. Where no replacement lowers the score, the one column
            that is farthest from what is expected; empty where none is off.
        """
        rows = self._check_rows(X)
        own = training_positions(training_rows, len(rows), self.n_samples_fit_)

        def score(candidates: FloatArray, row: IntArray) -> FloatArray:
            return self._scores_without(candidates, own[row])

        return Attribution(
            X=rows,
            standardised=self.views_.standardised(rows),
            scores=self._scores_without(rows, own),
            score=score,
            neighbours=self.neighbours_,
            groups=self.groups_,
            own=own,
            typical=self._typical_score(),
        ).explain()

    def _typical_score(self) -> float:
        """Score that nine of ten rows stay below of those that expected values are taken from."""
        neighbours = self.neighbours_
        some = slice(None, None, 1 + (len(neighbours.index) - 1) // TYPICAL_ROWS)
        scores = self._scores_without(neighbours.rows[some], neighbours.index[some])
        return float(np.quantile(scores, TYPICAL))

    def _check_rows(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        rows: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        return rows

    def _novelty_scores(self, X: FloatArray) -> FloatArray:
        # Kernels of huge numbers overflow: that is the finding, and no warning beside it.
        with np.errstate(over="ignore", invalid="ignore"):
            scores = map_rows(self.row_scores(), X, n_jobs=self.n_jobs)
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores))[0])
            column = int(np.abs(X[row]).argmax())
            raise InputError(
                f"Row {row} has no score: its column {column}, {X[row, column]:.3g}, is too large "
                "for the kernel. Leave such rows out, or use the default kernel."
            )
        return scores

    def _scores_without(self, X: FloatArray, own: IntArray) -> FloatArray:
        """Scores of rows, each without the landmark that training row `own` (-1: none) is."""
        scores = self._novelty_scores(X)
        is_landmark = np.isin(own, self.landmarks_)
        if self.ridge_ is not None and is_landmark.any():
            position = np.searchsorted(self.landmarks_, own[is_landmark])
            rows = X[is_landmark]
            errors = scores_without_landmarks(
                self.subspace_, self.ridge_, self.views_.transform(rows), position
            )
            combined = self.combined_
            scores[is_landmark] = errors if combined is None else combined(rows, errors)
        return scores
