"""Widths of kernels chosen without labels."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from kpca_apps.engine.landmarks import uniform_landmarks
from kpca_apps.engine.rows import SampleRows

__all__ = ["COMPARED_ROWS", "median_squared_distance"]

COMPARED_ROWS = 500
"""Rows whose distances a width is chosen from."""


def median_squared_distance(
    X: SampleRows, rng: np.random.Generator, *, rows: int = COMPARED_ROWS
) -> float:
    """Return the median of the squared distances, other than 0, among at most ``rows`` rows drawn.

    One over it is the usual first choice of gamma: it does not depend on the units of the data. 1
    where all rows are the same: then the kernel is constant whatever its width.
    """
    drawn = X[uniform_landmarks(len(X), rows, rng)]
    squared = pdist(drawn, "sqeuclidean")
    # A denormal distance would make gamma infinite; it is as good as none.
    squared = squared[squared > np.finfo(np.float64).tiny]
    if squared.size:
        with np.errstate(over="ignore"):
            median = float(np.median(squared))
        if median < np.inf:
            return median
    elif (drawn == drawn[0]).all():
        return 1.0
    size = "large" if squared.size else "small"
    raise ValueError(f"Values of the rows are too {size} to be squared: scale the columns first.")
