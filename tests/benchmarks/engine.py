"""Compare the engine's speed and memory with scikit-learn and pyod.

    python tests/benchmarks/engine.py exact [--sizes 5000,20 ...] [--dense 5000] [--free 50000,100]
    python tests/benchmarks/engine.py landmarks [--rows 200000] [--landmarks 1000] [--peer 50000]
    python tests/benchmarks/engine.py scoring [--rows 100000] [--landmarks 1000] [--components 100]
    python tests/benchmarks/engine.py preimages [--rows 4608] [--points 2000] [--columns 64]

exact
    Fits of N,Q rows and components, each in a fresh process: eigenvalue errors are relative to the
    most accurate solver. ``--dense`` bounds the rows of solvers that take n^3 time; ``--free`` adds
    fits whose Gram matrix is recomputed.
landmarks
    Times of fits; agreement of each kind of landmarks with the exact fit of ``--exact`` rows.
scoring
    Projections and errors of new rows.
preimages
    A step of the fixed point, and the toy of Mika et al. (1998): eleven Gaussian sources in ten
    dimensions, rows denoised by projection and pre-image; errors are mean squared distances to
    the source, relative to those of the noisy rows.

Times are CPU seconds of one process with one thread for linear algebra, the best of several runs.
Memory is the peak of a fresh process minus its memory before the call.
"""

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# Restrict every library to one thread; must precede the import of numpy.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from scipy.spatial.distance import pdist  # noqa: E402
from scipy.stats import spearmanr  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.decomposition import KernelPCA as Peer  # noqa: E402
from sklearn.kernel_approximation import Nystroem  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402

from kpca_apps.engine.exact import fit_exact  # noqa: E402
from kpca_apps.engine.kernel_pca import KernelPCA  # noqa: E402
from kpca_apps.engine.kernels import RBF  # noqa: E402
from kpca_apps.engine.landmarks import LANDMARKS  # noqa: E402
from kpca_apps.engine.plan import FitOptions  # noqa: E402
from kpca_apps.engine.preimage.fixed_point import fixed_point  # noqa: E402

Matrix = NDArray[np.float64]
MIB = 2**20
DIMENSIONS, COMPONENTS = 20, 100
OURS = ("ours", "ours-float64")
PEERS = ("arpack", "randomized", "dense", "auto", "pyod")
CUBIC = ("dense", "pyod")
LONG = 15.0
"""Seconds for repeating a fit, four times at most; the best counts."""
KEPT, SOURCES, TOY_DIMENSIONS, TRAINED, TESTED = 32, 11, 10, 100, 33
"""Components of pre-images; sources, columns, and rows of a source of the toy."""


def curved_rows(n: int, d: int = DIMENSIONS, seed: int = 0) -> Matrix:
    """Return rows near a curved five-dimensional surface."""
    rng = np.random.default_rng(seed)
    bend, bow = np.random.default_rng(1).normal(size=(2, 5, d)) / np.sqrt(5.0)
    latent = rng.normal(size=(n, 5))
    surface = np.sin(1.5 * latent @ bend) + 0.3 * (latent @ bow) ** 2
    return surface + 0.1 * rng.normal(size=(n, d))


def usual_gamma(X: Matrix) -> float:
    return 1.0 / float(np.median(pdist(X[:500], "sqeuclidean")))


