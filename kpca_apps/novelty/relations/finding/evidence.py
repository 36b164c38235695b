"""Permutation test of whether a rule between columns holds by more than chance.

Shuffling any column of the rule must break the rule in far more rows, at a significance level
corrected for the number of rules tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from kpca_apps.novelty.relations.checking import Cells, Checked, check
from kpca_apps.novelty.relations.rule import Rule
from kpca_apps.system.arrays import IntArray

NEARLY = 0.97
"""Minimum number of rows in which a rule holds, divided by the number to which it applies."""
LEVEL = 1e-3
"""Expected number of rules of a table that hold by chance."""
FEWER = 5.0
"""Minimum ratio of the number of broken rows after shuffling a column to the number before."""
_AGREE = 0.9  # minimum share of rows in which a rule holds, among rows without the commonest values


def beyond_chance(rule: Rule, cells: Cells, n_tried: float, rng: np.random.Generator) -> bool:
    """Whether a rule of several columns holds in these rows by more than chance."""
    seen = check(rule, cells)
    if seen.share < NEARLY:
        return False
    n_broken = int(seen.broken.sum())
    for name in rule.columns:
        shuffled = check(rule, replace(cells, shuffled={name: rng.permutation(len(cells))}))
        # Compare shares, not counts, because shuffling also moves missing cells.
        n_expected = (1 - shuffled.share) * int(seen.applies.sum())
        if not shuffled.applies.any() or not are_far_fewer(n_broken, n_expected, LEVEL / n_tried):
            return False
    return True


def holds_elsewhere(seen: Checked, columns: Iterable[IntArray], least: int = 1) -> bool:
    """Whether `least` or more rows lack a column's commonest value, and mostly obey the rule."""
    others = np.zeros(len(seen.applies), dtype=np.bool_)
    for codes in columns:
        others |= seen.applies & (codes != np.argmax(np.bincount(codes[seen.applies])))
    return bool(others.sum() >= least and np.mean(seen.holds[others]) >= _AGREE)


def are_far_fewer(n_seen: int, n_expected: float, level: float) -> bool:
    """Whether a count is `FEWER` times smaller than expected, at a significance level."""
    return n_seen * FEWER <= n_expected and tail(n_seen, n_expected) <= level


def tail(n_seen: int, n_expected: float) -> float:
    """Return Chernoff's bound of the probability of at most `n_seen` Poisson events."""
    if n_seen >= n_expected:
        return 1.0
    return float(np.exp(n_seen - n_expected) * (n_expected / max(n_seen, 1)) ** n_seen)
