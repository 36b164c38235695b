"""Score how improbable each row is, by its kernel PCA error and by its cells.

Four scores become p-values among the training rows: the reconstruction error of kernel PCA (k), the
mean surprise of the cells (g), their scatter (l) and the oddest of them (c). Their weighted
harmonic mean (Wilson 2019) is small if any of them is, and needs no independence. A row with one
absurd cell is odd however ordinary its other cells are. So the oddest cell counts a second time,
raised to a power, if it is rarer than the oddest cell of one row in 150. The score is

    s = log(h + w (1/(150 p_c))^c) + .01 log h    with h = e/p_k + a/p_g + b/p_l + o/p_c

with weights e, a, b, o and w, a power c, and p_c by an exponential tail, so that s has no upper
bound. The last term orders rows that share one absurd cell. Evidence from the relations between
columns is one more term, of weight f (`with_surprise`). Rows marked by a reader show in which
columns odd cells are wrong more or less often than elsewhere (`marked`).

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
from kpca_apps.novelty.detector.surprise.marked import FARTHEST, KnownRows, log_odds_of_columns
from kpca_apps.novelty.detector.surprise.tails import STEEPEST, UpperTail, exponential_tail
from kpca_apps.novelty.detector.views import ColumnRoles
from kpca_apps.novelty.magnitudes import eight_digits, rounded
from kpca_apps.system.arrays import FloatArray

# Weights in this order: e (error), a (mean surprise), b (scatter), o (oddest cell), power c and
# weight w of very odd cells, f (relations); the module's docstring defines them. CONTAMINATED:
# without a clean reference, users mostly look for very odd cells; o is not 0, since in a table of
# few rows no cell is rare enough (1 in 150) to count as very odd. CLEAN: a row outside the range of
# the reference has a high error or an odd cell, but no high mean surprise or scatter. In both, f is
# large: users look for contradictions between cells more than for extreme rows.
CONTAMINATED = (1.0, 0.2, 0.2, 0.1, 3.0, 1.0, 3.0)
CLEAN = (1.0, 0.05, 0.05, 0.0, 0.3, 1.0, 3.0)
# In a wide table all distances between rows are alike, and a sum over columns hides one odd cell,
# so these weights favour the scores of single cells.
WIDE = (0.05, 0.05, 0.2, 1.0, 3.0, 1.0, 3.0)
LARGEST_WEIGHT = 100.0
LARGEST = 1e7
"""Upper bound of scores: surprises grow as logarithms, and slopes of tails are bounded."""

# Weight of the last term of the score, which orders rows whose oddest cells are equally odd.
APART = 0.01
# The fitted tail may make a row's oddest cell at most e^MORE times as rare as its surprise says. If
# no row has odd cells, as with points on a circle, the fitted tail is too steep.
MORE = 2.0
SCORE_BITS = 32  # number of bits kept of a score: nearly ten digits
# Cells rarer than 1 in e^RARE (150) are very odd. OF_CELLS: quantiles that the tail goes through.
RARE, OF_CELLS = 5.0, (0.75, 0.95)


@dataclass(frozen=True, eq=False)
class CombinedScore:
    """The score of rows by kernel PCA and by their cells, learned from a table."""

    cells: CellModel
    large_groups: LargeGroups
    # Tails: the first for rows outside the large groups, then one for each large group.
    error: tuple[UpperTail, ...]  # tails of the rows' kernel PCA errors
    mean: tuple[UpperTail, ...]  # tails of each row's mean surprise: -log of how rare its cells are
    scatter: tuple[UpperTail, ...]
    # The exponential tail of the rows' oddest cells: surprise = slope (oddest - zero).
    oddest_zero: Annotated[float, SQUARABLE]
    oddest_slope: Annotated[float, Meta(ge=0, le=STEEPEST)]
    weights: Annotated[FloatArray, "7", Meta(ge=0, le=LARGEST_WEIGHT)]
    # Log odds that a column's odd cells add to a score, from rows marked wrong or fine (else 0).
    by_marks: Annotated[FloatArray, "c", Meta(ge=-FARTHEST, le=FARTHEST)]

    def validate(self) -> None:
        """Raise if tails and groups, or `by_marks` and columns, differ in number."""
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
        known: KnownRows,
    ) -> tuple[CombinedScore, FloatArray]:
        """Learn from rows (n, d) and their errors; also score these rows, each as if left out.

        Rows `known` to be normal are used whatever their errors. Normal rows, wrong rows, and
        marked rows outside the training rows show in which columns odd cells are more often wrong.
        """
        wrong, beside, large_groups = known.wrong, known.beside, known.large_groups
        normal = np.zeros(len(X), dtype=bool) if known.normal is None else known.normal
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
            # A group without rows in the sample gets the tail of all rows.
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
        """Add evidence r = -log p_r from relations between columns to the scores of rows (n,).

        The added term of the harmonic mean is f (1/p_r - 1), which is 0 without evidence.
        """
        return rounded(np.logaddexp(scores, self._evidence_term(surprise)), SCORE_BITS)

    def part_of_surprise(self, scores: FloatArray, surprise: FloatArray) -> FloatArray:
        """Return the parts (0..1) of rows' scores that come from broken relations (`surprise`)."""
        part: FloatArray = np.exp(np.minimum(self._evidence_term(surprise) - scores, 0.0))
        return part

    def _evidence_term(self, surprise: FloatArray) -> FloatArray:
        """Return log(f (exp(r) - 1)) with r = `surprise` and the weight f; -inf where r = 0."""
        with np.errstate(divide="ignore"):
            term: FloatArray = np.log(self.weights[6]) + surprise + np.log(-np.expm1(-surprise))
        return term

    def __call__(
        self, X: FloatArray, errors: FloatArray, rows: RowSurprise | None = None
    ) -> FloatArray:
        """Return scores of rows (r, d), from their kernel PCA errors (r,) and their cells.

        `rows` are the surprises of training rows; those of new rows are computed here.
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
        # Logarithms of the weighted inverse p-values whose sum is h in the module docstring.
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
        # Drop the last bits, which differ between the fit and a later call.
        return rounded(scores, SCORE_BITS)
