import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.novelty.selection import largest, median, order_statistic, tally
from kpca_apps.novelty.threshold import conformal_p_values


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kpca_apps.novelty.selection.ROWS_A_BLOCK", 64)
    monkeypatch.setattr("kpca_apps.novelty.quantiles.LEVEL", 16)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    n, digits = draw(st.integers(1, 900)), draw(st.sampled_from([0, 1, 9]))
    values = np.random.default_rng(draw(st.integers(0, 99))).standard_normal(n)
    return np.round(values, digits)


@given(values=arrays(), where=st.floats(0, 1))
def test_order_statistics_are_those_of_sorting(values, where):
    place = min(int(where * len(values)), len(values) - 1)
    assert order_statistic(values, place) == np.sort(values)[place]
    assert median(values) == np.median(values)


@given(values=arrays(), where=st.floats(0, 1))
def test_the_largest_are_those_of_a_stable_sort(values, where):
    count = max(1, int(where * len(values)))
    expected = np.zeros(len(values), dtype=bool)
    expected[np.argsort(-values, kind="stable")[:count]] = True
    np.testing.assert_array_equal(largest(values, count), expected)


@given(values=arrays())
def test_a_tally_is_that_of_all_values_at_once(values):
    found, counts = tally(values)
    np.testing.assert_array_equal([found, counts], np.unique(values, return_counts=True))


def test_p_values_of_many_rows_are_those_of_each():
    rng = np.random.default_rng(4)
    calibration, scores = rng.normal(size=30), rng.normal(size=200)
    at_least = (calibration >= scores[:, None]).sum(axis=1)
    np.testing.assert_allclose(conformal_p_values(calibration, scores), (1 + at_least) / 31)


def test_an_array_in_a_file_will_do(tmp_path):
    values = np.memmap(tmp_path / "values", dtype=float, mode="w+", shape=(1_000,))
    values[:] = np.random.default_rng(3).permutation(1_000)
    assert (order_statistic(values, 700), median(values)) == (700.0, 499.5)
    assert set(np.flatnonzero(largest(values, 5))) == set(np.flatnonzero(values >= 995))
