import numpy as np
import pytest
from scipy.spatial.distance import pdist

from kpca_apps.engine.kernels.by_name import median_distance
from tests.engine.examples import normal_rows


def median(X, seed=0):
    return median_distance(X, np.random.default_rng(seed))


def test_is_the_median_of_all_pairs_of_a_small_table():
    X = normal_rows(40)
    assert median(X) == pytest.approx(np.median(pdist(X) ** 2))


def test_scales_with_the_data_and_ignores_where_they_lie():
    X = normal_rows(700)
    assert median(8.0 * X) == 64.0 * median(X)
    assert median(X + 1.0) == pytest.approx(median(X))


def test_duplicates_do_not_count():
    assert median(np.array([[0.0], [0.0], [0.0], [0.0], [3.0]])) == 9.0


@pytest.mark.parametrize("X", [np.ones((1, 2)), np.ones((5, 2)), np.full((3, 1), 1e-200)])
def test_equal_rows_give_one(X):
    assert median(X) == 1.0


def test_the_seed_decides():
    X = normal_rows(2000)
    assert median(X) == median(X) != median(X, seed=1)


def test_a_row_too_far_out_to_be_squared_leaves_the_median_alone():
    X = normal_rows(20)
    X[3] = 1e200
    assert median(X) < 100.0
