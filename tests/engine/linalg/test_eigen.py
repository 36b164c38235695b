import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF, Linear, Sigmoid
from kpca_apps.engine.linalg.eigen import block_krylov, block_width, choose_solver, lapack_pairs
from kpca_apps.engine.linalg.gram import gram_matrix
from kpca_apps.engine.plan import FitOptions
from tests.engine.examples import normal_rows
from tests.quick import quick


def multiplied(K, *, center=True):
    H = np.eye(len(K)) - 1.0 / len(K)
    matrix = H @ K @ H if center else K
    return lambda V: matrix @ V


def krylov(K, q, *, center=True, **options):
    rng = np.random.default_rng(0)
    start = rng.standard_normal((len(K), block_width(q)))
    return block_krylov(multiplied(K, center=center), start, q, rng, **options)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("q", quick([1, 10, 40], 10))
def test_krylov_equals_lapack(center, q):
    K = gram_matrix(RBF(0.02), normal_rows(600))
    values, vectors = krylov(K, q, center=center)
    expected, reference = lapack_pairs(K.copy(), q, center=center, by_modulus=False)
    assert_allclose(values, expected, rtol=0, atol=1e-8 * expected[0])
    # Eigenvectors of well-separated eigenvalues agree up to sign.
    assert_allclose(np.abs(vectors[:, 0] @ reference[:, 0]), 1.0, rtol=1e-8)
    residual = multiplied(K, center=center)(vectors) - vectors * values
    assert np.linalg.norm(residual, axis=0).max() <= 1e-7 * values[0]
    assert_allclose(vectors.T @ vectors, np.eye(q), rtol=0, atol=1e-10)


@pytest.mark.parametrize("q", [1, 79, 80, 81, 199, 200])
def test_lapack_finds_the_same_pairs_whether_it_computes_some_or_all(q):
    K = gram_matrix(RBF(0.3), normal_rows(200))
    H = np.eye(200) - 1.0 / 200
    values, vectors = lapack_pairs(K.copy(), q, center=True, by_modulus=False)
    assert values.shape == (q,) and vectors.shape == (200, q)
    expected = np.linalg.eigvalsh(H @ K @ H)[::-1][:q]
    assert_allclose(values, expected, rtol=0, atol=1e-12 * expected[0])
    assert_allclose(H @ K @ H @ vectors, vectors * values, rtol=0, atol=1e-12 * expected[0])


def test_a_good_start_saves_products_and_changes_no_eigenvalue():
    product, widths = multiplied(gram_matrix(RBF(0.02), normal_rows(600))), []

    def counted(V):
        widths.append(V.shape[1])
        return product(V)

    def found(start):
        widths.clear()
        values, _ = block_krylov(counted, start, 5, np.random.default_rng(0))
        return values, len(widths)

    random = np.random.default_rng(0).standard_normal((600, 16))
    (values, few), (expected, more) = found(product(random)), found(random)
    assert few < more
    assert_allclose(values, expected, rtol=1e-8)


def test_krylov_finds_more_equal_eigenvalues_than_its_block_is_wide():
    diagonal = np.repeat([5.0, 3.0, 1.0], [20, 20, 360])
    values, vectors = krylov(np.diag(diagonal), 30, center=False)
    assert_allclose(values, diagonal[:30], rtol=1e-10)
    assert_allclose(vectors.T @ vectors, np.eye(30), atol=1e-10)


def exact(X, q, kernel=Linear(), **options):  # noqa: B008 (it cannot change)
    return fit_exact(kernel, X, rng=np.random.default_rng(0), options=FitOptions(q, **options))


def test_krylov_orders_an_indefinite_matrix_by_modulus():
    K = gram_matrix(Sigmoid(0.5, -1.0), normal_rows(500, d=2))
    values, _ = krylov(K, 6, center=False, by_modulus=True)
    expected = np.linalg.eigvalsh(K)
    expected = expected[np.argsort(-np.abs(expected))][:6]
    assert (expected < 0).any()
    assert_allclose(values, expected, rtol=0, atol=1e-8 * abs(expected[0]))


@pytest.mark.parametrize(
    ("n", "q", "solver", "expected"),
    [
        (1500, 5, "auto", "lapack"),
        (1501, 5, "auto", "krylov"),
        (2000, 250, "auto", "lapack"),
        (100, 5, "krylov", "krylov"),
        (9000, 5, "lapack", "lapack"),
    ],
)
def test_choice_of_solver(n, q, solver, expected):
    assert choose_solver(n, q, solver) == expected
