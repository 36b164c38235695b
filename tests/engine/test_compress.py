import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpca_apps.engine.compress import reduced_set, square_expansion
from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Polynomial, Sigmoid
from tests.engine.examples import ORACLES, PSD_KERNELS, curved_rows, exact, normal_rows


def distances(before, after):
    """Distances between the components, and means, of two subspaces, from all kernel values."""
    U, V = (np.column_stack([s.weights, s.mean_weights]) for s in (before, after))
    both = np.vstack([before.points, after.points])
    difference = np.vstack([U, -V])
    squares = np.einsum("ia,ij,ja->a", difference, before.kernel(both), difference)
    return np.sqrt(np.maximum(squares, 0.0))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kernel", PSD_KERNELS.values(), ids=PSD_KERNELS.keys())
def test_stated_distances_are_those_in_feature_space(kernel, center):
    before = exact(kernel, normal_rows(50), n_components=3, center=center)
    found = reduced_set(before, 8, max_iter=10)
    after = found.subspace
    stated = np.append(found.component_distances, found.mean_distance)
    scale = np.sqrt(max(before.mean_norm, 1.0))
    assert_allclose(stated, distances(before, after), rtol=1e-6, atol=3e-7 * scale)
    gram = after.weights.T @ after.kernel(after.points) @ after.weights
    assert_allclose(gram, np.eye(3), rtol=0, atol=1e-8)


def test_components_of_the_squared_inner_product_lose_nothing_about_their_mean():
    X, new = normal_rows(90), normal_rows(20, seed=1)
    before = exact(Polynomial(2, 0.3), X, n_components=2)
    after = reduced_set(before, 12).subspace  # 12 = 4 columns x (2 components + the mean)
    assert len(after.points) <= 12
    assert_allclose(after.project(new), before.project(new), rtol=0, atol=1e-12)
    error = before.reconstruction_error(new)
    assert_allclose(after.reconstruction_error(new), error, rtol=1e-10)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_points_do_not_depend_on_the_size_of_the_kernel(factor):
    X, kernel = curved_rows(100), Polynomial(3, 0.1, 1.0)
    subspaces = (exact(k, X, n_components=3) for k in (kernel, factor * kernel))
    plain, scaled = (reduced_set(subspace, 10, max_iter=0) for subspace in subspaces)
    assert_array_equal(scaled.subspace.points, plain.subspace.points)


def test_more_points_lie_nearer_and_moving_brings_them_nearer():
    before = exact(RBF(0.05), curved_rows(500)[:400], n_components=6)
    sizes = (6, 12, 25, 50, 100)
    still, moved = ([reduced_set(before, m, max_iter=steps) for m in sizes] for steps in (0, 50))
    for sets in (still, moved):
        assert (np.diff([s.component_distances.mean() for s in sets]) < 0.0).all()
    for a, b in zip(still, moved, strict=True):
        assert b.component_distances.mean() < a.component_distances.mean()


def test_changes_keep_within_the_bound_that_the_distances_give():
    X, new = curved_rows(300)[:200], curved_rows(300)[200:]
    before = exact(RBF(0.05), X, n_components=6)
    found = reduced_set(before, 20)
    change = np.abs(found.subspace.project(new) - before.project(new))
    from_mean = np.sqrt(before.leading(0).reconstruction_error(new))
    assert (change <= (from_mean[:, None] * found.component_distances + found.mean_distance)).all()


def test_the_selection_is_that_of_brute_force():
    X = normal_rows(30)
    before = exact(RBF(0.3), X, n_components=2)
    K = RBF(0.3)(X)
    spread = np.sqrt(before.variances.sum())
    targets = np.column_stack([spread * before.weights, before.mean_weights])

    def explained(chosen):
        inner = K[chosen] @ targets
        return np.trace(inner.T @ np.linalg.solve(K[np.ix_(chosen, chosen)], inner))

    expected = []
    for _ in range(5):
        rest = [row for row in range(30) if row not in expected]
        expected.append(max(rest, key=lambda row: explained([*expected, row])))
    assert_array_equal(reduced_set(before, 5, max_iter=0).subspace.points, X[expected])


def test_simple_components_need_few_points():
    X = np.repeat(normal_rows(6), 10, axis=0)
    found = reduced_set(exact(RBF(0.3), X, n_components=3), 40, max_iter=0)
    assert len(found.subspace.points) == 6 and found.component_distances.max() < 1e-6


@pytest.mark.parametrize(
    ("kernel", "m", "message"),
    [
        (RBF(0.1), 4, "from 5 to 20; got 4"),
        (RBF(0.1), 21, "from 5 to 20; got 21"),
        (Sigmoid(0.1), 10, "indefinite"),
    ],
)
def test_what_cannot_be_reduced_is_refused(kernel, m, message):
    with pytest.raises(ValueError, match=message):
        reduced_set(exact(kernel, normal_rows(20), n_components=5), m)


@pytest.mark.parametrize("preimage", ["auto", "ridge"])
def test_a_compressed_model_serves_like_its_original(preimage):
    X, new = curved_rows(400)[:300], curved_rows(400)[300:]
    model = KernelPCA(4, gamma=0.05, preimage=preimage, random_state=0).fit(X)
    smaller = model.compress(80)
    assert len(model.subspace_.points) == 300 and len(smaller.subspace_.points) == 80
    assert np.abs(smaller.transform(new) - model.transform(new)).max() < 0.02
    assert smaller.inverse_transform(smaller.transform(new)).shape == new.shape
    assert smaller.reduced_set_.describe().startswith("80 points, components off by")
    assert not hasattr(smaller.fit(X), "reduced_set_")


def test_rows_cannot_be_added_to_a_compressed_model():
    model = KernelPCA(2, gamma=0.1, method="nystroem", n_landmarks=20).fit(normal_rows(100))
    with pytest.raises(ValueError, match="keeps no sums"):
        model.compress(10).partial_fit(normal_rows(10))


def test_a_component_has_the_points_of_the_oracle():
    with np.load(ORACLES / "tiny_kpca_mp50.npz") as tiny:
        X = tiny["X"]
    known = json.loads((ORACLES / "misc_exact.json").read_text(encoding="utf-8"))
    oracle = known["reduced_set_exact_poly2"]
    fitted = exact(Polynomial(2), X, n_components=1)
    assert_allclose(fitted.weights[:, 0], oracle["alpha_centred_comp1"], rtol=1e-12)
    points, beta = square_expansion(X, fitted.weights[:, 0])
    order = np.argsort(beta)
    assert_allclose(beta[order], oracle["beta"], rtol=1e-12)
    # The kernel (x.y)^2 does not distinguish a point from its mirror image.
    signs = np.sign(np.einsum("ij,ij->i", points[order], oracle["Z_rows"]))
    assert_allclose(signs[:, None] * points[order], oracle["Z_rows"], rtol=1e-12)


def test_rows_in_a_plane_need_two_points_a_component():
    X = np.random.default_rng(0).normal(size=(30, 2)) @ np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    assert len(square_expansion(X, np.ones(30))[0]) == 2


@pytest.mark.parametrize("kernel", [RBF(1.0), Polynomial(3), Polynomial(2, 1.0, 1.0)])
def test_other_kernels_have_no_such_points(kernel):
    found = reduced_set(exact(kernel, normal_rows(30), n_components=2), 8, max_iter=0)
    assert found.component_distances.min() > 1e-3
