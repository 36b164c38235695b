"""Test statements of the papers, mostly on 60 random rows in the plane.

A misprinted formula counts as reproduced; the condition is its correction. A wrong sentence counts
as not reproduced, and the stated reason is the correct sentence.
"""

from __future__ import annotations

from math import comb

import numpy as np
from sklearn.cluster import KMeans

from kpca_apps.engine.kernels import RBF, Polynomial
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.claims import judge
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import three_clusters
from kpca_apps.papers.kernels import monomials, ordered_products
from kpca_apps.papers.measuring import centred, components, plane_grid
from kpca_apps.papers.methods.fits import mean_components
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix

N, Q = 60, 4


ASCENDING = (
    "A misprint that no measurement tells: eigenvectors are to be sorted in ascending order of "
    "eigenvalue (2019, IV; 1996, 4.2). Descending is meant: the properties that follow have the "
    "first components carry most variance."
)


def run_statements(data: PaperData) -> Outcome:
    """Check the papers' statements: properties of PCA in feature space, then all others."""
    rng = np.random.default_rng(0)
    X, _ = three_clusters(rng, N)
    kernel = RBF(0.1)
    K = kernel(X)
    subspace = components(kernel, X)
    T = subspace.project(X)
    return Outcome(
        (
            *_properties(T, subspace, X, rng),
            *_lengths(K, subspace),
            *_centring(K, subspace, X),
            *_dimensions(subspace, X, rng),
            *_monomials(),
            _cluster_means(),
        ),
        notes=(ASCENDING,),
    )


def _properties(
    T: Matrix, subspace: KernelSubspace, X: Matrix, rng: np.random.Generator
) -> tuple[Claim, ...]:
    """Judge the properties of PCA in feature space (1996 report, 4.2) against 500 other bases."""
    C = T.T @ T / N
    drawn = [rng.normal(size=C.shape) for _ in range(500)]
    # Half of the bases are close to the identity matrix, which stands for the components.
    drawn[::2] = [np.eye(len(C)) + 0.02 * B for B in drawn[::2]]
    bases = [np.linalg.qr(B)[0] for B in drawn]
    carried = [np.trace(B[:, :Q].T @ C @ B[:, :Q]) for B in bases]
    entropies = [_entropy(np.einsum("ia,ij,ja->a", B, C, B)) for B in bases]
    volumes = [np.linalg.slogdet(B[:, :Q].T @ C @ B[:, :Q])[1] for B in bases]
    first, total = float(subspace.variances[:Q].sum()), float(subspace.variances.sum())
    mean_error = float(subspace.leading(Q).reconstruction_error(X).mean())
    cross = float(np.abs(C - np.diag(np.diag(C))).max())
    volume = float(np.log(subspace.variances[:Q]).sum())
    is_least = abs(mean_error - (total - first)) < 1e-10 and total - max(carried) >= mean_error
    entropy = _entropy(subspace.variances)
    return (
        judge("variance", first >= max(carried), Q, first, max(carried)),
        judge("least error", is_least, mean_error, total - first),
        judge("uncorrelated", cross < 1e-10, cross),
        judge("entropy", entropy <= min(entropies), entropy, min(entropies)),
        judge("information", volume >= max(volumes), volume, max(volumes)),
    )


def _lengths(K: Matrix, subspace: KernelSubspace) -> tuple[Claim, ...]:
    """Judge the scaling of eigenvectors, and whether eigenvalues order the components."""
    about_mean = centred(K)
    values, vectors = np.linalg.eigh(about_mean / N)
    printed = vectors[:, -1] / np.sqrt(values[-1])
    length = float(np.sqrt(printed @ about_mean @ printed))
    plain = float(vectors[:, -1] @ about_mean @ vectors[:, -1])
    # The eigenvalues of the centred K are n times those of K/n.
    right = vectors[:, -1] / np.sqrt(N * values[-1])
    unit = float(right @ about_mean @ right)
    explained = float(subspace.variances.sum() * N / np.trace(about_mean))
    return (
        judge("length", abs(unit - 1.0) < 1e-06, np.sqrt(unit), length, N, np.sqrt(N)),
        judge("unit vectors", abs(unit - 1.0) < 1e-06, unit, plain),
        judge("ranking", abs(explained - 1.0) > 1e-06, explained),
    )


