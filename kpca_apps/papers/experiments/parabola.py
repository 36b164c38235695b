"""The parabola with noise: contours and eigenvalues of (x.y)^d, degrees 1 to 4 (Fig. 2).

A kernel (x.y)^d in the plane has d + 1 monomials and no more components: two for degree 1, whose
third panel stays empty.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.engine.kernels import Polynomial
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.claims import Claims
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import parabola
from kpca_apps.papers.figures import Contours, Table
from kpca_apps.papers.measuring import components, contours
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix

judged = Claims("parabola")

# Shares of the eigenvalues in the journal's version of the figure (1998, Fig. 3).
JOURNAL = {
    1: (0.709, 0.291),
    2: (0.621, 0.345, 0.034),
    3: (0.570, 0.395, 0.026),
    4: (0.552, 0.418, 0.021),
}
WITHIN = 1.2  # standard deviations of one draw that a published share may lie from our mean
DEGREES = (1, 2, 3, 4)
DRAWS = 100


def run(data: PaperData) -> Outcome:
    """Show the four degrees on one draw, and average shares over many."""
    rng = np.random.default_rng(0)
    X = parabola(rng)
    fits = {d: components(Polynomial(d), X) for d in DEGREES}
    drawn = [_drawn(parabola(rng)) for _ in range(DRAWS)]
    shares = np.array([share for share, _ in drawn])
    noise = float(np.mean([third for _, third in drawn]))
    means, spread = shares.mean(axis=0), shares.std(axis=0)
    counts = [fits[d].n_components for d in DEGREES]
    claims = (
        judged.near("linear count", float(counts[0])),
        judged("more components", min(counts[1:]) > 2, *counts[1:]),
        judged("noise", noise > 0.5, noise, DRAWS),
        *(_shares(d, means[d - 1], spread[d - 1]) for d in DEGREES),
    )
    return Outcome(claims, (_panels(fits, X),), (_table(means, spread),))


def _drawn(X: Matrix) -> tuple[Matrix, float]:
    """Return shares (4, 3) of eigenvalues by degree; how degree 2's third follows the noise."""
    shares = np.zeros((len(DEGREES), 3))
    for row, degree in enumerate(DEGREES):
        fit = components(Polynomial(degree), X)
        first = fit.variances[:3]
        shares[row, : len(first)] = first / fit.variances.sum()
        if degree == 2:
            third = np.corrcoef(fit.project(X)[:, 2], X[:, 1] - X[:, 0] ** 2)[0, 1]
    return shares, abs(float(third))


def _shares(degree: int, mean: Matrix, spread: Matrix) -> Claim:
    known = np.array(JOURNAL[degree])
    mean, spread = mean[: len(known)], spread[: len(known)]
    gap = float(np.max(np.abs(mean - known) / spread))
    ours = _listed(mean)
    return judged("shares", gap <= WITHIN, degree, _listed(known), ours, DRAWS, gap, WITHIN)


def _listed(shares: Matrix) -> str:
    return ", ".join(f"{share:.3f}" for share in shares)


def _table(means: Matrix, spread: Matrix) -> Table:
    rows = []
    for degree in DEGREES:
        cells = [str(degree)]
        for a in range(3):
            there = a < len(JOURNAL[degree])
            ours = f"{means[degree - 1, a]:.3f} \u00b1 {spread[degree - 1, a]:.3f}"
            cells += [f"{JOURNAL[degree][a]:.3f}", ours] if there else ["none", "none"]
        rows.append(tuple(cells))
    heads = ("degree", "1998: first", "ours", "1998: second", "ours", "1998: third", "ours")
    title = f"Shares of the eigenvalues: the 1998 journal's; ours of {DRAWS} draws"
    return Table(title, heads, tuple(rows))


def _panels(fits: dict[int, KernelSubspace], X: Matrix) -> Contours:
    """Return the panels as the report has them: a column a degree, a row a component."""
    nowhere = np.zeros(len(X), dtype=np.intp)
    columns = [contours("", fit, X, nowhere) for fit in fits.values()]
    none = np.full_like(columns[0].values[0], np.nan)
    values, captions = [], []
    for a in range(3):
        for degree, column in zip(fits, columns, strict=True):
            there = a < len(column.values)
            values.append(column.values[a] if there else none)
            share = f"{fits[degree].variances[a]:.3g}" if there else "none"
            captions.append(f"degree {degree}, component {a + 1}: {share}")
    first = columns[0]
    title = "Contours of the first three components, degrees 1 to 4"
    return Contours(title, first.x, first.y, np.stack(values), X, nowhere, tuple(captions))
