"""Eleven Gaussians in ten dimensions (Table 1), kernel exp(-|x - y|^2 / (d c)), d = 10.

The kernel's width follows the noise, c = 2 sigma^2. A number is the summed squared distance to the
true centres after linear PCA, over that after kernel PCA. 100 rows a centre are trained on and 33
cleaned.
"""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.preimage.fixed_point import fixed_point
from kpca_apps.papers.claims import Claims
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.figures import Table
from kpca_apps.papers.measuring import components
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread

judged = Claims("denoising-toy")

COUNTS = tuple(range(1, 10))
D = 10  # columns
# Ratios for 1 to 9 components by the noise's standard deviation (Mika et al. 1998, Table 1).
PAPER = {
    0.05: (2058.42, 1238.36, 846.14, 565.41, 309.64, 170.36, 125.97, 104.40, 92.23),
    0.1: (10.22, 31.32, 21.51, 29.24, 27.66, 23.53, 29.64, 40.07, 63.41),
    0.2: (0.99, 1.12, 1.18, 1.50, 2.11, 2.73, 3.72, 5.09, 6.32),
    0.4: (1.07, 1.26, 1.44, 1.64, 1.91, 2.08, 2.22, 2.34, 2.47),
    0.8: (1.23, 1.39, 1.54, 1.70, 1.80, 1.96, 2.10, 2.25, 2.39),
}

MUCH = 100.0  # ratio from which kernel PCA counts as very much better
DRAWS = 5
THREADS = 2


def run(data: PaperData) -> Outcome:
    """Return the median ratio over draws for each width and number of components."""
    sigmas = tuple(PAPER)
    jobs = (delayed(ratios)(draw, sigma) for sigma in sigmas for draw in range(DRAWS))
    with one_blas_thread():
        results = Parallel(n_jobs=THREADS, require="sharedmem")(jobs)
    found, tries, restarts = zip(*results, strict=True)
    median = np.median(np.reshape(found, (len(sigmas), DRAWS, len(COUNTS))), axis=1)
    rows = tuple(
        (f"{sigma:g}", who, *map(_cell, values))
        for sigma, ours in zip(sigmas, median, strict=True)
        for who, values in (("paper", PAPER[sigma]), ("ours", ours))
    )
    heads = ("sigma", "", *(f"n = {count}" for count in COUNTS))
    n_tries, n_restarts = int(np.sum(tries)), int(np.sum(restarts))
    note = f"None of {n_tries:,} fixed points had to be begun again."
    if n_restarts:
        note = (
            f"Of {n_tries:,} fixed points {n_restarts:,} were begun again: the denominator had "
            "vanished, or they had ended farther off than they began."
        )
    table = Table("Squared distance, linear over kernel", heads, rows)
    return Outcome(_judge(median), (), (table,), (note,))


def _cell(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _judge(median: Matrix) -> tuple[Claim, ...]:
    paper, wide = np.array(list(PAPER.values())), median[-1]
    near = int(np.count_nonzero(np.abs(np.log(median / paper)) < np.log(2.0)))
    below = [count for count, ratio in zip(COUNTS, wide, strict=True) if ratio < 1.0]
    return (
        judged("to 0.4", (median[:-1] > 1.0).all(), median[:-1].min()),
        judged("smallest width", median[0, 0] > MUCH, median[0, 0], MUCH),
        _growth(median),
        judged("0.8", not below, wide.min(), wide.max(), " or ".join(map(str, below))),
        judged("every number", near == paper.size, paper.size, near),
    )


def _growth(median: Matrix) -> Claim:
    """Judge whether the middle widths gain from more components, from the first to the last."""
    middle = (0.1, 0.2)
    ours = [median[list(PAPER).index(sigma)] for sigma in middle]
    paper = [np.array(PAPER[sigma]) for sigma in middle]
    ranges = [
        "; ".join(f"{_cell(row[0])} to {_cell(row[-1])}" for row in rows) for rows in (paper, ours)
    ]
    return judged("growth", all(row[-1] > row[0] for row in ours), *ranges)


def drawn(draw: int, sigma: float) -> tuple[Matrix, Matrix, Matrix]:
    """Return training rows (1100, 10), noisy rows and their centres (363, 10)."""
    rng = np.random.default_rng(draw)
    centres = rng.uniform(-1.0, 1.0, size=(11, D))
    train = np.repeat(centres, 100, axis=0) + sigma * rng.normal(size=(1100, D))
    truth = np.repeat(centres, 33, axis=0)
    return train, truth + sigma * rng.normal(size=truth.shape), truth


def ratios(draw: int, sigma: float) -> tuple[list[float], int, int]:
    """Return the ratio for each number of components, fixed points, and those begun again."""
    train, noisy, truth = drawn(draw, sigma)
    kernel = components(RBF(1.0 / (D * 2.0 * sigma**2)), train, max(COUNTS))
    linear = components(Linear(), train, max(COUNTS))
    found, restarts = [], 0
    for count in COUNTS:
        part, flat = kernel.leading(count), linear.leading(count)
        cleaned = fixed_point(part, part.project(noisy), noisy, tolerance=1e-3)
        projected = flat.expansion(flat.project(noisy)) @ flat.points
        after_linear, after_kernel = (
            ((points - truth) ** 2).sum() for points in (projected, cleaned.points)
        )
        found.append(float(after_linear / after_kernel))
        restarts += int(cleaned.restarted.sum())
    return found, len(COUNTS) * len(noisy), restarts
