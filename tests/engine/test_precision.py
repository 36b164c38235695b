from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from kpca_apps.engine.plan import FitOptions, plan_exact
from kpca_apps.engine.precision import agreeing_precision, choose_precision
from kpca_apps.errors import MemoryLimitError
from tests.engine.examples import curved_rows, normal_rows


def exact(X, plan=None, n_jobs=None, **options):
    plan = plan or plan_exact(RBF(0.05), X, FitOptions(12, **{"precision": "float64", **options}))
    return fit_exact(
        RBF(0.05), X, rng=np.random.default_rng(0), options=FitOptions(n_jobs=n_jobs), plan=plan
    )


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
        assert agreeing_precision({"float32": single, "float64": score}.get, n) == expected
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


def test_eigenvalues_too_close_to_iterate_go_to_lapack_or_are_refused():
    values = np.linspace(1.0, 1.001, 400)
    X, rng = np.diag(np.sqrt(values)), np.random.default_rng(0)
    options = FitOptions(5, center=False, solver="krylov")
    found = fit_exact(Linear(), X, rng=rng, options=options)
    assert_allclose(found.variances * 400, values[::-1][:5], rtol=1e-12)
    plan = plan_exact(Linear(), X, replace(options, precision="float64"))
    assert plan.solver == "krylov"
    with pytest.raises(MemoryLimitError):
        fit_exact(Linear(), X, rng=rng, options=options, plan=replace(plan, memory_budget=1000))
