"""Growth of time with n, d, q and m: a log-log plot and its slopes.

    python tests/benchmarks/engine_growth.py [--out engine_growth.svg]

Each curve varies one number and keeps the others: exact fits with the matrix stored and made
anew, fits through landmarks, and scoring, all in float32. CPU seconds, one thread, best of two.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from engine_common import cpu_seconds, curved_rows, machine_line, usual_gamma

SIZES = {
    "n": (2500, 5000, 10_000, 20_000),
    "d": (5, 20, 80, 320),
    "q": (10, 30, 100, 300),
    "m": (125, 250, 500, 1000, 2000),
}
USUAL = {"n": 5000, "d": 20, "q": 30, "m": 500}
VARIED = {"stored": "ndq", "made anew": "ndq", "landmarks": "ndqm", "scoring": "ndqm"}


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
        return cpu_seconds(exact, 2)
    points = curved_rows(m, d, seed=2)

    def landmarks() -> None:
        basis = LandmarkBasis.from_eigen(kernel, points)
        sums = CovarianceSums.of_rows(basis, X, precision="float32")
        subspace_from_sums(basis, sums, n_components=q)

    if what == "landmarks":
        return cpu_seconds(landmarks, 2)
    basis = LandmarkBasis.from_eigen(kernel, points)
    subspace = subspace_from_sums(basis, CovarianceSums.of_rows(basis, X), n_components=q)
    return cpu_seconds(lambda: subspace.project_and_error(X, precision="float32"), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="engine_growth.svg")
    parser.add_argument("--quick", action="store_true", help="leave out the largest of each")
    options = parser.parse_args()

    import matplotlib
    import numpy as np

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    print(machine_line())
    print("usual:", ", ".join(f"{name} = {value}" for name, value in USUAL.items()))
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), sharey=True, layout="constrained")
    for axis, (name, sizes) in zip(axes, SIZES.items(), strict=True):
        sizes = sizes[:-1] if options.quick else sizes
        for what, varied in VARIED.items():
            if name not in varied:
                continue
            times = [seconds(what, **{**USUAL, name: size}) for size in sizes]
            slope = np.polyfit(np.log(sizes[-2:]), np.log(times[-2:]), 1)[0]
            axis.loglog(sizes, times, marker="o", label=f"{what}, slope {slope:.1f}")
            listed = "  ".join(
                f"{size}: {time:.3f}" for size, time in zip(sizes, times, strict=True)
            )
            print(f"{name}  {what:>10}  {listed}  last slope {slope:.2f}")
        axis.set_xlabel(name)
        axis.legend(fontsize=7)
    axes[0].set_ylabel("CPU seconds")
    figure.savefig(options.out)
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
