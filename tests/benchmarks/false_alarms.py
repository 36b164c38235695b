"""Measure false-alarm rates on held-out normal rows of ADBench's classical tables.

The detector is fitted on half of the normal rows and judged on the other half. Tables with fewer
than 1 / alpha calibration rows are excluded from the mean for that alpha.

    python tests/benchmarks/false_alarms.py --data FOLDER [--seeds 5] [--calibration split]
"""

import argparse
from pathlib import Path

import numpy as np
from adbench_data import clean_split, load_tables, sample_table
from threadpoolctl import threadpool_limits

from kpca_apps.novelty.detector.estimator import KernelPCANovelty

RATES = (0.10, 0.05, 0.01)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of ADBench .npz tables")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--calibration", default="auto", choices=["auto", "split"])
    options = parser.parse_args()
    false_alarms: dict[float, list[float]] = {rate: [] for rate in RATES}
    detections: list[float] = []
    for full in load_tables(options.data):
        rates: dict[float, list[float]] = {rate: [] for rate in RATES}
        found = []
        for seed in range(options.seeds):
            table = sample_table(full, seed)
            fitted, others = clean_split(table.y, seed)
            with threadpool_limits(1):
                detector = KernelPCANovelty(
                    contaminated=False, calibration=options.calibration, random_state=seed
                ).fit(table.X[fitted])
                p_values = detector.p_values(table.X[others])
            normal = table.y[others] == 0
            for rate in RATES:
                if len(detector.calibration_scores_) >= 1 / rate:
                    rates[rate].append(float((p_values[normal] <= rate).mean()))
            found.append(float((p_values[~normal] <= 0.05).mean()))
        detections.append(float(np.mean(found)))
        for rate, values in rates.items():
            if values:
                false_alarms[rate].append(float(np.mean(values)))
        shown = "  ".join(f"{np.mean(v):7.2%}" if v else "      -" for v in rates.values())
        print(f"{full.name:20} {shown}   detected at 5 %: {detections[-1]:.1%}", flush=True)
    for rate, values in false_alarms.items():
        print(
            f"nominal {rate:.0%}: mean {np.mean(values):.2%}, worst {np.max(values):.2%} "
            f"over {len(values)} tables"
        )
    print(f"detections at 5 %: {np.mean(detections):.1%}")


if __name__ == "__main__":
    main()
