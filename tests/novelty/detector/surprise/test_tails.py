import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.novelty.detector.surprise.tails import (
    ALLOWED,
    EXTREME_KNOTS,
    FLOOR,
    HEIGHTS,
    KNOTS,
    LARGEST_EXPONENT,
    SHARES,
    UPPER,
    TwoTails,
    UpperTail,
    exponential_tail,
)

SEEDS = st.integers(0, 10**6)


def values_of(seed, n):
    """Return values of a random shape: heavy or light tails, skewed, rounded."""
    rng = np.random.default_rng(seed)
    values = (rng.normal(size=n), rng.standard_t(1.5, n), rng.lognormal(0, 2, n))[seed % 3]
    return np.round(values, 1) if seed % 2 else values


@given(seed=SEEDS, n=st.integers(2, 300), of_logs=st.booleans())
def test_knots_are_quantiles_of_the_cells_that_are_seen(seed, n, of_logs):
    values, rng = np.stack([values_of(seed, n), values_of(seed + 1, n)]), np.random.default_rng(n)
    seen = rng.random(values.shape) < 0.7
    seen[:, 0] = True
    tails = TwoTails.fit(values, seen, of_logs=of_logs)
    places = 0.5 + 0.5 * np.r_[-SHARES[:0:-1], SHARES]
    for j in range(2):
        expected = np.quantile(values[j, seen[j]], places)
        np.testing.assert_allclose(tails.knots[j], expected, rtol=1e-12, atol=1e-12)
    unseen = np.where(seen, values, 1e9)
    np.testing.assert_array_equal(TwoTails.fit(unseen, seen, of_logs=of_logs).knots, tails.knots)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 3.0])
def test_beyond_the_knots_a_pareto_tail_is_met(exponent):
    """Lomax distribution: the share beyond a distance is (1 + distance / FLOOR)^-exponent."""
    n = 200_001
    share = 1.0 - np.abs(np.linspace(-1, 1, n))
    inside = share > 0
    heavy = FLOOR * (share[inside] ** (-1 / exponent) - 1)
    light = FLOOR * (share[inside] ** (-1 / (2 * exponent)) - 1)
    values = np.where(np.sign(np.linspace(-1, 1, n))[inside] < 0, -light, heavy)[None]
    tails = TwoTails.fit(values, np.ones_like(values, dtype=bool), of_logs=False)
    np.testing.assert_allclose(tails.exponents, [[2 * exponent, exponent]], rtol=2e-3)
    far = FLOOR * np.array([[1e3, 1e6, 1e9]])
    expected = exponent * np.log1p(far / FLOOR)
    np.testing.assert_allclose(tails(far), expected, rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(tails(-far), 2 * expected, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0])
def test_beyond_the_knots_logarithms_have_an_exponential_tail(scale):
    """Both sides are exponential: the share beyond a distance is exp(-distance / scale)."""
    quantile = np.linspace(-1, 1, 200_001)[1:-1]
    values = (-scale * np.sign(quantile) * np.log1p(-np.abs(quantile)))[None]
    tails = TwoTails.fit(values, np.ones_like(values, dtype=bool), of_logs=True)
    far = scale * np.array([[-100.0, -10.0, 10.0, 100.0]])
    np.testing.assert_allclose(tails(far), np.abs(far) / scale, rtol=2e-3)


def test_one_value_of_few_cannot_hide_behind_the_tail_it_stretches():
    """Three of 60 values lie beyond the last knot on each side; on the right, one is far out."""
    values = np.r_[-1.76, -1.75, -1.74, np.linspace(-1.6, 1.6, 54), 1.8, 2.0, 50.0][None]
    for of_logs in (False, True):
        tails = TwoTails.fit(values, np.ones_like(values, dtype=bool), of_logs=of_logs)
        surprise = tails(np.array([[-2.3, 50.0]]))[0]
        assert surprise[1] > surprise[0] + 2.0


@given(seed=SEEDS, n=st.integers(2, 300), of_logs=st.booleans())
def test_the_surprise_of_a_cell_grows_away_from_the_median(seed, n, of_logs):
    values = values_of(seed, n)[None]
    tails = TwoTails.fit(values, np.ones_like(values, dtype=bool), of_logs=of_logs)
    middle = tails.knots[0, len(SHARES) - 1]
    assert tails(np.array([[middle]])) == 0.0
    distance = np.sort(np.r_[np.abs(values[0] - middle), np.logspace(-3, 9, 60)])
    for side in (-1, 1):
        x = middle + side * distance
        surprise = tails(x[None])[0]
        assert (np.diff(surprise) >= 0).all()
        beyond = (x < tails.knots[0, 0]) | (x > tails.knots[0, -1])
        steps = np.diff(surprise[beyond])
        assert (steps[np.diff(distance[beyond]) > 1e-6 * distance[beyond][1:]] > 0).all()


@given(seed=SEEDS, n=st.integers(2, 300), of_logs=st.booleans())
def test_between_quantiles_surprise_is_interpolated(seed, n, of_logs):
    values = np.round(values_of(seed, n), seed % 4)
    tails = TwoTails.fit(values[None], np.ones((1, n), dtype=bool), of_logs=of_logs)
    knots, middle = tails.knots[0], len(SHARES) - 1
    x = np.r_[values, knots]
    x = x[(x >= knots[0]) & (x <= knots[-1])]
    expected = np.interp(x, knots[: middle + 1], HEIGHTS[: middle + 1])
    expected += np.interp(-x, -knots[: middle - 1 : -1], HEIGHTS[: middle - 1 : -1])
    np.testing.assert_array_equal(tails(x[None])[0], expected)


