import numpy as np
import pytest

from kpca_apps.engine.blocks import RIDGE
from kpca_apps.novelty.detector.surprise.cells import LEARNED, USUAL, CellModel
from kpca_apps.novelty.detector.views import ColumnRoles

N = 600
NAMES = ("bell", "other", "follows", "heavy", "lopsided", "mostly zero")


def table_of(seed):
    rng = np.random.default_rng(seed)
    bell, other = rng.normal(size=(2, N))
    rain = np.where(rng.random(N) < 0.7, 0.0, 10.0 * rng.exponential(size=N))
    follows = bell + 0.1 * rng.normal(size=N)
    heavy, lopsided = rng.standard_t(2, N), rng.lognormal(0, 1.5, N)
    return np.column_stack([bell, other, follows, heavy, lopsided, rain])


def fit(X, scores=None, groups=None, as_is=None, contaminated=True):
    scores = np.zeros(len(X)) if scores is None else scores
    return CellModel.fit(
        X,
        scores,
        ColumnRoles.of(X.shape[1], as_is, groups),
        contaminated=contaminated,
        normal=np.zeros(len(X), dtype=bool),
    )


def rank_of(values, row):
    return int((values > values[row]).sum())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("contaminated", [True, False])
@pytest.mark.parametrize(
    ("column", "value"),
    [("bell", 30.0), ("other", -1e9), ("heavy", 1e5), ("lopsided", -300.0), ("mostly zero", 1e4)],
)
def test_a_row_with_an_absurd_cell_has_the_oddest_cell(seed, contaminated, column, value):
    X = table_of(seed)
    X[17, NAMES.index(column)] = value
    _, rows = fit(X, contaminated=contaminated)
    assert rows.oddest.argmax() == 17 and rows.oddest[17] > 1.3 * np.sort(rows.oddest)[-2]


@pytest.mark.parametrize("seed", range(3))
def test_an_ordinary_value_that_other_columns_contradict_is_odd(seed):
    X = table_of(seed)
    row = int(np.argmin(np.abs(X[:, 0] - 1.0)))
    X[row, 2] = -1.0
    model, rows = fit(X)
    assert rows.oddest.argmax() == row
    # The value on its own is ordinary.
    assert model.alone(model.map(X[[row]]).value)[2, 0] < 2.0


@pytest.mark.parametrize("seed", range(3))
def test_ordinary_large_values_of_heavy_tails_and_of_rain_are_not_odd(seed):
    X = table_of(seed)
    _, rows = fit(X)
    largest = {name: np.argsort(-X[:, j])[:20] for j, name in enumerate(NAMES)}
    of_bell = rows.oddest[largest["other"]].mean()
    for name in ("heavy", "lopsided", "mostly zero"):
        assert rows.oddest[largest[name]].mean() < 1.25 * of_bell
    oddest = rows.oddest >= np.quantile(rows.oddest, 0.95)
    # Rain (column 5) is above 0 in 30 % of all rows, and in less than 55 % of the oddest rows.
    assert (X[oddest, 5] > 0).mean() < 0.55


@pytest.mark.parametrize("seed", range(3))
def test_a_common_level_is_odd_if_another_column_contradicts_it(seed):
    rng = np.random.default_rng(seed)
    size = rng.normal(size=N)
    level = (size > 0).astype(int) + (size > 1)
    row = int(np.flatnonzero(size < -1)[0])
    level[row] = 2
    X = np.column_stack([size, rng.normal(size=N), 0.8 * np.eye(3)[level]])
    groups = [np.array([0]), np.array([1]), np.array([2, 3, 4])]
    model, rows = fit(X, groups=groups, as_is=[2, 3, 4])
    assert rank_of(rows.oddest, row) <= 2
    as_new = model(np.vstack([X[[row]], X[(level == 2) & (np.arange(N) != row)]]))
    assert as_new.oddest[0] > np.quantile(as_new.oddest[1:], 0.95)
    # A row of zeros has a level that the reference does not contain.
    assert np.isfinite(model(np.array([[0.0, 0.0, 0.0, 0.0, 0.0]])).oddest).all()


