import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.novelty.columns.encoding import TableEncoder
from kpca_apps.novelty.columns.imputation import ConditionalMeanImputer
from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.detector.views import ColumnRoles, RawColumns, ViewScales
from kpca_apps.novelty.magnitudes import mean_and_sd, rank_correlation, units, varies
from kpca_apps.novelty.result import NumericProfile
from kpca_apps.tables.frames import table_from_frame

SIZES = st.sampled_from([1e-290, 1e-200, 1e-17, 0.1, 1.0, 1e9, 1e17, 1e160, 1e200, 1e290])


@given(size=SIZES, n=st.integers(2, 60), seed=st.integers(0, 10**6))
def test_rounding_is_no_variation_at_any_size(size, n, seed):
    rng = np.random.default_rng(seed)
    jittered = size * (1 + 1e-17 * rng.normal(size=n))
    rounded = size + 4 * np.spacing(size) * rng.uniform(-1, 1, n)
    assert not varies(np.column_stack([jittered, rounded, -rounded])).any()
    assert not varies(rounded)


@given(
    size=SIZES,
    offset=st.sampled_from([0.0, 1.0, 1e5, -1e9, 1e12]),
    n=st.integers(2, 60),
    seed=st.integers(0, 10**6),
)
def test_values_that_differ_vary_at_any_size_and_distance_from_the_origin(size, offset, n, seed):
    values = np.random.default_rng(seed).normal(size=n)
    values[:2] = -1.0, 1.0
    gaps = np.where(np.arange(n) % 3 == 2, np.nan, size * (offset + values))
    assert varies(gaps)
    assert varies(np.column_stack([gaps, np.full(n, size)])).tolist() == [True, False]


def test_a_column_without_values_does_not_vary():
    assert varies(np.full((3, 2), np.nan)).tolist() == [False, False]
    assert varies(np.empty((0, 2))).tolist() == [False, False]
    assert varies(np.array([1.79e308, -1.79e308]))


