"""Screen real columns with labelled errors; count the columns where an error is found.

    python tests/benchmarks/labelled_columns.py ST_BENCH [--clean 150] [--misses]

ST_BENCH is `benchmarks/st_bench.csv` of qixuchen/AutoTest (Chen et al. 2025, SIGMOD): 47 of its
1,200 columns have undisputed errors. Each is screened as a separate table, and so are unlabelled
columns drawn with a seed; any odd cell in these counts as false and is printed, even an unlabelled
misspelling. Needs the extra `words`.
"""

import argparse
import ast
import random

import polars as pl

import kpca_apps
from kpca_apps.errors import KpcaError

LABELS = ("ground_truth", "ground_truth_debatable")


def values_of(cell: str | None) -> list[str]:
    """Parse a list of texts as stored in the file."""
    try:
        return [str(value) for value in ast.literal_eval(cell or "[]")]
    except (SyntaxError, ValueError):
        return []


def odd_cells(row: dict[str, str]) -> dict[str, str]:
    """Screen one column; return its odd cells with suggested values."""
    try:
        table = {row["header"] or "column": values_of(row["dist_val"])}
        found = kpca_apps.screen_table(table, explain=0).findings.odd_cells
    except KpcaError:  # nothing to fit a model to
        return {}
    return {cell.seen: cell.suggestion for cell in found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table")
    parser.add_argument("--clean", type=int, default=150, help="columns without a label")
    parser.add_argument("--misses", action="store_true", help="print what was not found")
    options = parser.parse_args()
    rows = pl.read_csv(options.table, infer_schema=False).to_dicts()
    labelled = [row for row in rows if len(row["ground_truth"] or "") > 2]
    clean = [row for row in rows if not any(values_of(row[c]) for c in LABELS)]
    n_hit = n_false = 0
    for row in labelled:
        found = odd_cells(row).keys() & {*values_of(row["ground_truth"])}
        n_hit += bool(found)
        if options.misses and not found:
            print(f"missed in {row['header']!r}: {row['ground_truth']}")
    for row in random.Random(0).sample(clean, min(options.clean, len(clean))):
        found = odd_cells(row)
        n_false += bool(found)
        if found:
            print(f"no label in {row['header']!r}: {found}")
    print(f"{n_hit} of {len(labelled)} columns with errors, {n_false} of {options.clean} without")


if __name__ == "__main__":
    main()
