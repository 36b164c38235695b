"""Moments of higher order in feature space, and projection pursuit among the components.

In the span of the images a moment tensor of order p is told by its values on the components,

    C^p = 1/M sum_i phi~(x_i) o ... o phi~(x_i)  (p factors; o the outer product),
    P_{j1...jp} = <C^p, V_j1 o ... o V_jp> = 1/M sum_i prod_k t_{jk}(x_i),

t the projections: the second moments are the variances, all others zero; the third and fourth
tell how far from Gaussian the images lie. Projection pursuit looks for directions of extreme
kurtosis among the components brought to unit variance: scikit-learn's ``FastICA`` with the cubic
contrast, run on the projections. The number of components is the report's M': all of them would
make n^p numbers.

Prefer ``sklearn.decomposition.FastICA`` on the rows themselves where sources mix linearly: of two
uniform sources mixed by a 2 x 2 matrix the linear components gave back both with a correlation of
.9998, 5 components of a Gaussian kernel one of them with .93 only.

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, eq. 32-35.
.. [2] Hyvarinen (1999), Fast and robust fixed-point algorithms for independent component
   analysis, IEEE Transactions on Neural Networks 10, 626-634.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import FastICA

from kpca_apps.engine.subspace import KernelSubspace

__all__ = ["Pursuit", "component_moments", "projection_pursuit"]

Matrix = NDArray[np.float64]

_LETTERS = "abcdefgh"


def component_moments(T: Matrix, order: int) -> Matrix:
    """Return the moment tensor of order p on the components (eq. 35).

    Parameters
    ----------
    T : ndarray of shape (n, q)
        Projections of the training rows on the components kept.
    order : int in [1, 8]
        p; the tensor has q^p entries.

    Returns
    -------
    ndarray of shape (q,) * p

    Examples
    --------
    >>> component_moments(np.array([[-1.0, 2.0], [1.0, 2.0]]), 2)
    array([[1., 0.],
           [0., 4.]])
    """
    if not 1 <= order <= len(_LETTERS):
        raise ValueError(f"order must be from 1 to {len(_LETTERS)}, got {order!r}.")
    letters = _LETTERS[:order]
    terms = ",".join(f"z{letter}" for letter in letters)
    moments: Matrix = np.einsum(f"{terms}->{letters}", *[T] * order, optimize=True)
    return moments / len(T)


@dataclass(frozen=True, eq=False)
class Pursuit:
    """Directions in feature space along which the rows are least Gaussian.

    Attributes
    ----------
    directions : ndarray of shape (q, q)
        Over components of unit variance; orthonormal columns, the least Gaussian first.
    kurtosis : ndarray of shape (q,)
        Excess kurtosis of the training rows along them: below 0 flat, above 0 peaked.
    values : ndarray of shape (n, q)
        The rows along the directions, of unit variance.
    """

    directions: Matrix
    kurtosis: Matrix
    values: Matrix


def projection_pursuit(
    subspace: KernelSubspace, X: Matrix, random_state: int, *, max_iter: int = 2000
) -> Pursuit:
    """Return orthogonal directions of extreme kurtosis among the components, in feature space.

    Parameters
    ----------
    subspace : KernelSubspace
        Its components are what is searched: q of them.
    X : ndarray of shape (n, d)
        The rows the subspace was fitted on.
    random_state : int
        Draws the start.
    max_iter : int >= 1

    Examples
    --------
    >>> from kpca_apps.engine.exact import fit_exact
    >>> from kpca_apps.engine.kernels import Linear
    >>> X = np.random.default_rng(0).uniform(size=(3000, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    >>> subspace = fit_exact(Linear(), X, rng=np.random.default_rng(0), n_components=2)
    >>> projection_pursuit(subspace, X, 0).kurtosis.round(1)
    array([-1.2, -1.2])
    """
    whitened = subspace.project(X) / np.sqrt(subspace.variances)
    ica = FastICA(
        algorithm="deflation",
        fun="cube",
        whiten=False,
        max_iter=max_iter,
        random_state=random_state,
    )
    values = ica.fit_transform(whitened)
    kurtosis = (values**4).mean(axis=0) - 3.0
    order = np.argsort(-np.abs(kurtosis), kind="stable")
    return Pursuit(ica.components_.T[:, order], kurtosis[order], values[:, order])
