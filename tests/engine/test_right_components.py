"""Every returned component is accurate to three digits and not a rounding artefact."""

import warnings
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA as ReferenceKernelPCA

from kpca_apps import KpcaWarning
from kpca_apps.engine import precision as precision_module
from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Cosine, Laplacian, Linear, Polynomial
from tests.engine.examples import exact, normal_rows
from tests.quick import quick

ROWS = 5100


def squared_singular_values(features):
    """Return eigenvalues of the features' centred Gram matrix; small ones keep their digits."""
    return np.linalg.svd(features - features.mean(axis=0), compute_uv=False) ** 2


def factor(kernel, X, tolerance=1e-16):
    """Return F (n, rank) such that FF' is nearly the kernel matrix of X, by pivoted Cholesky."""
    residual, F, rank = kernel.diagonal(X), np.zeros((900, len(X))), 0
    while residual.max() > tolerance * len(X):
        pivot = int(residual.argmax())
        column = kernel(X, X[[pivot]])[:, 0] - F[:rank, pivot] @ F[:rank]
        F[rank] = column / np.sqrt(residual[pivot])
        residual = np.maximum(residual - F[rank] ** 2, 0.0)
        residual[pivot], rank = 0.0, rank + 1
    return F[:rank].T


@cache
def eigenvalues_of_normal_rows(kernel, n, d):
    return squared_singular_values(factor(kernel, normal_rows(n, d), 1e-14))


def landmark_features(model, X):
    """Rows in an orthonormal basis of the landmarks' span, following scikit-learn."""
    points, kernel = model.subspace_.points, model.kernel_
    left, lengths, _ = np.linalg.svd(kernel(points))
    kept = lengths > 1e-10 * lengths[0]
    return kernel(X, points) @ (left[:, kept] / np.sqrt(lengths[kept]))


@pytest.mark.parametrize("precision", quick(["auto", "float32"], "auto"))
@pytest.mark.parametrize(
    ("kernel", "d"),
    quick(
        [("rbf", 2), ("rbf", 3), ("rbf", 5), (RBF(2.0), 2), ("laplacian", 2), ("poly", 3)],
        ("rbf", 2),
        ("laplacian", 2),
        ("poly", 3),
    ),
)
def test_variances_through_landmarks_are_right_above_5000_rows(kernel, d, precision):
    X = normal_rows(ROWS, d)
    options = {"n_landmarks": 250, "method": "nystroem", "precision": precision}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KpcaWarning)
        model = KernelPCA(250, kernel=kernel, random_state=0, **options).fit(X)
    expected = squared_singular_values(landmark_features(model, X))
    found = model.eigenvalues_
    assert len(found) >= 5
    assert_allclose(found, expected[: len(found)], rtol=1e-3)


@pytest.mark.parametrize("landmarks", ["auto", "kmeans"])
@pytest.mark.parametrize(("d", "enough"), quick([(2, 60), (3, 150)], (2, 60)))
def test_every_component_through_landmarks_is_one_of_the_exact_fit(d, enough, landmarks):
    X = normal_rows(6000, d)
    with pytest.warns(KpcaWarning, match=r"\d+ of \d+ components kept: .* more landmarks"):
        model = KernelPCA(landmarks=landmarks, random_state=0).fit(X)
    assert model.method_ == "nystroem"
    exact = eigenvalues_of_normal_rows(model.kernel_, 6000, d)
    found = model.eigenvalues_
    assert_allclose(found, exact[: len(found)], rtol=1e-3)
    assert 3 <= len(found)
    if landmarks == "auto":
        assert len(found) >= enough


def test_unreliable_landmark_components_are_returned_on_request():
    X = normal_rows(1500, 2)
    options = {"gamma": 0.1, "method": "nystroem", "landmarks": X[:80]}
    with pytest.warns(KpcaWarning, match="or give n_components for approximations"):
        right = KernelPCA(**options).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        requested = KernelPCA(37, **options).fit(X)
        soft = KernelPCA(ridge=0.01, **options).fit(X)
    exact = squared_singular_values(factor(RBF(0.1), X))
    q = right.subspace_.n_components
    assert 5 < q < 37 == requested.subspace_.n_components <= soft.subspace_.n_components
    assert_allclose(right.eigenvalues_, exact[:q], rtol=1e-3)
    assert np.abs(requested.eigenvalues_ / exact[:37] - 1.0).max() > 1e-3
    # No landmark represents the rows added here, so all components become approximations.
    with pytest.warns(KpcaWarning, match="^All 37 components are approximations"):
        right.partial_fit(X + 20.0)


