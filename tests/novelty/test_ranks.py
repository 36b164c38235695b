"""Rows are sorted and ranked whatever blocks and ranges are sorted at once, in little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.novelty import ranks as of_ranks
from kpca_apps.novelty.detector.threshold import choice_threshold
from kpca_apps.novelty.findings.duplicates import equal_rows
from kpca_apps.novelty.findings.listed_rows import top_rows
from kpca_apps.novelty.ranks import novelty_ranks, sorted_values
from kpca_apps.novelty.result import ScoreDistribution
from kpca_apps.system.files.windowed import row_values


@given(
    n=st.integers(0, 400),
    n_values=st.integers(1, 400),
    block=st.integers(1, 500),
    is_raw=st.booleans(),
)
def test_ranks_are_places_by_score_then_score_as_it_came_then_row(n, n_values, block, is_raw):
    rng = np.random.default_rng([n, n_values])
    scores = rng.choice(rng.lognormal(size=n_values), n)
    # Some scores differ by rounding only, and some rows are equal.
    scores *= 1 + rng.choice([0, 1e-12], n)
    raw = scores if is_raw else rng.integers(0, 3, n).astype(float)
    with pytest.MonkeyPatch.context() as patch:
        for name, size in {"_BLOCK": block, "_EVERY": 1 + block // 9, "_RANGE": block}.items():
            patch.setattr(of_ranks, name, size)
        ranks = novelty_ranks(scores, raw)
        np.testing.assert_array_equal(sorted_values(scores), np.sort(scores))
    order = np.array(sorted(range(n), key=lambda row: (-scores[row], -raw[row], row)), int)
    np.testing.assert_array_equal(ranks[order], np.arange(1, n + 1))
    np.testing.assert_array_equal(top_rows(ranks, 5), order[:5])


N_ROWS = 4_000_000


@pytest.mark.parametrize(
    ("of_rows", "dtype"),
    [
        (partial(top_rows, count=9), np.int64),
        (partial(choice_threshold, count=9), np.float64),
        (partial(ScoreDistribution.of, n_flagged=9), np.float64),
        (equal_rows, np.uint64),
    ],
    ids=["the first rows", "the threshold", "the figure of scores", "repeated rows"],
)
def test_memory_does_not_hold_a_number_of_each_row(
    of_rows: Callable[..., object], dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_ranks, "_RANGE", 1 << 17)
    values = row_values(N_ROWS, dtype)
    values[:] = np.random.default_rng(0).permutation(N_ROWS) + 1
    tracemalloc.start()
    try:
        of_rows(values)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * N_ROWS
