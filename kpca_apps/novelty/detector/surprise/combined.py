"""One score of a row, of its kernel PCA error and its cells: how improbable it is as a whole.

Four scores become p-values among the rows learned from: the reconstruction error of kernel PCA
(k), the mean surprise of the cells (g), their scatter (l) and the oddest of them (c). Their
weighted harmonic mean (Wilson 2019) is small where any of them is, and needs no independence. A row
with one absurd cell is odd however ordinary its others are: its oddest cell counts once more where
it is rarer than that of one row in 150, and then by a power. The score is

    s = log(h + w (1/(150 p_c))^c) + .01 log h    with h = e/p_k + a/p_g + b/p_l + o/p_c

with p_c by an exponential tail, so that s grows without bound. The hundredth keeps rows apart that
have one absurd cell in common. What the relations between columns say of a row counts as one more
term, of weight f (`with_surprise`). A reader's marks of some rows say how much more or less often
than others rows are wrong whose odd cells are in a column (`marked`).

References
----------
D. J. Wilson, The harmonic mean p-value for combining dependent tests, PNAS 116, 2019, equation 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.engine.subspace import SQUARABLE
from kpca_apps.novelty.detector.large_groups import LargeGroups
from kpca_apps.novelty.detector.surprise.cells import CellModel, RowSurprise, sums_of_lines
from kpca_apps.novelty.detector.surprise.marked import FARTHEST, Marked, log_odds_of_columns
from kpca_apps.novelty.detector.surprise.tails import STEEPEST, UpperTail, exponential_tail
from kpca_apps.novelty.detector.views import ColumnRoles
from kpca_apps.novelty.magnitudes import eight_digits, rounded
from kpca_apps.system.arrays import BoolArray, FloatArray

# e, a, b, o, c, w and f. Among rows that may be anything an absurd cell is more often what is
# sought than beside a clean reference, which says how far its columns reach; there, too, a row
# beyond all of the reference is distinguished from another by the error and the oddest cell alone.
# f is the weight of what the numbers of a row do not hold: which of its cells do not go together,
# which is more often what is sought than a row far out. The oddest cell (o) counts from the first
# rows on, too, since none of few rows can be rarer than one in 150.
CONTAMINATED = (1.0, 0.2, 0.2, 0.1, 3.0, 1.0, 3.0)
CLEAN = (1.0, 0.05, 0.05, 0.0, 0.3, 1.0, 3.0)
# Of a wide table distances between rows are all alike, and one odd cell is lost in any sum over its
# columns: there a row is as odd as its cells are, given the others.
WIDE = (0.05, 0.05, 0.2, 1.0, 3.0, 1.0, 3.0)
LARGEST_WEIGHT = 100.0
LARGEST = 1e7
"""A score that none reaches: cells' surprises grow as logarithms, and tails have a steepest."""

# Of what is left of the rest of a row beside one absurd cell: enough to order rows by.
APART = 0.01
# How much rarer than its oddest cell itself, in logarithms, a row may count as among rows that all
# lack odd cells, such as those on a circle.
MORE = 2.0
SCORE_BITS = 32  # of a score: nearly ten digits
# -log of one row in 150, and the quantiles of the rows' oddest cells that the tail goes through.
RARE, OF_CELLS = 5.0, (0.75, 0.95)


