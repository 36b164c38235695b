"""Hoffmann's five sets of the plane: contours of the reconstruction error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.figures import Contours, Table
from kpca_apps.papers.measuring import components, plane_grid
from kpca_apps.papers.result import Claim, Experiment, Outcome, close_to, stated
from kpca_apps.system.arrays import Matrix

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class _Set:
    """One of the sets: how many of its last rows are noise, sigma and components."""

    noise_rows: int = 0
    sigma: float = 0.4
    q: int = 40


SETS = {
    "square": _Set(),
    "square-noise": _Set(50, 0.3, 20),
    "ring-line-square": _Set(),
    "spiral": _Set(),
    "sine-noise": _Set(200),
}

# Training reconstruction errors of an independent implementation, to six decimals; and its areas
# under the ROC curve of noise against shape, the second with q = 0.
ERRORS = {
    "ring-line-square": {"min": 0.002264, "mean": 0.014007, "max": 0.084670, "sum": 11.905578},
    "spiral": {"max": 0.006211},
    "square": {"max": 0.003016},
}
AREAS = {"sine-noise": (0.9701, 0.8669), "square-noise": (0.9642, 0.9104)}

LAST_DIGIT = 1e-6
CLEARLY = 0.02
again = partial(close_to, origin="another implementation")
remembered = partial(stated, origin="quoted from memory")
NAMES = {"min": "smallest", "mean": "mean", "max": "largest", "sum": "sum of the"}
FINE = 150  # points of a grid along each side: the wave is narrow


def run(data: PaperData) -> Outcome:
    """Fit each set, score a grid, and tell noise from shape."""
    claims: list[Claim] = []
    rows, figures = [], []
    for name, known in SETS.items():
        X = data.hoffmann(name)
        subspace = components(RBF.from_sigma(known.sigma), X, known.q)
        errors = subspace.reconstruction_error(X)
        noise = np.arange(len(X)) >= len(X) - known.noise_rows
        threshold = float(np.quantile(errors, 1.0 - noise.mean()))
        figures.append(_contours(name, subspace, X, noise, threshold))
        areas = _areas(subspace, X, noise) if noise.any() else ()
        numbers = (f"{errors.max():.4f}", f"{errors.mean():.4f}")
        shown = tuple(f"{area:.4f}" for area in areas) or ("", "")
        rows.append((name, str(len(X)), f"{known.sigma:g}", str(known.q), *numbers, *shown))
        claims += _errors(name, errors)
        claims += _found(name, *areas) if areas else []
    heads = (
        "set", "rows", "sigma", "components", "largest error", "mean error", "AUC of noise",
        "AUC, Parzen",
    )  # fmt: skip
    table = Table("Reconstruction errors of the training rows", heads, tuple(rows))
    return Outcome((_shape(data), *claims), tuple(figures), (table,))


def _errors(name: str, errors: Matrix) -> list[Claim]:
    """Compare the training errors with those of the other implementation."""
    found = {
        "min": errors.min(), "mean": errors.mean(), "max": errors.max(), "sum": errors.sum()
    }  # fmt: skip
    return [
        again(
            f"{name}: {NAMES[which]} training error{'s' if which == 'sum' else ''}",
            value,
            float(found[which]),
            LAST_DIGIT,
        )
        for which, value in ERRORS.get(name, {}).items()
    ]


def _areas(subspace: KernelSubspace, X: Matrix, noise: Flags) -> tuple[float, float]:
    """Return the area under the ROC curve of noise, and that of a Parzen density."""
    ours, parzen = (s.reconstruction_error(X) for s in (subspace, subspace.leading(0)))
    return float(roc_auc_score(noise, ours)), float(roc_auc_score(noise, parzen))


def _found(name: str, area: float, parzen: float) -> list[Claim]:
    known = AREAS[name]
    return [
        again(f"{name}: AUC of noise", known[0], area, 1e-4),
        again(f"{name}: AUC of noise, Parzen density", known[1], parzen, 1e-4),
        remembered(
            f"{name}: noise is told from shape better than by a Parzen density, by {CLEARLY} or "
            "more",
            "better",
            f"AUC {area:.4f}, Parzen {parzen:.4f}",
            area > parzen + CLEARLY,
        ),
    ]


def _contours(
    name: str, subspace: KernelSubspace, X: Matrix, noise: Flags, threshold: float
) -> Contours:
    """Return the errors over the plane; as many rows lie beyond the threshold as are noise."""
    x, y, places = plane_grid(X, side=FINE)
    values = subspace.reconstruction_error(places).reshape(1, len(y), len(x))
    labels, about = noise.astype(np.intp), ("reconstruction error",)
    words = (
        "the error beyond which as many rows lie as are noise"
        if noise.any()
        else "the largest error of a training row"
    )
    return Contours(name, x, y, values, X, labels, about, threshold, words)


def _shape(data: PaperData) -> Claim:
    """Judge whether the region within the threshold is the shape: ring, line and square."""
    X, known = data.hoffmann("ring-line-square"), SETS["ring-line-square"]
    subspace = components(RBF.from_sigma(known.sigma), X, known.q)
    threshold = subspace.reconstruction_error(X).max()
    _, _, places = plane_grid(X)
    inside = subspace.reconstruction_error(places) <= threshold
    nearest = np.sqrt(((places[:, None] - X) ** 2).sum(axis=2).min(axis=1))
    far = float(nearest[inside].max())
    return remembered(
        "ring-line-square: the threshold's contour encloses the shape closely",
        "follows ring, line and square",
        f"no place within the contour is farther than {far:.2f} from a row, sigma is "
        f"{known.sigma}; {np.mean(inside):.0%} of the rectangle around the rows lies within",
        far < known.sigma,
    )


EXPERIMENT = Experiment(
    "novelty-sets",
    "Hoffmann (2007), two-dimensional sets",
    "Novelty detection in the plane: contours of the reconstruction error",
    ("hoffmann",),
    run,
    "The paper's text and figures could not be opened. Sigma 0.4 and 40 components are the "
    "author's for ring-line-square and assumed for the others; 0.3 and 20 for the square with "
    "noise, as an independent implementation found best.",
)
