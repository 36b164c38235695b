"""Columns of few values that contradict each other: for example, a failure without a cause.

Of n >= 50 rows that agree in all related columns, k have the same value in one more column. That
value has the share (k - 1/2) / n. Values that are rare in the whole table do not count, nor do
columns that more than a few rows clearly contradict. The surprise of a row is -log of the share of
training rows whose rarest value is at least as rare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.detector.surprise.tails import UpperTail
from kpca_apps.novelty.evidence import Evidence
from kpca_apps.novelty.relations.conditional.counts import (
    LevelCells,
    LevelColumn,
    RowsAlike,
    contradicted,
)
from kpca_apps.novelty.relations.conditional.expected import FEW, FEW_SHARE
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray

MOST_VALUES = 10  # columns with more distinct values are not judged as flags
LEAST_ALIKE = 50  # minimum number of rows with a combination of values of the other columns
LEAST_NATS = 20.0  # minimum mutual information of two related columns, over all rows
STEP = np.uint64(0x9E3779B97F4A7C15)  # multiplier of a row's hash, from the golden ratio
# A value is contradicted if its share of similar rows is below CONTRADICTED times its share of all
# rows. It is clearly wrong if its share of similar rows is below CLEARLY times its share of all
# rows, and if at least the share AGREEING of similar rows agree on another value.
CONTRADICTED, CLEARLY, AGREEING = 0.2, 0.05, 0.95
UNSEEN = 3  # rule of three: at most 3 / n of all rows hold a value unseen in n rows


@dataclass(frozen=True, eq=False)
class FlagCounts:
    """Number of rows with each value of a column, for each combination of other columns' values."""

    target: Annotated[int, Meta(ge=0)]  # index of the column
    given: tuple[Annotated[int, Meta(ge=0)], ...]  # indices of the other columns
    keys: Annotated[IntArray, "g"]  # hashes of frequent combinations, increasing
    counts: Annotated[IntArray, "g k", Meta(ge=0, le=2**53)]
    share: Annotated[FloatArray, "k", Meta(ge=0, le=1)]  # share of all rows with each value

    def validate(self) -> None:
        """Refuse keys out of order, and counts without `given` columns."""
        if not self.given or (np.diff(self.keys) <= 0).any():
            raise ValueError("patterns out of order")

    @classmethod
    def of(cls, target: int, given: tuple[int, ...], codes: Sequence[IntArray]) -> FlagCounts:
        """Count rows by the target's value, for each frequent combination of `given` values."""
        hashes = _hashes(codes, given)
        keys, place, n_rows = np.unique(hashes, return_inverse=True, return_counts=True)
        n_values = int(codes[target].max()) + 1
        size = len(keys) * n_values
        counts = np.bincount(place * n_values + codes[target], minlength=size)
        counts, many = counts.reshape(len(keys), n_values), n_rows >= LEAST_ALIKE
        return cls(target, given, keys[many], counts[many], counts.sum(axis=0) / counts.sum())

    def judge(self, codes: Sequence[IntArray], own: BoolArray) -> _Judged:
        """Return how rare each row's target value is among other rows with its `given` values."""
        key, value = _hashes(codes, self.given), codes[self.target]
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        known = value < self.counts.shape[1]
        at = np.where(known, value, 0)
        n_same = np.where(known, self.counts[place, at], 0) - own
        n_rows = self.counts.sum(axis=1)[place] - own
        share = (n_same + 0.5) / (n_rows + 1)
        usual = np.maximum(self.share[at], 1.0 / n_rows)
        counts = known & (self.keys[place] == key) & (share < CONTRADICTED * usual)
        clear = counts & ((n_same + UNSEEN) / (n_rows + 1) < CLEARLY * usual)
        clear &= self.counts.max(axis=1)[place] >= AGREEING * n_rows
        return _Judged(np.where(counts, share, 1.0), clear, place, n_rows)


class _Judged(NamedTuple):
    """How rare the values of n rows are among rows that agree in the other columns."""

    share: FloatArray  # share of the value; 1 if it is not contradicted
    clear: BoolArray  # whether the value is clearly wrong
    # Index in `FlagCounts.keys` of the other columns' values; arbitrary if it is not found there.
    place: IntArray
    n_rows: IntArray  # number of other rows that agree in the other columns


