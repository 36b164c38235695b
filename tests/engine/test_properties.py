"""The number of components, and invariance to units."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Linear
from tests.engine.examples import exact, normal_rows


@pytest.fixture(scope="module")
def rows():
    return normal_rows(40, 2) * [1.0, 0.4] + [0.5, 0.0]


def test_components_may_outnumber_columns_by_far():
    """The kernel gives n - 1 components about the mean and n about the origin; PCA gives two."""
    X = 10.0 * normal_rows(25, 2)
    assert exact(RBF(20.0), X).n_components == 24
    assert exact(RBF(20.0), X, center=False).n_components == 25
    assert exact(Linear(), X).n_components == 2


def test_standardised_columns_make_components_that_no_unit_changes(rows):
    """With the linear kernel, the components are those of the correlation matrix."""
    units = np.array([1000.0, 0.01])
    linear = make_pipeline(StandardScaler(), KernelPCA(kernel="linear")).fit(rows)
    correlations = np.linalg.eigvalsh(np.corrcoef(rows.T))[::-1]
    assert_allclose(linear[-1].subspace_.variances, correlations, rtol=1e-12)
    rbf = make_pipeline(StandardScaler(), KernelPCA(3, gamma=0.5))
    expected = rbf.fit_transform(rows)
    assert_allclose(rbf.fit_transform(rows * units), expected, rtol=0, atol=1e-10)
