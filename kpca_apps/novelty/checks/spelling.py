"""Find rare levels of a category that are misspellings of a common level.

A misspelling is one edit away (a letter deleted, inserted or replaced, or two adjacent letters
exchanged), or differs in case and spaces only. Edits of digits and of short words do not count, and
no edit counts if many common levels are one edit apart (A1, A2). In codes, letters typed for
similar digits, lost leading zeros and a lost decimal point are misspellings.
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
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.relations.conditional.writing import (
    RARE_CELLS,
    TIMES_RARER,
    difference,
    edits,
)
from kpca_apps.novelty.result import MISSPELT
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

RARE_SHARE = 0.001  # a level is rare up to this share of cells, or RARE_CELLS if that is more
# Minimum ratio of the counts of a common level and its misspelling, if the two differ in case and
# spaces only, or if the misspelling is a rare code.
TIMES_RARER_FOLDED = 5
# Minimum numbers of cells and of characters of a suggested code.
LEAST_OF_CODE, MIN_CODE_LETTERS = 10, 3
MIN_LETTERS, MAX_LETTERS = 4, 60
CODE_LETTERS = 5  # words in capitals up to this length are codes: EURO, KJFK
# If a larger share of the common levels has a neighbour one edit away, they are codes.
CLOSE_SHARE = 0.1
MAX_COMMON = 1_000


def learn_spelling(table: Table, spec: ColumnSpec) -> SpellingRule | None:
    """Learn the common levels of a column of categories; ``None`` for other columns."""
    if not spec.has_levels:
        return None
    return SpellingRule.fit(dict(spec.levels(table.column[spec.name]).most_frequent()))


@dataclass(frozen=True)
class SpellingRule:
    """The common levels of a column, indexed to recognise misspellings."""

    rare: float  # number of cells above which a level is not misspelt
    counts: Mapping[str, int]  # number of cells of each level that occurs more than once
    # Common levels, by their own text and by each text that is left if one letter is deleted.
    nearby: Mapping[str, Sequence[str]]
    folded: Mapping[str, str]  # from each `folded` text to its most frequent level
    codes: Mapping[str, str]  # from each `code_key` to its most frequent code

    @classmethod
    def fit(cls, counts: Mapping[str, int]) -> SpellingRule:
        """Learn the common levels from the number of cells of each level."""
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
                # Only a code that begins with a letter may lose its point: a number would change.
                by_code.setdefault(key.replace(".", "") if level[0].isalpha() else key, level)
        by_code.pop("", None)
        seen = {level: count for level, count in counts.items() if count > 1}
        return cls(rare, seen, dict(nearby), by_letters, by_code)

    def meant(self, level: str) -> list[str]:
        """Return the common levels that a level may misspell, most frequent first."""
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
        """Yield each misspelt level of a column once."""
        levels = spec.levels(column)
        for code, seen in enumerate(levels.texts):
            if meant := self.meant(seen):
                clearness = 3.0 + float(np.log10(self.counts[meant[0]]))
                yield FoundValue(MISSPELT, seen, clearness, np.flatnonzero(levels.codes == code))

    def explain(self, value: OddValue, spec: ColumnSpec, notation: Notation) -> tuple[str, str]:
        """Name the common levels that `value` may misspell; if only one level fits, suggest it."""
        meant, *others = self.meant(value.seen)
        if others:
            names = in_prose([quoted(level) for level in (meant, *others)])
            return f"One slip from each of {names}.", ""
        how = "Written like" if folded(value.seen) == folded(meant) else "One slip from"
        return f"{how} {quoted(meant)}, which is in {self.counts[meant]:,} cells.", meant


def _is_typing_error(level: str, common: str) -> bool:
    """Return whether no digit, inner capital or question mark differs between two levels."""
    start, ours, theirs = difference(level, common)
    for text, edited in ((level, ours), (common, theirs)):
        inside = start > 0 and not text.isupper()
        if any(c.isdigit() or c == "?" or (inside and c.isupper()) for c in edited):
            return False
    return True


def _shortened(level: str) -> set[str]:
    """Return the level, and each text that is left if one of its letters is deleted."""
    return {level, *(level[:i] + level[i + 1 :] for i in range(len(level)))}


def _matches(
    level: str, nearby: Mapping[str, Iterable[str]], counts: Mapping[str, int]
) -> list[str]:
    found = {other for key in _shortened(level) for other in nearby.get(key, ())}
    near = [other for other in found if edits(level, other, 1) == 1]
    return sorted(near, key=lambda other: (-counts[other], other))


def code_key(level: str) -> str:
    """Replace a code's letters by similar digits, strip leading zeros; empty if it is no code.

    First letters other than O, o, l and | are unchanged.

    >>> [code_key(level) for level in ("I1O", "I10", "25O.00", "038.9", "38.9", "Oslo")]
    ['I10', 'I10', '250.00', '38.9', '38.9', '']
    """
    if not any(letter.isdigit() for letter in level) or len(level) < MIN_CODE_LETTERS:
        return ""
    first = level[0] if level[0] not in "Oo|l" else level[0].translate(LOOKALIKES)
    return (first + level[1:].translate(LOOKALIKES)).lstrip("0")


def folded(level: str) -> str:
    """Return a level in lower case without spaces."""
    return "".join(level.casefold().split())
