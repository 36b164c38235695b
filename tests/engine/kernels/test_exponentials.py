"""The first and third powers of exponentials in one pass, beside numpy's in double precision."""

import numpy as np
import pytest

from kpca_apps.engine.kernels import MeanRBF
from kpca_apps.engine.kernels.exponentials import add_first_and_third


@pytest.mark.parametrize("reach", [0.01, 1.0, 20.0, 87.0])
def test_powers_of_exponentials_are_as_exact_as_single_precision(reach: float) -> None:
    rng = np.random.default_rng(0)
    exponents = -reach * rng.random((7, 1_001), np.float32)
    exponents[0, :2] = 0.0, -reach
    sums = np.ones(exponents.shape, np.float32)
    add_first_and_third(exponents, np.float32(0.3), sums)
    u = np.exp(exponents.astype(np.float64))
    np.testing.assert_allclose(sums, 1.0 + 0.3 * u + u**3, rtol=3e-7)
    alone = np.zeros(exponents.shape, np.float32)
    add_first_and_third(exponents, np.float32(0.3), alone)
    # Beside its size: the exponent itself has seven digits.
    np.testing.assert_allclose(alone, 0.3 * u + u**3, rtol=1e-6 + 1e-7 * reach)


def test_a_kernel_over_views_is_the_same_in_single_precision() -> None:
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(50, 12)), rng.normal(size=(30, 12))
    kernel = MeanRBF(0.3, (1, 3), 4)
    single = kernel.against(Z, np.float32)(X)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, kernel(X, Z), rtol=1e-5, atol=1e-7)
    X[0, 0] = 1e19  # of which no digit of the others is left in single precision
    assert single[1:] == pytest.approx(kernel.against(Z, np.float32)(X)[1:], abs=0.0)
