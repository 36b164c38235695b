import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from kpca_apps.engine.landmarks import (
    CANDIDATES,
    LANDMARKS,
    cluster_centres,
    draw_landmarks,
    drawing_bytes,
    residual_landmarks,
    uniform_landmarks,
)
from kpca_apps.engine.linalg.cholesky import greedy_pivots, random_pivots
from kpca_apps.engine.nystroem import LandmarkBasis, Missed
from kpca_apps.engine.plan import FitOptions, choose_regime
from kpca_apps.errors import MemoryLimitError
from tests.engine.examples import normal_rows


def drawn(X, m, seed=0, **options):
    return residual_landmarks(RBF(0.3), X, m, np.random.default_rng(seed), **options)


def test_duplicates_give_fewer_landmarks():
    X = np.repeat(normal_rows(10), 100, axis=0)
    index = drawn(X, 400)
    assert len(index) < 400
    assert len(np.unique(X[index], axis=0)) == 10 and len(drawn(np.ones((50, 2)), 10)) == 5


def test_candidates_bound_the_rows_looked_at(monkeypatch):
    monkeypatch.setitem(CANDIDATES, "residual", 150)
    pool = uniform_landmarks(300, 150, np.random.default_rng(0))
    assert np.isin(drawn(normal_rows(300), 100), pool).all()


@pytest.mark.parametrize("kind", LANDMARKS)
def test_every_method_draws_the_requested_number_by_seed(kind):
    X = normal_rows(700)
    (first, numbers), (again, _) = (
        draw_landmarks(kind, RBF(0.3), X, 60, np.random.default_rng(3), n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    assert first.shape == (60, 4) == np.unique(first, axis=0).shape
    assert numbers is None if kind == "kmeans" else (np.diff(numbers) > 0).all()
    assert_array_equal(first, again)
    points, index = draw_landmarks(kind, RBF(0.3), X[:9], 60, np.random.default_rng(0))
    assert_array_equal(points, X[:9])
    assert_array_equal(index, np.arange(9))


@pytest.mark.parametrize("kind", ["kmeans", "rpcholesky", "residual"])
def test_learned_landmarks_miss_less_than_uniform_ones(kind):
    X = np.random.default_rng(0).standard_t(5, size=(1500, 4))

    def missed(way):
        points = [
            draw_landmarks(way, RBF(0.1), X, 80, np.random.default_rng(seed))[0]
            for seed in range(3)
        ]
        bases = [LandmarkBasis.from_eigen(RBF(0.1), Z) for Z in points]
        return np.mean([Missed.of_rows(basis, X).share for basis in bases])

    assert missed(kind) < 0.95 * missed("uniform")


@pytest.mark.parametrize(("kind", "m", "d"), [("kmeans", 30, 300), ("rpcholesky", 300, 5)])
def test_drawing_takes_the_estimated_memory(kind, m, d, monkeypatch):
    monkeypatch.setitem(CANDIDATES, kind, 5000)
    X, kernel = normal_rows(5500, d), RBF(1.0 / d)
    draw_landmarks(kind, kernel, X[:60], 5, np.random.default_rng(0))
    tracemalloc.start()
    draw_landmarks(kind, kernel, X, m, np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.75 * peak <= drawing_bytes(kind, 5500, m, d) <= 1.25 * peak


def test_drawing_beyond_the_budget_is_refused():
    X = normal_rows(5500, 300)
    options = FitOptions(method="nystroem", n_landmarks=30, memory_budget=12 * 10**6)
    with pytest.raises(MemoryLimitError, match=r"13\.2 MB"):
        choose_regime(RBF(0.01), X, options)
    choose_regime(RBF(0.01), X, replace(options, landmarks="uniform"))


def test_greedy_pivots_are_those_of_pivoted_cholesky():
    X = normal_rows(60)
    residual, expected = np.exp(-0.3 * cdist(X, X, "sqeuclidean")), []
    for _ in range(20):
        pivot = int(np.diag(residual).argmax())
        expected.append(pivot)
        column = residual[:, pivot] / np.sqrt(residual[pivot, pivot])
        residual = residual - np.outer(column, column)
    assert_array_equal(greedy_pivots(RBF(0.3), X, 20), expected)


def test_random_pivots_are_drawn_in_proportion_to_what_is_missed():
    # The rows are oblique: the first pivot removes part of the other rows' residuals.
    X, rng = np.array([[1.2, 0.0, 0.0], [1.0, 1.2, 0.0], [1.5, 0.0, 0.8]]), np.random.default_rng(0)
    K, n = X @ X.T, 1000
    draws = [tuple(random_pivots(Linear(), X, 2, rng)) for _ in range(n)]
    for first in range(3):
        left = np.diag(K) - K[:, first] ** 2 / K[first, first]
        for second in {0, 1, 2} - {first}:
            chance = K[first, first] / np.trace(K) * left[second] / left.sum()
            found = draws.count((first, second)) / n
            assert abs(found - chance) < 4.0 * np.sqrt(chance * (1.0 - chance) / n)


def test_pivots_end_where_they_span_the_rest():
    X = np.repeat(normal_rows(10), 30, axis=0)
    assert len(random_pivots(RBF(0.3), X, 50, np.random.default_rng(0))) == 10
    assert len(greedy_pivots(RBF(0.3), X, 50)) == 10
    few = random_pivots(RBF(0.01), normal_rows(300), 99, np.random.default_rng(0), tolerance=0.05)
    assert 1 < len(few) < 40


def test_rounds_of_clustering_bring_centres_nearer():
    X = normal_rows(800)

    def spread(rounds):
        centres = cluster_centres(X, 40, np.random.default_rng(0), rounds=rounds)
        return (cdist(X, centres, "sqeuclidean").min(axis=1)).mean()

    assert spread(10) < spread(2) < spread(0)
    lone = np.vstack([np.zeros((50, 2)), np.full((1, 2), 9.0)])
    centres = cluster_centres(lone, 51, np.random.default_rng(0))
    assert_allclose(np.unique(centres.round(9), axis=0), [[0, 0], [9, 9]], atol=1e-12)


@pytest.mark.parametrize("exponent", [160, -160, 300])
def test_cluster_centres_do_not_depend_on_the_unit(exponent):
    X, unit = normal_rows(300), float(np.ldexp(1.0, exponent))
    usual, _ = draw_landmarks("kmeans", RBF(1.0), X, 20, np.random.default_rng(0))
    other, _ = draw_landmarks("kmeans", RBF(1.0), X * unit, 20, np.random.default_rng(0))
    assert np.array_equal(other, usual * unit)


@pytest.mark.parametrize("landmarks", ["residual", "uniform"])
def test_a_row_the_kernel_overflows_on_is_refused_wherever_it_is(landmarks):
    X = normal_rows(200)
    X[150, 1] = 1e160
    for options in ({"kernel": "poly"}, {"kernel": Polynomial(2)}):
        model = KernelPCA(2, method="nystroem", landmarks=landmarks, n_landmarks=9, **options)
        with pytest.raises(ValueError, match="overflows"):
            model.set_params(random_state=0).fit(X)
        model.fit(X[:100])
        with pytest.raises(ValueError, match="overflows"):
            model.partial_fit(X[100:])
