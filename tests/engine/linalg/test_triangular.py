"""Products with triangular matrices, and squared norms from them, equal plain products."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.linalg.triangular import WIDTH, squared_norms, times_upper
from tests.engine.examples import exact, normal_rows

SIZES = [(1, 1), (40, 23), (WIDTH, WIDTH), (300, 2 * WIDTH + 1)]


@pytest.mark.parametrize("p", [1, 40, 301])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_rows_times_an_upper_triangle_are_the_plain_product(p, dtype, tolerance):
    rng = np.random.default_rng(p)
    upper, k = np.triu(rng.normal(size=(p, p))), rng.normal(size=(17, p)).astype(dtype)
    expected, given = k @ upper, k.copy()
    found = times_upper(upper, dtype)(given)
    assert found.dtype == dtype
    assert_allclose(found, expected, rtol=0, atol=20 * tolerance * np.sqrt(p))
    assert np.shares_memory(found, given)


@pytest.mark.parametrize(("p", "q"), SIZES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_norms_are_those_of_the_plain_product(p, q, dtype, tolerance):
    rng = np.random.default_rng(p)
    C, s, beta = rng.normal(size=(p, q)), rng.normal(size=q), rng.normal(size=p)
    k = rng.normal(size=(17, p))
    order, norms = squared_norms(C, s, beta, dtype)
    squares, along = norms(k[:, order].astype(dtype))
    assert_allclose(squares, np.square(k @ C - s).sum(axis=1), rtol=tolerance, atol=tolerance)
    assert_allclose(along, k @ beta, rtol=0, atol=20 * tolerance * np.sqrt(p))


def test_columns_of_very_different_lengths_keep_their_digits():
    """Component weights have columns of very different lengths, 1 / standard deviation."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    lengths = np.logspace(0, 7, 60)
    # Draw rows whose sizes along the components are reciprocal to the columns' lengths.
    k = (rng.normal(size=(9, 60)) / lengths) @ Q.T
    order, norms = squared_norms(Q * lengths, np.zeros(60), np.zeros(60), "float64")
    assert_allclose(norms(k[:, order])[0], np.square((k @ Q) * lengths).sum(axis=1), rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_short_columns_keep_their_digits_beside_long_ones(seed):
    """Squared norms are exact to 1e-13 although one column of `C` is far shorter than any other.

    It belongs to the component that separates row 0 from the other rows, which nearly coincide.
    """
    X = 1e-3 * normal_rows(12, 4, seed)
    X[0] *= 1e3
    subspace = exact(RBF(0.3), X)
    C, s, k = subspace.weights, subspace.offset, subspace.kernel(X)
    order, norms = squared_norms(C, s, subspace.mean_weights, "float64")
    expected = np.square(k.astype(np.longdouble) @ C - s).sum(axis=1).astype(np.float64)
    assert_allclose(norms(k[:, order])[0], expected, rtol=0, atol=1e-13)
