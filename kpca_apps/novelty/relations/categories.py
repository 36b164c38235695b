"""A category given all the other columns of its row, numbers among them.

Each other column g, a number cut at its octiles, and pairs of those that say most, give the
probability P(v | g) of each value v of a category as `counts.py` does. They are pooled with weights
(a logarithmic opinion pool),

    P(v | row) ~ q(v) prod_g (P(v | g) / q(v))^w_g

that maximise the likelihood of the rows, each left out: columns that repeat each other share a
weight, and several that say little say much together. What counts against a cell is the probability
of all values at most as likely; of a row, that of its least likely category, and never less than
the share of the rows learned from that have one as unlikely.

References
----------
G. E. Hinton, Training products of experts by minimizing contrastive divergence, Neural Computation
14, 2002. C. Genest, J. V. Zidek, Combining probability distributions, Statistical Science 1, 1986.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated

import numpy as np
from msgspec import Meta
from scipy.optimize import minimize

from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.detector.surprise.tails import UpperTail
from kpca_apps.novelty.magnitudes import eight_digits
from kpca_apps.novelty.relations.counts import LevelColumn, Prior, gain_of, joint_counts
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table

# Values of a category that is judged, and columns and pairs of columns that speak of it.
MOST_LEVELS, MOST_GIVEN, PAIRED, MOST_PAIRS = 40, 12, 5, 4
# Nats that a column has to say of a category, and a pair of columns more than either.
LEAST_NATS = 20.0
# Pairs of columns that are tried: of a table of hundreds a few would say as much as all.
MOST_TRIED = 5_000
MOST_COUNTS = 1_000_000  # of values given times values
INTERVALS = 8
# Rows that weights are learned from, and the steps and the largest weight of that.
WEIGHED, STEPS, LARGEST_WEIGHT = 2_000, 30, 1.5
# Where the weight of a column is less, it is left out.
LEAST_WEIGHT = 0.01
SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class Intervals:
    """A column of numbers or dates, cut into intervals of as many rows each."""

    spec: ColumnSpec
    edges: Annotated[FloatArray, "e"]  # between them, increasing

    def validate(self) -> None:
        """Refuse intervals out of order."""
        if self.spec.format is None or (np.diff(self.edges) <= 0).any():
            raise ValueError("intervals of no numbers")

    def codes(self, table: Table) -> IntArray:
        """Place of each cell's interval, (n,); -1 where there is no number."""
        if self.spec.name not in table.columns:
            return np.full(table.frame.height, -1, dtype=np.int64)
        values = table.column(self.spec.name).read(self.spec.format).values
        return np.where(np.isnan(values), -1, np.searchsorted(self.edges, values, side="right"))


@dataclass(frozen=True, eq=False)
class Given:
    """How many rows have each value of a category beside each of a column, or of two."""

    places: tuple[Annotated[int, Meta(ge=0)], ...]
    sizes: tuple[Annotated[int, Meta(ge=1)], ...]  # codes of each column
    shrinkage: Annotated[float, Meta(gt=0, le=1e6)]
    discount: Annotated[float, Meta(ge=0, lt=1)]
    weight: Annotated[float, Meta(ge=0, le=LARGEST_WEIGHT)]
    keys: Annotated[IntArray, "g", Meta(ge=0)]  # numbers of the values given, increasing
    counts: Annotated[IntArray, "g k", Meta(ge=0, le=2**53)]

    def validate(self) -> None:
        """Refuse what no table leads to."""
        sound = (
            len(self.places) == len(self.sizes) > 0
            and len(self.keys) > 0
            and (np.diff(self.keys) > 0).all()
        )
        if not sound:
            raise ValueError("its counts are not those of columns")

    def log_ratios(
        self, codes: Sequence[IntArray], value: IntArray, own: BoolArray, log_q: FloatArray
    ) -> FloatArray:
        """Return log P(v | g) / q(v) of each row and value, (n, k); 0 where g says nothing.

        Rows that were counted (`own`, (n,)) are left out, each for itself.
        """
        key = joined(codes, self.places, self.sizes)
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        known = self.keys[place] == key
        rows = np.flatnonzero(known & own)
        counts = self.counts[place].astype(np.float64)
        counts[rows, value[rows]] -= 1.0
        n_rows = counts.sum(axis=1)
        new = self.shrinkage + self.discount * (counts > 0).sum(axis=1)
        left = np.maximum(counts - self.discount, 0.0)
        # P / q: of a value without other rows it is that of a new one.
        ratios = (left / np.exp(log_q) + new[:, None]) / (n_rows + self.shrinkage)[:, None]
        says = known & (n_rows > 0)
        of_rows: FloatArray = np.where(says[:, None], np.log(ratios), 0.0)
        return of_rows


