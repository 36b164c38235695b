"""The papers' remaining methods and kernels, compared with better methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Linear, Polynomial, Sigmoid
from kpca_apps.engine.kernels.by_name import median_distance
from kpca_apps.engine.linalg.eigen import block_krylov, block_width
from kpca_apps.engine.linalg.gram import gram_matrix
from kpca_apps.engine.preimage.ridge import learn_preimage
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers import kernels
from kpca_apps.papers.claims import judge
from kpca_apps.papers.data import Labels, PaperData
from kpca_apps.papers.drawn import rings
from kpca_apps.papers.figures import Curves, Pictures, Scatter, Table
from kpca_apps.papers.measuring import centred, components
from kpca_apps.papers.methods import features, fits
from kpca_apps.papers.result import Outcome
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread

N, Q = 2000, 5  # number of rows near the curved surface, and of components to compare
LANDMARKS, FEATURES = 60, 1000
ALIKE = 0.936  # cosine limit with which `basic_patterns` keeps about LANDMARKS rows
COUNTS = (15, 30, 60, 120)
PASSES = (10, 30, 100, 300)
NEIGHBOURS = 30
GAMMAS, COMPONENT_COUNTS = (0.003, 0.01, 0.03, 0.1), (3, 5, 8, 12, 20, 40)

KMEANS, RESIDUAL = 'KernelPCA, landmarks="kmeans"', 'KernelPCA, landmarks="residual"'
Rng = np.random.default_rng


def run_methods(data: PaperData) -> Outcome:
    """Run the papers' remaining methods."""
    with one_blas_thread():
        kinds = [_fewer_rows(), _iterations(), _clusters(), _spiral(), _classifiers()]
        kinds += [_on_components(), _preimages(), _kernels()]
    return Outcome(
        tuple(claim for kind in kinds for claim in kind.claims),
        tuple(figure for kind in kinds for figure in kind.figures),
        tuple(table for kind in kinds for table in kind.tables),
    )


def _table(title: str, measured: str, counted: str, *rows: tuple[str, ...]) -> Table:
    """Return a table that compares errors and counts of two methods."""
    heads = ("method", measured, "prefer", measured, f"{counted}, by it / by that")
    return Table(title, heads, rows)


def _row(
    method: str, own: float, prefer: str, other: float, takes: int, that_takes: int
) -> tuple[str, ...]:
    return method, f"{own:.2g}", prefer, f"{other:.2g}", f"{takes:,} / {that_takes:,}"


@cache
def _curved() -> tuple[Matrix, RBF]:
    """Return rows near a surface in 12 dimensions, and a kernel scaled to their distances."""
    rng = Rng(0)
    latent = rng.normal(size=(N, 3))
    turned = np.sin(latent @ rng.normal(size=(3, 12)))
    turned += (latent @ rng.normal(size=(3, 12))) ** 2 / 9
    X = turned + 0.1 * rng.normal(size=(N, 12))
    return X, _median_kernel(X)


@cache
def _exact() -> KernelSubspace:
    X, kernel = _curved()
    return components(kernel, X, Q)


def _median_kernel(X: Matrix) -> RBF:
    return RBF(1.0 / median_distance(X, Rng(0)))


def _error(subspace: KernelSubspace | Matrix) -> float:
    """Return the largest relative error of the first `Q` variances, against the exact fit."""
    variances = subspace.variances if isinstance(subspace, KernelSubspace) else subspace
    return float(np.abs(variances[:Q] / _exact().variances - 1.0).max())


def _landmarks(kind: str | Matrix, m: int) -> KernelSubspace:
    X, kernel = _curved()
    model = KernelPCA(Q, kernel=kernel, method="nystroem", n_landmarks=m, landmarks=kind)
    model.set_params(random_state=0, precision="float64").fit(X)
    return model.subspace_


def _means(m: int, *, weighted: bool = True) -> float:
    X, kernel = _curved()
    clusters = KMeans(m, n_init=1, random_state=0).fit(X)
    sizes = np.bincount(clusters.labels_) if weighted else np.ones(m)
    return _error(fits.mean_components(kernel, clusters.cluster_centers_, sizes))


def _random_features(m: int) -> float:
    X, kernel = _curved()
    pca = fits.random_feature_pca(kernel.gamma, m, Q, 0).fit(X)[-1]
    return _error(pca.explained_variance_ * (N - 1) / N)


