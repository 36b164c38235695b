"""Print the ranks of the faults planted in the table of the README's main example.

Prints the table of the README: for each fault its rank, whether it is flagged, and the column of
its first reason (among the explained rows); then how many faults are among the odd cells, and how
many other cells are odd.

    python tests/benchmarks/planted_faults.py --data kpca-novelty-penguins_faults
"""

import argparse
import csv
import json
from pathlib import Path

FAULTS = Path(__file__).resolve().parents[2] / "datasets" / "penguins_faults.json"


def table(run: Path) -> list[str]:
    """Format a Markdown table, best rank first."""
    with (run / "scored.csv").open(encoding="utf-8-sig", newline="") as handle:
        scored = list(csv.DictReader(handle))
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    reasons = {row["row"]: row["reasons"] for row in result["ranked"]}
    lines = []
    for fault in json.loads(FAULTS.read_text(encoding="utf-8")):
        row = scored[fault["row"] - 1]
        flagged = "yes" if row["flagged"].lower() in ("true", "1", "yes") else "no"
        given = reasons.get(fault["row"], [])
        first = given[0]["column"] if given else "not explained"
        hit = "yes" if first in {cell["column"] for cell in fault["cells"]} else f"no ({first})"
        lines.append((int(row["rank"]), f"| {fault['kind']}: {fault['what']} |", flagged, hit))
    return [
        "| planted fault | rank of 344 | on the list | right column first |",
        "|---|---|---|---|",
        *(f"{what} {rank} | {flagged} | {hit} |" for rank, what, flagged, hit in sorted(lines)),
    ]


def cells(run: Path) -> str:
    """Count the faults among the odd cells, and the other odd cells."""
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    listed = {(cell["row"], cell["column"]) for cell in result["findings"]["odd_cells"]}
    faults = [
        {(fault["row"], cell["column"]) for cell in fault["cells"]}
        for fault in json.loads(FAULTS.read_text(encoding="utf-8"))
    ]
    n_found = sum(bool(fault & listed) for fault in faults)
    n_others = len(listed - set().union(*faults))
    return f"Odd cells: {n_found} of {len(faults)} faults, and {n_others} other cells."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the finished run")
    run = parser.parse_args().data
    print("\n".join(table(run)))
    print(f"\n{cells(run)}")


if __name__ == "__main__":
    main()
