import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpca_apps.engine.kernels import RBF, Linear, Sigmoid
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis, subspace_from_sums
from kpca_apps.engine.rows import BLOCK
from kpca_apps.engine.subspace import KernelSubspace, component_signs
from kpca_apps.errors import ModelFileError
from tests.engine.examples import KERNELS, PSD_KERNELS, exact, normal_rows
from tests.system.model_parts import from_file, model_from, parts_of


@pytest.fixture(params=KERNELS.values(), ids=KERNELS.keys())
def kernel(request):
    return request.param


def test_a_row_gets_the_same_bits_in_any_batch(kernel):
    subspace = exact(kernel, normal_rows(60), n_components=5)
    X = normal_rows(1300, seed=1)
    projected = subspace.project(X)
    shuffle = np.random.default_rng(2).permutation(len(X))
    assert_array_equal(subspace.project(X[shuffle]), projected[shuffle])
    assert_array_equal(subspace.project(X, n_jobs=2), projected)
    assert_array_equal(subspace.project(np.asfortranarray(X)), projected)
    for row in (0, BLOCK - 1, BLOCK, 1299):
        assert_array_equal(subspace.project(X[row : row + 1])[0], projected[row])


@pytest.mark.parametrize("kernel", PSD_KERNELS.values(), ids=PSD_KERNELS.keys())
def test_an_error_has_the_same_bits_in_any_batch(kernel):
    X = normal_rows(800, seed=1)
    basis = LandmarkBasis.from_cholesky(kernel, normal_rows(150))
    subspace = subspace_from_sums(basis, CovarianceSums.of_rows(basis, X), rho=0.1)
    error = subspace.reconstruction_error(X)
    shuffle = np.random.default_rng(2).permutation(len(X))
    assert_array_equal(subspace.reconstruction_error(X[shuffle], n_jobs=2), error[shuffle])
    assert_array_equal(subspace.reconstruction_error(X[799:]), error[799:])


def test_error_is_the_distance_to_the_expansion():
    kernel, X, new = RBF(0.3), normal_rows(40), normal_rows(9, seed=1)
    for subspace in (exact(kernel, X, n_components=6), exact(kernel, X, n_components=0)):
        T, error = subspace.project_and_error(new)
        gamma = subspace.expansion(T)
        distance = (
            1.0
            - 2.0 * np.einsum("ij,ij->i", gamma, kernel(new, X))
            + np.einsum("ij,jk,ik->i", gamma, kernel(X), gamma)
        )
        assert_allclose(error, distance, rtol=0, atol=1e-12)


def test_an_indefinite_kernel_has_no_error_and_no_soft_cut():
    subspace = exact(Sigmoid(0.1), normal_rows(20))
    with pytest.raises(ValueError, match="indefinite"):
        subspace.reconstruction_error(normal_rows(3))
    with pytest.raises(ValueError, match="positive semi-definite"):
        subspace.with_soft_cut(0.1)


def test_survives_a_model_file():
    subspace = exact(KERNELS["views"], normal_rows(40), n_components=6).with_soft_cut(0.1)
    again = from_file(subspace)
    new = normal_rows(9, seed=1)
    assert_array_equal(again.reconstruction_error(new), subspace.reconstruction_error(new))
    assert again.n == 40


@pytest.mark.parametrize(
    "damage",
    [
        lambda model, arrays: model.pop("kernel"),
        lambda model, arrays: model.update(mean_norm="many"),
        lambda model, arrays: model.update(mean_norm=float("nan")),
        lambda model, arrays: model.update(kernel={"type": "unknown"}),
        lambda model, arrays: arrays.pop("gain"),
        lambda model, arrays: arrays.update(gain=np.ones(7)),
        lambda model, arrays: arrays.update(points=np.ones((3, 2))),
        lambda model, arrays: arrays.update(points=np.ones(3)),
        lambda model, arrays: arrays.update(weights=arrays["weights"] * np.inf),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in multiply")
def test_a_damaged_state_is_refused(damage):
    model, arrays = parts_of(exact(Linear(), normal_rows(10)))
    damage(model, arrays)
    with pytest.raises(ModelFileError):
        model_from(KernelSubspace, model, arrays)


def test_signs_make_the_largest_coefficient_positive():
    columns = np.array([[1.0, 0.0, 2.0], [-3.0, 0.0, 1.0]])
    assert_array_equal(component_signs(columns), [-1.0, 1.0, 1.0])
    assert component_signs(np.empty((3, 0))).shape == (0,)


@pytest.mark.parametrize("kernel", PSD_KERNELS.values(), ids=PSD_KERNELS.keys())
def test_a_row_gets_the_same_float32_error_in_any_batch(kernel):
    # A row's last digits may depend only on its position in its block (see `rows.BLOCK`).
    subspace = exact(kernel, normal_rows(60), n_components=5)
    X = normal_rows(1300, seed=1)
    error = subspace.reconstruction_error(X, precision="float32")
    shuffle = np.random.default_rng(2).permutation(len(X))
    shuffled = subspace.reconstruction_error(X[shuffle], precision="float32", n_jobs=2)
    size = 1e-5 * kernel.diagonal(X)
    assert (np.abs(shuffled - error[shuffle]) <= size[shuffle]).all()
    last = subspace.reconstruction_error(X[1299:], precision="float32")
    assert np.abs(last - error[1299:]) <= size[1299:]
    assert_array_equal(subspace.reconstruction_error(X, precision="float32", n_jobs=2), error)


@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-13), ("float32", 1e-5)])
def test_errors_are_those_beside_projections(precision, tolerance):
    subspace = exact(RBF(0.3), normal_rows(40), n_components=6).with_soft_cut(0.05)
    new = normal_rows(9, seed=1)
    expected = subspace.project_and_error(new)[1]
    assert_allclose(subspace.errors(precision)(new), expected, rtol=0, atol=tolerance)
