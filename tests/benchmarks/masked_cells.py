"""One cell that is wrong by a factor, in small tables whose rows all follow one curve.

Every row is the same curve over the columns times the row's own size, with noise: sales by month,
readings by station. One cell is multiplied or divided by ten, or multiplied by a thousand in wider
tables. Few rows say how far values reach, so that the cell itself can stretch the scale it is
measured by, and hide. Printed for each shape, spread of the rows' sizes and factor is in how many
of the tables the row of that cell is in the first 2 % of the rows (the first place at least), by
the detector, LOF with 20 neighbours, the largest robust z of the row's columns, and the largest
residual of a two-way fit of the logarithms by medians, which knows how the tables were made.

    python tests/benchmarks/masked_cells.py [--seeds 10] [--screen]

``--screen`` adds the command's whole screening of the same tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from kpca_apps import screen_table
from kpca_apps.novelty.detector.estimator import KernelPCANovelty

FloatArray = NDArray[np.float64]
SMALL = ((60, 8), (60, 12), (100, 12), (200, 12))
WIDE = ((60, 20), (60, 60), (60, 120), (60, 240), (60, 520))
# Spreads of the logarithms of rows' sizes.
SIZES = (0.1, 0.3, 1.0)
NOISE = 0.1  # of the logarithms of cells
TOP = 0.02


def curves(n: int, d: int, spread: float, rng: np.random.Generator) -> FloatArray:
    """Draw rows of one curve over the columns, each times a size of its own."""
    curve = 1000.0 * (1.0 + 0.3 * np.sin(2 * np.pi * np.arange(d) / min(d, 12)))
    logs = spread * rng.normal(size=(n, 1)) + NOISE * rng.normal(size=(n, d))
    return np.round(curve * np.exp(logs), 1)


def robust_z(X: FloatArray) -> FloatArray:
    """Return the largest robust z of each row, from the medians and quartiles of the columns."""
    low, median, high = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
    spread = (high - low) / 1.349
    largest: FloatArray = (np.abs(X - median) / np.where(spread > 0, spread, np.inf)).max(axis=1)
    return largest


def lof(X: FloatArray) -> FloatArray:
    """Return the local outlier factors of standardised rows."""
    model = LocalOutlierFactor(20).fit(StandardScaler().fit_transform(X))
    scores: FloatArray = -model.negative_outlier_factor_
    return scores


def two_way(X: FloatArray) -> FloatArray:
    """Return the largest residual of each row from row and column medians of logarithms."""
    left = np.log(X)
    for _ in range(5):
        left -= np.median(left, axis=1, keepdims=True)
        left -= np.median(left, axis=0)
    largest: FloatArray = np.abs(left).max(axis=1)
    return largest


def detector(X: FloatArray) -> FloatArray:
    """Return the novelty of the rows of a table that may hold outliers."""
    scores: FloatArray = KernelPCANovelty(random_state=0).fit(X).novelty_scores_
    return scores


def screened(X: FloatArray) -> FloatArray:
    """Return minus the ranks of the rows by the command's screening."""
    ranks: FloatArray = screen_table(
        pl.DataFrame({f"m{j}": X[:, j] for j in range(X.shape[1])})
    ).ranks
    return -ranks


def place(scores: FloatArray, row: int) -> int:
    """Return the place of a row, 1 for the oddest; ties count against it."""
    return int((scores >= scores[row]).sum())


def measure(seeds: int, methods: dict[str, Callable[[FloatArray], FloatArray]]) -> None:
    """Print how often the row of the wrong cell is in the head of the list."""
    cases = [(*shape, factor) for shape in SMALL for factor in (10.0, 0.1)]
    cases += [(*shape, 1000.0) for shape in WIDE]
    print(
        f"{'rows x columns':>15} {'factor':>7} {'sizes':>6}" + "".join(f"{m:>10}" for m in methods)
    )
    for n, d, factor in cases:
        for spread in SIZES:
            found = dict.fromkeys(methods, 0)
            for seed in range(seeds):
                rng = np.random.default_rng([seed, n, d])
                X = curves(n, d, spread, rng)
                row = int(rng.integers(n))
                X[row, int(rng.integers(d))] *= factor
                for name, method in methods.items():
                    found[name] += place(method(X), row) <= max(1, round(TOP * n))
            cells = "".join(f"{count:10}" for count in found.values())
            print(f"{f'{n} x {d}':>15} {factor:7g} {spread:6.1f}{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--screen", action="store_true", help="screen the tables as well")
    options = parser.parse_args()
    ours = {"ours": detector} | ({"screen": screened} if options.screen else {})
    peers = {"LOF": lof, "robust z": robust_z}
    with threadpool_limits(1):
        measure(options.seeds, ours | peers | {"two-way": two_way})


if __name__ == "__main__":
    main()
