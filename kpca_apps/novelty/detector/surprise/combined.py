"""One score of a row from what kernel PCA and its cells say: how improbable it is, all told.

Each of three scores becomes its p-value among the rows learned from: the reconstruction error of
kernel PCA (k), the mean surprise of the cells (g) and their scatter (l). Their weighted harmonic
mean (Wilson 2019) is small where any of them is, and needs no independence. A row with one absurd
cell is odd however ordinary its others are: its oddest cell counts once it is rarer than that of
one row in 150, and then by a power. The score is

    s = log(h + (1/(150 p_c))^c) + .01 log h    with h = 1/p_k + a/p_g + b/p_l

with p_c by an exponential tail, so that s grows without bound. The hundredth keeps rows apart that
have one absurd cell in common.

References
----------
D. J. Wilson, The harmonic mean p-value for combining dependent tests, PNAS 116, 2019, equation 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.engine.rows import RowFunction
from kpca_apps.novelty.detector.surprise.cells import CellModel, RowSurprise
from kpca_apps.novelty.detector.surprise.tails import ExponentialTail, UpperTail
from kpca_apps.novelty.magnitudes import eight_digits

__all__ = ["LARGEST", "CombinedScore", "CombinedScores"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# a, b and c. Among rows that may be anything an absurd cell is more often what is sought than
# beside a clean reference, which says how far its columns reach; there, too, a row beyond all of
# the reference is told from another by the error and the oddest cell alone.
CONTAMINATED, CLEAN = (0.2, 0.2, 3.0), (0.05, 0.05, 0.3)
LARGEST_WEIGHT = 100.0
LARGEST = 1e7
"""A score that none reaches: cells' surprises grow as logarithms, and tails have a steepest."""

# Of what is left of the rest of a row beside one absurd cell: enough to order rows by.
APART = 0.01
# How much rarer than its oddest cell itself, in logarithms, a row may count as among rows that all
# lack odd cells, such as those on a circle.
MORE = 2.0
# -log of one row in 150, and the quantiles of the rows' oddest cells that the tail goes through.
RARE, OF_CELLS = 5.0, (0.75, 0.95)


@dataclass(frozen=True, eq=False)
class CombinedScore:
    """The score of rows, learned from rows.

    Attributes
    ----------
    cells : CellModel
    error, mean, scatter : UpperTail
        Of the kernel PCA errors, mean surprises and scatters of rows.
    oddest : ExponentialTail
        Of their oddest cells.
    weights : (3,) array
        a, b and c.
    """

    cells: CellModel
    error: UpperTail
    mean: UpperTail
    scatter: UpperTail
    oddest: ExponentialTail
    weights: Annotated[FloatArray, "3", Meta(gt=0, le=LARGEST_WEIGHT)]

    @classmethod
    def fit(
        cls,
        X: FloatArray,
        errors: FloatArray,
        groups: Sequence[IntArray],
        as_is: IntArray,
        *,
        contaminated: bool,
    ) -> tuple[CombinedScore, FloatArray]:
        """Learn from rows (n, d) and their errors, and score these, each as if left out."""
        cells, rows = CellModel.fit(X, errors, groups, as_is, contaminated=contaminated)
        model = cls(
            cells=cells,
            error=UpperTail.fit(eight_digits(errors)),
            mean=UpperTail.fit(rows.mean, ends=not contaminated),
            scatter=UpperTail.fit(rows.scatter, ends=not contaminated),
            oddest=ExponentialTail.fit(rows.oddest, OF_CELLS),
            weights=np.array(CONTAMINATED if contaminated else CLEAN),
        )
        return model, model._combine(errors, rows)

    def __call__(self, X: FloatArray, errors: FloatArray) -> FloatArray:
        """Scores of new rows (r, d) with their kernel PCA errors (r,)."""
        return self._combine(errors, self.cells(X))

    def _combine(self, errors: FloatArray, rows: RowSurprise) -> FloatArray:
        a, b, c = self.weights
        surprises = [
            self.error(eight_digits(errors)),
            self.mean(rows.mean) + np.log(a),
            self.scatter(rows.scatter) + np.log(b),
        ]
        whole = np.logaddexp.reduce(surprises, axis=0)
        of_oddest = np.minimum(self.oddest(rows.oddest), rows.oddest + MORE)
        scores: FloatArray = np.logaddexp(whole, c * (of_oddest - RARE)) + APART * whole
        return scores


@dataclass(frozen=True, eq=False)
class CombinedScores:
    """Combined score of each row, wherever the rows are.

    Attributes
    ----------
    errors : RowFunction
        Errors of kernel PCA.
    combined : CombinedScore
    """

    purpose: ClassVar[str] = "Scoring rows"

    errors: RowFunction
    combined: CombinedScore

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the scores of rows; errors of those in use are as if each had been left out."""
        errors = self.errors.prepare()
        return lambda rows, in_use: self.combined(rows, errors(rows, in_use))
