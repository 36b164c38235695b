"""Components as few points of a chosen family of inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from kpca_apps.engine.compress import JITTER
from kpca_apps.engine.linalg.gram import about_origin
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread


class ParametrisedSet(NamedTuple):
    """Points of a family whose images come nearest to spanning the components."""

    parameters: Matrix  # (m, p)
    points: Matrix  # (m, d), what the family makes of them
    coefficients: Matrix  # (m, q): V_a ~ sum_j beta_ja phi(z_j)
    rho: Matrix  # (q,), the squared length of V_a that the points leave, in [0, 1]


def parametrised_set(
    subspace: KernelSubspace,
    family: Callable[[Matrix], Matrix],
    start: Matrix,
    *,
    max_iter: int = 200,
) -> ParametrisedSet:
    """Find parameters (m, p) of a smooth family whose points (m, d) explain most of the components.

    The search ends in the minimum nearest to ``start`` (m, p): start from points that differ.
    """
    # A component is a combination of all rows; here of few points z(theta) that can be read: an
    # image moved by so much, a curve of such a slope. Over theta and beta is lessened
    #     sum_a rho_a,  rho_a = |V_a - sum_j beta_ja phi(z(theta_j))|^2;
    # for given points the best beta solve linear equations, so that the search is over theta alone,
    # by L-BFGS with numerical slopes. Scholkopf, Smola and Muller (1996), 4.5 and eq. 25-27.
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
