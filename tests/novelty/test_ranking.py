import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.novelty.ranking import novelty_order


def test_saturated_scores_are_ordered_by_distance():
    scores = np.array([1.0 + 1e-12, 0.2, 1.0, 1.0 - 1e-12])
    distance = np.array([5.0, 100.0, 50.0, 7.0])
    assert novelty_order(scores, lambda rows: distance[rows]).tolist() == [2, 3, 0, 1]


def test_distances_are_asked_for_shared_scores_only():
    asked = []

    def distances(rows):
        asked.extend(rows.tolist())
        return np.zeros(len(rows))

    novelty_order(np.array([3.0, 1.0, 1.0, 0.0]), distances)
    assert asked == [1, 2]


@given(st.lists(st.floats(0, 1e3, allow_subnormal=False), min_size=1, max_size=40).map(np.array))
def test_order_is_a_permutation_sorted_by_score(scores):
    order = novelty_order(scores, lambda rows: np.zeros(len(rows)))
    assert sorted(order.tolist()) == list(range(len(scores)))
    ordered = scores[order]
    assert np.all(ordered[1:] <= ordered[:-1] * (1 + 1e-7) + 1e-300)