def _fewer_rows() -> Outcome:
    """Compare components from a part of the rows, or random features, with Nystrom landmarks."""
    (X, kernel), m = _curved(), LANDMARKS
    subset = Rng(0).choice(N, size=100, replace=False)
    # As in section 6.3 of the 1996 report, only the subset determines the components and the mean.
    part = components(kernel, X[subset], Q)
    same = _landmarks(X[subset], 100)
    patterns = fits.basic_patterns(gram_matrix(kernel, X), ALIKE)
    count, best = len(patterns), _error(_landmarks("kmeans", m))
    greedy, alike = _error(_landmarks("greedy", m)), _error(_landmarks(X[patterns], count))
    fourier = _random_features(FEATURES)
    near, many = (_error(_landmarks("residual", size)) for size in (count, 100))
    table = _table(
        f"Components of {N:,} rows near a curved surface",
        "error of five eigenvalues",
        "kernel values, or cosines",
        _row("100 rows alone", _error(part), "as landmarks", _error(same), N * 100, N * 100),
        _row(f"{m} cluster means", _means(m, weighted=False), KMEANS, best, m * m, N * m),
        _row("the same, weighted", _means(m), KMEANS, best, m * m, N * m),
        _row(f"{m} greedy rows", greedy, KMEANS, best, N * m, N * m),
        _row(f"{count} basic patterns", alike, RESIDUAL, near, N * N, N * count),
        _row(f"{FEATURES:,} random features", fourier, RESIDUAL, many, N * FEATURES, N * 100),
    )
    x = np.array(COUNTS, dtype=np.float64)
    ways = {
        "landmarks by k-means": lambda size: _error(_landmarks("kmeans", size)),
        "weighted cluster means": _means,
        "greedy rows": lambda size: _error(_landmarks("greedy", size)),
        "random features": _random_features,
    }
    title = "Components from fewer rows or features"
    series = {name: (x, np.array([way(size) for size in COUNTS])) for name, way in ways.items()}
    x_label = "number of landmarks, means, rows or features"
    figure = Curves(title, x_label, table.heads[1], series, log_x=True, log_y=True)
    mean_errors = [s.reconstruction_error(X).mean() for s in (part, same, _exact())]
    above, below = (float(error / mean_errors[2] - 1.0) for error in mean_errors[:2])
    return Outcome((judge("subset", above < 0.2, N, above, below),), (figure,), (table,))


def _by_krylov(K: Matrix, q: int) -> tuple[Matrix, int]:
    """Return leading eigenvalues by Krylov iteration, and the number of products with K."""
    columns = [0]

    def multiply(block: Matrix) -> Matrix:
        columns[0] += block.shape[1]
        return np.asarray(K @ block)

    rng = Rng(0)
    start = rng.standard_normal((len(K), block_width(q)))
    pairs = block_krylov(multiply, start, q, rng, trace=float(len(K)))
    return (pairs[0] if pairs else np.zeros(q)), columns[0]


def _iterations() -> Outcome:
    """Compare the power method and the kernel Hebbian algorithm: errors, and products with K."""
    X, kernel = _curved()
    few = X[:300]
    pairs = fits.power_pairs(centred(gram_matrix(kernel, X)), 10, Rng(0))
    values, products = _by_krylov(centred(gram_matrix(kernel, X)), 10)
    gap, taken = float(np.abs(pairs.values / values - 1.0).max()), int(pairs.products.sum())
    true, (_, least) = components(kernel, few, 3), _by_krylov(centred(gram_matrix(kernel, few)), 3)

    def sine(subspace: KernelSubspace) -> float:
        cross = np.diag(subspace.weights.T @ kernel(few) @ true.weights)
        return float(np.sqrt(1.0 - np.clip(cross**2, 0.0, 1.0)).max())

    by_power = sine(fits.power_components(kernel, few, 3, Rng(0)))
    sines = [sine(fits.hebbian_components(kernel, few, 3, Rng(0), passes=p)) for p in PASSES]
    krylov = 'KernelPCA(solver="krylov")'
    table = _table(
        f"Ten components of {N:,} rows by iteration, and three of 300",
        "error",
        "products with K",
        _row("power method", gap, krylov, 0.0, taken, products),
        *(
            _row(f"kernel Hebbian, {p} passes", error, krylov, 0.0, p, least)
            for p, error in zip(PASSES, sines, strict=True)
        ),
    )
    first, *_, last = sines
    falls = bool(np.all(np.diff(sines) < 0.0))
    claims = (
        judge("power method", gap < 1e-09 and by_power < 0.0001, gap, taken, by_power),
        judge("Hebbian", falls and last < 0.01, first, PASSES[0], last, PASSES[-1]),
    )
    series = {"three components of 300 rows": (np.array(PASSES, dtype=float), np.array(sines))}
    title, y_label = "Kernel Hebbian algorithm", "sine of the largest angle"
    figure = Curves(title, "passes over the rows", y_label, series, log_x=True, log_y=True)
    return Outcome(claims, (figure,), (table,))


