"""How rare a score is among the training rows, when no clean rows calibrate it.

Rarity is the counted share of training rows that score as high, never extrapolated: a score above
all of them is only known to be rarer than each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.result import ScoreMark, ScoreScale, TailShare
from kpca_apps.system.arrays import FloatArray

MAX_KNOTS = 256  # half are the highest scores, half are quantiles of all scores
COMMON = 0.1  # larger shares are written as "23 in 100"


@dataclass(frozen=True, eq=False)
class Rarity:
    """Empirical distribution of the scores of the training rows."""

    n_rows: Annotated[int, Meta(ge=2)]
    knots: Annotated[FloatArray, "k"]  # some of the scores, increasing
    counts: Annotated[FloatArray, "k"]  # number of rows that score at least a knot, decreasing

    def validate(self) -> None:
        """Raise ValueError for arrays that no fit gives."""
        sound = (
            len(self.knots) >= 1
            and (np.diff(self.knots) > 0).all()
            and (np.diff(self.counts) <= 0).all()
            and self.n_rows >= self.counts[0]
            and self.counts[-1] >= 1
        )
        if not sound:
            raise ValueError("counts out of order")

    @classmethod
    def fit(cls, scores: FloatArray) -> Self:
        """Learn from finite scores (n,), n >= 2, of rows that the model has not seen."""
        ordered = np.sort(np.asarray(scores, dtype=np.float64))
        n, half = len(ordered), MAX_KNOTS // 2
        quantiles = np.linspace(0, n - 1, half).round().astype(np.int64)
        places = np.union1d(quantiles, np.arange(max(n - half, 0), n))
        knots = np.unique(ordered[places])
        return cls(n, knots, (n - np.searchsorted(ordered, knots)).astype(np.float64))

    @classmethod
    def pooled(cls, parts: Sequence[tuple[Self, float]]) -> Self:
        """Join the distributions of groups, each with the number of rows it represents."""
        if len(parts) == 1:
            return parts[0][0]
        knots = np.unique(np.concatenate([part.knots for part, _ in parts]))
        # Each count includes the new row itself, which must count only once.
        above = np.sum([n * (part.count(knots) - 1.0) / part.n_rows for part, n in parts], axis=0)
        return cls(round(sum(n for _, n in parts)), knots, 1.0 + above)

    def count(self, scores: FloatArray) -> FloatArray:
        """Return the number of rows that score at least as high as each row, itself included."""
        return np.interp(scores, self.knots, self.counts, right=1.0)

    def share(self, scores: FloatArray) -> FloatArray:
        """Return the share of rows that would score at least as high as each row, (r,)."""
        # The expected share above the i-th largest of n values is i / (n + 1).
        return self.count(scores) / (self.n_rows + 1.0)

    def describe(self, share: float) -> TailShare:
        """Write a share as "1 in N", or "< 1 in n" for a score above all n rows."""
        if share >= COMMON:
            return TailShare(share, f"{min(round(100 * share), 99)} in 100")
        n = round(1.0 / share)
        if n > self.n_rows:
            return TailShare(share, f"< 1 in {self.n_rows:,}")
        return TailShare(share, f"1 in {round(n, 1 - math.floor(math.log10(n))):,}")

    @property
    def scale_of_scores(self) -> ScoreScale:
        """The scale of rarities, with the scores that 1 in 10, 1 in 100 ... rows reach."""
        n, shares = self.n_rows, self.share(self.knots)
        powers = range(1, math.floor(math.log10(n)) + 1)
        marks = [
            ScoreMark(float(np.interp(-(0.1**power), -shares, self.knots)), f"1 in {10**power:,}")
            for power in powers
        ]
        return ScoreScale(
            name="how rare",
            statement=(
                f"How rare: the share of the {n:,} rows that the model was learned from that score "
                f'at least as high; "< 1 in {n:,}" is higher than all of them.'
            ),
            marks=tuple(marks),
        )
