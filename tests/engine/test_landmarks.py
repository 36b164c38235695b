from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.landmarks import residual_landmarks, uniform_landmarks
from kpca_apps.engine.nystroem import LandmarkBasis

from .kernels import normal_rows


def drawn(X, m, seed=0, **options):
    return residual_landmarks(RBF(0.3), X, m, np.random.default_rng(seed), **options)


def test_uniform_draws_each_row_once():
    index = uniform_landmarks(100, 30, np.random.default_rng(0))
    assert len(set(index)) == 30 and (np.diff(index) > 0).all()
    assert_array_equal(uniform_landmarks(5, 9, np.random.default_rng(0)), np.arange(5))


@pytest.mark.parametrize("m", [1, 2, 7, 50])
def test_residual_draws_each_row_once(m):
    index = drawn(normal_rows(200), m)
    assert len(index) == m and (np.diff(index) > 0).all()


def test_asking_for_all_rows_gives_all_rows():
    assert_array_equal(drawn(normal_rows(20), 20), np.arange(20))


def test_the_seed_decides_and_the_number_of_workers_does_not():
    X = normal_rows(1500)
    assert_array_equal(drawn(X, 50), drawn(X, 50, n_jobs=2))
    assert set(drawn(X, 50)) != set(drawn(X, 50, seed=1))


def test_duplicates_give_fewer_landmarks():
    X = np.repeat(normal_rows(10), 100, axis=0)
    index = drawn(X, 400)
    assert len(index) < 400
    assert len(np.unique(X[index], axis=0)) == 10
    assert len(drawn(np.ones((50, 2)), 10)) == 5


def test_candidates_bound_the_rows_looked_at():
    assert len(drawn(normal_rows(300), 100, candidates=40)) == 40


def test_rows_the_first_half_misses_are_preferred():
    rng = np.random.default_rng(0)
    X = np.vstack([0.05 * rng.normal(size=(970, 2)), 10.0 * rng.normal(size=(30, 2))])
    chosen = [(drawn(X, 40, seed) >= 970).sum() for seed in range(5)]
    uniform = [
        (uniform_landmarks(1000, 40, np.random.default_rng(seed)) >= 970).sum() for seed in range(5)
    ]
    assert sum(chosen) > 5 * sum(uniform)


def test_they_miss_less_than_uniform_ones():
    X = np.random.default_rng(0).standard_t(3, size=(1500, 3))

    def missed(index):
        z = LandmarkBasis.from_cholesky(RBF(0.3), X[index]).features()(X)
        return (1.0 - (z**2).sum(axis=1)).mean()

    residual = np.mean([missed(drawn(X, 100, seed)) for seed in range(3)])
    uniform = np.mean(
        [missed(uniform_landmarks(1500, 100, np.random.default_rng(s))) for s in range(3)]
    )
    assert residual < 0.9 * uniform
