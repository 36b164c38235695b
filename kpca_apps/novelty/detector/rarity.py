"""How rare a score is among the rows a model was learned from, where no clean rows calibrate it.

Up to a high quantile the share of rows that score as high is counted. Beyond it the excesses follow
a generalised Pareto distribution (Pickands 1975), which goes on where no row has been: there a
share is extrapolated, and beyond ten times the rows it is said as a bound only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.novelty.result import ScoreMark, ScoreScale, TailShare
from kpca_apps.novelty.row_values import blocks_of, row_values

__all__ = ["Rarity"]

FloatArray = NDArray[np.float64]

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
    """Shares of rows, like those a model was learned from, that score at least as high.

    Attributes
    ----------
    n_rows : int
        Rows it was fitted to.
    knots : (k,) array
        Scores, increasing; the tail begins at the last.
    shares : (k,) array
        The share at each, decreasing; between them it is linear.
    tail_share : float
        The share just above the last knot, where rows do not tie its own.
    scale, shape : float
        Of the generalised Pareto distribution of the excesses over the last knot.

    References
    ----------
    Pickands, Statistical inference using extreme order statistics, Annals of Statistics 3, 1975.
    Hosking & Wallis, Parameter and quantile estimation for the generalized Pareto distribution,
    Technometrics 29, 1987 (probability-weighted moments).
    Vehtari, Simpson, Gelman, Yao & Gabry, Pareto smoothed importance sampling, Journal of Machine
    Learning Research 25, 2024 (length of the tail, prior of its shape).

    Examples
    --------
    >>> rarity = Rarity.fit(np.random.default_rng(0).exponential(size=1_000))
    >>> [rarity.in_words(share) for share in rarity.share(np.array([0.1, 3.0, 8.0, 30.0]))]
    ['92 in 100', '1 in 21', 'about 1 in 1,300', '< 1 in 10,000']
    """

    n_rows: Annotated[int, Meta(ge=2)]
    knots: Annotated[FloatArray, "k"]
    shares: Annotated[FloatArray, "k"]
    tail_share: Annotated[float, Meta(gt=0)]
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
        shape = _shape(excesses)
        # Where no row is beyond, any unit will do: the next score is rarer than all.
        mean = float((excesses / len(excesses)).sum()) if len(excesses) else 0.0
        unit = mean or start - float(knots[0]) or abs(start) or 1.0
        return cls(n, knots, shares, (len(excesses) + 1.0) / (n + 1.0), unit * (1 - shape), shape)

    def share(self, scores: FloatArray) -> FloatArray:
        """Share of rows that would score at least as high, strictly decreasing in the score.

        Parameters
        ----------
        scores : (r,) array
            Finite, in memory or mapped from a file.

        Returns
        -------
        (r,) array
            In (0, 1); of very many rows, mapped from a temporary file. Scores that differ by
            rounding only may share one.
        """
        found: FloatArray = row_values(len(scores), np.float64)
        for block in blocks_of(len(scores)):
            found[block] = self._share(np.asarray(scores[block], dtype=np.float64))
        return found

    def _share(self, scores: FloatArray) -> FloatArray:
        first, start = self.knots[0], self.knots[-1]
        below = np.maximum(first - scores, 0.0)
        common = 1.0 - (1.0 - self.shares[0]) * (self.scale / (self.scale + below))
        counted = np.interp(scores, self.knots, self.shares)
        beyond = np.maximum(scores - start, 0.0) / self.scale
        rare = self.tail_share * (1.0 + self.shape * beyond) ** (-1.0 / self.shape)
        share = np.where(scores < first, common, np.where(scores <= start, counted, rare))
        # A share is never 0, nor 1: not beyond what floats can hold either.
        return np.clip(share, np.finfo(np.float64).tiny, np.nextafter(1.0, 0.0))

    def describe(self, share: float) -> TailShare:
        """Return a share with its words."""
        return TailShare(share, self.in_words(share))

    def in_words(self, share: float) -> str:
        """Say a share as "1 in N", as far as the rows bear it.

        Returns
        -------
        str
            "1 in N" as counted, "about 1 in N" where that is extrapolated, "< 1 in N" beyond ten
            times the rows.
        """
        if share >= COMMON:
            return f"{min(round(100 * share), 99)} in 100"
        if share * self._farthest < 1.0:
            return f"< 1 in {self._farthest:,}"
        n = 1.0 / share
        return self._one_in(round(n, 1 - math.floor(math.log10(n))))

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
        n, farthest = self.n_rows, self._farthest
        powers = range(1, math.floor(math.log10(farthest)) + 1)
        return ScoreScale(
            name="how rare",
            statement=(
                f"How rare: how many of the rows like the {n:,} that the model was learned from "
                f'would score so high. Beyond 1 in {n:,} that is extrapolated ("about"), beyond '
                f'1 in {farthest:,} only a bound is said ("<").'
            ),
            marks=tuple(ScoreMark(self._score(0.1**p), self._one_in(10**p)) for p in powers),
        )

    def _score(self, share: float) -> float:
        """Return the score that a share of the rows reach."""
        if share >= self.tail_share:
            return float(np.interp(-share, -self.shares, self.knots))
        beyond = ((self.tail_share / share) ** self.shape - 1.0) / self.shape
        return float(self.knots[-1] + self.scale * beyond)


def _shape(excesses: FloatArray) -> float:
    """Shape of the tail by probability-weighted moments, drawn to the prior and bounded."""
    n = len(excesses)
    found = 0.0
    if n:
        # Hosking & Wallis's plotting positions, of the excesses in increasing order.
        above = (n - np.arange(n) - 0.65) / n
        mean = excesses.mean()
        found = 2.0 - mean / (mean - 2.0 * (above * excesses).mean())
    return float(np.clip((n * found + PRIOR_WEIGHT * PRIOR_SHAPE) / (n + PRIOR_WEIGHT), *SHAPES))
