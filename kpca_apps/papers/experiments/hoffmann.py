"""Hoffmann (2007): novelty detection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

from kpca_apps.engine.kernels import RBF, Kernel, Linear
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.claims import compare, judge
from kpca_apps.papers.data import Labels, PaperData
from kpca_apps.papers.figures import Contours, Table
from kpca_apps.papers.measuring import components, plane_grid
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix


@dataclass(frozen=True)
class _Set:
    """A data set, its figure and its parameters.

    The last ``noise_rows`` rows are noise; ``machine_sigma`` is the width of the one-class SVM.
    """

    figure: str
    sigma: float
    q: int
    noise_rows: int = 0
    machine_sigma: float = 0.0


SETS = {
    "square": _Set("Fig. 2", 0.4, 40),
    "square-noise": _Set("Fig. 5", 0.3, 20, 50, 0.362),
    "ring-line-square": _Set("Fig. 3", 0.4, 40),
    "spiral": _Set("Fig. 4", 0.25, 40),
    "sine-noise": _Set("Fig. 6", 0.4, 40, 200, 0.489),
}
FINE = 150  # grid points along each side


def run_novelty_sets(data: PaperData) -> Outcome:
    """Plot contours of the reconstruction error for Hoffmann's five data sets."""
    claims, rows, figures = [], [], []
    for name, known in SETS.items():
        X = data.hoffmann(name)
        subspace = components(RBF.from_sigma(known.sigma), X, known.q)
        errors = subspace.reconstruction_error(X)
        noise = (np.arange(len(X)) >= len(X) - known.noise_rows).astype(np.intp)
        threshold = float(np.quantile(errors, 1.0 - noise.mean()))
        figures.append(_error_contours(name, subspace, X, noise, threshold))
        make_claim = _noise if known.noise_rows else _shape
        claims.append(make_claim(name, subspace, X))
        numbers = (f"{errors.max():.4f}", f"{errors.mean():.4f}")
        area = f"{roc_auc_score(noise, errors):.4f}" if known.noise_rows else ""
        rows.append((name, str(len(X)), f"{known.sigma:g}", str(known.q), *numbers, area))
    heads = (
        "set", "rows", "sigma", "components", "largest error", "mean error", "AUC of noise"
    )  # fmt: skip
    table = Table("Reconstruction errors of the training rows", heads, tuple(rows))
    return Outcome(tuple(claims), tuple(figures), (table,))


def _error_contours(
    name: str, subspace: KernelSubspace, X: Matrix, noise: Labels, threshold: float
) -> Contours:
    """Return contours of the error over the plane."""
    x, y, places = plane_grid(X, side=FINE)
    values = subspace.reconstruction_error(places).reshape(1, len(y), len(x))
    words = (
        "the error beyond which as many rows lie as are noise"
        if noise.any()
        else "the largest error of a training row"
    )
    return Contours(name, x, y, values, X, noise, ("reconstruction error",), threshold, words)


def _noise(name: str, subspace: KernelSubspace, X: Matrix) -> Claim:
    """Count noise rows among the highest scores of kernel PCA and of the SVM."""
    known = SETS[name]
    n = known.noise_rows
    machine = OneClassSVM(gamma=0.5 / known.machine_sigma**2, nu=n / len(X)).fit(X)
    ours, theirs = (
        int(np.sum(np.argsort(-scores)[:n] >= len(X) - n))
        for scores in (subspace.reconstruction_error(X), -machine.decision_function(X))
    )
    return judge("noise", ours > theirs, name, known.figure, n, theirs, ours)


def _shape(name: str, subspace: KernelSubspace, X: Matrix) -> Claim:
    """Judge whether the region below the largest training error stays near the rows."""
    known, threshold = SETS[name], subspace.reconstruction_error(X).max()
    _, _, places = plane_grid(X)
    inside = subspace.reconstruction_error(places) <= threshold
    nearest = np.sqrt(((places[:, None] - X) ** 2).sum(axis=2).min(axis=1))
    far = float(nearest[inside].max())
    return judge("shape", far < known.sigma, name, known.figure, far, known.sigma, np.mean(inside))


Flags = NDArray[np.bool_]

