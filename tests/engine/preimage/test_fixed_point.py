import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis, subspace_from_sums
from kpca_apps.engine.preimage.fixed_point import (
    BLOCK,
    fixed_point,
    nearest_points,
    projection_norms,
)
from tests.engine.examples import ORACLES, PSD_KERNELS, exact, normal_rows

CASES = json.loads((ORACLES / "preimage_rbf_fixed_point.json").read_text(encoding="utf-8"))


def rho(subspace, T, Z):
    """The objective from all kernel values, independent of the code under test."""
    g = (T * subspace.gain) @ subspace.weights.T + subspace.mean_weights
    K = subspace.kernel(subspace.points)
    cross = (subspace.kernel(Z, subspace.points) * g).sum(axis=1)
    return subspace.kernel.diagonal(Z) - 2.0 * cross + ((g @ K) * g).sum(axis=1)


@pytest.mark.parametrize("name", sorted(CASES))
def test_oracles(name):
    start, q = (part.split("=")[1] for part in name.split(","))
    with np.load(ORACLES / "tiny_kpca_mp50.npz") as oracle:
        X, new = oracle["X"], oracle["T"]
    begin = (X if start[0] == "X" else new)[int(start[1:])][None]
    case = CASES[name]
    subspace = exact(RBF(0.5), X, n_components=int(q))
    T = subspace.project(begin)
    assert_allclose(subspace.expansion(T)[0], np.array(case["coef"], float), rtol=0, atol=1e-12)
    found = fixed_point(subspace, T, begin, tolerance=1e-13, max_iter=2000)
    assert found.converged.all() and not found.restarted.any()
    assert_allclose(found.points[0], np.array(case["z"], float), rtol=0, atol=1e-10)
    assert_allclose(found.residual[0], float(case["rho"]), rtol=0, atol=1e-12)
    # Allow a few rounding errors of values near 1.
    assert found.residual[0] <= float(case["rho_at_start"]) + 1e-14


@pytest.mark.parametrize("name", sorted(PSD_KERNELS))
def test_nearest_points_and_norms_are_those_of_the_whole_matrix(name):
    kernel, X = PSD_KERNELS[name], normal_rows(40)
    subspace = exact(kernel, X, n_components=3).with_soft_cut(0.1)
    T = subspace.project(normal_rows(6, seed=1))
    g = subspace.expansion(T)
    K = subspace.kernel(X)
    norms = ((g @ K) * g).sum(axis=1)
    assert_allclose(projection_norms(subspace, T), norms, rtol=1e-9)
    distances = subspace.kernel.diagonal(X) - 2.0 * g @ K
    ordered = np.take_along_axis(distances, nearest_points(subspace, T, 4), axis=1)
    assert_allclose(ordered, np.sort(distances, axis=1)[:, :4], rtol=1e-8, atol=1e-9)


def test_landmarks_serve_as_well_as_rows():
    X, new = normal_rows(300, 3), normal_rows(10, 3, seed=1)
    basis = LandmarkBasis.from_eigen(RBF(0.1), X[:80])
    subspace = subspace_from_sums(basis, CovarianceSums.of_rows(basis, X), n_components=6)
    T = subspace.project(new)
    found = fixed_point(subspace, T, new)
    assert_allclose(found.residual, rho(subspace, T, found.points), atol=1e-9)
    reference = exact(RBF(0.1), X, n_components=6)
    other = fixed_point(reference, reference.project(new), new)
    assert_allclose(found.points, other.points, atol=0.05)


def test_a_start_far_from_all_points_does_not_divide_zero_by_zero():
    X = normal_rows(30, 2)
    subspace = exact(RBF(5.0), X, n_components=4)
    far = np.array([[1e3, -1e3], [40.0, 0.0]])
    found = fixed_point(subspace, subspace.project(far), far)
    assert np.isfinite(found.points).all()
    assert (found.residual <= rho(subspace, subspace.project(far), far) + 1e-9).all()


