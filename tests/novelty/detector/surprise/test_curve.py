"""A common curve of columns is found only where each row is the curve times the row's size."""

import numpy as np
import pytest

from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.detector.surprise.cells import CellModel
from kpca_apps.novelty.detector.surprise.curve import CommonCurve, log_density, median_of_others
from kpca_apps.novelty.detector.views import ColumnRoles


def curve_times_size(rng, n, d, sizes=0.3, noise=0.1):
    logs = 7 + rng.normal(size=d) + sizes * rng.normal(size=(n, 1))
    return np.exp(logs + noise * rng.normal(size=(n, d)))


def one_factor(rng, n, d):
    """Return columns that one factor raises or lowers, each by its own amount."""
    return 100 + 15 * (rng.normal(size=(n, 1)) * rng.uniform(-1, 1, d) + rng.normal(size=(n, d)))


def learned(X):
    columns, normal = ColumnRoles.of(X.shape[1]), np.zeros(len(X), dtype=bool)
    return CellModel.fit(X, np.zeros(len(X)), columns, contaminated=True, normal=normal)


@pytest.mark.parametrize("k", range(2, 8))
def test_the_median_of_others_leaves_each_value_out(k):
    rng = np.random.default_rng(k)
    for values in (rng.normal(size=(k, 5)), rng.integers(0, 3, (k, 5)).astype(float)):
        expected = [np.median(np.delete(values, i, axis=0), axis=0) for i in range(k)]
        np.testing.assert_array_equal(median_of_others(values), expected)
        missing = np.vstack([values[:1] * np.nan, values])
        np.testing.assert_array_equal(median_of_others(missing)[1:], expected)


def test_log_densities_have_the_entropy_of_a_normal_and_change_with_the_scale():
    values = np.random.default_rng(0).normal(3, 0.4, (1, 20_000))
    seen, least = np.ones(values.shape, dtype=bool), np.array([[1e-9]])
    density = log_density(values, seen, least)
    entropy = 0.5 * np.log(2 * np.pi * np.e * 0.4**2)
    assert -density.mean() == pytest.approx(entropy, abs=0.03)
    # Change of variables: the density of exp(x) is divided by exp(x).
    of_powers = log_density(np.exp(values), seen, least)
    assert of_powers.mean() == pytest.approx((density - values).mean(), abs=0.01)


def test_log_densities_of_equal_values_end_and_unseen_ones_have_none():
    values = np.array([[2.0, 2.0, 2.0, 2.0, 1e9]])
    density = log_density(values, np.array([[True, True, True, True, False]]), np.array([[0.5]]))
    np.testing.assert_allclose(density, [[np.log(2.0)] * 4 + [0.0]])


@pytest.mark.parametrize(("n", "d"), [(40, 8), (60, 12), (200, 12), (60, 60)])
def test_a_curve_times_a_size_is_found(n, d):
    X = curve_times_size(np.random.default_rng([n, d]), n, d)
    assert learned(X)[0].curve.place.tolist() == list(range(d))


def test_columns_of_a_curve_are_found_among_others():
    rng = np.random.default_rng(1)
    others = rng.lognormal(7, 0.5, (150, 6))
    X = np.column_stack([others[:, :3], curve_times_size(rng, 150, 8), others[:, 3:]])
    place = learned(X)[0].curve.place
    assert set(range(3, 11)) <= set(place.tolist()) and len(place) <= 9


@pytest.mark.parametrize(("n", "d"), [(40, 8), (60, 20), (300, 12)])
def test_columns_without_a_common_curve_are_predicted_by_each_other(n, d):
    n_found = 0
    for seed in range(4):
        rng = np.random.default_rng([n, d, seed])
        logs = rng.normal(size=(n, d))
        for X in (np.exp(7 + 0.5 * logs), 100 + 15 * logs, logs):
            assert not learned(X)[0].curve.place.size
        added = 100 + 15 * rng.normal(size=(n, 1)) + 5 * logs
        n_found += sum(learned(X)[0].curve.place.size > 0 for X in (one_factor(rng, n, d), added))
    # The significance level is 5 %, so one false detection is allowed.
    assert n_found <= 1