@pytest.mark.release
@pytest.mark.parametrize(
    ("kernel", "d", "q"),
    [
        (RBF(0.0025), 2, 30),
        (RBF(0.25), 2, 100),
        (RBF(0.0025), 3, 40),
        (Polynomial(3, 0.5, 1.0), 2, 30),
        (Linear(), 3, 2),
    ],
)
def test_eigenvalues_of_an_iteration_are_right_above_5000_rows(kernel, d, q):
    X = normal_rows(ROWS, d)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KpcaWarning)
        model = KernelPCA(q, kernel=kernel, random_state=0).fit(X)
    assert (model.method_, model.plan_.solver) == ("exact", "krylov")
    expected = squared_singular_values(factor(kernel, X))
    found = model.eigenvalues_
    assert_allclose(found, expected[: len(found)], rtol=1e-3)
    # Components left out are indistinguishable from rounding.
    assert (expected[len(found) : q] < 1e-9 * expected[0]).all()


def test_components_below_float32_precision_are_dropped_with_a_warning():
    X = normal_rows(2500, 2)
    expected = squared_singular_values(factor(RBF(0.25), X))
    for method in ("exact", "nystroem"):
        options = {"kernel": RBF(0.25), "method": method, "landmarks": X[:300]}
        with pytest.warns(KpcaWarning, match=r"of 60 components .*use precision='float64'"):
            found = KernelPCA(60, precision="float32", **options).fit(X).eigenvalues_
        assert 20 < len(found) < 60
        assert_allclose(found, expected[: len(found)], rtol=1e-3)
        # Precision "auto" chooses the type that resolves all components.
        model = KernelPCA(60, **options).fit(X)
        assert model.plan_.precision == "float64" and len(model.eigenvalues_) == 60


@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_components_that_a_sample_promised_in_float32_are_found_in_float64(method, monkeypatch):
    monkeypatch.setattr(precision_module, "agreeing_precision", lambda *given: "float32")
    X = normal_rows(2500, 2)
    model = KernelPCA(60, gamma=0.25, method=method, landmarks=X[:300]).fit(X)
    assert model.plan_.precision == "float64" and len(model.eigenvalues_) == 60


def test_too_few_landmarks_are_blamed_where_they_are_too_few():
    X = normal_rows(50)
    with pytest.warns(KpcaWarning, match=r"8 of 12 components .*8 landmarks span no more"):
        KernelPCA(12, gamma=0.3, center=False, method="nystroem", landmarks=X[:8]).fit(X)
    with pytest.warns(KpcaWarning, match=r"4 of 12 components .*repeated rows"):
        KernelPCA(12, kernel="linear", method="nystroem", landmarks=X[:30]).fit(X)


def test_float32_projections_are_compared_with_float64_ones_before_they_are_used(monkeypatch):
    X = normal_rows(2500, 6)
    model = KernelPCA(5, gamma=0.1).fit(X)
    assert model.plan_.precision == model.scoring_precision_ == "float32"
    spread = np.sqrt(model.subspace_.variances)
    exact = model.subspace_.project(X)
    assert (np.abs(model.transform(X) - exact) <= 1e-3 * spread).all()
    monkeypatch.setattr("kpca_apps.engine.fit.LARGEST_CHANGE", 1e-12)
    assert KernelPCA(5, gamma=0.1).fit(X).scoring_precision_ == "float64"


DEGENERATE = {
    "identical": np.full((50, 4), 0.1),
    "identical, far": np.full((50, 4), 1e5 / 3.0),
    "two rows, often": np.repeat(np.array([[0.1, 0.7], [0.3, 0.2]]), 25, axis=0),
    "on a line": np.linspace(0.1, 0.9, 50)[:, None] * np.array([[1.0, 1.0 / 3.0]]),
    "a constant column, far": np.column_stack([normal_rows(50, 1), np.full(50, 1e4 / 3.0)]),
}


