"""Methods that look at fewer rows: cluster means, basic patterns."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF
from kpca_apps.papers.methods.fewer_rows import basic_patterns, mean_components
from tests.engine.examples import exact
from tests.papers.comparing import clouds

KERNEL = RBF(0.4)


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
