"""The Tikhonov filter by Cholesky factors equals the filter by eigenvectors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.kernels.base import squared_lengths
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis, subspace_from_sums
from kpca_apps.engine.tikhonov import TikhonovFilter
from tests.engine.examples import normal_rows


def soft_errors(tikhonov, X, precision="float64"):
    """Return the soft error r + rho M of residual r and Mahalanobis distance M."""
    z = tikhonov.basis.features(precision)(X)
    residual = tikhonov.basis.kernel.diagonal(X) - squared_lengths(z)
    return residual + tikhonov.rho * tikhonov.mahalanobis(precision)(z)


@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-9), ("float32", 1e-4)])
@pytest.mark.parametrize("rho", [1e-4, 0.1])
def test_errors_are_those_by_components(rho, precision, tolerance):
    X, new = normal_rows(300), normal_rows(50, seed=1)
    basis = LandmarkBasis.from_cholesky(RBF(0.4), X[:60])
    sums = CovarianceSums.of_rows(basis, X, precision=precision)
    expected = subspace_from_sums(basis, sums, rho=rho).reconstruction_error(new)
    found = soft_errors(TikhonovFilter.of_sums(basis, sums, rho), new, precision)
    assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_a_covariance_that_rounding_made_indefinite_has_a_factor():
    """Few rows, repeated, and a ridge below the rounding error give an indefinite covariance."""
    X = np.repeat(normal_rows(3), 20, axis=0)
    basis = LandmarkBasis.from_cholesky(RBF(0.4), normal_rows(40, seed=2))
    sums = CovarianceSums.of_rows(basis, X)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(sums.covariance + 1e-20 * np.eye(40))
    tikhonov = TikhonovFilter.of_sums(basis, sums, 1e-20)
    expected = subspace_from_sums(basis, sums, rho=1e-20).reconstruction_error(X)
    assert_allclose(soft_errors(tikhonov, X), expected, rtol=0, atol=1e-9)
