"""Count planted faults found with `--by` and with one model of the table, by rows per group.

Generated tables have groups whose columns are related differently ("mixed"), are curved in opposite
directions ("curved"), or differ in location only ("shift"). Every second fault is a row of another
group, the others have one cell of another row of their group. Real tables (penguins by species,
tumours by diagnosis) get the ten faults of `real_table_faults` outside the group column. As many
rows are flagged as there are faults; the output is the fraction of faults found:

- one model: of the whole table, with the group as a category
- by: models of groups, ranked by their unadjusted scores
- each: the same models, flagging the same fraction of every group

    python tests/benchmarks/groups.py [--seeds 5] [--rows 30 50 100 200]
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
from numpy.typing import NDArray
from real_table_faults import plant_faults
from threadpoolctl import threadpool_limits

from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.tables.frames import table_from_frame

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

DATASETS = Path(__file__).parents[2] / "datasets"
REAL = {"penguins_raw.csv": "Species", "breast_cancer.csv": "diagnosis"}
KINDS = ("shift", "mixed", "curved")
N_ROWS, SHARE = 600, 0.02


def generate(kind: str, n: int, d: int, rng: np.random.Generator) -> tuple[pl.DataFrame, BoolArray]:
    """Draw groups of n rows by d columns; mark the faulty rows."""
    m = max(3, min(8, N_ROWS // n))
    shared, parts = rng.normal(size=(d, d)), []
    for group in range(m):
        own = 0.5 * shared + 0.7 * rng.normal(size=(d, d))
        X = 1.5 * rng.normal(size=d) + rng.normal(size=(n, d)) @ (
            shared if kind == "shift" else own
        )
        if kind == "curved":
            X[:, 0] += 0.4 * X[:, 1] ** 2 * (1 if group % 2 else -1)
        parts.append(X)
    X, group_of = np.vstack(parts), np.repeat(np.arange(m), n)
    sound, is_fault = X.copy(), np.zeros(len(X), dtype=bool)
    for number, row in enumerate(rng.choice(len(X), round(SHARE * len(X)), replace=False)):
        is_fault[row] = True
        alike = group_of == group_of[row]
        if number % 2:
            X[row] = sound[rng.choice(np.flatnonzero(~alike))]
        else:
            column = rng.integers(d)
            X[row, column] = sound[rng.choice(np.flatnonzero(alike)), column]
    frame = pl.DataFrame({f"c{j}": column for j, column in enumerate(X.T)})
    return frame.with_columns(group=pl.Series([f"group {g}" for g in group_of])), is_fault


def plant(name: str, rng: np.random.Generator) -> tuple[pl.DataFrame, BoolArray]:
    """Plant ten faults outside the group column of a real table."""
    cells = pd.read_csv(DATASETS / name, dtype=str)
    group = cells.pop(REAL[name])
    damaged, faults = plant_faults(cells, rng)
    is_fault = np.isin(np.arange(len(cells)), [fault.row for fault in faults])
    return pl.from_pandas(damaged.assign(group=group)), is_fault


def scores_of(frame: pl.DataFrame, **columns: tuple[str, ...]) -> FloatArray:
    options = ScreeningOptions(columns=ColumnOptions(**columns))
    model, _ = fit_table(table_from_frame(frame, "t"), options, clean=False)
    return model.training_scores


def shares_found(frame: pl.DataFrame, is_fault: BoolArray) -> list[float]:
    count, group_of = int(is_fault.sum()), frame["group"].to_numpy()
    own, each = np.zeros(len(frame)), np.zeros(len(frame), dtype=bool)
    for group in np.unique(group_of):
        rows = np.flatnonzero(group_of == group)
        own[rows] = scores_of(frame[rows], exclude=("group",))
        some = max(1, round(count * len(rows) / len(frame)))
        each[rows[np.argsort(-own[rows])[:some]]] = True
    whole = scores_of(frame, categorical=("group",))
    ranked = [is_fault[np.argsort(-scores)[:count]].sum() for scores in (whole, own)]
    return [float(found) / count for found in (*ranked, (each & is_fault).sum())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="+", default=[30, 50, 100, 200])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    tasks = {f"{n:4d} rows, {kind}": (kind, n) for n in arguments.rows for kind in KINDS}
    print(f"{'':28}{'one model':>10}{'by':>8}{'each':>8}")
    with threadpool_limits(1):
        for name, of in (tasks | dict.fromkeys(REAL)).items():
            found = []
            for seed in range(arguments.seeds):
                rng = np.random.default_rng(seed)
                for d in (5, 12) if of else (0,):
                    found.append(shares_found(*(generate(*of, d, rng) if of else plant(name, rng))))
            whole, own, each = np.mean(found, axis=0)
            print(f"{name:28}{whole:10.2f}{own:8.2f}{each:8.2f}", flush=True)


if __name__ == "__main__":
    main()
