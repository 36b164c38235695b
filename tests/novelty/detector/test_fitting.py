import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.nystroem import LandmarkBasis
from kpca_apps.errors import MemoryLimitError
from kpca_apps.novelty.detector import fitting
from kpca_apps.novelty.detector.row_source import ArrayRows
from kpca_apps.novelty.detector.views import RawColumns


def fit_soft(kernel, X, **options):
    return fitting.fit_soft(RawColumns.fit(X, kernel), ArrayRows(X), all_of(X), **options)


def fit_hard(kernel, X, **options):
    return fitting.fit_hard(RawColumns.fit(X, kernel), ArrayRows(X), all_of(X), **options)


def densest_half(kernel, X, **options):
    return np.flatnonzero(fitting.trim(RawColumns.fit(X, kernel), ArrayRows(X), **options))


def all_of(X):
    return np.ones(len(X), dtype=bool)


def test_soft_score_is_residual_plus_regularised_mahalanobis():
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(200, 2)), rng.normal(size=(50, 2)) * 2
    fit = fit_soft(RBF(0.5), X, ridge=0.05, n_landmarks=30, rng=rng)
    basis = LandmarkBasis.from_cholesky(RBF(0.5), X[fit.landmarks])
    features = basis.features()
    z, train = features(new), features(X)
    y = z - train.mean(axis=0)
    A = np.cov(train.T, bias=True) + fit.errors.rho * np.eye(train.shape[1])
    expected = (
        1.0
        - (z * z).sum(axis=1)
        + fit.errors.rho * np.einsum("ij,ji->i", y, np.linalg.solve(A, y.T))
    )
    np.testing.assert_allclose(fit.errors.subspace.reconstruction_error(new), expected, rtol=1e-10)


def test_rho_is_a_share_of_the_total_variance():
    X = np.random.default_rng(2).normal(size=(80, 2))
    fit = fit_soft(RBF(0.5), X, ridge=0.1, n_landmarks=80, rng=np.random.default_rng(0))
    K = RBF(0.5)(X)
    assert fit.errors.rho == pytest.approx(0.1 * (1.0 - K.mean()), rel=1e-5)


def test_trimming_keeps_the_dense_half():
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(size=(70, 2)), rng.uniform(5, 50, size=(30, 2))])
    kept = densest_half(RBF(0.5), X, n_landmarks=50, rng=rng)
    assert len(kept) == 50
    assert kept.max() < 70


def test_density_is_the_mean_kernel_row():
    X = np.random.default_rng(4).normal(size=(41, 2))
    half = densest_half(RBF(0.5), X, n_landmarks=41, rng=np.random.default_rng(0))
    expected = np.sort(np.argsort(-RBF(0.5)(X).mean(axis=1), kind="stable")[:21])
    assert np.array_equal(half, expected)


def test_an_even_table_keeps_all_rows_but_the_sparse():
    """No arc of a ring is cut away as if it were the sparse half."""
    rng = np.random.default_rng(5)
    angle = rng.uniform(0, 2 * np.pi, 300)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.vstack([ring, [[4.0, 4.0]]])
    kept = densest_half(RBF(0.2), X, n_landmarks=100, rng=rng)
    assert 300 not in kept
    assert len(kept) >= 290


