"""Methods in feature space: on components, means, clusters and nearest rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.decomposition import FastICA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.linalg.gram import gram_matrix
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.data import Labels
from kpca_apps.papers.measuring import components
from kpca_apps.system.arrays import Matrix


def regress_on_components(subspace: KernelSubspace, X: Matrix, y: ArrayLike) -> Pipeline:
    """Return a fitted least-squares regression on the components."""
    # On the fitted rows, components are uncorrelated, so each coefficient is computed separately:
    #     b_a = 1/n sum_i (y_i - mean(y)) t_a(x_i) / lambda_a,  t_a: component of variance lambda_a.
    # See the Spanish course notes (y ~ x + x^2); Scholkopf, Smola and Muller (1996), end of 6.3;
    # Rosipal, Girolami, Trejo and Cichocki (2001), Kernel PCA for feature extraction and de-noising
    # in nonlinear regression, Neural Computing and Applications 10, 231-243.
    return _pipeline_on_components(subspace, LinearRegression()).fit(X, y)


def component_discriminant(subspace: KernelSubspace, X: Matrix, y: ArrayLike) -> Pipeline:
    """Return a fitted linear discriminant analysis on the components."""
    # The directions in the span of the components maximise the ratio of the variance between
    # classes to that within classes. With all components this is the kernel Fisher discriminant
    # (Mika, Ratsch, Weston, Scholkopf and Muller, 1999, Neural Networks for Signal Processing IX,
    # 41-48), which needs a ridge; dropping components replaces the ridge. Scholkopf, Smola and
    # Muller (1996), 7.3, after Swets and Weng (1996), Using discriminant eigenfeatures for image
    # retrieval, IEEE Transactions on Pattern Analysis and Machine Intelligence 18, 831-836.
    return _pipeline_on_components(subspace, LinearDiscriminantAnalysis()).fit(X, y)


def _pipeline_on_components(subspace: KernelSubspace, model: BaseEstimator) -> Pipeline:
    return make_pipeline(FunctionTransformer(subspace.project), model)


def component_svm(subspace: KernelSubspace, X: Matrix, y: ArrayLike, *, C: float) -> Pipeline:
    """Return a fitted ``LinearSVC`` on the components, one class against the rest.

    Components are divided by the root of the largest variance, so that C does not depend on the
    size of the kernel.
    """
    # f(x) = w.t(x) + b, w = sum_i lambda_i t_i. Scholkopf, Smola and Muller (1996), eq. 28-29.
    scale = float(np.sqrt(subspace.variances[0]))
    machine = LinearSVC(C=C, random_state=0, max_iter=20_000)
    scaled = FunctionTransformer(lambda rows: subspace.project(rows) / scale)
    return make_pipeline(scaled, machine).fit(X, y)


def two_layer_machine(
    subspace: KernelSubspace, X: Matrix, y: ArrayLike, kernel: Kernel, *, C: float = 1.0
) -> Pipeline:
    """Return a fitted support vector machine on the components."""
    # f(x) = sgn(sum_i psi_i K2(g(x_i), g(x)) + b), g(x)_j = sum_k alpha_k^j K1(x_k, x). Scholkopf,
    # Smola and Muller (1996), eq. 30-31.
    return _pipeline_on_components(subspace, SVC(C=C, kernel=kernel)).fit(X, y)


def component_moments(T: Matrix, order: int) -> Matrix:
    """Return all moments of one ``order`` (from 1 to 8) of projections (n, q)."""
    # C^p = 1/M sum_i phi~(x_i) o ... o phi~(x_i) (p factors, o the outer product) is determined by
    # its values on the components, 1/M sum_i prod_k t_{jk}(x_i). Scholkopf, Smola and Muller
    # (1996), eq. 32-35.
    letters = "abcdefgh"[:order]
    terms = ",".join(f"z{letter}" for letter in letters)
    moments: Matrix = np.einsum(f"{terms}->{letters}", *[T] * order, optimize=True)
    return moments / len(T)


def projection_pursuit(subspace: KernelSubspace, X: Matrix, random_state: int) -> Matrix:
    """Return projections of the fitted rows on directions of extreme kurtosis, ``(n, q)``.

    The directions are orthogonal in the span of components scaled to unit variance, with the
    largest absolute kurtosis first.
    """
    # FastICA with the cubic contrast on components of unit variance: Hyvarinen (1999), Fast and
    # robust fixed-point algorithms for independent component analysis, IEEE Transactions on Neural
    # Networks 10, 626-634. Scholkopf, Smola and Muller (1996), 7.1: q is their M'.
    whitened = subspace.project(X) / np.sqrt(subspace.variances)
    ica = FastICA(
        algorithm="deflation", fun="cube", whiten=False, max_iter=2000, random_state=random_state
    )
    values: Matrix = ica.fit_transform(whitened)
    kurtosis = (values**4).mean(axis=0) - 3.0
    return values[:, np.argsort(-np.abs(kurtosis), kind="stable")]


@dataclass(frozen=True, eq=False)
class FeatureMeans:
    """Means in feature space, m_v = sum_j gamma_vj phi(x_j)."""

    kernel: Kernel
    points: Matrix  # (n, d)
    gamma: Matrix  # (k, n)
    norms: Matrix  # (k,), squared lengths of the means
    classes: NDArray[np.generic]  # (k,), label of each mean
    labels: NDArray[np.generic]  # (n,), the class of each point

    def decision(self, X: Matrix) -> Matrix:
        """Return <phi(x), m> - |m|^2 / 2 for each mean, ``(n, k)``; a larger value is nearer.

        For two classes, the second column minus the first is eq. (3.2) of the Spanish course notes.
        """
        return np.asarray(self.kernel(X, self.points) @ self.gamma.T - 0.5 * self.norms)

    def squared_distances(self, X: Matrix) -> Matrix:
        """Return |phi(x) - m|^2 = k(x, x) - 2 <phi(x), m> + |m|^2, shape ``(n, k)``."""
        return np.asarray(self.kernel.diagonal(X)[:, None] - 2.0 * self.decision(X))

    def predict(self, X: Matrix) -> NDArray[np.generic]:
        """Return the label of the nearest mean of each row."""
        return np.asarray(self.classes[self.decision(X).argmax(axis=1)])


def class_means(kernel: Kernel, X: Matrix, y: ArrayLike) -> FeatureMeans:
    """Return the means of the classes ``y`` (n,)."""
    # Rows are classified by the nearer mean in feature space: eq. 3.1-3.3 of the Spanish course
    # notes, after Scholkopf and Smola (2002), Learning with kernels, 1.2.
    labels = np.asarray(y)
    classes, numbers = np.unique(labels, return_inverse=True)
    members = (numbers[:, None] == np.arange(len(classes))).astype(np.float64)
    weights = members / members.sum(axis=0)
    norms = np.einsum("ia,ij,ja->a", weights, gram_matrix(kernel, X), weights, optimize=True)
    return FeatureMeans(kernel, X, weights.T, norms, classes, labels)


def online_kernel_kmeans(kernel: Kernel, X: Matrix, k: int) -> FeatureMeans:
    """Return ``k`` means after one pass over the rows."""
    # Row x_t moves the nearest mean m to m + zeta (phi(x_t) - m): the coefficients of m shrink by
    # the factor 1 - zeta, and x_t gets zeta = 1 / (number of rows in this mean, including x_t). The
    # means start at the first k rows, so each begins with 1 row, as eq. 41 assumes. Scholkopf,
    # Smola and Muller (1996), eq. 38-43.
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


def batch_kernel_kmeans(kernel: Kernel, X: Matrix, labels: Labels) -> FeatureMeans:
    """Return the means after Lloyd's iteration in feature space, started from clusters `labels`.

    A cluster that loses all its rows keeps its mean.
    """
    # Iterate until no row changes its cluster, at most 100 times ("once converged" in Scholkopf,
    # Smola and Muller (1996), 7.2). Scikit-learn's KMeans on all components does the same.
    gram = gram_matrix(kernel, X)
    k = int(labels.max()) + 1
    gamma = np.zeros((k, len(X)))
    for _ in range(100):
        members = (labels == np.arange(k)[:, None]).astype(np.float64)
        counts = members.sum(axis=1)
        has_rows = counts > 0.0
        gamma[has_rows] = members[has_rows] / counts[has_rows, None]
        norms = np.einsum("ai,ij,aj->a", gamma, gram, gamma, optimize=True)
        nearest = (norms - 2.0 * gram @ gamma.T).argmin(axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
    return FeatureMeans(kernel, X, gamma, norms, np.arange(k), labels)


def feature_distances(kernel: Kernel, X: Matrix, Z: Matrix) -> Matrix:
    """Return the distances between feature vectors of rows, shape ``(n, m)``."""
    squared = kernel.diagonal(X)[:, None] - 2.0 * kernel(X, Z) + kernel.diagonal(Z)
    return np.asarray(np.sqrt(np.maximum(squared, 0.0)))


def kernel_neighbour_labels(
    kernel: Kernel, X: Matrix, y: ArrayLike, new: Matrix, *, n_neighbours: int = 5
) -> NDArray[np.generic]:
    """Return the most frequent label among the nearest neighbours in feature space."""
    # If a kernel falls with distance, the neighbours are those in input space, although Scholkopf,
    # Smola and Muller (1996), 7.3, do not mention this.
    classifier = KNeighborsClassifier(n_neighbours, metric="precomputed")
    classifier.fit(feature_distances(kernel, X, X), y)
    return np.asarray(classifier.predict(feature_distances(kernel, new, X)))


def neighbourhood_components(
    kernel: Kernel, X: Matrix, x: Matrix, n_neighbours: int, *, n_components: int | None = None
) -> KernelSubspace:
    """Return the components of the rows nearest to a point ``x`` (d,) of input space."""
    # The directions are local to each point and cost O(k^3) per point. Scholkopf, Smola and Muller
    # (1996), B.6, after Bottou and Vapnik (1992), Local learning algorithms, Neural Computation 4,
    # 888-900.
    squared = ((X - x) ** 2).sum(axis=1)
    nearest = np.sort(np.argsort(squared, kind="stable")[:n_neighbours])
    return components(kernel, X[nearest], n_components)
