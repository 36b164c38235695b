from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from kpca_apps.engine.kernels import RBF
from kpca_apps.papers.methods.mercer import mercer_check
from tests.engine.examples import KERNELS, normal_rows


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_agrees_with_what_each_kernel_says_of_itself(name):
    check = mercer_check(KERNELS[name](normal_rows(30)))
    assert check.is_psd == KERNELS[name].is_psd


def test_eigenvalues_are_those_of_mercers_series():
    """exp(-g (x - y)^2) under a standard normal measure, in closed form.

    Rasmussen and Williams (2006), Gaussian processes for machine learning, eq. 4.40.
    """
    g, a = 0.8, 0.25
    places, masses = np.polynomial.hermite_e.hermegauss(80)
    root = np.sqrt(masses / masses.sum())
    K = root[:, None] * RBF(g)(places[:, None]) * root
    size = a + g + np.sqrt(a * a + 2.0 * a * g)
    expected = np.sqrt(2.0 * a / size) * (g / size) ** np.arange(12)
    assert_allclose(mercer_check(K).eigenvalues[::-1][:12], expected, rtol=1e-8)


def test_the_witness_refutes():
    K = KERNELS["sigmoid"](normal_rows(30))
    check = mercer_check(K)
    assert check.witness @ K @ check.witness == pytest.approx(check.eigenvalues[0])
    assert check.eigenvalues[0] < 0.0
    assert "indefinite" in check.describe()


def test_minus_the_squared_distance_is_a_kernel_about_the_mean():
    """Its centred Gram matrix is twice that of the linear kernel: classical scaling."""
    X = normal_rows(20)
    check = mercer_check(-cdist(X, X, "sqeuclidean"))
    assert not check.is_psd and check.is_conditionally_psd
    assert check.describe().startswith("conditionally")


def test_the_negative_share_is_that_of_the_moduli():
    check = mercer_check(np.diag([3.0, -1.0]))
    assert check.negative_share == pytest.approx(0.25)
    assert_allclose(np.abs(check.witness), [0.0, 1.0], atol=1e-12)


def test_sees_what_is_not_symmetric():
    check = mercer_check([[1.0, 0.5], [0.4, 1.0]])
    assert not check.is_symmetric and not check.is_psd and not check.is_conditionally_psd
    assert check.asymmetry == pytest.approx(0.1)
    assert "not symmetric" in check.describe()


def test_a_matrix_of_zeros_is_semi_definite():
    check = mercer_check(np.zeros((3, 3)))
    assert check.is_psd and check.negative_share == 0.0


@pytest.mark.parametrize("K", [np.ones(3), np.ones((2, 3)), np.ones((0, 0)), [[np.nan]], [[1j]]])
def test_refuses_what_is_no_gram_matrix(K):
    with pytest.raises(ValueError, match="Gram matrix"):
        mercer_check(K)


@pytest.mark.parametrize("K", [np.full((3, 3), 1e308), [[1e308, -1e308], [1e308, 1e308]]])
def test_refuses_values_whose_eigenvalues_overflow(K):
    with pytest.raises(ValueError, match="overflow"):
        mercer_check(K)


def test_values_near_the_bound_are_checked_without_a_warning():
    check = mercer_check(np.full((3, 3), 4e306))
    assert check.is_psd and check.negative_share == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("tolerance", [np.nan, -5.0, np.inf, "1"])
def test_refuses_what_is_no_tolerance(tolerance):
    with pytest.raises(ValueError, match="tolerance"):
        mercer_check(np.eye(2), tolerance=tolerance)


def test_rounding_is_that_of_the_type_the_matrix_came_in():
    X = normal_rows(200)
    K = np.exp(-0.1 * cdist(X, X, "sqeuclidean")).astype(np.float32)
    assert mercer_check(K).is_psd
    assert not mercer_check(K.astype(np.float64)).is_psd
    K[0, 1] *= np.float32(1.0 + 1e-6)
    assert mercer_check(K).is_symmetric
    assert not mercer_check(K.astype(np.float64)).is_symmetric
    assert not mercer_check(K - 0.1 * np.eye(200, dtype=np.float32)).is_psd
