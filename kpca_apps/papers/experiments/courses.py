"""Check claims of course notes and of an encyclopedia article on kernel PCA."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from kpca_apps.engine.kernels import RBF, Kernel, Linear, Polynomial
from kpca_apps.papers.claims import judge
from kpca_apps.papers.data import Labels, PaperData
from kpca_apps.papers.drawn import rings
from kpca_apps.papers.figures import Contours, Curves, Figure, Scatter, Table
from kpca_apps.papers.measuring import (
    best_threshold_accuracy,
    components,
    contours,
    line_accuracy,
    nearest_mean_accuracy,
    plane_grid,
)
from kpca_apps.papers.methods.features import class_means, regress_on_components
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix


def run_course(data: PaperData) -> Outcome:
    """Run the illustrations of the course notes: nearest class means, rings, and y ~ x + x^2.

    Some claims state errors of the notes (the sign of b in eq. (3.3), separability by any kernel).
    """
    rng = np.random.default_rng(0)
    clouds, sides = _clouds(rng)
    parts = (_means(clouds, sides), _rings(*rings(rng, (1.0, 2.0), 0.15)), _parabola(rng))
    claims = tuple(claim for claims_of_part, _ in parts for claim in claims_of_part)
    return Outcome(claims, tuple(figure for _, figures in parts for figure in figures))


def _clouds(rng: np.random.Generator) -> tuple[Matrix, Labels]:
    sides = np.repeat(np.arange(2), 100)
    return rng.normal(size=(200, 2)) + 4.0 * sides[:, None], sides


def _means(X: Matrix, sides: Labels) -> tuple[list[Claim], list[Figure]]:
    """Classify by the nearest class mean, with the correct offset and with the misprinted one."""
    model = class_means(Linear(), X, sides)
    wrong = float(np.mean(model.predict(X) != sides))
    values = np.diff(model.decision(X))[:, 0]
    b = float(0.5 * (model.norms[0] - model.norms[1]))
    printed = float(np.mean((values - 2.0 * b > 0.0) != (sides == 1)))
    half = 0.5 * np.diff(model.gamma @ X, axis=0)
    claims = [
        judge("two clouds", wrong < 0.05, wrong),
        judge("offset", wrong < 0.05 and printed > 0.3, wrong, printed),
    ]
    title = "Fig. 3.2: two clouds; w connects their means"
    return claims, [
        Scatter(title, "x", "y", X, sides, np.vstack([half, -half])),
        _rule("Fig. 3.2: values of the rule (3.2), and where its sign changes", X, sides, Linear()),
    ]


def _rings(X: Matrix, labels: Labels) -> tuple[list[Claim], list[Figure]]:
    """Classify rings by the nearest class mean, and by a line in input or in component space."""
    kernels = {"the inner product": Linear(), "(x.y)^2": Polynomial(2)}
    plain, parted_wrong = (
        float(np.mean(class_means(kernel, X, labels).predict(X) != labels))
        for kernel in kernels.values()
    )
    angles = np.radians(np.arange(180.0))
    line = max(
        best_threshold_accuracy(X @ axis, labels)
        for axis in np.column_stack([np.cos(angles), np.sin(angles)])
    )
    square, cube = (components(Polynomial(degree), X).project(X) for degree in (2, 3))
    parts, of_cube = separable(square, labels), line_accuracy(cube, labels)
    plane = "a" if parts else "no"
    claims = [
        judge("coincide", plain > 0.3 and parted_wrong < 0.05, plain, parted_wrong),
        judge("single line", line < 0.75, line),
        judge("separable", parts and not separable(cube, labels), plane, of_cube),
    ]
    title = "Fig. 3.3: values of the rule (3.2), and where its sign changes"
    return claims, [
        Scatter("Fig. 3.3, and Fig. 2 of the notes in English: rings", "x", "y", X, labels),
        _rule(title, X, labels, *kernels.values(), captions=tuple(kernels)),
    ]


def separable(T: Matrix, labels: Labels) -> bool:
    """Return whether a hyperplane separates groups 0 and 1."""
    sides = 2.0 * labels - 1.0
    margins = sides[:, None] * np.column_stack([T / np.abs(T).max(), np.ones(len(T))])
    solution = linprog(
        np.zeros(margins.shape[1]), A_ub=-margins, b_ub=-np.ones(len(T)), bounds=(None, None)
    )
    return bool(solution.success)


def _rule(
    title: str,
    X: Matrix,
    labels: Labels,
    *kernels: Kernel,
    captions: tuple[str, ...] = ("the inner product",),
) -> Contours:
    """Return contours of eq. (3.2), a panel for each kernel; 0 is the boundary."""
    x, y, places = plane_grid(X)
    values = np.stack(
        [
            np.diff(class_means(kernel, X, labels).decision(places))[:, 0].reshape(len(y), len(x))
            for kernel in kernels
        ]
    )
    return Contours(title, x, y, values, X, labels, captions, 0.0, "where the sign changes")


def _parabola(rng: np.random.Generator) -> tuple[list[Claim], list[Figure]]:
    """Fit y ~ x + x^2 by regression on components and by least squares."""
    x = rng.uniform(-1.0, 1.0, 80)
    y = x + x**2 + 0.1 * rng.normal(size=80)
    subspace = components(Polynomial(2, 1.0, 1.0), x[:, None])
    place = np.linspace(-1.2, 1.2, 60)
    fitted = regress_on_components(subspace, x[:, None], y).predict(place[:, None])
    gap = float(np.abs(fitted - np.polyval(np.polyfit(x, y, 2), place)).max())
    straight = np.polyval(np.polyfit(x, y, 1), place).astype(np.float64)
    gaps = [float(np.std(y - np.polyval(np.polyfit(x, y, d), x))) for d in (1, 2)]
    claim = judge("curve", gaps[1] < 0.5 * gaps[0] and gap < 1e-08, gaps[1], gaps[0], gap)
    series = {"components of (x.y + 1)^2": (place, fitted), "straight line": (place, straight)}
    return [claim], [Curves("y ~ x + x^2", "x", "y", series, points=np.column_stack([x, y]))]


# Radii and noise of the data sets, and kernel widths as multiples of the largest radius.
RINGS = (((0.1, 0.5, 1.0), 0.05), ((1.0, 3.0, 6.0), 0.25), ((1.0, 2.0, 3.0), 0.1))
WIDTHS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15]) / 15.0
SIGMA = 0.4
AROUND = (0.3, SIGMA, 0.5)
ENOUGH = 0.99


def run_concentric(data: PaperData) -> Outcome:
    """Separate three concentric clouds by kernels (x.y + 1)^2 and Gaussian (section Example).

    The first two components of (x.y + 1)^2 resemble the rows themselves. The third component,
    plotted against the first, separates the clouds.
    """
    tried = [_Accuracies.of(radii, noise) for radii, noise in RINGS]
    X, labels = rings(np.random.default_rng(0), *RINGS[0])
    wide, sides = rings(np.random.default_rng(0), *RINGS[1])
    square = components(Polynomial(2, 1.0, 1.0), wide, 3).project(wide)
    gaussian = components(RBF.from_sigma(SIGMA), X, 4)
    G = gaussian.project(X)
    firsts = (components(RBF.from_sigma(sigma), X, 1).project(X)[:, 0] for sigma in AROUND)
    enough = [best_threshold_accuracy(first, labels) for first in firsts]
    share = "all" if min(enough) == 1.0 else f"at least {min(enough):.3f} of the"
    most, radii = max(shares.linear for shares in tried), _listed(RINGS[0][0])
    best = _listed(f"{shares.gaussian.max():.3f}" for shares in tried)
    claims = (
        judge("linear", most <= 0.7, most),
        judge("Gaussian", min(enough) >= ENOUGH, share, _listed(AROUND), radii, best),
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
            {f"radii {_listed(shares.radii)}": (WIDTHS, shares.gaussian) for shares in tried},
        ),
    )
    return Outcome(claims, figures, (_table(tried),))


@dataclass(frozen=True, eq=False)
class _Accuracies:
    """Shares of correctly classified rows of three clouds, by kernel."""

    radii: tuple[float, ...]
    linear: float
    # Three classifiers: a threshold on component 1, a threshold on the best component, and nearest
    # means in three components.
    square: tuple[float, float, float]
    gaussian: Matrix  # by a threshold on component 1, for each of `WIDTHS`

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
    for kernel in tried:
        good = WIDTHS[kernel.gaussian >= ENOUGH] * max(kernel.radii)
        sigmas = f"{good.min():.2g} to {good.max():.2g}" if len(good) else "none tried"
        shares = (kernel.linear, *kernel.square, kernel.gaussian.max())
        rows.append((_listed(kernel.radii), *(f"{share:.3f}" for share in shares), sigmas))
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
