"""New levels in a column that rarely has any.

The probability that the next cell has a new level is the share of cells whose level occurs once
(Good 1953). A new level spelt like a known one is a misspelling.

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

ODD = 0.01  # new levels are odd in a column where their probability is below this


def find_new_levels(
    columns: Sequence[LevelColumn], cells: Sequence[Cells], own: BoolArray
) -> tuple[FloatArray, tuple[Evidence, ...]]:
    """Return -log of the probability of each row's least likely new level, (n,), and evidence.

    A level of a training row (`own`, (n,)) is new if no other row has it.
    """
    pairs = [pair for pair in zip(columns, cells, strict=True) if pair[0].spec.has_levels]
    least, found = np.zeros(len(own)), list[Evidence]()
    for column, of in pairs:
        log_p = np.minimum(column.log_p_new(of.codes, own) + np.log(len(pairs)), 0.0)
        least = np.minimum(least, log_p)
        rows = np.flatnonzero((log_p < np.log(ODD)) & ~own)[:MAX_EVIDENCE]
        if not len(rows):
            continue
        texts, counts = column.texts, column.counts[:-1]
        writing, codes = Writing(texts, counts), of.levels.codes[rows]
        n_once, n_cells = np.count_nonzero(counts == 1), int(counts.sum())
        once = f", {n_once:,} of which have a value of their own," if n_once else ""
        for code in np.unique(codes):
            alike = rows[codes == code]
            place = writing.nearest(seen := of.text(alike[0]))
            meant = texts[place] if place >= 0 else ""
            says = f"None of the {n_cells:,} cells learned from{once} reads so."
            if meant:
                says += f" {quoted_cell(meant)} is written like it."
            p = float(log_p[alike[0]])
            one = Evidence(0, column.name, NEW, p, seen, meant, meant, n_cells, says)
            found += (one._replace(row=row) for row in alike.tolist())
    return -least, tuple(found)