def _clusters() -> Outcome:
    """Cluster rings in feature space; all methods use the same ten starts."""
    rng = Rng(0)
    X, y = rings(rng, (0.1, 0.5, 1.0), 0.05)
    order = rng.permutation(len(X))
    X, y, kernel = X[order], y[order], RBF.from_sigma(0.4)
    starts, gram = [rng.permutation(len(X))[:3] for _ in range(10)], kernel(X)
    batches = [features.batch_kernel_kmeans(kernel, X, gram[:, s].argmax(axis=1)) for s in starts]
    batch = min(batches, key=lambda found: found.squared_distances(X).min(axis=1).sum())

    def pure(labels: NDArray[np.generic]) -> float:
        """Return the share of rows on the most frequent ring of their cluster."""
        most = [np.bincount(y[labels == cluster]).max() for cluster in np.unique(labels)]
        return float(sum(most)) / len(y)

    def by_components(q: int | None) -> float:
        T = components(kernel, X, q).project(X)
        fits = [KMeans(3, init=T[start], n_init=1, tol=0.0).fit(T) for start in starts]
        return pure(min(fits, key=lambda fit: fit.inertia_).labels_)

    online, own = pure(features.online_kernel_kmeans(kernel, X, 3).labels), pure(batch.labels)
    (on_first, full), n = (by_components(q) for q in (1, None)), len(X) ** 2
    table = _table(
        "Three rings, rows with their like",
        "share",
        "kernel values",
        _row("kernel k-means, one pass", online, "KMeans on one component", on_first, n, n),
        _row("the same, to its end", own, "KMeans on all components", full, n, n),
    )
    return Outcome((judge("k-means", abs(own - full) < 0.01, own, full, on_first),), (), (table,))


def _spiral() -> Outcome:
    """Project noisy rows of a spiral on components of nearby rows."""

    def at(turn: Matrix) -> Matrix:
        return np.asarray(turn * [np.cos(turn), np.sin(turn)]).T / (2.0 * np.pi)

    rng, curve = Rng(0), at(np.linspace(0.0, 4.2 * np.pi, 2000))
    X = at(4.0 * np.pi * np.sqrt(rng.uniform(size=1000))) + rng.normal(scale=0.05, size=(1000, 2))
    moved = np.empty_like(X)
    for i, x in enumerate(X):
        near = features.neighbourhood_components(Linear(), X, x, NEIGHBOURS, n_components=1)
        moved[i] = (near.expansion(near.project(x[None])) @ near.points)[0]
    squared = [((Z[:, None] - curve) ** 2).sum(axis=2).min(axis=1).mean() for Z in (moved, X)]
    remaining_share = squared[0] / squared[1]
    claim = judge("neighbourhood", remaining_share < 0.2, remaining_share, NEIGHBOURS, len(X))
    title, sides = "A spiral, and its rows moved", np.repeat([0, 1], len(X))
    return Outcome((claim,), (Scatter(title, "x", "y", np.vstack([X, moved]), sides),))


@cache
def _digits() -> tuple[Matrix, Labels, Matrix, Labels]:
    """Return training and test images of 8 x 8 pixels in [0, 1], with labels."""
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    return X[1::2], y[1::2], X[::2], y[::2]


def _wrong(labels: NDArray[np.generic], truth: Labels) -> float:
    return float(np.mean(labels != truth))


