"""Aguilera and Antonanzas (2019): the figures, and runs of their published script."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from kpca_apps.engine.kernels import RBF, Linear, Sigmoid
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.claims import compare, judge
from kpca_apps.papers.data import Labels, PaperData
from kpca_apps.papers.drawn import cassini, half_moons, parabola, rings, three_clusters
from kpca_apps.papers.figures import Scatter, Table
from kpca_apps.papers.kernels import mercer_check
from kpca_apps.papers.measuring import (
    components,
    contours,
    line_accuracy,
    nearest_mean_accuracy,
    scree,
    within_share,
)
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix

DRAWS = 20
KERNEL = "exp(-0.3 |x - y|^2)"


def run_clusters(data: PaperData) -> Outcome:
    """Plot contours of eight components of three Gaussian clusters (Fig. 1)."""
    X, labels = three_clusters(np.random.default_rng(0))
    subspace = components(RBF(0.3), X, 10)
    figures = (
        contours(f"Contours of {KERNEL}, eight components", subspace.leading(8), X, labels),
        scree("Variances", KERNEL, subspace),
    )
    draws = [_drawn(np.random.default_rng(draw)) for draw in range(DRAWS)]
    right, ratio, before, inside, fifth, eighth, pair, three, six = np.transpose(draws)
    least = "all" if right.min() == 1.0 else f"at least {right.min():.3f}"
    parted = right.min() == 1.0 and ratio.min() > 2.5
    split = inside.min() > 0.99 and before.max() < 0.1 and six.max() < 30.0
    means = [values.mean() for values in (fifth, three, eighth, six, pair)]
    claims = (
        judge("first two", parted, least, ratio.min(), DRAWS),
        judge("third to eighth", split, inside.min(), before.max(), DRAWS, *means),
    )
    return Outcome(claims, figures)


def _drawn(rng: np.random.Generator) -> tuple[float, ...]:
    # Measure shares of rows and of variance, eigenvalue ratios, and angles between two fits.
    X, labels = three_clusters(rng)
    first, second = (components(RBF(0.3), rows, 9) for rows in (X, three_clusters(rng)[0]))
    T, v = first.project(X), first.variances
    inside = within_share(T, labels)
    return (
        nearest_mean_accuracy(T[:, :2], labels),
        v[1] / v[2],
        inside[:2].max(),
        inside[2:8].min(),
        v[4] / v[5],
        v[7] / v[8],
        *(largest_angle(first, second, slice(*part)) for part in ((0, 2), (2, 5), (2, 8))),
    )


def largest_angle(first: KernelSubspace, second: KernelSubspace, part: slice) -> float:
    """Return the largest angle in feature space between components of two fits, in degrees."""
    K = first.kernel(first.points, second.points)
    cross = first.weights[:, part].T @ K @ second.weights[:, part]
    cosine = np.linalg.svd(cross, compute_uv=False).min()
    return float(np.degrees(np.arccos(min(cosine, 1.0))))


WIDE, NARROW = "exp(-0.01 |x - y|^2)", "exp(-2 |x - y|^2)"
WAYS = (
    "PCA",
    *(f"{kernel}{label}" for label in ("", ", label as third column") for kernel in (WIDE, NARROW)),
)


def run_half_moons(data: PaperData) -> Outcome:
    """Separate two half moons by two Gaussian kernels (Fig. 4).

    The caption does not define how well moons are distinguished, so two measures are used: the
    nearest mean on two components, and a least-squares line in their plane. The authors' script
    adds the class label as a third column, which separates the moons by itself.
    """
    X, labels = half_moons(np.random.default_rng(0))
    narrow, wide = components(RBF(2.0), X, 2), components(RBF(0.01), X, 10)
    pca = PCA(2).fit(X)
    figures = (
        Scatter("Rows and linear principal axes", "x", "y", X, labels, pca.components_),
        Scatter(WIDE, "component 1", "component 2", wide.project(X)[:, :2], labels),
        scree("Scree plot, sigma 0.01", WIDE, wide),
        Scatter(NARROW, "component 1", "component 2", narrow.project(X), labels),
    )
    drawn = [_shape(half_moons(np.random.default_rng(draw))[0]) for draw in range(DRAWS)]
    right = np.mean([_accuracies(*half_moons(np.random.default_rng(d))) for d in range(DRAWS)], 0)
    table = Table(
        f"Share of the rows put right, mean of {DRAWS} draws",
        ("two components of", "nearest mean", "best line"),
        tuple(
            (name, *(f"{share:.3f}" for share in row))
            for name, row in zip(WAYS, right, strict=True)
        ),
    )
    note = "The label is no part of the data here; the authors' script includes it."
    return Outcome(_judge(np.array(drawn), right), figures, (table,), (note,))


def _shape(X: Matrix) -> tuple[float, ...]:
    """Return two components' share of variance; lambda_2 / lambda_3; and correlations with PCA."""
    wide = components(RBF(0.01), X)
    P, W = PCA(2).fit_transform(X), wide.project(X)
    same = [abs(float(np.corrcoef(P[:, a], W[:, a])[0, 1])) for a in (0, 1)]
    share = float(wide.variances[:2].sum() / wide.variances.sum())
    return share, float(wide.variances[1] / wide.variances[2]), *same


