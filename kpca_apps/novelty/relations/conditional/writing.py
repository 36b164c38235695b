"""How much alike two values of a column are written, and how few others are as much so.

Letters left out, added or replaced, and neighbours exchanged, are counted (optimal string
alignment). Codes lie a letter or two apart by nature, names do not: what a distance says depends on
how many other values of the column are as close. These are counted by their letters alone, in any
order, which is quick, and never more than the edits that lead from one value to another. Of a value
with a letter that no other has, as an x among digits, only values of that kind are counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

import numpy as np

from kpca_apps.system.arrays import IntArray

# Share of the letters up to which a value may be another one mistyped; one letter is always few.
MOST_EDITED = 0.25
# A misspelling is rare, or so many times rarer than what was meant.
RARE_CELLS, TIMES_RARER = 2, 20
NUMERAL = re.compile(r"\b(?:[IVX]+|[0-9]+)\b")
# Levels that are compared, the most frequent, and letters of the longest.
MAX_COMMON, LONGEST = 1_000, 400
# Share of the values of a column written as much alike, below which a value is one misspelt.
ALIKE = 0.1
# Of few other values none is close by chance: as if of one more this share were.
CLOSE = 0.1


class Writing:
    """How the values of a column are written."""

    def __init__(self, texts: Sequence[str], counts: IntArray) -> None:
        self._texts, self._counts = texts, counts
        order = np.argsort(-counts, kind="stable")[:MAX_COMMON]
        self._common = order[counts[order] > 1]
        common = [texts[place] for place in self._common]
        letters = sorted({*chain.from_iterable(common)})
        self._place = {letter: place for place, letter in enumerate(letters)}
        self._bags = np.array([self._bag(text) for text in common]).reshape(
            len(common), len(self._place) + 1
        )
        of_one = (self._bags > 0).sum(axis=0) == 1
        self._has_own = (self._bags[:, of_one] > 0).any(axis=1)
        self._others: dict[int, tuple[IntArray, IntArray]] = {}

    def nearest(self, seen: str) -> int:
        """Return the place of the common value that a new one is most likely misspelt; -1 of none.

        Of all common values hardly any other is written as much like it.
        """
        apart = self._apart(seen)
        most = max(MOST_EDITED * len(seen), 1.0)
        near = self._common[np.argsort(apart, kind="stable")[: np.count_nonzero(apart <= most)]]
        likeness = [self.likeness(seen, 0, place) for place in near.tolist()]
        best = int(np.argmin(likeness)) if likeness else -1
        return int(near[best]) if likeness and likeness[best] < np.log(ALIKE) else -1

    def likeness(self, seen: str, n_seen: int, expected: int) -> float:
        """Log share of other values that are as close to the one expected as `seen`.

        0 where `seen` is not the rarer one, or not close to it.
        """
        text = self._texts[expected]
        longest = max(len(text), len(seen))
        if n_seen >= self._counts[expected] or longest > LONGEST:
            return 0.0
        if len(text) < 2:
            return 0.0  # another letter is another value
        if not any(letter.isalpha() for letter in seen + text):
            return 0.0  # numbers and dates lie close by nature
        if not {*NUMERAL.findall(seen)} <= {*NUMERAL.findall(text)}:
            return 0.0  # and so does what is numbered
        most = int(max(MOST_EDITED * longest, 1.0))
        distance = edits(seen, text, most) if abs(len(text) - len(seen)) <= most else longest
        if distance > most:
            return 0.0
        others, of_kind = self._distances(expected)
        if any(letter not in self._place for letter in seen):
            n_close = np.searchsorted(of_kind, distance, side="right")
        else:
            n_close = np.searchsorted(others, distance, side="right")
        return float(np.log((int(n_close) + CLOSE) / (len(others) + 1)))

    def _distances(self, expected: int) -> tuple[IntArray, IntArray]:
        """At least how far common levels are from one, in order; and those with own letters."""
        if expected not in self._others:
            apart = self._apart(self._texts[expected])
            is_other = self._common != expected
            of_kind = np.sort(apart[is_other & self._has_own])
            self._others[expected] = np.sort(apart[is_other]), of_kind
        return self._others[expected]

    def _apart(self, text: str) -> IntArray:
        """Letters that a common value or a text has more than the other: at most their edits."""
        more = self._bags - self._bag(text)
        surplus = np.maximum(more, 0).sum(axis=1)
        apart: IntArray = np.maximum(surplus, surplus - more.sum(axis=1))
        return apart

    def _bag(self, text: str) -> IntArray:
        """How often each letter occurs in a text; last, those that no common value has."""
        places = [self._place.get(letter, len(self._place)) for letter in text]
        return np.bincount(np.array(places, np.int64), minlength=len(self._place) + 1)


def edits(a: str, b: str, most: int) -> int:
    """Letters to leave out, add, replace or exchange with their neighbour to make `b` of `a`.

    Above `most`, one more than that (Ukkonen's cut-off: no way there leaves a band of that width).
    """
    _, a, b = difference(a, b)
    far = most + 1
    earlier: list[int] = []
    before = [min(j, far) for j in range(len(b) + 1)]
    for i, letter in enumerate(a, start=1):
        now = [min(i, far)] + [far] * len(b)
        for j in range(max(1, i - most), min(len(b), i + most) + 1):
            other = b[j - 1]
            cost = min(before[j] + 1, now[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                cost = min(cost, earlier[j - 2] + 1)
            now[j] = min(cost, far)
        if min(now) > most and min(before) > most:
            return far
        earlier, before = before, now
    return before[-1]


def difference(a: str, b: str) -> tuple[int, str, str]:
    """Where two texts begin to differ, and the parts of each that do."""
    shortest = min(len(a), len(b))
    start = next((i for i in range(shortest) if a[i] != b[i]), shortest)
    rest = shortest - start
    end = next((i for i in range(rest) if a[-1 - i] != b[-1 - i]), rest)
    return start, a[start : len(a) - end], b[start : len(b) - end]
