"""Eleven Gaussians in ten dimensions: the table of Mika et al. (1998).

100 rows a centre to train on and 33 to clean, kernel exp(-|x - y|^2 / c), c = 2 sigma^2. A number
is the summed squared distance to the true centres after linear PCA, over that after kernel PCA:
above 1 kernel PCA is better. The paper's values are quoted from memory; its way of starting and
starting again is not known, and with centring and the mean put back (as here) the small widths
come out otherwise, as they do for an independent implementation.
"""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.preimage import fixed_point
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.measuring import components
from kpca_apps.papers.registry import Experiment
from kpca_apps.papers.result import Claim, Outcome, Table, stated

__all__ = ["EXPERIMENT"]

Matrix = NDArray[np.float64]

COUNTS = tuple(range(1, 10))
PAPER = {
    0.05: (2058, 1238, 846, 565, 310, 170, 126, 104, 92),
    0.1: (10, 31, 22, 29, 28, 24, 30, 40, 63),
    0.2: (0.99, 1.12, 1.18, 1.50, 2.11, 2.73, 3.72, 5.09, 6.32),
    0.4: (1.07, 1.26, 1.44, 1.64, 1.91, 2.08, 2.34, 2.47, 2.22),
    0.8: (1.23, 1.39, 1.54, 1.70, 1.80, 1.96, 2.10, 2.25, 2.39),
}
"""Ratios for 1 to 9 components, as they are remembered."""

DRAWS = 3
THREADS = 2


def run(data: PaperData) -> Outcome:
    """Return the median ratio over three draws for each width and number of components."""
    sigmas = tuple(PAPER)
    found = Parallel(n_jobs=THREADS, require="sharedmem")(
        delayed(_ratios)(draw, sigma) for sigma in sigmas for draw in range(DRAWS)
    )
    ratios = np.median(np.reshape(found, (len(sigmas), DRAWS, len(COUNTS))), axis=1)
    small = ratios[[sigmas.index(s) for s in (0.05, 0.1, 0.2, 0.4)]]
    near = int(
        np.count_nonzero(np.abs(np.log(ratios / np.array(list(PAPER.values())))) < np.log(2))
    )
    claims: tuple[Claim, ...] = (
        stated(
            "kernel PCA cleans better than linear PCA for sigma up to .4",
            "ratios above 1, but for one of .99",
            f"smallest ratio {small.min():.2f}",
            bool((small > 1.0).all()),
            origin="quoted from memory",
        ),
        stated(
            "and very much better for the smallest width",
            "2058 at sigma .05, one component",
            f"{ratios[0, 0]:.0f}",
            bool(ratios[0, 0] > 100.0),
            origin="quoted from memory",
        ),
        stated(
            "each of the 45 numbers",
            "as in the table",
            f"{near} within a factor of 2",
            near == ratios.size,
            reason="draws differ by 15 to 40 %, and how the paper started its iteration is unknown",
            origin="quoted from memory",
        ),
    )
    rows = tuple(
        (
            f"{sigma:g}",
            who,
            *(f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in values),
        )
        for sigma, ours in zip(sigmas, ratios, strict=True)
        for who, values in (("paper", PAPER[sigma]), ("ours", ours))
    )
    heads = ("sigma", "", *(f"n = {count}" for count in COUNTS))
    return Outcome(claims, (), (Table("Squared distance, linear over kernel", heads, rows),))


def _ratios(draw: int, sigma: float) -> list[float]:
    """Return the ratio for each number of components, for one draw."""
    rng = np.random.default_rng(draw)
    centres = rng.uniform(-1.0, 1.0, size=(11, 10))
    train = np.repeat(centres, 100, axis=0) + sigma * rng.normal(size=(1100, 10))
    truth = np.repeat(centres, 33, axis=0)
    noisy = truth + sigma * rng.normal(size=truth.shape)
    kernel, linear = components(RBF.from_sigma(sigma), train, 9), components(Linear(), train, 9)
    ratios = []
    for count in COUNTS:
        part = kernel.leading(count)
        cleaned = fixed_point(part, part.project(noisy), noisy, tolerance=1e-3).points
        flat = linear.leading(count)
        projected = flat.expansion(flat.project(noisy)) @ flat.points
        ratios.append(
            float(((projected - truth) ** 2).sum() / max(((cleaned - truth) ** 2).sum(), 1e-300))
        )
    return ratios


EXPERIMENT = Experiment(
    "denoising-toy",
    "Mika et al. (1998), Table 1",
    "Eleven Gaussians cleaned by linear and kernel PCA",
    (),
    run,
)
