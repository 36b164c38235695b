from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpca_apps.engine.kernels import RBF
from kpca_apps.papers.measuring import best_threshold_accuracy, components, contours, plane_grid
from tests.papers.comparing import clouds


@pytest.mark.parametrize("seed", range(4))
def test_the_best_cuts_are_those_of_trying_all(seed):
    rng = np.random.default_rng(seed)
    values, labels = rng.normal(size=12), rng.permutation([0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2])
    order = np.argsort(values)
    hits = max(
        sum(
            (labels[order][a:b] == group).sum()
            for a, b, group in zip((0, i, j), (i, j, 12), groups, strict=True)
        )
        for i, j in [*combinations(range(13), 2), *((i, i) for i in range(13))]
        for groups in permutations(range(3))
    )
    assert best_threshold_accuracy(values, labels) == pytest.approx(hits / 12)


def test_no_cut_lies_between_equal_values():
    labels = np.array([0, 0, 1, 1])
    assert best_threshold_accuracy(np.zeros(4), labels) == 0.5
    assert best_threshold_accuracy(np.array([0.0, 1.0, 1.0, 2.0]), labels) == 0.75


def test_contours_are_projections_of_the_grid():
    X = clouds(40)
    subspace = components(RBF(0.3), X, 2)
    lines = contours("t", subspace, X, np.zeros(40, dtype=int))
    x, y, places = plane_grid(X)
    assert_array_equal(lines.x, x)
    assert lines.values.shape == (2, len(y), len(x))
    place = np.array([[x[7], y[11]]])
    assert_allclose(lines.values[:, 11, 7], subspace.project(place)[0], rtol=1e-10)
    assert (places.min(axis=0) < X.min(axis=0)).all() and (places.max(axis=0) > X.max(axis=0)).all()
