"""Plot our and scikit-learn's times against n, d, q and m on log-log axes, with slopes.

    python tests/benchmarks/engine_growth.py [--out reports/engine_growth.png] [--quick]

Each curve varies one number and fixes the others: exact fits with the matrix stored and recomputed,
fits through landmarks, and scoring, all in float32; scikit-learn's KernelPCA (arpack), its
transform, and its Nystroem + PCA, dashed. CPU seconds, one thread; the better of two runs if one
takes less than five seconds.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace

from engine import cpu_seconds, curved_rows, machine_line, usual_gamma

SIZES = {
    "n": (2500, 5000, 10_000, 20_000),
    "d": (5, 20, 80, 320),
    "q": (10, 30, 100, 300),
    "m": (125, 250, 500, 1000, 2000),
}
USUAL = {"n": 5000, "d": 20, "q": 30, "m": 500}
VARIED = {"stored": "ndq", "recomputed": "ndq", "landmarks": "ndqm", "scoring": "ndqm"}
PEERS = {"KernelPCA": "ndq", "Nystroem + PCA": "ndqm", "transform": "ndqm"}
MOST_ROWS = {"KernelPCA": 10_000}
"""Of peers whose memory or time does not allow more."""


def seconds(what: str, n: int, d: int, q: int, m: int) -> float:
    """Return the time of one fit, or of scoring n rows."""
    import numpy as np

    from kpca_apps.engine.exact import fit_exact
    from kpca_apps.engine.kernels import RBF
    from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis, subspace_from_sums
    from kpca_apps.engine.plan import FitOptions, plan_exact

    X = curved_rows(n, d)
    kernel = RBF(usual_gamma(X))

    def exact() -> None:
        plan = plan_exact(kernel, X, FitOptions(q, solver="krylov", precision="float32"))
        plan = replace(plan, stored=what == "stored")
        fit_exact(kernel, X, rng=np.random.default_rng(0), options=FitOptions(q), plan=plan)

    if what in ("stored", "recomputed"):
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
    """Return scikit-learn's CPU seconds for one fit, or for a transform of n rows."""
    from sklearn.decomposition import PCA, KernelPCA
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    X = curved_rows(n, d)
    options = {"kernel": "rbf", "gamma": usual_gamma(X)}
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
    """Return the CPU seconds of a call; short calls run twice and the lower time counts."""
    seconds = cpu_seconds(function, 1)
    return seconds if seconds > 5.0 else min(seconds, cpu_seconds(function, 1))


def measured_curves(quick: bool) -> dict[tuple[str, str], dict[int, float]]:
    """Print and return the seconds of each (parameter, method), by the parameter's value."""
    import numpy as np

    curves = {}
    for name, sizes in SIZES.items():
        for what, varied in (VARIED | PEERS).items():
            if name not in varied:
                continue
            most = MOST_ROWS.get(what, sizes[-1]) if name == "n" else sizes[-1]
            measure = peer_seconds if what in PEERS else seconds
            taken = {
                size: measure(what, **{**USUAL, name: size})
                for size in (sizes[:-1] if quick else sizes)
                if size <= most
            }
            curves[name, what] = taken
            (low, high), times = list(taken)[-2:], list(taken.values())
            slope = np.log(times[-1] / times[-2]) / np.log(high / low)
            listed = "  ".join(f"{size}: {time:.3f}" for size, time in taken.items())
            print(f"{name}  {what:>14}  {listed}  last slope {slope:.2f}", flush=True)
    return curves


def draw(curves: dict[tuple[str, str], dict[int, float]], out: str) -> None:
    """Draw all curves, one panel per parameter."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullLocator

    figure, axes = plt.subplots(1, 4, figsize=(12, 4.2), sharey=True, layout="constrained")
    colours = {what: f"C{number}" for number, what in enumerate(VARIED | PEERS)}
    for axis, (name, sizes) in zip(axes, SIZES.items(), strict=True):
        for (varied, what), taken in curves.items():
            if varied == name:
                style = "--" if what in PEERS else "-"
                label = f"scikit-learn, {what}" if what in PEERS else what
                axis.loglog(
                    list(taken),
                    list(taken.values()),
                    style,
                    c=colours[what],
                    marker=".",
                    label=label,
                )
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.xaxis.set_minor_locator(NullLocator())
        others = ", ".join(f"{key} = {value}" for key, value in USUAL.items() if key != name)
        axis.set_xlabel(name)
        axis.set_title(others, fontsize=8)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("CPU seconds, one thread")
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, fontsize=8)
    figure.savefig(out, dpi=80)
    print(f"written: {out}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="reports/engine_growth.png")
    parser.add_argument("--quick", action="store_true", help="leave out the largest of each")
    options = parser.parse_args()
    print(machine_line())
    print("usual:", ", ".join(f"{name} = {value}" for name, value in USUAL.items()))
    draw(measured_curves(options.quick), options.out)


if __name__ == "__main__":
    main()
