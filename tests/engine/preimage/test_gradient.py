import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from kpca_apps.engine.kernels import RBF, Linear, Scaled
from kpca_apps.engine.kernels.base import Kernel
from kpca_apps.engine.preimage.fixed_point import fixed_point
from kpca_apps.engine.preimage.gradient import gradient_descent
from tests.engine.examples import KERNELS, PSD_KERNELS, exact, normal_rows


class Unknown(Kernel):
    """A kernel without a registered gradient."""

    def against(self, Z):
        return lambda X: X @ Z.T

    def diagonal(self, X):
        return (X**2).sum(axis=1)

    def describe(self):
        return "unknown"


def differences(function, X, h=1e-6):
    """Central differences of a function of rows, shape (n, d)."""
    columns = [(function(X + h * e) - function(X - h * e)) / (2.0 * h) for e in np.eye(X.shape[1])]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_gradients_agree_with_differences(name):
    kernel, X, Z = KERNELS[name], normal_rows(5), normal_rows(7, seed=1)
    C = np.random.default_rng(2).normal(size=(5, 7))
    expected = differences(lambda rows: (C * kernel(rows, Z)).sum(axis=1), X)
    assert_allclose(kernel.weighted_gradient(Z)(X, C), expected, rtol=1e-5, atol=1e-6)
    expected = differences(kernel.diagonal, X)
    assert_allclose(kernel.diagonal_gradient(X), expected, rtol=1e-5, atol=1e-6)
    assert kernel.is_differentiable


@pytest.mark.parametrize("name", ["laplacian", "laplacian-manhattan", "cosine"])
def test_a_kink_counts_as_zero(name):
    kernel, Z = KERNELS[name], np.zeros((1, 4))
    assert_allclose(kernel.weighted_gradient(Z)(Z, np.ones((1, 1))), 0.0)


def test_kernels_without_a_known_gradient_are_named():
    kernel = Scaled(2.0, Unknown()) + Linear()
    assert not kernel.is_differentiable
    with pytest.raises(ValueError, match="No gradient is known for unknown"):
        kernel.weighted_gradient(normal_rows(3))


def test_the_linear_kernel_gives_the_projection_of_pca():
    X, new = normal_rows(50, 6), normal_rows(10, 6, seed=1)
    subspace = exact(Linear(), X, n_components=3)
    reference = PCA(3).fit(X)
    found = gradient_descent(subspace, subspace.project(new), new)
    expected = reference.inverse_transform(reference.transform(new))
    assert found.converged.all()
    assert_allclose(found.points, expected, atol=1e-5)
    # The residual is zero: the projection has an exact pre-image.
    assert_allclose(found.residual, 0.0, atol=1e-8)


def test_it_finds_what_the_fixed_point_finds():
    X = normal_rows(80, 3)
    new = X[:10] + 0.3 * normal_rows(10, 3, seed=1)
    subspace = exact(RBF(0.1), X, n_components=6)
    T = subspace.project(new)
    descended = gradient_descent(subspace, T, new, tolerance=1e-8)
    iterated = fixed_point(subspace, T, new, tolerance=1e-10)
    assert_allclose(descended.points, iterated.points, atol=1e-3)
    assert_allclose(descended.residual, iterated.residual, atol=1e-8)


@pytest.mark.parametrize("name", sorted(PSD_KERNELS))
def test_a_descent_never_increases_the_distance(name):
    kernel, X, new = PSD_KERNELS[name], normal_rows(60), normal_rows(12, seed=1)
    subspace = exact(kernel, X, n_components=5)
    T = subspace.project(new)
    found = gradient_descent(subspace, T, new)
    g = subspace.expansion(T)
    norms = ((g @ kernel(X)) * g).sum(axis=1)

    def rho(Z):
        return kernel.diagonal(Z) - 2.0 * (g * kernel(Z, X)).sum(axis=1) + norms

    size = kernel.diagonal(new) + norms
    assert_allclose(found.residual, np.maximum(rho(found.points), 0), atol=1e-9 * size.max())
    assert (rho(found.points) <= rho(new) + 1e-14 * size).all() and found.converged.mean() > 0.9


@pytest.mark.parametrize("name", ["rbf", "polynomial", "laplacian", "cosine"])
def test_a_row_depends_on_no_other_row(name):
    subspace = exact(PSD_KERNELS[name], normal_rows(40, 6), n_components=5)
    T, new = subspace.project(normal_rows(200, 6, seed=1)), normal_rows(200, 6, seed=1)
    whole = gradient_descent(subspace, T, new, max_iter=20, n_jobs=2)
    for rows in (slice(7, 8), slice(100, 109)):
        few = gradient_descent(subspace, T[rows], new[rows], max_iter=20)
        assert np.array_equal(whole.points[rows], few.points)
        assert np.array_equal(whole.residual[rows], few.residual)


def test_no_rows():
    subspace = exact(RBF(0.2), normal_rows(20), n_components=3)
    assert gradient_descent(subspace, np.empty((0, 3))).points.shape == (0, 4)
