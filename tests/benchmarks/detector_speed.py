"""The detector's speed beside pyod's detectors in the same run, one thread, best of five.

Contaminated: fit on 5,000 and 10,000 rows of 20 columns and score them. Clean: fit on 5,000 rows
with 700 landmarks. Scoring: new rows by a model of 500 landmarks, through `score_samples`.

    python tests/benchmarks/detector_speed.py [--repeats 5]

pyod's detectors (pip install pyod) run at their defaults; without pyod only ours are timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from engine_common import Matrix, cpu_seconds, curved_rows, machine_line
from modern_peers import pyod_class

from kpca_apps.novelty.detector.estimator import KernelPCANovelty

PEERS = ("IForest", "KNN", "LOF", "OCSVM")
CLEAN_ROWS, SCORED_ROWS, POINTS, COLUMNS = 5_000, 20_000, 500, 20


def peers() -> dict[str, Callable[[], object]]:
    """Return what makes each of pyod's detectors, as far as pyod is installed."""
    makers: dict[str, Callable[[], object]] = {}
    for name in PEERS:
        try:
            makers[name] = pyod_class(name)
        except ImportError as error:
            print(f"pyod's {name} is not timed: {error}")
    return makers


def compare_fits(repeats: int) -> None:
    """Print seconds of fits that score their own rows, and their ratios to IForest's."""
    makers = peers()
    for n in (5_000, 10_000):
        X = curved_rows(n, COLUMNS)
        seconds = {
            "ours, contaminated": _fit_seconds(lambda: KernelPCANovelty(random_state=0), X, repeats)
        }
        if n == CLEAN_ROWS:
            seconds["ours, clean, 700 landmarks"] = _fit_seconds(
                lambda: KernelPCANovelty(contaminated=False, random_state=0), X, repeats
            )
        for name, make in makers.items():
            seconds[f"pyod {name}"] = _fit_seconds(make, X, repeats)
        base = seconds.get("pyod IForest")
        print(f"\nfit and score {n} x {COLUMNS}")
        for name, value in seconds.items():
            ratio = "" if base is None else f"{value / base:8.2f} x IForest"
            print(f"{name:>32} {value:8.3f} s {ratio}")


def _fit_seconds(make: Callable[[], object], X: Matrix, repeats: int) -> float:
    return cpu_seconds(lambda: make().fit(X), repeats)  # type: ignore[attr-defined]


def scoring_rate(repeats: int) -> None:
    """Print rows scored a second."""
    detector = KernelPCANovelty(contaminated=False, n_landmarks=POINTS, random_state=0)
    detector.fit(curved_rows(CLEAN_ROWS, COLUMNS))
    new = curved_rows(SCORED_ROWS, COLUMNS, seed=2)
    rate = SCORED_ROWS / cpu_seconds(lambda: detector.score_samples(new), repeats)
    print(f"\nscoring {COLUMNS} columns, {POINTS} landmarks: {rate:,.0f} rows/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(machine_line())
    compare_fits(options.repeats)
    scoring_rate(options.repeats)


if __name__ == "__main__":
    main()
