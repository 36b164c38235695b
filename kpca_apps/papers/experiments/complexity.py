"""What kernel PCA costs: time and memory over the number of rows (complexity claims).

Aguilera and Antonanzas put their implementation at O(n^3) time and O(n^2) memory; Scholkopf, Smola
and Muller suggest computing the leading eigenpairs only, or a subset. Measured here: all components
by LAPACK, ten by Krylov iteration, ten through 100 landmarks. Times are of this machine and of this
moment, the only numbers of the gallery that change from run to run.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.memory import lapack_fit_bytes
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.registry import Experiment
from kpca_apps.papers.result import Curves, Outcome, stated

__all__ = ["EXPERIMENT"]

Matrix = NDArray[np.float64]

ROWS = (500, 1000, 2000, 4000)
ROWS_OF_LAPACK = (250, 500, 1000, 2000)
GAMMA = 0.05


def run(data: PaperData) -> Outcome:
    """Time the three ways and read off the exponents."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(max(ROWS), 10))

    def lapack(n: int) -> None:
        fit_exact(RBF(GAMMA), X[:n], rng=rng, solver="lapack")

    def krylov(n: int) -> None:
        fit_exact(RBF(GAMMA), X[:n], rng=rng, n_components=10, solver="krylov")

    def landmarks(n: int) -> None:
        KernelPCA(
            10,
            kernel=RBF(GAMMA),
            method="nystroem",
            landmarks=X[:100],
            precision="float64",
        ).fit(X[:n])

    series = {
        "all components, LAPACK": _seconds(lapack, ROWS_OF_LAPACK),
        "10 components, Krylov": _seconds(krylov, ROWS),
        "10 components, 100 landmarks": _seconds(landmarks, ROWS),
    }
    powers = {name: _exponent(*pair) for name, pair in series.items()}
    counts = np.array(ROWS, dtype=np.float64)
    memory = np.array([lapack_fit_bytes(n, n, "float64") for n in ROWS], dtype=np.float64)
    full, few, low = powers.values()
    claims = (
        stated(
            "time of all components grows as n^3",
            "O(n^3)",
            f"as n^{full:.1f} between {ROWS_OF_LAPACK[-2]} and {ROWS_OF_LAPACK[-1]} rows",
            1.8 < full < 3.6,
        ),
        stated(
            "memory grows as n^2",
            "O(n^2)",
            f"as n^{_exponent(counts, memory):.2f}",
            abs(_exponent(counts, memory) - 2.0) < 0.1,
        ),
        stated(
            "fewer components, or a subset, cost less",
            "suggested",
            f"ten components as n^{few:.1f}, through landmarks as n^{low:.1f}",
            max(few, low) < full,
        ),
    )
    figure = Curves("Time of a fit", "rows", "seconds", series, log_x=True, log_y=True)
    return Outcome(claims, (figure,))


def _seconds(fit: Callable[[int], None], rows: tuple[int, ...]) -> tuple[Matrix, Matrix]:
    """Return the rows and the shorter of two times of each fit."""
    times = []
    for n in rows:
        spent = []
        for _ in range(2):
            start = time.perf_counter()
            fit(n)
            spent.append(time.perf_counter() - start)
        times.append(min(spent))
    return np.array(rows, dtype=np.float64), np.array(times)


def _exponent(x: Matrix, y: Matrix) -> float:
    """Return the slope between the last two points, both axes logarithmic."""
    return float(np.log(y[-1] / y[-2]) / np.log(x[-1] / x[-2]))


EXPERIMENT = Experiment(
    "complexity",
    "Aguilera and Antonanzas (2019), VII; Scholkopf, Smola and Muller (1996), 4.4",
    "Time and memory over the number of rows",
    (),
    run,
)
