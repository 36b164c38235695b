import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.engine.kernels import RBF
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.detector.surprise.combined import (
    APART,
    CLEAN,
    CONTAMINATED,
    LARGEST,
    MORE,
    OF_CELLS,
    RARE,
    CombinedScore,
)
from kpca_apps.novelty.detector.surprise.marked import KnownRows
from kpca_apps.novelty.detector.views import ColumnRoles
from kpca_apps.novelty.magnitudes import eight_digits

SEEDS = st.integers(0, 10**6)


def mixed(seed, n=200):
    """Return five differently distributed numeric columns and three indicators of a category.

    Also return the indicators' indices, and the matrix columns of each table column.
    """
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    columns = [size, size + 0.3 * rng.normal(size=n), rng.standard_t(3, n), rng.lognormal(size=n)]
    columns.append(np.where(rng.random(n) < 0.5, 0.0, rng.exponential(size=n)))
    X = np.column_stack([*columns, np.eye(3)[rng.integers(0, 3, n)]])
    return X, [5, 6, 7], [[0], [1], [2], [3], [4], [5, 6, 7]]


def detector_of(X, as_is=None, groups=None, **parameters):
    return KernelPCANovelty(as_is=as_is, groups=groups, random_state=0, **parameters).fit(X)


def fit_combined(X, errors, contaminated=True):
    columns = ColumnRoles.of(X.shape[1])
    return CombinedScore.fit(X, errors, columns, contaminated=contaminated, known=KnownRows())


@pytest.mark.parametrize("contaminated", [True, False])
@settings(max_examples=12)
@given(seed=SEEDS)
def test_the_farther_off_one_cell_is_the_higher_the_row_scores(contaminated, seed):
    X, as_is, groups = mixed(seed, 120)
    detector = detector_of(X, as_is, groups, contaminated=contaminated)
    rng = np.random.default_rng(seed)
    column = int(rng.integers(0, 5))
    side = rng.choice([-1.0, 1.0])
    reach = np.abs(X[:, column] - np.median(X[:, column])).max()
    far = np.repeat(X[int(rng.integers(len(X)))][None], 40, axis=0)
    far[:, column] = np.median(X[:, column]) + side * reach * np.logspace(0.5, 290, 40)
    scores = -detector.score_samples(far)
    assert (np.diff(scores) > 0).all() and np.isfinite(scores).all()
    assert scores[-1] < LARGEST and scores[0] > np.median(detector.novelty_scores_)


@settings(max_examples=15)
@given(seed=SEEDS, contaminated=st.booleans())
def test_no_two_different_rows_share_a_score(seed, contaminated):
    X, as_is, groups = mixed(seed)
    detector = detector_of(X, as_is, groups, contaminated=contaminated)
    assert len(np.unique(eight_digits(detector.novelty_scores_))) == len(X)
    new, _, _ = mixed(seed + 1)
    assert len(np.unique(detector.score_samples(new))) == len(X)


@pytest.mark.release
@settings(max_examples=10)
@given(seed=SEEDS, contaminated=st.booleans())
def test_unit_and_sign_of_a_column_and_the_order_of_columns_change_no_score(seed, contaminated):
    X, as_is, groups = mixed(seed)
    X[:, 2] = np.round(X[:, 2])  # many rows share the value zero
    first = detector_of(X, as_is, groups, contaminated=contaminated).novelty_scores_
    rng = np.random.default_rng(seed)
    # Units are powers of two, so that scaling is exact.
    units = 2.0 ** rng.integers(-60, 60, 8) * rng.choice([-1.0, 1.0], 8)
    units[as_is] = 1.0
    other = detector_of(X * units, as_is, groups, contaminated=contaminated).novelty_scores_
    np.testing.assert_allclose(other, first, rtol=1e-6, atol=1e-6)
    turned = [4, 2, 3, 0, 1, 5, 6, 7]
    other = detector_of(X[:, turned], as_is, groups, contaminated=contaminated).novelty_scores_
    np.testing.assert_allclose(other, first, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("contaminated", [True, False])
def test_the_order_of_rows_changes_no_score(contaminated):
    X, rng = mixed(0)[0][:, :5], np.random.default_rng(0)
    errors, order = rng.gamma(3.0, size=len(X)), rng.permutation(len(X))
    model, scores = fit_combined(X, errors, contaminated)
    again, permuted = fit_combined(X[order], errors[order], contaminated)
    np.testing.assert_allclose(permuted, scores[order], rtol=1e-8)
    np.testing.assert_allclose(again(X, errors), model(X, errors), rtol=1e-8)


@pytest.mark.parametrize("contaminated", [True, False])
def test_the_score_is_the_formula_in_its_description(contaminated):
    """Scores equal the formula, or exceed it for rows with high error, mean surprise or scatter."""
    X = mixed(6)[0][:, :5]
    errors = np.random.default_rng(6).gamma(3.0, size=len(X))
    model, scores = fit_combined(X, errors, contaminated)
    e, a, b, o, c, w, _ = CONTAMINATED if contaminated else CLEAN
    assert (e, w) == (1.0, 1.0)
    columns, normal = ColumnRoles.of(5), np.zeros(len(X), dtype=bool)
    _, rows = type(model.cells).fit(X, errors, columns, contaminated=contaminated, normal=normal)
    p_k, p_g, p_l = (
        (values[:, None] <= values).mean(axis=1) for values in (errors, rows.mean, rows.scatter)
    )
    low, high = np.quantile(rows.oddest, OF_CELLS)
    of_low, of_high = -np.log1p(-np.array(OF_CELLS))
    rarity = of_low + (of_high - of_low) * (rows.oddest - low) / (high - low)
    whole = 1 / p_k + a / p_g + b / p_l + o * np.exp(np.maximum(rarity, 0.0))
    rarity = np.minimum(rarity, rows.oddest + MORE)
    expected = np.log(whole + np.exp(c * (rarity - RARE))) + APART * np.log(whole)
    usual = (errors < np.quantile(errors, 0.9)) & (rows.mean < np.quantile(rows.mean, 0.9))
    usual &= rows.scatter < np.quantile(rows.scatter, 0.9)
    assert usual.mean() > 0.7
    np.testing.assert_allclose(scores[usual], expected[usual], rtol=1e-7)
    assert (scores >= expected - 1e-7).all()


def test_rows_with_one_absurd_cell_in_common_are_distinguished_by_the_rest():
    X = mixed(8)[0][:, :5]
    X[:20, 0] = 1e250
    _, scores = fit_combined(X, np.random.default_rng(8).gamma(3.0, size=len(X)))
    assert len(np.unique(scores[:20])) == 20


def test_an_absurd_cell_counts_more_among_rows_that_may_be_anything():
    X = mixed(7)[0][:, :5]
    errors = np.random.default_rng(7).gamma(3.0, size=len(X))
    odd = X[:1].copy()
    odd[0, 0] = 50.0
    contaminated, own = fit_combined(X, errors)
    clean, own_clean = fit_combined(X, errors, contaminated=False)
    usual = np.array([np.median(errors)])
    assert contaminated(odd, usual)[0] > own.max()
    assert contaminated(odd, usual)[0] > clean(odd, usual)[0] > np.median(own_clean)
    assert contaminated.cells.columns.n < clean.cells.columns.n == len(X)


def test_where_the_error_is_requested_cells_add_nothing():
    X, as_is, groups = mixed(8)
    for parameters in ({"kernel": RBF(0.1)}, {"method": "hoffmann"}):
        assert detector_of(X, as_is, groups, **parameters).combined_ is None
    assert detector_of(X, as_is, groups).combined_ is not None
