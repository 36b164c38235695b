"""Find one cell wrong by a factor in small tables whose rows all follow one curve.

Every row is the same curve over the columns times the row's own scale, with noise: sales by month,
readings by station. One cell is multiplied or divided by ten, or multiplied by a thousand in wider
tables. With few rows the cell can stretch the scale it is measured by, and so mask itself. Printed
for each shape, spread of scales and factor: in how many tables the row of that cell is in the first
2 % of the rows (at least the first row), by the detector, LOF with 20 neighbours, the largest
robust z-score of the row, and the largest residual of a two-way median fit of the logarithms, which
knows how the tables were made.

    python tests/benchmarks/masked_cells.py [--seeds 10] [--screen] [--columns]

``--screen`` adds the command's screening of the same tables, and in how many the wrong cell, or
another one, is odd. ``--columns`` measures single columns instead: how often the multiplied cell is
odd, and how many clean columns have an odd cell, beside a robust z-score (of logarithms if all
values are positive) above 5 and a local outlier factor above 3; and the clean tables of correlated
measures with a false odd cell.
"""

import argparse
from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from kpca_apps import screen_table
from kpca_apps.novelty.checks.number_rules import NumberRule
from kpca_apps.novelty.detector.estimator import KernelPCANovelty

FloatArray, BoolArray = NDArray[np.float64], NDArray[np.bool_]
SMALL = ((60, 8), (60, 12), (100, 12), (200, 12))
WIDE = ((60, 20), (60, 60), (60, 120), (60, 240), (60, 520))
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


def screened(X: FloatArray, row: int, column: int) -> tuple[int, bool, bool]:
    """Screen a table; return the row's rank, whether its cell is odd, and whether others are."""
    found = screen_table(pl.DataFrame({f"m{j}": X[:, j] for j in range(X.shape[1])}))
    odd = {(at - 1, cell.column) for cell in found.findings.odd_cells for at in cell.rows}
    cell = (row, f"m{column}")
    return int(found.rows.ranks[row]), cell in odd, bool(odd - {cell})


Draw = Callable[[np.random.Generator, int], FloatArray]
COLUMNS: dict[str, Draw] = {
    "normal 120 +- 20": lambda rng, n: np.round(rng.normal(120, 20, n), 1),
    "log-normal .6": lambda rng, n: np.round(rng.lognormal(4, 0.6, n), 2),
    "log-normal 1": lambda rng, n: np.round(rng.lognormal(4, 1, n), 2),
    "gamma 2": lambda rng, n: np.round(rng.gamma(2, 30, n), 1),
    "uniform": lambda rng, n: np.round(rng.uniform(5, 60, n), 1),
    "Student 4": lambda rng, n: np.round(50 + 5 * rng.standard_t(4, n), 2),
    "Pareto 2": lambda rng, n: np.round(20 * (1 + rng.pareto(2, n)), 2),
    "rain": lambda rng, n: np.round((rng.random(n) < 0.3) * rng.gamma(0.7, 8, n), 1),
}


def odd_values(values: FloatArray) -> BoolArray:
    odd: BoolArray = NumberRule.fit(values, 1.0).judge(values) > 0
    return odd


def far_values(values: FloatArray) -> BoolArray:
    far: BoolArray = robust_z((np.log(values) if (values > 0).all() else values)[:, None]) > 5.0
    return far


def lonely_values(values: FloatArray) -> BoolArray:
    lonely: BoolArray = lof(values[:, None]) > 3.0
    return lonely


