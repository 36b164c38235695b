"""The methods of the papers beside what this package does instead.

Needs no data: rows near a curved surface, and scikit-learn's digits. Prints, for each module of
``kpca_apps/papers/methods``, the figures its first lines quote.

    python tests/benchmarks/paper_methods.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from kpca_apps.engine.bandwidth import median_squared_distance
from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Polynomial
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.methods.class_means import class_means
from kpca_apps.papers.methods.cluster_means import mean_components
from kpca_apps.papers.methods.explicit_maps import monomials

Matrix = Any
Q = 5


def curved_rows(n: int, d: int = 12) -> Matrix:
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(n, 3))
    turned = np.sin(latent @ rng.normal(size=(3, d))) + (latent @ rng.normal(size=(3, d))) ** 2 / 9
    return turned + 0.1 * rng.normal(size=(n, d))


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least time of several runs, of one where it takes long, and what came of it."""
    times: list[float] = []
    while len(times) < 7 and sum(times) < 1.0:
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def row(name: str, **figures: object) -> None:
    told = ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in figures.items()
    )
    print(f"{name}: {told}", flush=True)


def cluster_means() -> None:
    X = curved_rows(2000)
    kernel = RBF(1.0 / median_squared_distance(X, np.random.default_rng(0)))
    true = fit_exact(kernel, X, rng=np.random.default_rng(0), n_components=Q)

    def error(subspace: KernelSubspace) -> float:
        return float(np.abs(subspace.variances[:Q] / true.variances - 1.0).max())

    clusters = KMeans(60, n_init=1, random_state=0).fit(X)
    sizes, means = np.bincount(clusters.labels_), clusters.cluster_centers_
    model = KernelPCA(
        Q,
        kernel=kernel,
        method="nystroem",
        n_landmarks=60,
        landmarks="kmeans",
        random_state=0,
        precision="float64",
    )
    row(
        "cluster_means",
        unweighted=error(mean_components(kernel, means, np.ones(60))),
        weighted=error(mean_components(kernel, means, sizes)),
        landmarks=error(model.fit(X).subspace_),
    )


def explicit_maps() -> None:
    X = np.random.default_rng(0).normal(size=(500, 20))
    direct, gram = seconds(lambda: Polynomial(4)(X))
    written, features = seconds(lambda: monomials(X, 4))
    product, other = seconds(lambda: features @ features.T)
    row(
        "explicit_maps",
        kernel_ms=1e3 * direct,
        monomials_ms=1e3 * (written + product),
        columns=features.shape[1],
        gap=float(np.abs(gram - other).max() / gram.max()),
    )


def nearest_class_means() -> None:
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    X, y, new, truth = X[1::2], y[1::2], X[::2], y[::2]
    own = 1.0 / median_squared_distance(X, np.random.default_rng(0))
    pair, asked = np.isin(y, (3, 8)), np.isin(truth, (3, 8))
    means = class_means(RBF(own), X[pair], y[pair]).predict(new[asked])
    svc = SVC(gamma=own).fit(X[pair], y[pair]).predict(new[asked])
    row(
        "class_means",
        means=float(100 * np.mean(means != truth[asked])),
        svc=float(100 * np.mean(svc != truth[asked])),
    )


if __name__ == "__main__":
    cluster_means()
    explicit_maps()
    nearest_class_means()
