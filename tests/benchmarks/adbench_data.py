"""Load ADBench's classical tables and apply the protocol shared by the benchmarks.

The tables (Han et al., ADBench, NeurIPS 2022) may not be redistributed here: clone the ADBench
repository and pass its folder ``adbench/datasets/Classical`` (files such as ``29_Pima.npz``, each
with ``X`` and ``y``, 1 = outlier) as ``--data``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MAX_ROWS = 5_000


@dataclass(frozen=True)
class LabelledTable:
    """Numeric rows with labelled outliers."""

    number: int
    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]


def load_tables(folder: Path, numbers: list[int] | None = None) -> Iterator[LabelledTable]:
    """Yield the tables of a folder in order of their numbers."""
    files = {int(path.stem.split("_")[0]): path for path in folder.glob("*.npz")}
    if not files:
        raise SystemExit(f"error: no .npz tables in {folder}. {__doc__}")
    for number in sorted(files) if numbers is None else numbers:
        with np.load(files[number]) as table:
            X, y = table["X"].astype(np.float64), table["y"].astype(np.int64)
        yield LabelledTable(number, files[number].stem, X, y)


def sample_table(table: LabelledTable, seed: int) -> LabelledTable:
    """Draw at most 5,000 rows, keeping the table's share of outliers."""
    n = len(table.y)
    if n <= MAX_ROWS:
        return table
    rng = np.random.default_rng(seed)
    outliers, normals = np.flatnonzero(table.y == 1), np.flatnonzero(table.y == 0)
    n_outliers = max(1, round(MAX_ROWS * len(outliers) / n))
    rows = np.concatenate(
        [
            rng.choice(outliers, n_outliers, replace=False),
            rng.choice(normals, MAX_ROWS - n_outliers, replace=False),
        ]
    )
    rows = rng.permutation(rows)
    return LabelledTable(table.number, table.name, table.X[rows], table.y[rows])


def clean_split(y: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a random half of the normal rows, to fit on, and all other rows, to score."""
    normals = np.random.default_rng(1000 + seed).permutation(np.flatnonzero(y == 0))
    fitted = normals[: len(normals) // 2]
    return fitted, np.setdiff1d(np.arange(len(y)), fitted)
