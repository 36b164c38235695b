"""Measure CPU seconds of common calls: import, help, screenings, single rows, denoising.

    python tests/benchmarks/small_tables.py [--before CHECKOUT] [--repeats 5]

Every line is a separate process, user plus system time, one thread of linear algebra; both
checkouts take turns, and medians are printed. Each checkout has a temporary cache for compiled
code: Python's modules are compiled beforehand, as an installation does, and numba's functions by a
warm-up run, shown as "first".
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

HERE = Path(__file__).resolve().parents[2]
SIZES = (100, 400, 1_000, 10_000)
WIDE = (500, 1_000)
ONE_BY_ONE = """
import sys, polars, kpca_apps
table = polars.read_csv(sys.argv[1])
model = kpca_apps.fit_model(table)
for row in range(100):
    kpca_apps.score_table(model, table[row : row + 1])
"""


def make_table(path: Path, n: int) -> None:
    """Write n rows of ten numbers, two categories and a date."""
    rng = np.random.default_rng(0)
    columns: dict[str, object] = {f"x{k}": rng.normal(size=n).round(3) for k in range(10)}
    columns["city"] = rng.choice(["Rome", "Oslo", "Bern", "Kiel"], n)
    columns["kind"] = rng.choice(["a", "b", "c"], n)
    columns["date"] = [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(n)]
    pl.DataFrame(columns).write_csv(path)


def make_wide_table(path: Path) -> None:
    """Write correlated numeric columns, more of them than rows."""
    rng, (n, d) = np.random.default_rng(0), WIDE
    values = rng.normal(size=(n, 20)) @ rng.normal(size=(20, d)) + rng.normal(size=(n, d))
    pl.DataFrame({f"x{k}": column.round(3) for k, column in enumerate(values.T)}).write_csv(path)


def make_image(path: Path) -> None:
    """Write a noisy picture of 256 x 256 pixels."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:256, :256]
    clean = 127 + 60 * np.sin(x / 17) + 50 * (np.hypot(x - 128, y - 128) < 70)
    noisy = np.clip(clean + rng.normal(scale=20, size=clean.shape), 0, 255)
    Image.fromarray(noisy.round().astype(np.uint8)).save(path)


def cpu_seconds(words: list[str], checkout: Path, cache: Path) -> float:
    """Run Python once with a checkout; return user and system time."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
        "PYTHONPATH": str(checkout),
        "PYTHONPYCACHEPREFIX": str(cache / "python"),
        "NUMBA_CACHE_DIR": str(cache / "numba"),
        "OPENBLAS_NUM_THREADS": "1",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *words],
        cwd=checkout,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="an older checkout, beside this one")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    checkouts = [HERE] if options.before is None else [options.before.resolve(), HERE]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        kpca = ["-m", "kpca_apps"]
        steps = {
            "import kpca_apps": ["-c", "import kpca_apps"],
            "kpca --help": [*kpca, "--help"],
            "kpca novelty screen --help": [*kpca, "novelty", "screen", "--help"],
        }
        for n in SIZES:
            make_table(work / f"{n}.csv", n)
            words = ["novelty", "screen", str(work / f"{n}.csv"), "--out", str(work / "out")]
            steps[f"screen of {n:,} x 13"] = [*kpca, *words]
        make_wide_table(work / "wide.csv")
        words = ["novelty", "screen", str(work / "wide.csv"), "--out", str(work / "out")]
        steps["screen of {:,} x {:,}".format(*WIDE)] = [*kpca, *words]
        steps["fit, and 100 single rows"] = ["-c", ONE_BY_ONE, str(work / "1000.csv")]
        make_image(work / "noisy.png")
        words = ["denoise", "run", str(work / "noisy.png"), "--out", str(work / "out")]
        steps["denoise of 256 x 256"] = [*kpca, *words]
        for place, checkout in enumerate(checkouts):
            cache = work / f"kept-{place}"
            for step in (f"screen of {SIZES[0]:,} x 13", "denoise of 256 x 256"):
                cpu_seconds(steps[step], checkout, cache)
                shutil.rmtree(work / "out", ignore_errors=True)
            shutil.rmtree(cache / "numba")
        print(f"{'CPU s':28}" + "".join(f"{c.name[:18]:>18} {'first':>7}" for c in checkouts))
        for step, words in steps.items():
            seconds: dict[Path, list[float]] = {checkout: [] for checkout in checkouts}
            for _ in range(options.repeats + 1):
                for place, checkout in enumerate(checkouts):
                    shutil.rmtree(work / "out", ignore_errors=True)
                    cache = work / f"kept-{place}"
                    seconds[checkout].append(cpu_seconds(words, checkout, cache))
            cells = (
                f"{statistics.median(rest):18.2f} {first:7.2f}" for first, *rest in seconds.values()
            )
            print(f"{step:28}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