@dataclass(frozen=True, eq=False)
class Category:
    """What the other columns say of a category."""

    target: Annotated[int, Meta(ge=0)]  # place of the column
    given: tuple[Given, ...]

    def log_p(
        self, column: LevelColumn, codes: Sequence[IntArray], value: IntArray, own: BoolArray
    ) -> FloatArray:
        """Log probability of a value at most as likely as each row's, (n,); 0 of new ones."""
        own = own & (value < column.n_codes)
        pooled = np.tile(column.log_q, (len(value), 1))
        for of in self.given:
            pooled += of.weight * of.log_ratios(codes, value, own, column.log_q)
        pooled = np.exp(pooled - pooled.max(axis=1, keepdims=True))
        judged = value < column.missing
        of_value = pooled[np.arange(len(value)), np.where(judged, value, 0)]
        # What is as likely but for rounding is as likely.
        unlikely = np.where(pooled <= of_value[:, None] * (1 + 1e-9), pooled, 0.0).sum(axis=1)
        log_p: FloatArray = np.log(np.maximum(unlikely / pooled.sum(axis=1), SMALLEST))
        return np.where(judged, log_p, 0.0)


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of a table, each given all other columns."""

    intervals: tuple[Intervals, ...]  # their places follow those of the columns of levels
    categories: tuple[Category, ...]
    tail: UpperTail  # of what the rows learned from say

    @classmethod
    def none(cls) -> Categories:
        """Return what says nothing."""
        return cls((), (), UpperTail.fit(np.zeros(1)))

    @classmethod
    def learn(
        cls,
        table: Table,
        numbers: Sequence[ColumnSpec],
        columns: Sequence[LevelColumn],
        cells: Sequence[IntArray],
    ) -> Categories:
        """Learn from the rows of a table, given the codes (n,) of its columns of levels."""
        targets = [
            place
            for place, column in enumerate(columns)
            if column.spec.has_levels and column.missing <= MOST_LEVELS
        ]
        if not targets:
            return cls.none()
        intervals = tuple(_intervals(table, numbers))
        codes = [*_known(columns, cells), *(of.codes(table) for of in intervals)]
        names = [*(of.name for of in columns), *(of.spec.name for of in intervals)]
        sizes = [*(of.n_codes for of in columns), *(len(of.edges) + 1 for of in intervals)]
        categories = []
        for b in targets if len(targets) * len(names) <= MOST_TRIED else ():
            others = [place for place, name in enumerate(names) if name != columns[b].name]
            given = _weighted(columns[b], codes, sizes, others, cells[b])
            if given:
                categories.append(Category(b, given))
        found = replace(cls.none(), intervals=intervals, categories=tuple(categories))
        surprise = found._smallest(columns, codes, cells, np.ones(len(codes[0]), dtype=bool))
        return replace(found, tail=UpperTail.fit(surprise))

    def surprise(
        self,
        table: Table,
        columns: Sequence[LevelColumn],
        cells: Sequence[IntArray],
        own: BoolArray,
    ) -> FloatArray:
        """-log of the probability of a row's least likely category, (n,)."""
        if not self.categories:
            return np.zeros(len(own))
        codes = [*_known(columns, cells), *(of.codes(table) for of in self.intervals)]
        surprise = self._smallest(columns, codes, cells, own)
        return np.minimum(surprise, self.tail(surprise))

    def _smallest(
        self,
        columns: Sequence[LevelColumn],
        codes: Sequence[IntArray],
        cells: Sequence[IntArray],
        own: BoolArray,
    ) -> FloatArray:
        log_p = np.zeros(len(own))
        for of in self.categories:
            of_cells = of.log_p(columns[of.target], codes, cells[of.target], own)
            log_p = np.minimum(log_p, of_cells)
        # Rows alike must tie whatever order their numbers were added in.
        return eight_digits(of_smallest(log_p, len(self.categories)))


def of_smallest(log_p: FloatArray, n_tried: int) -> FloatArray:
    """-log of the probability that the smallest of so many p-values is as small (Sidak)."""
    if not n_tried:
        return np.zeros(len(log_p))
    log_p = np.maximum(log_p, np.log(SMALLEST))
    with np.errstate(divide="ignore"):  # of p-values of 1
        log_none = n_tried * np.log1p(-np.exp(log_p))
    surprise: FloatArray = np.maximum(-np.log(-np.expm1(log_none)), 0.0)
    return surprise


def joined(codes: Sequence[IntArray], places: tuple[int, ...], sizes: tuple[int, ...]) -> IntArray:
    """Return a number for each row's codes in some columns; -1 where one is -1."""
    key = np.zeros(len(codes[0]), dtype=np.int64)
    known = np.ones(len(key), dtype=bool)
    for place, size in zip(places, sizes, strict=True):
        key = key * size + codes[place]
        known &= codes[place] >= 0
    return np.where(known, key, -1)


