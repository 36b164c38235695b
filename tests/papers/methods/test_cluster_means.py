"""Components of weighted cluster means."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.cluster import KMeans

from kpca_apps.engine.kernels import RBF
from kpca_apps.papers.methods.cluster_means import mean_components

from ..comparing import clouds, exact

KERNEL = RBF(0.4)


def error_of(subspace, X, q=5):
    """Largest relative error of the leading eigenvalues."""
    true = exact(KERNEL, X, q).variances
    return float(np.abs(subspace.variances[:q] / true - 1.0).max())


def test_weights_are_repeated_rows():
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


def test_without_weights_eigenvalues_are_wrong():
    """What the encyclopedia advises, and what its advice lacks."""
    X = clouds(400)
    model = KMeans(30, n_init=1, random_state=0).fit(X)
    sizes = np.bincount(model.labels_)
    weighted = mean_components(KERNEL, model.cluster_centers_, sizes)
    plain = mean_components(KERNEL, model.cluster_centers_, np.ones(30))
    assert error_of(weighted, X) < 0.1
    assert error_of(plain, X) > 3.0 * error_of(weighted, X)


@pytest.mark.parametrize("sizes", [[1.0], [1.0, 0.0], [1.0, np.nan]])
def test_refuses_sizes_that_are_none(sizes):
    with pytest.raises(ValueError, match="sizes must hold 2 numbers"):
        mean_components(KERNEL, np.eye(2), sizes)
