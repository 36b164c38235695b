"""The estimator: rows of numbers in, novelty scores, calibrated decisions and reasons out."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from kpca_apps.engine.checked_rows import as_given, checked_rows, fit_context
from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.kernels.by_name import resolved_kernel
from kpca_apps.engine.precision import agreeing_precision, evenly_drawn
from kpca_apps.engine.rows import (
    ArrayRows,
    RowSource,
    map_row_blocks,
    sample_positions,
)
from kpca_apps.engine.seeding import seeded_generator
from kpca_apps.engine.subspace import RIDGES, KernelSubspace
from kpca_apps.errors import InputError, KpcaWarning
from kpca_apps.novelty.detector.large_groups import LargeGroups
from kpca_apps.novelty.detector.leave_one_out import (
    SCORED_BLOCK,
    NoveltyScores,
    leave_landmark_out,
    leave_row_out,
)
from kpca_apps.novelty.detector.rarity import Rarity
from kpca_apps.novelty.detector.reasons import (
    TYPICAL,
    TYPICAL_ROWS,
    Attribution,
    ColumnDrop,
    NeighbourRows,
    rows_without_strays,
)
from kpca_apps.novelty.detector.surprise import (
    LARGEST,
    CombinedScore,
    usual_rows,
)
from kpca_apps.novelty.detector.threshold import (
    CalibrationName,
    Rule,
    conformal_p_values,
    smallest_rate,
    top_count,
)
from kpca_apps.novelty.detector.trim import trim
from kpca_apps.novelty.detector.views import (
    ColumnViews,
    RawColumns,
    ViewedRows,
    ViewScales,
    column_groups,
    column_indices,
    ordinary_rows,
)
from kpca_apps.novelty.magnitudes import LARGEST_TO_SQUARE, refuse_larger

__all__ = ["KernelPCANovelty"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

CONTAMINATED_LANDMARKS, CLEAN_LANDMARKS, HARD_LANDMARKS = 300, 700, 1000
# A density is smooth: fewer tell the dense half of many rows from the sparse one.
DRAFT_LANDMARKS, MANY_ROWS = 150, 2_000
MAX_EXACT_ROWS = 5_000
# Rows that expected values are taken from, and their cells: a model holds them.
MAX_NEIGHBOUR_ROWS, MAX_NEIGHBOUR_CELLS = 2_500, 300_000
# Rows that what cells add is learned from: all of most tables, and enough for shares of .1 %; of
# many columns fewer, for memory.
MOST_ROWS, MOST_CELLS, FEWEST_ROWS = 10_000, 4_000_000, 200


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
        ``None`` for the Tikhonov filter. A number q keeps q components, as Hoffmann did; 0 is his
        spherical potential (a Parzen density estimate).
    kernel : "rbf", Kernel or None, default=None
        ``None`` for the mean over four views. A kernel sees the columns as they come.
    gamma : float or None, default=None
        Of ``kernel="rbf"``, exp(-gamma r^2); default 1 / median squared distance. A width sigma
        in exp(-r^2 / (2 sigma^2)) is gamma = 1 / (2 sigma^2).
    ridge : float or None, default=None
        Of the Tikhonov filter, as a share of the variance in feature space, from 1e-12 to 1e12.
        Default 0.1 if contaminated, else 0.1 / n.
    n_landmarks : int or None, default=None
        Rows that span the model. Default 300 if contaminated, else 700; truncation uses all rows
        up to 5000.
    calibration : {"auto", "leave-one-out", "split"}, default="auto"
        Clean: what the threshold is calibrated on. ``"split"`` holds half the rows back and has a
        finite-sample guarantee; leave-one-out uses all rows and holds approximately. Auto is
        leave-one-out for a Tikhonov filter, split for truncation, which has no closed form.
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
        Score of each training row, higher = more novel: as if left out for a Tikhonov filter,
        in-sample for rows that truncation was fitted on.
    novelty_p_values_ : (n,) array or None
        Calibrated p-values of the training rows; ``None`` if contaminated, NaN for rows whose
        score is in-sample (those truncation was fitted on). They go with `threshold_`: a row is
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
        Contaminated with a Tikhonov filter: ``rarity_.share(scores)`` says how rare scores are
        among rows like those the model was fitted on. ``None`` otherwise: a clean reference has
        p-values, and of truncation's rows only in-sample scores are known.
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
        average and without the row itself; ``None`` for truncation.

    Notes
    -----
    Rows of float32 are computed with and judged in float64; `score_samples` and
    `decision_function` then return float32, rounded at the end. All else is float64 always, for
    rounding would move scores across `threshold_`: judge rows by `predict`, or `novelty_scores`.

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

    warnings_: tuple[str, ...]
    landmarks_: IntArray
    ridge_: float | None
    landmark_miss_: float | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
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
        kernel: Literal["rbf"] | Kernel | None = None,
        gamma: float | None = None,
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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None, *, normal: ArrayLike | None = None) -> Self:
        """Fit the model to rows `X` of shape (n, d), finite numbers, n >= 3.

        Parameters
        ----------
        X : (n, d) array
            The rows.
        y : None
            Ignored.
        normal : (n,) array of bool, optional
            Rows known to be normal in a table that may hold outliers: the model is always fitted
            on them, however sparse they lie, and they are never flagged; `share` is of the others.
            Scales of columns stay those of the dense rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For NaN or infinity, fewer than 3 rows, no varying column, parameters that do not go
            together, or `normal` rows that are all of them, or of a clean reference.
        """
        table: FloatArray = checked_rows(self, X, accept_sparse="csr", ensure_min_samples=3)
        sample = sample_positions(len(table), self.random_state)
        self._fit(ArrayRows(table, sample, n_jobs=self.n_jobs), normal)
        for sentence in (*self._idle_warning(), *self._threshold_warning()):
            # Past scikit-learn's decorator, to whoever called.
            warnings.warn(sentence, KpcaWarning, stacklevel=3)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_rows(
        self,
        source: RowSource,
        *,
        normal: ArrayLike | None = None,
        large_groups: LargeGroups | None = None,
    ) -> Self:
        """Fit the model to rows that need not be in memory, finite numbers, n >= 3.

        Parameters
        ----------
        source : RowSource
            The rows. Scalings, landmarks and calibration come from its sample, which up to
            100,000 rows is all of them; means, covariances and trimming from all rows.
        normal : (n,) array of bool, optional
            As `fit`.
        large_groups : LargeGroups, optional
            Rows of a table that may hold outliers that are too many to be odd, although they lie
            apart: those of each group are learned from like others, and ranked among themselves.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As `fit`.
        """
        validate_data(self, source.sample, dtype=np.float64, ensure_min_samples=3)
        return self._fit(source, normal, large_groups)

    def _fit(
        self,
        source: RowSource,
        normal: ArrayLike | None,
        large_groups: LargeGroups | None = None,
    ) -> Self:
        rng = seeded_generator(self.random_state)
        self._refuse_contradictions()
        is_normal = self._normal_rows(normal, source.n_rows)
        sample, index = source.sample[:], source.sample_index
        as_is = column_indices(self.as_is, sample.shape[1])
        self.groups_ = column_groups(self.groups, sample.shape[1])
        self.calibration_ = calibration_of(
            self.calibration, contaminated=self.contaminated, hard=self.n_components is not None
        )
        dense = np.ones(source.n_rows, dtype=bool)
        if self.contaminated:
            # A first look at a table, in which nothing is known to be normal.
            views = self._fit_views(sample, ordinary_rows(sample), rng)
            draft = DRAFT_LANDMARKS if source.n_rows > MANY_ROWS else CONTAMINATED_LANDMARKS
            place = None if large_groups is None else source.map(large_groups).astype(np.int64)
            dense = trim(
                ViewedRows(source, views),
                views.kernel,
                n_landmarks=self.n_landmarks or draft,
                rng=rng,
                n_jobs=self.n_jobs,
                place=place,
            )
        elif self.calibration_ == "split":
            dense[rng.permutation(source.n_rows)[max(2, source.n_rows // 2) :]] = False
        in_use = dense | is_normal
        sample_in_use = np.flatnonzero(in_use[index])
        # Scales stay those of the dense rows: one value far out would flatten its column for all.
        self.views_ = self._fit_views(sample, np.flatnonzero(dense[index]), rng)
        if self.n_components is None:
            usual_scores = self._fit_soft(source, in_use, is_normal, as_is, rng, large_groups)
        else:
            self._fit_hard(source, in_use, self.n_components, rng)
            usual_scores = None
        self.n_samples_fit_ = source.n_rows
        self._keep_neighbours(source, sample_in_use, is_normal, as_is, rng)
        calibrating = ~in_use if self.calibration_ == "split" else in_use
        self._set_threshold(calibrating, is_normal, index, usual_scores)
        self.warnings_ = (*self.warnings_, *self._threshold_warning())
        return self

    def _refuse_contradictions(self) -> None:
        """Refuse parameters of which one would be ignored."""
        if self.gamma is not None and self.kernel != "rbf":
            raise ValueError(f"gamma={self.gamma} needs kernel='rbf', got kernel={self.kernel!r}.")
        if self.ridge is not None and self.n_components is not None:
            raise ValueError(
                f"ridge={self.ridge} belongs to the Tikhonov filter; use n_components=None, or "
                "ridge out."
            )
        if self.calibration != "auto" and self.contaminated:
            raise ValueError(
                f"calibration={self.calibration!r} needs rows known to be normal: "
                "contaminated=False."
            )

    def _normal_rows(self, normal: ArrayLike | None, n_rows: int) -> BoolArray:
        """Check the mask of rows known to be normal; without one, none is."""
        if normal is None:
            return np.zeros(n_rows, dtype=bool)
        marked = np.asarray(normal)
        if marked.dtype != bool or marked.shape != (n_rows,):
            raise ValueError(
                f"normal must be a mask of {n_rows} booleans, got {marked.dtype} of shape "
                f"{marked.shape}."
            )
        if not self.contaminated:
            raise ValueError(
                "normal= names rows of a table that may hold outliers; with contaminated=False "
                "all rows are normal."
            )
        if marked.all():
            raise ValueError("normal= names all rows: fit with contaminated=False.")
        return marked

    def _fit_views(
        self, sample: FloatArray, rows: IntArray, rng: np.random.Generator
    ) -> ViewScales | RawColumns:
        """Learn from some rows of the sample what the kernel sees of a row."""
        if self.kernel is None:
            seen, used = sample, rows
            if self.calibration_ == "split":
                # Rows held back to calibrate must not lend a scale even to a constant column.
                seen, used = sample[rows], np.arange(len(rows))
            views = ColumnViews(as_is=self.as_is, groups=self.groups, random_state=rng)
            return views.fit(seen, rows=used).scales_
        X = sample[rows]
        why = "whose squares no float can hold, and kernel= takes columns as they come"
        refuse_larger(X, LARGEST_TO_SQUARE, why)
        kernel = resolved_kernel(self.kernel, X, rng, gamma=self.gamma)
        if not kernel.is_psd:
            raise ValueError(
                f"kernel {kernel.describe()} is indefinite and has no reconstruction error; use "
                "a positive semi-definite kernel."
            )
        return RawColumns.fit(X, kernel)

    def _fit_soft(
        self,
        source: RowSource,
        in_use: BoolArray,
        is_normal: BoolArray,
        as_is: IntArray,
        rng: np.random.Generator,
        large_groups: LargeGroups | None,
    ) -> FloatArray | None:
        """Fit with the Tikhonov filter and score all rows, training rows as if each was left out.

        It cures self-masking: with truncation one isolated row can claim a component of its own and
        score as normal. Returns the scores of the rows that the regressions between columns were
        learned from.
        """
        rows = ViewedRows(source, self.views_, in_use)
        usual = 0.1 if self.contaminated else 0.1 / rows.n_rows
        default = CONTAMINATED_LANDMARKS if self.contaminated else CLEAN_LANDMARKS
        model = KernelPCA(
            kernel=self.views_.kernel,
            ridge=self.ridge or usual,
            method="nystroem",
            landmarks="residual",
            n_landmarks=self.n_landmarks or default,
            n_jobs=self.n_jobs,
            random_state=rng,
        ).fit_rows(rows)
        subspace, rho, sums = model.subspace_, model.ridge_, model.sums_
        assert rho is not None and model.landmark_index_ is not None
        landmarks = np.searchsorted(rows.sample_index, model.landmark_index_)
        probe = np.setdiff1d(evenly_drawn(len(rows.sample)), landmarks)
        errors = self._errors(subspace, rho, source.n_rows, rows.sample.rows[probe])
        self.subspace_, self.ridge_, self.landmarks_ = subspace, rho, model.landmark_index_
        self.landmark_rows_ = rows.sample.rows[landmarks]
        # Landmarks are scored without themselves, too.
        everyone = np.arange(len(landmarks))
        alone, mahalanobis = leave_landmark_out(
            subspace, rho, subspace.points, everyone, self.precision_
        )
        of_landmarks = leave_row_out(alone, mahalanobis, rho, subspace.n)
        # A landmark with an equal row beside it keeps that one when it is left out.
        single = _occur_once(rows.sample.rows, landmarks)
        positions, of_landmarks = self.landmarks_[single], of_landmarks[single]
        self.combined_, usual_scores = None, None
        if self.kernel is None:
            learned, X = self._learned_rows(source, in_use, rng)
            of_rows = ArrayRows(X, n_jobs=self.n_jobs).map(errors, in_use[learned])
            _, here, of_these = np.intersect1d(learned, positions, return_indices=True)
            of_rows[here] = of_landmarks[of_these]
            self.combined_, scores = CombinedScore.fit(
                X,
                of_rows,
                self.groups_,
                as_is,
                contaminated=self.contaminated,
                normal=is_normal[learned],
                large_groups=large_groups,
            )
            place = self.combined_.large_groups.places(X)
            usual_scores = scores[usual_rows(of_rows, place, contaminated=self.contaminated)]
            if len(X) < source.n_rows:
                own, scores = scores, source.map(replace(errors, combined=self.combined_), in_use)
                scores[positions] = self.combined_(
                    rows.sample.rows[landmarks[single]], of_landmarks
                )
                scores[learned] = own
        else:
            scores = source.map(errors, in_use)
            scores[positions] = of_landmarks
        self.novelty_scores_ = scores
        # Landmarks explain themselves; what the jitter leaves of them gives way to what others
        # miss.
        unseen = float((alone - model.basis_.own_residuals).sum())
        self.landmark_miss_ = (sums.missed + unseen) / sums.norm
        others = map_row_blocks(
            model.basis_.residuals(self.precision_), rows.sample[probe], block=SCORED_BLOCK
        )
        self.warnings_ = model.warnings_
        if np.median(np.concatenate([alone, others])) >= 0.95 * sums.norm / sums.n:
            self.warnings_ = (
                *self.warnings_,
                "Most rows resemble no landmark at all (bandwidth too small, or too many "
                "unrelated columns): scores of such rows differ little and mean little.",
            )
        return usual_scores

    def _fit_hard(
        self, source: RowSource, in_use: BoolArray, n_components: int, rng: np.random.Generator
    ) -> None:
        """Fit Hoffmann's classic: keep `n_components` components, score by what they leave.

        No closed form of leave-one-out exists: scores of the training subset are in-sample.
        """
        rows = ViewedRows(source, self.views_, in_use)
        spanned = ValueError(
            f"n_components={n_components} components span the {rows.n_rows} training rows: their "
            "reconstruction errors are rounding noise. Choose fewer components."
        )
        if n_components >= rows.n_rows:
            raise spanned
        exact = self.n_landmarks is None and len(rows.sample) == rows.n_rows <= MAX_EXACT_ROWS
        model = KernelPCA(
            n_components,
            kernel=self.views_.kernel,
            method="exact" if exact else "nystroem",
            landmarks="residual",
            n_landmarks=self.n_landmarks or HARD_LANDMARKS,
            n_jobs=self.n_jobs,
            random_state=rng,
        ).fit_rows(rows)
        self.subspace_, self.ridge_, self.combined_ = model.subspace_, None, None
        chosen = rows.sample_index if exact else model.landmark_index_
        assert chosen is not None
        self.landmarks_ = chosen
        landmarks = np.searchsorted(rows.sample_index, self.landmarks_)
        self.landmark_rows_ = rows.sample.rows[landmarks]
        probe = np.setdiff1d(evenly_drawn(len(rows.sample)), landmarks)
        errors = self._errors(self.subspace_, None, source.n_rows, rows.sample.rows[probe])
        self.novelty_scores_ = source.map(errors)
        typical = self.subspace_.kernel.diagonal(self.subspace_.points).mean()
        if np.median(self.novelty_scores_[rows.sample_index]) < 1e-10 * typical:
            raise spanned
        self.landmark_miss_, self.warnings_ = None, model.warnings_

    def _errors(
        self, subspace: KernelSubspace, rho: float | None, n_rows: int, probe: FloatArray
    ) -> NoveltyScores:
        """Return how a model scores rows, in float32 where that gives some the same scores."""
        scores, rows = partial(NoveltyScores, self.views_, subspace, rho), ArrayRows(probe)
        # Every second of them in use.
        used = np.arange(len(probe)) % 2 == 0
        self.precision_ = agreeing_precision(lambda p: rows.map(scores(p), used), n_rows)
        return scores(self.precision_)

    def _learned_rows(
        self, source: RowSource, in_use: BoolArray, rng: np.random.Generator
    ) -> tuple[IntArray, FloatArray]:
        """Rows in memory that what cells add is learned from: their positions, and they."""
        sample, learnable = source.sample[:], np.arange(len(source.sample))
        if self.calibration_ == "split":
            learnable = np.flatnonzero(in_use[source.sample_index])
        most = max(FEWEST_ROWS, min(MOST_ROWS, MOST_CELLS // sample.shape[1]))
        if len(learnable) > most:
            learnable = np.sort(rng.choice(learnable, most, replace=False))
        everyone = len(learnable) == len(sample)
        return source.sample_index[learnable], sample if everyone else sample[learnable]

    def _keep_neighbours(
        self,
        source: RowSource,
        in_use: IntArray,
        is_normal: BoolArray,
        as_is: IntArray,
        rng: np.random.Generator,
    ) -> None:
        """Keep rows that expected values are taken from.

        Of a clean reference those in use; of other tables, dense or not, all but the share that
        is flagged, of which rows known to be normal are none.
        """
        drawn = np.arange(len(source.sample)) if self.contaminated else in_use
        most = min(MAX_NEIGHBOUR_ROWS, max(MAX_NEIGHBOUR_CELLS // source.sample.shape[1], 100))
        if len(drawn) > most:
            drawn = np.sort(rng.choice(drawn, most, replace=False))
        rows, index = source.sample[drawn], source.sample_index[drawn]
        standardised = self.views_.standardised(rows)
        if self.contaminated:
            # Half of all rows remain, and two at least, whatever share of them is flagged.
            n_novel = min(top_count(len(rows), self.share), len(rows) // 2)
            scores = np.where(is_normal[index], -np.inf, self.novelty_scores_[index])
            kept = rows_without_strays(standardised, scores, n_novel)
            rows, standardised, index = rows[kept], standardised[kept], index[kept]
        self.neighbours_ = NeighbourRows(rows, standardised, as_is, index)

    def _set_threshold(
        self,
        calibrating: BoolArray,
        is_normal: BoolArray,
        sample_index: IntArray,
        usual_scores: FloatArray | None,
    ) -> None:
        scores = self.novelty_scores_
        sampled = sample_index[calibrating[sample_index]]
        is_left_out = self.calibration_ is None and self.n_components is None
        usual = scores[sampled] if usual_scores is None else usual_scores
        self.rarity_ = Rarity.fit(usual) if is_left_out else None
        if self.calibration_ is None:
            self.calibration_scores_ = np.empty(0)
            self.novelty_p_values_ = None
            self.threshold_ = Rule("share", self.share).threshold(
                scores[~is_normal] if is_normal.any() else scores
            )
        else:
            self.calibration_scores_ = np.sort(scores[sampled])
            self.novelty_p_values_ = conformal_p_values(self.calibration_scores_, scores)
            if self.n_components is not None:
                # In-sample errors of truncation are no sample of what new rows would score.
                self.novelty_p_values_[~calibrating] = np.nan
            self.threshold_ = Rule("alpha", self.alpha).threshold(scores, self.calibration_scores_)
        self.offset_ = finite_offset(self.threshold_, self.subspace_, self.combined_)
        self.training_labels_ = np.where((scores > self.threshold_) & ~is_normal, -1, 1)

    def _idle_warning(self) -> tuple[str, ...]:
        """Say that a parameter that was given says nothing here."""
        name, given, usual = "share", self.share, 0.01
        what = "a reference of normal rows is flagged at a false-alarm rate, alpha"
        if self.contaminated:
            name, given, usual = "alpha", self.alpha, 0.05
            what = "of rows that may hold outliers a share is flagged; a rate needs a clean "
            what += "reference, contaminated=False"
        return () if given == usual else (f"{name}={given:g} has no effect: {what}.",)

    def __sklearn_tags__(self) -> Any:
        """Say that sparse rows are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _threshold_warning(self) -> tuple[str, ...]:
        if self.calibration_ is None or np.isfinite(self.threshold_):
            return ()
        n = len(self.calibration_scores_)
        return (
            f"{n} calibrating rows are too few for a false-alarm rate of {self.alpha:g}: the "
            "threshold is infinite and nothing is flagged. The smallest rate they allow is "
            f"{smallest_rate(n):.3g}.",
        )

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
            The scores, as `novelty_scores_` has those of the training rows.
        """
        return self._novelty_scores(self._check_rows(X))

    def row_scores(self) -> NoveltyScores:
        """Return what scores new rows, higher = more novel, wherever they are.

        Returns
        -------
        NoveltyScores
            What scores rows.
        """
        check_is_fitted(self)
        return NoveltyScores(
            self.views_, self.subspace_, precision=self.precision_, combined=self.combined_
        )

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

        New rows only: training rows are judged by `training_labels_`.

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
            As for `fit`.

        Returns
        -------
        ndarray of int of shape (n,)
            `training_labels_`.
        """
        labels: IntArray = self.fit(X, normal=normal).training_labels_
        return labels

    def p_values(self, X: ArrayLike) -> FloatArray:
        """Share of normal rows expected to score at least as high as each row, shape (r,).

        New rows only: training rows have `novelty_p_values_`.

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
        return conformal_p_values(self.calibration_scores_, self._novelty_scores(rows))

    def map_components(self, X: ArrayLike) -> FloatArray:
        """Coordinates of rows on the leading two kernel components, shape (r, 2).

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows.

        Returns
        -------
        ndarray of shape (r, 2)
            The coordinates.
        """
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
        own = _training_positions(training_rows, len(rows), self.n_samples_fit_)

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
        rows: FloatArray = checked_rows(self, X, accept_sparse="csr", reset=False)
        return rows

    def _novelty_scores(self, X: FloatArray) -> FloatArray:
        # Kernels of huge numbers overflow: that is the finding, and no warning beside it.
        with np.errstate(over="ignore", invalid="ignore"):
            scores = ArrayRows(X, n_jobs=self.n_jobs).map(self.row_scores())
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
            residual, mahalanobis = leave_landmark_out(
                self.subspace_, self.ridge_, self.views_.transform(rows), position
            )
            errors = residual + self.ridge_ * mahalanobis
            combined = self.combined_
            scores[is_landmark] = errors if combined is None else combined(rows, errors)
        return scores


def calibration_of(calibration: str, *, contaminated: bool, hard: bool) -> str | None:
    """Return what the threshold is calibrated on; ``None`` where no rate can be known."""
    if contaminated:
        return None
    if calibration == "auto":
        return "split" if hard else "leave-one-out"
    if calibration == "leave-one-out" and hard:
        raise ValueError(
            "calibration='leave-one-out' has a closed form for the Tikhonov filter only; "
            "use calibration='split' with n_components, or n_components=None."
        )
    return calibration


def finite_offset(
    threshold: float, subspace: KernelSubspace, combined: CombinedScore | None
) -> float:
    """Return minus the threshold, or minus a bound of the scores where it is infinite.

    An error is at most the squared distance of phi(x) to the mean in feature space, hence at most
    the square of the sum of both lengths.
    """
    if np.isfinite(threshold):
        return -threshold
    if combined is not None:
        return -LARGEST
    longest = subspace.kernel.diagonal(subspace.points).max()
    return -float((np.sqrt(longest) + np.sqrt(max(subspace.mean_norm, 0.0))) ** 2)


def _training_positions(
    training_rows: ArrayLike | None, n_rows: int, n_training_rows: int
) -> IntArray:
    """Return the positions of rows among the training rows, -1 for new ones."""
    if training_rows is None:
        return np.full(n_rows, -1)
    positions = np.asarray(training_rows, dtype=np.int64)
    if (
        positions.shape != (n_rows,)
        or not ((-1 <= positions) & (positions < n_training_rows)).all()
    ):
        raise ValueError(
            f"training_rows must hold {n_rows} positions from 0 to {n_training_rows - 1}, or -1 "
            "for new rows."
        )
    return positions


def _occur_once(X: FloatArray, rows: IntArray) -> BoolArray:
    """Mark those of some rows of X (n, d) that no other row of X is equal to."""
    # Equal rows have equal sums; rows of equal sums are compared to the bit. No minus zero.
    sums = X.sum(axis=1)
    alike = X[np.isin(sums, sums[rows])]
    times = Counter(row.tobytes() for row in alike + 0.0)
    return np.array([times[row.tobytes()] == 1 for row in X[rows] + 0.0], dtype=bool)
