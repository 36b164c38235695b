"""Image segmentation: test errors on components of four kernels (Table I and Fig. 5).

The published run has two flaws. All test rows are also training rows. And the last row of the table
did not use sigma 0.01: the script passes ``par``, but ``ksvm`` reads ``kpar``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kpca_apps.engine.kernels import RBF, Kernel, Laplacian, Linear, Polynomial
from kpca_apps.papers.claims import compare, judge
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.figures import Curves, Table
from kpca_apps.papers.kernels import monomials
from kpca_apps.papers.measuring import components
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix

Names = NDArray[np.str_]

KERNELS: dict[str, Kernel] = {
    "linear": Linear(),
    "polynomial": Polynomial(2, 1.0, 1.0),
    "Gaussian": RBF(0.01),
    "Laplace": Laplacian(0.01, "euclidean"),
}

# Test errors of linear SVMs on all components, and on 50. SVM_ALONE: of an SVM on the rows of data.
PAPER: dict[str, tuple[float, float | None]] = {
    "linear": (0.0380, None),
    "polynomial": (0.0095, 0.0238),
    "Gaussian": (0.0, 0.4333),
    "Laplace": (0.0, 0.0333),
}
SVM_ALONE = 0.0381

REPEATED = (
    "All 210 test rows are also in the training set, with the same attributes: segmentation.data "
    "is contained in segmentation.test."
)
ROUNDING = (
    "The last components of the polynomial kernel drown in rounding when they are taken from the "
    "Gram matrix: an independent implementation, which cut by it, had 0.0381 where the error on "
    "new test rows with all components is 0.0571 here, and 0.1189 for 0.1562 the other way round. "
    "Here they are taken from the monomials, and which variances exceed 1e-4 is firm."
)

LEAST_VARIANCE = 1e-4


@dataclass(eq=False)
class _Split:
    """Training and test rows, with cached components and errors for each kernel."""

    train: Matrix
    train_names: Names
    test: Matrix
    test_names: Names

    def features(self, kernel: Kernel) -> tuple[Matrix, Matrix]:
        """Return projections of training and test rows, scaled to unit variance."""
        if isinstance(kernel, Polynomial):
            return self._mapped()
        subspace = components(kernel, self.train)
        leading = subspace.leading(int(np.count_nonzero(subspace.variances > LEAST_VARIANCE)))
        scale = np.sqrt(leading.variances)
        return leading.project(self.train) / scale, leading.project(self.test) / scale

    def _mapped(self) -> tuple[Matrix, Matrix]:
        """Return the `features` of (x.y + 1)^2 = ((x, 1).(y, 1))^2, by its monomial map."""
        train, test = (
            monomials(np.column_stack([rows, np.ones(len(rows))]), 2)
            for rows in (self.train, self.test)
        )
        centre = train.mean(axis=0)
        _, lengths, axes = np.linalg.svd(train - centre, full_matrices=False)
        scale = lengths / np.sqrt(len(train))
        count = int(np.count_nonzero(scale**2 > LEAST_VARIANCE))
        onto = axes[:count].T / scale[:count]
        return (train - centre) @ onto, (test - centre) @ onto

    def error(self, features: tuple[Matrix, Matrix], count: int | None = None) -> float:
        """Return the test error of linear SVMs on the first ``count`` components."""
        train, test = (part[:, :count] for part in features)
        machine = SVC(kernel="linear", C=1.0).fit(train, self.train_names)
        return float(np.mean(machine.predict(test) != self.test_names))

    def standardised(self) -> tuple[Matrix, Matrix]:
        """Return training and test rows standardised by the training rows."""
        scaler = StandardScaler().fit(self.train)
        return scaler.transform(self.train), scaler.transform(self.test)

    @cached_property
    def every(self) -> dict[str, tuple[Matrix, Matrix]]:
        """Training and test rows on the components of each kernel."""
        return {name: self.features(kernel) for name, kernel in KERNELS.items()}

    @cached_property
    def errors(self) -> dict[str, tuple[float, float]]:
        """Test error of each kernel, with all components and with 50."""
        return {name: (self.error(part), self.error(part, 50)) for name, part in self.every.items()}

    def curve(self, name: str, counts: Iterable[int]) -> Matrix:
        """Return the test error of a kernel for each number of components."""
        return np.array([self.error(self.every[name], count) for count in counts])

    def alone(self, sigma: float) -> float:
        """Return the test error of an SVM with the Laplace kernel on rows instead of components."""
        kernel, (train, test) = Laplacian(sigma, "euclidean"), self.standardised()
        machine = SVC(kernel="precomputed", C=1.0).fit(kernel(train), self.train_names)
        return float(np.mean(machine.predict(kernel(test, train)) != self.test_names))


def run_segmentation(data: PaperData) -> Outcome:
    """Compute Table I as published and without repeated rows, then the curves of Fig. 5."""
    small, small_names, large, large_names = data.segmentation()
    published = _Split(large, large_names, small, small_names)
    known = {row.tobytes() for row in small}
    new = np.array([row.tobytes() not in known for row in large])
    fresh = _Split(large[new], large_names[new], small, small_names)
    sigma = estimated_sigma(published.standardised()[0])
    machines = published.alone(sigma), fresh.alone(sigma)
    curves, more = _curves(published, fresh)
    claims = (
        *_published(published, sigma, machines[0]),
        *_caption(published, fresh, machines),
        *more,
    )
    others = np.intersect1d(np.flatnonzero(new), np.unique(large, axis=0, return_index=True)[1])
    turned = _Split(small, small_names, large[others], large_names[others])
    counts = {name: parts[0].shape[1] for name, parts in turned.every.items()}
    rows = tuple(
        (name, str(counts[name]), f"{full:.4f}", f"{few:.4f}" if counts[name] > 50 else "n.a.")
        for name, (full, few) in turned.errors.items()
    )
    # Train on the smaller file, as intended by the data set.
    title = f"The other way round: 210 rows to train on, {len(turned.test)} others to test"
    other_way = Table(title, ("kernel", "components", "all", "50"), rows)
    tables = (_table(published, fresh, machines), other_way)
    return Outcome(claims, (curves,), tables, (REPEATED, ROUNDING))


def _published(split: _Split, sigma: float, estimated: float) -> list[Claim]:
    claims = []
    for name, (full, few) in PAPER.items():
        ours = split.errors[name]
        claims.append(compare("all components", ours[0], name, full))
        if few is not None:
            claims.append(compare("50 components", ours[1], name, few))
    claims.append(compare("estimated sigma", estimated, sigma))
    return [*claims, compare("printed sigma", split.alone(0.01))]


def _caption(published: _Split, fresh: _Split, machines: tuple[float, float]) -> tuple[Claim, ...]:
    ours, true = published.errors, fresh.errors
    counts = {name: parts[0].shape[1] for name, parts in published.every.items()}
    linear, plain, (alone, fair) = true["linear"][0], ours["linear"][0], machines
    best, *worse = sorted((true[name][0], name) for name in KERNELS if name != "linear")
    others = ", ".join(f"{name} {error:.4f}" for error, name in worse)
    everywhere = ", ".join(f"{name} {error:.4f}" for name, (error, _) in true.items())
    numbers = ", ".join(f"{name} {count}" for name, count in counts.items())
    many = all(count > 100 for name, count in counts.items() if name != "linear")
    few, few_new = ([part[name][1] for name in ("polynomial", "Laplace")] for part in (ours, true))
    enough = max(few) < min(plain, alone)
    least = alone > max(error for error, _ in ours.values())
    wrong, ahead = (round(210 * error) for error in (alone, linear - best[0]))
    return (
        judge("more than 100", many, numbers),
        judge("50 are enough", enough, few, plain, alone, few_new, linear, fair),
        judge("SVM alone", least, alone, plain, wrong, round(210 * plain), fair, everywhere),
        judge("more components", best[0] < linear, *best, linear, ahead, others),
    )


def _table(published: _Split, fresh: _Split, machines: tuple[float, float]) -> Table:
    rows = []
    for name, (full, few) in PAPER.items():
        (ours, ours_few), (true, true_few) = published.errors[name], fresh.errors[name]
        cells = [f"{error:.4f}" for error in (full, ours, true)]
        cells += ["n.a."] * 3 if few is None else [f"{e:.4f}" for e in (few, ours_few, true_few)]
        rows.append((name, str(published.every[name][0].shape[1]), *cells))
    alone = (f"{error:.4f}" for error in (SVM_ALONE, *machines))
    rows.append(("Laplace, no components", "none", *alone, "n.a.", "n.a.", "n.a."))
    heads = (
        "kernel", "components", "paper", "ours", "new test rows", "paper, 50", "ours, 50",
        "new test rows, 50",
    )  # fmt: skip
    note = "New test rows: trained without the 210 rows that are also test rows."
    return Table("Test error", heads, tuple(rows), note)


def estimated_sigma(X: Matrix) -> float:
    """Return the inverse kernel width that ``ksvm`` estimates with kernlab's ``sigest``."""
    # The result is the mean of 1 / q over the quantiles q = .1 and .9 of non-zero squared
    # distances. ``sigest`` uses a random half of the rows, this function all pairs.
    squared = pdist(X, "sqeuclidean")
    return float(np.mean(1.0 / np.quantile(squared[squared > 0.0], (0.1, 0.9))))


def _curves(published: _Split, fresh: _Split) -> tuple[Curves, tuple[Claim, ...]]:
    """Return Fig. 5 with a curve for new test rows, and judge two claims of its caption."""
    few, both = np.arange(1, 15), np.array([*range(1, 15), *range(15, 101, 5)])
    linear, laplace = published.curve("linear", few), published.curve("Laplace", both)
    true = fresh.curve("Laplace", both)
    series = {
        "linear": (few.astype(float), linear),
        "Laplace": (both.astype(float), laplace),
        "Laplace, new test rows": (both.astype(float), true),
    }
    title = "Fig. 5: test error by number of components"
    figure = Curves(title, "components", "test error", series)
    worse = [int(n) for n, a, b in zip(few, linear, laplace, strict=False) if a > b]
    which = f"{', '.join(map(str, worse))} component{'s' if worse != [1] else ''}"
    but = f" but {'one' if len(worse) == 1 else len(worse)} ({which})" if worse else ""
    condition = "but for one number of components" if worse else ""
    return figure, (
        judge("first 14", len(worse) <= 1, but, condition),
        judge("low errors", laplace[-1] < linear.min(), laplace[-1], true[-1]),
    )
