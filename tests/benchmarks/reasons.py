"""Count how often median replacement, gradient and z-score name the wrong column first.

At most 1,600 normal rows of a table are permuted; the detector learns the first half as clean rows.
Each of 250 draws takes one random column of a held-out row from another held-out row. A draw
counts if the row had p > 0.1 before and <= 0.1 after. The figure is the fraction of draws in which
the swapped column comes first.

    python tests/benchmarks/reasons.py --data FOLDER [--tables 7 19 23 27 31 41]
"""

import argparse
from pathlib import Path

import numpy as np
from adbench_data import load_tables
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from kpca_apps.novelty.detector.estimator import KernelPCANovelty

FloatArray = NDArray[np.float64]
N_DRAWS, MAX_ROWS = 250, 1_600


def swapped_rows(
    held: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Return rows before and after a column got another row's value, and that column."""
    pairs = np.array([rng.choice(len(held), 2, replace=False) for _ in range(N_DRAWS)])
    columns = rng.integers(held.shape[1], size=N_DRAWS)
    before = held[pairs[:, 0]]
    after = before.copy()
    after[np.arange(N_DRAWS), columns] = held[pairs[:, 1], columns]
    return before, after, columns


def by_gradient(detector: KernelPCANovelty, rows: FloatArray, sd: FloatArray) -> NDArray[np.int64]:
    """Return the column along which the score is steepest, in standardised units."""
    step = 1e-3 * np.where(sd > 0, sd, 1.0)
    slopes = np.empty_like(rows)
    for j in range(rows.shape[1]):
        up, down = rows.copy(), rows.copy()
        up[:, j] += step[j]
        down[:, j] -= step[j]
        slopes[:, j] = np.abs(detector.score_samples(up) - detector.score_samples(down))
    return slopes.argmax(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of ADBench .npz tables")
    parser.add_argument("--tables", type=int, nargs="+", default=[7, 19, 23, 27, 31, 41])
    options = parser.parse_args()
    hits: list[list[float]] = []
    for table in load_tables(options.data, options.tables):
        rng = np.random.default_rng(0)
        train, held = np.array_split(rng.permutation(table.X[table.y == 0])[:MAX_ROWS], 2)
        before, after, columns = swapped_rows(held, rng)
        with threadpool_limits(1):
            detector = KernelPCANovelty(contaminated=False, random_state=0).fit(train)
            counted = (detector.p_values(before) > 0.1) & (detector.p_values(after) <= 0.1)
            rows, truth = after[counted], columns[counted]
            reasons = detector.explain(rows)
            first = np.array([reason[0].group if reason else -1 for reason in reasons])
            sd = train.std(axis=0)
            steepest = by_gradient(detector, rows, sd)
        widest = (np.abs(rows - train.mean(axis=0)) / np.where(sd > 0, sd, np.inf)).argmax(axis=1)
        hits.append([float((guess == truth).mean()) for guess in (first, steepest, widest)])
        print(
            f"{table.name:20} {len(truth):4d} rows   reasons {hits[-1][0]:.3f}   "
            f"gradient {hits[-1][1]:.3f}   z-score {hits[-1][2]:.3f}",
            flush=True,
        )
    mean = np.mean(hits, axis=0)
    print(f"mean: reasons {mean[0]:.3f}   gradient {mean[1]:.3f}   z-score {mean[2]:.3f}")


if __name__ == "__main__":
    main()