def _classifiers() -> Outcome:
    """Classify digits by each method, and by another classifier for comparison."""
    X, y, new, truth = _digits()
    n, own, cubic = len(X), _median_kernel(X), Polynomial(3, 1.0, 1.0)
    many, few = components(cubic, X, 256), components(cubic, X, 64)
    pair, is_pair = np.isin(y, (3, 8)), np.isin(truth, (3, 8))

    def wrong(model: Any, *, of_pair: bool = False) -> float:
        rows, labels = (new[is_pair], truth[is_pair]) if of_pair else (new, truth)
        return float(np.mean(model.predict(rows) != labels))

    linear, beside = (wrong(features.component_svm(T, X, y, C=10.0)) for T in (many, few))
    second = _median_kernel(few.project(X))
    layers = wrong(features.two_layer_machine(few, X, y, second, C=10.0))
    directions = wrong(features.component_discriminant(few, X, y))
    near = _wrong(features.kernel_neighbour_labels(Polynomial(2), X, y, new), truth)
    plain = wrong(KNeighborsClassifier(5).fit(X, y))
    means = wrong(features.class_means(own, X[pair], y[pair]), of_pair=True)
    machines = (
        SVC(kernel="poly", degree=3, gamma=1.0, coef0=1.0).fit(X, y),
        SVC(gamma=own.gamma, C=10.0).fit(X, y),
        SVC(gamma=own.gamma).fit(X[pair], y[pair]),
    )
    alone, one_layer, parted = (wrong(m, of_pair=m is machines[2]) for m in machines)
    svc, counts = "SVC, the same kernel", [int(m.n_support_.sum()) for m in machines]
    table = _table(
        "Digits of 8 x 8 pixels, classified",
        "test error",
        "kernel values a row",
        _row("linear machine on 256 components", linear, svc, alone, n, counts[0]),
        _row("Gaussian machine on 64", layers, "SVC, Gaussian", one_layer, n, counts[1]),
        _row("discriminant on 64", directions, "a linear machine on them", beside, n, n),
        _row("five nearest for (x.y)^2", near, "KNeighborsClassifier", plain, n, 0),
        _row("class means, 3 against 8", means, svc, parted, int(pair.sum()), counts[2]),
    )
    return Outcome((judge("linear machine", linear <= alone + 0.005, linear, alone),), (), (table,))


def _on_components() -> Outcome:
    """Regress on components, and search for independent directions among components."""
    by_components, by_ridge = _diabetes()
    sources = Rng(0).uniform(-1.0, 1.0, size=(2000, 2))
    X = sources @ np.array([[2.0, 1.0], [0.5, -1.0]])
    recovered = []
    for kernel, q in ((Linear(), 2), (RBF(0.2), 4)):
        fit = components(kernel, X, q)
        values = features.projection_pursuit(fit, X, 0)
        recovered.append(np.abs(np.corrcoef(values.T, sources.T)[:q, q:]).max(axis=0).min())
    T = fit.project(X) / np.sqrt(fit.variances)
    gap = float(np.abs(features.component_moments(T, 2) - np.eye(4)).max())
    third = float(np.abs(features.component_moments(T, 3)).max())
    claims = (
        judge("moments", gap < 1e-10 and third > 0.1, gap, third),
        judge("pursuit", recovered[1] > 0.9, recovered[1], recovered[0]),
        judge("regression", by_components < 1.05 * by_ridge, by_components, by_ridge),
    )
    return Outcome(claims)


def _diabetes() -> tuple[float, float]:
    """Return the root mean squared errors of regression on components and of ridge regression."""
    X, y = load_diabetes(return_X_y=True)
    X, folds = StandardScaler().fit_transform(X), KFold(5, shuffle=True, random_state=0)
    squares = np.zeros((len(GAMMAS), len(COMPONENT_COUNTS)))
    for train, test in folds.split(X):
        for row, gamma in enumerate(GAMMAS):
            fit = components(RBF(gamma), X[train], max(COMPONENT_COUNTS))
            for column, q in enumerate(COMPONENT_COUNTS):
                model = features.regress_on_components(fit.leading(q), X[train], y[train])
                squares[row, column] += np.mean((model.predict(X[test]) - y[test]) ** 2) / 5
    settings = {"gamma": GAMMAS, "alpha": (0.03, 0.1, 0.3, 1.0, 3.0)}
    ridge = GridSearchCV(KernelRidge(kernel="rbf"), settings, cv=folds)
    ridge.set_params(scoring="neg_mean_squared_error").fit(X, y - y.mean())
    return float(np.sqrt(squares.min())), float(np.sqrt(-ridge.best_score_))


