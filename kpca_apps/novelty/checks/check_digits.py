"""Codes with check digits: article numbers, cards, books and accounts; cells that break them.

Where check digits hold in nearly all cells of a column, chance is no explanation: one in ten would.
Such codes say nothing as numbers, so nothing is suggested for one that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from kpca_apps.novelty.checks.cell_check import FoundValue, OddValue
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

MIN_CODES, LOOKED_AT = 15, 2_000
# One wrong code in ten has a right check digit by chance: a rare length is wrong, too, but not that
# of the accounts of a rare country.
RARE_LENGTH = 0.005
HOLDS = 0.9  # least share of the codes whose check digits hold
ODD_CODE, CLEARNESS = "code", 6.0  # clearness in decimal digits: as of a cell that is no number
AS_FLOAT = r"^\d(?:[.,]\d+)?[eE]\+?\d+$"


def _mod_10(digits: IntArray) -> BoolArray:
    products = digits * np.where(np.arange(digits.shape[1])[::-1] % 2, 3, 1)
    return np.asarray(products.sum(axis=1) % 10 == 0)


def _luhn(digits: IntArray) -> BoolArray:
    products = digits * np.where(np.arange(digits.shape[1])[::-1] % 2, 2, 1)
    return np.asarray((products - 9 * (products > 9)).sum(axis=1) % 10 == 0)


def _mod_11(digits: IntArray) -> BoolArray:
    digits = np.where(digits == ord("X") - ord("A") + 10, 10, digits)
    return np.asarray((digits * np.arange(digits.shape[1], 0, -1)).sum(axis=1) % 11 == 0)


def _mod_97(digits: IntArray) -> BoolArray:
    rest = np.zeros(len(digits), dtype=np.int64)
    for place in np.roll(digits, -4, axis=1).T:  # the country and the check digits come last
        rest = (rest * np.where(place > 9, 100, 10) + place) % 97
    return np.asarray(rest == 1)


# Names, forms without spaces and hyphens, and whether the check digits hold of digits (n, k), with
# letters from 10.
SCHEMES: dict[str, tuple[str, Callable[[IntArray], BoolArray]]] = {
    "EAN": (r"^(?:\d{8}|\d{12,14})$", _mod_10),
    "Luhn": (r"^\d{8,19}$", _luhn),
    "ISBN": (r"^\d{9}[\dX]$", _mod_11),
    "IBAN": (r"^[A-Z]{2}\d{2}[A-Z\d]{11,30}$", _mod_97),
}


def check_digits_of(texts: pl.Series) -> str:
    """Return by which scheme nearly all of some different texts have check digits; empty if none.

    >>> check_digits_of(pl.Series([f"{100 * i + (-i % 11):010d}" for i in range(20)]))
    ''
    """
    texts = texts.head(LOOKED_AT)
    if len(texts) < MIN_CODES:
        return ""
    shares = {name: float(_holds(texts, name).mean()) for name in SCHEMES}
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] >= HOLDS else ""


def learn_codes(
    table: Table, spec: ColumnSpec, plan: ColumnPlan, n_rows: int, known: object = None
) -> CodeRule | None:
    """Learn whether the cells of a column are codes with check digits, and how long."""
    texts = table.column(spec.name).levels.texts
    if not (scheme := check_digits_of(texts)):
        return None
    holding = _plain(texts.filter(pl.Series(_holds(texts, scheme))))
    lengths, counts = np.unique(holding.str.len_chars().to_numpy(), return_counts=True)
    usual = counts > (0 if scheme == "IBAN" else max(1.0, RARE_LENGTH * len(texts)))
    return CodeRule(scheme, frozenset(lengths[usual].tolist()))


@dataclass(frozen=True)
class CodeRule:
    """The check digits of a column of codes."""

    scheme: str
    lengths: frozenset[int]  # of its codes

    def find(self, column: Column, spec: ColumnSpec) -> Iterator[FoundValue]:
        """Find the codes of a column that are wrong, each once."""
        levels = column.levels
        is_right = _holds(levels.texts, self.scheme)
        is_right &= _plain(levels.texts).str.len_chars().is_in([*self.lengths]).to_numpy()
        for code in np.flatnonzero(~is_right).tolist():
            cells = np.flatnonzero(levels.codes == code)
            yield FoundValue(ODD_CODE, levels.texts[code], CLEARNESS, cells)

    def explain(self, value: OddValue, spec: ColumnSpec, notation: Notation) -> tuple[str, str]:
        """Say what is wrong with a code; what was meant is open."""
        plain = _plain(pl.Series([value.seen]))
        if plain.str.contains(AS_FLOAT)[0]:
            return "Digits of the code are lost: a spreadsheet took it for a number.", ""
        if (length := plain.str.len_chars()[0]) not in self.lengths:
            usual = " or ".join(map(str, sorted(self.lengths)))
            return f"{length} characters, where the column's codes have {usual}.", ""
        return (
            f"Its check digit ({self.scheme}) is wrong; nearly all of the column's are right.",
            "",
        )


def _plain(texts: pl.Series) -> pl.Series:
    return texts.str.replace_all(r"[\s-]", "").str.to_uppercase()


def _holds(texts: pl.Series, scheme: str) -> BoolArray:
    """Whether the check digits of texts (n,) hold."""
    form, rule = SCHEMES[scheme]
    plain = _plain(texts)
    lengths = np.where(plain.str.contains(form).to_numpy(), plain.str.len_chars().to_numpy(), 0)
    found = np.zeros(len(texts), dtype=bool)
    for length in np.unique(lengths[lengths > 0]).tolist():
        rows = np.flatnonzero(lengths == length)
        letters = np.frombuffer("".join(plain.gather(rows)).encode("ascii"), dtype=np.uint8)
        codes = letters.reshape(-1, length).astype(np.int64)
        found[rows] = rule(np.where(codes > ord("9"), codes - ord("A") + 10, codes - ord("0")))
    return found