def cpu_seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """Return the lowest CPU seconds of several calls."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def machine_line() -> str:
    """Describe in one line how fast the machine computes matrix products and exponentials."""
    rates, exps = [], []
    for dtype in ("float32", "float64"):
        left, right = (np.random.default_rng(seed).random((2048,) * 2) for seed in (0, 1))
        left, right, out = left.astype(dtype), right.astype(dtype), np.empty((2048,) * 2, dtype)
        seconds = cpu_seconds(lambda a=left, b=right, c=out: np.matmul(a, b, out=c), 5)
        rates.append(2e-9 * 2048**3 / seconds)
        exponents = -4.0 * np.random.default_rng(0).random((512, 1000)).astype(dtype)
        out = np.empty_like(exponents)
        seconds = cpu_seconds(lambda a=exponents, b=out: np.exp(a, out=b), 20)
        exps.append(1e-9 * exponents.size / seconds)
    return (
        f"machine, one thread: gemm {rates[0]:.0f} / {rates[1]:.0f} GFLOP/s, "
        f"exp {exps[0]:.2f} / {exps[1]:.2f} G/s (float32 / float64)"
    )


def memory_bytes(kind: str) -> int:
    """Return this process's memory (Linux): "VmRSS" is current, "VmHWM" the peak."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"{kind}:")[2].split()[0]) * 1024


def measured(function: Callable[[], object]) -> dict[str, Any]:
    """Return the CPU seconds of one call and the memory it added."""
    # Writing 5 resets VmHWM, which would otherwise include making the data.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = memory_bytes("VmRSS")
    return {"seconds": cpu_seconds(function, 1), "bytes": float(memory_bytes("VmHWM") - before)}


