"""Columns that are equal, number for number or text for text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kpca_apps.novelty.relations.checking import Cells, check
from kpca_apps.novelty.relations.finding.arithmetic import Numbers, is_fine
from kpca_apps.novelty.relations.finding.evidence import NEARLY, holds_elsewhere
from kpca_apps.novelty.relations.rule import Equal

_TELLING = 20  # least number of rows without the column's commonest value


def equal_columns(numbers: Numbers, cells: Cells) -> list[Equal]:
    """Find columns with the same numbers, up to the coarser column's rounding, or the same texts.

    Of several equal columns, each is paired with the first.
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
        rules = (Equal(columns=(one, other), tolerance=tolerance) for tolerance in tolerances)
        if (rule := next((rule for rule in rules if _says_enough(rule, cells)), None)) is not None:
            first[other] = one
            found.append(rule)
    return found


def _near(numbers: Numbers) -> Iterator[tuple[str, str]]:
    for i, one in enumerate(numbers.names):
        differences = np.abs(numbers.values[:, i + 1 :] - numbers.values[:, [i]])
        halves = np.maximum(numbers.units[i + 1 :], numbers.units[i]) / 2
        n_known = (~np.isnan(differences)).sum(axis=0)
        near = (differences <= halves).sum(axis=0) >= np.maximum(NEARLY * n_known, 1)
        yield from ((one, numbers.names[i + 1 + j]) for j in np.flatnonzero(near).tolist())


def _alike(names: Sequence[str], cells: Cells) -> Iterator[tuple[str, str]]:
    """Yield pairs of columns whose texts have equal hashes in nearly all rows."""
    hashes = np.zeros((len(names), len(cells)), dtype=np.uint64)
    for place, name in enumerate(names):
        texts = cells.texts(name)
        hashes[place] = (texts.hash().to_numpy() | 1) * texts.is_not_null().to_numpy()  # 0: missing
    for place, one in enumerate(names):
        both = (hashes[place] != 0) & (hashes[place + 1 :] != 0)
        n_both = both.sum(axis=1)
        n_apart = (both & (hashes[place] != hashes[place + 1 :])).sum(axis=1)
        alike = (n_both > 0) & (n_apart <= (1 - NEARLY) * n_both + 1)
        yield from ((one, names[place + 1 + j]) for j in np.flatnonzero(alike).tolist())


def _says_enough(rule: Equal, cells: Cells) -> bool:
    seen = check(rule, cells)
    return seen.share >= NEARLY and holds_elsewhere(seen, map(cells.codes, rule.columns), _TELLING)