@pytest.mark.parametrize("method", ["exact", "nystroem"])
@pytest.mark.parametrize(
    "kernel",
    [Linear(), Polynomial(3, 0.5, 1.0), Polynomial(2), RBF(0.2), Laplacian(0.3), Cosine()],
    ids=lambda kernel: kernel.describe(),
)
@pytest.mark.parametrize("X", DEGENERATE.values(), ids=DEGENERATE.keys())
def test_no_component_is_made_of_rounding(X, kernel, method):
    with warnings.catch_warnings():
        # Where landmarks do not span all rows, components may be missing.
        warnings.simplefilter("ignore", KpcaWarning)
        model = KernelPCA(kernel=kernel, method=method, n_landmarks=40, random_state=0).fit(X)
    # A projection is no longer than the projected vector, phi(x) minus the mean.
    new = X + 1.0
    from_mean = kernel.diagonal(new) - 2.0 * kernel(new, X).mean(axis=1) + kernel(X).mean()
    rounding = 1e-9 * kernel.diagonal(new)
    assert ((model.transform(new) ** 2).sum(axis=1) <= from_mean * (1.0 + 1e-6) + rounding).all()
    distinct = len(np.unique(X, axis=0))
    assert model.subspace_.n_components <= distinct - 1
    if distinct <= 2:
        K = kernel(X)
        reference = ReferenceKernelPCA(kernel="precomputed", remove_zero_eig=True).fit(K)
        assert model.subspace_.n_components <= len(reference.eigenvalues_)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_the_linear_kernel_keeps_its_digits_far_from_0(offset, method):
    columns = np.array([1.0, 0.3, 0.1, 0.03])
    # Round the rows to multiples of 2^-20, so that adding a whole number to them is exact.
    X = np.round(normal_rows(200) * columns * 2**20) / 2**20
    far = X + np.round(offset)
    assert np.array_equal(far - np.round(offset), X)
    kernel, expected = Linear(), squared_singular_values(X)
    model = KernelPCA(kernel=kernel, method=method, landmarks=far[:60]).fit(far)
    assert_allclose(model.eigenvalues_, expected, rtol=1e-9)
    new = normal_rows(20, seed=1)
    new = np.round(new * 2**20) / 2**20
    near = KernelPCA(kernel=kernel, method=method, landmarks=X[:60]).fit(X)
    assert_allclose(
        np.abs(model.transform(new + np.round(offset))), np.abs(near.transform(new)), atol=1e-7
    )
    two = KernelPCA(2, kernel=kernel, method=method, landmarks=far[:60]).fit(far)
    same = KernelPCA(2, kernel=kernel, method=method, landmarks=X[:60]).fit(X)
    assert_allclose(
        two.reconstruction_error(new + np.round(offset)), same.reconstruction_error(new), rtol=1e-6
    )
    assert model.kernel_ == kernel


def test_column_means_stay_where_the_origin_counts():
    X = normal_rows(40) + 5.0
    found = exact(Linear(), X, center=False)
    assert found.kernel == Linear()
    expected = np.linalg.svd(X, compute_uv=False) ** 2 / 40
    assert_allclose(found.variances, expected, rtol=1e-10)


@pytest.mark.parametrize("method", ["exact", "nystroem"])
@pytest.mark.parametrize("relative", np.geomspace(6e-8, 1e-6, 25))
def test_a_small_column_is_right_to_three_digits_or_left_out(relative, method):
    for seed in range(6):
        X = normal_rows(100, 3, seed=seed) * [1.0, 1.0, relative]
        expected = squared_singular_values(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KpcaWarning)
            model = KernelPCA(kernel="linear", method=method, landmarks=X[:40]).fit(X)
        found = model.eigenvalues_
        assert len(found) >= 2
        assert_allclose(found, expected[: len(found)], rtol=1e-3)


def test_components_of_many_columns_are_kept_as_the_approximations_they_are():
    X = np.random.default_rng(0).normal(size=(1500, 20))
    model = KernelPCA(method="nystroem", n_landmarks=100, random_state=0)
    with pytest.warns(KpcaWarning, match=r"All \d+ components are approximations"):
        model.fit(X)
    assert model.transform(X[:5]).shape == (5, len(model.eigenvalues_))
    assert len(model.eigenvalues_) > 90
