import numpy as np
import pytest

from kpca_apps.novelty.detector.surprise.features import BULK, DEGREE, FEWEST, AdditiveFeatures
from kpca_apps.novelty.detector.views import ColumnRoles


def fit(X, as_is=None, groups=None):
    return AdditiveFeatures.fit(X, ColumnRoles.of(X.shape[1], as_is, groups))


def columns_of(seed, n=300):
    """Return a normal, a heavy-tailed and a skewed column, and one far from 0."""
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.normal(size=n), rng.standard_t(1.2, n), rng.lognormal(0, 2, n), 1e6 + rng.random(n)]
    )


def test_polynomials_are_standardised_and_the_first_is_the_number_on_its_scale():
    X = columns_of(0)
    features = fit(X)
    rows = features(X)
    assert rows.features.shape == (300, 4 * DEGREE)
    np.testing.assert_allclose(rows.features.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(rows.features.std(axis=0), 1.0, rtol=1e-9)
    assert rows.free.all()
    for j, column in enumerate(X.T):
        first = rows.features[:, features.polynomial[j]]
        inside = (column > np.quantile(column, BULK[0])) & (column < np.quantile(column, BULK[1]))
        np.testing.assert_allclose(rows.value[j, inside], first[inside], rtol=1e-9, atol=1e-9)
        # Features are clipped beyond the bulk of their column. `value` is not clipped: it increases
        # with the column and is at least as far from 0 as the feature.
        assert (np.diff(rows.value[j, np.argsort(column)]) >= 0).all()
        assert (np.abs(first) <= np.abs(rows.value[j]) + 1e-9).all()


def test_frequent_values_become_indicators_and_leave_the_scale():
    rng = np.random.default_rng(3)
    rain = np.where(rng.random(400) < 0.6, 0.0, rng.exponential(size=400))
    two = np.where(rng.random(400) < 0.3, -1.0, np.where(rng.random(400) < 0.6, 5.0, rain))
    X = np.column_stack([rain, two])
    features = fit(X)
    rows = features(X)
    assert features.source.tolist() == [0, 1, 1] and features.equals.tolist() == [0.0, -1.0, 5.0]
    assert features.state.tolist() == [0, 1, 1]
    for at, j, value in zip(features.indicator, features.source, features.equals, strict=True):
        np.testing.assert_array_equal(rows.features[:, at], X[:, j] == value)
    often = np.array([rain == 0.0, (two == -1.0) | (two == 5.0)])
    np.testing.assert_array_equal(rows.free, ~often)
    assert not rows.value[often].any()
    polynomials = features.polynomial[:, None] + np.arange(DEGREE)
    for j in range(2):
        of_column = rows.features[:, polynomials[j]]
        assert not of_column[often[j]].any()
        np.testing.assert_allclose(of_column[~often[j]].mean(axis=0), 0.0, atol=1e-9)
        np.testing.assert_allclose(of_column[~often[j]].std(axis=0), 1.0, rtol=1e-9)


def test_constant_columns_have_no_feature_and_two_valued_ones_a_single_indicator():
    rng = np.random.default_rng(4)
    few = np.r_[np.zeros(200), rng.normal(size=FEWEST - 1)]
    n = len(few)
    X = np.column_stack([np.full(n, 3.0), np.arange(n) % 7 == 0, few, rng.normal(size=n)])
    features = fit(X)
    # Without its frequent value 0, column 2 has too few values for a scale.
    assert features.number.tolist() == [3] and features.source.tolist() == [1, 2]
    assert features.group.tolist() == [1, 2, 3, 3, 3]
    np.testing.assert_array_equal(features(X).features[:, 0], X[:, 1] == 0)


def test_indicators_of_a_category_are_one_state_and_keep_their_height():
    rng = np.random.default_rng(5)
    level, height = rng.integers(0, 3, 200), 0.7
    X = np.column_stack([rng.normal(size=200), height * np.eye(3)[level]])
    features = fit(X, as_is=[1, 2, 3], groups=[np.array([0]), np.array([1, 2, 3])])
    assert np.isnan(features.equals).all()
    assert features.state.tolist() == [0, 0, 0] and features.group.tolist() == [0, 0, 0, 1, 1, 1]
    np.testing.assert_array_equal(features(X).features[:, features.indicator], X[:, 1:])


@pytest.mark.parametrize("size", [1e-290, 1.0, 1e290])
def test_the_largest_numbers_are_finite_and_in_order(size):
    X = columns_of(6)[:, :3] * size
    features = fit(X)
    far = np.array([-1.7e308, -1e300, -1e299, 1e299, 1e300, 1.7e308])
    rows = features(np.column_stack([far] * 3))
    assert np.isfinite(rows.value).all() and np.isfinite(rows.features).all()
    assert (np.diff(rows.value) >= 0).all() and np.abs(rows.features).max() < 1e3


def test_one_absurd_number_leaves_the_scale_of_the_others():
    X = columns_of(7)[:, :1]
    spoilt = X.copy()
    spoilt[11] = 1e300
    others = np.arange(300) != 11
    before, after = fit(X)(X), fit(spoilt)(spoilt)
    found, expected = after.value[0, others], before.value[0, others]
    assert np.corrcoef(found, expected)[0, 1] > 0.999
    assert 0.8 < np.std(found) / np.std(expected) < 1.25
    assert after.value[0, 11] > 20 * np.abs(found).max()
    assert np.abs(after.features).max() < 100


@pytest.mark.parametrize(
    ("n", "d", "wide"), [(60, 13, False), (100, 100, False), (600, 101, True), (700, 101, False)]
)
def test_only_many_columns_beside_few_rows_go_without_their_polynomials(n, d, wide):
    X = np.random.default_rng(10).normal(size=(n, d))
    features = fit(X)
    assert features.is_wide == wide
    assert features(X).features.shape == (n, d if wide else DEGREE * d)
