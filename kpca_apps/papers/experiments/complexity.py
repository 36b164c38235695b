"""Cost of kernel PCA: time and memory of a fit, time of a projection.

The claims are from section VII of Aguilera and Antonanzas (2019) and 4.4 of the 1996 report. The
exponent of a cost is the slope of its curve on logarithmic axes between the last two points.
"""

from __future__ import annotations

import time
import timeit
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.plan import ExactPlan, FitOptions
from kpca_apps.papers.claims import judge
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.figures import Curves
from kpca_apps.papers.measuring import components
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix

Job = Callable[[int], object]

ROWS = (500, 1000, 2000, 4000)
ROWS_OF_LAPACK = (250, 500, 1000, 2000)
PROJECTED = (1000, 2000, 4000, 8000)
TRAINED = (250, 500, 1000, 2000)
ATTRIBUTES = (500, 1000, 2000, 4000)
ALL_OF = (500, 1000, 2000)
COUNTS = (100, 200, 400, 800)
GAMMA = 0.05


def run_complexity(data: PaperData) -> Outcome:
    """Time fits and projections of several sizes, and estimate the exponents of their costs."""
    X = np.random.default_rng(0).normal(size=(max(PROJECTED), 10))
    jobs = fits(X)
    seconds = {name: series_of(_seconds, *job) for name, job in jobs.items()}
    held = {name: series_of(peak_bytes, *job) for name, job in jobs.items()}
    memory = {name: (sizes, peaks / 1e6) for name, (sizes, peaks) in held.items()}
    projections = {name: series_of(_seconds, *job) for name, job in _projections(X).items()}
    figures = tuple(
        Curves(*words, series, log_x=True, log_y=True)
        for words, series in (
            (("Time of a fit", "rows", "processor seconds"), seconds),
            (("Memory of a fit", "rows", "megabytes"), memory),
            (("Time of a projection", "m, n, p or l", "processor seconds"), projections),
        )
    )
    return Outcome((*_judge_fits(seconds, memory), *_judge_projections(projections)), figures)


def fits(X: Matrix) -> dict[str, tuple[Job, tuple[int, ...]]]:
    """Return ways to fit the first n rows of X, each with its numbers of rows."""
    return {
        "all components, LAPACK": (
            lambda n: _fit(X[:n], options=FitOptions(solver="lapack")),
            ROWS_OF_LAPACK,
        ),
        "10 components, Krylov, no Gram matrix": (
            lambda n: _fit(X[:n], plan=ExactPlan(n, 10, "krylov", "float64", False, n_bytes=0)),
            ROWS,
        ),
        "10 components, 100 landmarks": (_landmarks(X), ROWS),
    }


def _fit(X: Matrix, **how: Any) -> object:
    return fit_exact(RBF(GAMMA), X, rng=np.random.default_rng(0), **how)


def _landmarks(X: Matrix) -> Job:
    model = KernelPCA(
        10, kernel=RBF(GAMMA), method="nystroem", landmarks=X[:100], precision="float64"
    )
    return lambda n: model.fit(X[:n])


def _projections(X: Matrix) -> dict[str, tuple[Job, tuple[int, ...]]]:
    """Return the projections whose time is measured, with the sizes to try."""
    fits = {n: components(RBF(GAMMA), X[:n], 50) for n in TRAINED}
    middle, few = fits[1000], X[:2000]
    full, linear = components(RBF(GAMMA), X[:1000]), components(Linear(), X[:1000])
    axes = linear.weights.T @ linear.points
    wide = np.random.default_rng(1).normal(size=(500, max(ATTRIBUTES)))
    narrow = {p: components(RBF(0.5 / p), wide[:, :p], 10) for p in ATTRIBUTES}
    every = {n: components(RBF(GAMMA), X[:n]) for n in ALL_OF}
    return {
        "m rows (n = 1,000, l = 50)": (lambda m: middle.project(X[:m]), PROJECTED),
        "n trained on (m = 2,000, l = 50)": (lambda n: fits[n].project(few), TRAINED),
        "p attributes (m = n = 500, l = 10)": (
            lambda p: narrow[p].project(wide[:, :p]),
            ATTRIBUTES,
        ),
        "n trained on, all components (m = 2,000)": (lambda n: every[n].project(few), ALL_OF),
        "l components (m = 2,000, n = 1,000)": (lambda q: full.leading(q).project(few), COUNTS),
        "m rows, linear PCA (l = 10)": (lambda m: X[:m] @ axes.T, PROJECTED),
    }


def series_of(
    measure: Callable[[Callable[[], object]], float], job: Job, sizes: tuple[int, ...]
) -> tuple[Matrix, Matrix]:
    """Measure a job at each size; return sizes and values."""
    values = [measure(lambda size=size: job(size)) for size in sizes]  # type: ignore[misc]
    return np.array(sizes, dtype=np.float64), np.array(values)


def _seconds(job: Callable[[], object]) -> float:
    """Return the shortest of five CPU times."""
    return min(timeit.repeat(job, number=1, repeat=5, timer=time.process_time))


def peak_bytes(job: Callable[[], object]) -> float:
    """Return the peak memory that a job allocates, in bytes."""
    tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    job()
    peak = tracemalloc.get_traced_memory()[1]
    if not tracing:
        tracemalloc.stop()
    return float(peak - before)


def exponent(x: Matrix, y: Matrix) -> float:
    """Return the slope between the last two points on logarithmic axes."""
    return float(np.log(y[-1] / y[-2]) / np.log(x[-1] / x[-2]))


def _judge_fits(
    seconds: dict[str, tuple[Matrix, Matrix]], memory: dict[str, tuple[Matrix, Matrix]]
) -> tuple[Claim, ...]:
    full, few, low = (exponent(*pair) for pair in seconds.values())
    held, free, subset = (exponent(*pair) for pair in memory.values())
    everything, *least = (pair[1][pair[0] == ROWS_OF_LAPACK[-1]][0] for pair in seconds.values())
    shares = [float(spent / everything) for spent in least]
    last = f"{ROWS_OF_LAPACK[-2]:,} and {ROWS_OF_LAPACK[-1]:,} rows"
    return (
        judge("time", 2.4 < full < 3.5, full, last),
        judge("memory", 1.8 < held < 2.2, held, last),
        judge("few time", max(shares) < 1.0, shares[0], shares[1], ROWS_OF_LAPACK[-1], few, low),
        judge("few memory", max(free, subset) < 1.5, free, subset),
    )


def _judge_projections(spent: dict[str, tuple[Matrix, Matrix]]) -> tuple[Claim, ...]:
    rows, trained, wide, every, subset, linear = spent.values()
    m, n, p = (exponent(x[[0, -1]], y[[0, -1]]) for x, y in (rows, trained, wide))
    on_all, on_some = (exponent(*pair) for pair in (every, subset))
    ratio = float(rows[1][-1] / linear[1][-1])
    is_cheaper = 0.0 < on_some < 1.5 and subset[1][0] < subset[1][-1]
    return (
        judge("kernel values", 0.5 < min(p, m, n) and max(p, m, n) < 1.5, p, m, n),
        judge("on all components", 1.5 < on_all < 2.5, on_all, *ALL_OF[-2:]),
        judge("fewer components", is_cheaper, on_some, *COUNTS[-2:]),
        judge("beside PCA", ratio > 1.0, ratio, PROJECTED[-1]),
    )
