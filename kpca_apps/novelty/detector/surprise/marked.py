"""How often rows with odd cells in a column are wrong, estimated from rows that a reader marked.

In marked row i, wrong or fine, column c has the part q_ci in the oddness of the cells. With p the
share of wrong rows among all marked rows, and W_c and F_c the sums of q_ci over wrong and fine
rows, the posterior mean of a Beta distribution is

    p_c = (W_c + M p) / (W_c + F_c + M)

as if M rows had been marked before, a share p of them wrong. Since a score is the logarithm of how
improbable a row is, log odds are added to it: logit p_c - logit p, times the part of the column in
the oddness of the row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kpca_apps.engine.precision import evenly_drawn
from kpca_apps.novelty.detector.large_groups import LargeGroups
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray

FEWEST = 5  # minimum number of marked rows to change scores
PRIOR = 1.0  # M
MOST_FINE = 2_000  # maximum number of rows marked as fine that are used
FARTHEST = float(np.log(100.0))  # maximum change of a row's score by one column


class Marked(NamedTuple):
    """Rows that a reader marked as wrong or as fine."""

    X: FloatArray  # (m, d)
    is_wrong: BoolArray  # (m,)


class KnownRows(NamedTuple):
    """What is known of n rows besides their cells."""

    normal: BoolArray | None = None  # (n,), rows known to be normal
    wrong: BoolArray | None = None  # (n,), rows known to be wrong
    beside: Marked | None = None  # marked rows that are not among these rows
    # Rows of these groups are too many to be odd, although they lie apart: they are training rows
    # like others, and are ranked within their group.
    large_groups: LargeGroups = LargeGroups()
    surprise: FloatArray | None = None  # (n,), -log of the p-value of broken relations

    def take(self, rows: IntArray) -> KnownRows:
        """Select rows: their marks and surprises; `beside` and `large_groups` stay as they are."""
        normal, wrong = (None if of is None else of[rows] for of in (self.normal, self.wrong))
        surprise = None if self.surprise is None else self.surprise[rows]
        return self._replace(normal=normal, wrong=wrong, surprise=surprise)


NOTHING_KNOWN = KnownRows()


def marked_rows(wrong: BoolArray, fine: BoolArray) -> IntArray:
    """Return the indices of all wrong rows (n,) and of the fine rows, sampled if there are many."""
    places = np.flatnonzero(fine)
    return np.sort(np.r_[np.flatnonzero(wrong), places[evenly_drawn(len(places), MOST_FINE)]])


def log_odds_of_columns(parts: FloatArray, wrong: BoolArray, fine: BoolArray) -> FloatArray:
    """Learn from marks the log odds (c,) that odd cells of each column add to scores.

    `parts` (c, n) are the columns' shares of the oddness of each row. The log odds are 0 if too few
    rows are marked, or if all marked rows have the same mark.

    >>> parts = np.array([[1, 1, 1, 0, 0, 0.5], [0, 0, 0, 1, 1, 0.5]])
    >>> wrong, fine = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]], dtype=bool)
    >>> log_odds_of_columns(parts, wrong, fine).round(2)
    array([ 1.79, -1.79])
    """
    n_wrong, n_fine = int(wrong.sum()), int(fine.sum())
    if n_wrong + n_fine < FEWEST or not (n_wrong and n_fine):
        return np.zeros(len(parts))
    usual = n_wrong / (n_wrong + n_fine)
    of_wrong, of_fine = (parts[:, rows].sum(axis=1) for rows in (wrong, fine))
    # Odds of being wrong for a row that is odd in this column only, as if PRIOR more rows had been
    # marked, the usual share of them as wrong.
    odds = (of_wrong + PRIOR * usual) / (of_fine + PRIOR * (1.0 - usual))
    moved = np.log(odds) - np.log(n_wrong / n_fine)
    return np.asarray(np.clip(moved, -FARTHEST, FARTHEST))
