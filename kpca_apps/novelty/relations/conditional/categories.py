"""A category given all the other columns of its row, numbers among them.

Each other column g, a number cut at its octiles, and pairs of those that say most, give the
probability P(v | g) of each value v of a category as `counts.py` does. They are pooled with weights
(a logarithmic opinion pool),

    P(v | row) ~ q(v) prod_g (P(v | g) / q(v))^w_g

that maximise the likelihood of the rows, each left out: columns that repeat each other share a
weight, and several that say little say much together. What counts against a cell is the probability
of all values at most as likely; of a row, that of its least likely category, and never less than
the share of the rows learned from that have one as unlikely.

A cell is named where another value is nearly sure and stays far likelier whichever column is left
out: exceptions that are there by right mostly contradict one column alone. The ratio of the values'
own frequencies does not count for that, nor is a value named that is rare beside the one expected,
as what is rare goes with little. Of the cells left, those are named that few would be by chance
(Benjamini and Hochberg 1995).

References
----------
G. E. Hinton, Training products of experts by minimizing contrastive divergence, Neural Computation
14, 2002. C. Genest, J. V. Zidek, Combining probability distributions, Statistical Science 1, 1986.
Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, JRSS B 57, 1995.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.detector.surprise.tails import UpperTail
from kpca_apps.novelty.detector.threshold import discovery_limit
from kpca_apps.novelty.evidence import Evidence
from kpca_apps.novelty.magnitudes import eight_digits
from kpca_apps.novelty.relations.conditional.alike import RowsAlike, contradicted
from kpca_apps.novelty.relations.conditional.chance import SMALLEST, of_smallest
from kpca_apps.novelty.relations.conditional.counts import (
    Cells,
    LevelColumn,
    Telling,
    distinct_keys,
    gain_of,
    joint_counts,
    joint_keys,
)
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.blas import one_blas_thread
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import rounded_text

# Values of a category that is judged, and columns and pairs of columns that speak of it.
MOST_LEVELS, MOST_GIVEN, PAIRED, MOST_PAIRS = 40, 12, 5, 4
# Nats that a column has to say of a category, and a pair of columns more than either.
LEAST_NATS = 20.0
# Pairs of columns that are tried: of a table of hundreds, of each category those beside it.
MOST_TRIED = 5_000
MOST_COUNTS = 1_000_000  # of values given times values
INTERVALS = 8
# Rows that weights are learned from, and the steps and the largest weight of that.
WEIGHED, STEPS, LARGEST_WEIGHT = 2_000, 30, 1.5
# Where the weight of a column is less, it is left out.
LEAST_WEIGHT = 0.01
# Share of the rows from which those of one value are too many to be odd for having it.
FREQUENT = 0.05
# Where a cell is named, the value expected has so much of the probability, and is so many times
# likelier than its own by all columns but any one; its own is so often as frequent.
SURE, LIKELIER, AS_FREQUENT = 0.9, 10.0, 0.2
FALSE_DISCOVERIES = 0.5  # at most, of the cells named in a column: all errors are counted as chance
LEAST_ODD = 0.05  # cells above this probability are not looked at


@dataclass(frozen=True, eq=False)
class Intervals:
    """A column of numbers or dates, cut into intervals of as many rows each."""

    spec: ColumnSpec
    edges: Annotated[FloatArray, "e"]  # between them, increasing

    def validate(self) -> None:
        """Refuse intervals out of order."""
        if self.spec.format is None or (np.diff(self.edges) <= 0).any():
            raise ValueError("intervals of no numbers")

    def text(self, code: int) -> str:
        """Write an interval: ``31 to 40``, ``below 31``."""
        low, high = (
            ""
            if not 0 <= place < len(self.edges)
            else rounded_text(float(self.edges[place]), self.spec.format)
            for place in (code - 1, code)
        )
        return f"{low} to {high}" if low and high else f"from {low} on" if low else f"below {high}"

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

    def counted(
        self, codes: Sequence[IntArray], row: int, value: int, expected: int, *, own: bool
    ) -> tuple[int, int, int]:
        """Other rows with what a row has here: with the value expected, with its own, and all."""
        key = joint_keys([codes[place][row : row + 1] for place in self.places], self.sizes)
        counts = self.counts[np.searchsorted(self.keys, key)[0]]
        n_same = int(counts[value]) - own
        return int(counts[expected]), n_same, int(counts.sum()) - own

    def log_ratios(
        self, codes: Sequence[IntArray], value: IntArray, own: BoolArray, log_q: FloatArray
    ) -> FloatArray:
        """Return log P(v | g) / q(v) of each row and value, (n, k); 0 where g says nothing.

        Rows that were counted (`own`, (n,)) are left out, each for itself.
        """
        key = joint_keys([codes[place] for place in self.places], self.sizes)
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        known = self.keys[place] == key
        rows = np.flatnonzero(known & own & (value < self.counts.shape[1]))
        counts = self.counts[place].astype(np.float64)
        counts[rows, value[rows]] -= 1.0
        n_rows = counts.sum(axis=1)
        new = self.shrinkage + self.discount * (counts > 0).sum(axis=1)
        left = np.maximum(counts - self.discount, 0.0)
        # P / q: of a value without other rows it is that of a new one.
        ratios = (left / np.exp(log_q) + new[:, None]) / (n_rows + self.shrinkage)[:, None]
        says = known & (n_rows > 0)
        return np.where(says[:, None], np.log(ratios), 0.0)


class Pooled(NamedTuple):
    """What the other columns say of a category of n rows."""

    log_p: FloatArray  # (n,), of a value at most as likely as each row's; 0 of new ones
    expected: IntArray  # (n,), the likeliest value,
    p_expected: FloatArray  # and its probability


class _Odd(NamedTuple):
    """A category of a row that several other columns contradict."""

    row: int
    expected: int  # code
    log_p: float
    against: float  # log of how many times likelier the other is by all columns but any one
    given: tuple[Given, ...]  # that say most against it, of different columns


@dataclass(frozen=True, eq=False)
class Category:
    """What the other columns say of a category."""

    target: Annotated[int, Meta(ge=0)]  # place of the column
    given: tuple[Given, ...]
    limit: Annotated[float, Meta(le=0)]  # log probability of cells that are named
    # Of each value that many rows have, its code and the tail of -log p of these rows.
    frequent: tuple[tuple[Annotated[int, Meta(ge=0)], UpperTail], ...] = ()

    def pooled(
        self, column: LevelColumn, codes: Sequence[IntArray], value: IntArray, own: BoolArray
    ) -> Pooled:
        """Pool what the columns say of each row."""
        pooled = np.tile(column.log_q, (len(value), 1))
        for of in self.given:
            pooled += of.weight * of.log_ratios(codes, value, own, column.log_q)
        pooled = np.exp(pooled - pooled.max(axis=1, keepdims=True))
        # A value that no other row has says nothing of the others of its row.
        judged = (value < column.missing) & (np.append(column.counts, 0)[value] > own)
        of_value = pooled[np.arange(len(value)), np.where(judged, value, 0)]
        # What is as likely but for rounding is as likely.
        unlikely = np.where(pooled <= of_value[:, None] * (1 + 1e-9), pooled, 0.0).sum(axis=1)
        total, expected = pooled.sum(axis=1), pooled.argmax(axis=1)
        log_p = np.log(np.maximum(unlikely / total, SMALLEST))
        log_p = self._among_like(value, np.where(judged, log_p, 0.0))
        # The likeliest has 1 before all are divided.
        return Pooled(log_p, expected, 1.0 / total)

    def _among_like(self, value: IntArray, log_p: FloatArray) -> FloatArray:
        """Let rows of a value that many have be no rarer than each is among them."""
        for code, tail in self.frequent:
            alike = value == code
            rarity = tail(eight_digits(-log_p[alike]))
            log_p[alike] = np.maximum(log_p[alike], -rarity)
        return log_p

    def with_frequent(
        self, column: LevelColumn, value: IntArray, pooled: Pooled
    ) -> tuple[Category, Pooled]:
        """Learn the values that many rows have, and judge these rows among their like."""
        many = np.flatnonzero(column.counts[: column.missing] >= FREQUENT * len(value)).tolist()
        tails = (UpperTail.fit(eight_digits(-pooled.log_p[value == code])) for code in many)
        learned = replace(self, frequent=tuple(zip(many, tails, strict=True)))
        return learned, pooled._replace(log_p=learned._among_like(value, pooled.log_p))

    def odd(
        self,
        column: LevelColumn,
        codes: Sequence[IntArray],
        value: IntArray,
        own: BoolArray,
        pooled: Pooled,
    ) -> Iterator[_Odd]:
        """Find the cells for which nearly all columns expect one other value."""
        expected = pooled.expected
        at = (pooled.log_p < np.log(LEAST_ODD)) & (pooled.p_expected >= SURE)
        at &= (value < column.missing) & (expected < column.missing) & (value != expected)
        rows = np.flatnonzero(at)
        counts = column.counts
        rows = rows[counts[value[rows]] >= AS_FREQUENT * counts[expected[rows]]]
        if not len(rows):
            return
        of_rows, seen, meant = [of[rows] for of in codes], value[rows], expected[rows]
        every = np.arange(len(rows))
        said = np.empty((len(self.given), len(rows)))
        for place, of in enumerate(self.given):
            ratios = of.log_ratios(of_rows, seen, own[rows], column.log_q)
            said[place] = of.weight * (ratios[every, meant] - ratios[every, seen])
        base = np.minimum(column.log_q[meant] - column.log_q[seen], 0.0)
        names = {place for of in self.given for place in of.places}
        left = [
            said[[name not in of.places for of in self.given]].sum(axis=0) + base for name in names
        ]
        against = np.min(left, axis=0)
        for i in np.flatnonzero(against >= np.log(LIKELIER)).tolist():
            order = np.argsort(-said[:, i], kind="stable").tolist()
            first = self.given[order[0]]
            others = (self.given[k] for k in order[1:] if said[k, i] > 0)
            apart = [of for of in others if {*of.places}.isdisjoint(first.places)][:1]
            row, log_p = int(rows[i]), float(pooled.log_p[rows[i]])
            yield _Odd(row, int(meant[i]), log_p, float(against[i]), (first, *apart))


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of a table, each given all other columns."""

    intervals: tuple[Intervals, ...]  # their places follow those of the columns of levels
    categories: tuple[Category, ...]
    tail: UpperTail  # of what the rows learned from say

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
            return cls((), (), UpperTail.fit(np.zeros(1)))
        intervals = tuple(_intervals(table, numbers))
        codes = [*_known(columns, cells), *(of.codes(table) for of in intervals)]
        names = [*(of.name for of in columns), *(of.spec.name for of in intervals)]
        sizes = [*(of.n_codes for of in columns), *(len(of.edges) + 1 for of in intervals)]
        categories = []
        position = {name: place for place, name in enumerate(table.frame.columns)}
        for b in targets:
            others = [place for place, name in enumerate(names) if name != columns[b].name]
            if len(targets) * len(others) > MOST_TRIED:
                here = position[columns[b].name]
                others.sort(key=lambda place: abs(position[names[place]] - here))
                others = sorted(others[: MOST_TRIED // len(targets)])
            # Its products are small, and wait for each other on several threads.
            with one_blas_thread():
                given = _weighted(columns[b], codes, sizes, others, cells[b])
            if given:
                categories.append(Category(b, given, 0.0))
        own = np.ones(len(codes[0]), dtype=bool)
        smallest, limited = np.zeros(len(own)), []
        for of in categories:
            column, value = columns[of.target], cells[of.target]
            of, pooled = of.with_frequent(column, value, of.pooled(column, codes, value, own))
            smallest = np.minimum(smallest, pooled.log_p)
            odd = of.odd(column, codes, value, own, pooled)
            log_odd = np.array([one.log_p for one in odd])
            limit = discovery_limit(log_odd, len(own), FALSE_DISCOVERIES)
            limited.append(replace(of, limit=limit))
        # Rows alike must tie whatever order their numbers were added in.
        surprise = eight_digits(of_smallest(smallest, len(categories)))
        return cls(intervals, tuple(limited), UpperTail.fit(surprise))

    def judge(
        self,
        table: Table,
        columns: Sequence[LevelColumn],
        cells: Sequence[Cells],
        own: BoolArray,
    ) -> tuple[FloatArray, tuple[Evidence, ...]]:
        """-log of the probability of a row's least likely category, (n,), and the clear cells.

        Of several in a row, the one that most contradicts is named, as it makes the others odd.
        """
        if not self.categories:
            return np.zeros(len(own)), ()
        codes = self.codes(table, columns, [of.codes for of in cells])
        smallest, worst = np.zeros(len(own)), dict[int, tuple[float, Evidence]]()

        def read(at: int, row: int) -> tuple[str, str]:
            if at < len(columns):
                return columns[at].name, cells[at].text(row)
            interval = self.intervals[at - len(columns)]
            return interval.spec.name, interval.text(int(codes[at][row]))

        for of in self.categories:
            column, value = columns[of.target], cells[of.target].codes
            pooled = of.pooled(column, codes, value, own)
            smallest = np.minimum(smallest, pooled.log_p)
            for one in of.odd(column, codes, value, own, pooled):
                row = one.row
                if one.log_p <= of.limit and (row not in worst or one.against > worst[row][0]):
                    alike = [
                        RowsAlike(
                            tuple(read(at, row) for at in by.places),
                            *by.counted(
                                codes, row, int(value[row]), one.expected, own=bool(own[row])
                            ),
                        )
                        for by in one.given
                    ]
                    seen, expected = cells[of.target].text(row), column.text(one.expected)
                    said = contradicted(row, column.name, seen, expected, one.log_p, alike)
                    worst[row] = one.against, said
        surprise = eight_digits(of_smallest(smallest, len(self.categories)))
        return np.minimum(surprise, self.tail(surprise)), tuple(said for _, said in worst.values())

    def codes(
        self, table: Table, columns: Sequence[LevelColumn], cells: Sequence[IntArray]
    ) -> list[IntArray]:
        """Codes of the columns of levels and of numbers, -1 where a cell is missing or new."""
        return [*_known(columns, cells), *(of.codes(table) for of in self.intervals)]


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


def _telling(
    given: tuple[int, ...],
    codes: Sequence[IntArray],
    sizes: Sequence[int],
    column: LevelColumn,
    value: IntArray,
) -> Telling:
    """Say how much a column, or a pair of them, says of a category."""
    of_given = [codes[place] for place in given], [sizes[place] for place in given]
    keys, group = distinct_keys(joint_keys(*of_given))
    none = 0 if keys[0] < 0 else -1
    counted = joint_counts(group, value, len(keys), column.n_codes)
    gain, prior = gain_of(*counted, column, missing=none)
    is_large = len(keys) * column.n_codes > MOST_COUNTS
    return Telling(0.0 if is_large else gain, prior, given)


def _weighted(
    column: LevelColumn,
    codes: Sequence[IntArray],
    sizes: Sequence[int],
    others: Sequence[int],
    value: IntArray,
) -> tuple[Given, ...]:
    """Find the columns that say most of a category, and the weights of what they say."""
    n = len(value)
    tried = (_telling((place,), codes, sizes, column, value) for place in others)
    singles = [one for one in tried if one.gain * n > LEAST_NATS]
    singles = sorted(singles, key=lambda one: (-one.gain, one.given))[:MOST_GIVEN]
    pairs = []
    for one, other in combinations(singles[:PAIRED], 2):
        both = _telling(one.given + other.given, codes, sizes, column, value)
        if (both.gain - one.gain) * n > LEAST_NATS:
            pairs.append(both)
    pairs = sorted(pairs, key=lambda one: (-one.gain, one.given))[:MOST_PAIRS]
    if not singles:
        return ()
    given = []
    for one in singles + pairs:
        of_columns = tuple(sizes[place] for place in one.given)
        key = joint_keys([codes[place] for place in one.given], of_columns)
        seen = (key >= 0) & (value < column.n_codes)
        keys, group = distinct_keys(key[seen])
        shape = len(keys), column.n_codes
        counts = np.bincount(group * shape[1] + value[seen], minlength=shape[0] * shape[1])
        given.append(Given(one.given, of_columns, *one.prior, 0.0, keys, counts.reshape(shape)))
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


def _weights(ratios: FloatArray, value: IntArray, log_q: FloatArray) -> FloatArray:
    """Weights (g,) of most likelihood for log ratios (g, n, k) and the values (n,) of rows."""
    # Loaded here: it takes as long as all else that is done with a small table's categories.
    from scipy.optimize import minimize

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
