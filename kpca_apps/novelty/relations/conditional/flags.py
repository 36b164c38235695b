"""Columns of few values given each other: a machine marked as failed without any of its causes.

Of the n rows that agree with a row in all other such columns that have to do with one, k have its
value there: where n is at least 50, the value has the share (k - 1/2) / n. It counts where the
value is far more frequent beside other patterns: a flag that is rare everywhere contradicts
nothing. Two values are a flag, whatever their digits. A column that more than a few rows clearly
contradict is loose by its nature, and is not judged. The surprise of a row is by the share of the
rows learned from whose rarest value is as rare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.detector.surprise.tails import UpperTail
from kpca_apps.novelty.evidence import Evidence
from kpca_apps.novelty.relations.conditional.alike import RowsAlike, contradicted
from kpca_apps.novelty.relations.conditional.counts import Cells, LevelColumn
from kpca_apps.novelty.relations.conditional.expected import FEW, FEW_SHARE
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray

MOST_VALUES = 10  # of a column
LEAST_ALIKE = 50  # rows that agree in the other columns
LEAST_NATS = 20.0  # that two columns have to say of each other in all
# Codes times the powers of an odd number (that of the golden ratio) are one number of a row.
STEP = np.uint64(0x9E3779B97F4A7C15)
# A value counts where it is at most so frequent as among all rows; it is named where it is so much
# rarer still, by all that the rows may leave unsaid, and most rows agree on another.
CONTRADICTED, CLEARLY, AGREEING = 0.2, 0.05, 0.95
UNSEEN = 3  # rows that may have had it where n do not, so that its share is 3 / n at most


@dataclass(frozen=True, eq=False)
class FlagCounts:
    """How many rows have each value of a column beside each pattern of others."""

    target: Annotated[int, Meta(ge=0)]  # place of the column
    given: tuple[Annotated[int, Meta(ge=0)], ...]  # those of the others
    keys: Annotated[IntArray, "g"]  # of the patterns that many rows have, increasing
    counts: Annotated[IntArray, "g k", Meta(ge=0, le=2**53)]
    share: Annotated[FloatArray, "k", Meta(ge=0, le=1)]  # of the rows that have each value

    def validate(self) -> None:
        """Refuse patterns out of order."""
        if not self.given or (np.diff(self.keys) <= 0).any():
            raise ValueError("patterns out of order")

    @classmethod
    def of(cls, target: int, given: tuple[int, ...], codes: Sequence[IntArray]) -> FlagCounts:
        """Count the rows of a table, (n,) codes of each column."""
        keys, place, n_rows = np.unique(
            _keys(codes, given), return_inverse=True, return_counts=True
        )
        n_values = int(codes[target].max()) + 1
        size = len(keys) * n_values
        counts = np.bincount(place * n_values + codes[target], minlength=size)
        counts, many = counts.reshape(len(keys), n_values), n_rows >= LEAST_ALIKE
        return cls(target, given, keys[many], counts[many], counts.sum(axis=0) / counts.sum())

    def ask(self, codes: Sequence[IntArray], own: BoolArray) -> _Asked:
        """Say how rare the values of rows are among those like them, (n,).

        Rows that were counted (`own`) count themselves.
        """
        key, value = _keys(codes, self.given), codes[self.target]
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
        return _Asked(np.where(counts, share, 1.0), clear, place, n_rows)


class _Asked(NamedTuple):
    """What the rows say that agree in the other columns."""

    share: FloatArray  # (n,), of the value; 1 where it contradicts nothing
    clear: BoolArray  # (n,), where it is clearly wrong
    place: IntArray  # (n,), of the pattern
    n_rows: IntArray  # (n,), other rows that agree


@dataclass(frozen=True, eq=False)
class Flags:
    """What the columns of few values of a table say of each other."""

    counts: tuple[FlagCounts, ...]
    tail: UpperTail  # of the rarest values of the rows learned from

    @classmethod
    def learn(cls, columns: Sequence[LevelColumn], codes: Sequence[IntArray]) -> Flags:
        """Learn from the codes (n,) of a table's columns of levels."""
        few = [place for place, of in enumerate(columns) if 2 <= of.n_codes <= MOST_VALUES + 1]
        tells = _tells([codes[place] for place in few])
        counts = [
            FlagCounts.of(few[t], tuple(few[g] for g in np.flatnonzero(tells[t])), codes)
            for t in np.flatnonzero(tells.any(axis=1))
        ]
        own = np.ones(len(codes[0]) if codes else 0, dtype=bool)
        most = max(FEW, FEW_SHARE * len(own))
        strict = (of for of in counts if len(of.keys) and of.ask(codes, own).clear.sum() <= most)
        found = cls(tuple(strict), UpperTail.fit(np.zeros(1), ends=True))
        if found.counts:
            rarest = found._rarest(codes, own)
            return cls(found.counts, UpperTail.fit(rarest, ends=True))
        return found

    def judge(
        self, columns: Sequence[LevelColumn], cells: Sequence[Cells], own: BoolArray
    ) -> tuple[FloatArray, tuple[Evidence, ...]]:
        """-log of the p-value of the rarest value of each row, (n,), and what is clearly wrong."""
        codes, best = [of.codes for of in cells], dict[int, Evidence]()
        for of in self.counts:
            asked, column = of.ask(codes, own), columns[of.target]
            for row in np.flatnonzero(asked.clear).tolist():
                counts, log_p = of.counts[asked.place[row]], float(np.log(asked.share[row]))
                most = int(counts.argmax())
                # That other rows lack a value says nothing against one.
                if most != column.missing and (row not in best or log_p < best[row].log_p):
                    alike = RowsAlike(
                        tuple((columns[at].name, cells[at].text(row)) for at in of.given),
                        int(counts[most]),
                        int(asked.n_rows[row]),
                    )
                    seen, expected = cells[of.target].text(row), column.text(most)
                    best[row] = contradicted(row, column.name, seen, expected, log_p, alike)
        return self.tail(self._rarest(codes, own)), tuple(best[row] for row in sorted(best))

    def _rarest(self, codes: Sequence[IntArray], own: BoolArray) -> FloatArray:
        """-log of the smallest share of a row's values, (n,)."""
        shares = [of.ask(codes, own).share for of in self.counts]
        return -np.log(np.min(shares, axis=0)) if shares else np.zeros(len(own))


