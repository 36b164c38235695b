"""What is done with components: regression, classifiers, moments, projection pursuit."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.decomposition import FastICA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.system.arrays import Matrix


def regress_on_components(subspace: KernelSubspace, X: Matrix, y: ArrayLike) -> Pipeline:
    """Regress on the components of a subspace by least squares."""
    # On the rows of the fit components are uncorrelated, so that each coefficient is found alone:
    #     b_a = 1/n sum_i (y_i - mean(y)) t_a(x_i) / lambda_a.
    # Course notes in Spanish, on y ~ x + x^2; Scholkopf, Smola and Muller (1996), end of 6.3;
    # Rosipal, Girolami, Trejo and Cichocki (2001), Kernel PCA for feature extraction and
    # de-noising in nonlinear regression, Neural Computing and Applications 10, 231-243.
    return _on(subspace, LinearRegression()).fit(X, y)


def component_discriminant(subspace: KernelSubspace, X: Matrix, y: ArrayLike) -> Pipeline:
    """Fit a linear discriminant analysis on the components, far fewer of them than rows."""
    # Directions that maximise variance between classes over variance within them, among the
    # components kept; with all of them this is the kernel Fisher discriminant (Mika, Ratsch,
    # Weston, Scholkopf and Muller, 1999, Neural Networks for Signal Processing IX, 41-48), which
    # needs the ridge that leaving out components replaces. Scholkopf, Smola and Muller (1996), 7.3,
    # after Swets and Weng (1996), Using discriminant eigenfeatures for image retrieval, IEEE
    # Transactions on Pattern Analysis and Machine Intelligence 18, 831-836.
    return _on(subspace, LinearDiscriminantAnalysis()).fit(X, y)


def _on(subspace: KernelSubspace, model: BaseEstimator) -> Pipeline:
    return make_pipeline(FunctionTransformer(subspace.project), model)


def component_svm(
    subspace: KernelSubspace, X: Matrix, y: ArrayLike, *, C: float = 1.0, random_state: int = 0
) -> Pipeline:
    """Train scikit-learn's ``LinearSVC``, one class against the rest, on the components.

    Components are divided by the root of the largest variance, so that C means the same whatever
    the size of the kernel.
    """
    # f(x) = w.t(x) + b, w = sum_i lambda_i t_i; as components are expansions over the points, w
    # would fold into one coefficient a point. Scholkopf, Smola and Muller (1996), eq. 28-29.
    scale = float(np.sqrt(subspace.variances[0]))
    machine = LinearSVC(C=C, random_state=random_state, max_iter=20_000)
    scaled = FunctionTransformer(lambda rows: subspace.project(rows) / scale)
    return make_pipeline(scaled, machine).fit(X, y)


def two_layer_machine(
    subspace: KernelSubspace, X: Matrix, y: ArrayLike, kernel: Kernel, *, C: float = 1.0
) -> Pipeline:
    """Train a support vector machine on the components."""
    # f(x) = sgn(sum_i psi_i K2(g(x_i), g(x)) + b), g(x)_j = sum_k alpha_k^j K1(x_k, x): several
    # machines could share the first layer. Scholkopf, Smola and Muller (1996), eq. 30-31.
    return _on(subspace, SVC(C=C, kernel=kernel)).fit(X, y)


def component_moments(T: Matrix, order: int) -> Matrix:
    """Return the moments of order p, from 1 to 8, of projections (n, q): a tensor of q^p values."""
    # In the span of the images C^p = 1/M sum_i phi~(x_i) o ... o phi~(x_i) (p factors, o the outer
    # product) is given by its values on the components, 1/M sum_i prod_k t_{jk}(x_i). The second
    # are the variances, all others zero; the third and fourth say how far from Gaussian the images
    # lie. Scholkopf, Smola and Muller (1996), eq. 32-35.
    letters = "abcdefgh"[:order]
    terms = ",".join(f"z{letter}" for letter in letters)
    moments: Matrix = np.einsum(f"{terms}->{letters}", *[T] * order, optimize=True)
    return moments / len(T)


def projection_pursuit(
    subspace: KernelSubspace, X: Matrix, random_state: int, *, max_iter: int = 2000
) -> Matrix:
    """Return the rows of the fit along orthogonal directions of extreme kurtosis, ``(n, q)``.

    Directions are among the components of unit variance, those of the largest kurtosis first.
    """
    # FastICA with the cubic contrast on components of unit variance: Hyvarinen (1999), Fast and
    # robust fixed-point algorithms for independent component analysis, IEEE Transactions on Neural
    # Networks 10, 626-634. Scholkopf, Smola and Muller (1996), 7.1: q is their M'.
    whitened = subspace.project(X) / np.sqrt(subspace.variances)
    ica = FastICA(
        algorithm="deflation",
        fun="cube",
        whiten=False,
        max_iter=max_iter,
        random_state=random_state,
    )
    values: Matrix = ica.fit_transform(whitened)
    kurtosis = (values**4).mean(axis=0) - 3.0
    return values[:, np.argsort(-np.abs(kurtosis), kind="stable")]
