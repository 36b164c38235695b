import numpy as np
import pytest
from scipy.stats import norm, rankdata

from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.detector.views import ColumnRoles, ViewScales


def fitted(X, as_is=None, groups=None, rows=None):
    rows = np.arange(len(X)) if rows is None else rows
    columns = ColumnRoles.of(X.shape[1], as_is, groups)
    return ViewScales.fit(X, rows, columns, np.random.default_rng(0))


def test_views_and_kernel_pca_with_a_ridge_are_the_errors_of_the_detector():
    X = np.random.default_rng(1).normal(size=(300, 3))
    detector = KernelPCANovelty(contaminated=False, random_state=0).fit(X)
    views = fitted(X)
    options = {"method": "nystroem", "landmarks": detector.subspace_.points, "ridge": 0.1 / 300}
    model = KernelPCA(kernel=views.kernel, **options).fit(views.transform(X))
    assert model.ridge_ == pytest.approx(detector.detector_.ridge, rel=1e-12)
    np.testing.assert_allclose(
        model.reconstruction_error(views.transform(X)),
        detector.subspace_.reconstruction_error(detector.detector_.views.transform(X)),
        rtol=0,
        atol=1e-9,
    )


def test_the_four_views_are_those_of_the_formulas():
    X = np.random.default_rng(1).lognormal(size=(200, 3))
    views = fitted(X)
    one, two, three, four = np.split(views.transform(X), 4, axis=1)
    sd = X.std(axis=0)
    np.testing.assert_allclose(one * views.widths[0], (X - X.mean(axis=0)) / sd)
    bent = np.arcsinh(
        (X - np.median(X, axis=0)) / (np.subtract(*np.percentile(X, [75, 25], axis=0)) / 1.349)
    )
    np.testing.assert_allclose(
        two * views.widths[1], (bent - bent.mean(axis=0)) / bent.std(axis=0), atol=1e-12
    )
    np.testing.assert_allclose(
        three * views.widths[2], (X - X.mean(axis=0)) / np.ptp(X, axis=0), atol=1e-12
    )
    ranks = rankdata(X, axis=0)
    np.testing.assert_allclose(four * views.widths[3], norm.ppf(ranks / 201), atol=1e-12)


def test_the_kernel_is_the_mean_over_views_and_two_bandwidths():
    X = np.random.default_rng(1).normal(size=(40, 3))
    views = fitted(X)
    F = views.transform(X)
    expected = np.zeros((40, 40))
    for part in np.split(F, 4, axis=1):
        D = ((part[:, None] - part[None]) ** 2).sum(axis=-1)
        expected += (np.exp(-3 * D) + np.exp(-9 * D)) / 8
    np.testing.assert_allclose(views.kernel(F, F), expected, atol=1e-12)
    np.testing.assert_allclose(views.kernel.diagonal(F), 1.0)


def test_values_beyond_the_range_stay_apart():
    X = np.random.default_rng(2).normal(size=(100, 1))
    views = fitted(X)
    far = views.transform(np.array([[10.0], [20.0], [-10.0]]))[:, 3] * views.widths[3]
    assert far[1] - far[0] == pytest.approx(10.0 / X.std())
    assert far[2] < views.transform(X)[:, 3].min() * views.widths[3]


def test_every_view_has_unit_median_squared_distance():
    X = np.random.default_rng(3).normal(size=(300, 4)) * [1, 10, 100, 1e6]
    for part in np.split(fitted(X).transform(X), 4, axis=1):
        D = ((part[:, None] - part[None]) ** 2).sum(axis=-1)[np.triu_indices(300, 1)]
        assert np.median(D) == pytest.approx(1.0)


@pytest.mark.parametrize("constant", [0.0, 3.0, 1e9])
def test_constant_columns_are_dropped_even_with_rounding_noise(constant):
    rng = np.random.default_rng(4)
    varying = rng.normal(size=(50, 1))
    jitter = constant * (1 + 1e-16 * rng.normal(size=(50, 1)))
    assert fitted(np.hstack([varying, jitter])).varying.tolist() == [0]


def test_as_is_columns_keep_their_scale_beside_a_block_of_unit_variance():
    rng = np.random.default_rng(5)
    X = np.hstack([rng.normal(size=(100, 3)) * 1e4, rng.integers(0, 2, size=(100, 1))])
    views = fitted(X, np.array([3]))
    for part, width in zip(np.split(views.transform(X), 4, axis=1), views.widths, strict=True):
        assert (part[:, :3] * width).var(axis=0).mean() == pytest.approx(1.0)
        np.testing.assert_allclose(part[:, 3] * width, X[:, 3])


def test_categories_alone_make_one_view():
    X = np.eye(3)[np.random.default_rng(6).integers(0, 3, size=50)]
    assert fitted(X, np.arange(3)).transform(X).shape == (50, 3)


def test_columns_of_one_source_weigh_as_much_as_one():
    """Copies of a column in one group do not change distances."""
    X = np.random.default_rng(7).normal(size=(100, 2))
    copies = np.column_stack([X[:, 0], X[:, 1], X[:, 1], X[:, 1], np.ones(100)])
    one, many = fitted(X), fitted(copies, groups=[[0], [1, 2, 3, 4]])
    K = one.kernel(one.transform(X))
    np.testing.assert_allclose(many.kernel(many.transform(copies)), K, atol=1e-12)


def test_scalings_come_from_the_rows_in_use():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(200, 3))
    spoilt = np.vstack([X, 1e3 * rng.normal(size=(50, 3))])
    alone = fitted(X)
    among = fitted(spoilt, rows=np.arange(200))
    np.testing.assert_array_equal(among.transform(X), alone.transform(X))


def test_a_column_constant_among_the_rows_in_use_is_scaled_by_the_table():
    X = np.random.default_rng(9).normal(size=(100, 2))
    X[:60, 1] = 7.0
    views = fitted(X, rows=np.arange(60))
    assert views.varying.tolist() == [0, 1] and views.scales.sd[1] == X[:, 1].std()
    assert np.isfinite(views.transform(X)).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_that_vary_in_rows_left_out_only_have_a_scale_beside_indicators():
    """With one odd row among equal rows, no number varies in the training subset."""
    X = np.ones((101, 2))
    X[100] = 2.0, 0.0
    views = fitted(X, [1], rows=np.arange(100))
    assert np.isfinite(views.transform(X)).all()
    assert views.kernel(views.transform(X[:1]), views.transform(X[100:]))[0, 0] < 0.9
