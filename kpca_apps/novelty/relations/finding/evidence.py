"""Whether a rule between columns holds by more than chance.

With one of its columns shuffled a rule breaks as often as chance has it. It is told if shuffling
any of them breaks it in far more rows, beyond what the number of rules tried would give.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from kpca_apps.novelty.relations.checking import Cells, check
from kpca_apps.novelty.relations.rule import Rule
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray

NEARLY = 0.97
"""Share of the rows a rule says something of in which it must hold."""
LEVEL = 1e-3
"""Expected number of a table's rules that hold by chance."""
FEWER = 5.0
"""So many times fewer rows break a rule than with a column shuffled."""


@dataclass(frozen=True)
class Shuffled(Cells):
    """The cells of a table with those of one column in another order."""

    name: str = ""
    order: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def values(self, name: str) -> FloatArray:
        """Numbers of a column."""
        values = super().values(name)
        return values[self.order] if name == self.name else values

    def texts(self, name: str) -> pl.Series:
        """Texts of a column."""
        texts = super().texts(name)
        return texts.gather(self.order) if name == self.name else texts

    def codes(self, name: str) -> IntArray:
        """Codes of a column."""
        codes = super().codes(name)
        return codes[self.order] if name == self.name else codes

    def present(self, name: str) -> BoolArray:
        """Whether cells of a column hold anything."""
        present = super().present(name)
        return present[self.order] if name == self.name else present


def beyond_chance(rule: Rule, cells: Cells, n_tried: float, rng: np.random.Generator) -> bool:
    """Whether a rule of several columns holds in these rows by more than chance."""
    seen = check(rule, cells)
    if seen.share < NEARLY:
        return False
    n_broken = int(seen.broken.sum())
    for name in rule.columns:
        order = rng.permutation(len(cells))
        shuffled = check(rule, Shuffled(cells.table, cells.formats, name, order))
        # Shuffling also moves gaps: the share is of rows the rule says something of.
        n_expected = (1 - shuffled.share) * int(seen.applies.sum())
        if not int(shuffled.applies.sum()):
            return False
        if not are_far_fewer(n_broken, n_expected, LEVEL / n_tried):
            return False
    return True


def are_far_fewer(n_seen: int, n_expected: float, level: float) -> bool:
    """Whether so much fewer are seen than are expected that chance gives it at such a level."""
    return n_seen * FEWER <= n_expected and tail(n_seen, n_expected) <= level


def tail(n_seen: int, n_expected: float) -> float:
    """Bound the chance of so few events where so many are expected (Chernoff, of Poisson's law)."""
    if n_seen >= n_expected:
        return 1.0
    return float(np.exp(n_seen - n_expected) * (n_expected / max(n_seen, 1)) ** n_seen)
