import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.novelty.ranking import novelty_order, novelty_ranks, top_rows


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


@given(
    n=st.integers(1, 400),
    n_values=st.integers(1, 400),
    rows_a_bucket=st.sampled_from([1, 7, 50, 1_000]),
)
def test_ranks_in_buckets_are_places_in_the_order_of_all_rows(n, n_values, rows_a_bucket):
    rng = np.random.default_rng([n, n_values])
    scores = rng.choice(rng.lognormal(size=n_values), n)
    # Rows that agree in eight digits only.
    scores *= 1 + rng.choice([0, 1e-12], n)
    far = rng.integers(0, 3, n).astype(float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kpca_apps.novelty.ranking.ROWS_A_BUCKET", rows_a_bucket)
        patch.setattr("kpca_apps.novelty.selection.ROWS_A_BLOCK", 32)
        ranks = novelty_ranks(scores, lambda rows: far[rows])
    order = novelty_order(scores, lambda rows: far[rows])
    np.testing.assert_array_equal(ranks[order], np.arange(1, n + 1))
    np.testing.assert_array_equal(top_rows(ranks, 5), order[:5])