def test_a_vanishing_denominator_is_restarted_and_flagged():
    # Midway between two points of opposite weights, the two terms of the denominator cancel.
    X = np.array([[-1.0], [1.0]])
    subspace = exact(RBF(1.0), X, center=False)
    T = (X[[0]] * 0.0) + np.array([[0.0, 1.0]])
    assert_allclose(np.abs(subspace.weights[:, 1] @ [1.0, 1.0]), 0.0, atol=1e-12)
    found = fixed_point(subspace, T, np.zeros((1, 1)))
    assert found.restarted.all()
    assert_allclose(found.residual, rho(subspace, T, found.points), rtol=1e-9)
    assert found.residual[0] < rho(subspace, T, np.zeros((1, 1)))[0]


def test_an_unfinished_iteration_gives_a_warning():
    subspace = exact(RBF(0.2), normal_rows(60), n_components=8)
    new = normal_rows(20, seed=1)
    found = fixed_point(subspace, subspace.project(new), new, max_iter=2)
    assert not found.converged.any()
    assert_array_equal(found.iterations, 2)


def test_no_rows_and_no_components():
    X = normal_rows(20)
    subspace = exact(RBF(0.2), X)
    assert fixed_point(subspace, np.empty((0, subspace.n_components))).points.shape == (0, 4)
    found = fixed_point(subspace.leading(0), np.empty((2, 0)), X[:2])
    assert found.converged.all()
    assert_allclose(found.points[0], found.points[1], atol=1e-4)


def test_a_row_gets_the_same_bits_alone_and_among_others_that_take_longer():
    X, new = normal_rows(120), normal_rows(2 * BLOCK + 50, seed=1) * 1.5
    subspace = exact(RBF(0.2), X, n_components=8)
    T = subspace.project(new)
    found = fixed_point(subspace, T, new)
    assert_array_equal(fixed_point(subspace, T, new, n_jobs=3).points, found.points)
    some = np.argsort(found.iterations, kind="stable")[[0, 7, len(new) // 2, -2, -1]]
    alone = fixed_point(subspace, T[some], new[some])
    assert found.iterations[some].max() > found.iterations[some].min() + 5
    for name in ("points", "iterations", "residual", "converged"):
        assert_array_equal(getattr(alone, name), getattr(found, name)[some])


class Counting(RBF):
    """An RBF kernel that counts the values it computes."""

    counted = 0

    def against(self, Z, dtype=np.float64):
        values = super().against(Z, dtype)

        def rows(X):
            Counting.counted += len(X) * len(Z)
            return values(X)

        return rows


@pytest.mark.parametrize("preimage", ["fixed-point", "gradient"])
def test_the_distances_of_all_points_are_computed_once_a_fit(preimage):
    n = 1500
    model = KernelPCA(5, kernel=Counting(0.1), method="exact", preimage=preimage)
    X = normal_rows(n)
    T = model.fit(X).transform(X[:3])
    Counting.counted = 0
    first, before = model.inverse_transform(T[:1]), Counting.counted
    second, after = model.inverse_transform(T[:1]), Counting.counted - before
    found = model.preimages(T[:1])
    # The second call computes kernel values only for a few rows per step, against all points.
    assert before - after >= n * n
    if preimage == "fixed-point":
        assert after < n * n / 20
    assert_array_equal(first, second)
    assert_array_equal(second, found.points)
    # The cache of kernel values belongs to the fit: refitting replaces it.
    other = model.fit(X[:100] + 1.0)
    assert_allclose(other.inverse_transform(other.transform(X[:1])), X[:1], atol=3.0)
    assert len(pickle.dumps(model)) < 1.05 * len(pickle.dumps(KernelPCA(5, gamma=0.1).fit(X[:100])))


def test_concurrent_threads_get_the_same_result():
    subspace = exact(RBF(0.1), normal_rows(400), n_components=5)
    T = subspace.project(normal_rows(8, seed=1))
    expected = fixed_point(exact(RBF(0.1), normal_rows(400), n_components=5), T).points
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda row: fixed_point(subspace, row[None]).points[0], T))
    assert_array_equal(found, expected)
    assert_array_equal(fixed_point(pickle.loads(pickle.dumps(subspace)), T).points, expected)
