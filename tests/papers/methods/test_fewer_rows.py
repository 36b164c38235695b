"""Methods that look at fewer rows: a subset, cluster means, basic patterns, greedy choice."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.papers.methods.fewer_rows import (
    basic_pattern_components,
    basic_patterns,
    greedy_components,
    mean_components,
    subset_components,
)
from tests.engine.examples import exact
from tests.papers.comparing import clouds, largest_angle

KERNEL = RBF(0.4)


def error_of(subspace, X, q=5):
    """Largest relative error of the leading eigenvalues."""
    true = exact(KERNEL, X, q).variances
    return float(np.abs(subspace.variances[:q] / true - 1.0).max())


class TestSubset:
    def test_of_all_rows_is_exact(self):
        X = clouds(60)
        subspace, projections = subset_components(
            KERNEL, X, np.arange(60), np.random.default_rng(0), n_components=4
        )
        assert_allclose(subspace.variances, exact(KERNEL, X, 4).variances, rtol=1e-12)
        assert_allclose(projections.mean(axis=0), 0.0, atol=1e-12)

    def test_projections_follow_the_subset_alone(self):
        """Eq. 54 by hand: kernel values with the subset, centred by the subset's means."""
        X, subset = clouds(60), np.arange(0, 60, 3)
        _, projections = subset_components(
            KERNEL, X, subset, np.random.default_rng(0), n_components=3
        )
        part = KERNEL(X[subset])
        rows = KERNEL(X, X[subset])
        centred = rows - rows.mean(axis=1, keepdims=True) - part.mean(axis=0) + part.mean()
        H = np.eye(20) - 1.0 / 20
        values, vectors = np.linalg.eigh(H @ part @ H)
        expected = centred @ vectors[:, ::-1][:, :3] / np.sqrt(values[::-1][:3])
        assert_allclose(np.abs(projections), np.abs(expected), rtol=0, atol=1e-10)


class TestClusterMeans:
    def test_weights_are_repeated_rows(self):
        means = clouds(12)
        sizes = np.array([1, 4, 2, 3, 1, 1, 5, 2, 2, 1, 3, 1])
        weighted = mean_components(KERNEL, means, sizes)
        repeated = exact(KERNEL, np.repeat(means, sizes, axis=0))
        q = min(weighted.n_components, repeated.n_components)
        assert_allclose(weighted.variances[:q], repeated.variances[:q], rtol=1e-8)
        new = clouds(20, seed=1)
        assert_allclose(
            weighted.reconstruction_error(new), repeated.reconstruction_error(new), atol=1e-9
        )
        assert weighted.n == sizes.sum()

    @pytest.mark.parametrize("sizes", [[1.0], [1.0, 0.0], [1.0, np.nan]])
    def test_refuses_sizes_that_are_none(self, sizes):
        with pytest.raises(ValueError, match="sizes must hold 2 numbers"):
            mean_components(KERNEL, np.eye(2), sizes)


class TestBasicPatterns:
    def test_all_pairs_of_patterns_differ_and_all_rows_resemble_one(self):
        K = KERNEL(clouds())
        chosen = basic_patterns(K, 0.9)
        unit = K / np.linalg.norm(K, axis=1, keepdims=True)
        cosines = np.abs(unit @ unit[chosen].T)
        among = cosines[chosen] - np.eye(len(chosen))
        assert 3 < len(chosen) < 100
        assert among.max() < 0.9
        assert (cosines.max(axis=1) >= 0.9).all()

    def test_repeated_rows_are_taken_once(self):
        X = clouds(30)
        chosen = basic_patterns(KERNEL(np.vstack([X, X])), 1.0 - 1e-12)
        assert (chosen < 30).all()

    def test_with_all_patterns_components_are_exact(self):
        X = clouds(40)
        found = basic_pattern_components(KERNEL, X, 1.0, n_components=4)
        assert largest_angle(found, exact(KERNEL, X, 4)) < 1e-4
        assert error_of(found, X, 4) < 1e-6

    def test_more_patterns_come_nearer(self):
        X = clouds(150)
        errors = [
            error_of(basic_pattern_components(KERNEL, X, threshold), X)
            for threshold in (0.6, 0.9, 0.99)
        ]
        assert errors[0] > errors[1] > errors[2]

    def test_stops_where_it_is_told(self):
        assert len(basic_patterns(np.eye(5), 0.5, most=2)) == 2

    def test_refuses_a_threshold_that_is_no_cosine(self):
        with pytest.raises(ValueError, match="threshold"):
            basic_patterns(np.eye(2), 1.5)


class TestGreedy:
    def test_the_next_row_is_the_one_missed_most(self):
        X = clouds(50)
        found = greedy_components(KERNEL, X, 6)
        for count in range(1, 6):
            part = found.chosen[:count]
            K = KERNEL(X, X[part])
            missed = 1.0 - np.einsum("ij,ij->i", K, np.linalg.solve(KERNEL(X[part]), K.T).T)
            assert missed.argmax() == found.chosen[count]

    def test_what_is_missed_is_the_distance_to_the_span(self):
        X = clouds(50)
        found = greedy_components(Linear(), np.hstack([X, np.ones((50, 1))]), 2)
        basis, _ = np.linalg.qr(np.hstack([X, np.ones((50, 1))])[found.chosen].T)
        rows = np.hstack([X, np.ones((50, 1))])
        expected = ((rows - rows @ basis @ basis.T) ** 2).sum(axis=1)
        assert_allclose(found.missed, expected, atol=1e-10)

    def test_with_all_rows_components_are_exact(self):
        X = clouds(40)
        found = greedy_components(KERNEL, X, 40, n_components=4)
        assert largest_angle(found.subspace, exact(KERNEL, X, 4)) < 1e-4
        assert_array_equal(np.unique(found.chosen).size, len(found.chosen))
