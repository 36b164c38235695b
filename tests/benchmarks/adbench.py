"""Compare detection quality on ADBench's classical tables with pyod's detectors.

U: fit on all rows, outliers included, and score the same rows. N: fit on half of the normal rows
and score all others. All tables use the same defaults. A failure counts as AUROC 0.5 and AUPRC =
fraction of outliers.

    python tests/benchmarks/adbench.py --data FOLDER [--seeds 5] [--peers] [--recorded FILE]

``--peers`` also runs pyod's detectors (pip install pyod) with default settings, KPCA only with at
most 1,500 rows to fit, MCD only with at most 200 columns, and the recent baselines of
`modern_peers` (pip install kar-kcm torch for all of them); ``--recorded`` reads results of
baselines from JSON lines (data, setting, det, seed, auc, ap).
"""

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from adbench_data import clean_split, load_tables, sample_table
from modern_peers import (
    OURS,
    FloatArray,
    Method,
    SkippedError,
    areas,
    installed_modern_peers,
    ours,
    pyod_class,
)
from scipy.stats import rankdata
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

# Distance-based detectors get standardised columns.
STANDARDISED = ("KNN", "LOF", "OCSVM", "INNE", "CBLOF", "KPCA")
AS_THEY_COME = ("IForest", "ECOD", "COPOD", "HBOS", "PCA", "MCD", "GMM")
SEEDED = ("IForest", "INNE", "CBLOF", "MCD", "GMM", "KPCA")
MAX_ROWS_KPCA, MAX_COLUMNS_MCD = 1_500, 200


def parzen(train: FloatArray, test: FloatArray | None, seed: int) -> FloatArray:
    """Gaussian kernel density estimate with Silverman's bandwidth on standardised columns."""
    scaler = StandardScaler().fit(train)
    density = KernelDensity(bandwidth="silverman").fit(scaler.transform(train))
    return -density.score_samples(scaler.transform(train if test is None else test))


def pyod_method(name: str) -> Method:
    model_class = pyod_class(name)

    def run(train: FloatArray, test: FloatArray | None, seed: int) -> FloatArray:
        if name == "KPCA" and len(train) > MAX_ROWS_KPCA:
            raise SkippedError(f"{len(train)} rows > {MAX_ROWS_KPCA}")
        if name == "MCD" and train.shape[1] > MAX_COLUMNS_MCD:
            raise SkippedError(f"{train.shape[1]} columns > {MAX_COLUMNS_MCD}")
        model = model_class(**({"random_state": seed} if name in SEEDED else {}))
        if name in STANDARDISED:
            scaler = StandardScaler().fit(train)
            train, test = scaler.transform(train), None if test is None else scaler.transform(test)
        model.fit(train)
        return model.decision_scores_ if test is None else model.decision_function(test)

    return run


def measure(methods: dict[str, Method], folder: Path, seeds: int) -> list[dict[str, object]]:
    """Return one record per table, setting, method and seed."""
    records: list[dict[str, object]] = []
    for full in load_tables(folder):
        for seed in range(seeds):
            table = sample_table(full, seed)
            fitted, others = clean_split(table.y, seed)
            for setting, train, test, y in (
                ("U", table.X, None, table.y),
                ("N", table.X[fitted], table.X[others], table.y[others]),
            ):
                for name, method in methods.items():
                    started = time.process_time()
                    try:
                        task = f"{name} on {table.name} ({setting})"
                        auc, ap = areas(method, train, test, seed, y, task)
                    except SkippedError:
                        continue
                    records.append(
                        {
                            "data": full.number,
                            "setting": setting,
                            "det": name,
                            "seed": seed,
                            "auc": auc,
                            "ap": ap,
                            "share": float(y.mean()),
                            "seconds": time.process_time() - started,
                        }
                    )
        print(f"{full.name}: done", flush=True)
    return records


def summarise(records: list[dict[str, object]], setting: str) -> None:
    """Print each method's mean, median and average rank over the tables on which it ran."""
    shares = {(r["data"], r["setting"]): r["share"] for r in records if "share" in r}
    cells: dict[str, dict[int, list[tuple[float, float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for record in records:
        if record["setting"] != setting or str(record.get("error", "")).startswith("skipped"):
            continue
        number = int(record["data"])
        failed = (0.5, shares[number, setting])
        areas = failed if "error" in record else (record["auc"], record["ap"])
        cells[str(record["det"])][number].append((*areas, record.get("seconds", np.nan)))
    means = {
        name: {number: np.mean(values, axis=0) for number, values in tables.items()}
        for name, tables in cells.items()
    }
    complete = [name for name in means if len(means[name]) == len(means[OURS])]
    table = np.array([[means[n][t][0] for n in complete] for t in sorted(means[OURS])])
    ranks = dict(zip(complete, rankdata(-table, axis=1).mean(axis=0), strict=True))
    print(f"\n{setting}: {len(means[OURS])} tables, AUROC and AUPRC over tables")
    print(
        f"{'method':26} {'tables':>6} {'AUROC':>6} {'median':>6} {'AUPRC':>6} {'rank':>5}"
        f" {'CPU s':>7}   ours on the same tables"
    )
    for name in sorted(means, key=lambda n: -np.mean([v[0] for v in means[n].values()])):
        values = np.array(list(means[name].values()))
        same = np.mean([means[OURS][number][:2] for number in means[name]], axis=0)
        print(
            f"{name:26} {len(values):6d} {values[:, 0].mean():6.4f} {np.median(values[:, 0]):6.4f}"
            f" {values[:, 1].mean():6.4f} {ranks.get(name, np.nan):5.2f} {values[:, 2].sum():7.2f}"
            f"   {same[0]:.4f} {same[1]:.4f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of ADBench .npz tables")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peers", action="store_true", help="run pyod's detectors as well")
    parser.add_argument("--recorded", type=Path, help="JSON lines with results of peers")
    options = parser.parse_args()
    methods: dict[str, Method] = {OURS: ours}
    if options.peers:
        methods |= {"Parzen": parzen}
        methods |= {f"pyod {name}": pyod_method(name) for name in AS_THEY_COME + STANDARDISED}
        methods |= installed_modern_peers()
    with threadpool_limits(1):
        records = measure(methods, options.data, options.seeds)
    if options.recorded:
        records += [json.loads(line) for line in options.recorded.read_text().splitlines()]
    for setting in "UN":
        summarise(records, setting)


if __name__ == "__main__":
    main()
