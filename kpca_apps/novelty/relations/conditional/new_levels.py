"""Levels that were never seen, which are odd where a column hardly ever has new ones.

The probability that the next cell has a new level is the share of the cells whose level occurs once
(Good 1953): 3,000 orders that come by three channels say 1 in 3,001 of a fourth, but of a customer
nothing where every fifth is new. A level that is written like a known one is a misspelling of it.

References
----------
I. J. Good, The population frequencies of species and the estimation of population parameters,
Biometrika 40, 1953.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpca_apps.names import quoted_cell
from kpca_apps.novelty.evidence import MAX_EVIDENCE, Evidence
from kpca_apps.novelty.relations.conditional.counts import Cells, LevelColumn
from kpca_apps.novelty.relations.conditional.writing import Writing
from kpca_apps.novelty.result import NEW
from kpca_apps.system.arrays import BoolArray, FloatArray

ODD = 0.01  # share of right rows that have a new level, below which one is odd


def find_new_levels(
    columns: Sequence[LevelColumn], cells: Sequence[Cells], own: BoolArray
) -> tuple[FloatArray, tuple[Evidence, ...]]:
    """Return -log of the probability of the least likely new level of rows, (n,), and odd ones.

    To a row that was learned from (`own`, (n,)) a level is new that no other row has.
    """
    both = zip(columns, cells, strict=True)
    looked = [(column, of) for column, of in both if column.spec.has_levels]
    least, found = np.zeros(len(own)), list[Evidence]()
    for column, of in looked:
        log_p = np.minimum(column.log_p_new(of.codes, own) + np.log(len(looked)), 0.0)
        least = np.minimum(least, log_p)
        # To all of them a new level is as improbable: of too many the first are kept.
        rows = np.flatnonzero((log_p < np.log(ODD)) & ~own)[:MAX_EVIDENCE]
        if not len(rows):
            continue
        texts, counts, p = column.texts, column.counts[:-1], float(log_p[rows[0]])
        writing, codes = Writing(texts, counts), of.levels.codes[rows]
        n_once, n_cells = np.count_nonzero(counts == 1), int(counts.sum())
        once = f", {n_once:,} of which have a value of their own," if n_once else ""
        order = np.argsort(codes, kind="stable")
        for alike in np.split(rows[order], np.flatnonzero(np.diff(codes[order])) + 1):
            place = writing.nearest(seen := of.text(alike[0]))
            meant = texts[place] if place >= 0 else ""
            says = f"None of the {n_cells:,} cells learned from{once} reads so."
            if meant:
                says += f" {quoted_cell(meant)} is written like it."
            one = Evidence(0, column.name, NEW, p, seen, meant, meant, n_cells, says)
            found += (one._replace(row=row) for row in alike.tolist())
    return -least, tuple(found)
