import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from kpca_apps.papers.methods.fits import (
    basic_patterns,
    hebbian_components,
    mean_components,
    parametrised_set,
    power_components,
    power_pairs,
    random_feature_pca,
)
from tests.engine.examples import exact, normal_rows
from tests.papers.comparing import clouds


def test_pairs_are_those_of_lapack():
    A = np.random.default_rng(0).normal(size=(12, 12))
    K = A @ A.T
    found = power_pairs(K, 4, np.random.default_rng(1), tolerance=1e-9)
    values, vectors = np.linalg.eigh(K)
    assert_allclose(found.values, values[::-1][:4], rtol=1e-12)
    cosines = np.einsum("ij,ij->j", found.vectors, vectors[:, ::-1][:, :4])
    assert_allclose(np.abs(cosines), 1.0, rtol=1e-12)
    assert (found.products > 1).all()


def test_components_are_the_exact_ones():
    X = clouds()
    found = power_components(RBF(0.3), X, 2, np.random.default_rng(0))
    direct = exact(RBF(0.3), X, 2)
    assert_allclose(found.variances, direct.variances, rtol=1e-9)
    assert_allclose(np.abs(found.project(X)), np.abs(direct.project(X)), rtol=0, atol=1e-5)
    assert_allclose(
        found.reconstruction_error(X), direct.reconstruction_error(X), rtol=0, atol=1e-5
    )


def test_nearly_equal_eigenvalues_do_not_converge():
    K = np.diag([1.0, 1.0 - 1e-5, 0.5])
    with pytest.raises(ValueError, match="Eigenpair 1 has not settled"):
        power_pairs(K, 1, np.random.default_rng(0), max_iter=1000)


def test_equal_eigenvalues_are_separated_by_deflation():
    found = power_pairs(np.diag([1.0, 1.0, 0.5]), 2, np.random.default_rng(0))
    assert_allclose(found.values, 1.0, rtol=1e-9)
    assert abs(found.vectors[:, 0] @ found.vectors[:, 1]) < 1e-5


def test_random_features_approach_kernel_pca():
    X = clouds()
    true = exact(RBF(0.3), X, 2)
    errors = []
    for m in (30, 3000):
        pipeline = random_feature_pca(0.3, m, 2, 0).fit(X)
        variances = pipeline[-1].explained_variance_ * (len(X) - 1) / len(X)
        errors.append(np.abs(variances / true.variances - 1.0).max())
    assert errors[1] < 0.05 < errors[0]
    projections = pipeline.transform(X)
    cosines = np.abs(np.einsum("ij,ij->j", projections, true.project(X)))
    cosines /= np.linalg.norm(projections, axis=0) * np.linalg.norm(true.project(X), axis=0)
    assert_allclose(cosines, 1.0, atol=0.01)


def test_with_the_linear_kernel_it_is_the_hebbian_network():
    """For comparison, Sanger's rule updates `W` row by row, starting from the same random `A`."""
    X = clouds(25)
    centred = X - X.mean(axis=0)
    rng = np.random.default_rng(3)
    gram = centred @ centred.T
    A = rng.normal(size=(2, 25))
    W = A @ centred / np.sqrt(np.einsum("ai,ij,aj->a", A, gram, A))[:, None]
    rate = 0.1 * 25 / np.trace(gram)
    for turn in range(3):
        eta = rate / (1.0 + turn / 10.0)
        for t in rng.permutation(25):
            y = W @ centred[t]
            W = W + eta * (np.outer(y, centred[t]) - np.tril(np.outer(y, y)) @ W)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    found = hebbian_components(Linear(), X, 2, np.random.default_rng(3), passes=3)
    assert_allclose(np.abs(found.project(X)), np.abs(centred @ W.T), rtol=0, atol=1e-10)


KERNEL = RBF(0.4)


class TestClusterMeans:
    def test_weights_are_repeated_rows(self):
        means = clouds(12)
        sizes = np.array([1, 4, 2, 3, 1, 1, 5, 2, 2, 1, 3, 1])
        weighted = mean_components(KERNEL, means, sizes)
        repeated = exact(KERNEL, np.repeat(means, sizes, axis=0))
        q = min(weighted.n_components, repeated.n_components)
        assert_allclose(weighted.variances[:q], repeated.variances[:q], rtol=1e-8)
        new = clouds(20, seed=1)
        assert_allclose(
            weighted.reconstruction_error(new), repeated.reconstruction_error(new), atol=1e-9
        )
        assert weighted.n == sizes.sum()


class TestBasicPatterns:
    def test_all_pairs_of_patterns_differ_and_all_rows_resemble_one(self):
        K = KERNEL(clouds())
        chosen = basic_patterns(K, 0.9)
        unit = K / np.linalg.norm(K, axis=1, keepdims=True)
        cosines = np.abs(unit @ unit[chosen].T)
        among = cosines[chosen] - np.eye(len(chosen))
        assert 3 < len(chosen) < 100
        assert among.max() < 0.9
        assert (cosines.max(axis=1) >= 0.9).all()

    def test_repeated_rows_are_taken_once(self):
        X = clouds(30)
        assert (basic_patterns(KERNEL(np.vstack([X, X])), 1.0 - 1e-12) < 30).all()


def direction(angle):
    return np.hstack([np.cos(angle), np.sin(angle)])


def test_two_directions_make_any_component_of_the_square_kernel():
    """In 2-D, components of (x.y)^2 are symmetric matrices: weighted sums of two matrices x x^T."""
    X = normal_rows(50, 2)
    subspace = exact(Polynomial(2), X, 1, center=False)
    found = parametrised_set(subspace, direction, np.array([[0.2], [1.5]]))
    assert_allclose(found.rho, 0.0, atol=1e-7)
    matrix = np.einsum("j,ja,jb->ab", subspace.weights[:, 0], X, X)
    rebuilt = np.einsum("j,ja,jb->ab", found.coefficients[:, 0], found.points, found.points)
    assert_allclose(rebuilt, matrix, atol=1e-3)


def test_distances_are_those_of_the_definition():
    """rho = |V|^2 + |V~|^2 - 2 <V, V~> (eq. 27), and the points are no worse than the start."""
    subspace = exact(RBF(0.4), normal_rows(40, 2), 2)
    start = np.array([[0.3, 0.1], [-0.5, 0.8], [0.9, -0.4]])
    found = parametrised_set(subspace, lambda points: points, start)
    for part in (found, parametrised_set(subspace, lambda points: points, start, max_iter=0)):
        cross = part.coefficients.T @ subspace.kernel(part.points, subspace.points)
        own = part.coefficients.T @ subspace.kernel(part.points) @ part.coefficients
        rho = 1.0 + np.diag(own) - 2.0 * np.diag(cross @ subspace.weights)
        assert_allclose(part.rho, rho, atol=1e-7)
    assert found.rho.sum() < part.rho.sum()
