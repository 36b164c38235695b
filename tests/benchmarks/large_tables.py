"""Screen tables of any size; print rows per second and memory, and compare scores.

Run ``python -m tests.benchmarks.large_tables`` for ten million rows of 20 columns in a temporary
folder; ``--rows`` sets another number, ``--data`` names a folder made earlier by
``datasets/make_large_table.py``. The table is screened, then scored with the resulting model, each
in a separate process. ``--before PATH`` alternates with an older checkout and compares both.
``--growth PICTURE`` screens tables of growing ``--sizes`` instead, and plots the costs.
``--threads`` screens with one thread and with two instead, prints the fraction of the CPU time in
the main thread, which runs the serial part, and the resulting speed-up on 16 cores.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from tests.benchmarks.processes import ROOT, Usage, run_kpca

LABEL = "planted"
MANY_CORES = 16
WRITING = ("--force", "--format", "parquet")


@dataclass(frozen=True)
class Run:
    folder: Path
    taken: Usage

    @property
    def passes(self) -> dict[str, float]:
        """Return the seconds of each pass over the table."""
        seconds = json.loads((self.folder / "run.json").read_text())["seconds"]
        return {name: took for name, took in seconds.items() if name.startswith("pass ")}

    @property
    def found(self) -> pl.DataFrame:
        """Return scores and known outliers in table order."""
        columns = ["novelty_score", LABEL]
        return pl.scan_parquet(self.folder / "scored.parquet").select(columns).collect()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--before", type=Path, help="an older checkout to measure beside this one")
    parser.add_argument("--growth", type=Path, help="picture of time and memory by rows, to write")
    parser.add_argument("--threads", action="store_true", help="what is not shared by threads")
    parser.add_argument("--sizes", default="10000,100000,1000000,10000000")
    arguments = parser.parse_args()
    # Commands run in the folder of their checkout, so make paths absolute.
    for name in ("data", "before", "growth"):
        setattr(arguments, name, getattr(arguments, name) and getattr(arguments, name).resolve())
    with tempfile.TemporaryDirectory() as name:
        if arguments.growth is None:
            measure(Path(name), arguments)
        else:
            grow(Path(name), arguments)


def measure(folder: Path, arguments: argparse.Namespace) -> None:
    """Screen and score the table; print time and memory."""
    data = arguments.data or make_table(folder / "table", arguments.rows, arguments.columns)
    n_rows = pl.scan_parquet(data / "*.parquet").select(pl.len()).collect().item()
    print(f"{n_rows:,} rows; {os.cpu_count()} cores", flush=True)
    if arguments.threads:
        share(folder, data, n_rows)
        return
    before = arguments.before and screen(folder / "before", data, n_rows, root=arguments.before)
    screened = screen(folder / "screened", data, n_rows)
    if before:
        print(f"    ratio of times: {screened.taken.seconds / before.taken.seconds:.2f}, ", end="")
        print(f"of CPU times: {screened.taken.cpu_seconds / before.taken.cpu_seconds:.2f}")
        compare("the older checkout and this one", before, screened)
    score(folder, data, n_rows)


def grow(folder: Path, arguments: argparse.Namespace) -> None:
    """Screen tables of growing size, alternating with an older checkout, and plot the costs."""
    sizes = [int(size) for size in arguments.sizes.split(",")]
    roots = {"before": arguments.before} if arguments.before else {}
    roots |= {"now": ROOT}
    took: dict[str, list[Usage]] = {name: [] for name in roots}
    for size in sizes:
        print(f"{size:,} rows; {os.cpu_count()} cores", flush=True)
        data = make_table(folder / "table", size, arguments.columns)
        for name, root in roots.items():
            took[name].append(screen(folder / name, data, size, root=root).taken)
            shutil.rmtree(folder / name)
        shutil.rmtree(data)
    shown = {
        "CPU seconds": lambda taken: taken.cpu_seconds,
        "memory, MiB": lambda taken: taken.peak_bytes / 2**20,
    }
    figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.2), layout="constrained")
    for ax, (what, value) in zip(axes, shown.items(), strict=True):
        for name, marker in zip(roots, "o^" if len(roots) > 1 else "^", strict=True):
            ax.plot(sizes, list(map(value, took[name])), f"{marker}-", label=name)
        ax.set(xscale="log", yscale="log", xlabel="rows", title=what)
        ax.grid(alpha=0.3, which="both", linewidth=0.5)
    axes[0].legend()
    figure.savefig(arguments.growth, dpi=120)


def share(folder: Path, data: Path, n_rows: int) -> None:
    """Screen the table with one and two threads; print the serial fraction and the speed-up.

    By Amdahl's law a serial part s leaves a speed-up of 1 / (s + (1 - s) / n) on n cores.
    """
    one, two = (screen(folder / jobs, data, n_rows, ("--jobs", jobs)) for jobs in ("1", "2"))
    compare("one thread and two", one, two)
    alone = two.taken.first_thread_seconds / two.taken.cpu_seconds
    print(f"CPU {one.taken.cpu_seconds:.1f} s by one thread, {two.taken.cpu_seconds:.1f} s by two")
    print(f"serial: {alone:.3f} of the CPU time; estimate for {MANY_CORES} cores: ", end="")
    print(f"{1 / (alone + (1 - alone) / MANY_CORES):.1f} times as fast as one")


def make_table(folder: Path, n_rows: int, n_columns: int) -> Path:
    """Write the table unless it exists."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        words = [str(n_rows), str(folder), "--columns", str(n_columns)]
        script = str(ROOT / "datasets" / "make_large_table.py")
        subprocess.run([sys.executable, script, *words], check=True)
    return folder


def screen(
    out: Path, data: Path, n_rows: int, words: tuple[str, ...] = (), root: Path = ROOT
) -> Run:
    command = ("novelty", "screen", data, "--exclude", LABEL, "--out", out, *WRITING, *words)
    run = Run(out, run_kpca(*command, root=root))
    say("screened" + f" by {root}" * (root != ROOT), run, n_rows)
    return run


def score(folder: Path, data: Path, n_rows: int) -> None:
    out, model = folder / "scored", folder / "screened" / "model.kpca"
    run = Run(out, run_kpca("novelty", "score", model, data, "--out", out, *WRITING))
    say("scored with its model", run, n_rows)


def say(what: str, run: Run, n_rows: int) -> None:
    taken = run.taken
    print(f"{what} in {taken.seconds:.0f} s: {n_rows / taken.seconds:,.0f} rows/s, ", end="")
    print(f"CPU {taken.cpu_seconds:.0f} s, ", end="")
    print(f"peak {taken.peak_bytes / 2**20:,.0f} MiB, AUROC {area(run.found):.4f}")
    for name, seconds in run.passes.items():
        print(f"    {name}: {seconds:.1f} s, {n_rows / max(seconds, 1e-3):,.0f} rows/s")


def area(found: pl.DataFrame) -> float:
    return float(roc_auc_score(found[LABEL].to_numpy(), found["novelty_score"].to_numpy()))


def compare(what: str, one: Run, other: Run) -> None:
    scores: list[NDArray[np.float64]] = [
        run.found["novelty_score"].to_numpy() for run in (one, other)
    ]
    apart, alike = np.abs(scores[0] - scores[1]).max(), spearmanr(*scores)[0]
    print(f"{what}: largest difference of a score {apart:.1e}, rank correlation {alike:.5f}")


if __name__ == "__main__":
    main()