def test_a_rare_level_alone_is_as_odd_as_it_is_rare():
    rng = np.random.default_rng(0)
    level = np.where(np.arange(N) < 3, 1, 0)
    X = np.column_stack([rng.normal(size=N), np.eye(2)[level]])
    _, rows = fit(X, groups=[np.array([0]), np.array([1, 2])], as_is=[1, 2])
    # `oddest` is the log of the mean of exp(surprise) over three surprises: of the number alone, of
    # the number given the level, and of the level. A level with share 3 / N has exp(surprise) of at
    # least N / 3.
    floor = np.log(N / 3 / 3)
    assert (rows.oddest[:3] >= floor - 1e-9).all()
    assert (np.sort(rows.oddest[3:])[: N // 2] < floor).all()


def test_contaminated_tables_train_on_dense_rows_and_clean_ones_on_all():
    X = table_of(1)
    broken = np.arange(N) < 30
    X[broken, 2] *= -1.0
    scores = np.where(broken, 2.0, 1.0) + 1e-3 * np.random.default_rng(0).random(N)
    contaminated, rows = fit(X, scores)
    clean, _ = fit(X, scores, contaminated=False)
    assert clean.columns.n == N
    assert contaminated.columns.n == (scores <= np.quantile(scores, LEARNED)).sum()
    without, _ = fit(X[~broken], contaminated=False)
    for name in ("mean", "deviation"):
        np.testing.assert_allclose(
            getattr(contaminated.columns, name), getattr(without.columns, name), atol=0.2
        )
    # Training rows are judged by a fit without the judged row; rows excluded from training are
    # judged by the whole fit, exactly as new rows are.
    left = contaminated(X[broken])
    np.testing.assert_allclose(rows.oddest[broken], left.oddest, rtol=1e-9)
    np.testing.assert_allclose(rows.scatter[broken], left.scatter, rtol=1e-9)
    # Usual residuals are measured only on the share USUAL of rows with the lowest scores, without
    # broken rows. So broken rows have a larger scatter than in a model fitted to all rows.
    assert USUAL < LEARNED
    assert contaminated(X[broken]).scatter.mean() > clean(X[broken]).scatter.mean()


def test_rows_without_a_varying_column_say_nothing():
    X = np.full((30, 2), 5.0)
    model, rows = fit(X)
    for found in (rows, model(X[:4])):
        assert not np.r_[found.mean, found.oddest, found.scatter].any()


def test_the_order_of_rows_and_of_columns_changes_no_surprise():
    X, rng = table_of(2), np.random.default_rng(0)
    X[:40, 3:] *= 3.0
    scores = rng.random(N)
    model, rows = fit(X, scores)
    turned, order = rng.permutation(6), rng.permutation(N)
    for other, found in (
        (fit(X[:, turned], scores), np.arange(N)),
        (fit(X[order], scores[order]), order),
    ):
        for name in ("mean", "oddest", "scatter"):
            expected = getattr(rows, name)[found]
            np.testing.assert_allclose(getattr(other[1], name), expected, rtol=1e-8)
    assert model.columns.factor.shape[1] == len(model.map.group)


def test_levels_of_more_features_than_rows_do_not_explain_every_row():
    """Rows with contradictory levels stay odd although 480 indicators could fit 150 rows."""
    rng = np.random.default_rng(8)
    n, d = 150, 120
    inner = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.5 * rng.normal(size=(n, d))
    levels = np.digitize(inner, [-1.0, 0.0, 1.0])
    levels[:5] = levels[rng.integers(5, n, size=(5, d)), np.arange(d)]
    X = (levels[:, :, None] == np.arange(4)).reshape(n, 4 * d).astype(float)
    groups = [np.arange(4 * j, 4 * j + 4) for j in range(d)]
    model, rows = fit(X, groups=groups, as_is=np.arange(4 * d))
    assert model.columns.ridge > RIDGE
    assert set(np.argsort(-rows.mean)[:5]) == set(range(5))