@given(
    n=st.integers(300, 1500),
    sparse=st.floats(0.0, 0.75),
    spread=st.floats(0.0, 0.3),
    seed=st.integers(0, 10**6),
)
def test_one_sparse_row_more_never_decides_how_many_rows_are_kept(n, sparse, spread, seed):
    """A dense majority with ever more sparse rows among it, and one row more each time."""
    rng = np.random.default_rng(seed)
    dense = 1.0 + spread * rng.uniform(-1, 1, n)
    others = sparse * (1.0 + 0.1 * rng.uniform(-1, 1, n))
    numbers = np.r_[np.arange(0, n, n // 20), np.arange(1, n, n // 20)]
    for k in numbers[numbers < n - 1]:
        one, next_one = (fitting.densest(np.r_[dense, others[:j]]) for j in (k, k + 1))
        assert min(one.sum(), next_one.sum()) >= (n + k) // 2
        # Adding a row moves the typical density by at most 2 max / (n typical); see `densest`.
        assert abs(int(one.sum()) - int(next_one.sum())) <= 20
    jittered = np.r_[dense, others] * (1 + 1e-4 * rng.uniform(-1, 1, 2 * n))
    kept, moved = fitting.densest(np.r_[dense, others]), fitting.densest(jittered)
    assert abs(int(kept.sum()) - int(moved.sum())) <= 2 + 5e-3 * n


def test_where_the_dense_and_the_sparse_are_equally_many_neither_is_lost_at_a_blow():
    # No two alike: of equal rows all are kept, or none.
    density = np.r_[np.full(500, 1.0), np.full(520, 0.3)] - 1e-9 * np.arange(1020)
    kept = [fitting.densest(density[i:]).sum() for i in range(40)]
    assert max(kept) - min(kept) <= 25


def test_an_isolated_row_is_not_masked_by_a_soft_cut():
    """With a hard cut it claims a component of its own (novelty of the soft cut)."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(300, 2)), [[9.0, 9.0]]])
    for ridge in (1e-3, 1e-2, 1e-1):
        soft = fit_soft(RBF(0.5), X, ridge=ridge, n_landmarks=301, rng=rng)
        assert soft.scores.argmax() == 300
    hard = fit_hard(RBF(0.5), X, n_components=40, n_landmarks=None, rng=rng)
    assert (hard.scores > hard.scores[300]).mean() > 0.5


def test_linear_kernel_gives_the_pca_residual():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 5)) @ np.diag([5, 3, 1, 0.5, 0.2])
    fit = fit_hard(Linear(), X, n_components=2, n_landmarks=None, rng=rng)
    pca = PCA(2).fit(X)
    residual = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum(axis=1)
    np.testing.assert_allclose(fit.scores, residual, atol=1e-10)


def test_wide_rbf_approaches_the_pca_residual():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 4)) @ np.diag([3, 2, 1, 0.5])
    gamma = 1e-6
    fit = fit_hard(RBF(gamma), X, n_components=2, n_landmarks=None, rng=rng)
    pca = PCA(2).fit(X)
    residual = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum(axis=1)
    np.testing.assert_allclose(fit.scores / (2 * gamma), residual, rtol=1e-2)


def test_no_components_is_the_parzen_potential():
    X = np.random.default_rng(8).normal(size=(50, 2))
    fit = fit_hard(RBF(0.7), X, n_components=0, n_landmarks=None, rng=np.random.default_rng(0))
    K = RBF(0.7)(X)
    np.testing.assert_allclose(fit.scores, 1 - 2 * K.mean(axis=1) + K.mean(), rtol=1e-10)


def test_components_that_span_every_row_are_refused():
    X = np.random.default_rng(8).normal(size=(20, 2))
    with pytest.raises(ValueError, match="n_components=19 components span the 20 rows"):
        fit_hard(RBF(5.0), X, n_components=19, n_landmarks=None, rng=np.random.default_rng(0))


def test_more_landmarks_than_fit_in_memory_are_refused_beforehand(monkeypatch):
    monkeypatch.setattr("kpca_apps.engine.plan.default_budget", lambda: 10**6)
    X = np.random.default_rng(8).normal(size=(2000, 2))
    rng = np.random.default_rng(0)
    with pytest.raises(MemoryLimitError, match=r"2000 landmarks .* use fewer landmarks"):
        fit_soft(RBF(1.0), X, ridge=0.1, n_landmarks=2000, rng=rng)
    with pytest.raises(MemoryLimitError, match="use fewer landmarks"):
        densest_half(RBF(1.0), X, n_landmarks=2000, rng=rng)


def test_a_tiny_bandwidth_is_said():
    X = np.random.default_rng(8).normal(size=(100, 2))
    fit = fit_soft(RBF(1e6), X, ridge=0.1, n_landmarks=50, rng=np.random.default_rng(0))
    assert "resemble no landmark" in fit.warnings[0]