def in_fresh_process(function: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any] | None:
    """Return a function's result from a fresh process; None if a library or memory is missing."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(function, *args).result()
        except (ImportError, MemoryError, BrokenProcessPool) as error:
            print("   ", str(error)[:110] or "killed")
            return None


def exact_fit(who: str, n: int, q: int, budget: int) -> dict[str, Any]:
    X = curved_rows(n)
    gamma = usual_gamma(X)
    # Import and warm up everything before timing.
    KernelPCA(2, gamma=gamma, solver="krylov").fit(X[:300])
    if who.startswith("ours"):
        options = {"precision": "float64" if who.endswith("64") else "auto", "method": "exact"}
        model = KernelPCA(
            q, gamma=gamma, memory_budget=budget or None, random_state=0, **options
        )  # fmt: skip
    elif who == "pyod":
        from pyod.models.kpca import KPCA

        model = KPCA(n_components=q, kernel="rbf", gamma=gamma)
    else:
        model = Peer(q, kernel="rbf", gamma=gamma, eigen_solver=who, random_state=0)
    taken = measured(lambda: model.fit(X))
    for _ in range(min(int(LONG / taken["seconds"]), 4)):
        taken["seconds"] = min(taken["seconds"], cpu_seconds(lambda: model.fit(X), 1))
    inner = model.kpca if who == "pyod" else model
    return taken | {"values": np.asarray(getattr(inner, "eigenvalues_", np.empty(0)))[:q]}


def print_exact(who: str, n: int, result: dict[str, Any], exact: Matrix, ours: float) -> None:
    n_values = min(len(result["values"]), len(exact))
    errors = np.abs(result["values"][:n_values] / exact[:n_values] - 1.0)
    error = f"{errors.max():8.1e}" if n_values else "       -"
    print(
        f"{who:>13} {result['seconds']:8.2f} s  {result['bytes'] / MIB:7.0f} MiB "
        f"({result['bytes'] / (8 * n * n):.2f} n^2 words)  error {error}  "
        f"ratio {result['seconds'] / ours:6.2f}"
    )


def exact(args: argparse.Namespace) -> None:
    """Print time, memory and error of fits, then those of fits without a stored Gram matrix."""
    for n, q in (map(int, size.split(",")) for size in args.sizes):
        print(f"\nn = {n}, d = {DIMENSIONS}, q = {q}")
        solvers = [
            who for who in (*OURS, *PEERS)
            if n <= args.dense or not (who in CUBIC or (who == "auto" and q >= 10))
        ]  # fmt: skip
        found = {who: in_fresh_process(exact_fit, who, n, q, 0) for who in solvers}
        results = {who: result for who, result in found.items() if result}
        values = (results.get("dense") or results["ours-float64"])["values"]
        for who, result in results.items():
            print_exact(who, n, result, values, results["ours"]["seconds"])
    for n, q in (map(int, size.split(",")) for size in args.free):
        if result := in_fresh_process(exact_fit, "ours", n, q, 2 * n * n - 1):
            print(f"\nrecomputed: n = {n}, d = {DIMENSIONS}, q = {q}")
            print_exact("ours", n, result, result["values"], result["seconds"])


def landmark_fit(who: str, n: int, m: int) -> dict[str, Any]:
    """Return time and memory of a fit."""
    X = curved_rows(n)
    gamma = usual_gamma(X)
    points = X[np.random.default_rng(0).choice(n, m, replace=False)]
    ours = KernelPCA(COMPONENTS, gamma=gamma, method="nystroem", landmarks=points)
    features = Nystroem(kernel="rbf", gamma=gamma, n_components=m, random_state=0)
    peer = make_pipeline(features, PCA(COMPONENTS, svd_solver="covariance_eigh"))
    KernelPCA(2, gamma=gamma, method="nystroem", landmarks=points[:50]).fit(X[:3000])
    return measured(lambda: (ours if who == "ours" else peer).fit(X))


def landmarks(args: argparse.Namespace) -> None:
    """Print the costs of landmark fits, and their agreement with the exact fit."""
    m = args.landmarks
    print(f"d = {DIMENSIONS}, {m} landmarks, q = {COMPONENTS}")
    for who, n in (("ours", args.rows), ("ours", args.peer), ("Nystroem + PCA", args.peer)):
        if taken := in_fresh_process(landmark_fit, who, n, m):
            print(
                f"{who:>14} {n:>9} rows {taken['seconds']:8.2f} s  "
                f"{1e6 * taken['seconds'] / n:7.1f} s a million  {taken['bytes'] / MIB:.0f} MiB"
            )
    X = curved_rows(args.exact + 2000)
    X, new = X[: args.exact], X[args.exact :]
    gamma = usual_gamma(X)
    exact = KernelPCA(COMPONENTS, gamma=gamma, method="exact").fit(X)
    error = exact.reconstruction_error(new)
    print(f"\nlandmarks, n = {args.exact}, m = {m}, q = {COMPONENTS}, against the exact fit")
    for kind in ("auto", *LANDMARKS):
        options = {"landmarks": kind, "n_landmarks": m, "random_state": 0, "method": "nystroem"}
        few = KernelPCA(COMPONENTS, gamma=gamma, **options)
        seconds = cpu_seconds(lambda few=few: few.fit(X), 1)
        rank = spearmanr(few.reconstruction_error(new), error).statistic
        off = np.abs(few.eigenvalues_ / exact.eigenvalues_ - 1.0).max()
        print(
            f"{kind:>12} {seconds:6.2f} s  Spearman of E {rank:.6f}  "
            f"eigenvalues off by {off:.1e}  missed {few.missed_:.2e}"
        )


def scoring(args: argparse.Namespace) -> None:
    """Print rows per second, and each method's time relative to the engine's in float32."""
    n, m, q = args.rows, args.landmarks, args.components
    X = curved_rows(n)
    gamma, train, few = usual_gamma(X), X[:m].copy(), X[:20_000]
    subspace = fit_exact(RBF(gamma), train, rng=np.random.default_rng(0), options=FitOptions(q))
    peer = Peer(q, kernel="rbf", gamma=gamma, eigen_solver="dense").fit(train)
    print(f"n = {n}, d = {DIMENSIONS}, {m} points, q = {q}: rows a second, ratio")
    found = {
        f"ours, {precision}": cpu_seconds(
            lambda p=precision: subspace.project_and_error(X, precision=p), 5
        )
        / n
        for precision in ("float32", "float64")
    }
    found["scikit-learn"] = cpu_seconds(lambda: peer.transform(few)) / len(few)
    try:
        from pyod.models.kpca import KPCA
    except ImportError:
        print("pyod is not installed")
    else:
        detector = KPCA(n_components=q, kernel="rbf", gamma=gamma).fit(train)
        found["pyod"] = cpu_seconds(lambda: detector.decision_function(few[:2000])) / 2000
    for who, seconds in found.items():
        print(f"{who:>14} {1 / seconds:9.0f}  {seconds / found['ours, float32']:6.2f}")


def preimages(args: argparse.Namespace) -> None:
    """Print the time per step and row, the total times, and the errors on the toy data."""
    n, p, d = args.rows, args.points, args.columns
    X = curved_rows(p + n, d)
    train, new, gamma = X[:p], X[p:], usual_gamma(X)
    subspace = fit_exact(RBF(gamma), train, rng=np.random.default_rng(0), options=FitOptions(KEPT))
    T = subspace.project(new)
    found = fixed_point(subspace, T, new)
    seconds = cpu_seconds(lambda: fixed_point(subspace, T, new), 3)
    # The final evaluation of a row's distance costs as much as a step.
    steps = int(found.iterations.sum()) + n
    print(f"{n} rows, {p} points, {d} columns, {KEPT} components, float64")
    print(
        f"  fixed point: {1e6 * seconds / steps:.1f} us a row and step, {steps / n:.1f} steps a "
        f"row; {1e6 * seconds / n:.0f} us a row"
    )
    peer = Peer(KEPT, kernel="rbf", gamma=gamma, fit_inverse_transform=True, alpha=0.1).fit(train)
    projected = peer.transform(new)
    learned = cpu_seconds(lambda: peer.inverse_transform(projected), 3)
    print(f"  scikit-learn, learned: {1e6 * learned / n:.0f} us a row")
    print("toy: remaining squared error as a fraction of the noise")
    print(f"{'noise':>8} {'q':>4} {'fixed point':>12} {'scikit-learn, best of three alpha':>36}")
    for noise in (0.05, 0.1, 0.2):
        for q, ours, theirs in toy(noise):
            print(f"{noise:8.2f} {q:4d} {ours:12.4f} {theirs:36.4f}")


def toy(noise: float) -> list[tuple[int, float, float]]:
    """Return, for each number of components, our error and scikit-learn's."""
    rng = np.random.default_rng(0)
    sources = rng.uniform(-1.0, 1.0, (SOURCES, TOY_DIMENSIONS))
    train, clean = (np.repeat(sources, rows, axis=0) for rows in (TRAINED, TESTED))
    train = train + noise * rng.normal(size=train.shape)
    noisy = clean + noise * rng.normal(size=clean.shape)
    gamma = 1.0 / (2.0 * TOY_DIMENSIONS * noise**2 * 4.0)

    def left(points: Matrix) -> float:
        return float(((points - clean) ** 2).sum() / ((noisy - clean) ** 2).sum())

    lines = []
    for q in (SOURCES - 1, 4 * SOURCES):
        model = KernelPCA(q, gamma=gamma).fit(train)
        errors = []
        for alpha in (1.0, 0.1, 0.01):
            peer = Peer(q, kernel="rbf", gamma=gamma, fit_inverse_transform=True, alpha=alpha)
            errors.append(left(peer.fit(train).inverse_transform(peer.transform(noisy))))
        lines.append((q, left(model.preimages(model.transform(noisy), noisy).points), min(errors)))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(required=True)
    for part, numbers in (
        (exact, {"dense": 5000}),
        (landmarks, {"rows": 200_000, "peer": 50_000, "exact": 5000, "landmarks": 1000}),
        (scoring, {"rows": 100_000, "landmarks": 1000, "components": 100}),
        (preimages, {"rows": 4608, "points": 2000, "columns": 64}),
    ):
        of_part = parts.add_parser(part.__name__)
        of_part.set_defaults(part=part)
        for name, value in numbers.items():
            of_part.add_argument(f"--{name}", type=int, default=value)
        if part is exact:
            of_part.add_argument("--sizes", nargs="*", default=["5000,20", "5000,100", "10000,100"])
            of_part.add_argument("--free", nargs="*", default=[])
    args = parser.parse_args()
    print(machine_line())
    args.part(args)
    print(machine_line())


if __name__ == "__main__":
    main()
