"""Rare levels of a category that are a common one mistyped.

One edit is a letter left out, added, replaced, or two neighbours exchanged; or nothing but case
and space. Levels that are codes lie one edit apart by nature, A1 and A2: an edit of a digit counts
for nothing, nor one in a short word, nor any edit in a column whose common levels lie so close. Of
codes, a letter typed for the digit it looks like, zeros lost before them and a lost point count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kpca_apps.names import in_prose, quoted
from kpca_apps.novelty.checks.cell_check import FoundValue, OddValue
from kpca_apps.novelty.checks.number_rules import LOOKALIKES
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec
from kpca_apps.novelty.relations.conditional.writing import (
    RARE_CELLS,
    TIMES_RARER,
    difference,
    edits,
)
from kpca_apps.novelty.result import MISSPELT
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

RARE_SHARE = 0.001  # of the cells, that are rare where they are more
# The same but for case and space: more frequent mixtures are as wrong.
TIMES_RARER_FOLDED = 5
# Codes that frequent are levels that a slip may stand for.
LEAST_OF_CODE, MIN_CODE_LETTERS = 10, 3
MIN_LETTERS, MAX_LETTERS = 4, 60
# Words in capitals up to this length are codes: EURO, KJFK.
CODE_LETTERS = 5
# Common levels of which one in ten has another one edit away are no words.
CLOSE_SHARE = 0.1
MAX_COMMON = 1_000


def learn_spelling(
    table: Table, spec: ColumnSpec, plan: ColumnPlan, n_rows: int, known: object = None
) -> SpellingRule | None:
    """Learn the common levels of a column of categories."""
    if not spec.has_levels:
        return None
    return SpellingRule.fit(dict(spec.levels(table.column(spec.name)).most_frequent()))


@dataclass(frozen=True)
class SpellingRule:
    """What the common levels of a column are, to recognise them mistyped."""

    rare: float  # levels in more cells than these are not misspelt
    counts: Mapping[str, int]  # cells of each level, where they are more than one
    nearby: Mapping[str, Sequence[str]]  # common levels by what remains with one letter left out
    folded: Mapping[str, str]  # the most frequent level by its letters in lower case without space
    codes: Mapping[str, str]  # the same by `code_key`, of levels with digits

    @classmethod
    def fit(cls, counts: Mapping[str, int]) -> SpellingRule:
        """Learn the common levels from how many cells each level has."""
        rare = max(RARE_CELLS, RARE_SHARE * sum(counts.values()))
        ordered = sorted(counts, key=lambda level: (-counts[level], level))
        common = [level for level in ordered if counts[level] >= TIMES_RARER][:MAX_COMMON]
        nearby: defaultdict[str, list[str]] = defaultdict(list)
        words = []
        for level in common:
            n_letters = sum(letter.isalpha() for letter in level)
            is_code = level.isupper() and len(level) <= CODE_LETTERS
            if MIN_LETTERS <= n_letters and len(level) <= MAX_LETTERS and not is_code:
                words.append(level)
        for level in words:
            for key in _shortened(level):
                nearby[key].append(level)
        close = sum(bool(_matches(level, nearby, counts)) for level in words)
        if close > CLOSE_SHARE * len(words):
            nearby.clear()
        by_letters: dict[str, str] = {}
        for level in common:
            by_letters.setdefault(folded(level), level)
        by_code: dict[str, str] = {}
        for level in ordered:
            if counts[level] >= LEAST_OF_CODE:
                key = code_key(level)
                by_code.setdefault(key, level)
                # Of a number the point says how large it is.
                by_code.setdefault(key.replace(".", "") if level[0].isalpha() else key, level)
        by_code.pop("", None)
        seen = {level: count for level, count in counts.items() if count > 1}
        return cls(rare, seen, dict(nearby), by_letters, by_code)

    def meant(self, level: str) -> list[str]:
        """Return the common levels that a level may stand for, the most frequent first."""
        count = self.counts.get(level, 1)
        same = self.folded.get(folded(level))
        if same is not None and same != level:
            return [same] * (TIMES_RARER_FOLDED * count <= self.counts[same])
        if len(level) > MAX_LETTERS + 1:
            return []
        is_rare, of_code = count <= self.rare, self.codes.get(code_key(level))
        times = TIMES_RARER_FOLDED if is_rare else TIMES_RARER
        if of_code not in (None, level) and times * count <= self.counts[of_code]:
            return [of_code]
        return [
            common
            for common in (_matches(level, self.nearby, self.counts) if is_rare else ())
            if TIMES_RARER * count <= self.counts[common] and _is_typing_error(level, common)
        ]

    def find(self, column: Column, spec: ColumnSpec) -> Iterator[FoundValue]:
        """Find the levels of a column that are common ones mistyped."""
        levels = spec.levels(column)
        for code, seen in enumerate(levels.texts):
            if meant := self.meant(seen):
                clearness = 3.0 + float(np.log10(self.counts[meant[0]]))
                yield FoundValue(MISSPELT, seen, clearness, np.flatnonzero(levels.codes == code))

    def explain(self, value: OddValue, spec: ColumnSpec, notation: Notation) -> tuple[str, str]:
        """Name the common level, and how often it is in the column; of several none is meant."""
        meant, *others = self.meant(value.seen)
        if others:
            names = in_prose([quoted(level) for level in (meant, *others)])
            return f"One slip from each of {names}.", ""
        how = "Written like" if folded(value.seen) == folded(meant) else "One slip from"
        return f"{how} {quoted(meant)}, which is in {self.counts[meant]:,} cells.", meant


def _is_typing_error(level: str, common: str) -> bool:
    """Whether the letters that differ are ones people mistype.

    No digits, no capitals inside, and no question mark: somebody was in doubt.
    """
    start, ours, theirs = difference(level, common)
    for text, edited in ((level, ours), (common, theirs)):
        inside = start > 0 and not text.isupper()
        if any(c.isdigit() or c == "?" or (inside and c.isupper()) for c in edited):
            return False
    return True


def _shortened(level: str) -> set[str]:
    """Return the level, and what remains of it with one letter left out."""
    return {level, *(level[:i] + level[i + 1 :] for i in range(len(level)))}


def _matches(
    level: str, nearby: Mapping[str, Iterable[str]], counts: Mapping[str, int]
) -> list[str]:
    """Levels one edit from a level, most frequent first."""
    found = {other for key in _shortened(level) for other in nearby.get(key, ())}
    near = [other for other in found if edits(level, other, 1) == 1]
    return sorted(near, key=lambda other: (-counts[other], other))


def code_key(level: str) -> str:
    """Return what codes share that differ by a letter for a digit, or by zeros before them.

    Empty for what is no code; some letters may begin one.

    >>> [code_key(level) for level in ("I1O", "I10", "25O.00", "038.9", "38.9", "Oslo")]
    ['I10', 'I10', '250.00', '38.9', '38.9', '']
    """
    if not any(letter.isdigit() for letter in level) or len(level) < MIN_CODE_LETTERS:
        return ""
    first = level[0] if level[0] not in "Oo|l" else level[0].translate(LOOKALIKES)
    return (first + level[1:].translate(LOOKALIKES)).lstrip("0")


def folded(level: str) -> str:
    """Return the letters of a level in lower case, without space."""
    return "".join(level.casefold().split())
