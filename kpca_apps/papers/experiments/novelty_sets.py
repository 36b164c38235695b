"""Hoffmann's five sets of the plane: contours of the reconstruction error (2007).

A Gaussian kernel, exp(-|x - y|^2 / (2 sigma^2)), and q components; a new point is novel if it lies
farther from the subspace in feature space than the training rows do. The published figures could
not be had; what can be checked are the settings, that the contours follow the shape, and how noise
is told from shape where the sets hold it: with q = 0 the error is a Parzen density.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.measuring import components, plane_grid
from kpca_apps.papers.registry import Experiment
from kpca_apps.papers.result import Claim, Isolines, Outcome, Table, stated

__all__ = ["EXPERIMENT"]

Matrix = NDArray[np.float64]

SETS = ("square", "square-noise", "ring-line-square", "spiral", "sine-noise")
NOISE_ROWS = {"square-noise": 50, "sine-noise": 200}
SIGMA, Q = 0.4, 40
FINE = 150  # points of a grid along each side: the wave is narrow


def run(data: PaperData) -> Outcome:
    """Fit each set, score a grid, and tell noise from shape."""
    claims: list[Claim] = []
    rows, figures = [], []
    for name in SETS:
        X = data.hoffmann(name)
        kernel = RBF.from_sigma(SIGMA)
        subspace = components(kernel, X, Q)
        errors = subspace.reconstruction_error(X)
        noise = np.arange(len(X)) >= len(X) - NOISE_ROWS.get(name, 0)
        threshold = float(np.quantile(errors, 1.0 - noise.mean()))
        figures.append(_contours(name, subspace, X, noise, threshold))
        row = [name, str(len(X)), f"{errors.max():.4f}", f"{errors.mean():.4f}", "", ""]
        if noise.any():
            found = float(roc_auc_score(noise, errors))
            parzen = float(roc_auc_score(noise, subspace.leading(0).reconstruction_error(X)))
            row[4:] = [f"{found:.4f}", f"{parzen:.4f}"]
            claims.append(
                stated(
                    f"{name}: noise is told from shape, better than by a Parzen density",
                    "better",
                    f"AUC {found:.4f}, Parzen {parzen:.4f}",
                    found > parzen + 0.02,
                )
            )
        rows.append(tuple(row))
    claims += _shape(data)
    heads = ("set", "rows", "largest error", "mean error", "AUC of noise", "AUC, Parzen")
    title = f"Reconstruction errors of the training rows, sigma {SIGMA}, {Q} components"
    return Outcome(tuple(claims), tuple(figures), (Table(title, heads, tuple(rows)),))


def _contours(
    name: str, subspace: KernelSubspace, X: Matrix, noise: NDArray[np.bool_], threshold: float
) -> Isolines:
    """Return the errors over the plane; as many rows lie beyond the threshold as are noise."""
    x, y, places = plane_grid(X, side=FINE)
    values = subspace.reconstruction_error(places).reshape(1, len(y), len(x))
    labels, about = noise.astype(np.intp), ("reconstruction error",)
    return Isolines(name, x, y, values, X, labels, about, threshold)


def _shape(data: PaperData) -> list[Claim]:
    """Judge whether the region within the threshold is the shape: ring, line and square."""
    X = data.hoffmann("ring-line-square")
    subspace = components(RBF.from_sigma(SIGMA), X, Q)
    threshold = subspace.reconstruction_error(X).max()
    _, _, places = plane_grid(X)
    inside = subspace.reconstruction_error(places) <= threshold
    nearest = np.sqrt(((places[:, None] - X) ** 2).sum(axis=2).min(axis=1))
    far = float(nearest[inside].max())
    return [
        stated(
            "ring-line-square: the threshold's contour encloses the shape closely",
            "follows ring, line and square",
            f"no place within the contour is farther than {far:.2f} from a row; "
            f"{np.mean(inside):.0%} of the square around the rows lies within",
            far < 2.0 * SIGMA,
        )
    ]


EXPERIMENT = Experiment(
    "novelty-sets",
    "Hoffmann (2007), two-dimensional sets",
    "Novelty detection in the plane: contours of the reconstruction error",
    ("hoffmann",),
    run,
)
