"""A fitted detector as a tree of dataclasses: what a model file holds of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Literal, Self

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

# A file names the kernel it holds: those of the engine must be known where it is read.
from kpca_apps.engine import kernels  # noqa: F401
from kpca_apps.engine.linalg.gram import about_origin
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.novelty.detector.estimator import KernelPCANovelty, calibration_of, finite_offset
from kpca_apps.novelty.detector.rarity import Rarity
from kpca_apps.novelty.detector.reasons import NeighbourRows
from kpca_apps.novelty.detector.surprise import CombinedScore
from kpca_apps.novelty.detector.views import RawColumns, ViewScales, column_groups

__all__ = ["DetectorState"]

# Rows of its reference that a model must have a score for, about.
SCORED = 100

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Parameters:
    """Parameters of a detector that are plain values."""

    contaminated: bool
    share: float
    alpha: float
    n_components: int | None
    gamma: float | None
    ridge: float | None
    n_landmarks: int | None
    calibration: str


@dataclass(frozen=True)
class StoredRows:
    """The rows of `NeighbourRows`, which are scaled again when they are read back."""

    rows: Annotated[FloatArray, "s d"]
    as_is: Annotated[IntArray, "a", Meta(ge=0)]
    index: Annotated[IntArray, "s"]


@dataclass(frozen=True, eq=False)
class DetectorState:
    """What a detector learned, under its own names for it, without the scores of its training rows.

    The rows that expected values are taken from are part of it: a model file holds rows of its
    reference. So are its landmarks, as they come, since all views of them are several times as
    large.
    """

    parameters: Parameters
    n_features_in: Annotated[int, Meta(ge=1)]
    n_samples_fit: Annotated[int, Meta(ge=2)]
    landmark_miss: Annotated[float, Meta(ge=0)] | None
    calibration: str | None
    threshold: float | None
    ridge: Annotated[float, Meta(ge=0)] | None
    precision: Literal["float32", "float64"]
    warnings: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    subspace: KernelSubspace
    views: ViewScales | RawColumns
    neighbours: StoredRows
    landmarks: Annotated[IntArray, "l", Meta(ge=0)]
    calibration_scores: Annotated[FloatArray, "c"]
    combined: CombinedScore | None
    rarity: Rarity | None

    @classmethod
    def of(cls, detector: KernelPCANovelty) -> Self:
        """Take the state of a fitted detector."""
        state = {field.name: getattr(detector, f"{field.name}_", None) for field in fields(cls)} | {
            "parameters": Parameters(*(getattr(detector, f.name) for f in fields(Parameters))),
            "threshold": float(detector.threshold_) if np.isfinite(detector.threshold_) else None,
            "groups": tuple(tuple(group.tolist()) for group in detector.groups_),
        }
        rows = detector.neighbours_
        state["neighbours"] = StoredRows(rows.rows, rows.as_is, rows.index)
        if isinstance(detector.views_, ViewScales):
            state["subspace"] = replace(detector.subspace_, points=detector.landmark_rows_)
        return cls(**state)

    def restored(self) -> KernelPCANovelty:
        """Return the detector again."""
        views, indicators = self.views, self.neighbours.as_is.tolist()
        detector = KernelPCANovelty(
            # The width of a kernel that was asked for by name is part of it by now.
            **asdict(self.parameters) | {"gamma": None},
            kernel=views.kernel if isinstance(views, RawColumns) else None,
            as_is=indicators or None,
            groups=[list(group) for group in self.groups],
        )
        detector._validate_params()
        for field in fields(self)[1:]:
            setattr(detector, f"{field.name}_", getattr(self, field.name))
        rows = self.neighbours
        detector.neighbours_ = NeighbourRows(
            rows.rows, views.standardised(rows.rows), rows.as_is, rows.index
        )
        if isinstance(views, ViewScales):
            detector.landmark_rows_ = self.subspace.points
            points = views.transform(self.subspace.points)
            detector.subspace_ = replace(self.subspace, points=points)
        detector.groups_ = column_groups(self.groups, self.n_features_in)
        detector.threshold_ = np.inf if self.threshold is None else self.threshold
        detector.offset_ = finite_offset(detector.threshold_, detector.subspace_, self.combined)
        return detector

    def validate(self) -> None:
        """Refuse what no fit leads to here, before it fails in a user's run."""
        due = calibration_of(
            self.parameters.calibration,
            contaminated=self.parameters.contaminated,
            hard=self.parameters.n_components is not None,
        )
        views, rows, d, sees_all, used = self.views, self.neighbours, self.n_features_in, True, []
        if isinstance(views, RawColumns):
            # A fit may take column means away, of which the kernel it was asked for knows nothing.
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
            and (self.ridge is None or len(self.landmarks) == len(self.subspace.points)),
            "calibration": self.calibration == due,
            "calibration scores": (self.calibration_scores.size > 0) == (due is not None),
            "rarity": self.rarity is None or (due is None and self.parameters.n_components is None),
            "rows": 2 <= len(rows.index) <= self.n_samples_fit,
        }
        if wrong := [name for name, is_sound in sound.items() if not is_sound]:
            raise ValueError(f"{', '.join(wrong)} do not fit the rest")
        # Which refuses scores that are no numbers, and a kernel that asks for too much.
        self.restored().score_samples(rows.rows[:: 1 + len(rows.rows) // SCORED])
