import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from kpca_apps.engine.linalg.panels import ELSEWHERE, PANEL, SAMPLE, TILE, GramPanels, centred
from tests.engine.examples import KERNELS, normal_rows

TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_product_is_that_of_the_whole_matrix(kernel, dtype, stored):
    X, V = normal_rows(PANEL + 70), normal_rows(PANEL + 70, 3, seed=1)
    gram = GramPanels(kernel, X, dtype, stored=stored)
    K = kernel(X)
    scale = np.abs(K).sum(axis=1).max()
    assert_allclose(gram.product(V), K @ V, rtol=0, atol=TOLERANCE[dtype] * scale)
    assert gram.product(V).dtype == dtype
    assert_allclose(gram.row_sums, K.sum(axis=1), rtol=0, atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize("n", [1, PANEL, TILE - 1, TILE, TILE + 1, 2 * TILE + PANEL + 5])
def test_every_panel_is_in_the_right_place(n):
    X, V = normal_rows(n), normal_rows(n, 2, seed=1)
    expected = RBF(0.3)(X) @ V
    for stored in (True, False):
        found = GramPanels(RBF(0.3), X, np.float64, stored=stored).product(V)
        assert_allclose(found, expected, rtol=0, atol=1e-12 * n)


def test_bits_depend_neither_on_storage_nor_on_the_number_of_threads():
    X, V = normal_rows(2 * TILE + 300), normal_rows(2 * TILE + 300, 8, seed=1)
    products = [
        GramPanels(RBF(0.3), X, np.float32, stored=stored, n_jobs=n_jobs).product(V)
        for stored in (True, False)
        for n_jobs in (None, 1, 2, 4)
    ]
    for other in products[1:]:
        assert_array_equal(other, products[0])


def test_implicit_centring_is_explicit_centring():
    X, V = normal_rows(400), normal_rows(400, 3, seed=1)
    H = np.eye(400) - 1.0 / 400
    product = centred(GramPanels(Linear(), X, np.float64, stored=True))
    assert_allclose(product(V), H @ Linear()(X) @ H @ V, rtol=0, atol=1e-10)


def test_a_sketch_of_few_rows_is_the_product_and_a_little_of_the_block():
    X, V = normal_rows(200), normal_rows(200, 3, seed=1)
    sketch = GramPanels(RBF(0.3), X, np.float64, stored=False).sketch(V)
    product = RBF(0.3)(X) @ V
    product *= np.linalg.norm(V, axis=0) / np.linalg.norm(product, axis=0)
    assert_allclose(sketch, product + ELSEWHERE * V, rtol=1e-10, atol=1e-12)


def test_a_sketch_of_many_rows_lies_along_the_leading_directions():
    X, V = normal_rows(3 * SAMPLE, 3), normal_rows(3 * SAMPLE, 4, seed=1)
    sketch = GramPanels(RBF(0.05), X, np.float32, stored=False).sketch(V)
    leading = np.linalg.eigh(RBF(0.05)(X))[1][:, -20:]

    def along(block):
        return np.linalg.norm(leading.T @ block) / np.linalg.norm(block)

    assert along(sketch) > 0.99 > 0.5 > along(V)


@pytest.mark.parametrize("factor", [0.0, 1e120])
def test_a_sketch_of_vanishing_or_overflowing_values_is_the_block(factor):
    X, V = normal_rows(300) * factor, normal_rows(300, 2, seed=1)
    assert_allclose(GramPanels(Polynomial(3), X, np.float64, stored=False).sketch(V), ELSEWHERE * V)


def test_overflow_is_refused_at_the_first_product():
    gram = GramPanels(Polynomial(3), normal_rows(300) * 1e120, np.float64, stored=False)
    with pytest.raises(ValueError, match="overflows on these rows"):
        gram.product(normal_rows(300, 2))
