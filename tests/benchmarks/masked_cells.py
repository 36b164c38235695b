"""Find one cell wrong by a factor in small tables whose rows all follow one curve.

Every row is the same curve over the columns times the row's own scale, with noise: sales by month,
readings by station. One cell is multiplied or divided by ten. With few rows the cell can stretch
the scale it is measured by, and so mask itself. Printed for each shape, spread of scales and
factor: in how many tables the row of that cell is in the first 2 % of the rows (at least the first
row), by the detector, LOF with 20 neighbours, the largest robust z-score of the row, and the
largest residual of a two-way median fit of the logarithms, which knows how the tables were made.

    python tests/benchmarks/masked_cells.py [--seeds 10]
"""

import argparse
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from kpca_apps.novelty.detector.estimator import KernelPCANovelty

FloatArray = NDArray[np.float64]
SHAPES = ((60, 8), (60, 12), (100, 12), (200, 12))
# Standard deviations of the logarithms of the rows' scales.
SIZES = (0.1, 0.3, 1.0)
NOISE = 0.1  # standard deviation of the noise in the logarithms of cells
TOP = 0.02


def curves(n: int, d: int, spread: float, rng: np.random.Generator) -> FloatArray:
    """Draw rows that follow one curve over the columns, each row with its own scale."""
    curve = 1000.0 * (1.0 + 0.3 * np.sin(2 * np.pi * np.arange(d) / min(d, 12)))
    logs = spread * rng.normal(size=(n, 1)) + NOISE * rng.normal(size=(n, d))
    return np.round(curve * np.exp(logs), 1)


def robust_z(X: FloatArray) -> FloatArray:
    """Return the largest robust z-score of each row, from column medians and quartiles."""
    low, median, high = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
    spread = (high - low) / 1.349
    largest: FloatArray = (np.abs(X - median) / np.where(spread > 0, spread, np.inf)).max(axis=1)
    return largest


def lof(X: FloatArray) -> FloatArray:
    model = LocalOutlierFactor(20).fit(StandardScaler().fit_transform(X))
    scores: FloatArray = -model.negative_outlier_factor_
    return scores


def two_way(X: FloatArray) -> FloatArray:
    """Return each row's largest absolute residual after a median polish of the logarithms."""
    residuals = np.log(X)
    for _ in range(5):
        residuals -= np.median(residuals, axis=1, keepdims=True)
        residuals -= np.median(residuals, axis=0)
    largest: FloatArray = np.abs(residuals).max(axis=1)
    return largest


def detector(X: FloatArray) -> FloatArray:
    scores: FloatArray = KernelPCANovelty(random_state=0).fit(X).novelty_scores_
    return scores


def place(scores: FloatArray, row: int) -> int:
    """Return the rank of a row (1: the oddest), the last rank among rows with equal scores."""
    return int((scores >= scores[row]).sum())


def measure(seeds: int, methods: dict[str, Callable[[FloatArray], FloatArray]]) -> None:
    """Print how often the wrong row is at the top of the list."""
    print(
        f"{'rows x columns':>15} {'factor':>7} {'sizes':>6}" + "".join(f"{m:>10}" for m in methods)
    )
    for (n, d), factor, spread in product(SHAPES, (10.0, 0.1), SIZES):
        found = dict.fromkeys(methods, 0)
        for seed in range(seeds):
            rng = np.random.default_rng([seed, n, d])
            X = curves(n, d, spread, rng)
            row, column = int(rng.integers(n)), int(rng.integers(d))
            X[row, column] *= factor
            for name, method in methods.items():
                found[name] += place(method(X), row) <= max(1, round(TOP * n))
        cells = "".join(f"{count:10}" for count in found.values())
        print(f"{f'{n} x {d}':>15} {factor:7g} {spread:6.1f}{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    methods = {"ours": detector, "LOF": lof, "robust z": robust_z, "two-way": two_way}
    with threadpool_limits(1):
        measure(options.seeds, methods)


if __name__ == "__main__":
    main()
