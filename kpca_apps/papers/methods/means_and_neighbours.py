"""Means, clusters and nearest rows in feature space: kernel k-means, class means, neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import KNeighborsClassifier

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.linalg.gram import gram_matrix
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.data import Labels
from kpca_apps.papers.measuring import components
from kpca_apps.system.arrays import Matrix


@dataclass(frozen=True, eq=False)
class FeatureMeans:
    """Means in feature space, m_v = sum_j gamma_vj phi(x_j)."""

    kernel: Kernel
    points: Matrix  # (n, d)
    gamma: Matrix  # (k, n)
    norms: Matrix  # (k,), squared lengths of the means
    classes: NDArray[np.generic]  # (k,), what each mean is called
    labels: NDArray[np.generic]  # (n,), the class of each point

    def decision(self, X: Matrix) -> Matrix:
        """Return <phi(x), m> - |m|^2 / 2 for each mean, shape ``(n, k)``; larger is nearer.

        Of two classes, the second column less the first is eq. (3.2) of the notes in Spanish.
        """
        values: Matrix = self.kernel(X, self.points) @ self.gamma.T - 0.5 * self.norms
        return values

    def squared_distances(self, X: Matrix) -> Matrix:
        """Return |phi(x) - m|^2 = k(x, x) - 2 <phi(x), m> + |m|^2, shape ``(n, k)``."""
        distances: Matrix = self.kernel.diagonal(X)[:, None] - 2.0 * self.decision(X)
        return distances

    def predict(self, X: Matrix) -> NDArray[np.generic]:
        """Return the label of the nearest mean of each row."""
        labels: NDArray[np.generic] = self.classes[self.decision(X).argmax(axis=1)]
        return labels


def class_means(kernel: Kernel, X: Matrix, y: ArrayLike) -> FeatureMeans:
    """Return the means of the classes ``y`` (n,), to put a row into the class with the nearest."""
    # To +1 if 1/m+ sum_{i in +} k(x, x_i) - 1/m- sum_{i in -} k(x, x_i) + b > 0, b = (|c-|^2 -
    # |c+|^2) / 2. The notes in Spanish print this difference the other way round in their eq.
    # (3.3), against their own definition of b a line before: with a Gaussian kernel a wide class
    # then loses its rows to one that lies close together. Eq. 3.1-3.3, after Scholkopf and Smola
    # (2002), Learning with kernels, 1.2.
    labels = np.asarray(y)
    classes, numbers = np.unique(labels, return_inverse=True)
    members = (numbers[:, None] == np.arange(len(classes))).astype(np.float64)
    weights = members / members.sum(axis=0)
    norms = np.einsum("ia,ij,ja->a", weights, gram_matrix(kernel, X), weights, optimize=True)
    return FeatureMeans(kernel, X, weights.T, norms, classes, labels)


def online_kernel_kmeans(kernel: Kernel, X: Matrix, k: int) -> FeatureMeans:
    """Go through the rows once, moving the nearest mean each time; it begins at the first ``k``."""
    # m <- m + zeta (phi(x_t) - m), which is gamma_j <- (1 - zeta) gamma_j, gamma_t <- zeta, with
    # zeta = 1 / (rows of the mean, x_t among them). The report's counts (eq. 41) need one row in
    # each of the first k clusters, as its means start there: they begin at 1. Scholkopf, Smola and
    # Muller (1996), eq. 38-43.
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
    return FeatureMeans(kernel, X, gamma, norms, np.arange(k), labels)


def batch_kernel_kmeans(
    kernel: Kernel, X: Matrix, labels: Labels, *, max_iter: int = 100
) -> FeatureMeans:
    """Repeat Lloyd's two steps in feature space from given clusters, 0 to k - 1.

    A cluster that has lost its last row keeps its mean.
    """
    # Until no row changes its cluster, as the "once converged" of Scholkopf, Smola and Muller
    # (1996), 7.2, asks. On all components scikit-learn's KMeans does the same.
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
    return FeatureMeans(kernel, X, gamma, norms, np.arange(k), labels)


def feature_distances(kernel: Kernel, X: Matrix, Z: Matrix) -> Matrix:
    """Return the distances between images of rows in feature space, shape ``(n, m)``."""
    squared = kernel.diagonal(X)[:, None] - 2.0 * kernel(X, Z) + kernel.diagonal(Z)
    distances: Matrix = np.sqrt(np.maximum(squared, 0.0))
    return distances


def kernel_neighbour_labels(
    kernel: Kernel, X: Matrix, y: ArrayLike, new: Matrix, *, n_neighbours: int = 5
) -> NDArray[np.generic]:
    """Return the label most frequent among the nearest neighbours in feature space."""
    # For a kernel that falls with the distance the neighbours are those of the input space: it
    # changes nothing, which Scholkopf, Smola and Muller (1996), 7.3, do not say. For polynomial
    # ones it does: lengths count too.
    classifier = KNeighborsClassifier(n_neighbours, metric="precomputed")
    classifier.fit(feature_distances(kernel, X, X), y)
    labels: NDArray[np.generic] = classifier.predict(feature_distances(kernel, new, X))
    return labels


def neighbourhood_components(
    kernel: Kernel, X: Matrix, x: Matrix, n_neighbours: int, *, n_components: int | None = None
) -> KernelSubspace:
    """Return the components of the rows nearest to a point ``x`` (d,) of input space."""
    # Locality in input space: each place gets directions of its own, at O(k^3) a place. Scholkopf,
    # Smola and Muller (1996), B.6, after Bottou and Vapnik (1992), Local learning algorithms,
    # Neural Computation 4, 888-900.
    squared = ((X - x) ** 2).sum(axis=1)
    nearest = np.sort(np.argsort(squared, kind="stable")[:n_neighbours])
    return components(kernel, X[nearest], n_components)
