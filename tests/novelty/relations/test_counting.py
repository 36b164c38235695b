"""What is seen of very many pairs of columns in compiled counts: nothing that holds is missed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.relations.conditional import counts as counted
from kpca_apps.novelty.relations.conditional.counts import LevelColumn
from kpca_apps.system.arrays import IntArray


def columns_of(seed: int, n: int, most: int) -> tuple[list[LevelColumn], list[IntArray]]:
    """Columns of some of which others hang, with gaps and levels that were dropped."""
    rng = np.random.default_rng(seed)
    shared = rng.integers(0, most, n)
    columns, codes = [], []
    for place in range(12):
        n_levels = int(rng.integers(2, most))
        own = rng.integers(0, n_levels, n)
        own = np.where(rng.random(n) < rng.random(), shared % n_levels, own)
        levels, own = np.unique(own, return_inverse=True)
        own = np.where(rng.random(n) < 0.05 * (place % 3), len(levels), own)
        n_of = np.maximum(np.bincount(own, minlength=len(levels) + 1), 1)
        spec = ColumnSpec(f"c{place}", "category", "")
        columns.append(LevelColumn(spec.name, spec, tuple(map(str, levels)), n_of))
        codes.append(np.where(rng.random(n) < 0.01 * (place % 2), len(levels) + 1, own))
    return columns, codes


@pytest.mark.parametrize(("n", "most"), [(300, 8), (1_000, 60), (800, 500)])
def test_no_pair_is_passed_over_that_says_enough(n: int, most: int) -> None:
    columns, codes = columns_of(n, n, most)
    tells = counted._telling(columns, codes)
    n_enough = 0
    for a, b in combinations(range(len(columns)), 2):
        first, second, n_of = counted.joint_counts(
            codes[a], codes[b], columns[a].n_codes, columns[b].n_codes
        )
        for (g, given), (t, value) in (((a, first), (b, second)), ((b, second), (a, first))):
            column = columns[t]
            gain, _ = counted.gain_of(given, value, n_of, column, missing=columns[g].missing)
            enough = gain > counted.LEAST_SHARE * column.nats
            if enough and gain * column.counts.sum() > counted.LEAST_NATS:
                assert tells[g, t]
                n_enough += 1
    assert 0 < n_enough and tells.sum() <= n_enough + 2
