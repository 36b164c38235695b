"""Kernel k-means: means in feature space, told by their coefficients over the rows.

A mean m_v = sum_j gamma_vj phi(x_j) lies at the squared distance

    |phi(x) - m_v|^2 = k(x, x) - 2 sum_j gamma_vj k(x, x_j) + sum_ij gamma_vi gamma_vj k(x_i, x_j).

In the online pass each row moves the nearest mean towards itself by one over the rows that mean
then has,

    m <- m + zeta (phi(x_t) - m):  gamma_j <- (1 - zeta) gamma_j,  gamma_t <- zeta,
    zeta = 1 / (rows of the mean, x_t among them).

The report's counts (eq. 41) need one row in each of the first k clusters, as its means start
there: counts begin at 1. Batch passes then repeat Lloyd's two steps until no row changes its
cluster, as the report's "once converged" asks.

Prefer scikit-learn's ``KMeans`` on the components of ``KernelPCA``. On all of them it is kernel
k-means itself: from the same starts the same clusters, and new rows cost no more. On fewer of them
the number decides. On three rings (150 rows each, radii .1, .5 and 1, Gaussian kernel of width .4),
each way at the best of ten equal starts, kernel k-means put .68 of the rows with their like, and
``KMeans`` .998 on the first component, .68 on two, on five and on all 185: try several numbers.

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, eq. 36-43.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.kernels.base import as_integer
from kpca_apps.engine.linalg.gram import gram_matrix

__all__ = ["KernelMeans", "batch_kernel_kmeans", "online_kernel_kmeans"]

Matrix = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class KernelMeans:
    """Means in feature space.

    Attributes
    ----------
    kernel : Kernel
    points : ndarray of shape (n, d)
    gamma : ndarray of shape (k, n)
        Coefficients of the means over the points.
    norms : ndarray of shape (k,)
        Squared lengths of the means.
    labels : ndarray of int, shape (n,)
        Cluster each point was put into.
    """

    kernel: Kernel
    points: Matrix
    gamma: Matrix
    norms: Matrix
    labels: Index

    def squared_distances(self, X: Matrix) -> Matrix:
        """Return the squared distances of rows to the means (eq. 37), shape ``(n, k)``."""
        inner = self.kernel(X, self.points) @ self.gamma.T
        return self.kernel.diagonal(X)[:, None] - 2.0 * inner + self.norms

    def predict(self, X: Matrix) -> Index:
        """Return the number of the nearest mean of each row."""
        nearest: Index = self.squared_distances(X).argmin(axis=1)
        return nearest


def online_kernel_kmeans(kernel: Kernel, X: Matrix, k: int) -> KernelMeans:
    """Go through the rows once, moving the nearest mean each time (eq. 38-43).

    Parameters
    ----------
    kernel : Kernel
    X : ndarray of shape (n, d)
        The first ``k`` rows are where the means start.
    k : int in [1, n]

    Examples
    --------
    >>> from kpca_apps.engine.kernels import Linear
    >>> online_kernel_kmeans(Linear(), np.array([[0.0], [9.0], [1.0], [10.0]]), 2).labels
    array([0, 1, 0, 1])
    """
    gram = gram_matrix(kernel, X)
    gamma = np.eye(k, len(X))
    counts, norms = np.ones(k), np.diag(gram)[:k].copy()
    labels = np.arange(len(X), dtype=np.intp)
    for t in range(k, len(X)):
        nearest = int((norms - 2.0 * gamma @ gram[t]).argmin())
        labels[t] = nearest
        counts[nearest] += 1.0
        zeta = 1.0 / counts[nearest]
        gamma[nearest] *= 1.0 - zeta
        gamma[nearest, t] = zeta
        norms[nearest] = gamma[nearest] @ gram @ gamma[nearest]
    return KernelMeans(kernel, X, gamma, norms, labels)


def batch_kernel_kmeans(
    kernel: Kernel, X: Matrix, labels: Index, *, max_iter: int = 100
) -> KernelMeans:
    """Repeat Lloyd's two steps in feature space from given clusters.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray of shape (n, d)
    labels : ndarray of int, shape (n,)
        Where to begin, such as `online_kernel_kmeans`' labels; 0 to k - 1.
    max_iter : int >= 1

    Returns
    -------
    KernelMeans
        A cluster that has lost its last row keeps its mean.

    Examples
    --------
    >>> from kpca_apps.engine.kernels import Linear
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> batch_kernel_kmeans(Linear(), X, np.array([0, 1, 1, 1])).labels
    array([0, 0, 1, 1])
    """
    as_integer("max_iter", max_iter, at_least=1)
    gram = gram_matrix(kernel, X)
    k = int(labels.max()) + 1
    gamma = np.zeros((k, len(X)))
    for _ in range(max_iter):
        members = (labels == np.arange(k)[:, None]).astype(np.float64)
        counts = members.sum(axis=1)
        kept = counts > 0.0
        gamma[kept] = members[kept] / counts[kept, None]
        norms = np.einsum("ai,ij,aj->a", gamma, gram, gamma, optimize=True)
        nearest = (norms - 2.0 * gram @ gamma.T).argmin(axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
    return KernelMeans(kernel, X, gamma, norms, labels)
