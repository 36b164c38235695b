"""Growth of time with n, d, q and m: a log-log plot and its slopes, beside scikit-learn's.

    python tests/benchmarks/engine_growth.py [--out reports/engine_growth.png] [--quick]

Each curve varies one number and keeps the others: exact fits with the matrix stored and made
anew, fits through landmarks, and scoring, all in float32; scikit-learn's KernelPCA (arpack), its
transform, and its Nystroem + PCA, dashed. CPU seconds, one thread; the best of two where one takes
less than five seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine_common import cpu_seconds, curved_rows, machine_line, usual_gamma

SIZES = {
    "n": (2500, 5000, 10_000, 20_000),
    "d": (5, 20, 80, 320),
    "q": (10, 30, 100, 300),
    "m": (125, 250, 500, 1000, 2000),
}
USUAL = {"n": 5000, "d": 20, "q": 30, "m": 500}
VARIED = {"stored": "ndq", "made anew": "ndq", "landmarks": "ndqm", "scoring": "ndqm"}
PEERS = {"KernelPCA": "ndq", "Nystroem + PCA": "ndqm", "transform": "ndqm"}
MOST_ROWS = {"KernelPCA": 10_000}
"""Of peers whose memory or time does not allow more."""


def seconds(what: str, n: int, d: int, q: int, m: int) -> float:
    """Return what one fit, or the scoring of n rows, takes."""
    import numpy as np

    from kpca_apps.engine.exact import fit_exact, plan_exact
    from kpca_apps.engine.kernels import RBF
    from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis, subspace_from_sums

    X = curved_rows(n, d)
    kernel = RBF(usual_gamma(X))

    def exact() -> None:
        plan = plan_exact(kernel, X, n_components=q, solver="krylov", precision="float32")
        plan = replace(plan, stored=what == "stored")
        fit_exact(kernel, X, rng=np.random.default_rng(0), n_components=q, plan=plan)

    if what in ("stored", "made anew"):
        return best(exact)
    points = curved_rows(m, d, seed=2)

    def landmarks() -> None:
        basis = LandmarkBasis.from_eigen(kernel, points)
        sums = CovarianceSums.of_rows(basis, X, precision="float32")
        subspace_from_sums(basis, sums, n_components=q)

    if what == "landmarks":
        return best(landmarks)
    basis = LandmarkBasis.from_eigen(kernel, points)
    subspace = subspace_from_sums(basis, CovarianceSums.of_rows(basis, X), n_components=q)
    return best(lambda: subspace.project_and_error(X, precision="float32"))


def peer_seconds(what: str, n: int, d: int, q: int, m: int) -> float:
    """Return what scikit-learn takes for the same."""
    from sklearn.decomposition import PCA, KernelPCA
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    X = curved_rows(n, d)
    gamma = usual_gamma(X)
    options = {"kernel": "rbf", "gamma": gamma}
    if what == "KernelPCA":
        exact = KernelPCA(q, eigen_solver="arpack", **options)
        return best(lambda: exact.fit(X))
    if what == "Nystroem + PCA":
        features = Nystroem(n_components=m, random_state=0, **options)
        few = make_pipeline(features, PCA(q, svd_solver="covariance_eigh"))
        return best(lambda: few.fit(X))
    fitted = KernelPCA(q, eigen_solver="dense", **options).fit(curved_rows(m, d, seed=2))
    return best(lambda: fitted.transform(X))


def best(function: Callable[[], object]) -> float:
    """Return the CPU seconds of a call, of the better of two if it is quick."""
    seconds = cpu_seconds(function, 1)
    return seconds if seconds > 5.0 else min(seconds, cpu_seconds(function, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="reports/engine_growth.png")
    parser.add_argument("--quick", action="store_true", help="leave out the largest of each")
    options = parser.parse_args()

    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    print(machine_line())
    print("usual:", ", ".join(f"{name} = {value}" for name, value in USUAL.items()))
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.8), sharey=True, layout="constrained")
    for axis, (name, sizes) in zip(axes, SIZES.items(), strict=True):
        for number, (what, varied) in enumerate((VARIED | PEERS).items()):
            if name in varied:
                curve(axis, f"C{number}", name, what, sizes[:-1] if options.quick else sizes)
        axis.set_xlabel(name)
        axis.legend(fontsize=6)
    axes[0].set_ylabel("CPU seconds, one thread")
    figure.savefig(options.out, dpi=80)
    print(f"written: {options.out}")


def curve(axis: Any, colour: str, name: str, what: str, sizes: tuple[int, ...]) -> None:
    """Measure, draw and print how one of them grows with one number."""
    import numpy as np

    if name == "n":
        sizes = tuple(size for size in sizes if size <= MOST_ROWS.get(what, size))
    measure, style = (peer_seconds, "--") if what in PEERS else (seconds, "-")
    times = [measure(what, **{**USUAL, name: size}) for size in sizes]
    slope = np.polyfit(np.log(sizes[-2:]), np.log(times[-2:]), 1)[0]
    label = f"{what}, slope {slope:.1f}"
    axis.loglog(sizes, times, style, marker="o", markersize=3, color=colour, label=label)
    listed = "  ".join(f"{size}: {time:.3f}" for size, time in zip(sizes, times, strict=True))
    print(f"{name}  {what:>14}  {listed}  last slope {slope:.2f}", flush=True)


if __name__ == "__main__":
    main()
