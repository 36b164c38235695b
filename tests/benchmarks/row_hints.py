"""How many planted faults get the right hint, and how many rows without a fault get any.

Faults are planted as in `real_tables`. Hints are made for every row with a fault, whatever its
rank, for the flagged rows without one, and for rows drawn from the others. A hint is right if it
names the column (or both) and the slip that was planted; it is wrong on a row with a fault if none
of its hints is right, and on any other row always, as far as the planter knows. Odd cells are
counted beside them: planted faults among those listed, and listed cells that are no fault.

    python tests/benchmarks/row_hints.py [--seeds 3] [--rows 5000] [--half development]

Constants are chosen on the development half alone.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from real_table_faults import Fault, plant_faults
from real_tables import TABLES, RealTable, load
from threadpoolctl import threadpool_limits

from kpca_apps.novelty.checks.hints import hint_rows
from kpca_apps.novelty.columns.encoded import encode, rows_of
from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.novelty.screening.run import screen
from kpca_apps.tables.opening import open_table

# What a right hint says, by the kind of fault.
SAID = {
    "thousandfold": ("divided by 1000",),
    "decimal point": ("divided by 10", "multiplied by 10"),
    "inches for centimetres": ("by 2.54",),
    "swapped columns": ("fit if exchanged",),
    "lost sign": ("its sign is turned",),
    "extra digit": ("read as",),
    "wrong century": ("read as",),
}
N_DRAWN = 200
Counts = Counter[tuple[str, str]]


def is_right(hint: str, fault: Fault, cells: pd.DataFrame) -> bool:
    """Whether a hint names the column and the slip."""
    if not all(f'"{name}"' in hint for name in fault.columns):
        return False
    said = SAID.get(fault.kind, ())
    if said == ("read as",):
        meant = float(cells.loc[fault.row, fault.columns[0]])
        read = [float(number) for number in re.findall(r"read as (-?[\d.]+)", hint)]
        return any(np.isclose(number, meant) for number in read)
    return any(re.search(rf"{re.escape(text)}\b(?!\.\d)", hint) for text in said)


def measure(table: RealTable, seed: int, max_rows: int, counts: Counts, *, show: bool) -> None:
    """Plant, screen, and count hints and odd cells."""
    cells, wrong = load(table, max_rows)
    rng = np.random.default_rng([seed, len(cells)])
    damaged, faults = plant_faults(cells, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{table.name}.csv"
        damaged.to_csv(path, index=False)
        opened = open_table(path)
    result, model = screen(opened)
    faulty = {fault.row for fault in faults} | set(np.flatnonzero(wrong).tolist())
    others = np.setdiff1d(np.arange(len(cells)), list(faulty))
    flagged = others[result.is_flagged[others]]
    drawn = rng.choice(others, min(N_DRAWN, len(others)), replace=False)
    rows = np.concatenate([[fault.row for fault in faults], flagged, drawn])
    taken = rows_of(opened, rows)
    all_rows = encode(model.encoder, opened)
    meant: list[dict[str, float]] = [{} for _ in rows]
    hints = hint_rows(model, all_rows, taken, model.encoder.matrix(taken), rows, meant)
    for fault, said in zip(faults, hints, strict=False):
        right = any(is_right(hint, fault, cells) for hint in said)
        outcome = "right" if right else "wrong" if said else "none"
        counts[fault.kind, outcome] += 1
        if show and said:
            print(f"  {table.name}: {fault.kind} in {fault.columns}, {outcome}: {said}")
    for name, start, stop in (
        ("flagged, no fault", len(faults), len(faults) + len(flagged)),
        ("drawn, no fault", len(faults) + len(flagged), len(rows)),
    ):
        for said in hints[start:stop]:
            counts[name, "wrong" if said else "none"] += 1
            if show and said:
                print(f"  {table.name}: {name}: {said}")
    count_cells(result, faults, faulty, counts)


def count_cells(
    result: ScreeningResult, faults: list[Fault], faulty: set[int], counts: Counts
) -> None:
    """Count planted faults among the odd cells, and odd cells in rows without one."""
    listed = {(cell.row - 1, cell.column) for cell in result.odd_cells}
    for fault in faults:
        found = any((fault.row, name) in listed for name in fault.columns)
        counts[fault.kind, "odd cell"] += found
    counts["flagged, no fault", "odd cell"] += sum(row not in faulty for row, _ in listed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=5000, help="rows drawn of larger tables")
    parser.add_argument("--half", choices=("development", "held-out"), default="development")
    parser.add_argument("--show", action="store_true", help="print every hint")
    options = parser.parse_args()
    counts: Counts = Counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in TABLES:
            if table.half == options.half:
                for seed in range(options.seeds):
                    measure(table, seed, options.rows, counts, show=options.show)
    outcomes = ("right", "wrong", "none", "odd cell")
    print(f"{options.half}: {'rows':>28}" + "".join(f"{name:>10}" for name in outcomes))
    for kind in dict.fromkeys(kind for kind, _ in counts):
        n_rows = sum(counts[kind, name] for name in outcomes[:3])
        shown = "".join(f"{counts[kind, name]:10}" for name in outcomes)
        print(f"{kind:30}{n_rows:10}{shown}")


if __name__ == "__main__":
    main()
