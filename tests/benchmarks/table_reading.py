"""How fast a path becomes typed columns, side by side with an older checkout.

Run ``python -m tests.benchmarks.table_reading --before PATH``: a CSV of a million rows and 20
columns (18 of numbers, a category, a date) is opened, and every column of every part turned into
values; then three rows of Parquet, and the same as CSV, are opened. Each is done in a fresh
process, by the older checkout and by this one in turn; the least of a few runs is printed. The
time of a small file includes the imports that reading it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).parents[2]

# What is timed, in the process of its own; names of modules are those of either checkout.
TIMED = """
import importlib, json, sys, time

def load(name, *modules):
    for module in modules:
        try:
            return getattr(importlib.import_module("kpca_apps." + module), name)
        except (ModuleNotFoundError, AttributeError):
            pass
    raise SystemExit(f"no {name} in this checkout")

begun = time.perf_counter()
open_table = load("open_table", "tables.opening", "files.tables.opening")
path, values = sys.argv[1], sys.argv[2] == "values"
if values:
    Column = load("Column", "tables.values", "files.tables.values")
    read_values = lambda cells, format: Column(cells).read(format)
    read_texts = lambda cells: Column(cells).texts
    number = load("NumberFormat", "tables.numbers", "tables.values", "files.tables.values")()
    date = load("DateFormat", "tables.dates", "tables.values", "files.tables.values")()
    begun = time.perf_counter()
table = open_table(path)
opened = time.perf_counter() - begun
cells = 0
for part in table.parts if values else ():
    for column in part.read().frame.iter_columns():
        if column.name == "kind":
            cells += read_texts(column).len()
        else:
            read = read_values(column, date if column.name == "when" else number)
            cells += int((~(read.missing | read.unreadable)).sum())
took = time.perf_counter() - begun
# Not ru_maxrss, which is what the process had that started this one, if that is more.
status = open("/proc/self/status").read()
peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
print(json.dumps([opened, took, time.process_time(), peak, cells]))
"""


def main() -> None:
    """Time both checkouts and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="folder of the older checkout")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    checkouts = {"before": options.before, "now": ROOT}
    if options.before is None:
        del checkouts["before"]
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder, "large.csv")
        write_large(large, options.rows)
        small = pl.DataFrame({"x": [1.5, 2.5, 3.5], "kind": ["a", "b", "a"], "n": [1, 2, 3]})
        small.write_parquet(Path(folder, "small.parquet"))
        small.write_csv(Path(folder, "small.csv"))
        print("| job | checkout | opened s | done s | CPU s | peak MB | cells |")
        print("|---|---|---|---|---|---|---|")
        jobs = [
            (large, "values"),
            (Path(folder, "small.csv"), ""),
            (Path(folder, "small.parquet"), ""),
        ]
        for path, what in jobs:
            runs: dict[str, list[list[float]]] = {which: [] for which in checkouts}
            for _ in range(options.runs):
                for name, checkout in checkouts.items():
                    runs[name].append(timed(checkout, path, what))
            for name, found in runs.items():
                opened, done, cpu, peak, cells = (
                    min(column) for column in zip(*found, strict=True)
                )
                print(
                    f"| {path.name} | {name} | {opened:.2f} | {done:.2f} | {cpu:.2f} | {peak:.0f} "
                    f"| {cells:,.0f} |"
                )


def timed(checkout: Path, path: Path, what: str) -> list[float]:
    """Seconds to open, to the end, of the processor; megabytes; cells with a value."""
    done = subprocess.run(
        [sys.executable, "-c", TIMED, str(path), what],
        capture_output=True,
        check=True,
        cwd=path.parent,
        env={**os.environ, "PYTHONPATH": str(checkout.absolute())},
    )
    numbers: list[float] = json.loads(done.stdout)
    return numbers


def write_large(path: Path, n_rows: int) -> None:
    """Write numbers of several sizes, a category and a date; always the same."""
    rng = np.random.default_rng(0)
    columns: dict[str, pl.Series] = {}
    for k in range(18):
        values = rng.normal(0, 10.0 ** (k % 4), n_rows)
        columns[f"x{k}"] = pl.Series(np.round(values, 4))
    kinds = np.array(["alpha", "beta", "gamma", "delta"])
    columns["kind"] = pl.Series(kinds[rng.integers(0, 4, n_rows)])
    days = rng.integers(16_000, 20_000, n_rows).astype(np.int32)
    columns["when"] = pl.Series(days).cast(pl.Date)
    pl.DataFrame(columns).write_csv(path)


if __name__ == "__main__":
    main()
