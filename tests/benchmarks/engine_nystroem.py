"""Kernel PCA through landmarks against the limit of its products, Nystroem + PCA, and exact.

    python tests/benchmarks/engine_nystroem.py [--rows 200000] [--landmarks 1000] [--peer 50000]

Prints CPU seconds a million rows (one thread) of stream and solve, the share of the limit (the
product that gives exponents, exp in float32, the sums of products in float64, and the solve, in
the same run), peak memory over the data, the ratio to scikit-learn's Nystroem + PCA on the same
rows, and how landmarks of each kind agree with the exact fit.
"""

from __future__ import annotations

import argparse
import json

from engine_common import (
    MIB,
    cpu_seconds,
    curved_rows,
    in_fresh_process,
    machine_line,
    measured,
    usual_gamma,
)

DIMENSIONS, COMPONENTS = 20, 100


def worker(who: str, n: int, m: int) -> None:
    """Fit once and print what it took; for ours, also what its products take alone."""
    import numpy as np
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    from kpca_apps.engine.kernel_pca import KernelPCA

    X = curved_rows(n, DIMENSIONS)
    gamma = usual_gamma(X)
    landmarks = X[np.random.default_rng(0).choice(n, m, replace=False)]
    ours = KernelPCA(COMPONENTS, gamma=gamma, method="nystroem", landmarks=landmarks)
    peer = make_pipeline(
        Nystroem(kernel="rbf", gamma=gamma, n_components=m, random_state=0),
        PCA(COMPONENTS, svd_solver="covariance_eigh"),
    )
    model = ours if who == "ours" else peer
    KernelPCA(2, gamma=gamma, method="nystroem", landmarks=landmarks[:50]).fit(X[:3000])
    taken = measured(lambda: model.fit(X))
    if who == "ours":
        taken |= {"limit": limit(n, m), "estimate": float(ours.plan_.n_bytes)}
        taken["solve"] = cpu_seconds(lambda: ours.partial_fit(X[:8]), 1)
    print(json.dumps(taken))


def limit(n: int, m: int, block: int = 4096) -> float:
    """Return the seconds that the products of all rows take at least."""
    import numpy as np

    rng = np.random.default_rng(0)
    left = rng.random((block, DIMENSIONS + 2), np.float32)
    right = -0.1 * rng.random((DIMENSIONS + 2, m), np.float32)
    kernel = np.empty((block, m), np.float32)
    wide = np.empty((block, m))
    out = np.empty((m, m))

    def products() -> None:
        np.matmul(left, right, out=kernel)
        np.exp(kernel, out=kernel)
        wide[:] = kernel
        np.matmul(wide.T, wide, out=out)

    return cpu_seconds(products, 5) * n / block


def quality(n: int, m: int) -> None:
    """Print how fits through landmarks agree with the exact one."""
    import numpy as np
    from scipy.stats import spearmanr

    from kpca_apps.engine.kernel_pca import KernelPCA
    from kpca_apps.engine.landmarks import LANDMARKS

    X = curved_rows(n + 2000, DIMENSIONS)
    X, new = X[:n], X[n:]
    gamma = usual_gamma(X)
    exact = KernelPCA(COMPONENTS, gamma=gamma, method="exact").fit(X)
    error = exact.reconstruction_error(new)
    print(f"\nlandmarks, n = {n}, m = {m}, q = {COMPONENTS}, against the exact fit")
    for kind in ("auto", *LANDMARKS):
        few = KernelPCA(
            COMPONENTS,
            gamma=gamma,
            method="nystroem",
            landmarks=kind,
            n_landmarks=m,
            random_state=0,
        )
        seconds = cpu_seconds(lambda few=few: few.fit(X), 1)
        rank = spearmanr(few.reconstruction_error(new), error).statistic
        off = np.abs(few.eigenvalues_ / exact.eigenvalues_ - 1.0).max()
        print(
            f"{kind:>12} {seconds:6.2f} s  Spearman of E {rank:.6f}  "
            f"eigenvalues off by {off:.1e}  missed {few.missed_:.2e}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--peer", type=int, default=50_000)
    parser.add_argument("--exact", type=int, default=5000)
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--worker", nargs=3, default=None)
    options = parser.parse_args()
    if options.worker:
        who, *numbers = options.worker
        worker(who, *map(int, numbers))
        return
    n, m = options.rows, options.landmarks
    print(machine_line())
    print(f"stream and solve, d = {DIMENSIONS}, {m} landmarks, q = {COMPONENTS}")
    found = {size: in_fresh_process(__file__, "ours", size, m) for size in (n, options.peer)}
    peer = in_fresh_process(__file__, "scikit-learn", options.peer, m)
    for size, ours in found.items():
        if ours:
            share = (ours["limit"] + ours["solve"]) / ours["seconds"]
            print(
                f"{'ours':>14} {size:>9} rows {ours['seconds']:8.2f} s "
                f"(solve {ours['solve']:.2f})  {1e6 * ours['seconds'] / size:7.1f} s a million  "
                f"share of the limit {share:.2f}  {ours['bytes'] / MIB:.0f} MiB "
                f"(estimate {ours['estimate'] / MIB:.0f})"
            )
    if peer:
        print(
            f"{'Nystroem + PCA':>14} {options.peer:>9} rows {peer['seconds']:8.2f} s  "
            f"{1e6 * peer['seconds'] / options.peer:7.1f} s a million  "
            f"{peer['bytes'] / MIB:.0f} MiB"
        )
        if found[options.peer]:
            print(
                f"ratio at {options.peer} rows: "
                f"{peer['seconds'] / found[options.peer]['seconds']:.2f}"
            )
    quality(options.exact, m)
    print(machine_line())


if __name__ == "__main__":
    main()
