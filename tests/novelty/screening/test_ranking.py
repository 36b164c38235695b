import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.novelty.screening.options import ScreeningOptions
from kpca_apps.novelty.screening.ranking import novelty_order, novelty_ranks, top_rows
from kpca_apps.novelty.screening.screening import screen_table

UNEXPLAINED = ScreeningOptions(explain=0)
ONE_KERNEL = ScreeningOptions(explain=0, kernel="rbf")


def test_equal_scores_are_ordered_by_distance_and_no_others():
    scores = np.array([1.0 - 1e-15, 0.2, 1.0, 1.0 + 1e-15, 1.0])
    distance = np.array([500.0, 100.0, 5.0, 7.0, 50.0])
    assert novelty_order(scores, lambda rows: distance[rows]).tolist() == [3, 4, 2, 0, 1]


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
    assert np.all(np.diff(scores[order]) <= 0)


@given(n=st.integers(1, 400), n_values=st.integers(1, 400))
def test_ranks_are_places_by_score_then_distance_then_row(n, n_values):
    rng = np.random.default_rng([n, n_values])
    scores = rng.choice(rng.lognormal(size=n_values), n)
    # Rows that agree in eight digits only, and rows that are equal.
    scores *= 1 + rng.choice([0, 1e-12], n)
    far = rng.integers(0, 3, n).astype(float)
    ranks = novelty_ranks(scores, lambda rows: far[rows])
    order = np.array(sorted(range(n), key=lambda row: (-scores[row], -far[row], row)))
    np.testing.assert_array_equal(ranks[order], np.arange(1, n + 1))
    np.testing.assert_array_equal(top_rows(ranks, 5), order[:5])


@st.composite
def mixed_frames(draw: st.DrawFn) -> pl.DataFrame:
    """Numbers on a coarse grid beside a category, some absurd: equal rows and far ones abound."""
    n, seed = draw(st.integers(12, 60)), draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, draw(st.integers(1, 4)))).round(draw(st.integers(0, 3)))
    far = rng.random(numbers.shape) < draw(st.sampled_from([0.0, 0.05, 0.2]))
    numbers[far] *= 10.0 ** rng.integers(1, 9, far.sum())
    frame = pl.DataFrame(numbers, schema=[f"x{i}" for i in range(numbers.shape[1])])
    return frame.with_columns(kind=pl.Series(rng.choice(["a", "b", "c"], n)), y=rng.normal(size=n))


@settings(max_examples=15, deadline=None)
@given(
    frame=mixed_frames(), options=st.sampled_from([UNEXPLAINED, ONE_KERNEL]), split=st.booleans()
)
def test_no_rank_contradicts_a_score(frame, options, split):
    reference = frame[::2] if split else None
    result = screen_table(frame, reference=reference, options=options)
    assert sorted(result.ranks.tolist()) == list(range(1, len(frame) + 1))
    listed = np.argsort(result.ranks)
    assert np.all(np.diff(result.scores[listed]) <= 0)
    assert not np.any(np.diff(result.flagged[listed].astype(int)) > 0)
    if result.rarities is not None:
        assert np.all(np.diff(result.rarities[listed]) >= 0)


def _scores_of_equal_rows(frame, reference):
    frame = frame.drop("y")
    scores = screen_table(frame, reference=reference, options=UNEXPLAINED).scores
    found = frame.with_columns(score=pl.Series(scores)).group_by(frame.columns)
    return found.agg(pl.col("score").n_unique())["score"]


@settings(max_examples=10, deadline=None)
@given(frame=mixed_frames())
def test_equal_rows_share_a_score(frame):
    assert (_scores_of_equal_rows(frame, frame[::2].drop("y")) == 1).all()


def test_equal_rows_that_were_learned_from_share_a_score():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50), "y": 0.0})
    frame = pl.concat([frame, frame[:20]])
    assert (_scores_of_equal_rows(frame, None) == 1).all()


@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(20, 150),
    n_columns=st.integers(1, 6),
    spread=st.sampled_from([1.0, 5.0, 20.0]),
    common=st.sampled_from([0.0, 10.0]),
    seed=st.integers(0, 10**6),
)
def test_a_value_ten_times_off_ranks_above_one_twice_off(n, n_columns, spread, common, seed):
    rng = np.random.default_rng(seed)
    rows = 100 + common * rng.normal(size=(n, 1)) + spread * rng.normal(size=(n, n_columns))
    column, slipped = rng.integers(n_columns), rng.integers(n)
    pair = rows[[slipped, slipped]]
    pair[:, column] *= (2.0, 10.0)
    kinds = rng.choice(["a", "b"], n)
    frame = pl.DataFrame(np.vstack([rows, pair])).with_columns(
        kind=pl.Series([*kinds, kinds[slipped], kinds[slipped]])
    )
    *_, twice, ten_times = screen_table(frame, options=UNEXPLAINED).ranks
    assert ten_times < twice
