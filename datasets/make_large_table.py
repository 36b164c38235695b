"""Make a table of any number of rows on a curved surface, with outliers planted off it.

Run ``python datasets/make_large_table.py 10_000_000 large`` for a folder of Parquet files, or with
``--format csv`` for one file. The same arguments make the same table, a block of rows at a time.

Ordinary rows are smooth functions of five hidden numbers. In an outlier every column has hidden
numbers of its own: each value is as common as any, their combination is not.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

SEED = 1996
BLOCK_ROWS = 1 << 18
GROUP_ROWS = 1 << 16
LATENT = 5
NOISE = 0.02

FloatArray = NDArray[np.float64]


def blocks(n_rows: int, n_columns: int, outliers: float) -> Iterator[pl.DataFrame]:
    """Yield the table in blocks: columns ``x1``, ``x2``, ..., and ``planted``, 0 or 1."""
    weights, bends, phases = surface(n_columns)
    for number, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
        rng = np.random.default_rng([SEED, number])
        size = min(BLOCK_ROWS, n_rows - start)
        planted = rng.random(size) < outliers
        hidden = rng.normal(size=(size, LATENT))
        values = curved(hidden, weights, bends, phases)
        for column in range(n_columns):
            own = rng.normal(size=(int(planted.sum()), LATENT))
            values[planted, column] = curved(own, weights, bends, phases)[:, column]
        values += rng.normal(scale=NOISE, size=values.shape)
        columns = {f"x{k + 1}": values[:, k].round(6) for k in range(n_columns)}
        yield pl.DataFrame({**columns, "planted": planted.astype(np.int8)})


def surface(n_columns: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw the functions of the columns: directions, how they bend, and phases."""
    rng = np.random.default_rng(SEED)
    weights = rng.normal(size=(LATENT, n_columns)) / np.sqrt(LATENT)
    bends = rng.normal(size=(LATENT, n_columns)) / np.sqrt(LATENT)
    return weights, bends, rng.uniform(0, 2 * np.pi, n_columns)


def curved(
    hidden: FloatArray, weights: FloatArray, bends: FloatArray, phases: FloatArray
) -> FloatArray:
    """Map hidden numbers (n, 5) to columns (n, d)."""
    values: FloatArray = hidden @ weights + np.sin(2 * (hidden @ bends) + phases)
    return values


def write(out: Path, table: Iterator[pl.DataFrame], kind: str) -> None:
    """Write the blocks as one CSV file or as a folder of Parquet files."""
    if kind == "csv":
        with out.open("xb") as file:
            for number, block in enumerate(table):
                block.write_csv(file, include_header=number == 0)
        return
    out.mkdir()
    for number, block in enumerate(table):
        block.write_parquet(out / f"part-{number:05}.parquet", row_group_size=GROUP_ROWS)


def main() -> None:
    """Read the arguments and write the table."""
    parser = argparse.ArgumentParser(description="Make a large table with planted outliers.")
    parser.add_argument("rows", type=int, help="number of rows")
    parser.add_argument("out", type=Path, help="folder (Parquet) or file (CSV) to make")
    parser.add_argument("--columns", type=int, default=20, help="besides the column planted")
    parser.add_argument("--format", choices=["parquet", "csv"], default="parquet")
    parser.add_argument("--outliers", type=float, default=0.001, help="share of the rows")
    given = parser.parse_args()
    write(given.out, blocks(given.rows, given.columns, given.outliers), given.format)


if __name__ == "__main__":
    main()
