"""Measure a screening on a Dask cluster: CPU seconds of the command, scheduler and workers.

Run ``python -m tests.benchmarks.cluster`` (Linux, as a user who may mount folders). A cluster of
one worker screens a table of 20 columns at two ``--sizes``, reading a folder of Parquet files and
writing its parts of the scored table itself; with ``--sent`` the table is CSV in a folder hidden
from the worker, and the command sends the rows. The estimate for ``--rows`` divides costs that grow
with the rows by ``--workers``, except those of the command. With ``--passes``, the command only
scores the rows by a model and writes them, draws 600 and lists 500 of them: what remains fixed is
small, so that its noise does not hide what grows with the rows.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kpca_apps.novelty.columns import parts
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.findings import listed_rows
from kpca_apps.novelty.run import score
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.novelty.written_tables import write_tables
from kpca_apps.system.arrays import IntArray
from kpca_apps.system.files.output import OutputFolder
from kpca_apps.system.workers import Workers
from kpca_apps.tables.opening import open_table
from tests.benchmarks.large_tables import LABEL, make_table
from tests.benchmarks.processes import ROOT
from tests.system.cluster import Cluster, apart

COMMAND = """
import json, resource, sys
from kpca_apps.cli.main import main
code = main(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_SELF)
json.dump([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024], open(sys.argv[1], "w"))
sys.exit(code)
"""


PASSES = """
import sys
from tests.benchmarks.cluster import score_rows
score_rows(*sys.argv[1:])
"""
DRAWN, LISTED = 600, 500


@dataclass(frozen=True)
class Costs:
    """CPU seconds of three processes, and the peak memory of the command in MiB."""

    command: float
    scheduler: float
    worker: float
    peak: float

    def __str__(self) -> str:
        return (
            f"command {self.command:.1f} s and {self.peak:.0f} MiB, "
            f"scheduler {self.scheduler:.1f} s, worker {self.worker:.1f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="400000,1600000")
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--sent", action="store_true", help="rows of CSV, sent to the worker")
    parser.add_argument("--passes", action="store_true", help="score by a saved model only")
    parser.add_argument("--rows", type=int, default=10**9, help="rows of the estimate")
    parser.add_argument("--workers", type=int, default=64, help="workers of the estimate")
    args = parser.parse_args()
    few, many = (int(size) for size in args.sizes.split(","))
    with tempfile.TemporaryDirectory() as name:
        small, large = (measure(Path(name), size, args) for size in (few, many))
    names = Costs.__dataclass_fields__
    slope = {name: (getattr(large, name) - getattr(small, name)) / (many - few) for name in names}
    fixed = {name: getattr(small, name) - few * slope[name] for name in names}
    print("fixed:         ", Costs(**fixed))
    print("a million rows:", Costs(**{name: 1e6 * value for name, value in slope.items()}))
    shared = args.rows * slope["worker"] / args.workers
    alone = fixed["command"] + args.rows * slope["command"]
    print(
        f"{args.rows:,} rows on {args.workers} workers, estimated: "
        f"{shared / 3600:.2f} h of each worker, {alone / 3600:.2f} h of the command, "
        f"{(fixed['peak'] + args.rows * slope['peak']) / 1024:.0f} GiB in it"
    )


def measure(folder: Path, n_rows: int, args: argparse.Namespace) -> Costs:
    """Screen a table with the given number of rows on a new cluster."""
    place = folder / str(n_rows)
    driver = place / "driver"
    driver.mkdir(parents=True)
    data = driver / "rows.csv" if args.sent else place / "rows"
    if args.sent:
        script = str(ROOT / "datasets" / "make_large_table.py")
        words = [str(n_rows), str(data), "--format", "csv", "--columns", str(args.columns)]
        subprocess.run([sys.executable, script, *words], check=True)
    else:
        make_table(data, n_rows, args.columns)
    with apart(place, driver, n_workers=1) as cluster:
        out = driver / "out" if args.sent else place / "out"
        took = screened(data, driver, out, cluster, passes=args.passes)
    print(f"{n_rows:,} rows: {took}", flush=True)
    return took


def screened(data: Path, driver: Path, out: Path, cluster: Cluster, *, passes: bool) -> Costs:
    """Screen a table with the command in a separate process; this process runs the scheduler."""
    worker = cluster.processes[0].pid
    before = time.process_time(), cpu_seconds(worker)
    costs = driver / "took.json"
    words = ["novelty", "screen", data, "--label", LABEL, "--count", 1000, "--format", "parquet"]
    words += ["--out", out, "--scheduler", cluster.address, "--quiet"]
    if passes:
        words = [data, out, cluster.address]
    subprocess.run(
        [sys.executable, "-c", PASSES if passes else COMMAND, *map(str, (costs, *words))],
        check=True,
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(driver)},
        stdout=subprocess.DEVNULL,
    )
    command, peak = (float(word) for word in costs.read_text().strip("[]").split(","))
    scheduler, of_worker = time.process_time() - before[0], cpu_seconds(worker) - before[1]
    return Costs(command, scheduler, of_worker, peak)


def score_rows(costs: str, data: str, out: str, scheduler: str) -> None:
    """Fit a model to the first 3,000 rows of a table; score and write all of its rows."""

    def few(n_rows: int, seed: int) -> IntArray:
        return np.sort(np.random.default_rng(seed).choice(n_rows, DRAWN, replace=False))

    table = open_table(data)
    options = ScreeningOptions(count=20, explain=0, columns=ColumnOptions(exclude=(LABEL,)))
    model, _ = fit_table(next(table.tables()).take(np.arange(3_000)), options, clean=False)
    parts.sample_positions, listed_rows.MOST_ROWS = few, LISTED
    with Workers("dask", scheduler=scheduler) as workers, OutputFolder(out) as folder:
        execution, before = parts.Execution(workers), time.process_time()
        result = score(model, table, execution=execution)
        result = replace(result, run=replace(result.run, flagged_file="flagged.csv"))
        plan = model.encoder.plan
        write_tables(folder, table, result, plan, format="parquet", execution=execution)
        took = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    Path(costs).write_text(json.dumps([took, peak]), encoding="utf-8")


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
