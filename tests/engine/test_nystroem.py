from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpca_apps.engine.kernels import RBF, Linear, MeanRBF, Polynomial
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis, Missed, subspace_from_sums
from tests.engine.examples import PSD_KERNELS, normal_rows


def fitted(basis, X, **options):
    return subspace_from_sums(basis, CovarianceSums.of_rows(basis, X), **options)


def sums_of(Z, shift):
    centred = Z - shift
    norm = float((Z**2).sum())
    return CovarianceSums(len(Z), centred.sum(axis=0), centred.T @ centred, shift, norm)


@pytest.mark.parametrize("make", [LandmarkBasis.from_eigen, LandmarkBasis.from_cholesky])
@pytest.mark.parametrize("kernel", PSD_KERNELS.values(), ids=PSD_KERNELS.keys())
def test_basis_is_orthonormal(make, kernel):
    Z = normal_rows(30)
    basis = make(kernel, Z)
    gram = kernel(Z) + basis.jitter * np.eye(30)
    identity = basis.transform.T @ gram @ basis.transform
    assert_allclose(identity, np.eye(basis.transform.shape[1]), rtol=0, atol=1e-5)
    assert_allclose(basis.features()(Z), kernel(Z) @ basis.transform, rtol=1e-7, atol=1e-9)


def test_jitter_grows_until_the_factorisation_succeeds():
    Z = np.repeat(normal_rows(3), 100, axis=0)
    basis = LandmarkBasis.from_cholesky(RBF(0.3), Z)
    assert basis.jitter >= 1e-7 * np.sqrt(300)
    assert np.isfinite(basis.transform).all()
    assert 0.0 < LandmarkBasis.from_cholesky(Polynomial(2), 1e-3 * normal_rows(5)).jitter < 1e-15


@pytest.mark.parametrize("make", [LandmarkBasis.from_eigen, LandmarkBasis.from_cholesky])
@pytest.mark.parametrize("d", [2, 5, 20])
def test_soft_cut_is_the_ridge_formula(make, d):
    X, new = normal_rows(500, d), normal_rows(50, d, seed=1) * 1.5
    kernel = MeanRBF(1.5 / d)
    basis = make(kernel, X[:120])
    sums = CovarianceSums.of_rows(basis, X)
    rho = 0.1 * (np.trace(sums.covariance) + 0.01)
    subspace = subspace_from_sums(basis, sums, rho=rho)
    z = basis.features()(new)
    gap = z - sums.mean
    solved = np.linalg.solve(sums.covariance + rho * np.eye(basis.transform.shape[1]), gap.T).T
    outside = kernel.diagonal(new) - (z**2).sum(axis=1)
    expected = outside + rho * (gap * solved).sum(axis=1)
    assert_allclose(subspace.errors()(new), expected, rtol=0, atol=1e-10)


@pytest.mark.release
@pytest.mark.parametrize("d", [2, 5, 20])
def test_sums_stay_positive_semi_definite(d):
    X = normal_rows(2000, d)
    for make in (LandmarkBasis.from_eigen, LandmarkBasis.from_cholesky):
        basis = make(RBF(0.5 / d), X[:300])
        values = np.linalg.eigvalsh(CovarianceSums.of_rows(basis, X).covariance)
        assert values[0] >= -1e-14 * values[-1]


def test_sums_are_those_of_numpy():
    Z, shift = normal_rows(50), np.full(4, 0.3)
    sums = sums_of(Z, shift)
    assert_allclose(sums.mean, Z.mean(axis=0), atol=1e-14)
    assert_allclose(sums.covariance, np.cov(Z.T, bias=True), atol=1e-14)
    assert_allclose(sums.second_moment, Z.T @ Z / 50, atol=1e-14)
    assert_array_equal(sums.scatter, sums.scatter.T)


def test_variances_in_the_span_of_landmarks_are_right():
    Z = normal_rows(50)
    sums = replace(sums_of(Z, np.full(4, 0.3)), norm=1e30)
    assert_allclose(sums.explained, (Z**2).sum(), rtol=1e-13)
    # Directions whose variance is rounding error are not components.
    basis = LandmarkBasis.from_eigen(Linear(), np.eye(4))
    flat = replace(sums_of(Z * [1.0, 1.0, 1e-9, 1e-9], np.zeros(4)), norm=1e30)
    assert subspace_from_sums(basis, flat, precision="float32").n_components == 2


def test_sums_about_different_shifts_are_refused():
    Z = normal_rows(5)
    with pytest.raises(ValueError, match="different shifts"):
        sums_of(Z, np.zeros(4)) + sums_of(Z, np.ones(4))


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_sums_have_the_same_bits_for_any_number_of_workers(precision):
    X = normal_rows(9000)
    basis = LandmarkBasis.from_eigen(RBF(0.3), X[:40])
    one, four = (CovarianceSums.of_rows(basis, X, precision=precision, n_jobs=k) for k in (1, 4))
    assert_array_equal(one.scatter, four.scatter)
    assert_array_equal(one.total, four.total)


