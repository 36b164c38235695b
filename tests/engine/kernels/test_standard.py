import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise

from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import (
    RBF,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    MeanRBF,
    OnColumns,
    Polynomial,
    Scaled,
    Sigmoid,
    Sum,
)
from kpca_apps.errors import ModelFileError
from tests.engine.examples import DISTANCE_KERNELS, KERNELS, normal_rows
from tests.system.model_parts import from_file, model_from


@dataclass
class Holder:
    """A dataclass with a field of the abstract kernel class, as models have."""

    kernel: Kernel


@pytest.fixture(params=KERNELS.values(), ids=KERNELS.keys())
def kernel(request):
    return request.param


class TestEveryKernel:
    def test_is_symmetric(self, kernel):
        X = normal_rows(30)
        assert_allclose(kernel(X), kernel(X).T, rtol=0, atol=1e-13)

    def test_diagonal_is_that_of_the_matrix(self, kernel):
        X = normal_rows(30)
        assert_allclose(kernel.diagonal(X), np.diag(kernel(X)), rtol=1e-13)

    def test_eigenvalues_tell_whether_it_is_positive_semi_definite(self, kernel):
        values = np.linalg.eigvalsh(kernel(normal_rows(30)))
        assert (values[0] >= -1e-12 * values[-1]) == kernel.is_psd

    def test_prepared_rows_equal_the_whole_matrix(self, kernel):
        X, Z = normal_rows(9), normal_rows(5, seed=1)
        prepared = kernel.against(Z)
        assert_allclose(np.vstack([prepared(X[:4]), prepared(X[4:])]), kernel(X, Z), rtol=1e-13)

    def test_does_not_change_its_input(self, kernel):
        X = normal_rows(6)
        before = X.copy()
        kernel(X)
        assert_array_equal(X, before)

    def test_survives_a_model_file(self, kernel):
        assert from_file(Holder(kernel)).kernel == kernel

    def test_describes_itself_on_one_line(self, kernel):
        assert kernel.describe() and "\n" not in kernel.describe()


@pytest.mark.parametrize("kernel", DISTANCE_KERNELS.values(), ids=DISTANCE_KERNELS.keys())
class TestDistanceKernels:
    def test_far_from_the_origin_nothing_is_lost(self, kernel):
        X = np.round(normal_rows(30) * 2**20) / 2**20
        assert_allclose(kernel(X + 2.0**20), kernel(X), rtol=0, atol=1e-12)

    def test_one_wild_row_spoils_no_other(self, kernel):
        X = normal_rows(30)
        values = kernel(np.vstack([X, np.full((1, 4), 1e12)]))
        assert_allclose(values[:30, :30], kernel(X), rtol=0, atol=1e-12)
        assert values[30, 30] == pytest.approx(1.0, abs=1e-12) and (values[30, :30] < 1e-50).all()

    def test_the_largest_floats_are_compared_like_others(self, kernel):
        X = np.full((3, 4), 1.7e308)
        X[2, 0] = -1.7e308
        assert_allclose(kernel(X[:2], X[:2]), 1.0, rtol=0, atol=1e-12)
        assert (kernel(X)[2, :2] < 1.0).all()

    def test_enormous_values_do_not_warn_or_overflow(self, kernel):
        assert np.isfinite(kernel(normal_rows(5) * 1e200, normal_rows(3))).all()


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (RBF(0.3), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.3)),
        (Laplacian(0.3, "manhattan"), lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.3)),
        (Laplacian(0.3, "euclidean"), lambda X, Z: np.exp(-0.3 * cdist(X, Z))),
        (
            Polynomial(4, 0.3, 2.0),
            lambda X, Z: pairwise.polynomial_kernel(X, Z, degree=4, gamma=0.3, coef0=2.0),
        ),
        (Linear(), pairwise.linear_kernel),
        (Cosine(), pairwise.cosine_similarity),
        (Sigmoid(0.3, 1.0), lambda X, Z: pairwise.sigmoid_kernel(X, Z, gamma=0.3, coef0=1.0)),
        (
            MeanRBF(0.1, (1, 3)),
            lambda X, Z: (
                (pairwise.rbf_kernel(X, Z, gamma=0.1) + pairwise.rbf_kernel(X, Z, gamma=0.3)) / 2
            ),
        ),
        (
            MeanRBF(0.1, (2, 3, 7)),
            lambda X, Z: sum(pairwise.rbf_kernel(X, Z, gamma=g) for g in (0.2, 0.3, 0.7)) / 3,
        ),
    ],
)
def test_agrees_with_scikit_learn(kernel, reference):
    X, Z = normal_rows(12), normal_rows(7, seed=1)
    Z[0] = 0.0
    assert_allclose(kernel(X, Z), reference(X, Z), rtol=1e-12, atol=1e-14)