KERNEL_PCA, LINEAR_PCA, PARZEN, ONE_CLASS = "kernel PCA", "linear PCA", "Parzen", "one-class SVM"
OTHERS = (LINEAR_PCA, PARZEN, ONE_CLASS)
NUS = (0.02, 0.05, 0.1)
CANCER_SIGMAS, DIGIT_SIGMAS = (0.5, 1.0, 2.0, 4.0, 8.0), (2.0, 4.0, 8.0, 12.0, 16.0)
CANCER_COUNTS, DIGIT_COUNTS = (50, 100, 190), (50, 100, 200)
CANCER_LINEAR, DIGIT_LINEAR = tuple(range(1, 9)), (1, 8, 20, 40, 60, 100)
LOWEST_SHOWN = 0.9958  # smallest AUC shown in Fig. 9 for cancer
WITHIN = 0.0003  # tolerance of an AUC, which random noise changes by .0002
SMALL, LARGE = 0.3, 100.0  # values of sigma for the two limits in 4.2.2 and appendix A


def run_novelty_rates(data: PaperData) -> Outcome:
    """Compare the AUC of kernel PCA with that of three other methods, on cancer and the digit 0.

    Cancer: trained on the first 200 benign rows; uniform noise of up to .05 breaks ties of
    integers. Digit 0: trained on 1,194 zeros of the training file, tested on all 2,007 test digits.
    """
    parts = _cancer(data)
    cancer = _best(parts, CANCER_SIGMAS, CANCER_COUNTS, CANCER_LINEAR)
    X, y, new, truth = data.usps()
    zero = _best((X[y == 0], new, truth != 0), DIGIT_SIGMAS, DIGIT_COUNTS, DIGIT_LINEAR)
    small, parzen = (_auc(RBF.from_sigma(SMALL), q, *parts) for q in (CANCER_COUNTS[-1], 0))
    large, linear = (_auc(kernel, 4, *parts) for kernel in (RBF.from_sigma(LARGE), Linear()))
    by_line, density = zero[LINEAR_PCA], zero[PARZEN]
    claims = (
        compare("kernel PCA", _auc(RBF.from_sigma(2.0), 190, *parts)),
        compare("Parzen", cancer[PARZEN]),
        compare("linear PCA", cancer[LINEAR_PCA], _auc(Linear(), 3, *parts)),
        judge("one-class SVM", cancer[ONE_CLASS] < LOWEST_SHOWN, LOWEST_SHOWN, cancer[ONE_CLASS]),
        _beats_all("cancer", cancer),
        judge("small sigma", abs(small - parzen) <= WITHIN, SMALL, small, parzen),
        judge("large sigma", abs(large - linear) <= 2.0 * WITHIN, LARGE, large, linear),
        _beats_all("digit 0", zero),
        judge("linear and Parzen", by_line > density, by_line, density),
    )
    cells = tuple(
        (task, method, f"{auc:.4f}")
        for task, areas in (("cancer", cancer), ("digit 0", zero))
        for method, auc in areas.items()
    )
    return Outcome(claims, (), (Table("Largest AUC", ("data", "method", "AUC"), cells),))


def _beats_all(task: str, areas: dict[str, float]) -> Claim:
    others = ", ".join(f"{name} {areas[name]:.4f}" for name in OTHERS)
    ours = areas[KERNEL_PCA]
    return judge(f"best {task}", ours > max(areas[name] for name in OTHERS), ours, others)


def _auc(kernel: Kernel, q: int, train: Matrix, test: Matrix, novel: Flags) -> float:
    return float(roc_auc_score(novel, components(kernel, train, q).reconstruction_error(test)))


def _cancer(data: PaperData) -> tuple[Matrix, Matrix, Flags]:
    """Return 200 benign training rows, test rows and their labels (4.1.1)."""
    X, malignant = data.cancer()
    X = X / X.std(axis=0) + np.random.default_rng(0).uniform(-0.05, 0.05, X.shape)
    order = np.concatenate([np.flatnonzero(~malignant), np.flatnonzero(malignant)])
    X, malignant = X[order], malignant[order]
    return X[:200], X[200:], malignant[200:]


def _best(
    parts: tuple[Matrix, Matrix, Flags],
    sigmas: tuple[float, ...],
    counts: tuple[int, ...],
    linear: tuple[int, ...],
) -> dict[str, float]:
    """Return the largest AUC of each method over its settings, on the test rows."""
    train, test, novel = parts
    machines = [OneClassSVM(gamma=0.5 / s**2, nu=nu) for s in sigmas if s >= 1.0 for nu in NUS]
    scores = [-machine.fit(train).decision_function(test) for machine in machines]
    return {
        KERNEL_PCA: max(_auc(RBF.from_sigma(s), q, *parts) for s in sigmas for q in counts),
        LINEAR_PCA: max(_auc(Linear(), q, *parts) for q in linear),
        PARZEN: max(_auc(RBF.from_sigma(sigma), 0, *parts) for sigma in sigmas),
        ONE_CLASS: max(float(roc_auc_score(novel, score)) for score in scores),
    }