@pytest.mark.release
@pytest.mark.parametrize("make", [LandmarkBasis.from_eigen, LandmarkBasis.from_cholesky])
@pytest.mark.parametrize("d", [2, 5, 20])
def test_float32_kernel_values_keep_variances_and_soft_cuts(make, d):
    X, new = normal_rows(2000, d), normal_rows(50, d, seed=1) * 1.5
    basis = make(MeanRBF(1.0 / d), X[:300])
    wide, narrow = (
        CovarianceSums.of_rows(basis, X, precision=precision)
        for precision in ("float64", "float32")
    )
    total = np.trace(wide.covariance)
    # The basis divides by roots of eigenvalues down to 1e-10, so float32's 6e-8 grows up to 1e5
    # times.
    assert_allclose(narrow.mean, wide.mean, rtol=0, atol=1e-3)
    assert np.linalg.eigvalsh(narrow.covariance)[0] >= -1e-6 * total
    for options in ({"n_components": 20}, {"rho": 0.05 * total}):
        a, b = (subspace_from_sums(basis, sums, **options) for sums in (narrow, wide))
        assert_allclose(a.variances[:20], b.variances[:20], rtol=0, atol=2e-6 * total)
        assert np.abs(a.reconstruction_error(new) - b.reconstruction_error(new)).max() < 1e-4


def test_the_missed_variance_is_that_of_other_rows():
    X = normal_rows(300)
    basis = LandmarkBasis.from_eigen(RBF(0.3), X[:40])
    z = basis.features()(X[40:])
    missed = Missed.of_rows(basis, X)
    assert_allclose(missed.share, (1.0 - (z**2).sum(axis=1)).mean(), rtol=1e-12)
    assert missed.outside == pytest.approx(260)
    gaps = np.linalg.eigvalsh(RBF(0.3)(X) - basis.features()(X) @ basis.features()(X).T)
    assert_allclose(missed.variance, gaps[-1] / 300, rtol=1e-9)
    assert Missed.of_rows(basis, X[:40]) == Missed(40, 0.0, 0.0, 0.0)
    linear = LandmarkBasis.from_eigen(Linear(), X)
    assert Missed.of_rows(linear, np.zeros((5, 4))) == Missed(5, 0.0, 0.0, 0.0)
    assert Missed.of_rows(linear, 2.0 * X).share < 1e-12


def test_the_missed_variance_of_a_sample_is_near_that_of_all_rows():
    X = normal_rows(1500, 3)
    basis = LandmarkBasis.from_eigen(RBF(0.3), X[:60])
    z = basis.features()(X)
    of_all = Missed.of_rows(basis, X, rows=1500)
    assert_allclose(of_all.share, (1.0 - (z[60:] ** 2).sum(axis=1)).mean(), rtol=1e-9)
    few = Missed.of_rows(basis, X, rows=300)
    assert 0.7 * of_all.variance < few.variance < 2.0 * of_all.variance
    parts = Missed.of_rows(basis, X[:700]) + Missed.of_rows(basis, X[700:])
    assert (parts.n, parts.outside) == (1500, pytest.approx(1440))
    assert_allclose(parts.share, of_all.share, rtol=1e-12)
    assert parts.variance >= of_all.variance


@pytest.mark.parametrize("make", [LandmarkBasis.from_cholesky, LandmarkBasis.from_eigen])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_with_a_basis_are_plain_products(make, transposed):
    rng = np.random.default_rng(3)
    basis = make(RBF(0.5), rng.normal(size=(20, 3)))
    B = basis.transform.T if transposed else basis.transform
    C = rng.normal(size=(B.shape[1], 7))
    np.testing.assert_allclose(basis.combine(C, transposed=transposed), B @ C, rtol=1e-9)


def test_the_effect_of_jitter_on_landmarks():
    basis = LandmarkBasis.from_cholesky(RBF(0.1), np.random.default_rng(4).normal(size=(40, 2)))
    np.testing.assert_allclose(
        basis.own_residuals, basis.residuals()(basis.points), rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_sums_of_blocks_become_the_sums_of_features(precision):
    rng = np.random.default_rng(5)
    basis = LandmarkBasis.from_cholesky(RBF(0.5), rng.normal(size=(15, 3)))
    X = rng.normal(size=(900, 3))
    sums = CovarianceSums.of_rows(basis, X, precision=precision)
    z = basis.features()(X)
    tolerance = 1e-10 if precision == "float64" else 1e-5
    np.testing.assert_allclose(sums.mean, z.mean(axis=0), atol=tolerance)
    np.testing.assert_allclose(sums.covariance, np.cov(z.T, bias=True), atol=tolerance)