def _accuracies(X: Matrix, labels: Labels) -> Matrix:
    Y = np.column_stack([X, labels])
    planes = [PCA(2).fit_transform(X)]
    planes += [components(RBF(g), Z, 2).project(Z) for Z in (X, Y) for g in (0.01, 2.0)]
    return np.array([(nearest_mean_accuracy(T, labels), line_accuracy(T, labels)) for T in planes])


def _judge(shapes: Matrix, right: Matrix) -> tuple[Claim, ...]:
    share, elbow, *same = shapes.min(axis=0)
    but = ""
    if right[2, 1] < right[1, 1]:
        but = (
            "by the nearest mean only; by a straight line 0.01 does better, and PCA as well as 0.01"
        )
    return (
        judge("elbow", share > 0.97 and elbow > 6.0, share, elbow, DRAWS),
        judge("same shape", min(same) < 0.999, *same),
        judge("narrow", right[2, 0] > right[1, 0], right, but),
    )


ODD = -0.8  # a component with a lower parity counts as odd


def run_cassini(data: PaperData) -> Outcome:
    """Compare the linear kernel with PCA (Fig. 2); check what Fig. 3 says of its components."""
    X, labels = cassini(np.random.default_rng(0))
    linear, gaussian = components(Linear(), X), components(RBF(0.2), X, 10)
    pca = PCA(2).fit(X)
    gap = float(np.abs(np.abs(linear.project(X)) - np.abs(pca.transform(X))).max())
    claims = (
        compare("linear gap", gap),
        compare("linear axes", float(linear.n_components)),
        *_captions(),
    )
    axes = pca.components_ * np.sqrt(pca.explained_variance_)[:, None]
    return Outcome(
        claims,
        (
            Scatter("Fig. 2: linear principal axes", "x", "y", X, labels, axes),
            contours("Fig. 2: contours of the linear kernel", linear, X, labels),
            contours("Fig. 3: contours of exp(-0.2 |x - y|^2)", gaussian.leading(8), X, labels),
            scree("Variances", "exp(-0.2 |x - y|^2)", gaussian),
        ),
        notes=(
            "In brackets: the correlation of a component with itself at mirrored rows; -1 where it "
            f"changes its sign in the mirror, 1 where it stays. All are means of {DRAWS} draws.",
        ),
    )


def parity(subspace: KernelSubspace, X: Matrix, mirror: tuple[float, float]) -> Matrix:
    """Return the correlation of each component with itself on mirrored rows: -1 odd, 1 even."""
    T, M = subspace.project(X), subspace.project(X * np.array(mirror))
    T, M = T - T.mean(axis=0), M - M.mean(axis=0)
    lengths = np.linalg.norm(T, axis=0) * np.linalg.norm(M, axis=0)
    return np.asarray(np.einsum("ij,ij->j", T, M) / lengths)


def _captions() -> tuple[Claim, ...]:
    # Check Fig. 3's captions: are components odd in x or y, or correlated with y or with the disc?
    rng, draws = np.random.default_rng(1), []
    for _ in range(DRAWS):
        X, labels = cassini(rng)
        subspace = components(RBF(0.2), X, 4)
        beside = np.column_stack([X[:, 1], labels == 2])
        alike = np.abs(np.corrcoef(subspace.project(X).T, beside.T)[:4, 4:])
        draws.append([parity(subspace, X, m) for m in ((-1.0, 1.0), (1.0, -1.0))] + list(alike.T))
    in_x, in_y, with_y, with_circle = np.mean(draws, axis=0)
    is_circle = with_circle[2] > 0.6 and with_circle.argmax() == 2
    return (
        judge("component 1", with_circle[0] > with_y[0], in_y[0], with_y[0], with_circle[0]),
        judge("component 2", in_x[1] < ODD, in_x[1]),
        judge("component 3", is_circle, with_circle[2], np.delete(with_circle, 2).max()),
        judge("component 4", max(in_x[3], in_y[3]) < ODD, in_x[3], in_y[3]),
    )


def run_script_runs(data: PaperData) -> Outcome:
    """Run the parts of the published script that the paper omits: tanh kernels, and a ring.

    As tanh is indefinite, its components are features without a distance. Runs on iris and timings
    of R packages are left out here.
    """
    rng = np.random.default_rng(0)
    curve = parabola(rng, 250)
    tight, labels = three_clusters(rng, 250, radius=np.sqrt(3.0), deviation=0.25)
    ring, nowhere = rings(rng, (1.0,), 0.1, 500)
    on_curve = components(Sigmoid(1.0, 0.0), curve, 3)
    on_clusters = components(Sigmoid(2.0, 1.0), tight, 3)
    on_ring = components(RBF(0.1), ring, 4)
    check = mercer_check(Sigmoid(2.0, 1.0)(tight))
    claims = (judge("tanh", not check.is_psd, check.describe(), check.negative_share),)
    zeros = np.zeros(len(curve), dtype=np.intp)
    return Outcome(
        claims,
        (
            contours("tanh(x.y) on the parabola", on_curve, curve, zeros),
            contours("tanh(2 x.y + 1) on three clusters", on_clusters, tight, labels),
            contours("exp(-0.1 |x - y|^2) on a ring", on_ring, ring, nowhere),
        ),
    )