def test_sigma_is_a_standard_deviation():
    assert RBF.from_sigma(2.0)(np.zeros((1, 1)), np.full((1, 1), 2.0)) == pytest.approx(
        math.exp(-0.5)
    )


def test_algebra_is_that_of_the_matrices():
    X = normal_rows(6)
    mean = 0.5 * (OnColumns(RBF(0.3), 0, 2) + OnColumns(Linear(), 2, 4))
    assert_allclose(mean(X), 0.5 * (RBF(0.3)(X[:, :2]) + X[:, 2:] @ X[:, 2:].T), rtol=1e-13)
    assert len((RBF(1.0) + (Linear() + Cosine())).kernels) == 3
    assert not (RBF(1.0) + Sigmoid(0.1)).is_psd


@given(X=arrays(np.float64, (5, 3), elements=st.floats(-1e3, 1e3)), gamma=st.floats(1e-6, 1e6))
def test_rbf_equals_its_formula_whatever_the_data(X, gamma):
    expected = np.exp(np.maximum(-gamma * cdist(X, X, "sqeuclidean"), -700.0))
    assert_allclose(RBF(gamma)(X), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF(0.0), "gamma must be a finite number > 0"),
        (lambda: RBF(math.nan), "gamma"),
        (lambda: RBF("1"), "gamma"),
        (lambda: RBF(True), "gamma"),
        (lambda: RBF(10**400), "gamma"),
        (lambda: RBF.from_sigma(1e200), "sigma = 1e\\+200 cannot be squared"),
        (lambda: RBF.from_sigma(1e-200), "sigma = 1e-200 cannot be squared"),
        (lambda: Polynomial(np.float64(2.0)), "degree"),
        (lambda: MeanRBF(1.0, ()), "powers"),
        (lambda: MeanRBF(1.0, (3, 1)), "powers"),
        (lambda: Laplacian(1.0, "cosine"), "distance"),
        (lambda: Polynomial(0), "degree must be an integer >= 1"),
        (lambda: Polynomial(2, 1.0, -1.0), "coef0"),
        (lambda: Scaled(-1.0, Linear()), "factor"),
        (lambda: Scaled(1.0, "linear"), "kernel must be a Kernel"),
        (lambda: Sum(()), "one or more"),
        (lambda: OnColumns(Linear(), 2, 2), "stop"),
        (lambda: OnColumns(Linear(), 0, 5)(np.ones((2, 3))), "columns 0:5"),
    ],
)
def test_invalid_parameters_are_rejected(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (lambda: RBF(np.float32(0.5)), RBF(0.5)),
        (lambda: RBF.from_sigma(np.float32(2.0)), RBF(0.125)),
        (lambda: Polynomial(np.int64(3), np.float32(0.5), np.int32(1)), Polynomial(3, 0.5, 1.0)),
        (lambda: MeanRBF(np.float32(0.5), np.array([1, 3])), MeanRBF(0.5, (1, 3))),
        (lambda: Sum([RBF(1.0), Linear()]), RBF(1.0) + Linear()),
        (lambda: np.float32(0.5) * Linear(), 0.5 * Linear()),
        (lambda: OnColumns(Linear(), np.int64(0), np.uint8(2)), OnColumns(Linear(), 0, 2)),
    ],
)
def test_numbers_of_numpy_are_numbers(given, plain):
    kernel = given()
    assert kernel == plain and repr(kernel) == repr(plain) and hash(kernel) == hash(plain)
    assert from_file(Holder(kernel)).kernel == plain


