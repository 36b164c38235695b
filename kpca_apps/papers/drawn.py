"""Random data sets, drawn by the recipes of the papers.

The papers' random numbers are not available, so only statistics can be compared.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.papers.data import Labels
from kpca_apps.system.arrays import Matrix


def three_clusters(
    rng: np.random.Generator, n: int = 500, *, radius: float = 4.0, deviation: float = 0.8
) -> tuple[Matrix, Labels]:
    """Draw Gaussian clusters around three points evenly spaced on a circle."""
    # Aguilera and Antonanzas (2019), Fig. 1; mlbench.2dnormals(500, 3, r = 4, sd = 0.8).
    labels = rng.integers(3, size=n)
    angles = np.pi / 4.0 + labels * 2.0 * np.pi / 3.0
    centres = radius * np.column_stack([np.cos(angles), np.sin(angles)])
    return centres + deviation * rng.normal(size=(n, 2)), labels


def cassini(rng: np.random.Generator, n: int = 500) -> tuple[Matrix, Labels]:
    """Draw the cassini problem: two beans, below (0) and above (1), and a disc in between (2)."""
    # A bean is bounded by an inner branch of the Cassini oval a = 1, c = 0.97 and the outer branch
    # of one with c^2 = (1 + 0.97^2) / 3, a = c sqrt(2), both shifted by 1.1; the circle has radius
    # 0.6; beans hold 2/5 of the rows each. Aguilera and Antonanzas (2019), Figs. 2 and 3;
    # mlbench.cassini(500, c(2, 2, 1)).
    bean = round(0.4 * n)
    lower, upper = _bean(rng, bean), _bean(rng, bean) * [1.0, -1.0]
    size = n - 2 * bean
    radius, angle = 0.6 * np.sqrt(rng.uniform(size=size)), rng.uniform(0.0, 2.0 * np.pi, size)
    circle = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return np.vstack([lower, upper, circle]), np.repeat(np.arange(3), [bean, bean, size])


def _bean(rng: np.random.Generator, size: int) -> Matrix:
    c = 0.97
    outer_c = np.sqrt((1.0 + c**2) / 3.0)
    half = np.sqrt(1.0 + c**2)
    rows = np.empty((0, 2))
    while len(rows) < size:
        x, y = rng.uniform(-half, half, 4 * size), rng.uniform(-2.1, -0.5, 4 * size)
        inside = (y < _branch(x, 1.0, c) - 1.1) & (
            y > -_branch(x, outer_c * np.sqrt(2.0), outer_c) - 1.1
        )
        rows = np.vstack([rows, np.column_stack([x, y])[inside]])
    return rows[:size]


def _branch(x: Matrix, a: float, c: float) -> Matrix:
    squared = np.sqrt(a**4 + 4.0 * c**2 * x**2) - c**2 - x**2
    return np.asarray(np.sqrt(np.where(squared >= 0.0, squared, np.nan)))


def half_moons(rng: np.random.Generator, size: int = 200) -> tuple[Matrix, Labels]:
    """Draw a sine over (0, pi] and a cosine over (pi/2, 3 pi/2], with vertical noise of sd 0.2."""
    # Aguilera and Antonanzas (2019), Fig. 4.
    step = np.arange(1, size + 1) / size
    x = np.concatenate([step * np.pi, (step + 0.5) * np.pi])
    labels = np.repeat(np.arange(2), size)
    y = np.where(labels == 0, np.sin(x), np.cos(x)) + 0.2 * rng.normal(size=2 * size)
    return np.column_stack([x, y]), labels


def parabola(rng: np.random.Generator, n: int = 100) -> Matrix:
    """Draw y = x^2 + noise of standard deviation 0.2, x uniform in [-1, 1]."""
    # Scholkopf, Smola and Muller (1996), MPI technical report 44, Fig. 2.
    x = rng.uniform(-1.0, 1.0, n)
    return np.column_stack([x, x**2 + 0.2 * rng.normal(size=n)])


def rings(
    rng: np.random.Generator, radii: tuple[float, ...], noise: float, size: int = 150
) -> tuple[Matrix, Labels]:
    """Draw ``size`` points on each circle, with Gaussian noise in both coordinates."""
    labels = np.repeat(np.arange(len(radii)), size)
    angle = rng.uniform(0.0, 2.0 * np.pi, len(labels))
    radius = np.array(radii)[labels]
    rows = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return rows + noise * rng.normal(size=rows.shape), labels
