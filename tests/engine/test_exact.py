import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from kpca_apps.engine.kernels import RBF, Cosine, Laplacian, Linear, Polynomial, Sigmoid
from kpca_apps.engine.plan import FitOptions, plan_exact
from kpca_apps.errors import MemoryLimitError
from tests.engine.examples import ORACLES, exact, normal_rows

TINY = {
    "linear": Linear(),
    "poly_hom_d2": Polynomial(2),
    "poly_hom_d3": Polynomial(3),
    "poly_inhom_d2_c1": Polynomial(2, 1.0, 1.0),
    "poly_gamma0.5_c2_d3": Polynomial(3, 0.5, 2.0),
    "rbf_gamma0.5": RBF.from_sigma(1.0),
    "laplace_l2_0.5": Laplacian(0.5, "euclidean"),
    "laplace_l1_0.5": Laplacian(0.5, "manhattan"),
    "tanh_b0.5": Sigmoid(1.0, 0.5),
}


def assert_same_up_to_signs(actual, expected, atol):
    signs = np.sign(np.einsum("ij,ij->j", actual, expected))
    assert_allclose(actual * signs, expected, rtol=0, atol=atol)


def tiny_cases():
    with np.load(ORACLES / "tiny_kpca_mp50.npz") as oracle:
        cases = {tuple(key.split("|")[:2]) for key in oracle.files if "|" in key}
    return sorted(case for case in cases if case[0] in TINY)


@pytest.mark.parametrize(("name", "centring"), tiny_cases())
def test_tiny_oracles(name, centring):
    with np.load(ORACLES / "tiny_kpca_mp50.npz") as oracle:
        X, T = oracle["X"], oracle["T"]
        case = {k: oracle[f"{name}|{centring}|{k}"] for k in "K w A Ptr Pte Rtr Rte".split()}
    kernel, size = TINY[name], np.abs(case["w"][0])
    subspace = exact(kernel, X, center=centring == "centred")
    assert_allclose(kernel(X), case["K"], rtol=1e-14, atol=1e-14)
    assert_allclose(7 * subspace.variances, case["w"], rtol=0, atol=1e-10 * size)
    assert_same_up_to_signs(subspace.project(X), case["Ptr"], 1e-10 * size)
    assert_same_up_to_signs(subspace.project(T), case["Pte"], 1e-10 * size)
    if not kernel.is_psd:
        return
    largest = max(kernel.diagonal(np.vstack([X, T])).max(), 1.0)
    for q in range(len(case["w"]) + 1):
        for rows, expected in ((X, case["Rtr"]), (T, case["Rte"])):
            error = subspace.leading(q).errors()(rows)
            assert_allclose(error, expected[:, q], rtol=0, atol=1e-10 * largest)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("rbf0.2", RBF(0.2)),
        ("poly3", Polynomial(3, 1.0, 1.0)),
        ("linear", Linear()),
        ("sigmoid", Sigmoid(0.01)),
        ("cosine", Cosine()),
    ],
)
def test_iris_oracles(name, kernel):
    X = load_iris().data
    subspace = exact(kernel, X[0::2], n_components=4)
    with np.load(ORACLES / "sklearn_iris.npz") as oracle:
        values, train, test = (oracle[f"iris_{name}_{k}"] for k in ("eig", "train", "test"))
    # scikit-learn keeps only positive eigenvalues of an indefinite kernel; we sort by modulus.
    keep = subspace.variances > 0.0
    found = int(keep.sum())
    assert_allclose(75 * subspace.variances[keep], values[:found], rtol=1e-9)
    scale = np.abs(train).max()
    assert_same_up_to_signs(subspace.project(X[0::2])[:, keep], train[:, :found], 1e-9 * scale)
    assert_same_up_to_signs(subspace.project(X[1::2])[:, keep], test[:, :found], 1e-9 * scale)


def test_kernlabs_scale_is_root_n_times_ours():
    """kernlab divides eigenvectors by the root of the eigenvalue of K/n (Aguilera, Antonanzas)."""
    X = load_iris().data
    subspace = exact(RBF(0.2), X[0::2], n_components=4)
    with np.load(ORACLES / "sklearn_iris.npz") as oracle:
        values, rotated = (oracle[f"iris_rbf0.2_kernlab_{k}"] for k in ("eig", "rotated"))
    assert_allclose(subspace.variances, values, rtol=1e-9)
    projected = np.sqrt(75.0) * subspace.project(X[0::2])
    assert_same_up_to_signs(projected, rotated, 1e-9 * np.abs(rotated).max())


def hoffmann_cases():
    with np.load(ORACLES / "hoffmann_train_reconstruction_errors.npz") as oracle:
        return oracle.files


@pytest.mark.parametrize("key", hoffmann_cases())
def test_hoffmanns_reconstruction_errors(key, papers_folder):
    name, sigma, q = key.split("|")
    X = np.loadtxt(papers_folder / "hoffmann" / f"{name}.csv")
    kernel = RBF.from_sigma(float(sigma.removeprefix("sigma")))
    subspace = exact(kernel, X, n_components=int(q.removeprefix("q")))
    with np.load(ORACLES / "hoffmann_train_reconstruction_errors.npz") as oracle:
        assert_allclose(subspace.reconstruction_error(X), oracle[key], rtol=0, atol=1e-8)


def test_no_component_leaves_the_distance_to_the_mean():
    kernel, X, new = RBF(0.3), normal_rows(40), normal_rows(9, seed=1)
    subspace = exact(kernel, X, n_components=0)
    potential = 1.0 - 2.0 * kernel(new, X).mean(axis=1) + kernel(X).mean()
    assert_allclose(subspace.reconstruction_error(new), potential, rtol=1e-13)
    assert subspace.project(new).shape == (9, 0)


def test_a_wide_kernel_approaches_linear_pca():
    X, new, gamma = normal_rows(60), normal_rows(20, seed=1), 1e-5
    linear = exact(Linear(), X, n_components=2).reconstruction_error(new)
    wide = exact(RBF(gamma), X, n_components=2).reconstruction_error(new) / (2 * gamma)
    assert_allclose(wide, linear, rtol=0.01, atol=1e-3)


def test_a_narrow_kernel_gives_every_unseen_row_the_same_error():
    X = normal_rows(30)
    error = exact(RBF(1e6), X, n_components=29).reconstruction_error(normal_rows(9, seed=1))
    assert_allclose(error, 1.0 + 1.0 / 30, rtol=1e-12)


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((1, 2)),
        np.array([[0.0, 0.0], [1.0, 1.0]]),
        np.ones((20, 3)),
        np.repeat(normal_rows(5), 6, axis=0),
        normal_rows(6, d=40),
        np.hstack([normal_rows(30, 2), np.full((30, 1), 3.0) + 1e-17]),
    ],
    ids=["one row", "two rows", "all equal", "duplicates", "wide", "constant column"],
)
def test_degenerate_rows(X):
    subspace = exact(RBF(0.3), X)
    assert subspace.n_components <= len(np.unique(X, axis=0)) - 1
    assert_allclose(subspace.reconstruction_error(X), 0.0, atol=1e-12)


def test_refuses_before_it_allocates():
    rows = np.broadcast_to(np.zeros(2), (10**7, 2))
    with pytest.raises(MemoryLimitError, match=r"n = 10000000 rows needs .* method='nystroem'"):
        exact(RBF(1.0), rows, n_components=5)
    with pytest.raises(MemoryLimitError, match=r"0\.001 MB"):
        plan_exact(RBF(1.0), normal_rows(50), FitOptions(memory_budget=1000))
