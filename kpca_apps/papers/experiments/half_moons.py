"""Two half moons, kernel widths .01 and 2, and the scree plot (Aguilera and Antonanzas, Fig. 4).

At .01 the Gaussian kernel is nearly linear over these rows: its first two components are those of
PCA, so that it cannot show a sinusoidal shape that PCA does not. The authors' public script hands
the class label to kernel PCA as a third column, which separates the moons for it; both ways are
measured.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from kpca_apps.engine.kernels import RBF
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import half_moons
from kpca_apps.papers.measuring import components, nearest_mean_accuracy, scree
from kpca_apps.papers.registry import Experiment
from kpca_apps.papers.result import Outcome, Scatter, stated

__all__ = ["EXPERIMENT"]

Matrix = NDArray[np.float64]


def run(data: PaperData) -> Outcome:
    """Fit both widths, without the label and with it."""
    X, labels = half_moons(np.random.default_rng(0))
    narrow, wide = components(RBF(2.0), X, 10), components(RBF(0.01), X, 10)
    pca = PCA(2).fit(X)
    P, W, N = pca.transform(X), wide.project(X)[:, :2], narrow.project(X)[:, :2]
    same = [abs(float(np.corrcoef(P[:, a], W[:, a])[0, 1])) for a in (0, 1)]
    share = float(wide.variances[:2].sum() / wide.variances.sum())
    elbow = float(wide.variances[1] / wide.variances[2])
    told = {
        name: nearest_mean_accuracy(T, labels) for name, T in (("PCA", P), (".01", W), ("2", N))
    }
    Y = np.column_stack([X, labels])
    with_label = {
        g: nearest_mean_accuracy(components(RBF(g), Y, 2).project(Y), labels) for g in (0.01, 2.0)
    }
    claims = (
        stated(
            "scree plot of width .01: the elbow is at component 2",
            "elbow at the second",
            f"the first two carry {share:.3f} of the variance; eigenvalue 2 / 3 is {elbow:.1f}",
            share > 0.97 and elbow > 6.0,
        ),
        stated(
            "kernel PCA shows the sinusoidal shape, PCA sticks to lines",
            "at width .01",
            f"its components are those of PCA: correlations {same[0]:.4f} and {same[1]:.4f}",
            min(same) < 0.999,
            reason="over these rows the kernel is nearly linear, and both give the same picture",
        ),
        stated(
            "width 2 separates the moons better",
            "better than width .01",
            f"nearest mean right for {told['2']:.3f} of the rows; {told['.01']:.3f} at .01, "
            f"{told['PCA']:.3f} for PCA; with the label as a third column {with_label[2.0]:.3f} "
            f"and {with_label[0.01]:.3f}",
            told["2"] > told[".01"],
            condition="by the nearest mean; a straight line tells the moons apart as well at .01",
        ),
    )
    return Outcome(
        claims,
        (
            Scatter("Rows and linear principal axes", "x", "y", X, labels, pca.components_),
            Scatter("Width .01", "component 1", "component 2", W, labels),
            scree("Scree plot, width .01", {"exp(-0.01 |x - y|^2)": wide}),
            Scatter("Width 2", "component 1", "component 2", N, labels),
        ),
        notes=("The label is no part of the data here; the authors' script includes it.",),
    )


EXPERIMENT = Experiment(
    "half-moons",
    "Aguilera and Antonanzas (2019), Fig. 4",
    "Two half moons, two widths of the Gaussian kernel",
    (),
    run,
)
