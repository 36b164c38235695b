"""Components from fewer rows or features: cluster means, basic patterns, random features."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import Pipeline, make_pipeline

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.kernels.base import unit_rows
from kpca_apps.engine.linalg.eigen import significant
from kpca_apps.engine.linalg.gram import gram_matrix
from kpca_apps.engine.precision import smallest_eigenvalue
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.data import Labels
from kpca_apps.papers.methods.iterations import assembled
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread


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


def basic_patterns(K: Matrix, threshold: float) -> Labels:
    """Return the rows whose kernel vectors differ enough from those of all patterns before.

    ``threshold``, in (0, 1], is the largest cosine between two patterns' kernel vectors.
    """
    # Two rows whose columns of K point in nearly the same direction say nearly the same: row i
    # becomes a pattern if |K_i'K_p| / (|K_i| |K_p|) < threshold for every pattern p so far. Fan,
    # Wang, Xu and Tang (2014), An efficient KPCA algorithm based on feature correlation evaluation,
    # Neural Computing and Applications 24, 1795-1806: only the abstract could be had, which the
    # course notes in Spanish repeat in part. The cosine, and eigenvectors as combinations of few
    # patterns, are from it; the order of the rows and the threshold are ours.
    directions = unit_rows(K)
    nearest = np.zeros(len(K))
    chosen: list[int] = []
    for row in range(len(K)):
        if nearest[row] < threshold:
            chosen.append(row)
            np.maximum(nearest, np.abs(directions @ directions[row]), out=nearest)
    return np.array(chosen, dtype=np.intp)


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
