import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from kpca_apps.engine import plan as planning
from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Sigmoid
from kpca_apps.engine.plan import FitOptions, plan_exact
from kpca_apps.errors import MemoryLimitError


def test_rejections_name_size_budget_and_remedy():
    with pytest.raises(MemoryLimitError) as refusal:
        planning.require(3 * 10**9, 2 * 10**6, "The thing", "use less")
    assert str(refusal.value) == (
        "The thing needs 3.0 GB, the budget is 2 MB: use less, or raise memory_budget."
    )
    assert refusal.value.exit_code == 4
    planning.require(10, 10, "The thing", "use less")


def test_refusal_without_a_budget_says_where_the_bound_comes_from(monkeypatch):
    monkeypatch.setattr(planning, "available_bytes", lambda: 8 * 10**6)
    with pytest.raises(MemoryLimitError) as refusal:
        planning.require_nystroem(10_000, 5)
    assert str(refusal.value) == (
        "A Nystrom fit with 10000 landmarks needs 2.9 GB, a quarter of the available memory is "
        "2 MB: use fewer landmarks."
    )


def test_estimates_grow_with_the_work():
    def needed(n, q, kernel=RBF(1.0), **options):  # noqa: B008 (it cannot change)
        options = FitOptions(q, memory_budget=2**40, **{"precision": "float64", **options})
        return plan_exact(kernel, np.zeros((n, 1)), options).n_bytes

    assert needed(2000, 5) >= 8 * 2000**2 // 2
    assert needed(1000, 5) >= 8 * 1000**2
    assert needed(2000, 5, precision="float32") < needed(2000, 5)
    assert needed(2000, None) > needed(2000, 5)
    assert needed(1000, 5, kernel=Sigmoid(1.0)) > needed(1000, 5)
    assert planning.nystroem_bytes(2000, 5) > planning.nystroem_bytes(1000, 5)


def test_plans_describe_themselves():
    assert planning.ExactPlan(9000, 50, "krylov", "float32", True, 200_000_000).describe() == (
        "exact, n = 9000, q = 50: krylov in float32, Gram matrix stored, 200 MB"
    )
    assert planning.NystroemPlan(10**6, 500, "kmeans", "float32", 40_000_000).describe() == (
        "nystroem, n = 1000000, 500 landmarks (kmeans), kernel values in float32, 40 MB"
    )


FITS = {
    "stored": "X = X[:5400]; plan = plan_exact(kernel, X, FitOptions(20, precision='float64'))",
    "landmarks": "kernel = RBF(0.2); "
    "plan = choose_regime(kernel, X, FitOptions(method='nystroem', n_landmarks=1800))",
}

MEASURE = """
import sys
import numpy as np
from pathlib import Path
from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.nystroem import (CovarianceSums, LandmarkBasis, subspace_from_sums,)
from kpca_apps.engine.plan import FitOptions, choose_regime, plan_exact

def memory(kind):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(kind))

def fit(X, plan):
    if hasattr(plan, "solver"):
        return fit_exact(kernel, X, rng=np.random.default_rng(0), plan=plan)
    basis = LandmarkBasis.from_eigen(kernel, X[: plan.n_landmarks])
    sums = CovarianceSums.of_rows(basis, X, precision="float32")
    return subspace_from_sums(basis, sums, n_components=20)

kernel, X = RBF(0.02), np.random.default_rng(0).normal(size=(7000, 12))
fit_exact(kernel, X[:400], rng=np.random.default_rng(0), options=FitOptions(2, solver="krylov"))
{plan}
Path("/proc/self/clear_refs").write_text("5")
before = memory("VmRSS")
fit(X, plan)
print(plan.n_bytes, memory("VmHWM") - before)
"""


@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_a_fit_beyond_its_budget_is_refused_before_anything_is_allocated(method):
    X = np.random.default_rng(0).normal(size=(8000, 4))
    model = KernelPCA(400, method=method, memory_budget=20 * 2**20, n_landmarks=4000)
    tracemalloc.start()
    with pytest.raises(MemoryLimitError, match=r"(8000 rows|4000 landmarks) needs .* raise memory"):
        model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A refused fit allocates memory only for a sample of the rows; half of the Gram matrix would
    # take 128 MB in float32.
    assert peak < 40 * 2**20


@pytest.mark.release
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measures as Linux does")
@pytest.mark.parametrize("fit", ["stored", "landmarks"])
def test_estimate_and_measured_peak_agree_within_a_fifth(fit):
    code = MEASURE.replace("{plan}", FITS[fit])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    estimate, measured = map(int, done.stdout.split())
    assert min(estimate, measured) > 100 * 2**20
    assert 0.8 <= estimate / measured <= 1.25
