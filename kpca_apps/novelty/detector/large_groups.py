"""Groups of rows too large to be odd, that would fill the list of the oddest rows by themselves.

A tenth of a table that has a value of its own lies apart from the rest, and all of it scores high:
kernel PCA is learned from the dense half of the rows, of which it is no part. But outliers are
few, so what is common is usual by definition. Rows of such a group are learned from like others,
the densest half of them, and what their score is made of is ranked among themselves (as the
p-values of Mondrian conformal prediction are: Vovk, Gammerman & Shafer 2005, section 4.5).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray

# The head of the list that a group may fill: so large a share of the rows, but enough to tell. In
# the first of them odd rows of all kinds may stand before it.
HEADS, FEWEST_IN_HEAD = (0.01, 0.02, 0.04), 20
# A group of a smaller share of the table may be what is sought.
LEAST_SHARE = 0.05
# It fills the head if most rows there are of it, and the odds of that are so many times those in
# the table: 1 in 13 rows and every second of the head, or every second and 12 in 13.
LEADING, TIMES_THE_ODDS = 0.5, 12.0


@dataclass(frozen=True)
class LargeGroup:
    """Rows that have one value in one column of the matrix."""

    column: Annotated[int, Meta(ge=0)]
    value: float


@dataclass(frozen=True)
class LargeGroups:
    """Groups of rows; a row is of the first of them that it is in."""

    groups: tuple[LargeGroup, ...] = ()

    purpose: ClassVar[str] = "Finding large groups"

    def __len__(self) -> int:
        return len(self.groups)

    def places(self, X: FloatArray) -> IntArray:
        """Which group each row (r, d) is of, from 1; 0 where it is of none."""
        first = np.zeros(len(X), dtype=np.int64)
        for place in range(len(self), 0, -1):
            group = self.groups[place - 1]
            first[X[:, group.column] == group.value] = place
        return first

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the places of rows."""
        return lambda rows, in_use: self.places(rows).astype(np.float64)


def of_each_group(
    place: IntArray | None, numbers: FloatArray, mark: Callable[[FloatArray], BoolArray]
) -> BoolArray:
    """Mark rows by their numbers (n,), those of each group by themselves.

    `place` (n,) says which group each is of; without it they are all of one.
    """
    if place is None:
        return mark(numbers)
    marked = np.empty(len(numbers), dtype=bool)
    for group in np.unique(place):
        marked[place == group] = mark(numbers[place == group])
    return marked


def find_large_group(
    X: FloatArray, scores: FloatArray, columns: Iterable[int], as_is: Container[int]
) -> LargeGroup | None:
    """Find the large group that fills the head of the list of rows (n, d) by their scores (n,).

    Its column is of the `columns` of the matrix, its value not 0 in indicators (`as_is`).
    """
    n, order = len(X), np.argsort(-scores, kind="stable")
    heads = [order[: round(share * n)] for share in HEADS]
    heads = [head for head in heads if len(head) >= FEWEST_IN_HEAD]
    found: LargeGroup | None = None
    most = TIMES_THE_ODDS
    for column, head in ((column, head) for column in columns for head in heads):
        values, counts = np.unique(X[head, column], return_counts=True)
        value, n_here = float(values[counts.argmax()]), int(counts.max())
        if n_here < LEADING * len(head) or (value == 0.0 and column in as_is):
            continue
        n_all = np.count_nonzero(X[:, column] == value)
        if LEAST_SHARE * n <= n_all < n:
            # Half a row more keeps the odds finite.
            odds = (n_here + 0.5) / (len(head) - n_here + 0.5)
            times = odds * (n - n_all) / n_all
            if times > most:
                found, most = LargeGroup(column, value), times
    return found