@given(size=SIZES, seed=st.integers(0, 10**6))
def test_moments_are_those_of_the_column_brought_to_ordinary_size(size, seed):
    values = np.random.default_rng(seed).normal([0.0, 5.0, -1e4], size=(40, 3))
    mean, sd = mean_and_sd(values * size)
    np.testing.assert_allclose(mean / size, values.mean(axis=0), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(sd / size, values.std(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(mean_and_sd(values), (values.mean(axis=0), values.std(axis=0)))
    assert (np.abs(values * size) <= units(values * size)).all()


CONSTANT = {
    "rounded": np.where(np.arange(60) % 2, 0.3, 0.1 + 0.2),
    "far": 1e17 + np.spacing(1e17) * (np.arange(60) % 3),
    "huge": 1e160 * np.where(np.arange(60) % 2, 1.0, 1 + 2e-16),
    "tiny": 1e-200 * np.where(np.arange(60) % 2, 1.0, 1 + 2e-16),
}
VARYING = {
    "offset": 1e9 + 1e-5 * np.arange(60.0),
    "large": 1e90 * np.arange(60.0),
    "small": 1e-200 * np.arange(60.0),
}


@pytest.mark.parametrize("name", [*CONSTANT, *VARYING])
def test_every_check_for_constant_columns_agrees(name):
    column = {**CONSTANT, **VARYING}[name]
    constant, rng = name in CONSTANT, np.random.default_rng(0)
    matrix = np.column_stack([column, rng.normal(size=60)])
    columns = ColumnRoles.of(matrix.shape[1])
    views = ViewScales.fit(matrix, np.arange(len(matrix)), columns, rng)
    assert views.varying.tolist() == ([1] if constant else [0, 1])
    assert (RawColumns.fit(matrix, None).sd[0] == 1.0) == constant
    assert (ConditionalMeanImputer.fit(matrix).scale[0] == 1.0) == constant
    low, high = NumericProfile.of(column).edges[[0, -1]]
    # The plot of a single bin has a margin on both sides.
    assert (high - low > 0.995 * max(np.abs(column).max(), 1.0)) == constant
    if np.abs(column).max() < 1e100:  # larger cells of a table are not read as numbers
        plan = infer_plan(table_from_frame(pl.DataFrame({"column": column, "other": matrix[:, 1]})))
        assert (plan.specs[0].role == "constant") == constant


def test_one_time_of_day_is_no_feature_of_a_date():
    """8:00 is a third of a day, and its rounding error differs from day to day."""
    for clock in ("08:00:00", "13:37:11"):
        days = [f"20{10 + i % 12}-{1 + i % 12:02d}-{1 + i % 28:02d} {clock}" for i in range(90)]
        table = table_from_frame(pl.DataFrame({"seen": days, "x": np.arange(90.0) ** 1.5}))
        encoder = TableEncoder.fit(table, infer_plan(table), contaminated=False)
        # The dates become days, and sine and cosine of the weekday.
        assert len(encoder.groups[0].columns) == 3


@pytest.mark.parametrize("contaminated", [True, False])
@pytest.mark.parametrize("size", [1e-290, 1e-200, 1e-160, 1e160, 1e200, 1e290])
def test_the_unit_of_a_column_changes_no_score(size, contaminated):
    table = np.random.default_rng(0).normal(size=(150, 3))
    table[7, 1] = 9.0
    first = KernelPCANovelty(contaminated=contaminated, random_state=0).fit(table)
    size = 2.0 ** round(np.log2(size))  # a power of two, so that scaling is exact
    scaled = table * [1.0, size, 1.0]
    second = KernelPCANovelty(contaminated=contaminated, random_state=0).fit(scaled)
    np.testing.assert_allclose(second.novelty_scores_, first.novelty_scores_, rtol=1e-9)
    np.testing.assert_allclose(second.score_samples(scaled), first.score_samples(table), rtol=1e-9)


def test_numbers_no_float_can_square_or_subtract_are_refused_by_their_column():
    table = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 1.0, 1e160]
    with pytest.raises(
        ValueError, match=r"Column 2 holds numbers as large as \d.*e\+160, whose sq"
    ):
        KernelPCANovelty(kernel=RBF(1.0)).fit(table)
    table[3, 1] = -1.7e308
    for parameters in ({}, {"contaminated": False}, {"method": "hoffmann"}):
        with pytest.raises(ValueError, match=r"Column 1 .*1\.7e\+308"):
            KernelPCANovelty(**parameters).fit(table)
    # Numbers near 5e307 are refused as well, because sums of several such numbers overflow.
    with pytest.raises(ValueError, match=r"Column 1 .*e\+308"):
        KernelPCANovelty().fit(np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 5e307, 1.0])


def test_new_rows_too_large_for_a_kernel_are_refused_not_taken_for_normal():
    table, far = np.random.default_rng(0).normal(size=(60, 2)), [[0.0, 0.0], [0.0, -1e200]]
    linear = KernelPCANovelty(kernel=Linear(), random_state=0).fit(table)
    with pytest.raises(
        ValueError, match=r"Row 1 has no score: its column 1, -1e\+200, is too large"
    ):
        linear.predict(far)
    # Other kernels flag the row.
    assert KernelPCANovelty(random_state=0).fit(table).predict(far).tolist() == [1, -1]


def test_integers_that_differ_by_few_floats_have_a_profile():
    # Floats near 1e20 are 16384 apart, so forty bins do not fit between a few of them.
    profile = NumericProfile.of(1e20 + 16384.0 * np.arange(12))
    assert profile.counts.sum() == 12 and profile.minimum < profile.median < profile.maximum


NUMBERS = st.lists(st.integers(-3, 3) | st.floats(-1e6, 1e6), min_size=2, max_size=30)


@given(NUMBERS)
def test_rank_correlation_is_scipys(values: list[float]) -> None:
    x = np.array(values, dtype=float)
    y = np.roll(x, 1) + np.arange(len(x)) % 3
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert math.isnan(rank_correlation(x, y))
    else:
        assert rank_correlation(x, y) == pytest.approx(float(spearmanr(x, y).statistic), abs=1e-12)


def test_a_constant_column_has_no_rank_correlation() -> None:
    assert math.isnan(rank_correlation(np.ones(5), np.arange(5)))
