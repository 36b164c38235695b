"""Compare scores learned from a sample of the rows with those learned from all rows.

    python tests/benchmarks/learning_sample.py [--rows 400000] [--seeds 3] [--only T] [--settings U]

Generated tables with planted outliers are learned from as a whole, with several seeds (for
landmarks, and for the rows used by scalings and regressions), and from samples of growing size, as
`--learn-from sample` does with 100,000 rows. All models score the same 100,000 new rows. Printed,
as averages over pairs of seeds: 1 - Spearman's correlation with the scores learned from all rows
(in 1e-5), the common fraction of the highest 1 % of the rows, the AUROC of each seed, and with a
clean reference (N; else U) the false alarms at 5 %. Differences between seeds that learn from all
rows are the error of the landmarks; a sample is large enough if its differences are no larger.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from kpca_apps.engine.rows import ArrayRows, sample_positions
from kpca_apps.novelty.detector.detector import Detector, Parameters
from kpca_apps.novelty.detector.fit import fit_detector
from kpca_apps.novelty.detector.views import ColumnRoles

sys.path.insert(0, str(Path(__file__).parents[2] / "datasets"))
import make_large_table

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Drawn = tuple[FloatArray, BoolArray]  # rows, and a mask of planted outliers

N_SCORED = 100_000
SIZES = (12_500, 25_000, 50_000, 100_000, 200_000)
HEAD = "1 - rho (1e-5), highest shared, AUROC, CPU of learning, false alarms"
HIGHEST = 0.01


def surface(n: int, rng: np.random.Generator) -> Drawn:
    """Draw rows on a curved surface in 20 columns; outliers mix columns of different rows."""
    blocks = [block.to_numpy() for block in make_large_table.blocks(n, 20, 0.002)]
    rows = np.concatenate(blocks).astype(np.float64)
    return rows[:, :-1], rows[:, -1] == 1


def clusters(n: int, rng: np.random.Generator) -> Drawn:
    """Draw twelve clusters of halving size; outliers take three cells from other rows."""
    d = k = 12
    shares = 0.5 ** np.arange(k)
    group = rng.choice(k, n, p=shares / shares.sum())
    centres, spread = rng.normal(scale=4, size=(k, d)), rng.normal(size=(k, d, d)) / np.sqrt(d)
    rows = np.empty((n, d))
    for number in range(k):
        members = np.flatnonzero(group == number)
        rows[members] = centres[number] + rng.normal(size=(len(members), d)) @ spread[number]
    rows[:, ::3] = np.exp(rows[:, ::3] / 2)
    planted = rng.random(n) < 0.005
    for row in np.flatnonzero(planted):
        columns = rng.choice(d, 3, replace=False)
        rows[row, columns] = rows[rng.integers(n), columns]
    return rows, planted


def heavy(n: int, rng: np.random.Generator) -> Drawn:
    """Draw correlated heavy-tailed columns, one of integers; outliers are shifted."""
    rows = rng.standard_t(3, size=(n, 8)) @ rng.normal(size=(8, 8))
    rows[:, 0], rows[:, 1] = np.round(rows[:, 0]), np.abs(rows[:, 1]) ** 1.5
    planted = rng.random(n) < 0.005
    rows[planted] += rng.normal(size=(int(planted.sum()), 8)) * rows.std(axis=0)
    return rows, planted


TABLES: dict[str, Callable[[int, np.random.Generator], Drawn]] = {
    "surface": surface,
    "clusters": clusters,
    "heavy": heavy,
}


@dataclass(frozen=True)
class Learned:
    """A detector and its scores of new rows."""

    detector: Detector
    scores: FloatArray
    cpu_seconds: float  # CPU seconds spent on learning

    @property
    def highest(self) -> BoolArray:
        return np.asarray(self.scores >= np.quantile(self.scores, 1 - HIGHEST, method="higher"))


def learn(rows: FloatArray, size: int, seed: int, clean: bool, scored: FloatArray) -> Learned:
    """Learn from `size` of the rows as a screening does, and score new rows."""
    if size < len(rows):
        rng = np.random.default_rng([77, seed])
        rows = rows[np.sort(rng.choice(len(rows), size, replace=False))]
    source = ArrayRows(rows, sample_positions(len(rows), seed), n_jobs=1)
    parameters = Parameters(not clean, 0.01, 0.05, "blocks", None, None, None, None, "auto")
    began = time.process_time()
    roles = ColumnRoles.of(rows.shape[1])
    detector = fit_detector(source, parameters, roles, n_jobs=1, random_state=seed).detector
    took = time.process_time() - began
    return Learned(detector, detector.scores(scored, n_jobs=1), took)


def line(of_all: Sequence[Learned], some: Sequence[Learned], planted: BoolArray) -> str:
    """Format the comparison of scores from a sample with scores from all rows."""
    pairs = [(model, other) for model in of_all for other in some if model is not other]
    apart = np.mean([1 - spearmanr(one.scores, other.scores)[0] for one, other in pairs])
    shared = np.mean([(a.highest & b.highest).sum() / a.highest.sum() for a, b in pairs])
    areas = " ".join(f"{roc_auc_score(planted, model.scores):.4f}" for model in some)
    words = f"{1e5 * apart:9.0f} {shared:8.3f}   {areas}   "
    words += f"{np.mean([model.cpu_seconds for model in some]):6.1f} s"
    if some[0].detector.calibration is not None:
        rates = [float(np.mean(m.scores[~planted] > m.detector.flags_above)) for m in some]
        words += "   " + " ".join(f"{rate:.2%}" for rate in rates)
    return words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=TABLES)
    parser.add_argument("--settings", choices=("U", "N", "UN"), default="UN")
    options = parser.parse_args()
    for name in [options.only] if options.only else TABLES:
        drawn, planted = TABLES[name](options.rows + N_SCORED, np.random.default_rng(5))
        scored, truth = drawn[options.rows :], planted[options.rows :]
        for setting in options.settings:
            clean = setting == "N"
            rows = drawn[: options.rows]
            rows = rows[~planted[: options.rows]] if clean else rows
            print(f"{name}, {setting}, {len(rows):,} rows: {HEAD}", flush=True)
            of_all: list[Learned] = []
            for size in (len(rows), *(size for size in SIZES if size < len(rows))):
                with threadpool_limits(1):
                    some = [learn(rows, size, s, clean, scored) for s in range(options.seeds)]
                of_all = of_all or some
                what = "all" if size == len(rows) else f"{size:,}"
                print(f"{what:>9} {line(of_all, some, truth)}", flush=True)


if __name__ == "__main__":
    main()