def test_residuals_of_fitted_rows_are_those_of_a_fit_without_them():
    X = curve_times_size(np.random.default_rng(2), 41, 6).T
    curve = CommonCurve(np.arange(6), np.median(np.log(X), axis=1, keepdims=True), np.ones((6, 1)))
    errors = np.zeros(X.shape)
    curve.replace(errors, X, fitted=True)
    for i in range(3):
        others = np.median(np.log(np.delete(X, i, axis=1)), axis=1, keepdims=True)
        without = np.zeros((6, 1))
        CommonCurve(curve.place, others, curve.unit).replace(without, X[:, [i]])
        np.testing.assert_allclose(errors[:, [i]], without, atol=1e-12)
    # By hand: a cell's log ratio to the other cells of its row, minus the median ratio of other
    # rows.
    over = np.log(X[:, 0]) - np.median(np.log(X[:, 1:]), axis=1)
    assert errors[2, 0] == pytest.approx(over[2] - np.median(np.delete(over, 2)))


def test_a_cell_that_has_no_logarithm_stays_as_the_others_predict_it():
    X = curve_times_size(np.random.default_rng(3), 80, 8)
    X[5, 2] = -X[5, 2]
    model, rows = learned(X)
    assert model.curve.place.size == 8
    assert np.isfinite(rows.oddest).all()
    new = X[:7].copy()
    new[0, 3] = 0.0
    surprise = model(new).oddest
    assert np.isfinite(surprise).all()
    # Each row's result depends only on that row.
    np.testing.assert_array_equal(surprise, np.r_[[model(new[[i]]).oddest[0] for i in range(7)]])


def test_a_size_is_that_of_the_cells_that_have_a_logarithm():
    rng = np.random.default_rng(9)
    logs = rng.normal(size=(12, 1)) + rng.normal(size=100) + 0.1 * rng.normal(size=(12, 100))
    X = np.exp(7 + logs)
    X[:7, 0], X[:11, 1] = 0.0, 0.0
    model = CommonCurve.fit(X, np.ones(X.shape, dtype=bool), np.full(X.shape, -20.0))
    assert model.place.tolist() == list(range(12))
    for fitted in (True, False):
        errors = np.zeros(X.shape)
        model.replace(errors, X, fitted=fitted)
        assert np.abs(errors[7:, 0]).max() < 6
        # A row with a single cell is given the typical scale of a row.
        assert np.abs(errors[11, 1]) < 40
        assert not errors[:7, 0].any()


def test_slopes_of_the_scale_are_those_of_small_steps():
    X = one_factor(np.random.default_rng(4), 100, 5)
    features = learned(X)[0].map
    step = 1e-4
    by_step = 2 * step / (features(X + step).value - features(X - step).value)
    np.testing.assert_allclose(features.log_slope(features(X).value), np.log(by_step), atol=1e-5)


def test_predictions_are_compared_on_some_of_many_rows(monkeypatch):
    X = curve_times_size(np.random.default_rng(5), 400, 8)
    monkeypatch.setattr("kpca_apps.novelty.detector.surprise.cells.COMPARED", (100, 100))
    assert learned(X)[0].curve.place.size == 8


@pytest.mark.parametrize("factor", [0.1, 10.0])
@pytest.mark.parametrize(("sizes", "noise"), [(0.3, 0.1), (1.0, 0.1)])
@pytest.mark.parametrize(("n", "d"), [(60, 8), (60, 12)])
def test_a_cell_that_is_wrong_by_ten_is_in_the_first_row(n, d, sizes, noise, factor):
    first = 0
    for seed in range(6):
        rng = np.random.default_rng([n, d, seed, 7])
        X = curve_times_size(rng, n, d, sizes, noise)
        row = int(rng.integers(n))
        X[row, rng.integers(d)] *= factor
        first += KernelPCANovelty(random_state=0).fit(X).novelty_scores_.argmax() == row
    assert first >= 5
