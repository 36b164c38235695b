"""Spearman's rank correlation, without loading all of SciPy's statistics for it."""

from __future__ import annotations

import math

import numpy as np

from kpca_apps.system.arrays import FloatArray, Values


def rank_correlation(x: Values, y: Values) -> float:
    """Spearman's correlation of two columns (n,) without gaps; NaN where one is constant.

    The statistic of `scipy.stats.spearmanr`, whose loading takes a fifth of a small table's time.
    """
    ranks = _mean_ranks(x), _mean_ranks(y)
    if any(one.size == 0 or one[0] == one.max() == one.min() for one in ranks):
        return math.nan
    return float(np.corrcoef(*ranks)[1, 0])


def _mean_ranks(values: Values) -> FloatArray:
    """Ranks from 1 (n,); equal values have the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(counts) - 0.5 * (counts - 1))[place]
    return ranks
