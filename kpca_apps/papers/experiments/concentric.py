"""Three concentric clouds, (x.y + 1)^2 and a Gaussian kernel (section Example).

The first two components of (x.y + 1)^2 look like the rows themselves: the third beside the first
shows what it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from kpca_apps.papers.claims import Claims
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import rings
from kpca_apps.papers.figures import Curves, Scatter, Table
from kpca_apps.papers.measuring import (
    best_threshold_accuracy,
    components,
    contours,
    nearest_mean_accuracy,
)
from kpca_apps.papers.result import Outcome
from kpca_apps.system.arrays import Matrix

judged = Claims("concentric")

# Radii, and standard deviation of the noise; sigmas tried, over the largest radius.
RINGS = (((0.1, 0.5, 1.0), 0.05), ((1.0, 3.0, 6.0), 0.25), ((1.0, 2.0, 3.0), 0.1))
WIDTHS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15]) / 15.0
SIGMA = 0.4
AROUND = (0.3, SIGMA, 0.5)
ENOUGH = 0.99


def run(data: PaperData) -> Outcome:
    """Measure how well one component, cut twice, tells the clouds apart."""
    tried = [_Accuracies.of(radii, noise) for radii, noise in RINGS]
    X, labels = rings(np.random.default_rng(0), *RINGS[0])
    wide, sides = rings(np.random.default_rng(0), *RINGS[1])
    square = components(Polynomial(2, 1.0, 1.0), wide, 3).project(wide)
    gaussian = components(RBF.from_sigma(SIGMA), X, 4)
    G = gaussian.project(X)
    firsts = (components(RBF.from_sigma(sigma), X, 1).project(X)[:, 0] for sigma in AROUND)
    enough = [best_threshold_accuracy(first, labels) for first in firsts]
    share = "all" if min(enough) == 1.0 else f"at least {min(enough):.3f} of the"
    most, radii = max(one.linear for one in tried), _listed(RINGS[0][0])
    best = _listed(f"{one.gaussian.max():.3f}" for one in tried)
    claims = (
        judged("linear", most <= 0.7, most),
        judged("Gaussian", min(enough) >= ENOUGH, share, _listed(AROUND), radii, best),
    )
    figures = (
        Scatter("The clouds", "x", "y", X, labels),
        Scatter(
            f"(x.y + 1)^2, radii {_listed(RINGS[1][0])}: component 3 against 1",
            "component 1",
            "component 3",
            square[:, [0, 2]],
            sides,
        ),
        Scatter(f"Gaussian, sigma {SIGMA}", "component 1", "component 2", G[:, :2], labels),
        contours(f"Gaussian, sigma {SIGMA}: contours", gaussian, X, labels),
        Curves(
            "Gaussian kernel: the first component, two cuts",
            "sigma over the largest radius",
            "share of rows put right",
            {f"radii {_listed(one.radii)}": (WIDTHS, one.gaussian) for one in tried},
        ),
    )
    return Outcome(claims, figures, (_table(tried),))


@dataclass(frozen=True, eq=False)
class _Accuracies:
    """How well each kernel tells three clouds apart, as shares of the rows."""

    radii: tuple[float, ...]
    linear: float
    square: tuple[float, float, float]  # component 1, best of its five, nearest mean on three
    gaussian: Matrix  # component 1, at each of `WIDTHS`

    @classmethod
    def of(cls, radii: tuple[float, ...], noise: float) -> _Accuracies:
        X, labels = rings(np.random.default_rng(0), radii, noise)
        S = components(Polynomial(2, 1.0, 1.0), X).project(X)
        cuts = [best_threshold_accuracy(S[:, a], labels) for a in range(S.shape[1])]
        kernels = (Linear(), *(RBF.from_sigma(w * max(radii)) for w in WIDTHS))
        firsts = (components(kernel, X, 1).project(X)[:, 0] for kernel in kernels)
        linear, *gaussian = (best_threshold_accuracy(first, labels) for first in firsts)
        square = cuts[0], max(cuts), nearest_mean_accuracy(S[:, :3], labels)
        return cls(radii, linear, square, np.array(gaussian))


def _table(tried: list[_Accuracies]) -> Table:
    rows = []
    for one in tried:
        good = WIDTHS[one.gaussian >= ENOUGH] * max(one.radii)
        sigmas = f"{good.min():.2g} to {good.max():.2g}" if len(good) else "none tried"
        shares = (one.linear, *one.square, one.gaussian.max())
        rows.append((_listed(one.radii), *(f"{share:.3f}" for share in shares), sigmas))
    heads = (
        "radii",
        "linear, component 1",
        "(x.y + 1)^2, component 1",
        "best of its five",
        "nearest mean on three",
        "Gaussian, component 1, best width",
        f"sigmas with at least {ENOUGH} right",
    )
    return Table("Share of the rows put right", heads, tuple(rows))


def _listed(values: Iterable[object]) -> str:
    return ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)