@pytest.mark.parametrize("factor", [1e200, 1e-200, 5e-324])
def test_cosine_of_rows_whose_squares_overflow(factor):
    X = np.array([[3.0, 4.0], [4.0, 3.0], [-4.0, 3.0], [0.0, 0.0]])
    expected = np.array([[1, 0.96, 0, 0], [0.96, 1, -0.28, 0], [0, -0.28, 1, 0], [0, 0, 0, 0]])
    assert_allclose(Cosine()(X * factor), expected, rtol=0, atol=1e-15)
    assert_allclose(Cosine().diagonal(X * factor), [1, 1, 1, 0], rtol=0, atol=1e-15)


def test_only_numbers_and_kernels_combine():
    with pytest.raises(TypeError):
        RBF(1.0) + 1.0
    with pytest.raises(TypeError):
        "2" * RBF(1.0)


LINEAR = {"type": "Linear"}


def _nested(depth):
    state = LINEAR
    for _ in range(depth):
        state = {"type": "Scaled", "factor": 1.0, "kernel": state}
    return state


@pytest.mark.parametrize(
    "state",
    [
        None,
        [],
        {},
        {"type": "object"},
        {"type": ["RBF"]},
        {"type": "RBF"},
        {"type": "RBF", "gamma": 1.0, "extra": 1},
        {"type": "RBF", "gamma": -1.0},
        {"type": "RBF", "gamma": None},
        {"type": "RBF", "gamma": 10**400},
        {"type": "Sum", "kernels": 3},
        {"type": "Scaled", "factor": 1.0, "kernel": {"type": "eval"}},
        _nested(100),
    ],
)
def test_a_damaged_state_is_refused(state):
    with pytest.raises(ModelFileError):
        model_from(Holder, {"type": "Holder", "kernel": state}, {})


@pytest.mark.parametrize("name", KERNELS)
def test_a_single_row_is_refused_with_the_way_to_write_it(name):
    X = normal_rows(3)
    with pytest.raises(ValueError, match=r"got an array of shape \(\d+,\): write x\[None\]"):
        KERNELS[name](X[0])
    with pytest.raises(ValueError):
        KERNELS[name](X, X[0])


@dataclass(frozen=True)
class Cauchy(Kernel):
    """A user-defined kernel with only the required methods."""

    width: float

    def against(self, Z, dtype=np.float64):
        return lambda X: (1.0 / (1.0 + cdist(X, Z, "sqeuclidean") / self.width)).astype(dtype)

    def diagonal(self, X):
        return np.ones(len(X))

    def describe(self):
        return "1 / (1 + |x - y|^2 / width)"


def test_a_kernel_of_ones_own_needs_no_change_in_the_engine():
    X, kernel = normal_rows(40), 0.5 * (OnColumns(Cauchy(2.0), 0, 3) + RBF(0.1))
    assert from_file(Holder(kernel)).kernel == kernel
    model = KernelPCA(3, kernel=kernel).fit(X)
    assert (
        model.preimage_ == "ridge" and model.inverse_transform(model.transform(X)).shape == X.shape
    )
    nystroem = KernelPCA(3, kernel=kernel, method="nystroem", n_landmarks=40).fit(X)
    assert nystroem.plan_.landmarks == "residual"
    assert_allclose(nystroem.eigenvalues_, model.eigenvalues_, rtol=1e-8)


def test_a_kernel_with_the_name_of_another_is_refused():
    with pytest.raises(ValueError, match=r"A kernel named RBF is defined in .*kernels.*: choose"):
        type("RBF", (Cauchy,), {})


def test_an_unknown_kernel_is_refused_with_what_to_do():
    with pytest.raises(ModelFileError, match=r"'Unheard'.* import the module that defines it"):
        model_from(Holder, {"type": "Holder", "kernel": {"type": "Unheard"}}, {})


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("rbf", {"sigma": 1.0}, RBF(0.5)),
        ("rbf", {}, RBF(0.25)),
        ("laplacian", {}, Laplacian(0.5)),
        ("poly", {}, Polynomial(3, 0.5, 1.0)),
        ("sigmoid", {"gamma": 2.0}, Sigmoid(2.0, 1.0)),
        ("linear", {}, Linear()),
        ("cosine", {}, Cosine()),
    ],
)
def test_names_stand_for_kernels(name, options, expected):
    X = np.array([[0.0, 0.0], [2.0, 0.0]])
    assert KernelPCA(1, kernel=name, **options).fit(X).kernel_ == expected
