"""Components told by points one can interpret: a reduced set from a family with few parameters.

A component is a vector of feature space, and a combination of all rows. Here it is approximated
by few points of a family z(theta) chosen beforehand: an image moved by so much, a curve of such a
slope, a variable alone. The family's parameters are what is looked for, so that the answer reads:
these components are spanned by the image at those places. With V_a = sum_i W_ia phi(x_i), what is
lessened over the theta_j and the beta is

    sum_a rho_a,    rho_a = |V_a - sum_j beta_ja phi(z(theta_j))|^2;

for given points the best beta solve linear equations, so that the search is over theta alone.

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, section 4.5 and eq. 25-27.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from kpca_apps.blas import one_blas_thread
from kpca_apps.engine.compress import JITTER
from kpca_apps.engine.linalg.gram import about_origin
from kpca_apps.engine.subspace import KernelSubspace

__all__ = ["ParametrisedSet", "parametrised_set"]

Matrix = NDArray[np.float64]
Family = Callable[[Matrix], Matrix]


@dataclass(frozen=True, eq=False)
class ParametrisedSet:
    """Points of a family whose images come nearest to spanning the components.

    Attributes
    ----------
    parameters : ndarray of shape (m, p)
        Of each point.
    points : ndarray of shape (m, d)
        What the family makes of them.
    coefficients : ndarray of shape (m, q)
        Column a holds beta with V_a ~ sum_j beta_j phi(z_j).
    rho : ndarray of shape (q,)
        The squared length of V_a that the points leave, in [0, 1].
    """

    parameters: Matrix
    points: Matrix
    coefficients: Matrix
    rho: Matrix


def parametrised_set(
    subspace: KernelSubspace, family: Family, start: Matrix, *, max_iter: int = 200
) -> ParametrisedSet:
    """Find parameters whose points explain most of the components.

    Parameters
    ----------
    subspace : KernelSubspace
        Of a positive semi-definite kernel.
    family : callable
        Maps parameters ``(m, p)`` to points ``(m, d)``, row by row and smoothly.
    start : ndarray of shape (m, p)
        Where the search begins: it ends at the nearest valley, so begin apart.
    max_iter : int >= 0
        Steps of L-BFGS with numerical slopes; each costs m p + 1 evaluations of m points.

    Returns
    -------
    ParametrisedSet

    Raises
    ------
    ValueError
        If the kernel is indefinite, or the family returns no points of the subspace's length.

    Examples
    --------
    Which direction of the plane is the first principal axis?

    >>> from kpca_apps.engine.exact import fit_exact
    >>> from kpca_apps.engine.kernels import Linear
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> subspace = fit_exact(Linear(), X, rng=np.random.default_rng(0), n_components=1)
    >>> found = parametrised_set(
    ...     subspace, lambda angle: np.hstack([np.cos(angle), np.sin(angle)]), np.array([[0.1]])
    ... )
    >>> np.degrees(found.parameters).round(0)
    array([[45.]])
    """
    if not subspace.kernel.is_psd:
        raise ValueError(
            f"The kernel {subspace.kernel.describe()} is indefinite: it has no distances by which "
            "points could be judged."
        )
    start = np.asarray(start, dtype=np.float64)
    first = family(start)
    if first.shape != (len(start), subspace.points.shape[1]):
        raise ValueError(
            f"The family must return {len(start)} points of {subspace.points.shape[1]} columns; "
            f"got shape {first.shape}."
        )
    # A point stands for its image as it is, not for its difference from the column means.
    kernel = about_origin(subspace.kernel)
    prepared = kernel.against(subspace.points)

    def solved(parameters: Matrix) -> tuple[Matrix, Matrix]:
        """Return the coefficients, and what is left of each component."""
        points = family(parameters)
        inner = prepared(points) @ subspace.weights
        gram = kernel(points)
        gram[np.diag_indices_from(gram)] += JITTER * (np.trace(gram) / len(gram) or 1.0)
        coefficients = cho_solve(cho_factor(gram), inner)
        return coefficients, 1.0 - np.einsum("ja,ja->a", inner, coefficients)

    with one_blas_thread():
        found = minimize(
            lambda flat: float(solved(flat.reshape(start.shape))[1].sum()),
            start.ravel(),
            method="L-BFGS-B",
            options={"maxiter": max_iter, "ftol": 1e-12, "gtol": 1e-8},
        )
        parameters: Matrix = found.x.reshape(start.shape)
        coefficients, left = solved(parameters)
    return ParametrisedSet(parameters, family(parameters), coefficients, np.maximum(left, 0.0))
