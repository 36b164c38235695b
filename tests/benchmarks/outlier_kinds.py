"""Plant four kinds of outliers among real normal rows (after Han et al. 2022, section 3.3).

5 % of the rows each: local (rows of a Gaussian mixture of the normals with covariances x 5), global
(uniform over the columns' ranges x 1.1), cluster (the mixture with means x 5), dependency (columns
drawn independently: usual values in unusual combinations). U: fitted on the table with its
outliers. N: on half of the normals, judged on the rest. Tables of ADBench with 3 to 40 varying
columns and at least 300 normal rows, standardised.

    python tests/benchmarks/outlier_kinds.py --data FOLDER [--cap 2000] [--seeds 3] [--peers]

``--peers`` also runs classic detectors of scikit-learn and the recent baselines in `modern_peers`.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from adbench_data import load_tables
from modern_peers import OURS, FloatArray, Method, areas, installed_modern_peers, ours
from sklearn.covariance import MinCovDet
from sklearn.ensemble import IsolationForest
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from threadpoolctl import threadpool_limits

KINDS = ("local", "global", "cluster", "dependency")
SHARE = 0.05


def mixture(Z: FloatArray) -> GaussianMixture:
    """Fit one, three or five Gaussians, chosen by the Bayesian information criterion."""
    fitted = [
        GaussianMixture(k, reg_covar=1e-4, random_state=0, max_iter=50).fit(Z) for k in (1, 3, 5)
    ]
    return min(fitted, key=lambda model: model.bic(Z))


def drawn(
    model: GaussianMixture, n: int, rng: np.random.Generator, mean: float = 1.0, cov: float = 1.0
) -> FloatArray:
    """Draw rows of a mixture with scaled means and covariances."""
    components = rng.choice(len(model.weights_), n, p=model.weights_)
    means, covariances = model.means_ * mean, model.covariances_ * cov
    return np.stack(
        [rng.multivariate_normal(means[k], covariances[k], method="cholesky") for k in components]
    )


def planted(
    Z: FloatArray, kind: str, n: int, model: GaussianMixture, rng: np.random.Generator
) -> FloatArray:
    if kind == "local":
        return drawn(model, n, rng, cov=5.0)
    if kind == "cluster":
        return drawn(model, n, rng, mean=5.0)
    if kind == "global":
        return rng.uniform(Z.min(0) * 1.1, Z.max(0) * 1.1, (n, Z.shape[1]))
    return np.stack([rng.choice(column, n) for column in Z.T], axis=1)


def knn(train: FloatArray, test: FloatArray | None, seed: int) -> FloatArray:
    distances, _ = NearestNeighbors(n_neighbors=5).fit(train).kneighbors(test)
    scores: FloatArray = distances[:, -1]
    return scores


def lof(train: FloatArray, test: FloatArray | None, seed: int) -> FloatArray:
    model = LocalOutlierFactor(20, novelty=test is not None).fit(train)
    scores: FloatArray = (
        model.negative_outlier_factor_ if test is None else model.score_samples(test)
    )
    return -scores


def scored_by(model: IsolationForest | OneClassSVM) -> Method:
    def run(train: FloatArray, test: FloatArray | None, seed: int) -> FloatArray:
        scores: FloatArray = -model.fit(train).score_samples(train if test is None else test)
        return scores

    return run


def mcd(train: FloatArray, test: FloatArray | None, seed: int) -> FloatArray:
    model = MinCovDet(random_state=0).fit(train)
    distances: FloatArray = model.mahalanobis(train if test is None else test)
    return distances


def peers() -> dict[str, Method]:
    return {
        "IForest": scored_by(IsolationForest(random_state=0)),
        "KNN": knn,
        "LOF": lof,
        "MCD": mcd,
        "OCSVM": scored_by(OneClassSVM(gamma="scale")),
    } | installed_modern_peers()


def measure(
    folder: Path, cap: int, seeds: int, methods: dict[str, Method]
) -> list[dict[str, object]]:
    """Return one record per table, seed, kind, setting and method."""
    records: list[dict[str, object]] = []
    for table in load_tables(folder):
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            Z = table.X[table.y == 0]
            Z = Z[rng.permutation(len(Z))[:cap]]
            Z = StandardScaler().fit_transform(Z[:, Z.std(0) > 1e-9])
            if len(Z) < 300 or not 3 <= Z.shape[1] <= 40:
                continue
            model, n, half = mixture(Z), max(10, round(SHARE * len(Z))), len(Z) // 2
            for kind in KINDS:
                outliers = planted(Z, kind, n, model, np.random.default_rng(seed + 1))
                for setting, train, test in (
                    ("U", np.r_[Z, outliers], None),
                    ("N", Z[:half], np.r_[Z[half:], outliers]),
                ):
                    y = np.zeros(len(train if test is None else test))
                    y[-n:] = 1
                    for name, method in methods.items():
                        task = f"{name} on {table.name} ({kind}, {setting})"
                        auc, ap = areas(method, train, test, seed, y, task)
                        records.append(
                            {
                                "data": table.number,
                                "seed": seed,
                                "kind": kind,
                                "setting": setting,
                                "method": name,
                                "auc": auc,
                                "ap": ap,
                            }
                        )
        print(f"{table.name}: done", flush=True)
    return records


def summarise(records: pd.DataFrame) -> None:
    """Print mean areas under the curve by setting, kind and method."""
    n_tables = records["data"].nunique()
    for setting, found in records.groupby("setting", sort=False):
        for area, words in (("auc", "AUROC"), ("ap", "AUPRC")):
            means = found.pivot_table(area, "method", "kind", sort=False)[list(KINDS)]
            means["all"] = means.mean(axis=1)
            print(f"\n{setting}: mean {words} over {n_tables} tables")
            print(means.sort_values("all", ascending=False).round(3).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of ADBench .npz tables")
    parser.add_argument("--cap", type=int, default=2000, help="normal rows of a table, at most")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--peers", action="store_true", help="run other detectors as well")
    parser.add_argument("--out", type=Path, help="file of JSON lines for the records")
    options = parser.parse_args()
    methods: dict[str, Method] = {OURS: ours} | (peers() if options.peers else {})
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = measure(options.data, options.cap, options.seeds, methods)
    if options.out:
        options.out.write_text("".join(json.dumps(record) + "\n" for record in records))
    summarise(pd.DataFrame(records))


if __name__ == "__main__":
    main()
