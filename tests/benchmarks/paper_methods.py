"""The methods of the papers beside what this package does instead.

Needs no data: rows near a curved surface, rings, a spiral, and scikit-learn's digits and diabetes.
Prints, for each module of ``kpca_apps/papers/methods``, the figures its first lines quote.

    python tests/benchmarks/paper_methods.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Kernel, Linear, Polynomial
from kpca_apps.engine.kernels.bandwidth import median_squared_distance
from kpca_apps.engine.linalg.gram import centre_in_place, gram_matrix
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.methods.fewer_rows import basic_pattern_components
from kpca_apps.papers.methods.means_and_neighbours import class_means
from kpca_apps.papers.methods.fewer_rows import mean_components
from kpca_apps.papers.methods.on_components import regress_on_components
from kpca_apps.papers.methods.on_components import component_svm
from kpca_apps.papers.methods.on_components import component_discriminant
from kpca_apps.papers.methods.explicit_maps import monomials
from kpca_apps.papers.methods.fewer_rows import greedy_components
from kpca_apps.papers.methods.iterations import hebbian_components
from kpca_apps.papers.methods.means_and_neighbours import batch_kernel_kmeans, online_kernel_kmeans
from kpca_apps.papers.methods.means_and_neighbours import kernel_neighbour_labels
from kpca_apps.papers.methods.on_components import projection_pursuit
from kpca_apps.papers.methods.on_components import two_layer_machines
from kpca_apps.papers.methods.means_and_neighbours import neighbourhood_components
from kpca_apps.papers.methods.iterations import power_pairs
from kpca_apps.papers.methods.fewer_rows import random_feature_pca
from kpca_apps.papers.methods.fewer_rows import subset_components

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


def exact(kernel: Kernel, X: Matrix, q: int | None = None) -> KernelSubspace:
    return fit_exact(kernel, X, rng=np.random.default_rng(0), n_components=q)


def row(name: str, **figures: object) -> None:
    told = ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in figures.items()
    )
    print(f"{name}: {told}", flush=True)


def compressed() -> None:
    X = curved_rows(2000)
    kernel = RBF(1.0 / median_squared_distance(X, np.random.default_rng(0)))
    true = exact(kernel, X, Q)
    least = float(true.reconstruction_error(X).mean())

    def error(subspace: KernelSubspace) -> float:
        return float(np.abs(subspace.variances[:Q] / true.variances - 1.0).max())

    def landmarks(kind: str, m: int) -> KernelSubspace:
        model = KernelPCA(
            Q,
            kernel=kernel,
            method="nystroem",
            n_landmarks=m,
            landmarks=kind,
            random_state=0,
            precision="float64",
        )
        return model.fit(X).subspace_

    rng = np.random.default_rng(0)
    subset = rng.choice(2000, size=100, replace=False)
    part, _ = subset_components(kernel, X, subset, rng, n_components=Q)
    model = KernelPCA(Q, kernel=kernel, method="nystroem", landmarks=X[subset]).fit(X)
    row(
        "subset_gram",
        subset=part.reconstruction_error(X).mean() / least - 1.0,
        landmarks=model.subspace_.reconstruction_error(X).mean() / least - 1.0,
    )
    clusters = KMeans(60, n_init=1, random_state=0).fit(X)
    sizes, means = np.bincount(clusters.labels_), clusters.cluster_centers_
    row(
        "cluster_means",
        unweighted=error(mean_components(kernel, means, np.ones(60))),
        weighted=error(mean_components(kernel, means, sizes)),
        landmarks=error(landmarks("kmeans", 60)),
    )
    for threshold in np.linspace(0.5, 0.999, 500):
        found = basic_pattern_components(kernel, X, threshold, n_components=Q)
        if len(found.points) >= 60:
            break
    spent, _ = seconds(lambda: basic_pattern_components(kernel, X, threshold, n_components=Q))
    ours, residual = seconds(lambda: landmarks("residual", len(found.points)))
    row(
        "basic_patterns",
        threshold=threshold,
        patterns=len(found.points),
        error=error(found),
        residual=error(residual),
        share_of_time=ours / spent,
    )
    row(
        "greedy",
        greedy=error(greedy_components(kernel, X, 60, n_components=Q).subspace),
        kmeans=error(landmarks("kmeans", 60)),
        residual=error(landmarks("residual", 60)),
    )
    pipeline = random_feature_pca(kernel.gamma, 1000, Q, 0).fit(X)
    variances = pipeline[-1].explained_variance_ * 1999 / 2000
    row(
        "random_features",
        features=float(np.abs(variances / true.variances - 1.0).max()),
        landmarks=error(landmarks("residual", 100)),
    )


def iterated() -> None:
    X = curved_rows(2000)
    kernel = RBF(1.0 / median_squared_distance(X, np.random.default_rng(0)))
    centred = gram_matrix(kernel, X)
    centre_in_place(centred)
    power, pairs = seconds(lambda: power_pairs(centred, 10, np.random.default_rng(0)))
    ours, krylov = seconds(
        lambda: fit_exact(kernel, X, rng=np.random.default_rng(0), n_components=10, solver="krylov")
    )
    gap = float(np.abs(pairs.values / (2000 * krylov.variances) - 1.0).max())
    row("power_method", products=int(pairs.products.sum()), power=power, krylov=ours, gap=gap)
    X = X[:300]
    ours, true = seconds(lambda: exact(kernel, X, 3))
    for passes in (30, 100, 300, 1000):
        spent, found = seconds(
            lambda p=passes: hebbian_components(kernel, X, 3, np.random.default_rng(0), passes=p)
        )
        cross = found.weights.T @ kernel(X) @ true.weights
        sines = np.sqrt(1.0 - np.clip(np.diag(cross) ** 2, 0.0, 1.0))
        row("kernel_hebbian", passes=passes, s=spent, largest_sine=float(sines.max()), exact_s=ours)
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


def rings_and_spiral() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 150)
    angle, radius = rng.uniform(0, 2 * np.pi, 450), np.array([0.1, 0.5, 1.0])[y]
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    X += rng.normal(scale=0.05, size=X.shape)
    X, y = X[order := rng.permutation(450)], y[order]
    kernel = RBF.from_sigma(0.4)
    places = np.random.default_rng(1)
    starts = [places.permutation(450)[:3] for _ in range(10)]
    closest = [gram_matrix(kernel, X)[:, start].argmax(axis=1) for start in starts]
    batches = [batch_kernel_kmeans(kernel, X, labels) for labels in closest]
    batch = min(batches, key=lambda means: means.squared_distances(X).min(axis=1).sum())
    figures = {"batch": purity(batch.labels, y)}
    for q in (1, 2, 5, None):
        T = exact(kernel, X, q).project(X)
        fits = [KMeans(3, init=T[start], n_init=1, tol=0.0).fit(T) for start in starts]
        onto = min(fits, key=lambda fit: fit.inertia_)
        figures[f"components_{T.shape[1]}"] = purity(onto.labels_, y)
    row("kernel_kmeans", online=purity(online_kernel_kmeans(kernel, X, 3).labels, y), **figures)
    turn = np.sqrt(rng.uniform(0.0, 1.0, 1000)) * 4.0 * np.pi
    curve = np.column_stack([turn * np.cos(turn), turn * np.sin(turn)]) / (2.0 * np.pi)
    X = curve + rng.normal(scale=0.05, size=curve.shape)
    fine = np.linspace(0.0, 4.2 * np.pi, 20_000)
    true = np.column_stack([fine * np.cos(fine), fine * np.sin(fine)]) / (2.0 * np.pi)
    moved = np.empty_like(X)
    for i, x in enumerate(X):
        near = neighbourhood_components(Linear(), X, x, 30, n_components=1)
        moved[i] = (near.expansion(near.project(x[None])) @ near.points)[0]
    gaps = [
        float((((rows[:, None] - true[::10]) ** 2).sum(2).min(1)).mean()) for rows in (moved, X)
    ]
    row("neighbourhood", moved=gaps[0], rows=gaps[1])
    sources = rng.uniform(-1.0, 1.0, size=(2000, 2))
    X = sources @ np.array([[2.0, 1.0], [0.5, -1.0]])
    for name, kernel, q in (("linear", Linear(), 2), ("rbf", RBF(0.2), 5)):
        found = projection_pursuit(exact(kernel, X, q), X, 0, max_iter=20_000)
        cross = np.abs(np.corrcoef(found.values.T, sources.T)[:q, q:])
        row(f"moments, {name}", correlation=float(cross.max(axis=0).min()))


def purity(labels: Matrix, y: Matrix) -> float:
    return float(sum(np.bincount(y[labels == c]).max() for c in np.unique(labels)) / len(y))


def digits() -> None:
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    X, y, new, truth = X[1::2], y[1::2], X[::2], y[::2]

    def percent(found: Matrix) -> float:
        return float(100.0 * np.mean(found != truth))

    square = exact(Polynomial(2), X, 40)
    plain = KNeighborsClassifier(5).fit(X, y).predict(new)
    onto = KNeighborsClassifier(5).fit(square.project(X), y).predict(square.project(new))
    row(
        "kernel_neighbours",
        rows=percent(plain),
        components=percent(onto),
        kernel=percent(kernel_neighbour_labels(Polynomial(2), X, y, new)),
    )
    cubic = Polynomial(3, 1.0, 1.0)
    many, few = exact(cubic, X, 256), exact(cubic, X, 64)
    machine = component_svm(many, X, y, C=10.0)
    full = SVC(kernel="poly", degree=3, gamma=1.0, coef0=1.0, C=1.0).fit(X, y)
    fast, found = seconds(lambda: machine.predict(new))
    slow, other = seconds(lambda: full.predict(new))
    row("component_svm", folded=percent(found), svc=percent(other), share_of_time=fast / slow)
    hidden = few.project(X)
    gamma = 1.0 / median_squared_distance(hidden, np.random.default_rng(0))
    two = two_layer_machines(few, X, [y], RBF(gamma), C=10.0).predict(new)[0]
    own = 1.0 / median_squared_distance(X, np.random.default_rng(0))
    one = SVC(gamma=own, C=10.0).fit(X, y).predict(new)
    row("multilayer_svm", two_layers=percent(two), one=percent(one))
    row(
        "discriminant",
        discriminant=percent(component_discriminant(few, X, y).predict(new)),
        machine=percent(component_svm(few, X, y, C=10.0).predict(new)),
    )
    pair, asked = np.isin(y, (3, 8)), np.isin(truth, (3, 8))
    means = class_means(RBF(own), X[pair], y[pair]).predict(new[asked])
    svc = SVC(gamma=own).fit(X[pair], y[pair]).predict(new[asked])
    row(
        "class_means",
        means=float(100 * np.mean(means != truth[asked])),
        svc=float(100 * np.mean(svc != truth[asked])),
    )


def regression() -> None:
    X, y = load_diabetes(return_X_y=True)
    squares: dict[str, list[float]] = {"components": [], "ridge": []}
    folds = KFold(5, shuffle=True, random_state=0)
    for train, test in folds.split(X):
        scaler = StandardScaler().fit(X[train])
        A, B = scaler.transform(X[train]), scaler.transform(X[test])
        gammas = [0.003, 0.01, 0.03, 0.1]
        inner = list(KFold(5, shuffle=True, random_state=1).split(A))
        best = min(
            ((gamma, q) for gamma in gammas for q in (3, 5, 8, 12, 20, 40)),
            key=lambda way: sum(component_error(A, y[train], *way, *fold) for fold in inner),
        )
        squares["components"].append(
            component_error(
                np.vstack([A, B]),
                np.append(y[train], y[test]),
                *best,
                np.arange(len(A)),
                np.arange(len(A), len(A) + len(B)),
            )
            / len(B)
        )
        search = GridSearchCV(
            KernelRidge(kernel="rbf"),
            cv=inner,
            scoring="neg_mean_squared_error",
            param_grid={"gamma": gammas, "alpha": [0.03, 0.1, 0.3, 1.0, 3.0]},
        )
        search.fit(A, y[train] - y[train].mean())
        squares["ridge"].append(
            float(np.mean((search.predict(B) + y[train].mean() - y[test]) ** 2))
        )
    row("component_regression", **{k: float(np.sqrt(np.mean(v))) for k, v in squares.items()})


def component_error(
    X: Matrix, y: Matrix, gamma: float, q: int, train: Matrix, test: Matrix
) -> float:
    subspace = exact(RBF(gamma), X[train], q)
    model = regress_on_components(subspace, X[train], y[train])
    return float(((model.predict(X[test]) - y[test]) ** 2).sum())


if __name__ == "__main__":
    compressed()
    iterated()
    rings_and_spiral()
    digits()
    regression()