def measure_columns(seeds: int) -> None:
    """Print in how many drawn columns each method finds a cell that was multiplied by `factor`.

    Where `factor` is 1, print in how many columns the method wrongly finds an odd cell.
    """
    methods = {"ours": odd_values, "LOF": lonely_values, "robust z": far_values}
    print(f"{'column':>17} {'rows':>5} {'factor':>7}" + "".join(f"{m:>10}" for m in methods))
    for name, draw in COLUMNS.items():
        for n in (30, 60, 100, 500, 2000):
            for factor in (1.0, 10.0, 100.0, 1000.0):
                found = dict.fromkeys(methods, 0)
                for seed in range(seeds):
                    rng = np.random.default_rng([seed, n, 47])
                    values = draw(rng, n)
                    row = rng.choice(np.flatnonzero(values))
                    values[row] *= factor
                    for method, odd in methods.items():
                        where = odd(values)
                        found[method] += bool(where[row] if factor > 1.0 else where.any())
                cells = "".join(f"{count:10}" for count in found.values())
                print(f"{name:>17} {n:5} {factor:7g}{cells}", flush=True)
    with_cells = sum(bool(screen_table(measures(seed)).findings.odd_cells) for seed in range(24))
    print(f"clean tables of correlated measures with odd cells: {with_cells} of 24")


def measures(seed: int) -> pl.DataFrame:
    """Draw daily temperatures or body heights, rounded as they are recorded."""
    rng = np.random.default_rng([seed, 24])
    n, digits = (200, 365, 730, 1500)[seed % 4], seed // 4 % 3
    if seed % 3 == 0:
        height = rng.normal(172, 9, n)
        weight = 0.9 * (height - 100) * np.exp(rng.normal(0, 0.12, n))
        waist = 0.5 * height + rng.normal(0, 6, n)
        columns = {"height": height, "weight": weight, "waist": waist}
    else:
        mean = 12 + 9 * np.sin(2 * np.pi * np.arange(n) / 365) + rng.normal(0, 3, n)
        lowest, highest = mean - 5 + rng.normal(0, 1, n), mean + 5 + rng.normal(0, 2, n)
        humidity = 80 - 1.5 * mean + rng.normal(0, 6, n)
        columns = {"tmin": lowest, "tmax": highest, "humidity": humidity}
    return pl.DataFrame({name: np.round(values, digits) for name, values in columns.items()})


def place(scores: FloatArray, row: int) -> int:
    """Return the rank of a row (1: the oddest), the last rank among rows with equal scores."""
    return int((scores >= scores[row]).sum())


def measure(
    seeds: int, methods: dict[str, Callable[[FloatArray], FloatArray]], *, screen: bool
) -> None:
    """Print how often the wrong row is at the top of the list."""
    cases = [(*shape, factor) for shape in SMALL for factor in (10.0, 0.1)]
    cases += [(*shape, 1000.0) for shape in WIDE]
    names = [*methods, *(["screen", "odd cell", "other"] if screen else [])]
    print(f"{'rows x columns':>15} {'factor':>7} {'sizes':>6}" + "".join(f"{m:>10}" for m in names))
    for n, d, factor in cases:
        for spread in SIZES:
            found = dict.fromkeys(names, 0)
            for seed in range(seeds):
                rng = np.random.default_rng([seed, n, d])
                X = curves(n, d, spread, rng)
                row, column = int(rng.integers(n)), int(rng.integers(d))
                X[row, column] *= factor
                for name, method in methods.items():
                    found[name] += place(method(X), row) <= max(1, round(TOP * n))
                if screen:
                    rank, is_named, is_other = screened(X, row, column)
                    found["screen"] += rank <= max(1, round(TOP * n))
                    found["odd cell"] += is_named
                    found["other"] += is_other
            cells = "".join(f"{count:10}" for count in found.values())
            print(f"{f'{n} x {d}':>15} {factor:7g} {spread:6.1f}{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--screen", action="store_true", help="screen the tables as well")
    parser.add_argument("--columns", action="store_true", help="measure single columns instead")
    options = parser.parse_args()
    if options.columns:
        with threadpool_limits(1):
            measure_columns(options.seeds)
        return
    methods = {"ours": detector, "LOF": lof, "robust z": robust_z, "two-way": two_way}
    with threadpool_limits(1):
        measure(options.seeds, methods, screen=options.screen)


if __name__ == "__main__":
    main()
