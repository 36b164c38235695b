"""The steps of a fit with the detector's parameters: rows to use, scalings, model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kpca_apps.novelty.detector.column_scales import ordinary_rows
from kpca_apps.novelty.detector.fitting import CellOptions, NoveltyFit, fit_hard, fit_soft, trim
from kpca_apps.novelty.detector.parameters import kernel_of
from kpca_apps.novelty.detector.passes import RowViews
from kpca_apps.novelty.detector.row_source import RowSource
from kpca_apps.novelty.detector.views import ColumnViews, RawColumns
from kpca_apps.novelty.magnitudes import LARGEST_TO_SUBTRACT, refuse_larger

if TYPE_CHECKING:
    from kpca_apps.novelty.detector.estimator import KernelPCANovelty

__all__ = ["fit_model", "fit_views", "rows_to_use"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

CONTAMINATED_LANDMARKS, CLEAN_LANDMARKS = 300, 700
# A density is smooth: fewer tell the dense half of many rows from the sparse one.
DRAFT_LANDMARKS, MANY_ROWS = 150, 2_000


def rows_to_use(
    detector: KernelPCANovelty, source: RowSource, as_is: IntArray, rng: np.random.Generator
) -> BoolArray:
    """Mark the rows (n,) to fit on: not the sparse half, nor those held back to calibrate."""
    if detector.contaminated:
        sample, many = source.sample, source.n_rows > MANY_ROWS
        usual = DRAFT_LANDMARKS if many else CONTAMINATED_LANDMARKS
        return trim(
            fit_views(detector, sample, ordinary_rows(sample), as_is, rng),
            source,
            n_landmarks=detector.n_landmarks or usual,
            rng=rng,
            n_jobs=detector.n_jobs,
        )
    in_use = np.ones(source.n_rows, dtype=bool)
    if detector.calibration_ == "split":
        in_use[rng.permutation(source.n_rows)[max(2, source.n_rows // 2) :]] = False
    return in_use


def fit_views(
    detector: KernelPCANovelty,
    sample: FloatArray,
    rows: IntArray,
    as_is: IntArray,
    rng: np.random.Generator,
) -> ColumnViews | RawColumns:
    """Learn from some rows of the sample what the kernel sees of a row."""
    # Rows held back to calibrate must not lend a scale even to a constant column.
    seen = sample[rows] if detector.calibration_ == "split" else sample
    if detector.kernel is None:
        refuse_larger(seen, LARGEST_TO_SUBTRACT, "whose differences no float can hold")
        used = np.arange(len(seen)) if detector.calibration_ == "split" else rows
        return ColumnViews.fit(seen, used, as_is, rng, detector.groups_)
    kernel = kernel_of(detector.kernel, detector.gamma, sample[rows], rng)
    return RawColumns.fit(sample[rows], kernel)


def fit_model(
    detector: KernelPCANovelty,
    views: RowViews,
    source: RowSource,
    in_use: BoolArray,
    as_is: IntArray,
    rng: np.random.Generator,
) -> NoveltyFit:
    """Fit with the cut that the detector's parameters ask for.

    A kernel of the user's own, or a number of components, asks for Hoffmann's error and no more.
    """
    if detector.n_components is None:
        held_back = detector.calibration_ == "split"
        learnable = in_use if held_back else np.ones(source.n_rows, dtype=bool)
        contaminated = detector.contaminated
        default = CONTAMINATED_LANDMARKS if detector.contaminated else CLEAN_LANDMARKS
        usual = 0.1 if detector.contaminated else 0.1 / np.count_nonzero(in_use)
        return fit_soft(
            views,
            source,
            in_use,
            ridge=detector.ridge or usual,
            n_landmarks=detector.n_landmarks or default,
            rng=rng,
            cells=CellOptions(detector.groups_, as_is, contaminated, learnable)
            if detector.kernel is None
            else None,
            n_jobs=detector.n_jobs,
        )
    return fit_hard(
        views,
        source,
        in_use,
        n_components=detector.n_components,
        n_landmarks=detector.n_landmarks,
        rng=rng,
        n_jobs=detector.n_jobs,
    )
