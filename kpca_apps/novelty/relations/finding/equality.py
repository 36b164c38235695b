"""Columns that hold the same, number for number or text for text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kpca_apps.novelty.relations.checking import Cells, check
from kpca_apps.novelty.relations.finding.arithmetic import Numbers, is_fine
from kpca_apps.novelty.relations.finding.evidence import NEARLY
from kpca_apps.novelty.relations.rule import Equal

_TELLING = 20  # rows in which one of them holds something else than mostly
_AGREE = 0.9  # share of these in which they are equal


def equal_columns(numbers: Numbers, cells: Cells) -> list[Equal]:
    """Find columns that hold the same numbers, to the rounding of the coarser, or the same texts.

    Of several that do, each is told equal to the first alone.
    """
    place = {name: i for i, name in enumerate(numbers.names)}
    texts = [name for name in cells.formats if not cells.is_number(name)]
    first: dict[str, str] = {}
    found = []
    for one, other in [*_near(numbers), *_alike(texts, cells)]:
        if one in first or other in first:
            continue
        tolerances = [0.0]
        if one in place:
            i, j = place[one], place[other]
            half = float(max(numbers.units[i], numbers.units[j])) / 2
            tolerances += [half] if is_fine(half, 0.0, numbers.spans[i]) else []
        for tolerance in tolerances:
            rule = Equal(columns=(one, other), tolerance=tolerance)
            if _says_enough(rule, cells):
                first[other] = one
                found.append(rule)
                break
    return found


def _near(numbers: Numbers) -> Iterator[tuple[str, str]]:
    """Find pairs of columns of numbers that are nearly equal in nearly all rows."""
    for i, one in enumerate(numbers.names):
        differences = np.abs(numbers.values[:, i + 1 :] - numbers.values[:, [i]])
        halves = np.maximum(numbers.units[i + 1 :], numbers.units[i]) / 2
        n_known = (~np.isnan(differences)).sum(axis=0)
        near = (differences <= halves).sum(axis=0) >= np.maximum(NEARLY * n_known, 1)
        yield from ((one, numbers.names[i + 1 + j]) for j in np.flatnonzero(near).tolist())


def _alike(names: Sequence[str], cells: Cells) -> Iterator[tuple[str, str]]:
    """Find pairs of columns of text that may be equal in nearly all rows, by hashes of texts."""
    hashes = np.zeros((len(names), len(cells)), dtype=np.uint64)
    for place, name in enumerate(names):
        texts = cells.texts(name)
        # 0 where there is no text.
        hashes[place] = (texts.hash().to_numpy() | 1) * texts.is_not_null().to_numpy()
    for place, one in enumerate(names):
        both = (hashes[place] != 0) & (hashes[place + 1 :] != 0)
        n_both = both.sum(axis=1)
        n_apart = (both & (hashes[place] != hashes[place + 1 :])).sum(axis=1)
        alike = (n_both > 0) & (n_apart <= (1 - NEARLY) * n_both + 1)
        yield from ((one, names[place + 1 + j]) for j in np.flatnonzero(alike).tolist())


def _says_enough(rule: Equal, cells: Cells) -> bool:
    """Whether two columns are equal also where they hold something else than mostly."""
    seen = check(rule, cells)
    if seen.share < NEARLY:
        return False
    telling = np.zeros(len(cells), dtype=np.bool_)
    for name in rule.columns:
        codes = cells.codes(name)
        usual = np.argmax(np.bincount(codes[codes >= 0]))
        telling |= seen.applies & (codes != usual)
    return bool(telling.sum() >= _TELLING and np.mean(seen.holds[telling]) >= _AGREE)
