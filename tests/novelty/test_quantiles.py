import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.novelty.quantiles import QuantileSketch


def drawn(n: int, ties: bool) -> np.ndarray:
    values = np.random.default_rng(n).standard_normal(n)
    return np.round(values, 1) if ties else values


def in_parts(values: np.ndarray, n_parts: int) -> QuantileSketch:
    parts = [QuantileSketch.of(part) for part in np.array_split(values, n_parts)]
    return sum(parts[1:], parts[0])


@pytest.fixture(autouse=True)
def small_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kpca_apps.novelty.quantiles.LEVEL", 16)


@given(n=st.integers(1, 3_000), n_parts=st.integers(1, 9), ties=st.booleans())
def test_the_bracket_holds_the_value_and_the_error_bounds_its_width(n, n_parts, ties):
    values = drawn(n, ties)
    sketch, ordered = in_parts(values, n_parts), np.sort(values)
    assert sketch.n == n
    for place in {0, n // 3, n // 2, n - 1}:
        low, high = sketch.bracket(place)
        assert low < ordered[place] <= high
        inside = int(((values > low) & (values <= high)).sum())
        common = int(np.unique(values, return_counts=True)[1].max())
        # Error on both sides twice, and one value of the highest level and its like beyond.
        assert inside <= 4 * sketch.error + 2 * (2 ** len(sketch.levels)) + 2 * common


@given(n=st.integers(1, 3_000), n_parts=st.integers(1, 9))
def test_weights_add_up_and_ranks_are_within_the_error(n, n_parts):
    values = drawn(n, ties=False)
    sketch = in_parts(values, n_parts)
    assert sum(len(level) << k for k, level in enumerate(sketch.levels)) == n
    assert all(len(level) <= 16 for level in sketch.levels)
    for share in (0.1, 0.5, 0.9):
        rank = int((values <= sketch.quantile(share)).sum())
        assert abs(rank - share * n) <= sketch.error + 2 ** len(sketch.levels)


def test_few_values_are_kept_exactly():
    sketch = QuantileSketch.of(np.arange(16.0))
    assert (sketch.error, len(sketch.levels)) == (0, 1)
    assert [sketch.bracket(k)[1] for k in range(16)] == list(range(16))


def test_the_same_parts_give_the_same_sketch():
    one, other = (in_parts(drawn(2_000, ties=False), 5) for _ in range(2))
    assert all((a == b).all() for a, b in zip(one.levels, other.levels, strict=True))
