"""The function that scores the novelty of rows on any worker."""

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
    """Novelty of each row by kernel PCA, combined with that of its cells.

    A Tikhonov filter scores rows of the training subset as if each had been left out.
    """

    views: ViewScales | RawColumns
    model: KernelSubspace | TikhonovFilter
    precision: Resolved = "float64"
    combined: CombinedScore | None = None  # None: the score is the reconstruction error

    purpose: ClassVar[str] = "Scoring rows"

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the function of rows (r, d) and of the mask of those in the training subset."""
        views, combined, model = self.views, self.combined, self.model
        if isinstance(model, TikhonovFilter):
            kernel, of_features = model.basis.kernel, model.errors(self.precision)
            features = model.basis.features(self.precision)

            def errors(seen: FloatArray, in_use: BoolArray) -> FloatArray:
                return of_features(features(seen), kernel.diagonal(seen), in_use)
        else:
            of_rows = model.errors(self.precision)

            def errors(seen: FloatArray, in_use: BoolArray) -> FloatArray:
                return np.maximum(of_rows(seen), 0.0)

        def scores(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            found = map_row_blocks(errors, views.transform(rows), in_use, block=SCORED_BLOCK)
            return found if combined is None else combined(rows, found)

        return scores
