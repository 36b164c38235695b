"""The detector's invariances: units, row order, memory layout, magnitudes.

Long run: ``pytest -n0 --hypothesis-profile long tests/novelty/detector/test_numerics.py``.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
from hypothesis import example, given, reject
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kpca_apps.engine.kernels import RBF
from kpca_apps.errors import KpcaWarning
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from tests.engine.test_numerics import layouts
from tests.quick import examples

OPTIONS = (
    {},
    {"contaminated": False},
    {"kernel": RBF(0.2)},
    {"method": "hoffmann", "components": 1},
    {"method": "hoffmann", "contaminated": False},
    {"n_landmarks": 5, "contaminated": False},
)
# Advice in error messages about magnitudes or about too few rows.
WORDS = ("scale the columns", "divide it by", "columns are constant", "fewer components")
seeds = st.integers(0, 2**32 - 1)
options = st.sampled_from(OPTIONS)


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """Draw a small table: numbers, few levels, a dependent column, an odd cell."""
    n, d = draw(st.integers(12, 20)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(seeds))
    X = rng.normal(size=(n, d))
    if draw(st.booleans()):
        X[:, 0] = rng.integers(0, 3, n)
    if d > 2 and draw(st.booleans()):
        X[:, 2] = X[:, 1] + 0.01 * rng.normal(size=n)
    if draw(st.booleans()):
        X[0, -1] = 50.0
    X[1, 0] = X[0, 0] + 1.0  # at least one column varies
    return X


def trained(given_as: dict, X: object) -> KernelPCANovelty:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KpcaWarning)
        return KernelPCANovelty(random_state=0, **given_as).fit(X)


def fitted(given_as: dict, X: object, rows: object) -> tuple[np.ndarray, ...]:
    model = trained(given_as, X)
    return model.novelty_scores_, model.novelty_scores(rows), model.training_labels_


def outcome(given_as: dict, X: object, rows: object) -> tuple[np.ndarray, ...]:
    """Return the result of `fitted`, or its error message without numbers."""
    try:
        return fitted(given_as, X, rows)
    except ValueError as error:
        return (np.array(re.sub(r"[-\d.e+]+", "", str(error))),)


def assert_same(one: tuple[np.ndarray, ...], other: tuple[np.ndarray, ...]) -> None:
    for actual, expected in zip(one, other, strict=True):
        assert_array_equal(actual, expected)


@examples(8)
@given(options, tables(), st.lists(st.integers(-400, 400), min_size=4, max_size=4))
def test_the_unit_of_each_column_is_of_no_influence(given_as, X, exponents):
    """Results are equal to the last bit, as scaling by powers of two is exact."""
    exponents = exponents[: X.shape[1]]
    if given_as.get("kernel"):
        exponents = [0] * X.shape[1]  # a custom kernel uses columns unscaled
    unit, rows = 2.0 ** np.array(exponents), 1.5 * X[:4]
    assert_same(outcome(given_as, X * unit, rows * unit), outcome(given_as, X, rows))


# Row sums used to differ in the last digits if the rows were stored column by column.
ROWS = """
-1.9 0.1 0.9  -0.9 -0.4 -0.5  0.7 -0.4 -0.9  -0.2 0.9 -1.3  -1.4 -0.5 0.3  0.9 -1.6 1.3
-0.7 0.4 1.7  0.5 -0.8 -1.1  1.2 -1.1 -0.7  -0.7 -1.4 2.0  1.4 -0.9 0.7  1.0 0.4 -0.1
"""


@examples(8)
@example(OPTIONS[3], np.array(ROWS.split(), float).reshape(-1, 3), np.asfortranarray)
@given(options, tables(), layouts)
def test_layouts_of_memory_change_no_bit(given_as, X, layout):
    rows = 1.5 * X[:4]
    assert_same(outcome(given_as, layout(X), layout(rows)), outcome(given_as, X, rows))


@examples(8)
@given(options, tables(), seeds)
def test_what_a_row_scores_depends_on_no_other_row_scored(given_as, X, seed):
    rows = np.vstack([X, 1.5 * X, -X])
    order = np.random.default_rng(seed).permutation(len(rows))[: 1 + seed % len(rows)]
    try:
        model = trained(given_as, X)
    except ValueError:
        reject()  # a refused table has no scores
    assert_array_equal(model.novelty_scores(rows[order]), model.novelty_scores(rows)[order])


@examples(8)
@given(tables(), seeds)
def test_the_order_of_training_rows_is_of_no_influence_where_all_are_landmarks(X, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    given_as = {"contaminated": False, "kernel": RBF(0.2), "ridge": 0.1}
    one, other = (fitted(given_as, rows, 1.5 * X) for rows in (X, X[order]))
    # Errors of kernel values (1e-11) are divided by the Gram matrix's relative jitter (1e-7).
    bound = len(X) * 1e-11 / 1e-7
    assert_allclose(other[0], one[0][order], rtol=0, atol=bound)
    assert_allclose(other[1], one[1], rtol=0, atol=bound)


magnitudes = st.one_of(st.integers(-323, 308), st.integers(-3, 3))


@examples(15)
@given(
    options,
    tables(),
    st.lists(magnitudes, min_size=4, max_size=4),
    st.lists(st.sampled_from([0.0, 0.0, 1.0, -1e3, 1e8, 1e15]), min_size=4, max_size=4),
)
def test_any_magnitude_is_scored_or_refused_in_one_line(given_as, X, exponents, offsets):
    d = X.shape[1]
    with np.errstate(all="ignore"):
        X = np.nan_to_num((X + offsets[:d]) * np.float64(10.0) ** np.array(exponents[:d]))
    try:
        training, new, labels = fitted(given_as, X, X[:5])
    except ValueError as error:
        assert "\n" not in str(error)
        assert any(word in str(error) for word in WORDS)
        return
    assert np.isfinite(training).all() and np.isfinite(new).all()
    assert set(labels) <= {-1, 1}
