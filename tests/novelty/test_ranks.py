"""Ranks are those of a sort of all rows, whatever blocks and ranges are sorted at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.novelty import ranks as of_ranks
from kpca_apps.novelty.findings.listed_rows import top_rows
from kpca_apps.novelty.ranks import novelty_ranks


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
    order = np.array(sorted(range(n), key=lambda row: (-scores[row], -raw[row], row)), int)
    np.testing.assert_array_equal(ranks[order], np.arange(1, n + 1))
    np.testing.assert_array_equal(top_rows(ranks, 5), order[:5])
