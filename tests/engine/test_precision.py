from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from kpca_apps.engine.plan import plan_exact
from kpca_apps.engine.precision import agreeing_precision, choose_precision
from kpca_apps.errors import MemoryLimitError
from tests.engine.examples import KERNELS, curved_rows, normal_rows


def exact(X, plan=None, n_jobs=None, **options):
    plan = plan or plan_exact(RBF(0.05), X, n_components=12, **options)
    return fit_exact(RBF(0.05), X, rng=np.random.default_rng(0), n_jobs=n_jobs, plan=plan)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_float32_values_are_those_of_float64(kernel):
    X, Z = normal_rows(40), normal_rows(30, seed=1)
    narrow, wide = kernel.against(Z, np.float32)(X), kernel(X, Z)
    assert narrow.dtype == np.float32
    assert_allclose(narrow, wide, rtol=1e-5, atol=1e-5 * np.abs(wide).max())


def test_distances_keep_their_digits_far_from_the_origin_and_far_apart():
    X = normal_rows(60) + 1e4
    X[:5] += 1e3
    assert_allclose(RBF(0.3).against(X, np.float32)(X), RBF(0.3)(X), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "X", "q", "expected"),
    [
        (RBF(0.05), curved_rows(3000), 20, "float32"),
        (RBF(0.05), curved_rows(3000) + 1e6, 20, "float32"),
        (RBF(0.05), curved_rows(2000), 20, "float64"),
        (RBF(0.05), curved_rows(3000), 2000, "float64"),
        (RBF(1e-9), curved_rows(3000), 2, "float64"),
        (RBF(0.5), normal_rows(3000, 1), 50, "float64"),
        (Linear(), curved_rows(3000) + 1e5, 2, "float32"),
        (Polynomial(1, 1.0, 1.0), curved_rows(3000) + 1e5, 2, "float64"),
    ],
)
def test_automatic_precision(kernel, X, q, expected):
    assert choose_precision(kernel, X, q) == expected
    assert choose_precision(kernel, X, q, "float64") == "float64"


def test_scores_agree_row_by_row():
    score = np.array([1.0, 1e-7])
    for single, n, expected in (
        (score * 1.0005, 2001, "float32"),
        (score * 1.0005, 2000, "float64"),
        (score + 1e-8, 2001, "float64"),
        (score * np.nan, 2001, "float64"),
    ):
        values = {"float32": single, "float64": score}
        assert agreeing_precision(values.get, n) == expected
    assert agreeing_precision(lambda precision: np.empty(0), 2001) == "float64"


@pytest.mark.release
def test_float32_fits_are_float64_fits_to_six_digits():
    X, new = curved_rows(2300), curved_rows(2350)[2300:]
    wide, narrow = exact(X), exact(X, precision="float32")
    scale = wide.variances[0]
    assert_allclose(narrow.variances, wide.variances, rtol=0, atol=2e-6 * scale)
    assert_allclose(
        narrow.reconstruction_error(new), wide.reconstruction_error(new), rtol=0, atol=2e-5
    )
    lapack = exact(X, precision="float32", solver="lapack")
    assert_allclose(lapack.variances, wide.variances, rtol=0, atol=2e-6 * scale)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_beyond_the_budget_the_matrix_is_made_anew_and_the_bits_are_the_same(precision):
    X = curved_rows(2300)
    options = {"n_components": 12, "precision": precision}
    stored = plan_exact(RBF(0.05), X, **options)
    anew = plan_exact(RBF(0.05), X, memory_budget=stored.n_bytes - 1, **options)
    assert stored.stored and not anew.stored and anew.n_bytes < stored.n_bytes / 2
    first, second = (exact(X, plan) for plan in (stored, anew))
    assert_array_equal(first.weights, second.weights)
    assert_array_equal(first.offset, second.offset)
    with pytest.raises(MemoryLimitError, match="2300 rows"):
        plan_exact(RBF(0.05), X, memory_budget=anew.n_bytes - 1, **options)


def test_the_bits_are_the_same_for_any_number_of_threads():
    X = curved_rows(2300)
    one, two, four = (exact(X, precision="float32", n_jobs=k) for k in (1, 2, 4))
    assert_array_equal(one.weights, two.weights)
    assert_array_equal(one.weights, four.weights)


def test_eigenvalues_too_close_to_iterate_go_to_lapack_or_are_refused():
    values = np.linspace(1.0, 1.001, 400)
    X, rng = np.diag(np.sqrt(values)), np.random.default_rng(0)
    options = {"n_components": 5, "solver": "krylov", "center": False}
    found = fit_exact(Linear(), X, rng=rng, **options)
    assert_allclose(found.variances * 400, values[::-1][:5], rtol=1e-12)
    plan = plan_exact(Linear(), X, **options)
    assert plan.solver == "krylov"
    with pytest.raises(MemoryLimitError):
        fit_exact(Linear(), X, rng=rng, plan=replace(plan, memory_budget=1000), center=False)