def _numbered(key: IntArray, sizes: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Return the distinct keys, increasing, and the place among them of each row's; -1 is one."""
    n_keys = math.prod(sizes)
    if n_keys > len(key):
        keys, group = np.unique(key, return_inverse=True)
        return keys, group
    # Without sorting the rows.
    is_there = np.zeros(n_keys + 1, dtype=bool)
    is_there[key + 1] = True
    return np.flatnonzero(is_there) - 1, (np.cumsum(is_there) - 1)[key + 1]


def _known(columns: Sequence[LevelColumn], cells: Sequence[IntArray]) -> Iterator[IntArray]:
    """Codes of levels, -1 where a cell is missing or new."""
    for column, codes in zip(columns, cells, strict=True):
        yield np.where(codes < column.missing, codes, -1)


def _intervals(table: Table, numbers: Sequence[ColumnSpec]) -> Iterator[Intervals]:
    """Cut numbers that have more values than intervals."""
    for spec in numbers:
        if spec.format is None:
            continue
        values = table.column(spec.name).read(spec.format).values
        values = values[np.isfinite(values)]
        if len(np.unique(values)) > 2 * INTERVALS:
            edges = np.quantile(values, np.arange(1, INTERVALS) / INTERVALS)
            yield Intervals(spec, np.unique(edges))


@dataclass(frozen=True, eq=False)
class _Tried:
    """A column, or a pair of them, that may speak of a category."""

    gain: float  # in nats a row
    prior: Prior
    places: tuple[int, ...]

    @classmethod
    def of(
        cls,
        places: tuple[int, ...],
        codes: Sequence[IntArray],
        sizes: Sequence[int],
        column: LevelColumn,
        value: IntArray,
    ) -> _Tried:
        of_columns = tuple(sizes[place] for place in places)
        keys, group = _numbered(joined(codes, places, of_columns), of_columns)
        none = 0 if keys[0] < 0 else -1
        counted = joint_counts(group, value, len(keys), column.n_codes)
        gain, prior = gain_of(*counted, column, missing=none)
        is_large = len(keys) * column.n_codes > MOST_COUNTS
        return cls(0.0 if is_large else gain, prior, places)


def _weighted(
    column: LevelColumn,
    codes: Sequence[IntArray],
    sizes: Sequence[int],
    others: Sequence[int],
    value: IntArray,
) -> tuple[Given, ...]:
    """Find the columns that say most of a category, and the weights of what they say."""
    n = len(value)
    tried = (_Tried.of((place,), codes, sizes, column, value) for place in others)
    singles = [one for one in tried if one.gain * n > LEAST_NATS]
    singles = sorted(singles, key=lambda one: (-one.gain, one.places))[:MOST_GIVEN]
    pairs = []
    for one, other in combinations(singles[:PAIRED], 2):
        both = _Tried.of(one.places + other.places, codes, sizes, column, value)
        if (both.gain - one.gain) * n > LEAST_NATS:
            pairs.append(both)
    pairs = sorted(pairs, key=lambda one: (-one.gain, one.places))[:MOST_PAIRS]
    given = [_counted(one, codes, sizes, column, value) for one in singles + pairs]
    if not given:
        return ()
    rows = np.flatnonzero(value < column.n_codes)
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, WEIGHED).astype(np.int64))]
    of_rows, value = [of[rows] for of in codes], value[rows]
    own = np.ones(len(rows), dtype=bool)
    ratios = [of.log_ratios(of_rows, value, own, column.log_q) for of in given]
    weights = _weights(np.stack(ratios), value, column.log_q)
    return tuple(
        replace(of, weight=float(weight))
        for of, weight in zip(given, weights, strict=True)
        if weight > LEAST_WEIGHT
    )


def _counted(
    tried: _Tried,
    codes: Sequence[IntArray],
    sizes: Sequence[int],
    column: LevelColumn,
    value: IntArray,
) -> Given:
    """Count the rows of each value given and each of the category."""
    of_columns = tuple(sizes[place] for place in tried.places)
    key = joined(codes, tried.places, of_columns)
    seen = (key >= 0) & (value < column.n_codes)
    keys, group = _numbered(key[seen], of_columns)
    size = len(keys) * column.n_codes
    counts = np.bincount(group * column.n_codes + value[seen], minlength=size)
    counts = counts.reshape(len(keys), column.n_codes)
    return Given(tried.places, of_columns, *tried.prior, 0.0, keys, counts)


def _weights(ratios: FloatArray, value: IntArray, log_q: FloatArray) -> FloatArray:
    """Weights (g,) of most likelihood for log ratios (g, n, k) and the values (n,) of rows."""
    every = np.arange(len(value))
    seen = ratios[:, every, value].sum(axis=1)

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        pooled = log_q + np.tensordot(weights, ratios, 1)
        pooled -= pooled.max(axis=1, keepdims=True)
        p = np.exp(pooled)
        total = p.sum(axis=1)
        likelihood = float((pooled[every, value] - np.log(total)).sum())
        expected = np.tensordot(ratios, p / total[:, None], 2)
        return -likelihood, expected - seen

    start = np.full(len(ratios), 1.0 / len(ratios))
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, LARGEST_WEIGHT)] * len(start),
        options={"maxiter": STEPS},
    )
    weights: FloatArray = np.clip(found.x, 0.0, LARGEST_WEIGHT)
    return weights
