"""Find codes with a wrong check digit or an unusual length; suggest no corrected code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from kpca_apps.novelty.checks.cell_check import FoundValue, OddValue
from kpca_apps.novelty.columns.check_digits import (
    MIN_CODES,
    check_digits_hold,
    check_digits_of,
    without_marks,
)
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

# A length is rare if at most this share of the codes has it. A code of a rare length is wrong, even
# if its check digit fits by chance. IBANs are exempt: their length depends on the country.
RARE_LENGTH = 0.005
ODD_CODE, CLEARNESS = "code", 6.0  # a wrong code is as clear an error as an unreadable number
AS_FLOAT = r"^[0-9](?:[.,][0-9]+)?[eE]\+?[0-9]+$"


def learn_codes(table: Table, spec: ColumnSpec) -> CodeRule | None:
    """Learn the scheme and the usual lengths of a column of codes; ``None`` for other columns."""
    if table.n_rows < MIN_CODES:
        return None
    texts = table.column[spec.name].levels.texts
    if not (scheme := check_digits_of(texts)):
        return None
    codes = without_marks(texts)
    holding = codes.str.len_chars().to_numpy()[check_digits_hold(codes, scheme)]
    lengths, counts = np.unique(holding, return_counts=True)
    usual = counts > (0 if scheme == "IBAN" else max(1.0, RARE_LENGTH * len(texts)))
    return CodeRule(scheme, frozenset(lengths[usual].tolist()))


@dataclass(frozen=True)
class CodeRule:
    """The scheme and the usual lengths of a column of codes."""

    scheme: str
    lengths: frozenset[int]  # usual lengths of a code

    def find(self, column: Column, spec: ColumnSpec) -> Iterator[FoundValue]:
        """Yield each wrong code of a column once."""
        levels = column.levels
        codes = without_marks(levels.texts)
        is_right = check_digits_hold(codes, self.scheme)
        is_right &= codes.str.len_chars().is_in([*self.lengths]).to_numpy()
        for code in np.flatnonzero(~is_right).tolist():
            cells = np.flatnonzero(levels.codes == code)
            yield FoundValue(ODD_CODE, levels.texts[code], CLEARNESS, cells)

    def explain(self, value: OddValue, spec: ColumnSpec, notation: Notation) -> tuple[str, str]:
        """Explain what is wrong with a code."""
        plain = without_marks(pl.Series([value.seen]))
        if plain.str.contains(AS_FLOAT)[0]:
            return "Digits of the code are lost: a spreadsheet took it for a number.", ""
        if (length := plain.str.len_chars()[0]) not in self.lengths:
            usual = " or ".join(map(str, sorted(self.lengths)))
            return f"{length} characters, where the column's codes have {usual}.", ""
        return (
            f"Its check digit ({self.scheme}) is wrong; nearly all of the column's are right.",
            "",
        )
