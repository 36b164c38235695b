"""The Gram matrix of a subset, components for all: what the report did with 3,000 of 7,291 rows.

Components are fitted on M of the l rows and evaluated on all of them,

    K~ alpha = M lambda alpha  (M x M),    t(x_i) = sum_{j <= M} alpha_j k~(x_j, x_i),  i <= l,

k~ centred about the mean of the M rows. The rows left out shape neither the components nor the
mean.

Prefer ``KernelPCA(method="nystroem")``: it spends the same M kernel values a row, but all rows
shape its components. On 2,000 rows near a curved surface (Gaussian kernel, 5 components, M = 100)
the mean squared distance of all rows to the components came out 8.4 % above that of the exact
ones with a subset, and 1.6 % with the subset as landmarks.

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, sections 4.4 and 6.3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.subspace import KernelSubspace

__all__ = ["subset_components"]

Matrix = NDArray[np.float64]


def subset_components(
    kernel: Kernel,
    X: Matrix,
    subset: NDArray[np.intp],
    rng: np.random.Generator,
    *,
    n_components: int | None = None,
) -> tuple[KernelSubspace, Matrix]:
    """Fit components on some rows and project all of them.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray of shape (n, d)
    subset : ndarray of int, shape (M,)
        The rows the Gram matrix is made of; the report took the first ones.
    rng : numpy.random.Generator
        Starts the eigenvalue solver where it iterates.
    n_components : int, optional
        All that rounding leaves if None.

    Returns
    -------
    subspace : KernelSubspace
    projections : ndarray of shape (n, q)

    Examples
    --------
    >>> from kpca_apps.engine.kernels import Linear
    >>> X = np.array([[0.0], [2.0], [4.0]])
    >>> _, projections = subset_components(Linear(), X, np.arange(2), np.random.default_rng(0))
    >>> projections[:, 0]
    array([ 1., -1., -3.])
    """
    subspace = fit_exact(kernel, X[subset], rng=rng, n_components=n_components)
    return subspace, subspace.project(X)
