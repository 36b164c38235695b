"""Properties of kernel PCA for any rows, within the bounds that `rounding` derives.

Longer run: ``pytest -n0 --hypothesis-profile long tests/engine/test_numerics.py``.
"""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Kernel, Linear
from kpca_apps.engine.linalg.gram import centre_in_place
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis, subspace_from_sums
from kpca_apps.engine.preimage.fixed_point import fixed_point
from tests.engine import rounding
from tests.engine.examples import DISTANCE_KERNELS, PSD_KERNELS, exact
from tests.quick import examples

COLUMNS = 4
EPS = float(np.finfo(np.float64).eps)
KINDS = ("normal", "repeated", "line", "clusters", "far", "whole")

any_kernel = st.sampled_from([*PSD_KERNELS.values()])
distance_kernel = st.sampled_from([*DISTANCE_KERNELS.values()])
seeds = st.integers(0, 2**32 - 1)


@st.composite
def tables(draw: st.DrawFn, least: int = 2, most: int = 14) -> np.ndarray:
    """Draw rows: scattered, repeated, on a line, in clusters, with one far out, or integers."""
    n, kind = draw(st.integers(least, most)), draw(st.sampled_from(KINDS))
    rng = np.random.default_rng(draw(seeds))
    X = rng.normal(size=(n, COLUMNS))
    if kind == "repeated":
        X = X[rng.integers(0, 1 + n // 3, n)]
    elif kind == "line":
        X = X[:, :1] * X[:1]
    elif kind == "clusters":
        X += 10.0 * rng.integers(0, 2, (n, 1))
    elif kind == "far":
        X[0] *= 1e3
    elif kind == "whole":
        X = np.round(2.0 * X)
    return X * 10.0 ** draw(st.integers(-3, 3))


def new_rows(X: np.ndarray, count: int = 5) -> np.ndarray:
    """Return some of the rows, each multiplied by a random factor of about 1."""
    rng = np.random.default_rng(len(X))
    return np.ascontiguousarray(
        X[rng.integers(0, len(X), count)] * rng.normal(1.0, 0.3, (count, 1))
    )


def delta_of(kernel: Kernel) -> float:
    return rounding.of_kernel(kernel, COLUMNS)


@examples(30)
@given(any_kernel, tables())
def test_gram_matrices_are_positive_semi_definite(kernel, X):
    K = kernel(X)
    trace = float(np.trace(K))
    least = np.linalg.eigvalsh((K + K.T) / 2)[0]
    assert least >= -rounding.of_gram(trace, len(X), delta_of(kernel))


@examples(30)
@given(any_kernel, tables())
def test_centring_removes_the_mean_and_is_idempotent(kernel, X):
    K = kernel(X)
    n, size = len(X), float(np.abs(K).max())
    # Centring combines each value with three means, whose errors are at most n * EPS * size.
    bound = 4 * (n + 4) * EPS * size
    H = np.eye(n, dtype=np.longdouble) - np.longdouble(1.0) / n
    expected = (H @ K.astype(np.longdouble) @ H).astype(np.float64)
    once = K.copy()
    centre_in_place(once)
    assert_allclose(once, expected, rtol=0, atol=bound)
    assert np.abs(once.sum(axis=0)).max() <= n * bound
    again = once.copy()
    centre_in_place(again)
    assert_allclose(again, once, rtol=0, atol=bound)


@examples(30)
@given(any_kernel, tables())
def test_errors_are_never_negative_and_fall_with_each_component(kernel, X):
    subspace, rows = exact(kernel, X), np.vstack([X, new_rows(X)])
    slack = rounding.of_errors(subspace, rows, delta_of(kernel))
    found = [subspace.leading(q).errors()(rows) for q in range(subspace.n_components + 1)]
    for error in found:
        assert (error >= -slack).all()
    for more, fewer in zip(found[1:], found[:-1], strict=True):
        assert (more <= fewer + slack).all()


@examples(30)
@given(any_kernel, tables())
def test_variances_and_the_rest_add_up_to_the_total(kernel, X):
    """Projections are centred and uncorrelated as well."""
    subspace = exact(kernel, X)
    n, T = len(X), subspace.project(X)
    slack = rounding.of_errors(subspace, X, delta_of(kernel)).mean()
    moved = rounding.of_gram(float(kernel.diagonal(X).sum()), n, delta_of(kernel)) / n
    total = subspace.leading(0).errors()(X).mean()
    rest = subspace.errors()(X).mean()
    # The fit drops components whose eigenvalues are as small as rounding errors; the term with n
    # bounds the sum of their variances.
    assert abs(total - rest - subspace.variances.sum()) <= 2 * slack + (n + 2) * moved
    spread = np.sqrt(subspace.variances)
    # T is V (n L)^(1/2), with eigenvectors V and variances L; the fit divides by roots of L, which
    # magnifies rounding errors of V.
    bound = 2 * moved * (1.0 / spread[:, None] + 1.0 / spread) * np.maximum(spread[:, None], spread)
    assert (np.abs(T.T @ T / n - np.diag(subspace.variances)) <= bound * 2).all()
    assert (np.abs(T.mean(axis=0)) <= 2 * moved / spread).all()


@examples(30)
@given(any_kernel, tables(least=3), seeds)
def test_the_order_of_rows_has_no_influence(kernel, X, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    agree(kernel, exact(kernel, X), exact(kernel, X[order]), new_rows(X))


def agree(kernel, one, other, rows, other_rows=None, moved=0.0):
    """Assert that two fits, cut at the widest eigenvalue gap, have equal errors up to rounding."""
    n, trace = len(one.points), float(kernel.diagonal(one.points).sum())
    delta = delta_of(kernel)
    moved += 2 * rounding.of_gram(trace, n, delta)
    shared = min(one.n_components, other.n_components)
    assert_allclose(one.variances[:shared], other.variances[:shared], rtol=0, atol=moved / n)
    if not shared:
        return
    q, gap = rounding.widest_gap(n * one.variances)
    if q > shared:
        return
    other_rows = rows if other_rows is None else other_rows
    bound = rounding.of_projection(one.leading(0).reconstruction_error(rows), moved, gap)
    bound += rounding.of_errors(one.leading(q), rows, delta)
    bound += rounding.of_errors(other.leading(q), other_rows, delta)
    found = other.leading(q).errors()(other_rows)
    assert (np.abs(found - one.leading(q).errors()(rows)) <= bound).all()


@examples(30)
@given(distance_kernel, tables(least=3), st.integers(-30, 30), st.booleans())
def test_the_origin_has_no_influence_on_distance_kernels(kernel, X, exponent, is_negative):
    # Use few binary digits so that the sums are exact.
    step = 2.0 ** (exponent - 20)
    X = np.round(X / np.abs(X).max() * 2**20) * step if X.any() else X
    far = (-1.0 if is_negative else 1.0) * 2.0**30 * step
    rows = np.round(new_rows(X) / step) * step
    agree(kernel, exact(kernel, X), exact(kernel, X + far), rows, rows + far)


@pytest.mark.filterwarnings("ignore::kpca_apps.errors.KpcaWarning")
@examples(20)
@given(
    st.sampled_from(["rbf", "laplacian", "cosine"]),
    tables(least=3),
    st.integers(-300, 300),
    st.sampled_from([{}, {"method": "nystroem", "n_landmarks": 3}, {"ridge": 0.1}]),
)
def test_the_unit_has_no_influence_on_automatic_widths(name, X, exponent, options):
    assume((X != X[0]).any())  # if all rows are equal, the width has no effect and is 1
    unit = 2.0**exponent
    model = KernelPCA(2, kernel=name, random_state=0, **options)
    rows = new_rows(X)
    found = []
    for scale in (1.0, unit):
        model.fit(X * scale)
        found.append((model.transform(rows * scale), model.reconstruction_error(rows * scale)))
    for one, other in zip(*found, strict=True):
        assert_array_equal(one, other)


@examples(30)
@given(tables(), st.integers(-140, 140), st.sampled_from([0.0, 1.0, 2.0**10, -(2.0**20)]))
def test_the_linear_kernel_is_pca_whatever_unit_and_origin(X, exponent, offset):
    # Round the rows to few digits, so that adding the offset is exact.
    size = float(np.abs(X).max()) or 1.0
    unit = 2.0**exponent
    X = (np.round(X / size * 2**22) / 2**22 + offset) * unit
    subspace = exact(Linear(), X)
    about = X - X.mean(axis=0)
    _, singular, axes = np.linalg.svd(about, full_matrices=False)
    total = float((about**2).sum())
    # A mean of n numbers, and thus a centred row, is exact to n eps times the numbers' size.
    lost = 2 * len(X) * EPS * (float(np.abs(X).max()) * np.sqrt(X.size) * np.sqrt(total) + total)
    moved = 2 * rounding.of_gram(total, len(X), delta_of(Linear())) + 2 * lost
    q = subspace.n_components
    assert_allclose(len(X) * subspace.variances, singular[:q] ** 2, rtol=0, atol=moved)
    if not q:
        return
    q, gap = rounding.widest_gap(len(X) * subspace.variances)
    T = subspace.leading(q).project(X)
    turn = min(2 * moved / gap, 1.0)
    explained = about @ axes[:q].T @ axes[:q]
    # Sums of squares do not depend on the basis.
    expected = (explained**2).sum(axis=1)
    bound = 2 * turn * (about**2).sum(axis=1)
    bound += rounding.of_errors(subspace.leading(q), X, delta_of(Linear())) + 4 * lost
    assert (np.abs((T**2).sum(axis=1) - expected) <= bound).all()


@examples(30)
@given(any_kernel, tables(), tables())
def test_float32_keeps_what_seven_digits_can(kernel, X, Z):
    single, double = kernel.against(Z, np.float32)(X), kernel(X, Z)
    delta = rounding.of_kernel(kernel, COLUMNS, np.float32)
    sizes = np.sqrt(np.outer(kernel.diagonal(X), kernel.diagonal(Z)))
    least = float(np.finfo(np.float32).tiny)
    assert single.dtype == np.float32
    assert (np.abs(single - double) <= delta * sizes + 2 * least).all()


@examples(30)
@given(any_kernel, tables(least=3))
def test_float32_errors_agree_with_float64_within_kernel_rounding(kernel, X):
    subspace, rows = exact(kernel, X), new_rows(X)
    q, _ = rounding.widest_gap(subspace.variances) if subspace.n_components else (0, 0.0)
    subspace = subspace.leading(q)
    delta = rounding.of_kernel(kernel, COLUMNS, np.float32)
    delta += 2 * len(X) * float(np.finfo(np.float32).eps)
    single, double = (subspace.errors(precision)(rows) for precision in ("float32", "float64"))
    assert (np.abs(single - double) <= rounding.of_errors(subspace, rows, delta)).all()


@examples(30)
@given(any_kernel, tables(least=3))
def test_with_all_rows_as_landmarks_a_fit_through_them_is_exact(kernel, X):
    reference = exact(kernel, X)
    kernel = reference.kernel  # in some kernels, the fit moves the origin to the mean
    basis = LandmarkBasis.from_eigen(kernel, X)
    nystroem = subspace_from_sums(basis, CovarianceSums.of_rows(basis, X))
    # The basis drops eigenvalues below 1e-10 of the largest one, which is at most the trace.
    cut = 1e-10 * float(kernel.diagonal(X).sum())
    shared = min(reference.n_components, nystroem.n_components)
    n, trace = len(X), float(kernel.diagonal(X).sum())
    # By Weyl's inequality, an error of the Gram matrix moves its eigenvalues by at most the error's
    # 2-norm. The errors are: rounding in both fits; the dropped eigenvalues, up to `cut`; and the
    # effect of rounding errors on the basis, about 2 sqrt(rounding error * trace).
    moved = 2 * rounding.of_gram(trace, n, delta_of(kernel))
    moved += cut + 2 * np.sqrt(moved * trace)
    assert_allclose(nystroem.variances[:shared], reference.variances[:shared], atol=moved / n)


def strided(X: np.ndarray) -> np.ndarray:
    wide = np.full((3 * len(X), 2 * X.shape[1]), np.nan)
    wide[1::3, ::2] = X
    return wide[1::3, ::2]


def read_only(X: np.ndarray) -> np.ndarray:
    fixed = X.copy()
    fixed.setflags(write=False)
    return fixed


layouts = st.sampled_from(
    [
        np.asfortranarray,
        strided,
        read_only,
        lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
        lambda X: X.astype(X.dtype.newbyteorder()),
        lambda X: X.tolist(),
    ]
)


@pytest.mark.filterwarnings("ignore::kpca_apps.errors.KpcaWarning")
@examples(30)
@given(tables(least=3), layouts, st.integers(0, 4), st.booleans())
def test_layouts_of_memory_change_no_bit(X, layout, q, is_nystroem):
    options = {"method": "nystroem", "n_landmarks": 4} if is_nystroem else {}
    model = KernelPCA(min(q, len(X) - 1), gamma=0.3, random_state=0, **options)
    rows = new_rows(X)
    expected = fitted(model, X, rows)
    for one, other in zip(fitted(model, layout(X), layout(rows)), expected, strict=True):
        assert_array_equal(one, other)


def fitted(model, X, rows):
    model.fit(X)
    T = model.transform(rows)
    return T, model.reconstruction_error(rows), model.inverse_transform(T), model.eigenvalues_


magnitudes = st.one_of(st.integers(-323, 308), st.integers(-3, 3))


@pytest.mark.filterwarnings("ignore::kpca_apps.errors.KpcaWarning")
@examples(30)
@example("laplacian", np.diag([1.0, 2.0, 3.0, 4.0]), [308] * COLUMNS, 0.0, {})
@example("laplacian", np.outer([0, 0, 1.5, 1.5], np.eye(COLUMNS)[0]), [308] * COLUMNS, 0.0, {})
@given(
    st.sampled_from(["rbf", "laplacian", "poly", "linear", "cosine", "sigmoid"]),
    tables(least=3),
    st.lists(magnitudes, min_size=COLUMNS, max_size=COLUMNS),
    st.sampled_from([0.0, 0.0, 1.0, -1e3, 1e8, 1e15]),
    st.sampled_from([{}, {"method": "nystroem", "n_landmarks": 3}, {"ridge": 0.1}]),
)
def test_any_magnitude_is_fitted_or_refused_in_one_line(name, X, exponents, offset, options):
    options = {} if name == "sigmoid" else options
    with np.errstate(all="ignore"):
        X = np.nan_to_num((X + offset) * np.float64(10.0) ** np.array(exponents))
    model = KernelPCA(2, kernel=name, random_state=0, **options)
    try:
        found = [model.fit(X).transform(X), model.eigenvalues_] + (
            [] if name == "sigmoid" else [model.reconstruction_error(X)]
        )
    except ValueError as error:
        assert "scale the columns" in str(error) and "\n" not in str(error)
        return
    for values in found:
        assert np.isfinite(values).all()


@examples(20)
@given(tables(least=3, most=10), st.floats(0.01, 10.0), st.integers(-60, 60))
def test_fixed_points_never_increase_the_distance_in_any_unit(X, gamma, exponent):
    gamma /= float(np.median(((X[:, None] - X) ** 2).sum(axis=2)[np.triu_indices(len(X), 1)])) or 1
    subspace = exact(RBF(gamma), X)
    q, _ = rounding.widest_gap(subspace.variances) if subspace.n_components else (0, 0.0)
    subspace, start = subspace.leading(q), new_rows(X)
    T = subspace.project(start)
    found = fixed_point(subspace, T, start)
    rho = distances(subspace, T)
    slack = 2 * rounding.of_errors(
        subspace, np.vstack([start, found.points]), 4 * delta_of(RBF(1.0))
    )
    assert (rho(found.points) <= rho(start) + slack.max() + 1e-9).all()
    assert_allclose(found.residual, np.maximum(rho(found.points), 0.0), rtol=0, atol=slack.max())
    unit = 2.0**exponent
    scaled = exact(RBF(gamma / unit**2), X * unit).leading(q)
    again = fixed_point(scaled, scaled.project(start * unit), start * unit)
    assert_array_equal(again.points, found.points * unit)


def distances(subspace, T):
    """Return a function from rows to |phi(z) - P phi(x)|^2, computed by definition."""
    g = (T * subspace.gain) @ subspace.weights.T + subspace.mean_weights
    K = subspace.kernel(subspace.points)

    def rho(Z):
        k = subspace.kernel(Z, subspace.points)
        inner, norm = (k * g).sum(axis=1), np.einsum("ij,jk,ik->i", g, K, g)
        return subspace.kernel.diagonal(Z) - 2 * inner + norm

    return rho
