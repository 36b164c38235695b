import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.rows import ArrayRows
from kpca_apps.errors import MemoryLimitError
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.detector.trim import densest, trim
from kpca_apps.novelty.detector.views import RawColumns, ViewedRows


def densest_half(kernel, X, **options):
    return np.flatnonzero(trim(viewed(ArrayRows(X), kernel), kernel, **options))


def viewed(source, kernel):
    return ViewedRows(source, RawColumns.fit(source.sample, kernel))


def test_the_trim_is_exact_over_all_rows():
    rows, kernel = np.random.default_rng(5).normal(size=(1500, 3)), RBF(0.3)
    sample = np.sort(np.random.default_rng(6).choice(1500, 400, replace=False))
    source, rng = ArrayRows(rows, sample), np.random.default_rng(0)
    kept = trim(viewed(source, kernel), kernel, n_landmarks=400, rng=rng)
    # Every sampled row is a landmark: the density is the mean kernel value with the sample.
    density = kernel(rows, rows[sample]).mean(axis=1)
    assert kept.sum() == 750
    assert density[kept].min() > density[~kept].max()


def test_more_landmarks_than_fit_in_memory_are_refused_beforehand(monkeypatch):
    monkeypatch.setattr("kpca_apps.engine.plan.default_budget", lambda: 10**6)
    X, rng = np.random.default_rng(8).normal(size=(2000, 2)), np.random.default_rng(0)
    with pytest.raises(MemoryLimitError, match="2000 landmarks"):
        densest_half(RBF(1.0), X, n_landmarks=2000, rng=rng)


def test_an_even_table_keeps_all_rows_but_the_sparse():
    """A ring is equally dense everywhere: almost all its rows are kept, but not the far row."""
    rng = np.random.default_rng(5)
    angle = rng.uniform(0, 2 * np.pi, 300)
    X = np.vstack([np.column_stack([np.cos(angle), np.sin(angle)]), [[4.0, 4.0]]])
    kept = densest_half(RBF(0.2), X, n_landmarks=100, rng=rng)
    assert 300 not in kept and len(kept) >= 290


@given(
    n=st.integers(300, 1500),
    sparse=st.floats(0.0, 0.75),
    # Spreads of about 1e-16 are excluded: rounding would leave few distinct densities, and rows of
    # equal density are removed together.
    spread=st.just(0.0) | st.floats(1e-9, 0.3),
    seed=st.integers(0, 10**6),
)
def test_one_sparse_row_more_never_decides_how_many_rows_are_kept(n, sparse, spread, seed):
    """Sparse rows are added to a dense majority one at a time."""
    rng = np.random.default_rng(seed)
    dense = 1.0 + spread * rng.uniform(-1, 1, n)
    others = sparse * (1.0 + 0.1 * rng.uniform(-1, 1, n))
    numbers = np.r_[np.arange(0, n, n // 20), np.arange(1, n, n // 20)]
    for k in numbers[numbers < n - 1]:
        one, next_one = (densest(np.r_[dense, others[:j]]) for j in (k, k + 1))
        assert min(one.sum(), next_one.sum()) >= (n + k) // 2
        assert abs(int(one.sum()) - int(next_one.sum())) <= 20
    jittered = np.r_[dense, others] * (1 + 1e-4 * rng.uniform(-1, 1, 2 * n))
    kept, moved = densest(np.r_[dense, others]), densest(jittered)
    assert abs(int(kept.sum()) - int(moved.sum())) <= 2 + 5e-3 * n


def test_what_is_dense_does_not_depend_on_the_order_of_rows():
    """The rows are like measurements of two machines in alternation."""
    X = np.random.default_rng(0).normal(size=(3000, 4))
    X[1::2] += 5.0
    X[:20] += 40.0
    fitted = KernelPCANovelty(share=0.05, random_state=0).fit(X)
    assert 0.3 < np.mean(np.flatnonzero(fitted.training_labels_[20:] == -1) % 2) < 0.7
