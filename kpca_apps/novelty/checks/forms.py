"""Find texts that lack what nearly all other texts of their column have.

Examples: a URL without its prefix, an e-mail address without "@", a digit or "tbd" among words.
Nearly all texts may have in common: a punctuation mark that occurs equally often, a letter, or, if
they contain digits, one of a few shapes such as "AA-99". Among texts with letters, a text of digits
is odd unless digits are frequent ("1941" is a film title). At most one cell in 300 may be odd.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from kpca_apps.names import in_prose, quoted
from kpca_apps.novelty.checks.cell_check import FoundValue, OddValue
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.relations.conditional.writing import RARE_CELLS
from kpca_apps.system.arrays import IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import DIGIT, LETTER, Column, shapes_of

RARE = 300  # at most one cell in this many may be odd; columns with fewer cells are not checked
N_SAMPLED = 100  # number of distinct texts whose punctuation is tested
ALL = 0.98  # shapes are tested if at least this share of the cells contains digits
USUAL = 0.02  # a shape is usual if at least this share of the cells has it
WORD = 4.0  # placeholders are reported if texts have at least this many characters on average
# Texts typed for "not known yet" that are not read as missing values.
STAND_INS = frozenset(
    "x xx xxx xxxx tbd tba tbc todo test abc asdf dummy unknown 0 00 n .. ...".split()
)
CLEARNESS = 3.0  # `FoundValue.clearness`: -log10 of the expected number of odd texts, set to 0.001
FORM, STAND_IN = "form", "placeholder"


def learn_forms(table: Table, spec: ColumnSpec) -> FormRule | None:
    """Learn the common form of a column of texts; ``None`` if they have no common form."""
    if spec.format is not None or spec.is_truth:
        return None
    levels = table.column[spec.name].levels
    texts, counts = levels.texts, levels.counts
    n = int(counts.sum())
    if n < RARE:
        return None
    few = n / RARE

    def nearly_all(held: pl.Series) -> bool:
        return n - int(counts[held.to_numpy()].sum()) <= few

    signs: dict[str, int] = {}
    for sign in sorted({*"".join(texts.sample(min(len(texts), N_SAMPLED), seed=0))}):
        if not (sign.isalnum() or sign.isspace()):
            times = texts.str.count_matches(sign, literal=True)
            usual = int(np.argmax(np.bincount(times.to_numpy(), counts)))
            if usual and nearly_all(times == usual):
                signs[sign] = usual
    held, digits = texts.str.contains(LETTER), texts.str.contains(DIGIT)
    has_letter = nearly_all(held)
    is_numbered = int(counts[(held & digits).to_numpy()].sum()) > few
    shapes: list[str] = []
    if int(counts[digits.to_numpy()].sum()) >= ALL * n:
        cells = pl.DataFrame({"shape": shapes_of(texts), "n": counts})
        of_shape = cells.group_by("shape", maintain_order=True).agg(pl.sum("n"))
        of_shape = of_shape.filter(pl.col("n") >= USUAL * n)
        if n - of_shape["n"].sum() <= few:
            shapes = of_shape.sort("n", descending=True, maintain_order=True)["shape"].to_list()
    stand_ins: tuple[str, ...] = ()
    if has_letter and not shapes and np.average(texts.str.len_chars(), weights=counts) >= WORD:
        often = texts.filter(counts > few).str.to_lowercase()
        stand_ins = tuple(sorted(STAND_INS - {*often}))
    word = (f"{LETTER}|{DIGIT}" if is_numbered else LETTER) if has_letter else ""
    rule = FormRule(signs, word, stand_ins, tuple(shapes))
    if not (signs or word or shapes):
        return None
    recurring = texts.filter(counts > RARE_CELLS)
    return replace(rule, usual=frozenset(recurring.filter(rule.breaks(recurring))))


@dataclass(frozen=True)
class FormRule:
    """The common form of a column of texts."""

    signs: dict[str, int]  # how many times a text must contain each punctuation mark or symbol
    word: str  # regular expression that each text must match; empty for any text
    stand_ins: tuple[str, ...]  # placeholders to report, in lower case
    shapes: tuple[str, ...]  # usual shapes, A for letters, 9 for digits; empty for any shape
    usual: frozenset[str] = frozenset()  # repeated texts that may differ in signs, word and shape

    def breaks(self, texts: pl.Series) -> pl.Series:
        """Return which texts do not fit `signs`, `word` and `shapes`."""
        odd = ~texts.str.contains(self.word)
        for sign, times in self.signs.items():
            odd |= texts.str.count_matches(sign, literal=True) != times
        return odd | ~shapes_of(texts).is_in([*self.shapes]) if self.shapes else odd

    def find(self, column: Column, spec: ColumnSpec) -> Iterator[FoundValue]:
        """Yield each distinct text that is a placeholder or breaks `signs`, `word` or `shapes`."""
        levels = column.levels
        odd = self.breaks(levels.texts) & ~levels.texts.is_in([*self.usual])
        stand_in = levels.texts.str.to_lowercase().is_in([*self.stand_ins])
        stand_in &= ~levels.texts.str.contains(r"^\p{Lu}$")  # X may be a title; x is a placeholder
        for code in np.flatnonzero((odd | stand_in).to_numpy()).tolist():
            cells: IntArray = np.flatnonzero(levels.codes == code)
            kind = STAND_IN if stand_in[code] else FORM
            yield FoundValue(kind, levels.texts[code], CLEARNESS, cells)

    def explain(self, value: OddValue, spec: ColumnSpec, notation: Notation) -> tuple[str, str]:
        """State in which respect a text differs from nearly all other texts of its column."""
        if value.kind == STAND_IN:
            return "A placeholder for an unknown value?", ""
        lacking = [quoted(sign) for sign, n in self.signs.items() if value.seen.count(sign) != n]
        if lacking:
            times = "as often as" if any(map(value.seen.count, self.signs)) else "which"
            return f"It does not have {in_prose(lacking)} {times} nearly all others have.", ""
        if self.word and not any(letter.isalpha() for letter in value.seen):
            return "Nearly all others have letters.", ""
        shown = in_prose([quoted(shape) for shape in self.shapes[:3]])
        return f"Nearly all others read like {shown}: A for letters, 9 for digits.", ""
