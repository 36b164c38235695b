"""Time the detector and pyod's detectors in one run: one thread, medians of five.

Contaminated: fit on 5,000 and 10,000 rows of 20 columns and score them. Clean: fit on 5,000 rows
with 700 landmarks. Reasons: explain the rows that score highest.

    python tests/benchmarks/detector_speed.py [--repeats 5]

pyod's detectors (pip install pyod) run with default settings; without pyod only ours are timed.
"""

import argparse
import statistics
from collections.abc import Callable

from engine import Matrix, cpu_seconds, curved_rows, machine_line
from modern_peers import pyod_class

from kpca_apps.novelty.detector.estimator import KernelPCANovelty

PEERS = ("IForest", "KNN", "LOF", "OCSVM")
CLEAN_ROWS, COLUMNS = 5_000, 20
REASONS_OF, EXPLAINED = 20_000, 500


def peers() -> dict[str, Callable[[], object]]:
    """Return constructors of pyod's detectors, or an empty dict without pyod."""
    makers: dict[str, Callable[[], object]] = {}
    for name in PEERS:
        try:
            makers[name] = pyod_class(name)
        except ImportError as error:
            print(f"pyod's {name} is skipped: {error}")
    return makers


def compare_fits(repeats: int) -> None:
    """Fit each detector and score the fitted rows; print seconds, and their ratio to IForest's."""
    makers = peers()
    for n in (5_000, 10_000):
        X = curved_rows(n, COLUMNS)
        all_makers: dict[str, Callable[[], object]] = {
            "ours, contaminated": lambda: KernelPCANovelty(random_state=0)
        }
        if n == CLEAN_ROWS:
            all_makers["ours, clean, 700 landmarks"] = lambda: KernelPCANovelty(
                contaminated=False, random_state=0
            )
        all_makers |= {f"pyod {name}": make for name, make in makers.items()}
        seconds = _fit_seconds(all_makers, X, repeats)
        base = seconds.get("pyod IForest")
        print(f"\nfit and score {n} x {COLUMNS}")
        for name, value in seconds.items():
            ratio = "" if base is None else f"{value / base:8.2f} x IForest"
            print(f"{name:>32} {value:8.3f} s {ratio}")


def _fit_seconds(
    makers: dict[str, Callable[[], object]], X: Matrix, repeats: int
) -> dict[str, float]:
    """Return each detector's median CPU seconds of a fit; the detectors take turns."""
    found: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(repeats + 1):
        for name, make in makers.items():
            found[name].append(cpu_seconds(lambda make=make: make().fit(X), 1))  # type: ignore
    return {name: statistics.median(times[1:]) for name, times in found.items()}


def reasons_time(repeats: int) -> None:
    """Print the time needed to explain the oddest rows of a table."""
    import numpy as np

    X = curved_rows(REASONS_OF, COLUMNS)
    detector = KernelPCANovelty(random_state=0).fit(X)
    oddest = np.argsort(-detector.novelty_scores_)[:EXPLAINED]
    explain = detector.detector_.explain
    explain(X[oddest[:9]], oddest[:9])  # compile before timing
    taken = [cpu_seconds(lambda: explain(X[oddest], oddest), 1) for _ in range(repeats)]
    each = 1e6 * float(np.median(taken)) / EXPLAINED
    print(f"\nreasons of {COLUMNS} columns: {each:,.0f} us a row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(machine_line())
    compare_fits(options.repeats)
    reasons_time(options.repeats)


if __name__ == "__main__":
    main()