@dataclass(frozen=True, eq=False)
class Flags:
    """The `FlagCounts` of the columns with few distinct values."""

    counts: tuple[FlagCounts, ...]
    tail: UpperTail  # upper tail of the values that `_rarest` returns for the training rows

    @classmethod
    def learn(cls, columns: Sequence[LevelColumn], codes: Sequence[IntArray]) -> Flags:
        """Find related columns of few distinct values; count how their values (`codes`) combine."""
        few = [place for place, of in enumerate(columns) if 2 <= of.n_codes <= MOST_VALUES + 1]
        related = _related([codes[place] for place in few])
        counts = [
            FlagCounts.of(few[t], tuple(few[g] for g in np.flatnonzero(related[t])), codes)
            for t in np.flatnonzero(related.any(axis=1))
        ]
        own = np.ones(len(codes[0]) if codes else 0, dtype=bool)
        most = max(FEW, FEW_SHARE * len(own))
        judged = [(of, of.judge(codes, own)) for of in counts if len(of.keys)]
        strict = [(of, by) for of, by in judged if by.clear.sum() <= most]
        rarest = _rarest([by for _, by in strict], own) if strict else np.zeros(1)
        return cls(tuple(of for of, _ in strict), UpperTail.fit(rarest, ends=True))

    def judge(
        self, columns: Sequence[LevelColumn], cells: Sequence[LevelCells], own: BoolArray
    ) -> tuple[FloatArray, tuple[Evidence, ...]]:
        """Return -log of the p-value of each row's rarest value, (n,), and evidence by row."""
        codes, best = [of.codes for of in cells], dict[int, Evidence]()
        judged = [of.judge(codes, own) for of in self.counts]
        for of, by in zip(self.counts, judged, strict=True):
            column = columns[of.target]
            for row in np.flatnonzero(by.clear).tolist():
                counts, log_p = of.counts[by.place[row]], float(np.log(by.share[row]))
                most = int(counts.argmax())
                # A missing cell in the other rows does not contradict a value.
                if most != column.missing and (row not in best or log_p < best[row].log_p):
                    shared = tuple((columns[at].name, cells[at].text(row)) for at in of.given)
                    alike = RowsAlike(shared, int(counts[most]), int(by.n_rows[row]))
                    seen, expected = cells[of.target].text(row), column.text(most)
                    best[row] = contradicted(row, column.name, seen, expected, log_p, alike)
        return self.tail(_rarest(judged, own)), tuple(best[row] for row in sorted(best))


def _rarest(judged: Sequence[_Judged], own: BoolArray) -> FloatArray:
    """Return -log of the smallest share in each row, (n,)."""
    shares = [of.share for of in judged]
    return -np.log(np.min(shares, axis=0)) if shares else np.zeros(len(own))


def _hashes(codes: Sequence[IntArray], given: Sequence[int]) -> IntArray:
    key = np.zeros(len(codes[0]), dtype=np.uint64)
    for place in given:
        key = key * STEP + codes[place].astype(np.uint64) + np.uint64(1)
    return key.view(np.int64)


def _related(codes: Sequence[IntArray]) -> BoolArray:
    """Return which pairs of columns have enough mutual information, (c, c)."""
    if len(codes) < 2:
        return np.zeros((len(codes), len(codes)), dtype=bool)
    starts = np.cumsum([0, *(int(of.max()) + 1 for of in codes)])
    flags = np.zeros((starts[-1], len(codes[0])), dtype=np.float32)
    for start, of in zip(starts, codes, strict=False):
        flags[start + of, np.arange(len(of))] = 1.0
    both = (flags @ flags.T).astype(np.float64)
    single = np.diag(both)
    chance = np.outer(single, single) / len(codes[0])
    nats = both * np.log(np.where(both > 0, both, 1.0) / np.where(chance > 0, chance, 1.0))
    of_columns = np.add.reduceat(np.add.reduceat(nats, starts[:-1], axis=0), starts[:-1], axis=1)
    related = of_columns > LEAST_NATS
    np.fill_diagonal(related, False)
    return related
