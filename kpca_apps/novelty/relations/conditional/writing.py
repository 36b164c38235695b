"""Whether two values of a column are spelt alike, and how few other values are as close.

The distance is that of optimal string alignment: letters left out, added, replaced, or exchanged
with a neighbour. Codes often differ by one or two letters, names do not, so the number of equally
close values matters. Counts of letters give a fast lower bound of distances. If a value has a
letter that no other value has, only values with such a letter are counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

import numpy as np

from kpca_apps.system.arrays import IntArray

MOST_EDITED = 0.25  # maximum share of mistyped letters; one mistyped letter is always allowed
RARE_CELLS, TIMES_RARER = 2, 20  # a value is misspelt at most twice, or 1/20 as often as correctly
NUMERAL = re.compile(r"\b(?:[IVX]+|[0-9]+)\b")
MAX_COMMON, LONGEST = 1_000, 400  # maximum number of levels to compare; maximum length of a level
# A value is a misspelling of the expected value if less than this share of other values is spelt as
# close to the expected value as it is.
ALIKE = 0.1
CLOSE = 0.1  # added to the number of values that are as close, so that its logarithm is finite


class Writing:
    """The spelling of the values of a column."""

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
        """Return the index of the common value that a new one most likely misspells; -1 if none."""
        apart = self._apart(seen)
        most = max(MOST_EDITED * len(seen), 1.0)
        near = self._common[np.argsort(apart, kind="stable")[: np.count_nonzero(apart <= most)]]
        likeness = [self.likeness(seen, 0, place) for place in near.tolist()]
        best = int(np.argmin(likeness)) if likeness else -1
        return int(near[best]) if likeness and likeness[best] < np.log(ALIKE) else -1

    def likeness(self, seen: str, n_seen: int, expected: int) -> float:
        """Return the log share of values as close to `expected` as `seen` is, or 0 if not close."""
        text = self._texts[expected]
        longest = max(len(text), len(seen))
        if n_seen >= self._counts[expected] or longest > LONGEST:
            return 0.0
        # Single letters, numbers, dates and numbered names are naturally close to each other.
        has_letters = len(text) > 1 and any(letter.isalpha() for letter in seen + text)
        if not has_letters or not {*NUMERAL.findall(seen)} <= {*NUMERAL.findall(text)}:
            return 0.0
        most = int(max(MOST_EDITED * longest, 1.0))
        distance = edits(seen, text, most) if abs(len(text) - len(seen)) <= most else longest
        if distance > most:
            return 0.0
        others, of_kind = self._distances(expected)
        has_own = any(letter not in self._place for letter in seen)
        n_close = np.searchsorted(of_kind if has_own else others, distance, side="right")
        return float(np.log((int(n_close) + CLOSE) / (len(others) + 1)))

    def _distances(self, expected: int) -> tuple[IntArray, IntArray]:
        """Return sorted distances from `expected` to other levels, and to those with own letters.

        A level has an own letter if no other common level contains that letter.
        """
        if expected not in self._others:
            apart = self._apart(self._texts[expected])
            is_other = self._common != expected
            of_kind = np.sort(apart[is_other & self._has_own])
            self._others[expected] = np.sort(apart[is_other]), of_kind
        return self._others[expected]

    def _apart(self, text: str) -> IntArray:
        """Return lower bounds of the number of edits from a text to each common value, (c,)."""
        more = self._bags - self._bag(text)
        surplus = np.maximum(more, 0).sum(axis=1)
        apart: IntArray = np.maximum(surplus, surplus - more.sum(axis=1))
        return apart

    def _bag(self, text: str) -> IntArray:
        """Count each letter of a text; the last count is of letters that no common value has."""
        places = [self._place.get(letter, len(self._place)) for letter in text]
        return np.bincount(np.array(places, np.int64), minlength=len(self._place) + 1)


def edits(a: str, b: str, most: int) -> int:
    """Return the number of edits from `a` to `b`, at most `most` + 1 (Ukkonen's band)."""
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
    """Return where two texts begin to differ, and the differing part of each."""
    shortest = min(len(a), len(b))
    start = next((i for i in range(shortest) if a[i] != b[i]), shortest)
    rest = shortest - start
    end = next((i for i in range(rest) if a[-1 - i] != b[-1 - i]), rest)
    return start, a[start : len(a) - end], b[start : len(b) - end]
