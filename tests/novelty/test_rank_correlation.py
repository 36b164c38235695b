"""Rank correlation beside SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from kpca_apps.novelty.rank_correlation import rank_correlation

NUMBERS = st.lists(st.integers(-3, 3) | st.floats(-1e6, 1e6), min_size=2, max_size=30)


@given(NUMBERS)
def test_it_is_scipys(values: list[float]) -> None:
    x = np.array(values, dtype=float)
    y = np.roll(x, 1) + np.arange(len(x)) % 3
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert math.isnan(rank_correlation(x, y))
    else:
        assert rank_correlation(x, y) == pytest.approx(float(spearmanr(x, y).statistic), abs=1e-12)


def test_a_constant_column_has_none() -> None:
    assert math.isnan(rank_correlation(np.ones(5), np.arange(5)))