def _centring(K: Matrix, subspace: KernelSubspace, X: Matrix) -> tuple[Claim, ...]:
    moved = RBF(0.1)(X - X.mean(axis=0))
    tops = [float(np.linalg.eigvalsh(G)[-1]) for G in (K, moved)]
    right = float(N * subspace.variances[0])
    about_mean = centred(K)
    smallest = float(np.abs(np.linalg.eigvalsh(about_mean)).min() / np.trace(about_mean))
    # Eq. (20) of Aguilera and Antonanzas has swapped indices: it needs as many new as fitted rows.
    new = RBF(0.1)(X + 0.5, X)
    rows, columns, mean = new.mean(axis=1), K.mean(axis=0), K.mean()
    swapped = new - columns[:, None] - rows + mean
    proper = new - columns - rows[:, None] + mean
    first = subspace.leading(Q)
    direct = first.project(X + 0.5)
    gaps = [float(np.abs(G @ first.weights - direct).max()) for G in (proper, swapped)]
    return (
        judge("inputs centred", abs(tops[1] - right) < 1e-06, tops[1], tops[0], right),
        judge("invertible", smallest > 1e-12, smallest),
        judge("test rows", gaps[0] < 1e-10, gaps[0], gaps[1], N),
    )


def _dimensions(subspace: KernelSubspace, X: Matrix, rng: np.random.Generator) -> tuple[Claim, ...]:
    """Judge statements on pre-images, on monomials, and on the number of components."""
    narrow, scattered = RBF(20.0), rng.normal(scale=50.0, size=(N, 2))
    centred, plain = components(narrow, scattered), np.linalg.matrix_rank(narrow(scattered))
    count, largest_error = centred.n_components, float(subspace.reconstruction_error(X).max())
    rows = rng.normal(size=(N, 2))
    # A point is an exact pre-image of component 1 if their inner product is 1: both have length 1.
    _, _, places = plane_grid(X)
    nearest = float(np.abs(subspace.kernel(places, X) @ subspace.weights[:, 0]).max())
    ranks = [int(np.linalg.matrix_rank(Polynomial(3, 1.0, c)(rows))) for c in (0.0, 1.0)]
    return (
        judge("count", (plain, count) == (N, N - 1), N, plain, count),
        judge("pre-image", nearest < 0.99, nearest, largest_error),
        judge("products", ranks[1] == comb(4, 3), comb(4, 3), ranks[1], ranks[0], comb(5, 3)),
    )


def _monomials() -> tuple[Claim, ...]:
    """Judge the size and weights of the feature map of (x.y)^d (1996 report, 3 and B.1)."""
    count = comb(256 + 5 - 1, 5)
    # The columns of degree 3 are x1^3, x1^2 x2, x1 x2^2 and x2^3.
    weight = float(monomials(np.ones((1, 2)), 3)[0, 1])
    same = int(np.count_nonzero(ordered_products(np.array([[2.0, 3.0]]), 3) == 12.0))
    return (
        judge("monomial count", round(np.log10(count)) == 10, count),
        judge("coefficient", abs(weight - np.sqrt(same)) < 1e-12, np.sqrt(2.0), weight, same),
    )


def _cluster_means() -> Claim:
    """Judge the advice to use cluster means in place of the rows of K."""
    rng = np.random.default_rng(0)
    centres = 4.0 * rng.normal(size=(5, 2))
    which = rng.choice(5, size=1000, p=[0.6, 0.2, 0.1, 0.05, 0.05])
    X = centres[which] + rng.normal(size=(1000, 2))
    clusters = KMeans(60, n_init=1, random_state=0).fit(X)
    sizes = np.bincount(clusters.labels_)
    means, kernel = clusters.cluster_centers_, RBF(0.5)
    true = components(kernel, X, 5).variances
    plain, weighted = (
        float(np.abs(mean_components(kernel, means, w, n_components=5).variances / true - 1).max())
        for w in (np.ones(60), sizes)
    )
    return judge("cluster means", weighted < 0.1, weighted, plain)


def _entropy(variances: Matrix) -> float:
    share = np.maximum(variances, 1e-300) / variances.sum()
    return float(-(share * np.log(share)).sum())
