"""Hoffmann's five sets of the plane: contours of the reconstruction error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.claims import Claims
from kpca_apps.papers.data import Labels, PaperData
from kpca_apps.papers.figures import Contours, Table
from kpca_apps.papers.measuring import components, plane_grid
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix

judged = Claims("novelty-sets")


@dataclass(frozen=True)
class _Set:
    """One of the sets: its figure, sigma and components, and how many of its last rows are noise.

    A set with noise has the width of the one-class SVM beside it, too.
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
FINE = 150  # points of a grid along each side: the wave is narrow


def run(data: PaperData) -> Outcome:
    """Fit each set, score a grid, and judge shape and noise."""
    claims, rows, figures = [], [], []
    for name, known in SETS.items():
        X = data.hoffmann(name)
        subspace = components(RBF.from_sigma(known.sigma), X, known.q)
        errors = subspace.reconstruction_error(X)
        noise = (np.arange(len(X)) >= len(X) - known.noise_rows).astype(np.intp)
        threshold = float(np.quantile(errors, 1.0 - noise.mean()))
        figures.append(_contours(name, subspace, X, noise, threshold))
        judge = _noise if known.noise_rows else _shape
        claims.append(judge(name, subspace, X))
        numbers = (f"{errors.max():.4f}", f"{errors.mean():.4f}")
        area = f"{roc_auc_score(noise, errors):.4f}" if known.noise_rows else ""
        rows.append((name, str(len(X)), f"{known.sigma:g}", str(known.q), *numbers, area))
    heads = (
        "set", "rows", "sigma", "components", "largest error", "mean error", "AUC of noise"
    )  # fmt: skip
    table = Table("Reconstruction errors of the training rows", heads, tuple(rows))
    return Outcome(tuple(claims), tuple(figures), (table,))


def _contours(
    name: str, subspace: KernelSubspace, X: Matrix, noise: Labels, threshold: float
) -> Contours:
    """Return the errors over the plane; as many rows lie beyond the threshold as are noise."""
    x, y, places = plane_grid(X, side=FINE)
    values = subspace.reconstruction_error(places).reshape(1, len(y), len(x))
    words = (
        "the error beyond which as many rows lie as are noise"
        if noise.any()
        else "the largest error of a training row"
    )
    return Contours(name, x, y, values, X, noise, ("reconstruction error",), threshold, words)


def _noise(name: str, subspace: KernelSubspace, X: Matrix) -> Claim:
    """Count the noise among as many rows of largest score, kernel PCA's and the SVM's."""
    known = SETS[name]
    n = known.noise_rows
    machine = OneClassSVM(gamma=0.5 / known.machine_sigma**2, nu=n / len(X)).fit(X)
    ours, theirs = (
        int(np.sum(np.argsort(-scores)[:n] >= len(X) - n))
        for scores in (subspace.reconstruction_error(X), -machine.decision_function(X))
    )
    return judged("noise", ours > theirs, name, known.figure, n, theirs, ours)


def _shape(name: str, subspace: KernelSubspace, X: Matrix) -> Claim:
    """Judge whether the region within the largest error of a row keeps to the rows."""
    known, threshold = SETS[name], subspace.reconstruction_error(X).max()
    _, _, places = plane_grid(X)
    inside = subspace.reconstruction_error(places) <= threshold
    nearest = np.sqrt(((places[:, None] - X) ** 2).sum(axis=2).min(axis=1))
    far = float(nearest[inside].max())
    return judged("shape", far < known.sigma, name, known.figure, far, known.sigma, np.mean(inside))