@given(seed=SEEDS, n=st.integers(2, 300), of_logs=st.booleans())
def test_both_sides_are_counted_alike(seed, n, of_logs):
    """Both sides count tied values and values at the median alike."""
    values = np.round(values_of(seed, n))[None]
    seen = np.ones_like(values, dtype=bool)
    tails, mirrored = (
        TwoTails.fit(values, seen, of_logs=of_logs),
        TwoTails.fit(-values, seen, of_logs=of_logs),
    )
    np.testing.assert_allclose(mirrored(-values), tails(values), rtol=1e-9, atol=1e-9)


def test_columns_that_end_sharply_have_the_largest_exponent_and_empty_ones_none():
    n = 20_000
    values = np.stack([np.repeat([0.0, 1.0], n // 2), np.arange(float(n))])
    seen = np.stack([np.ones(n, dtype=bool), np.zeros(n, dtype=bool)])
    tails = TwoTails.fit(values, seen, of_logs=False)
    assert (tails.exponents[0] == LARGEST_EXPONENT).all() and not tails.exponents[1].any()
    assert np.isfinite(tails(np.full((2, 3), [[0.5], [1e6]]))).all()


@given(seed=SEEDS, n=st.integers(1, 400))
def test_few_scores_are_counted_one_by_one(seed, n):
    scores = values_of(seed, n)
    tail = UpperTail.fit(scores, ends=True)
    brute = [-np.log((scores >= score).mean()) for score in scores]
    np.testing.assert_allclose(tail(scores), brute, atol=1e-12)
    assert tail(np.array([scores.min() - 1])) == 0.0
    assert tail(np.array([scores.max() + 1])) == tail(np.array([scores.max()]))


def test_of_many_scores_the_most_extreme_are_counted_and_the_others_nearly():
    scores = np.random.default_rng(0).lognormal(size=20_000)
    tail = UpperTail.fit(scores, ends=True)
    assert len(tail.knots) <= KNOTS
    ordered = np.sort(scores)
    brute = -np.log1p(-np.arange(20_000) / 20_000)
    surprise = tail(ordered)
    np.testing.assert_allclose(surprise[-EXTREME_KNOTS:], brute[-EXTREME_KNOTS:], rtol=1e-12)
    # Between two knots, the share of rows is interpolated. Its error is smaller than the share of
    # rows between the two knots, which is 1 / 447 of the rows below the highest scores.
    assert np.abs(np.exp(-surprise) - np.exp(-brute)).max() <= 1 / (KNOTS - EXTREME_KNOTS - 1)
    assert (np.diff(surprise) >= 0).all()


def test_an_exponential_tail_goes_through_its_quantiles():
    scores = np.random.default_rng(1).exponential(2.0, 50_000) + 7.0
    zero, slope = exponential_tail(scores, (0.9, 0.99))
    surprise = slope * (np.quantile(scores, (0.9, 0.99)) - zero)
    np.testing.assert_allclose(surprise, np.log([10, 100]))
    # The tail has -log P(score >= x) = (x - 7) / 2.
    assert (slope, zero) == (pytest.approx(0.5, rel=0.05), pytest.approx(7.0, rel=0.05))


def test_rows_that_all_score_alike_get_a_steep_tail_not_an_endless_one():
    tail = UpperTail.fit(np.full(40, 3.0))
    assert np.isfinite(tail(np.array([3.0, 3.1, 1e6]))).all() and tail(np.array([3.0])) < 1.0


@given(seed=SEEDS, n=st.integers(5, 300))
def test_far_beyond_the_others_a_score_is_rarer_than_one_in_n(seed, n):
    scores = values_of(seed, n)
    tail = UpperTail.fit(scores)
    counted, reach = UpperTail.fit(scores, ends=True), np.quantile(scores, UPPER)
    assert (tail(scores) >= counted(scores)).all()
    assert (np.diff(tail(np.sort(scores))) >= 0).all()
    far = np.array([scores.max() + k * (1 + np.ptp(scores) + np.ptp(reach)) for k in (100, 200)])
    assert np.log(n) < tail(far)[0] < tail(far)[1]
    assert (tail(far) >= tail.slope * (far - tail.zero) - ALLOWED).all()
    np.testing.assert_allclose(np.diff(tail(far)), tail.slope * np.diff(far))


def test_columns_that_are_alike_share_the_tails_of_all_their_cells():
    rng = np.random.default_rng(8)
    values, seen = rng.standard_t(4, (4, 60)), rng.random((4, 60)) < 0.9
    tails = TwoTails.fit(values, seen, of_logs=False, alike=np.array([1, 3]))
    each = TwoTails.fit(values, seen, of_logs=False)
    cells = np.r_[values[1, seen[1]], values[3, seen[3]]][None]
    both = TwoTails.fit(cells, np.ones(cells.shape, dtype=bool), of_logs=False)
    np.testing.assert_array_equal(tails.knots[[0, 2]], each.knots[[0, 2]])
    np.testing.assert_allclose(tails.knots[[1, 3]], np.repeat(both.knots, 2, axis=0))
    np.testing.assert_allclose(tails.exponents[[1, 3]], np.repeat(both.exponents, 2, axis=0))
