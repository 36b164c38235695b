"""Exact kernel PCA against scikit-learn's four solvers and pyod's KPCA, each in a fresh process.

    python tests/benchmarks/engine_exact.py [--sizes 5000,20 5000,100 10000,100] [--dense 5000]
                                            [--free 50000,100]

Prints CPU seconds (one thread), peak memory over the process's own, the largest relative error of
an eigenvalue against the most accurate of all, and the ratio to ours. `--dense` bounds the rows of
the solvers that take n^3 time; `--free` adds fits whose Gram matrix is recomputed.
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

OURS = ("ours", "ours-float64")
PEERS = ("arpack", "randomized", "dense", "auto", "pyod")
CUBIC = ("dense", "pyod")

LONG = 15.0
"""Seconds for repeating a fit, four times at most; the best counts."""


def worker(who: str, n: int, q: int, budget: int) -> None:
    """Fit once and print what it took."""
    import numpy as np
    from sklearn.decomposition import KernelPCA as Peer

    from kpca_apps.engine.kernel_pca import KernelPCA
    from kpca_apps.engine.linalg.panels import GramPanels

    X = curved_rows(n)
    gamma = usual_gamma(X)
    # Everything is imported and warm before the clock starts.
    KernelPCA(2, gamma=gamma, solver="krylov").fit(X[:300])
    estimate = 0.0
    if who.startswith("ours"):
        precision = "float64" if who.endswith("64") else "auto"
        model = KernelPCA(
            q,
            gamma=gamma,
            method="exact",
            precision=precision,
            memory_budget=budget or None,
            random_state=0,
        )
    elif who == "pyod":
        from pyod.models.kpca import KPCA

        model = KPCA(n_components=q, kernel="rbf", gamma=gamma)
    else:
        model = Peer(q, kernel="rbf", gamma=gamma, eigen_solver=who, random_state=0)
    widths: list[int] = []
    multiplied = GramPanels.product

    def counted(gram: GramPanels, V: np.ndarray) -> np.ndarray:
        widths.append(V.shape[1])
        return multiplied(gram, V)

    GramPanels.product = counted  # type: ignore[method-assign]
    taken = measured(lambda: model.fit(X))
    vectors = sum(widths)
    for _ in range(min(int(LONG / taken["seconds"]), 4)):
        taken["seconds"] = min(taken["seconds"], cpu_seconds(lambda: model.fit(X), 1))
    inner = model.kpca if who == "pyod" else model
    values = np.asarray(getattr(inner, "eigenvalues_", np.empty(0)))[:q]
    if who.startswith("ours"):
        estimate = float(model.plan_.n_bytes)
    print(
        json.dumps({**taken, "estimate": estimate, "vectors": vectors, "values": values.tolist()})
    )


def compare(n: int, q: int, dense: int) -> None:
    """Print one table."""
    print(f"\nn = {n}, d = 20, q = {q}")
    found = {}
    for who in (*OURS, *PEERS):
        cubic = who in CUBIC or (who == "auto" and q >= 10)
        if not cubic or n <= dense:
            found[who] = in_fresh_process(__file__, who, n, q, 0)
    results = {who: result for who, result in found.items() if result}
    exact = (results.get("dense") or results["ours-float64"])["values"]
    for who, result in results.items():
        line(who, n, result, exact, results["ours"]["seconds"])


def line(who: str, n: int, result: dict, exact: list[float], ours: float) -> None:
    """Print what one of them took."""
    errors = [abs(a - b) / b for a, b in zip(result["values"], exact, strict=False)]
    error = f"{max(errors):8.1e}" if errors else "       -"
    print(
        f"{who:>13} {result['seconds']:8.2f} s  {result['bytes'] / MIB:7.0f} MiB "
        f"({result['bytes'] / (8 * n * n):.2f} n^2 words)  error {error}  "
        f"ratio {result['seconds'] / ours:6.2f}"
        + (f"  estimate {result['estimate'] / MIB:.0f} MiB" if result["estimate"] else "")
    )


def free(n: int, q: int) -> None:
    """Print the fit that keeps no Gram matrix, beside the limit of its products."""
    result = in_fresh_process(__file__, "ours", n, q, 2 * n * n - 1)
    if result:
        print(f"\nrecomputed: n = {n}, d = 20, q = {q}")
        line("ours", n, result, result["values"], result["seconds"])
        least = product_limit(result["vectors"], n)
        print(f"share of the limit of its products {least / result['seconds']:.2f}")


def product_limit(vectors: int, n: int, d: int = 20) -> float:
    """Return the seconds of making half a matrix anew for each 32 vectors, and of multiplying.

    For each value of one triangle: its exponent, exp, and its part of the products of its row and
    of its column.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    left = rng.random((256, d + 2), np.float32)
    right = -0.1 * rng.random((d + 2, 1024), np.float32)
    tile = np.empty((256, 1024), np.float32)
    own, below = rng.random((1024, 32), np.float32), rng.random((256, 32), np.float32)

    def products() -> None:
        np.matmul(left, right, out=tile)
        np.exp(tile, out=tile)
        np.matmul(tile, own)
        np.matmul(tile.T, below)

    seconds = cpu_seconds(lambda: [products() for _ in range(20)], 5) / 20 / tile.size
    return seconds * n * n / 2 * vectors / 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="*", default=["5000,20", "5000,100", "10000,100"])
    parser.add_argument("--dense", type=int, default=5000)
    parser.add_argument("--free", nargs="*", default=[])
    parser.add_argument("--worker", nargs=4, default=None)
    options = parser.parse_args()
    if options.worker:
        who, *numbers = options.worker
        worker(who, *map(int, numbers))
        return
    print(machine_line())
    for size in options.sizes:
        compare(*map(int, size.split(",")), options.dense)
    for size in options.free:
        free(*map(int, size.split(",")))
    print(machine_line())


if __name__ == "__main__":
    main()