def _preimages() -> Outcome:
    """Show pre-images of digits' components, and recover the positions of bumps in curves."""
    X = _digits()[0]
    subspace = components(_median_kernel(X), X, 8)
    learned, sides = learn_preimage(subspace, 1e-3), (-2.0, 2.0)
    # Map points on each axis, two standard deviations from 0 on either side, back to rows.
    ends = [learned(np.diag(side * np.sqrt(subspace.variances))) for side in sides]
    right = [
        float(np.mean(np.diag(subspace.project(points)) * side > 0.0))
        for points, side in zip(ends, sides, strict=True)
    ]
    images = np.clip(np.stack(ends).reshape(2, 8, 8, 8), 0.0, 1.0)
    rows, columns = ("-2 deviations", "2 deviations"), tuple(f"component {a}" for a in range(1, 9))
    figure = Pictures("Digits: pre-images on the axes of components", images, rows, columns)
    rng, samples = Rng(0), np.linspace(0.0, 1.0, 40)

    def bump(place: Matrix) -> Matrix:
        return np.exp(-0.5 * ((samples - place) / 0.08) ** 2)

    signals = bump(rng.choice([0.25, 0.7], size=(80, 1)) + 0.01 * rng.normal(size=(80, 1)))
    points = fits.parametrised_set(
        components(RBF(0.1), signals, 1), bump, np.array([[0.15], [0.85]])
    )
    first, second = points.parameters[:, 0]
    off = max(abs(first - 0.25), abs(second - 0.7))
    claims = (
        judge("pre-images", float(np.mean(right)) > 0.9, np.mean(right)),
        judge("few points", off < 0.02, first, second, points.rho[0]),
    )
    return Outcome(claims, (figure,))


def _kernels() -> Outcome:
    """Classify digits with image kernels; check monomial maps and iterated kernels."""
    X, y, new, truth = _digits()
    cubic, axes, some = Polynomial(3), components(Linear(), X, 16), X[::9]

    def error(kernel: Callable[[Matrix, Matrix], Matrix]) -> float:
        gram = kernel(X, X)
        scale = float(np.trace(gram)) / len(gram)
        machine = SVC(kernel="precomputed", C=10.0).fit(gram / scale, y)
        return _wrong(machine.predict(kernel(new, X) / scale), truth)

    def compose(mapped: Callable[[Matrix], Matrix]) -> Callable[[Matrix, Matrix], Matrix]:
        return lambda rows, others: cubic(mapped(rows), mapped(others))

    tried: dict[str, Callable[[Matrix, Matrix], Matrix]] = {
        "(x.y)^3": cubic,
        "the same at 4 x 4 points": compose(lambda rows: kernels.sampled(rows, 8, 8, 4)),
        "at 16 x 16 points": compose(lambda rows: kernels.sampled(rows, 8, 8, 16)),
        "smoothed over 0.75 pixels": compose(lambda rows: kernels.smoothed(rows, 8, 8, 0.75)),
        "sum over regions of 4 x 4": lambda rows, others: kernels.over_regions(
            cubic, rows, others, 8, 8, size=4, step=2
        ),
        "on 16 axes": compose(lambda rows: rows @ (axes.points.T @ axes.weights)),  # eq. 69
        f"iterated over {len(some)} images": partial(kernels.iterated, cubic, some),
        "(x.y + 1)^3, to prefer": Polynomial(3, 1.0, 1.0),
    }
    lines = tuple((name, f"{error(kernel):.1%}") for name, kernel in tried.items())
    table = Table("Digits of 8 x 8 pixels, a machine on each kernel", ("kernel", "error"), lines)
    rows, tanh = Rng(0).normal(size=(100, 4)), Sigmoid(0.2, -0.5)
    before = kernels.mercer_check(tanh(rows))
    after = kernels.mercer_check(kernels.iterated(tanh, rows, rows, rows))
    side, plane = np.linspace(-8.0, 8.0, 60, endpoint=False), rows[:4, :2]
    grid = np.array([*product(side, side)])
    integral = 256.0 * kernels.iterated(RBF(0.8), grid, plane, plane)
    gap = float(np.abs(kernels.iterated_gaussian(0.8, 2)(plane) / integral - 1.0).max())
    written, gram = kernels.monomials(X[:99, 20:28], 4), Polynomial(4)(X[:99, 20:28])
    same = float(np.abs(written @ written.T - gram).max() / gram.max())
    holds = after.is_psd and not before.is_psd
    claims = (
        judge("monomials", same < 1e-12, same, written.shape[1]),
        judge("iterated", holds, before.describe(), after.describe()),
        judge("iterated Gaussian", gap < 1e-08, gap),
    )
    return Outcome(claims, (), (table,))
