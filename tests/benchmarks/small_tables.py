"""What the whole command takes on a small table: CPU seconds, and the size of its report.

Screens made tables of 1,000 rows, of 13 columns and of 22 (numbers, categories, dates), each run in
a process of its own, from start to exit; of all runs the least is told. Beside it, where skrub is
installed (``pip install skrub``), its report on the same file.

    python tests/benchmarks/small_tables.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from processes import children_cpu

N_ROWS = 1_000
SCREEN = (
    "import sys; from kpca_apps.cli.entry import main; "
    "sys.argv[1:] = ['novelty', 'screen', TABLE, '--out', OUT, '--force', '--quiet']; main()"
)
SKRUB = (
    "import polars as pl; from skrub import TableReport; "
    "frame = pl.read_csv(TABLE, try_parse_dates=True); "
    "TableReport(frame, verbose=0).write_html(OUT)"
)


def make_table(n_columns: int) -> pl.DataFrame:
    """Make a table of correlated numbers, with a category and a date in every six columns."""
    rng = np.random.default_rng(0)
    hidden, columns = rng.normal(size=(N_ROWS, 4)), {}
    for place in range(n_columns):
        if place % 6 < 4:
            values = 50 + 10 * (hidden @ rng.normal(size=4) + 0.3 * rng.normal(size=N_ROWS))
            columns[f"measure {place}"] = pl.Series(values.round(3))
        elif place % 6 == 4:
            colours = np.array(["red", "green", "blue", "grey"])
            columns[f"colour {place}"] = pl.Series(colours[rng.integers(0, 4, N_ROWS)])
        else:
            days = np.datetime64("2020-01-01") + rng.integers(0, 900, N_ROWS)
            columns[f"day {place}"] = pl.Series(days.astype("datetime64[D]"))
    return pl.DataFrame(columns)


def cpu_seconds(program: str, table: Path, out: Path) -> float | None:
    """Run a program; None where it fails."""
    before = children_cpu()
    code = f"TABLE, OUT = {str(table)!r}, {str(out)!r}; {program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return None if done.returncode else children_cpu() - before


def main() -> None:
    """Print a line for each table and program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print("| rows x columns | program | CPU s | report, MB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for n_columns in (13, 22):
            table = Path(folder, "table.csv")
            make_table(n_columns).write_csv(table)
            ours, theirs = Path(folder, "run"), Path(folder, "skrub.html")
            for name, program, out, report in (
                ("kpca novelty screen", SCREEN, ours, ours / "report.html"),
                ("skrub TableReport", SKRUB, theirs, theirs),
            ):
                taken = [cpu_seconds(program, table, out) for _ in range(runs)]
                if None in taken:
                    print(f"| {N_ROWS:,} x {n_columns} | {name} | did not run | |")
                    continue
                least = min(seconds for seconds in taken if seconds is not None)
                size = report.stat().st_size / 1e6
                print(f"| {N_ROWS:,} x {n_columns} | {name} | {least:.2f} | {size:.2f} |")


if __name__ == "__main__":
    main()