def _keys(codes: Sequence[IntArray], given: Sequence[int]) -> IntArray:
    """Return one number for the values of each row in some columns, (n,)."""
    key = np.zeros(len(codes[0]), dtype=np.uint64)
    for place in given:
        key = key * STEP + codes[place].astype(np.uint64) + np.uint64(1)
    return key.view(np.int64)


def _tells(codes: Sequence[IntArray]) -> BoolArray:
    """Which columns have to do with each other, (c, c), by what they say of each other in all."""
    if len(codes) < 2:
        return np.zeros((len(codes), len(codes)), dtype=bool)
    sizes = [int(of.max()) + 1 for of in codes]
    starts = np.cumsum([0, *sizes])
    flags = np.zeros((starts[-1], len(codes[0])), dtype=np.float32)
    for start, of in zip(starts, codes, strict=False):
        flags[start + of, np.arange(len(of))] = 1.0
    both = (flags @ flags.T).astype(np.float64)
    single = np.diag(both)
    chance = np.outer(single, single) / len(codes[0])
    nats = both * np.log(np.where(both > 0, both, 1.0) / np.where(chance > 0, chance, 1.0))
    of_columns = np.add.reduceat(np.add.reduceat(nats, starts[:-1], axis=0), starts[:-1], axis=1)
    tells = of_columns > LEAST_NATS
    np.fill_diagonal(tells, False)
    return tells
