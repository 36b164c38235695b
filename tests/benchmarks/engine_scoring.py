"""Scoring with projections against the limit of its products, scikit-learn's and pyod's.

    python tests/benchmarks/engine_scoring.py [--rows 100000] [--landmarks 1000] [--components 100]

The limit is the time of the three things that cannot be left out, in the same run and the same
blocks: the product that gives exponents, exp, and the product with [W | beta].
"""

from __future__ import annotations

import argparse

from engine_common import cpu_seconds, curved_rows, machine_line, product_seconds, usual_gamma


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--components", type=int, default=100)
    options = parser.parse_args()
    n, m, q, d = options.rows, options.landmarks, options.components, 20

    import numpy as np
    from sklearn.decomposition import KernelPCA as Peer

    from kpca_apps.engine.exact import fit_exact
    from kpca_apps.engine.kernels import RBF
    from kpca_apps.engine.rows import BLOCK

    print(machine_line())
    X = curved_rows(n)
    gamma = usual_gamma(X)
    train = X[:m].copy()
    subspace = fit_exact(RBF(gamma), train, rng=np.random.default_rng(0), n_components=q)
    peer = Peer(q, kernel="rbf", gamma=gamma, eigen_solver="dense").fit(train)
    print(f"n = {n}, d = {d}, {m} points, q = {q}: rows a second, share of the limit, ratio")
    found = {
        f"ours, {precision}": (
            cpu_seconds(lambda p=precision: subspace.project_and_error(X, precision=p), 5) / n,
            product_seconds(BLOCK, d, m, q + 1, precision),
        )
        for precision in ("float32", "float64")
    }
    few = X[:20_000]
    found["scikit-learn"] = (cpu_seconds(lambda: peer.transform(few)) / len(few), None)
    try:
        from pyod.models.kpca import KPCA

        detector = KPCA(n_components=q, kernel="rbf", gamma=gamma).fit(train)
        found["pyod"] = (cpu_seconds(lambda: detector.decision_function(few[:2000])) / 2000, None)
    except ImportError:
        print("pyod is not installed")
    ours = found["ours, float32"][0]
    for who, (seconds, least) in found.items():
        share = f"{least / seconds:5.2f}" if least else "    -"
        print(f"{who:>14} {1 / seconds:9.0f}  {share}  {seconds / ours:6.2f}")
    print(machine_line())


if __name__ == "__main__":
    main()
