"""Find groups of rows too large to be odd, which would fill the head of the list.

If a tenth of the rows share a value that others lack, they lie apart and all score high, because
kernel PCA is learned from the dense half of the rows. But outliers are few; what is common is usual
by definition. So rows of such a group (their densest half) are training rows like others. The parts
of their score are ranked within the group, as in Mondrian conformal prediction (Vovk, Gammerman &
Shafer 2005, section 4.5).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray

# A large group is sought among the 1 %, 2 % and 4 % of the rows that score highest (the heads), if
# they have at least 20 rows. In the shortest head, odd rows of other kinds may outnumber the group.
HEADS, FEWEST_IN_HEAD = (0.01, 0.02, 0.04), 20
# Minimum share of rows in a large group; the user may be looking for a smaller one.
LEAST_SHARE = 0.05
# A large group holds at least the share LEADING of the rows of a head. Also, its odds there (number
# of its rows divided by the number of all other rows) exceed 12 times its odds in the table.
LEADING, TIMES_THE_ODDS = 0.5, 12.0


@dataclass(frozen=True)
class LargeGroup:
    """Rows with one value in one column of the matrix."""

    column: Annotated[int, Meta(ge=0)]
    value: float


@dataclass(frozen=True)
class LargeGroups:
    """Groups of rows; a row belongs to the first group that it matches."""

    groups: tuple[LargeGroup, ...] = ()

    purpose: ClassVar[str] = "Finding large groups"

    def __len__(self) -> int:
        return len(self.groups)

    def places(self, X: FloatArray) -> IntArray:
        """Return the number of each row's group (r,), from 1; 0 for a row without a group."""
        first = np.zeros(len(X), dtype=np.int64)
        for place in range(len(self), 0, -1):
            group = self.groups[place - 1]
            first[X[:, group.column] == group.value] = place
        return first

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the function that finds the group of each row."""
        return lambda rows, in_use: self.places(rows).astype(np.float64)


def of_each_group(
    place: IntArray | None, numbers: FloatArray, mark: Callable[[FloatArray], BoolArray]
) -> BoolArray:
    """Apply a mask function to the numbers (n,) of the rows of each group separately.

    `place` (n,) is the group of each row; by default all are in one.
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
    """Find a large group: rows with one value that most of the highest-scoring rows share.

    Only `columns` of the matrix are tried; in indicators (`as_is`), only values other than 0.
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
            # Adding half a row to both counts keeps the odds finite.
            odds = (n_here + 0.5) / (len(head) - n_here + 0.5)
            times = odds * (n - n_all) / n_all
            if times > most:
                found, most = LargeGroup(column, value), times
    return found
