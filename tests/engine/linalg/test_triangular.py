"""Squared norms by a triangular factor against the plain product."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.linalg.triangular import WIDTH, squared_norms

SIZES = [(1, 1), (40, 23), (WIDTH, WIDTH), (300, 2 * WIDTH + 1)]


@pytest.mark.parametrize(("p", "q"), SIZES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_norms_are_those_of_the_plain_product(p, q, dtype, tolerance):
    rng = np.random.default_rng(p)
    C, s, beta = rng.normal(size=(p, q)), rng.normal(size=q), rng.normal(size=p)
    k = rng.normal(size=(17, p))
    squares, along = squared_norms(C, s, beta, dtype)(k.astype(dtype))
    expected = np.square(k @ C - s).sum(axis=1)
    assert_allclose(squares, expected, rtol=tolerance, atol=tolerance)
    assert_allclose(along, k @ beta, rtol=0, atol=20 * tolerance * np.sqrt(p))


def test_columns_of_very_different_lengths_keep_their_digits():
    """As weights of components do, whose lengths are one over the root of their variances."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    lengths = np.logspace(0, 7, 60)
    # Rows that lie along the components as much as the lengths allow.
    k = (rng.normal(size=(9, 60)) / lengths) @ Q.T
    squares, _ = squared_norms(Q * lengths, np.zeros(60), np.zeros(60), "float64")(k)
    assert_allclose(squares, np.square((k @ Q) * lengths).sum(axis=1), rtol=1e-8)
