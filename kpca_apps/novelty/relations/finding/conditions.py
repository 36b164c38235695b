"""Columns filled, and flags set, only at some levels of another column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from kpca_apps.novelty.relations.checking import Cells
from kpca_apps.novelty.relations.finding.evidence import LEVEL, NEARLY, are_far_fewer
from kpca_apps.novelty.relations.rule import EmptyUnless, PositiveOnlyIf
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.tables.values import NumberFormat

_MIN_ROWS = 30
_FEWEST_SET = 20  # minimum number of rows with, and without, a flag set
_MOST_LEVELS, _MOST_NUMBERS = 20, 2  # maximum numbers of distinct texts, of distinct numbers
_FILLED = 0.5  # minimum share of filled cells in rows where the other column allows a value
_CLEARLY = 0.99  # minimum share of rows empty in this column, among rows empty in the other column
_MOST_TOGETHER = 3  # if more columns than this are empty in the same rows, no rule relates them
_ALIKE = 0.8  # two columns count as empty in the same rows if their Jaccard index is at least this
_MORE = 1.25  # minimum ratio of the numbers of empty cells in a column and in the one it depends on
_FEW_NAMED = 3  # maximum number of levels in a rule; or half of all levels, if more


def empty_unless(cells: Cells) -> Iterator[tuple[EmptyUnless, float]]:
    """Find columns that are empty unless another column has certain levels, or any value.

    Each rule comes with the share of filled cells in the rows where it allows values.
    """
    present = {name: cells.present(name) for name in cells.formats}
    least = _MIN_ROWS / 2
    partly = [name for name, of in present.items() if least <= of.sum() <= len(of) - least]
    for name in partly:
        filled, empty = present[name], ~present[name]
        for other, texts, codes in _few_levels(cells, name):
            if (values := _levels_of(filled, codes)) is not None:
                rule = EmptyUnless(columns=(name, other), values=tuple(texts[i] for i in values))
                yield rule, _share(filled, np.isin(codes, values))
        together = [
            other
            for other in partly
            if (empty & ~present[other]).sum() >= _ALIKE * (empty | ~present[other]).sum()
        ]
        for place, other in enumerate(partly):
            n_empty = int((~present[other]).sum())
            if other in together:
                usable = len(together) <= _MOST_TOGETHER and place < partly.index(name)
            else:
                usable = n_empty * _MORE <= empty.sum()
            if usable and np.mean(empty[~present[other]]) >= _CLEARLY:
                yield EmptyUnless(columns=(name, other)), _share(filled, present[other])


def flags_only_if(cells: Cells) -> Iterator[PositiveOnlyIf]:
    """Find 0/1 columns that are 1 only where another is 1, or exactly where one of several is 1.

    Pass all rows, not a sample, because flags may be rare.
    """
    flags = dict[str, BoolArray]()
    texts = set[str]()
    for name, format in cells.formats.items():
        values = cells.values(name) if isinstance(format, NumberFormat) else np.zeros(0)
        is_flag = ((values == 0) | (values == 1)).all()
        if is_flag and min(np.sum(values == 0), np.sum(values == 1)) >= _FEWEST_SET:
            flags[name] = values > 0
            texts |= {*cells.texts(name).filter(pl.Series(values > 0)).unique().to_list()}
    level, one = LEVEL / max(len(flags), 1) ** 2, tuple(sorted(texts))
    for name, is_set in flags.items():
        causes = []
        for other, of in flags.items():
            n_broken, n_expected = int((of & ~is_set).sum()), float(of.sum() * (~is_set).mean())
            few = n_broken <= (1 - NEARLY) * of.sum()
            if other != name and few and are_far_fewer(n_broken, n_expected, level):
                causes.append(other)
        caused = np.any([flags[other] for other in causes], axis=0) if causes else ~is_set
        if len(causes) > 1 and (is_set & ~caused).sum() <= (1 - NEARLY) * is_set.sum():
            yield PositiveOnlyIf(columns=(name, *causes), values=one, both=True)
        else:
            yield from (PositiveOnlyIf(columns=(other, name), values=one) for other in causes)


def _few_levels(cells: Cells, name: str) -> Iterator[tuple[str, list[str], IntArray]]:
    """Yield the other columns with few levels, the levels, and the index of each row's level."""
    for other in cells.formats:
        if other != name:
            # A column of more than two distinct numbers holds amounts, not levels.
            most = _MOST_NUMBERS if cells.is_number(other) else _MOST_LEVELS
            if cells.is_number(other) and np.isfinite(np.unique(cells.values(other))).sum() > most:
                continue
            levels = cells.table.column[other].levels
            if 1 < len(levels.texts) <= most:
                yield other, levels.texts.to_list(), levels.codes.astype(np.int64)


def _levels_of(flags: BoolArray, codes: IntArray) -> list[int] | None:
    """Return levels with over 3 % flagged rows; None if most rows of these levels have no flag."""
    known = codes >= 0
    n = np.bincount(codes[known])
    share = np.bincount(codes[known], flags[known]) / np.maximum(n, 1)
    named = np.flatnonzero(share > 1 - NEARLY)
    if not 0 < len(named) <= max(_FEW_NAMED, len(n) // 2) or len(named) == len(n):
        return None
    return named.tolist() if _share(flags, np.isin(codes, named)) >= _FILLED else None


def _share(flags: BoolArray, rows: BoolArray) -> float:
    return float(np.mean(flags[rows])) if rows.any() else 0.0
