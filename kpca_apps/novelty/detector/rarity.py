"""How rare a score is among the rows a model was learned from, where no clean rows calibrate it.

Up to a high quantile the share of rows that score as high is counted. Beyond it the excesses follow
a generalised Pareto distribution (Pickands 1975), which goes on where no row has been: there a
share is extrapolated, and beyond ten times the rows it is said as a bound only.

References
----------
Pickands, Statistical inference using extreme order statistics, Annals of Statistics 3, 1975.
Hosking & Wallis, Parameter and quantile estimation for the generalized Pareto distribution,
Technometrics 29, 1987 (probability-weighted moments).
Vehtari, Simpson, Gelman, Yao & Gabry, Pareto smoothed importance sampling, Journal of Machine
Learning Research 25, 2024 (length of the tail, prior of its shape).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.result import ScoreMark, ScoreScale, TailShare
from kpca_apps.system.arrays import FloatArray

MAX_KNOTS = 256
# As many excesses as Vehtari et al. take: min(n / 5, 3 sqrt(n)).
TAIL_PART, TAIL_FACTOR = 0.2, 3.0
# Their weak prior too: few excesses say little of the shape, which is drawn to 1/2 with the weight
# of ten more. It is to the side of saying "less rare".
PRIOR_SHAPE, PRIOR_WEIGHT = 0.5, 10.0
# Of the shape. At 0 shares would reach 0, and rows lose their order, 700 scales beyond where the
# tail begins; at .05 they do not within 1e16. At 1 the mean excess, which gives the scale, would
# be infinite.
SHAPES = (0.05, 0.9)
# "1 in N" is said up to this multiple of the rows; beyond, that it is less.
FARTHEST = 10
COMMON = 0.1  # shares from here on are said as "23 in 100"


@dataclass(frozen=True, eq=False)
class Rarity:
    """Shares of rows, like those a model was learned from, that score at least as high."""

    n_rows: Annotated[int, Meta(ge=2)]  # it was fitted to
    knots: Annotated[FloatArray, "k"]  # scores, increasing; the tail begins at the last
    shares: Annotated[FloatArray, "k"]  # at each, decreasing; between them linear
    # The share just above the last knot, where rows do not tie its own.
    tail_share: Annotated[float, Meta(gt=0)]
    # Of the generalised Pareto distribution of the excesses over the last knot.
    scale: Annotated[float, Meta(gt=0)]
    shape: Annotated[float, Meta(ge=SHAPES[0], le=SHAPES[1])]

    def validate(self) -> None:
        """Refuse what no fit leads to."""
        sound = (
            1 <= len(self.knots) <= MAX_KNOTS
            and (np.diff(self.knots) > 0).all()
            and (np.diff(self.shares) < 0).all()
            and 1 > self.shares[0] >= self.shares[-1] >= self.tail_share
        )
        if not sound:
            raise ValueError("shares out of order")

    @classmethod
    def fit(cls, scores: FloatArray) -> Self:
        """Learn from finite scores (n,), n >= 2, of rows that the model has not adapted to."""
        ordered = np.sort(np.asarray(scores, dtype=np.float64))
        n = len(ordered)
        n_tail = min(math.ceil(min(TAIL_PART * n, TAIL_FACTOR * math.sqrt(n))), n - 1)
        places = np.linspace(0, n - n_tail - 1, min(n - n_tail, MAX_KNOTS)).round()
        knots = np.unique(ordered[places.astype(np.int64)])
        # Of n values the i-th smallest is exceeded by (n + 1 - i) / (n + 1) of all, on average.
        shares = (n - np.searchsorted(ordered, knots)) / (n + 1.0)
        start = float(knots[-1])
        excesses = ordered[ordered > start] - start
        n_beyond, found, mean = len(excesses), 0.0, 0.0
        if n_beyond:
            # The shape by probability-weighted moments, with Hosking & Wallis's plotting positions
            # of the excesses in increasing order.
            above = (n_beyond - np.arange(n_beyond) - 0.65) / n_beyond
            found = 2.0 - excesses.mean() / (excesses.mean() - 2.0 * (above * excesses).mean())
            mean = float((excesses / n_beyond).sum())
        drawn = (n_beyond * found + PRIOR_WEIGHT * PRIOR_SHAPE) / (n_beyond + PRIOR_WEIGHT)
        shape = float(np.clip(drawn, *SHAPES))
        # Where no row is beyond, any unit will do: the next score is rarer than all.
        unit = mean or start - float(knots[0]) or abs(start) or 1.0
        return cls(n, knots, shares, (n_beyond + 1.0) / (n + 1.0), unit * (1 - shape), shape)

    def share(self, scores: FloatArray) -> FloatArray:
        """Share of rows (r,), in (0, 1), that would score at least as high as finite scores (r,).

        Strictly decreasing in the score, but for scores that differ by rounding only.
        """
        first, start = self.knots[0], self.knots[-1]
        below = np.maximum(first - scores, 0.0)
        common = 1.0 - (1.0 - self.shares[0]) * (self.scale / (self.scale + below))
        counted = np.interp(scores, self.knots, self.shares)
        beyond = np.maximum(scores - start, 0.0) / self.scale
        rare = self.tail_share * (1.0 + self.shape * beyond) ** (-1.0 / self.shape)
        share = np.where(scores < first, common, np.where(scores <= start, counted, rare))
        # A share is never 0, nor 1: not beyond what floats can hold either.
        found: FloatArray = np.clip(share, np.finfo(np.float64).tiny, np.nextafter(1.0, 0.0))
        return found

    def describe(self, share: float) -> TailShare:
        """Say a share as "1 in N", as far as the rows bear it.

        "1 in N" as counted, "about 1 in N" where that is extrapolated, "< 1 in N" beyond ten times
        the rows.
        """
        if share >= COMMON:
            return TailShare(share, f"{min(round(100 * share), 99)} in 100")
        if share * self._farthest < 1.0:
            return TailShare(share, f"< 1 in {self._farthest:,}")
        n = 1.0 / share
        return TailShare(share, self._one_in(round(n, 1 - math.floor(math.log10(n)))))

    @property
    def _farthest(self) -> int:
        """Return how far "1 in N" is said, in two digits."""
        farthest = FARTHEST * self.n_rows
        unit: int = 10 ** (math.floor(math.log10(farthest)) - 1)
        return farthest // unit * unit

    def _one_in(self, n: float) -> str:
        return f"{'about ' if n > self.n_rows else ''}1 in {n:,.0f}"

    @property
    def scale_of_scores(self) -> ScoreScale:
        """What shares mean, and the scores that 1 in 10, 1 in 100 and so on of the rows reach."""
        n, farthest, marks = self.n_rows, self._farthest, []
        for power in range(1, math.floor(math.log10(farthest)) + 1):
            share = 0.1**power
            if share >= self.tail_share:
                score = float(np.interp(-share, -self.shares, self.knots))
            else:
                beyond = ((self.tail_share / share) ** self.shape - 1.0) / self.shape
                score = float(self.knots[-1] + self.scale * beyond)
            marks.append(ScoreMark(score, self._one_in(10**power)))
        return ScoreScale(
            name="how rare",
            statement=(
                f"How rare: how many of the rows like the {n:,} that the model was learned from "
                f'would score so high. Beyond 1 in {n:,} that is extrapolated ("about"), beyond '
                f'1 in {farthest:,} only a bound is said ("<").'
            ),
            marks=tuple(marks),
        )
