"""Novelty of rows by kernel PCA: of those it was fitted on as if each had been left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kpca_apps.engine.rows import map_row_blocks
from kpca_apps.engine.subspace import KernelSubspace, Resolved
from kpca_apps.engine.tikhonov import TikhonovFilter
from kpca_apps.novelty.detector.surprise.combined import CombinedScore
from kpca_apps.novelty.detector.views import SCORED_BLOCK, RawColumns, ViewScales
from kpca_apps.system.arrays import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class NoveltyScores:
    """Novelty of each row that is none of the training subset, joined with that of its cells."""

    views: ViewScales | RawColumns
    subspace: KernelSubspace
    precision: Resolved = "float64"
    combined: CombinedScore | None = None  # without it the reconstruction error alone

    purpose: ClassVar[str] = "Scoring rows"

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the novelty of rows; those in use are scored like the others."""
        views, combined = self.views, self.combined
        errors = self.subspace.errors(self.precision)

        def scores(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            seen = views.transform(rows)
            found = np.maximum(map_row_blocks(errors, seen, block=SCORED_BLOCK), 0.0)
            return found if combined is None else combined(rows, found)

        return scores


@dataclass(frozen=True, eq=False)
class TrainingScores:
    """Novelty of each row by a Tikhonov filter; those of the training subset as if left out."""

    views: ViewScales | RawColumns
    tikhonov: TikhonovFilter
    precision: Resolved = "float64"
    combined: CombinedScore | None = None  # without it the reconstruction error alone

    purpose: ClassVar[str] = "Scoring rows"

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the novelty of rows, of which some are in use."""
        views, combined, basis = self.views, self.combined, self.tikhonov.basis
        features, of_features = basis.features(self.precision), self.tikhonov.errors(self.precision)

        def errors(seen: FloatArray, in_use: BoolArray) -> FloatArray:
            return of_features(features(seen), basis.kernel.diagonal(seen), in_use)

        def scores(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            seen = views.transform(rows)
            found = map_row_blocks(errors, seen, in_use, block=SCORED_BLOCK)
            return found if combined is None else combined(rows, found)

        return scores
