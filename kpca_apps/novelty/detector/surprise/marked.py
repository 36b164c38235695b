"""How often rows are wrong whose odd cells are in a column, by a few that a reader marked.

People mark faults of few causes, and what they mark as fine is mostly of few columns, too: those
whose rare values are nothing wrong. Of the marked rows i, wrong or fine, column c has the part
q_ci in what is odd of their cells. With p the share of wrong rows among all that are marked, and
W_c and F_c the sums of q_ci over wrong and fine ones, the posterior mean of a Beta distribution is

    p_c = (W_c + M p) / (W_c + F_c + M)

as if M rows had been marked before, at the usual share. A score being the logarithm of how
improbable a row is, odds are added to it as logarithms: logit p_c - logit p, by the part that the
column has in what is odd of the row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kpca_apps.engine.precision import evenly_drawn
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray

FEWEST = 5  # rows that are marked, for any change
PRIOR = 1.0  # M
MOST_FINE = 2_000  # rows that are looked up: whole tables may be accepted
FARTHEST = float(np.log(100.0))  # that a column moves a row


class Marked(NamedTuple):
    """Rows that a reader marked as wrong or as fine."""

    X: FloatArray  # (m, d)
    is_wrong: BoolArray  # (m,)


def marked_rows(wrong: BoolArray, fine: BoolArray) -> IntArray:
    """Return the positions of all rows (n,) that are wrong, and of those fine, or some of many."""
    places = np.flatnonzero(fine)
    return np.sort(np.r_[np.flatnonzero(wrong), places[evenly_drawn(len(places), MOST_FINE)]])


def log_odds_of_columns(parts: FloatArray, wrong: BoolArray, fine: BoolArray) -> FloatArray:
    """Return what each column adds to a score, (c,), by the parts (c, n) in rows (n,) marked.

    Nothing is added where too few rows are marked, or all of them alike.

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
    # Logarithms of the odds: the denominators of both shares cancel.
    odds = (of_wrong + PRIOR * usual) / (of_fine + PRIOR * (1.0 - usual))
    moved = np.log(odds) - np.log(n_wrong / n_fine)
    return np.asarray(np.clip(moved, -FARTHEST, FARTHEST))
