"""Image segmentation: test errors on components of four kernels (Table I and Fig. 5).

The numbers of Aguilera and Antonanzas come out, on what their public script does: kernel PCA of
the raw attributes of the 2,100 rows of ``segmentation.test``, components of variance above 1e-4,
each brought to unit variance (as kernlab's ``ksvm`` does unless told otherwise), a linear machine
with C = 1 for each pair of classes, errors on the 210 rows of ``segmentation.data``. Two things the
authors could not see in their numbers:

- every one of those 210 rows is also among the 2,100 trained on, so that an error of 0 is
  memory. Beside each number stands the honest one, those rows left out of training, and a second
  table has the direction the data were made for;
- the last row of the table was not run at sigma 0.01: the script passes ``par`` where ``ksvm``
  reads ``kpar``, and sigma was estimated from the data, at about 0.09.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from kpca_apps.engine.kernels import RBF, Kernel, Laplacian, Linear, Polynomial
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.measuring import components
from kpca_apps.papers.registry import Experiment
from kpca_apps.papers.result import Claim, Curves, Outcome, Table, close_to, stated

__all__ = ["EXPERIMENT"]

Matrix = NDArray[np.float64]
Names = NDArray[np.str_]

KERNELS: dict[str, Kernel] = {
    "linear": Linear(),
    "polynomial": Polynomial(2, 1.0, 1.0),
    "Gaussian": RBF(0.01),
    "Laplace": Laplacian(0.01),
}

PAPER: dict[str, tuple[float, float | None]] = {
    "linear": (0.0380, None),
    "polynomial": (0.0095, 0.0238),
    "Gaussian": (0.0, 0.4333),
    "Laplace": (0.0, 0.0333),
}
"""Test errors with all components and with 50."""

ONE_ERROR = 0.005
LEAST_VARIANCE = 1e-4
MEMORY = "every test row is also a training row: an error of 0 here is memory"


@dataclass(frozen=True, eq=False)
class _Split:
    """Training and test rows, and what kernel PCA makes of them with one kernel."""

    train: Matrix
    train_names: Names
    test: Matrix
    test_names: Names

    def features(self, kernel: Kernel) -> tuple[Matrix, Matrix]:
        """Return training and test rows on components of unit variance."""
        subspace = components(kernel, self.train)
        kept = subspace.leading(int(np.count_nonzero(subspace.variances > LEAST_VARIANCE)))
        scale = np.sqrt(kept.variances)
        return kept.project(self.train) / scale, kept.project(self.test) / scale

    def error(self, features: tuple[Matrix, Matrix], count: int | None = None) -> float:
        """Return the test error of linear machines on the first components."""
        train, test = (part[:, :count] for part in features)
        machine = SVC(kernel="linear", C=1.0).fit(train, self.train_names)
        return float(np.mean(machine.predict(test) != self.test_names))


def run(data: PaperData) -> Outcome:
    """Run the table as published, and honestly; then the curves."""
    small, small_names, large, large_names = data.segmentation()
    published = _Split(large, large_names, small, small_names)
    known = {row.tobytes() for row in small}
    new = np.array([row.tobytes() not in known for row in large])
    honest = _Split(large[new], large_names[new], small, small_names)
    inside = float(np.mean([row.tobytes() in {r.tobytes() for r in large} for row in small]))
    features = {name: published.features(kernel) for name, kernel in KERNELS.items()}
    claims: list[Claim] = []
    rows = []
    for name in KERNELS:
        found, row = _compared(name, published, honest, features[name])
        claims += found
        rows.append(row)
    claims += _alone(published)
    claims.append(
        stated(
            "the test rows are new to the classifier",
            "a test set of 210 rows",
            f"{inside:.0%} of them are in the training set, with the same attributes",
            inside < 0.01,
            reason="segmentation.data is contained in segmentation.test",
        )
    )
    curves, wins = _curves(published, features)
    claims.append(wins)
    heads = (
        "kernel",
        "components",
        "paper",
        "ours",
        "honest",
        "paper, 50",
        "ours, 50",
        "honest, 50",
    )
    note = (
        "Variances of the polynomial kernel span 14 digits here: which of its components pass 1e-4 "
        "is decided by rounding, and the honest error with all of them with it."
    )
    table = Table("Test error", heads, tuple(rows))
    others = np.intersect1d(np.flatnonzero(new), np.unique(large, axis=0, return_index=True)[1])
    turned = _other_way(_Split(small, small_names, large[others], large_names[others]))
    return Outcome(tuple(claims), (curves,), (table, turned), (note,))


def _compared(
    name: str, published: _Split, honest: _Split, features: tuple[Matrix, Matrix]
) -> tuple[list[Claim], tuple[str, ...]]:
    """Return the claims and the row of one kernel."""
    full, few = PAPER[name]
    fair = honest.features(KERNELS[name])
    ours = published.error(features)
    condition = MEMORY if name != "linear" else ""
    claims = [close_to(f"{name}, all components", full, ours, ONE_ERROR, condition=condition)]
    cells = [name, str(features[0].shape[1]), f"{full:.4f}", f"{ours:.4f}"]
    cells.append(f"{honest.error(fair):.4f}")
    if few is None:
        return claims, (*cells, "n.a.", "n.a.", "n.a.")
    part = published.error(features, 50)
    claims.append(close_to(f"{name}, 50 components", few, part, ONE_ERROR, condition=MEMORY))
    return claims, (*cells, f"{few:.4f}", f"{part:.4f}", f"{honest.error(fair, 50):.4f}")


def _other_way(split: _Split) -> Table:
    """Return the errors in the direction the data were made for: 210 rows to train on."""
    rows = []
    for name, kernel in KERNELS.items():
        features = split.features(kernel)
        few = f"{split.error(features, 50):.4f}" if features[0].shape[1] > 50 else "n.a."
        rows.append((name, str(features[0].shape[1]), f"{split.error(features):.4f}", few))
    title = f"The other way round: 210 rows to train on, {len(split.test)} others to test"
    return Table(title, ("kernel", "components", "all", "50"), tuple(rows))


def _alone(split: _Split) -> list[Claim]:
    """Return the claims on the kernel machine without components, on standardised attributes."""
    centre, scale = split.train.mean(axis=0), split.train.std(axis=0)
    scale[scale == 0.0] = 1.0
    train, test = (split.train - centre) / scale, (split.test - centre) / scale

    def error(sigma: float) -> float:
        kernel = Laplacian(sigma)
        machine = SVC(kernel="precomputed", C=1.0).fit(kernel(train), split.train_names)
        return float(np.mean(machine.predict(kernel(test, train)) != split.test_names))

    return [
        close_to(
            "machine with the Laplace kernel, sigma as ksvm estimates it (0.09)",
            0.0381,
            error(0.09),
            ONE_ERROR,
            condition="sigma 0.09, not the 0.01 of the table",
        ),
        close_to(
            "machine with the Laplace kernel, sigma 0.01 as printed",
            0.0381,
            error(0.01),
            ONE_ERROR,
            reason="the script's sigma did not reach ksvm, which estimated its own",
        ),
    ]


def _curves(split: _Split, features: dict[str, tuple[Matrix, Matrix]]) -> tuple[Curves, Claim]:
    """Return Fig. 5 and what its caption claims."""
    few, many = np.arange(1, 15), np.arange(15, 101, 5)
    both = np.concatenate([few, many])
    linear = np.array([split.error(features["linear"], int(n)) for n in few])
    laplace = np.array([split.error(features["Laplace"], int(n)) for n in both])
    figure = Curves(
        "Fig. 5: test error by number of components",
        "components",
        "test error",
        {"linear": (few.astype(float), linear), "Laplace": (both.astype(float), laplace)},
    )
    worse = [int(n) for n, a, b in zip(few, linear, laplace, strict=False) if a > b]
    claim = stated(
        "Fig. 5: PCA beats kernel PCA for the first 14 dimensions",
        "in all of them",
        f"in all but {len(worse)} ({', '.join(map(str, worse))})" if worse else "in all of them",
        len(worse) <= 1,
        condition="but for one number of components" if worse else "",
    )
    return figure, claim


EXPERIMENT = Experiment(
    "segmentation",
    "Aguilera and Antonanzas (2019), Table I and Fig. 5",
    "Image segmentation: linear machines on components",
    ("segmentation",),
    run,
)
