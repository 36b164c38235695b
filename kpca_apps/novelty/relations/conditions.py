"""Columns that hold a value, or a number above 0, only in rows of some levels of another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kpca_apps.novelty.relations.checking import Cells
from kpca_apps.novelty.relations.evidence import NEARLY
from kpca_apps.novelty.relations.rule import EmptyUnless, PositiveOnlyIf
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.tables.values import NumberFormat

_MIN_ROWS = 30
_MOST_LEVELS = 20
_FILLED = 0.3  # share of the rows of the levels named that hold a value
_MOST_TOGETHER = 3  # columns that are empty in the same rows


def empty_unless(cells: Cells) -> Iterator[tuple[EmptyUnless, float]]:
    """Find columns that are empty but in rows of some levels of another, or where it is empty.

    With each rule comes what share of the rows it names hold a value.
    """
    present = {name: cells.present(name) for name in cells.formats}
    partly = [name for name, filled in present.items() if _varies(filled)]
    of_pattern: dict[bytes, list[str]] = {}
    for name in partly:
        of_pattern.setdefault(present[name].tobytes(), []).append(name)
    for name in partly:
        filled = present[name]
        for other, texts, codes in _few_levels(cells, name):
            if (values := _levels_of(filled, codes)) is not None:
                named = tuple(texts[i] for i in values)
                yield (
                    EmptyUnless(columns=(name, other), values=named),
                    _share(filled, np.isin(codes, values)),
                )
        together = of_pattern[filled.tobytes()]
        for other in partly:
            if other in together and (
                len(together) > _MOST_TOGETHER or together.index(other) >= together.index(name)
            ):
                continue
            if (~present[other]).any() and np.mean(~filled[~present[other]]) >= NEARLY:
                yield EmptyUnless(columns=(name, other)), _share(filled, present[other])


def positive_only_if(cells: Cells) -> Iterator[tuple[PositiveOnlyIf, float]]:
    """Find columns of numbers that are 0 but in rows of some levels of another."""
    for name, format in cells.formats.items():
        if not isinstance(format, NumberFormat):
            continue
        values = cells.values(name)
        known = ~np.isnan(values)
        positive = values > 0
        if known.sum() < _MIN_ROWS or np.mean(values[known] < 0) > 1 - NEARLY:
            continue
        if not _varies(positive[known]) or len(np.unique(values[known])) < 3:
            continue
        for other, texts, codes in _few_levels(cells, name):
            codes = np.where(known, codes, -1)
            if (levels := _levels_of(positive, codes)) is not None:
                named = tuple(texts[i] for i in levels)
                yield (
                    PositiveOnlyIf(columns=(name, other), values=named),
                    _share(positive, np.isin(codes, levels)),
                )


def _varies(flags: BoolArray) -> bool:
    share = float(np.mean(flags))
    return min(share, 1 - share) * len(flags) >= _MIN_ROWS / 2


def _few_levels(cells: Cells, name: str) -> Iterator[tuple[str, list[str], IntArray]]:
    """Yield the other columns of a few levels, these, and the place of each row's among them."""
    for other in cells.formats:
        if other != name:
            levels = cells.table.column(other).levels
            if 1 < len(levels.texts) <= _MOST_LEVELS:
                yield other, levels.texts.to_list(), levels.codes.astype(np.int64)


def _levels_of(flags: BoolArray, codes: IntArray) -> list[int] | None:
    """Return the levels in whose rows flags are set, if in nearly no row of the others they are."""
    known = codes >= 0
    n = np.bincount(codes[known])
    share = np.bincount(codes[known], flags[known]) / np.maximum(n, 1)
    named = np.flatnonzero(share > 1 - NEARLY)
    if not len(named) or len(named) == len(n):
        return None
    return named.tolist() if _share(flags, np.isin(codes, named)) >= _FILLED else None


def _share(flags: BoolArray, rows: BoolArray) -> float:
    return float(np.mean(flags[rows])) if rows.any() else 0.0
