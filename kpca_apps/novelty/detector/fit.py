"""Fit a detector: trim and scale rows, fit kernel PCA, score training rows, set a threshold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kpca_apps.engine.fit import (
    DrawnBasis,
    draw_basis,
    fit_subspace,
    jitter_is_large,
    variance_share,
)
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.kernels.base import squared_lengths
from kpca_apps.engine.kernels.by_name import resolved_kernel
from kpca_apps.engine.landmarks import uniform_landmarks
from kpca_apps.engine.nystroem import CovarianceSums, subspace_from_sums
from kpca_apps.engine.plan import FitOptions
from kpca_apps.engine.precision import agreeing_precision, evenly_drawn
from kpca_apps.engine.rows import MAPPED, ArrayRows, RowSource, SampleRows, map_row_blocks
from kpca_apps.engine.seeding import Seed, seeded_generator
from kpca_apps.engine.subspace import KernelSubspace, Resolved
from kpca_apps.engine.tikhonov import TikhonovFilter, leave_row_out, without_direction
from kpca_apps.errors import OptionError
from kpca_apps.novelty.detector.detector import Detector, NoveltyScores, Parameters, StoredRows
from kpca_apps.novelty.detector.hoffmann import MOST_EIGENVALUES, MOST_VARIANCE, StandardisedColumns
from kpca_apps.novelty.detector.neighbours import rows_without_strays
from kpca_apps.novelty.detector.surprise.cells import usual_rows
from kpca_apps.novelty.detector.surprise.combined import CombinedScore
from kpca_apps.novelty.detector.surprise.marked import NOTHING_KNOWN, KnownRows, Marked, marked_rows
from kpca_apps.novelty.detector.threshold import Rarity, Rule, rate_threshold, top_count
from kpca_apps.novelty.detector.trim import trim
from kpca_apps.novelty.detector.views import (
    SCORED_BLOCK,
    ColumnRoles,
    RawColumns,
    ViewedRows,
    ViewScales,
    large_block,
    ordinary_rows,
)
from kpca_apps.novelty.magnitudes import LARGEST_TO_SQUARE, refuse_larger
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.blas import one_blas_thread

Views = ViewScales | RawColumns
OwnKernel = Kernel | Callable[..., Any]

CONTAMINATED_LANDMARKS, CLEAN_LANDMARKS, HARD_LANDMARKS = 300, 700, 1000
# Density is smooth: in a table of many rows, fewer landmarks suffice to find the dense half, and a
# sample of the rows suffices to scale the columns.
DRAFT_LANDMARKS, MANY_ROWS, DRAFT_ROWS = 150, 2_000, 2_000
MAX_EXACT_ROWS = 5_000
# A model file stores up to this many rows, and up to this many cells, to compute expected values.
MAX_NEIGHBOUR_ROWS, MAX_NEIGHBOUR_CELLS = 2_500, 300_000
LEAST_LEFT_OUT = 0.05  # at least this share of rows, those with the highest scores, is not stored
_NEARLY_EQUAL = "Most rows are nearly equal: small differences between their scores mean little."
# Limits on rows and cells from which the scores of cells are learned. Most tables have fewer rows,
# and 10,000 rows resolve shares of 0.1 %. With many columns, fewer rows save memory.
MOST_ROWS, MOST_CELLS, FEWEST_ROWS = 10_000, 4_000_000, 200


@dataclass(frozen=True, eq=False)
class Fit:
    """A detector, with the scores of its training rows."""

    detector: Detector
    # (n,). With a Tikhonov filter, each row of the training subset is scored as if it had been left
    # out of the fit; with truncation, it is scored by the fit that it is part of.
    scores: FloatArray
    in_use: BoolArray  # (n,), the training subset

    def among(self, index: IntArray, scores: FloatArray, calibrating: IntArray) -> Fit:
        """Return the fit for a table of n rows, of which only those at `index` are training rows.

        `scores` (n,) score all rows as new ones; training rows get the scores of this fit instead.
        Split conformal calibration uses the rows at `calibrating`, which are no training rows.
        """
        scores[index] = self.scores
        detector, in_use = self.detector, np.zeros(len(scores), dtype=bool)
        in_use[index] = self.in_use
        neighbours = replace(detector.neighbours, index=index[detector.neighbours.index])
        detector = replace(
            detector,
            n_samples_fit=len(scores),
            landmarks=index[detector.landmarks],
            neighbours=neighbours,
        )
        if detector.calibration == "split":
            detector = _calibrated(detector, scores[calibrating])
        return Fit(detector, scores, in_use)


def fit_detector(
    source: RowSource,
    parameters: Parameters,
    columns: ColumnRoles,
    known: KnownRows = NOTHING_KNOWN,
    *,
    kernel: OwnKernel | None = None,
    n_jobs: int | None = None,
    random_state: Seed = None,
) -> Fit:
    """Fit a detector to finite rows, n >= 3; arguments as for `KernelPCANovelty`.

    `known` adds evidence from relations between columns to the scores, and its marked rows show in
    which columns odd cells are wrong; those `beside` are outside the source's sample.
    """
    rng = seeded_generator(random_state)
    _check(source.sample, parameters, kernel)
    is_normal = normal_rows(known.normal, source.n_rows, parameters)
    with one_blas_thread():
        return _Fitting(source, parameters, columns, known, is_normal, kernel, n_jobs, rng).run()


def _check(sample: SampleRows, parameters: Parameters, kernel: OwnKernel | None) -> None:
    """Raise for rows that are not finite or fewer than three, and for options without effect."""
    rows = np.asarray(sample)
    is_matrix = rows.dtype == np.float64 and rows.ndim == 2 and rows.shape[0] >= 3
    if not (is_matrix and rows.shape[1] and np.isfinite(rows).all()):
        # `check_array` raises clear errors. It is imported only if needed: the import is slow.
        from sklearn.utils import check_array

        check_array(rows, dtype=np.float64, ensure_min_samples=3, estimator="KernelPCANovelty")
    sigma, calibration = parameters.sigma, parameters.calibration
    if sigma is not None and kernel is not None:
        raise ValueError(f"sigma={sigma:g} is no width of kernel=: leave one of them out.")
    if calibration != "auto" and parameters.contaminated:
        raise OptionError(
            "calibration",
            f"{calibration} needs rows known to be normal: give a clean reference, or leave "
            "--calibration out",
        )


def normal_rows(normal: ArrayLike | None, n_rows: int, parameters: Parameters) -> BoolArray:
    """Check the mask of rows known to be normal; by default none are."""
    if normal is None:
        return np.zeros(n_rows, dtype=bool)
    marked = np.asarray(normal)
    if marked.dtype != bool or marked.shape != (n_rows,):
        raise ValueError(
            f"normal must be a mask of {n_rows} booleans, got {marked.dtype} of shape "
            f"{marked.shape}."
        )
    if not parameters.contaminated:
        raise ValueError(
            "normal= names rows of a table that may hold outliers; with contaminated=False "
            "all rows are normal."
        )
    if marked.all():
        raise ValueError("normal= names all rows: fit with contaminated=False.")
    return marked


class _Model(NamedTuple):
    """Kernel PCA of the training subset, and the scores of all rows by this model."""

    subspace: KernelSubspace  # with unscaled rows as points
    rho: float | None  # ridge of the Tikhonov filter; None for truncation
    landmarks: IntArray  # positions of the points among all rows
    precision: Resolved
    scores: FloatArray  # (n,)
    warnings: tuple[str, ...]
    landmark_miss: float | None = None
    combined: CombinedScore | None = None
    usual_scores: FloatArray | None = None  # scores of training rows that `usual_rows` selects


@dataclass(frozen=True, eq=False)
class _Fitting:
    source: RowSource
    parameters: Parameters
    columns: ColumnRoles
    known: KnownRows
    is_normal: BoolArray  # (n,)
    kernel: OwnKernel | None
    n_jobs: int | None
    rng: np.random.Generator

    def run(self) -> Fit:
        source, parameters, index = self.source, self.parameters, self.source.sample_index
        calibration = parameters.calibrated_on
        dense = self._dense_rows()
        in_use = dense | self.is_normal
        # Only dense rows set the scales: if a huge value did, all other values would look equal.
        views = self._fit_views(np.flatnonzero(dense[index]))
        truncates = parameters.truncates
        model = self._truncated(views, in_use) if truncates else self._filtered(views, in_use)
        scores = model.scores
        neighbours = self._neighbours(views, scores, np.flatnonzero(in_use[index]))
        rarity = None
        if calibration is None and not truncates:
            usual = model.usual_scores
            rarity = Rarity.fit(scores[index[in_use[index]]] if usual is None else usual)
        detector = Detector(
            parameters=parameters,
            n_features_in=source.sample.shape[1],
            n_samples_fit=source.n_rows,
            landmark_miss=model.landmark_miss,
            calibration=calibration,
            threshold=None,
            ridge=model.rho,
            precision=model.precision,
            warnings=model.warnings,
            groups=tuple(tuple(group.tolist()) for group in self.columns.groups),
            views=views,
            neighbours=neighbours,
            landmarks=model.landmarks,
            calibration_scores=np.empty(0),
            combined=model.combined,
            rarity=rarity,
            subspace=model.subspace,
        )
        if calibration is None:
            judged = scores[~self.is_normal] if self.is_normal.any() else scores
            threshold = Rule("share", parameters.share).threshold(judged)
            detector = replace(detector, threshold=_finite(threshold))
        elif calibration == "leave-one-out":
            detector = _calibrated(detector, scores[index])
        return Fit(detector, scores, in_use)

    def _dense_rows(self) -> BoolArray:
        """Mark the rows (n,) to learn from: all rows, or the densest half (or more) of them."""
        source, rng, n = self.source, self.rng, self.source.n_rows
        dense = np.ones(n, dtype=bool)
        if self.parameters.contaminated and not self.parameters.truncates:
            # To find the dense rows, scale columns by rows without gross values.
            sample, groups = source.sample[:], self.known.large_groups
            some = ordinary_rows(sample)
            views = self._fit_views(some[uniform_landmarks(len(some), DRAFT_ROWS, rng)])
            draft = DRAFT_LANDMARKS if n > MANY_ROWS else CONTAMINATED_LANDMARKS
            return trim(
                ViewedRows(source, views, n_jobs=self.n_jobs),
                views.kernel,
                n_landmarks=self.parameters.n_landmarks or draft,
                rng=rng,
                n_jobs=self.n_jobs,
                place=None if not groups else source.map(groups).astype(np.int64),
            )
        return dense

    def _fit_views(self, rows: IntArray) -> Views:
        sample, parameters = self.source.sample[:], self.parameters
        if self.kernel is None and parameters.method == "hoffmann":
            X, as_is = sample[rows], self.columns.as_is
            return StandardisedColumns.of(X, as_is, self.rng, parameters.sigma)
        if self.kernel is None:
            return ViewScales.fit(sample, rows, self.columns, self.rng)
        X = sample[rows]
        why = "whose squares no float can hold, and kernel= takes columns as they come"
        refuse_larger(X, LARGEST_TO_SQUARE, why)
        kernel = resolved_kernel(self.kernel, X, self.rng)
        if not kernel.is_psd:
            raise ValueError(
                f"kernel {kernel.describe()} is indefinite and has no reconstruction error; use "
                "a positive semi-definite kernel."
            )
        return RawColumns.fit(X, kernel)

    def _filtered(self, views: Views, in_use: BoolArray) -> _Model:
        """Fit with the Tikhonov filter; score training rows as if each was left out.

        This avoids self-masking: with truncation one isolated row can claim a component of its own
        and score as normal.
        """
        source, contaminated = self.source, self.parameters.contaminated
        rows = ViewedRows(source, views, in_use, n_jobs=self.n_jobs)
        ridge = self.parameters.ridge or (0.1 if contaminated else 0.1 / rows.n_rows)
        default = CONTAMINATED_LANDMARKS if contaminated else CLEAN_LANDMARKS
        options = FitOptions(
            ridge=ridge,
            method="nystroem",
            landmarks="residual",
            n_landmarks=self.parameters.n_landmarks or default,
            n_jobs=self.n_jobs,
        )
        drawn = draw_basis(rows, views.kernel, options, self.rng)
        basis, landmarks, plan = drawn.basis, drawn.landmarks, drawn.plan
        assert landmarks is not None
        kept = rows.features(basis, plan.precision)
        if kept is None:
            sums = CovarianceSums.of_rows(basis, rows, precision=plan.precision)
        else:
            sums = CovarianceSums.of_features(
                basis, kept.z, kept.lengths, in_use, n_jobs=self.n_jobs
            )
        variance = sums.norm / sums.n - float(sums.mean @ sums.mean)
        rho = variance_share(ridge, variance)
        tikhonov = TikhonovFilter.of_sums(basis, sums, rho)
        errors = self._training_scores(views, tikhonov, drawn)
        positions = rows.sample_index[landmarks]
        # Each landmark is also scored as if it were left out.
        of_all = None
        if kept is not None and kept.precision in ("float64", errors.precision):
            z = kept.z[positions]
            of_all = map_row_blocks(
                tikhonov.errors(kept.precision),
                kept.z,
                kept.lengths,
                in_use,
                block=large_block(len(kept.z)),
                n_jobs=self.n_jobs,
            )
        else:
            z = map_row_blocks(basis.features(errors.precision), basis.points, block=SCORED_BLOCK)
        del kept  # to free memory
        B, whitened = basis.transform, tikhonov.whitened(errors.precision)
        alone, mahalanobis = without_direction(
            B,
            # Diagonal of B B' K = (K + j I)^-1 K = I - j B B', with jitter j.
            1.0 - basis.jitter * squared_lengths(B),
            np.maximum(basis.own_residuals, 0.0),
            whitened(B.astype(errors.precision)),
            whitened((z - tikhonov.mean).astype(errors.precision)),
        )
        of_landmarks = leave_row_out(alone, mahalanobis, rho, sums.n)
        # Drop landmarks that equal another row: that row would replace a landmark that is left out.
        single = _occur_once(rows.sample.rows, landmarks)
        all_positions, positions = positions, positions[single]
        of_landmarks = of_landmarks[single]
        combined = usual_scores = None
        if self.kernel is None:
            learned, X = self._learned_rows()
            if of_all is not None:
                of_rows = of_all[learned]
            elif len(X) == source.n_rows:
                of_rows = source.map(errors, in_use)
            else:
                of_rows = ArrayRows(X, n_jobs=self.n_jobs).map(errors, in_use[learned])
            _, here, of_these = np.intersect1d(learned, positions, return_indices=True)
            of_rows[here] = of_landmarks[of_these]
            combined, scores = CombinedScore.fit(
                X, of_rows, self.columns, contaminated=contaminated, known=self._known_of(learned)
            )
            place = self.known.large_groups.places(X)
            of_usual = learned[usual_rows(of_rows, place, contaminated=contaminated)]
            if len(X) < source.n_rows:
                own = scores
                if of_all is None:
                    scores = source.map(replace(errors, combined=combined), in_use)
                else:
                    all_rows, n_jobs = source.sample[:], self.n_jobs
                    scores = map_row_blocks(
                        combined, all_rows, of_all, block=MAPPED, least=1, n_jobs=n_jobs
                    )
                scores[positions] = combined(rows.sample.rows[landmarks[single]], of_landmarks)
                scores[learned] = own
            if self.known.surprise is not None:
                scores = combined.with_surprise(scores, self.known.surprise)
            usual_scores = scores[of_usual]
        else:
            scores = source.map(errors, in_use) if of_all is None else of_all
            scores[positions] = of_landmarks
        # A landmark's own residual is nearly 0: use its residual from the other landmarks instead.
        unseen = float((alone - basis.own_residuals).sum())
        others = basis.kernel.diagonal(drawn.probe)
        others -= squared_lengths(drawn.of_probe(errors.precision))
        warnings: tuple[str, ...] = (_NEARLY_EQUAL,) if jitter_is_large(basis, rho) else ()
        if np.median(np.concatenate([alone, others])) >= 0.95 * sums.norm / sums.n:
            warnings += (
                "Most rows resemble no landmark at all (bandwidth too small, or too many "
                "unrelated columns): scores of such rows differ little and mean little.",
            )
        return _Model(
            subspace=replace(
                subspace_from_sums(basis, sums, rho=rho), points=rows.sample.rows[landmarks]
            ),
            rho=rho,
            landmarks=all_positions,
            precision=errors.precision,
            scores=scores,
            warnings=warnings,
            landmark_miss=(sums.missed + unseen) / sums.norm,
            combined=combined,
            usual_scores=usual_scores,
        )

    def _truncated(self, views: Views, in_use: BoolArray) -> _Model:
        """Fit Hoffmann's method: keep some components, score by the remaining error.

        Leave-one-out has no closed form here: scores of the training subset are in-sample.
        """
        rows = ViewedRows(self.source, views, in_use, n_jobs=self.n_jobs)
        wanted, n_landmarks = self.parameters.components, self.parameters.n_landmarks
        wanted = MOST_VARIANCE if wanted is None else wanted
        is_share = 0.0 < wanted < 1.0
        spanned = OptionError(
            "components",
            f"{wanted:g} is too much for {rows.n_rows:,} training rows, at least half of which "
            "would be fitted exactly: give a smaller number",
        )
        if wanted >= rows.n_rows:
            raise spanned
        most = MOST_EIGENVALUES if is_share else MAX_EXACT_ROWS
        exact = n_landmarks is None and len(rows.sample) == rows.n_rows <= most
        options = FitOptions(
            rows.n_rows if is_share else int(wanted),
            method="exact" if exact else "nystroem",
            landmarks="residual",
            n_landmarks=n_landmarks or HARD_LANDMARKS,
            n_jobs=self.n_jobs,
        )
        fit = fit_subspace(rows, views.kernel, options, self.rng)
        subspace, warnings = fit.subspace, fit.warnings
        if is_share:
            total = float(subspace.kernel.diagonal(rows.sample[:]).mean()) - subspace.mean_norm
            q = int(np.searchsorted(np.cumsum(subspace.variances), wanted * total)) + 1
            # Keep at most all directions but one: with all of them, every error would be 0.
            subspace, warnings = subspace.leading(max(min(q, subspace.n_components - 1), 0)), ()
        positions = rows.sample_index if fit.landmarks is None else fit.landmarks.index
        assert positions is not None
        landmarks = np.searchsorted(rows.sample_index, positions)
        probe = np.setdiff1d(evenly_drawn(len(rows.sample)), landmarks)
        seen = rows.sample[probe]
        precision = agreeing_precision(
            lambda p: np.maximum(map_row_blocks(subspace.errors(p), seen, block=SCORED_BLOCK), 0.0),
            self.source.n_rows,
        )
        scores = self.source.map(NoveltyScores(views, subspace, precision))
        typical = subspace.kernel.diagonal(subspace.points).mean()
        if not is_share and np.median(scores[rows.sample_index]) < 1e-10 * typical:
            raise spanned
        subspace = replace(subspace, points=rows.sample.rows[landmarks])
        return _Model(subspace, None, positions, precision, scores, warnings)

    def _training_scores(
        self, views: Views, tikhonov: TikhonovFilter, drawn: DrawnBasis
    ) -> NoveltyScores:
        """Return the scoring function of a Tikhonov filter, in float32 if accurate enough."""
        lengths = tikhonov.basis.kernel.diagonal(drawn.probe)
        # To compare precisions, treat every second probed row as a training row.
        used = np.arange(len(lengths)) % 2 == 0

        def scores(precision: Resolved) -> FloatArray:
            return tikhonov.errors(precision)(drawn.of_probe(precision), lengths, used)

        return NoveltyScores(views, tikhonov, agreeing_precision(scores, self.source.n_rows))

    def _learned_rows(self) -> tuple[IntArray, FloatArray]:
        """Choose rows in memory to learn the scores of cells from; return positions and rows."""
        source, sample = self.source, self.source.sample[:]
        learnable = np.arange(len(sample))
        most = max(FEWEST_ROWS, min(MOST_ROWS, MOST_CELLS // sample.shape[1]))
        if len(learnable) > most:
            learnable = np.sort(self.rng.choice(learnable, most, replace=False))
        everyone = len(learnable) == len(sample)
        return source.sample_index[learnable], sample if everyone else sample[learnable]

    def _known_of(self, learned: IntArray) -> KnownRows:
        """Return the marks and other knowledge (`KnownRows`) of the rows at `learned`."""
        known = self.known._replace(normal=self.is_normal)
        if known.wrong is None:
            return known.take(learned)
        index = self.source.sample_index
        is_beside = ~np.isin(index, learned)
        wrong, fine = known.wrong[index], self.is_normal[index]
        places = marked_rows(wrong & is_beside, fine & is_beside)
        of_sample = Marked(self.source.sample[places], wrong[places])
        both = (of_sample,) if known.beside is None else (of_sample, known.beside)
        beside = Marked(*map(np.concatenate, zip(*both, strict=True)))
        return known.take(learned)._replace(beside=beside)

    def _neighbours(self, views: Views, scores: FloatArray, in_use: IntArray) -> StoredRows:
        """Choose the rows that expected values come from.

        For a clean reference, these are the rows in use. For other tables they are all rows, dense
        or not, except the oddest 5 %, or the flagged share if larger; rows known to be normal
        always stay.
        """
        source, contaminated = self.source, self.parameters.contaminated
        drawn = np.arange(len(source.sample)) if contaminated else in_use
        most = min(MAX_NEIGHBOUR_ROWS, max(MAX_NEIGHBOUR_CELLS // source.sample.shape[1], 100))
        if len(drawn) > most:
            drawn = np.sort(self.rng.choice(drawn, most, replace=False))
        rows, index = source.sample[drawn], source.sample_index[drawn]
        if contaminated:
            # Leave out at most half of the drawn rows, even if a larger share is flagged.
            share = max(LEAST_LEFT_OUT, self.parameters.share)
            n_novel = min(top_count(len(rows), share), len(rows) // 2)
            of_rows = np.where(self.is_normal[index], -np.inf, scores[index])
            kept = rows_without_strays(views.standardised(rows), of_rows, n_novel)
            rows, index = rows[kept], index[kept]
        # Copy: the views hold this array, too, and a model file would store the two as one array.
        return StoredRows(rows, self.columns.as_is.copy(), index)


def _calibrated(detector: Detector, scores: FloatArray) -> Detector:
    """Set the threshold by the scores of rows that the model has not seen."""
    threshold = _finite(rate_threshold(scores, detector.parameters.alpha))
    return replace(detector, threshold=threshold, calibration_scores=np.sort(scores))


def _finite(threshold: float) -> float | None:
    return float(threshold) if math.isfinite(threshold) else None


def half_of(n: int, seed: Seed) -> IntArray:
    """Draw half of n rows, at least 3, for training; the others calibrate (split conformal)."""
    return np.sort(seeded_generator(seed).permutation(n)[: max(3, n // 2)])


def _occur_once(X: FloatArray, rows: IntArray) -> BoolArray:
    """Mark which of the given rows of X (n, d) equal no other row of X."""
    # Rows with equal sums are compared bit by bit. Adding 0 turns -0 into 0.
    sums = X.sum(axis=1)
    alike = X[np.isin(sums, sums[rows])]
    times = Counter(row.tobytes() for row in alike + 0.0)
    return np.array([times[row.tobytes()] == 1 for row in X[rows] + 0.0], dtype=bool)
