"""The parabola with noise, degrees 1 to 4 (Scholkopf, Smola and Muller 1996, Fig. 2).

A kernel (x.y)^d in the plane has d + 1 monomials and no more components; the report shows three.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.kernels import Polynomial
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import parabola
from kpca_apps.papers.measuring import components, isolines
from kpca_apps.papers.registry import Experiment
from kpca_apps.papers.result import Claim, Isolines, Outcome, Table, close_to, stated

__all__ = ["EXPERIMENT"]

Matrix = NDArray[np.float64]

JOURNAL = {
    1: (0.709, 0.291),
    2: (0.621, 0.345, 0.034),
    3: (0.570, 0.395, 0.026),
    4: (0.552, 0.418, 0.021),
}
"""Shares of the eigenvalues in the journal's version of the figure, as they are remembered."""

SPREAD = {1: 0.026, 2: 0.031, 3: 0.050, 4: 0.073}
"""Standard deviation of the first share over draws of 100 rows."""


def run(data: PaperData) -> Outcome:
    """Fit the four degrees; average shares over 50 draws."""
    rng = np.random.default_rng(0)
    X = parabola(rng)
    degrees = (1, 2, 3, 4)
    fits = {d: components(Polynomial(d), X) for d in degrees}
    shares = {d: [] for d in degrees}  # type: dict[int, list[tuple[float, ...]]]
    for _ in range(50):
        rows = parabola(rng)
        for d in degrees:
            v = components(Polynomial(d), rows).variances
            shares[d].append(tuple(v[:2] / v.sum()))
    means = {d: np.mean(shares[d], axis=0) for d in degrees}
    claims: list[Claim] = [
        close_to(f"degree {d}: components", d + 1.0, float(fits[d].n_components), 0.0)
        for d in degrees
    ]
    claims += [
        close_to(
            f"degree {d}: share of the first eigenvalue",
            JOURNAL[d][0],
            float(means[d][0]),
            1.5 * SPREAD[d],
            condition="the tolerance is 1.5 standard deviations of one draw",
            origin="quoted from memory",
        )
        for d in degrees
    ]
    third = abs(float(np.corrcoef(fits[2].project(X)[:, 2], X[:, 1] - X[:, 0] ** 2)[0, 1]))
    claims.append(
        stated(
            "degree 2: the third component picks up the noise",
            "variance caused by the noise",
            f"correlation {third:.2f} with y - x^2",
            third > 0.5,
        )
    )
    table = Table(
        "Shares of the first two eigenvalues, mean of 50 draws",
        ("degree", "first", "journal", "second", "journal"),
        tuple(
            (str(d), f"{means[d][0]:.3f}", f"{JOURNAL[d][0]:.3f}", f"{means[d][1]:.3f}",
             f"{JOURNAL[d][1]:.3f}")
            for d in degrees
        ),
    )  # fmt: skip
    return Outcome(tuple(claims), (_panels(fits, X),), (table,))


def _panels(fits: dict[int, KernelSubspace], X: Matrix) -> Isolines:
    """Return the panels as the report has them: a column a degree, a row a component."""
    nowhere = np.zeros(len(X), dtype=np.intp)
    columns = [isolines("", fit, X, nowhere) for fit in fits.values()]
    none = np.full_like(columns[0].values[0], np.nan)
    values, captions = [], []
    for a in range(3):
        for degree, column in zip(fits, columns, strict=True):
            there = a < len(column.values)
            values.append(column.values[a] if there else none)
            share = f"{fits[degree].variances[a]:.3g}" if there else "none"
            captions.append(f"degree {degree}, component {a + 1}: {share}")
    first = columns[0]
    title = "Isolines of the first three components, degrees 1 to 4"
    return Isolines(title, first.x, first.y, np.stack(values), X, nowhere, tuple(captions))


EXPERIMENT = Experiment(
    "parabola",
    "Scholkopf, Smola and Muller (1996), Fig. 2",
    "A noisy parabola, polynomial kernels of degree 1 to 4",
    (),
    run,
)
