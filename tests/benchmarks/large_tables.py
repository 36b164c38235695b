"""Tables of any size through the command: rows a second, memory, and the same scores everywhere.

Run ``python -m tests.benchmarks.large_tables`` for ten million rows of 20 columns, made in a
temporary folder; ``--rows`` takes fewer, ``--data`` a folder made earlier by
``datasets/make_large_table.py``. A table is screened by itself, then scored with the model that
left, each in a process of its own. ``--workers dask`` does it again on a cluster of two workers on
this machine, and compares the scores; ``--kill`` ends one of these workers on the way.
``--before PATH`` screens the table with an older checkout too, by turns, and compares both.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

ROOT = Path(__file__).parents[2]
COMMAND = (
    sys.executable,
    "-c",
    "import sys; from kpca_apps.cli.main import main; sys.exit(main())",
)
LABEL = "planted"
POLL_SECONDS = 0.2
# A worker is ended when so much of the time of the run on threads has gone by.
KILLED_AT = 0.5


@dataclass(frozen=True)
class Run:
    """What one command took and left."""

    folder: Path
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    n_killed: int

    @property
    def passes(self) -> dict[str, float]:
        """Seconds of each pass over the table."""
        seconds = json.loads((self.folder / "run.json").read_text())["seconds"]
        return {name: took for name, took in seconds.items() if name.startswith("pass ")}

    @property
    def found(self) -> pl.DataFrame:
        """Scores and known outliers, in the order of the table."""
        columns = ["novelty_score", LABEL]
        return pl.scan_parquet(self.folder / "scored.parquet").select(columns).collect()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--keep", type=Path, help="folder that keeps what the commands write")
    parser.add_argument("--workers", choices=("threads", "dask"), default="threads")
    parser.add_argument("--kill", action="store_true", help="end one Dask worker on the way")
    parser.add_argument("--before", type=Path, help="an older checkout to measure beside this one")
    told = parser.parse_args()
    if told.keep is not None:
        measure(told.keep, told)
        return
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name), told)


def measure(folder: Path, told: argparse.Namespace) -> None:
    """Screen and score the table, and print what it took."""
    data = told.data or make_table(folder / "table", told.rows, told.columns)
    n_rows = pl.scan_parquet(data / "*.parquet").select(pl.len()).collect().item()
    print(f"{n_rows:,} rows; {os.cpu_count()} cores", flush=True)
    before = told.before and screen(folder / "before", data, n_rows, root=told.before)
    screened = screen(folder / "screened", data, n_rows)
    if before:
        print(f"    of the time before: {screened.seconds / before.seconds:.2f}, ", end="")
        print(f"of its CPU time: {screened.cpu_seconds / before.cpu_seconds:.2f}")
        compare("the older checkout and this one", before, screened)
    score(folder, data, n_rows)
    if told.workers == "dask" or told.kill:
        delay = KILLED_AT * screened.seconds if told.kill else None
        on_dask = screen(folder / "on-dask", data, n_rows, DASK, kill_after=delay)
        compare("threads and Dask", screened, on_dask)


DASK = ("--workers", "dask", "--jobs", "2")


def make_table(folder: Path, n_rows: int, n_columns: int) -> Path:
    """Write the table, unless an earlier run left it."""
    if not folder.exists():
        words = [str(n_rows), str(folder), "--columns", str(n_columns)]
        script = str(ROOT / "datasets" / "make_large_table.py")
        subprocess.run([sys.executable, script, *words], check=True)
    return folder


def screen(
    out: Path,
    data: Path,
    n_rows: int,
    words: tuple[str, ...] = (),
    kill_after: float | None = None,
    root: Path = ROOT,
) -> Run:
    told = ("screen", data, "--exclude", LABEL, "--out", out, "--force", "--format", "parquet")
    run = watched(out, (*told, *words), kill_after, root)
    where = " on two Dask workers" * bool(words) + f" by {root}" * (root != ROOT)
    say(f"screened{where}", run, n_rows)
    return run


def score(folder: Path, data: Path, n_rows: int) -> None:
    out = folder / "scored"
    model = folder / "screened" / "model.kpca"
    run = watched(out, ("score", model, data, "--out", out, "--force", "--format", "parquet"))
    say("scored with its model", run, n_rows)


def watched(
    out: Path, words: tuple[object, ...], kill_after: float | None = None, root: Path = ROOT
) -> Run:
    """Run a command in a fresh process, watching the memory of it and of its children."""
    began, peak, n_killed, cpu = time.perf_counter(), 0, 0, children_cpu()
    command = subprocess.Popen(
        [*COMMAND, "novelty", *map(str, words)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(root.resolve())},
    )
    while command.poll() is None:
        family = [command.pid, *children(command.pid)]
        peak = max(peak, sum(map(resident_bytes, family)))
        if kill_after is not None and time.perf_counter() - began > kill_after:
            kill_after = None
            os.kill(next(filter(is_worker, family[1:])), signal.SIGKILL)
            n_killed += 1
        time.sleep(POLL_SECONDS)
    if command.returncode:
        sys.exit(command.stderr.read().decode() if command.stderr else "the command failed")
    return Run(out, time.perf_counter() - began, children_cpu() - cpu, peak, n_killed)


def children_cpu() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def children(process: int) -> list[int]:
    """Processes that a process started, and those that they did."""
    try:
        tasks = Path(f"/proc/{process}/task").glob("*/children")
        direct = [int(word) for task in tasks for word in task.read_text().split()]
    except OSError:
        return []
    return [found for child in direct for found in (child, *children(child))]


def is_worker(process: int) -> bool:
    return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()


def resident_bytes(process: int) -> int:
    """Memory of a process now, pages of the files it maps included."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


def say(what: str, run: Run, n_rows: int) -> None:
    rate = n_rows / run.seconds
    killed = f", {run.n_killed} worker killed on the way" if run.n_killed else ""
    print(f"{what} in {run.seconds:.0f} s{killed}: {rate:,.0f} rows/s, ", end="")
    print(f"CPU {run.cpu_seconds:.0f} s, ", end="")
    print(f"peak {run.peak_bytes / 2**20:,.0f} MiB, AUROC {area(run.found):.4f}")
    for name, seconds in run.passes.items():
        print(f"    {name}: {seconds:.1f} s, {n_rows / max(seconds, 1e-3):,.0f} rows/s")


def area(found: pl.DataFrame) -> float:
    return float(roc_auc_score(found[LABEL].to_numpy(), found["novelty_score"].to_numpy()))


def compare(what: str, one: Run, other: Run) -> None:
    scores: list[NDArray[np.float64]] = [
        run.found["novelty_score"].to_numpy() for run in (one, other)
    ]
    apart = np.abs(scores[0] - scores[1]).max()
    print(f"largest difference of a score between {what}: {apart:.1e}")


if __name__ == "__main__":
    main()
