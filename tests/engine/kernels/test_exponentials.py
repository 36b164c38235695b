"""Exponentials and their third powers, summed in one pass, equal double-precision numpy."""

import numpy as np
import pytest

from kpca_apps.engine.kernels import MeanRBF
from kpca_apps.engine.kernels.exponentials import add_first_and_third

LOWEST = np.float32(-87.0)


@pytest.mark.parametrize("reach", [0.01, 1.0, 20.0, 87.0])
def test_powers_of_exponentials_are_as_exact_as_single_precision(reach: float) -> None:
    exponents = -reach * np.random.default_rng(0).random((7, 1_001), np.float32)
    exponents[0, :2] = 0.0, -reach
    sums = np.ones(exponents.shape, np.float32)
    add_first_and_third(exponents, LOWEST, np.float32(0.3), sums, False)
    u = np.exp(exponents.astype(np.float64))
    np.testing.assert_allclose(sums, 1.0 + 0.3 * u + u**3, rtol=3e-7)
    alone = np.full(exponents.shape, np.nan, np.float32)
    add_first_and_third(exponents, LOWEST, np.float32(0.3), alone, True)
    np.testing.assert_allclose(alone, 0.3 * u + u**3, rtol=4e-7)


@pytest.mark.parametrize("reach", [0.5, 87.0])
@pytest.mark.parametrize("is_compiled", [True, False])
def test_exponentials_are_right_to_the_last_digit(reach: float, is_compiled: bool) -> None:
    # Only compiled code may fuse a multiplication and an addition, without rounding in between.
    function = add_first_and_third if is_compiled else add_first_and_third.py_func
    exponents = -reach * np.random.default_rng(2).random((5, 200), np.float32)
    # The function adds factor * u + u^3 with u = exp(x); with this factor, u^3 is lost to rounding.
    factor, found = 2.0**30, np.zeros(exponents.shape, np.float32)
    function(exponents, LOWEST, np.float32(factor), found, False)
    np.testing.assert_allclose(found / factor, np.exp(exponents.astype(np.float64)), rtol=1e-7)


def test_exponents_are_clipped_at_the_lowest() -> None:
    exponents = np.array([[-1.0, -30.0, -1e9, -np.inf]], np.float32)
    found = np.empty(exponents.shape, np.float32)
    add_first_and_third(exponents, np.float32(-29.0), np.float32(0.5), found, True)
    u = np.exp(np.array([-1.0, -29.0, -29.0, -29.0]))
    np.testing.assert_allclose(found[0], 0.5 * u + u**3, rtol=4e-7)


def test_a_kernel_over_views_is_the_same_in_single_precision() -> None:
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(50, 12)), rng.normal(size=(30, 12))
    kernel = MeanRBF(0.3, (1, 3), 4)
    single = kernel.against(Z, np.float32)(X)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, kernel(X, Z), rtol=1e-5, atol=1e-7)
    X[0, 0] = 1e19  # so far that distances of this row are computed from differences, not products
    assert single[1:] == pytest.approx(kernel.against(Z, np.float32)(X)[1:], abs=0.0)
