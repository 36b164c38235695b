"""A fitted detector: an immutable value that scores, maps and explains rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

# A model file names its kernel; this import registers the kernels that reading needs.
from kpca_apps.engine import kernels  # noqa: F401
from kpca_apps.engine.linalg.gram import about_origin
from kpca_apps.engine.rows import ArrayRows, map_row_blocks
from kpca_apps.engine.subspace import KernelSubspace, Resolved
from kpca_apps.engine.tikhonov import TikhonovFilter, leave_landmark_out
from kpca_apps.errors import InputError
from kpca_apps.novelty.detector.hoffmann import StandardisedColumns
from kpca_apps.novelty.detector.neighbours import TYPICAL, TYPICAL_ROWS, NeighbourRows, Surroundings
from kpca_apps.novelty.detector.reasons import Attribution, ColumnDrop
from kpca_apps.novelty.detector.surprise.combined import CombinedScore
from kpca_apps.novelty.detector.threshold import Rarity
from kpca_apps.novelty.detector.views import SCORED_BLOCK, ColumnRoles, RawColumns, ViewScales
from kpca_apps.options import CalibrationName, MethodName, check_limits
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray, Uncached

SCORED = 100  # approximate number of reference rows scored to validate a model


@dataclass(frozen=True)
class Parameters:
    """Resolved parameters of a detector, as in `KernelPCANovelty`."""

    contaminated: bool
    share: Annotated[float, Meta(gt=0, lt=1)]
    alpha: Annotated[float, Meta(gt=0, lt=1)]
    method: MethodName
    sigma: Annotated[float, Meta(gt=0)] | None
    components: Annotated[int, Meta(ge=0)] | Annotated[float, Meta(gt=0, lt=1)] | None
    ridge: Annotated[float, Meta(ge=1e-12, le=1e12)] | None
    n_landmarks: Annotated[int, Meta(ge=2)] | None
    calibration: CalibrationName

    def __post_init__(self) -> None:
        check_limits(self)

    @property
    def truncates(self) -> bool:
        """Whether components are truncated, so that leave-one-out has no closed form."""
        return self.method == "hoffmann"

    @property
    def calibrated_on(self) -> Literal["leave-one-out", "split"] | None:
        """What the threshold is calibrated on; ``None`` if it flags the given `share` of rows."""
        if self.contaminated:
            return None
        if self.calibration == "auto":
            return "split" if self.truncates else "leave-one-out"
        return self.calibration


@dataclass(frozen=True)
class StoredRows:
    """Unscaled reference rows from which expected values are computed."""

    rows: Annotated[FloatArray, "s d"]
    as_is: Annotated[IntArray, "a", Meta(ge=0)]  # columns that are indicators
    index: Annotated[IntArray, "s"]  # positions of the rows among the training rows


@dataclass(frozen=True, eq=False)
class NoveltyScores:
    """Novelty of each row by kernel PCA, combined with that of its cells.

    A Tikhonov filter scores rows of the training subset as if each had been left out.
    """

    views: ViewScales | RawColumns
    model: KernelSubspace | TikhonovFilter
    precision: Resolved = "float64"
    combined: CombinedScore | None = None  # None: the score is the reconstruction error

    purpose: ClassVar[str] = "Scoring rows"

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return a function that scores rows (r, d), given a mask of those used in training."""
        views, combined, model, least = self.views, self.combined, self.model, SCORED_BLOCK
        if isinstance(model, TikhonovFilter):
            kernel, of_features = model.basis.kernel, model.errors(self.precision)
            features = model.basis.features(self.precision)

            def errors(seen: FloatArray, in_use: BoolArray) -> FloatArray:
                return of_features(features(seen), kernel.diagonal(seen), in_use)
        else:
            of_rows, least = model.errors(self.precision), model.least_rows(SCORED_BLOCK)

            def errors(seen: FloatArray, in_use: BoolArray) -> FloatArray:
                return np.maximum(of_rows(seen), 0.0)

        def scores(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            seen = views.transform(rows)
            found = map_row_blocks(errors, seen, in_use, block=SCORED_BLOCK, least=least)
            return found if combined is None else combined(rows, found)

        return scores


@dataclass(frozen=True, eq=False)
class Detector(Uncached):
    """A fitted detector, without the scores of its training rows.

    The detector and its model file hold reference rows, from which expected values are computed.
    Landmarks are stored unscaled: their scaled copies, one per view, are several times as large.
    """

    stored_as: ClassVar[str] = "DetectorState"  # name of the class in model files

    parameters: Parameters
    n_features_in: Annotated[int, Meta(ge=1)]
    n_samples_fit: Annotated[int, Meta(ge=2)]
    landmark_miss: Annotated[float, Meta(ge=0)] | None
    calibration: str | None
    threshold: float | None  # None stands for infinity
    ridge: Annotated[float, Meta(ge=0)] | None  # rho of a Tikhonov filter
    precision: Literal["float32", "float64"]
    warnings: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]  # columns of each group
    views: ViewScales | RawColumns | StandardisedColumns
    neighbours: StoredRows
    landmarks: Annotated[IntArray, "l", Meta(ge=0)]  # positions among the training rows
    calibration_scores: Annotated[FloatArray, "c"]  # sorted; empty if `calibration` is None
    combined: CombinedScore | None
    rarity: Rarity | None
    subspace: KernelSubspace  # with unscaled rows as points

    @property
    def flags_above(self) -> float:
        """Score above which rows are novel; infinite if too few rows calibrate the threshold."""
        return np.inf if self.threshold is None else self.threshold

    @cached_property
    def viewed(self) -> KernelSubspace:
        """The subspace with its points transformed by `views`, as the kernel requires."""
        return replace(self.subspace, points=self.views.transform(self.subspace.points))

    @cached_property
    def reference(self) -> NeighbourRows:
        """The rows that expected values come from, scaled for distances."""
        kept = self.neighbours
        standardised = self.views.standardised(kept.rows)
        return NeighbourRows(kept.rows, standardised, kept.as_is, kept.index)

    @cached_property
    def feature_variance(self) -> float:
        """Total variance in feature space, mean k(x, x) - |mu|^2, over the stored rows."""
        kept = self.views.transform(self.neighbours.rows)
        return float(self.viewed.kernel.diagonal(kept).mean() - self.viewed.mean_norm)

    @cached_property
    def derived(self) -> dict[str, Any]:
        """Cache, by name, of values that callers compute from the detector alone."""
        return {}

    @cached_property
    def _around(self) -> Surroundings:
        groups = ColumnRoles.of(self.n_features_in, groups=self.groups).groups
        return Surroundings(self.reference, groups)

    def row_scores(self) -> NoveltyScores:
        """Return the function that scores new rows, higher = more novel, on any worker."""
        return NoveltyScores(
            self.views, self.viewed, precision=self.precision, combined=self.combined
        )

    def scores(self, X: FloatArray, *, n_jobs: int | None = None) -> FloatArray:
        """Return the novelty scores of new rows (r, d)."""
        # Kernels of huge numbers overflow; scores that are not finite are reported below.
        with np.errstate(over="ignore", invalid="ignore"):
            scores = ArrayRows(X, n_jobs=n_jobs).map(self.row_scores())
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores))[0])
            column = int(np.abs(X[row]).argmax())
            raise InputError(
                f"Row {row} has no score: its column {column}, {X[row, column]:.3g}, is too large "
                "for the kernel. Leave such rows out, or use the default kernel."
            )
        return scores

    def map_components(self, X: FloatArray, *, n_jobs: int | None = None) -> FloatArray:
        """Return the coordinates of rows (r, d) on the two leading kernel components, (r, 2)."""
        leading = np.zeros((len(X), 2))
        model = self.viewed.prepared("leading", lambda: self.viewed.leading(2))
        projected = model.project(self.views.transform(X), n_jobs=n_jobs)
        leading[:, : projected.shape[1]] = projected
        return leading

    def explain(
        self, X: FloatArray, own: IntArray, *, least: float = 0.0, n_jobs: int | None = None
    ) -> list[tuple[ColumnDrop, ...]]:
        """Return for each row (r, d) the columns that made it odd, and their expected values.

        `own` (r,) are the positions of training rows, -1 for new rows: a row is neither its own
        neighbour nor its own landmark. Reasons with a share below `least` are left out, except the
        first.
        """
        score = partial(self._scores_without, n_jobs=n_jobs)
        return Attribution(
            X=X,
            standardised=self.views.standardised(X),
            score=lambda candidates, row: score(candidates, own[row]),
            around=self._around,
            own=own,
            typical=self._typical_score,
            least=least,
        ).explain()

    @cached_property
    def _typical_score(self) -> float:
        """Score below which nine of ten reference rows lie."""
        rows = self.reference
        some = slice(None, None, 1 + (len(rows.index) - 1) // TYPICAL_ROWS)
        return float(np.quantile(self._scores_without(rows.rows[some], rows.index[some]), TYPICAL))

    def _scores_without(
        self, X: FloatArray, own: IntArray, *, n_jobs: int | None = None
    ) -> FloatArray:
        """Score rows (r, d); score landmarks, found by training position `own`, as if left out."""
        scores = self.scores(X, n_jobs=n_jobs)
        is_landmark = np.isin(own, self.landmarks)
        if self.ridge is not None and is_landmark.any():
            position = np.searchsorted(self.landmarks, own[is_landmark])
            rows = X[is_landmark]
            residual, mahalanobis = leave_landmark_out(
                self.viewed, self.ridge, self.views.transform(rows), position
            )
            errors = residual + self.ridge * mahalanobis
            combined = self.combined
            scores[is_landmark] = errors if combined is None else combined(rows, errors)
        return scores

    def validate(self) -> None:
        """Raise for states that no fit gives, before later steps fail on them."""
        calibration, truncates = self.parameters.calibrated_on, self.parameters.truncates
        views, rows, d, sees_all, used = self.views, self.neighbours, self.n_features_in, True, []
        if isinstance(views, RawColumns):
            # The fitted kernel may subtract column means; the user's kernel does not.
            sees_all = len(views.mean) == d and views.kernel == about_origin(self.subspace.kernel)
        else:
            used += [views.varying, views.as_is]
        if self.combined is not None:
            features = self.combined.cells.map
            used += [features.number, features.source, features.group - len(features.group)]
            used += [np.array([one.column for one in self.combined.large_groups.groups])]
        sound = {
            "views": sees_all,
            "columns": rows.rows.shape[1] == d
            and all((columns < d).all() for columns in (*used, rows.as_is)),
            "landmark rows": isinstance(views, RawColumns) or self.subspace.points.shape[1] == d,
            "landmarks": (np.diff(self.landmarks, append=self.n_samples_fit) > 0).all()
            and (truncates or len(self.landmarks) == len(self.subspace.points)),
            "calibration": self.calibration == calibration,
            "calibration scores": (self.calibration_scores.size > 0) == (calibration is not None),
            "ridge": (self.ridge is None) == truncates,
            "rarity": self.rarity is None or (calibration is None and not truncates),
            "rows": 2 <= len(rows.index) <= self.n_samples_fit,
        }
        if wrong := [name for name, is_sound in sound.items() if not is_sound]:
            raise ValueError(f"{', '.join(wrong)} do not fit the rest")
        ColumnRoles.of(d, rows.as_is, self.groups)
        # Scoring some rows raises for scores that are no numbers, and for kernels too large.
        self.scores(rows.rows[:: 1 + len(rows.rows) // SCORED])
