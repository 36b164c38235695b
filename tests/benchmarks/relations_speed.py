"""CPU seconds of `screen_table` on tables whose columns say much of each other, little, or nothing.

    python tests/benchmarks/relations_speed.py --before CHECKOUT

``--before`` is an older checkout, measured by turns, each in a process of its own; the least of
``--repeats`` is printed, and the ratio. ``--only WORD`` takes some tables.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parents[2]
Made = dict[str, object]


def numeric(rng: np.random.Generator) -> Made:
    return {f"x{i}": np.round(rng.normal(size=10_000) * 10 + i, 2) for i in range(20)}


def mixed(rng: np.random.Generator) -> Made:
    shared = rng.normal(size=10_000)
    numbers = {f"x{i}": np.round(shared * i + rng.normal(size=10_000), 2) for i in range(10)}
    return numbers | {f"c{i}": levels(rng.integers(0, 3 + 5 * i, 10_000)) for i in range(10)}


def related(rng: np.random.Generator) -> Made:
    key = rng.integers(0, 300, 10_000)
    return {f"c{i}": levels(key % (7 + i * 9)) for i in range(20)}


def wide(rng: np.random.Generator) -> Made:
    """100 columns of numbers, and as many of levels, half of which hang together."""
    numbers = rng.normal(size=(2_000, 10)) @ rng.normal(size=(10, 100))
    numbers = np.round(numbers + rng.normal(size=numbers.shape), 2)
    keys = rng.integers(0, 60, (2_000, 10))
    made: Made = {f"x{i}": numbers[:, i] for i in range(100)}
    for i in range(100):
        key = keys[:, i % 10] if i % 2 else rng.integers(0, 60, 2_000)
        made[f"c{i}"] = levels(key % rng.integers(3, 40))
    return made


def many_levels(rng: np.random.Generator) -> Made:
    return {f"c{i}": levels(rng.integers(0, 1_000, 10_000)) for i in range(50)}


def many_columns(rng: np.random.Generator) -> Made:
    return {f"c{i}": levels(rng.integers(0, rng.integers(3, 40), 2_000)) for i in range(500)}


def levels(codes: np.ndarray) -> list[str]:
    return [f"v{code}" for code in codes.tolist()]


TABLES: dict[str, Callable[[np.random.Generator], Made]] = {
    "numeric, 10,000 x 20": numeric,
    "mixed, 10,000 x 20": mixed,
    "related, 10,000 x 20": related,
    "wide, 2,000 x 200": wide,
    "levels, 10,000 x 50 of 1,000": many_levels,
    "levels, 2,000 x 500": many_columns,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="an older checkout to measure beside this one")
    parser.add_argument("--only", default="", help="a word in the names of the tables")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(measured(arguments.measure))
        return
    before = arguments.before and arguments.before.resolve()
    for name in (name for name in TABLES if arguments.only in name):
        turns = [
            (seconds(name, ROOT), seconds(name, before) if before else float("nan"))
            for _ in range(arguments.repeats)
        ]
        now, old = (min(of) for of in zip(*turns, strict=True))
        ratio = f", {old:.2f} before: {now / old:.2f}" if before else ""
        print(f"{name}: {now:.2f} CPU s{ratio}", flush=True)


def seconds(name: str, root: Path) -> float:
    """CPU seconds of one table in a process of its own, by the package of a checkout."""
    own = {"PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    words = [sys.executable, __file__, "--measure", name]
    done = subprocess.run(words, env=os.environ | own, stdout=subprocess.PIPE, check=True, cwd=root)
    return float(done.stdout)


def measured(name: str) -> float:
    import kpca_apps

    made = TABLES[name](np.random.default_rng(0))
    small = {column: values[:300] for column, values in related(np.random.default_rng(1)).items()}
    kpca_apps.screen_table(pl.DataFrame(small))  # what is compiled is there
    began = time.process_time()
    kpca_apps.screen_table(pl.DataFrame(made), explain=100)
    return time.process_time() - began


if __name__ == "__main__":
    main()
