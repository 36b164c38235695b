"""How much alike two values of a column are written, and how few others are as much so.

Letters left out, added or replaced, and neighbours exchanged, are counted (optimal string
alignment). Codes lie a letter or two apart by nature, names do not: what a distance says depends on
how many other values of the column are as close. These are counted by their letters alone, in any
order, which is quick, and never more than the edits that lead from one value to another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpca_apps.system.arrays import FloatArray, IntArray

# Of letters, up to which a value may be another one mistyped.
MOST_EDITED = 0.4
# Levels that are compared, and places that letters are counted in.
MAX_COMMON, PLACES = 1_000, 256
# Of so few levels that none is close: as if of so many others so many were.
PRIOR_CLOSE, PRIOR_OTHERS = 0.1, 1.0
LONGEST = 400


class Writing:
    """How the common levels of a column are written."""

    def __init__(self, texts: Sequence[str], counts: IntArray) -> None:
        self.texts, self.counts = texts, counts
        order = np.argsort(-counts, kind="stable")[:MAX_COMMON]
        self.common = order[counts[order] > 1]
        self.letters = np.array([_letters(texts[place]) for place in self.common], dtype=np.int16)
        self.letters = self.letters.reshape(-1, PLACES)
        n_having = (self.letters > 0).sum(axis=0)
        self.used = n_having > 0
        self.foreign = ((self.letters > 0) & (n_having == 1)).any(axis=1)

    def likeness(self, seen: str, n_seen: int, expected: int) -> float:
        """Log of the share of other levels that are as close to the one expected as `seen`.

        0 where `seen` is not the rarer one, or not close to it.
        """
        text = self.texts[expected]
        if n_seen >= self.counts[expected] or max(len(text), len(seen)) > LONGEST:
            return 0.0
        most = int(max(MOST_EDITED * max(len(text), len(seen)), 1.0))
        if bag_distance(_letters(seen), _letters(text)) > most:
            return 0.0
        distance = edits(seen, text)
        if distance > most:
            return 0.0
        is_other = self.common != expected
        near = _bags_apart(self.letters[is_other], _letters(text)) <= distance
        if self.has_foreign(seen):
            near &= self.foreign[is_other]
        n_near, n_others = np.count_nonzero(near), np.count_nonzero(is_other)
        return float(np.log((n_near + PRIOR_CLOSE) / (n_others + PRIOR_OTHERS)))

    def has_foreign(self, text: str) -> bool:
        """Whether a text has a letter that no common level has."""
        return bool((_letters(text)[~self.used] > 0).any())


def edits(a: str, b: str) -> int:
    """Letters to leave out, add, replace or exchange with their neighbour to make b of a."""
    shortest = min(len(a), len(b))
    start = next((i for i in range(shortest) if a[i] != b[i]), shortest)
    rest = shortest - start
    end = next((i for i in range(rest) if a[-1 - i] != b[-1 - i]), rest)
    a, b = a[start : len(a) - end], b[start : len(b) - end]
    earlier: list[int] = []
    before, now = earlier, [*range(len(b) + 1)]
    for i, letter in enumerate(a, start=1):
        earlier, before, now = before, now, [i]
        for j, other in enumerate(b, start=1):
            cost = min(before[j] + 1, now[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                cost = min(cost, earlier[j - 2] + 1)
            now.append(cost)
    return now[-1]


def bag_distance(a: IntArray, b: IntArray) -> int:
    """Letters that one text has more than the other: at most the edits between them."""
    return int(_bags_apart(a[None], b)[0])


def _bags_apart(bags: IntArray, bag: IntArray) -> IntArray:
    more = bags - bag
    apart: IntArray = np.maximum(more.clip(min=0).sum(axis=1), (-more).clip(min=0).sum(axis=1))
    return apart


def _letters(text: str) -> FloatArray:
    places = [ord(letter) % PLACES for letter in text]
    return np.bincount(np.array(places, dtype=np.int64), minlength=PLACES)
