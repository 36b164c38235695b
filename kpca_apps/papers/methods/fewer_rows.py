"""Components from fewer rows or features: subset, cluster means, patterns, greedy, random ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import Pipeline, make_pipeline

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.kernels.base import as_integer, unit_rows
from kpca_apps.engine.linalg.cholesky import greedy_pivots
from kpca_apps.engine.linalg.eigen import significant
from kpca_apps.engine.linalg.gram import gram_matrix
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis, subspace_from_sums
from kpca_apps.engine.precision import smallest_eigenvalue
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.data import Labels
from kpca_apps.papers.methods.iterations import assembled
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread


def subset_components(
    kernel: Kernel,
    X: Matrix,
    subset: Labels,
    rng: np.random.Generator,
    *,
    n_components: int | None = None,
) -> tuple[KernelSubspace, Matrix]:
    """Fit components on some rows, by number, and project all of them: ``(n, q)``."""
    # K~ alpha = M lambda alpha (M x M), t(x_i) = sum_{j <= M} alpha_j k~(x_j, x_i), i <= l, k~
    # centred about the mean of the M rows: the others shape neither components nor mean. So the
    # report did with 3,000 of 7,291 rows: Scholkopf, Smola and Muller (1996), 4.4 and 6.3.
    subspace = fit_exact(kernel, X[subset], rng=rng, n_components=n_components)
    return subspace, subspace.project(X)


def mean_components(
    kernel: Kernel, means: Matrix, sizes: ArrayLike, *, n_components: int | None = None
) -> KernelSubspace:
    """Return the components of the means of clusters, each with the weight of its ``sizes`` (m,).

    Sizes of one are the encyclopedia's unweighted advice (section on large datasets).
    """
    # The weighted covariance sum_j w_j (phi(m_j) - mean)(phi(m_j) - mean)', w_j the cluster's share
    # of rows and mean = sum_j w_j phi(m_j), has the eigenvalues of W^(1/2) K~ W^(1/2): the means
    # are a quadrature of the rows. Zhang and Kwok (2010), Clustered Nystrom method for large scale
    # manifold learning and dimension reduction, IEEE Transactions on Neural Networks 21, 1576-1587.
    counts = np.asarray(sizes, dtype=np.float64)
    if counts.shape != (len(means),) or not (np.isfinite(counts) & (counts > 0.0)).all():
        raise ValueError(f"sizes must hold {len(means)} numbers > 0, one for each mean.")
    share = counts / counts.sum()
    gram = gram_matrix(kernel, means)
    with one_blas_thread():
        rows = gram @ share
        centred = gram - rows - rows[:, None] + share @ rows
        root = np.sqrt(share)
        values, vectors = eigh(root[:, None] * centred * root, check_finite=False)
        values, vectors = values[::-1], vectors[:, ::-1]
        trace = float(share @ np.abs(np.diag(gram)))
        smallest = smallest_eigenvalue(float(values[0]), trace, len(values), "float64")
        keep = significant(values, smallest, by_modulus=False)
        if n_components is not None:
            keep[n_components:] = False
        coefficients = root[:, None] * vectors[:, keep] / np.sqrt(values[keep])
        n = round(float(counts.sum()))
        return assembled(kernel, means, gram, coefficients, share, values[keep], n)


def basic_patterns(K: Matrix, threshold: float, *, most: int | None = None) -> Labels:
    """Return the rows, at most ``most``, whose kernel vectors differ enough from all before.

    ``threshold``, in (0, 1], is the largest cosine between two patterns' kernel vectors.
    """
    # Two rows whose columns of K point in nearly the same direction say nearly the same: row i
    # becomes a pattern if |K_i'K_p| / (|K_i| |K_p|) < threshold for every pattern p so far. Fan,
    # Wang, Xu and Tang (2014), An efficient KPCA algorithm based on feature correlation evaluation,
    # Neural Computing and Applications 24, 1795-1806: only the abstract could be had, which the
    # course notes in Spanish repeat in part. The cosine, and eigenvectors as combinations of few
    # patterns, are from it; the order of the rows, the threshold and how components are then found
    # are of our making.
    if not 0.0 < threshold <= 1.0:
        raise ValueError(f"threshold must be in (0, 1], got {threshold!r}.")
    if most is not None:
        as_integer("most", most, at_least=1)
    directions = unit_rows(K)
    nearest = np.zeros(len(K))
    chosen: list[int] = []
    for row in range(len(K)):
        if nearest[row] < threshold and directions[row].any():
            chosen.append(row)
            if len(chosen) == most:
                break
            np.maximum(nearest, np.abs(directions @ directions[row]), out=nearest)
    return np.array(chosen, dtype=np.intp)


def basic_pattern_components(
    kernel: Kernel,
    X: Matrix,
    threshold: float,
    *,
    most: int | None = None,
    n_components: int | None = None,
) -> KernelSubspace:
    """Return the components V = sum_p beta_p phi(x_p) of all rows in the span of the patterns."""
    chosen = basic_patterns(gram_matrix(kernel, X), threshold, most=most)
    basis = LandmarkBasis.from_eigen(kernel, X[chosen])
    return subspace_from_sums(basis, CovarianceSums.of_rows(basis, X), n_components=n_components)


class GreedyComponents(NamedTuple):
    """Components in the span of greedily chosen rows."""

    subspace: KernelSubspace
    chosen: Labels  # row numbers in the order chosen
    missed: Matrix  # (n,), squared distance in feature space of each row to their span


def greedy_components(
    kernel: Kernel, X: Matrix, m: int, *, n_components: int | None = None
) -> GreedyComponents:
    """Return the components of all rows within the span of ``m`` greedily chosen ones.

    Fewer are chosen where they span the rest.
    """
    # The row that the span of those chosen misses most joins them, the x with the largest
    # |phi(x) - P phi(x)|^2 = k(x, x) - k_S(x)' K_SS^-1 k_S(x), S the rows chosen so far. Franc and
    # Hlavac (2003), Greedy algorithm for a training set reduction in the kernel methods, CAIP 2003,
    # 426-433; and (2006), 87-105, as Aguilera and Antonanzas (2019), VII, cite it.
    with np.errstate(over="ignore", invalid="ignore"):
        length = kernel.diagonal(X)
    # No value of a kernel is larger than the largest k(x, x): k(x, y)^2 <= k(x, x) k(y, y).
    if not (np.isfinite(X).all() and np.isfinite(length).all()):
        raise ValueError("The rows, or the kernel of them, hold values that are not finite.")
    as_integer("m", m, at_least=1)
    chosen = greedy_pivots(kernel, X, m)
    basis = LandmarkBasis.from_eigen(kernel, X[chosen])
    z = basis.features()(X)
    missed = np.maximum(length - np.einsum("ij,ij->i", z, z), 0.0)
    sums = CovarianceSums.of_rows(basis, X)
    return GreedyComponents(
        subspace_from_sums(basis, sums, n_components=n_components), chosen, missed
    )


def random_feature_pca(
    gamma: float, n_features: int, n_components: int, random_state: int
) -> Pipeline:
    """Return linear PCA of random Fourier features of exp(-gamma |x - y|^2), not yet fitted."""
    # exp(-gamma |x - y|^2) = E[2 cos(w.x + b) cos(w.y + b)], w ~ N(0, 2 gamma I), b ~ U(0, 2 pi):
    # the columns sqrt(2/m) cos(w_j.x + b_j) have inner products that approximate it to order
    # 1/sqrt(m), whatever the rows are. Lopez-Paz, Sra, Smola, Ghahramani and Scholkopf (2014),
    # Randomized nonlinear component analysis, ICML 2014; Rahimi and Recht (2007), Random features
    # for large-scale kernel machines, NIPS 20.
    features = RBFSampler(gamma=gamma, n_components=n_features, random_state=random_state)
    return make_pipeline(features, PCA(n_components, svd_solver="full"))
