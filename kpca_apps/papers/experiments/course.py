"""The illustrations of the two sets of course notes: class means, y ~ x + x^2, and rings.

The Spanish notes classify by the nearest class mean, which fails where the means coincide and
works after a kernel parts them (Figs. 3.2 and 3.3), and let y ~ x + x^2 stand for the idea of a
map. The other notes show rings that no line tells apart (Fig. 2). That a kernel makes data linearly
separable is a hope and not a rule, and the loss of information is least where retained variance is
high, not low.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.engine.kernels import Linear, Polynomial
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import rings
from kpca_apps.papers.measuring import best_threshold_accuracy, components
from kpca_apps.papers.methods.class_means import class_means
from kpca_apps.papers.methods.component_regression import regress_on_components
from kpca_apps.papers.registry import Experiment
from kpca_apps.papers.result import (
    Claim,
    Curves,
    Figure,
    Outcome,
    Scatter,
    close_to,
    stated,
)

__all__ = ["EXPERIMENT"]


def run(data: PaperData) -> Outcome:
    """Run the three illustrations."""
    rng = np.random.default_rng(0)
    (claims, figures), (more, curves) = _class_means(rng), _parabola(rng)
    return Outcome((*claims, *more), (*figures, *curves))


def _class_means(rng: np.random.Generator) -> tuple[list[Claim], list[Figure]]:
    """Two clouds, then rings, by the nearest class mean; and rings along a line."""
    sides = np.repeat(np.arange(2), 100)
    clouds = rng.normal(size=(200, 2)) + 4.0 * sides[:, None]
    X, labels = rings(rng, (1.0, 2.0), 0.15)
    apart = float(np.mean(class_means(Linear(), clouds, sides).predict(clouds) != sides))
    plain = float(np.mean(class_means(Linear(), X, labels).predict(X) != labels))
    parted = float(np.mean(class_means(Polynomial(2), X, labels).predict(X) != labels))
    line = best_threshold_accuracy(components(Linear(), X, 1).project(X)[:, 0], labels)
    claims = [
        stated(
            "Fig. 3.2: two clouds, nearest class mean",
            "works reasonably well",
            f"{apart:.3f} of the rows wrong",
            apart < 0.05,
        ),
        stated(
            "Fig. 3.3: means that coincide",
            "fails; a kernel can part the means",
            f"{plain:.3f} wrong with the inner product, {parted:.3f} with (x.y)^2",
            plain > 0.3 and parted < 0.05,
            condition="with the sign of b as its definition has it; eq. (3.3) prints the opposite",
        ),
        stated(
            "Fig. 2: no single line keeps the information of rings",
            "none exists",
            f"{line:.3f} right by the best cut of the first linear component",
            line < 0.75,
        ),
    ]
    return claims, [
        Scatter("Fig. 3.2: two clouds", "x", "y", clouds, sides),
        Scatter("Fig. 3.3 and Fig. 2: rings", "x", "y", X, labels),
    ]


def _parabola(rng: np.random.Generator) -> tuple[list[Claim], list[Figure]]:
    """Fit y ~ x + x^2 by regression on components, and by least squares."""
    x = rng.uniform(-1.0, 1.0, 80)
    y = x + x**2 + 0.1 * rng.normal(size=80)
    subspace = components(Polynomial(2, 1.0, 1.0), x[:, None])
    place = np.linspace(-1.2, 1.2, 60)
    fitted = regress_on_components(subspace, x[:, None], y).predict(place[:, None])
    gap = float(np.abs(fitted - np.polyval(np.polyfit(x, y, 2), place)).max())
    straight = np.polyval(np.polyfit(x, y, 1), place).astype(np.float64)
    claim = close_to(
        "y ~ x + x^2: components of (x.y + 1)^2 against least squares, largest difference",
        0.0,
        gap,
        1e-8,
    )
    series = {
        "components of (x.y + 1)^2": (place, fitted),
        "straight line": (place, straight),
    }
    return [claim], [Curves("y ~ x + x^2", "x", "y", series)]


EXPERIMENT = Experiment(
    "course",
    "Course notes (two sets), Figs. 2, 3.2 and 3.3",
    "Class means, rings, and y ~ x + x^2",
    (),
    run,
)