@dataclass(frozen=True, eq=False)
class CombinedScore:
    """The score of rows, learned from rows."""

    cells: CellModel
    large_groups: LargeGroups
    # Each of the rows of no large group, and of those of each.
    error: tuple[UpperTail, ...]  # of the kernel PCA errors of rows
    mean: tuple[UpperTail, ...]  # of the mean surprises
    scatter: tuple[UpperTail, ...]
    # Of their oddest cells: the exponential tail slope (oddest - zero).
    oddest_zero: Annotated[float, SQUARABLE]
    oddest_slope: Annotated[float, Meta(ge=0, le=STEEPEST)]
    # e, a, b, o, c, w and f
    weights: Annotated[FloatArray, "7", Meta(ge=0, le=LARGEST_WEIGHT)]
    # Of each column; 0 where nothing is marked.
    by_marks: Annotated[FloatArray, "c", Meta(ge=-FARTHEST, le=FARTHEST)]

    def validate(self) -> None:
        """Refuse large groups without their tails, and columns without cells."""
        n_tails = {len(self.large_groups) + 1}
        if {len(self.error), len(self.mean), len(self.scatter)} != n_tails:
            raise ValueError("its tails are not those of its large groups")
        if len(self.by_marks) != self.cells.n_columns:
            raise ValueError("its marks are not of its columns")

    @classmethod
    def fit(
        cls,
        X: FloatArray,
        errors: FloatArray,
        columns: ColumnRoles,
        *,
        contaminated: bool,
        normal: BoolArray,
        wrong: BoolArray | None = None,
        beside: Marked | None = None,
        large_groups: LargeGroups | None = None,
    ) -> tuple[CombinedScore, FloatArray]:
        """Learn from rows (n, d) and their errors, and score these, each as if left out.

        Those known to be `normal` (n,) are learned from whatever their errors are; those known to
        be `wrong` and these say of which columns odd cells are more often wrong, as do marked rows
        `beside` them, which are not learned from.
        """
        large_groups = large_groups or LargeGroups()
        place = large_groups.places(X)
        cells, rows = CellModel.fit(
            X,
            errors,
            columns,
            contaminated=contaminated,
            normal=normal,
            place=place,
            with_parts=wrong is not None,
        )
        zero, slope = exponential_tail(rows.oddest, OF_CELLS)
        weights = CONTAMINATED if contaminated else CLEAN
        if cells.map.is_wide:
            weights = WIDE

        def tails(scores: FloatArray, *, ends: bool = False) -> tuple[UpperTail, ...]:
            of_groups = (scores[place == group] for group in range(len(large_groups) + 1))
            # Of rows that were drawn, none may be of a group.
            return tuple(UpperTail.fit(of if len(of) else scores, ends=ends) for of in of_groups)

        model = cls(
            cells=cells,
            large_groups=large_groups,
            error=tails(eight_digits(errors)),
            mean=tails(rows.mean, ends=not contaminated),
            scatter=tails(rows.scatter, ends=not contaminated),
            oddest_zero=zero,
            oddest_slope=slope,
            weights=np.array(weights),
            by_marks=np.zeros(cells.n_columns),
        )
        if wrong is not None and rows.parts is not None:
            parts = rows.parts
            if beside is not None:
                parts = np.concatenate([parts, cells.parts(beside.X)], axis=1)
                wrong = np.concatenate([wrong, beside.is_wrong])
                normal = np.concatenate([normal, ~beside.is_wrong])
            model = replace(model, by_marks=log_odds_of_columns(parts, wrong, normal))
        return model, model(X, errors, rows)

    def with_surprise(self, scores: FloatArray, surprise: FloatArray) -> FloatArray:
        """Count in the scores of rows (n,) how improbable each is for other reasons, r = -log p_r.

        One more term of the harmonic mean, f (1/p_r - 1): for a row without evidence (r = 0)
        the score stays.
        """
        return rounded(np.logaddexp(scores, self._beside(surprise)), SCORE_BITS)

    def part_of_surprise(self, score: float, surprise: float) -> float:
        """Part of a row's score, 0..1, that it has by its surprise."""
        return float(np.exp(min(float(self._beside(np.array(surprise))) - score, 0.0)))

    def _beside(self, surprise: FloatArray) -> FloatArray:
        """Return log(f (exp(r) - 1)), -inf where r = 0."""
        with np.errstate(divide="ignore"):
            term: FloatArray = np.log(self.weights[6]) + surprise + np.log(-np.expm1(-surprise))
        return term

    def __call__(
        self, X: FloatArray, errors: FloatArray, rows: RowSurprise | None = None
    ) -> FloatArray:
        """Scores of rows (r, d) with their kernel PCA errors (r,), and what their cells say.

        Cells of new rows, all but those of the fit, are judged here.
        """
        is_marked = bool(self.by_marks.any())
        if rows is None:
            rows = self.cells(X, with_parts=is_marked)
        place = self.large_groups.places(X)

        def surprise(tails: tuple[UpperTail, ...], scores: FloatArray) -> FloatArray:
            found = tails[0](scores)
            for group, tail in enumerate(tails[1:], start=1):
                found[place == group] = tail(scores[place == group])
            return found

        e, a, b, o, c, w, _ = self.weights
        # Logarithms of the terms of h.
        surprises = [
            surprise(self.error, eight_digits(errors)) + np.log(e),
            surprise(self.mean, rows.mean) + np.log(a),
            surprise(self.scatter, rows.scatter) + np.log(b),
        ]
        oddest = self.oddest_slope * (rows.oddest - self.oddest_zero)
        if o:
            surprises.append(np.maximum(oddest, 0.0) + np.log(o))
        of_oddest = np.minimum(oddest, rows.oddest + MORE)
        whole = np.logaddexp.reduce(surprises, axis=0)
        by_oddest = c * (of_oddest - RARE) + np.log(w)
        scores: FloatArray = np.logaddexp(whole, by_oddest) + APART * whole
        if is_marked and rows.parts is not None:
            scores += sums_of_lines(rows.parts * self.by_marks[:, None])
        # Of a row that was not learned from, the fit and a later call differ by rounding.
        return rounded(scores, SCORE_BITS)
