"""Memory: what a fit or a scoring says beforehand, and what it takes at its largest.

    python tests/benchmarks/engine_memory.py

Each runs in a fresh process. Peaks are beyond what the process held before the call: the
interpreter, its libraries and the rows. Where the estimate exceeds 200 MiB the two should agree
within a fifth; the last lines are fits whose estimate exceeds their budget.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from engine_common import MIB, curved_rows, in_fresh_process, measured, usual_gamma

SMALL = {"method": "exact", "solver": "krylov"}
CASES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "stored, float32": (11_000, 20, {"n_components": 50, **SMALL}),
    "stored, float64": (8000, 20, {"n_components": 50, "precision": "float64", **SMALL}),
    "recomputed": (
        13_000,
        20,
        {"n_components": 450, "precision": "float32", "memory_budget": 400 * MIB, **SMALL},
    ),
    "LAPACK, float64": (4800, 20, {"n_components": 400, "method": "exact", "solver": "lapack"}),
    "landmarks, float32": (10_000, 20, {"method": "nystroem", "n_landmarks": 2000}),
    "landmarks, float64": (
        10_000,
        20,
        {"method": "nystroem", "n_landmarks": 2000, "precision": "float64"},
    ),
}
SCORING = "scoring, float32"
REFUSED = {
    "exact": (10_000, 20, {"n_components": 50, "memory_budget": 10 * MIB, "method": "exact"}),
    "landmarks": (10_000, 20, {"method": "nystroem", "memory_budget": 10 * MIB}),
}


def score(n: int = 300_000, m: int = 1000, q: int = 100) -> None:
    """Score and print the size of the answer and the peak."""
    import numpy as np

    from kpca_apps.engine.exact import fit_exact
    from kpca_apps.engine.kernels import RBF

    X = curved_rows(n)
    kernel = RBF(usual_gamma(X))
    subspace = fit_exact(kernel, X[:m].copy(), rng=np.random.default_rng(0), n_components=q)
    subspace.project_and_error(X[:m], precision="float32")
    taken = measured(lambda: subspace.project_and_error(X, precision="float32"))
    said = f"{n} rows, {m} points, {q} components; the estimate is the answer's size"
    print(json.dumps({**taken, "estimate": 8.0 * n * (q + 1), "said": said}))


def worker(name: str) -> None:
    """Fit, or refuse to, and print the estimate and the peak."""
    from kpca_apps.engine.kernel_pca import KernelPCA
    from kpca_apps.errors import MemoryLimitError

    n, d, options = CASES.get(name) or REFUSED[name]
    X = curved_rows(n, d)
    model = KernelPCA(gamma=usual_gamma(X), random_state=0, **options)
    # Everything is imported and warm before the memory is looked at.
    KernelPCA(2, solver="krylov").fit(X[:300])
    KernelPCA(2, method="nystroem", n_landmarks=20).fit(X[:300])
    said = ""

    def fit() -> None:
        nonlocal said
        try:
            said = model.fit(X).plan_.describe()
        except MemoryLimitError as error:
            said = str(error)

    taken = measured(fit)
    estimate = float(model.plan_.n_bytes) if hasattr(model, "plan_") else 0.0
    print(json.dumps({**taken, "estimate": estimate, "said": said}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", nargs=1, default=None)
    options = parser.parse_args()
    if options.worker:
        name = options.worker[0]
        score() if name == SCORING else worker(name)
        return
    print(f"{'':>20} {'estimate':>10} {'peak':>10} {'estimate / peak':>16}")
    for name in (*CASES, SCORING, *REFUSED):
        found = in_fresh_process(__file__, name)
        if not found:
            continue
        estimate, peak = found["estimate"] / MIB, found["bytes"] / MIB
        ratio = f"{estimate / peak:16.2f}" if estimate else f"{'refused':>16}"
        print(f"{name:>20} {estimate:6.0f} MiB {peak:6.0f} MiB {ratio}  {found['said']}")


if __name__ == "__main__":
    main()
