"""A fitted subspace through fewer points: quicker to serve, with its error stated.

A subspace of n points becomes one of m: each component V = sum_i alpha_i phi(x_i) is approximated
by V~ = sum_j beta_j phi(z_j), so as to lessen

    rho = |V - V~|^2 = |V|^2 + |V~|^2 - 2 sum_ij alpha_i beta_j k(x_i, z_j).

Points are first selected, one after the other, where they explain most of the directions and the
mean; then moved, all together, to where they explain more. Whatever the points, the best
coefficients are a projection in feature space, in closed form. With (x.y)^2 nothing need be lost:
components and mean are symmetric matrices, and their eigenvectors the points.

References
----------
.. [1] Burges (1996), Simplified support vector decision rules, ICML 1996, 71-77.
.. [2] Scholkopf, Mika, Burges, Knirsch, Muller, Ratsch and Smola (1999), Input space versus feature
   space in kernel-based methods, IEEE Transactions on Neural Networks 10, 1000-1017.
.. [3] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, section 4.4, eq. 25-27.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve, svd
from scipy.optimize import minimize

from kpca_apps.engine.kernels import Polynomial
from kpca_apps.engine.linalg.cholesky import PartialCholesky
from kpca_apps.engine.linalg.eigen import significant
from kpca_apps.engine.nystroem import LandmarkBasis
from kpca_apps.engine.precision import smallest_eigenvalue
from kpca_apps.engine.rows import map_row_blocks
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread

CANDIDATES = 10_000
"""Stored points, spread evenly, that are looked at in the selection."""

POINTS_A_BLOCK = 4096
"""Stored points compared at once with all points of the reduced set."""

JITTER = 1e-10
"""Added to the diagonal of the points' Gram matrix while they move, relative to its mean: they may
coincide."""

SMALLEST_SINE = 1e-6
"""Length below which what the points keep of some combination of the components is rounding."""


@dataclass(frozen=True, eq=False)
class ReducedSet:
    """A subspace of few points, and how far it is from the one it stands for."""

    # A projection of a row changes by at most its component's distance times the row's distance
    # from the mean in feature space, plus the distance of the mean.

    subspace: KernelSubspace  # its directions are orthonormal: its error is a distance again
    component_distances: Matrix  # |v - v~| (q,) in feature space, v of length 1
    mean_distance: float  # |mean - mean~| in feature space

    def describe(self) -> str:
        """Return the size and the distances in one line."""
        worst = self.component_distances.max(initial=0.0)
        mean = self.component_distances.mean() if self.component_distances.size else 0.0
        return (
            f"{len(self.subspace.points)} points, components off by {mean:.2g} in the mean and "
            f"{worst:.2g} at worst, the mean by {self.mean_distance:.2g}"
        )


def reduced_set(
    subspace: KernelSubspace, n_points: int, *, max_iter: int = 100, n_jobs: int | None = None
) -> ReducedSet:
    """Approximate a subspace by one of at most ``n_points`` points, fewer where those explain all.

    ``max_iter`` steps of L-BFGS move the points, none where the gradient is unknown. ValueError if
    the kernel is indefinite, or ``n_points`` is out of range or spans fewer directions than
    components.
    """
    # The points Y lessen s^2 sum_a |v_a - P_Y v_a|^2 + |mu - P_Y mu|^2, P_Y the projection on their
    # span in feature space and s^2 the variance along the components, so that both count by how far
    # they move a row's projection. The new components are the orthonormal vectors of that span that
    # lie nearest to the old ones: the polar factor of their projections. Components of (x.y)^2 and
    # their mean are kept without loss by as many points as they have eigenvectors: at most one a
    # column for each (`square_expansion`).
    q, n = subspace.n_components, len(subspace.points)
    subspace.kernel.require_psd("A smaller set of points")
    if not max(q, 1) <= n_points <= n:
        raise ValueError(
            f"n_points must be at least the number of components and at most the number of "
            f"points, here from {max(q, 1)} to {n}; got {n_points}."
        )
    with one_blas_thread():
        eigenvectors = _eigenvectors(subspace)
        if eigenvectors is not None and len(eigenvectors) <= n_points:
            return _projected(subspace, _selected(subspace, eigenvectors, n_points, n_jobs))
        stored = subspace.points
        some = np.unique(np.linspace(0, len(stored) - 1, max(CANDIDATES, n_points)).astype(np.intp))
        points = _selected(subspace, stored[some], n_points, n_jobs)
        if max_iter > 0 and subspace.kernel.is_differentiable:
            points = _moved(subspace, points, max_iter)
        return _projected(subspace, points)


def _targets(subspace: KernelSubspace) -> Matrix:
    """Return coefficients of what is to be explained: components of the rows' spread, the mean."""
    spread = np.sqrt(subspace.variances.sum())
    return np.column_stack([spread * subspace.weights, subspace.mean_weights])


def _eigenvectors(subspace: KernelSubspace) -> Matrix | None:
    """Return the points that explain all components and the mean of (x.y)^2; else None."""
    kernel = subspace.kernel
    if not (isinstance(kernel, Polynomial) and kernel.degree == 2 and kernel.coef0 == 0.0):
        return None
    expansions = (square_expansion(subspace.points, alpha) for alpha in _targets(subspace).T)
    return np.vstack([directions for directions, _ in expansions])


def square_expansion(points: Matrix, alpha: Matrix) -> tuple[Matrix, Matrix]:
    """Return u_j and beta_j with sum_j beta_j (u_j.y)^2 = sum_i alpha_i (x_i.y)^2 for every y.

    u_j ``(m, d)`` are orthonormal, m <= d of them, and beta_j by decreasing modulus.
    """
    # (x.y)^2 is an inner product of symmetric matrices, phi(x) = xx'. What is expanded over points
    # is such a matrix, and its eigenvectors are points of input space [1, 3]:
    #     V = sum_i alpha_i phi(x_i),  S = sum_i alpha_i x_i x_i' = sum_j beta_j u_j u_j',
    #     V~ = sum_j beta_j phi(u_j),  rho = |V - V~|^2 = 0.
    with one_blas_thread():
        beta, columns = np.linalg.eigh((points.T * alpha) @ points)
    order = np.argsort(-np.abs(beta), kind="stable")
    beta, directions = beta[order], columns.T[order]
    size = np.abs(beta)
    smallest = smallest_eigenvalue(float(size[0]), float(size.sum()), len(beta), "float64")
    keep = significant(beta, smallest, by_modulus=True)
    return directions[keep], beta[keep]


def _selected(subspace: KernelSubspace, pool: Matrix, m: int, n_jobs: int | None) -> Matrix:
    """Return points of a pool, each taken where it explains most of what is left."""
    # Orthogonal matching pursuit for all targets at once: with F the partial Cholesky factor of the
    # points so far and G the inner products of candidates with what is left of the targets, a
    # candidate explains |G_j|^2 / (k_jj - |F_j|^2) of their squared lengths.
    kernel, targets = subspace.kernel, _targets(subspace)
    kernel_rows = kernel.against(subspace.points)
    left = map_row_blocks(lambda rows: kernel_rows(rows) @ targets, pool, n_jobs=n_jobs)
    lengths = subspace.n_components * subspace.variances.sum() + subspace.mean_norm
    factor = PartialCholesky(kernel, pool, m)
    smallest = 1e-10 * factor.residual
    while len(factor.pivots) < m:
        explained = np.einsum("ij,ij->i", left, left)
        usable = factor.residual > smallest
        explained[usable] /= factor.residual[usable]
        explained[~usable] = 0.0
        best = int(explained.argmax())
        if explained[best] <= np.finfo(np.float64).eps * lengths:
            break
        factor.extend(np.array([best]))
        column = factor.rows[len(factor.pivots) - 1]
        left -= np.outer(column, left[best] / column[best])
    selected: Matrix = pool[factor.pivots]
    return selected


def _moved(subspace: KernelSubspace, points: Matrix, max_iter: int) -> Matrix:
    """Return the points where L-BFGS leaves them: no worse than where they were."""
    kernel, targets = subspace.kernel, _targets(subspace)
    centre = points.mean(axis=0)
    spread = float(np.sqrt(((points - centre) ** 2).mean())) or 1.0
    jitter = JITTER * float(kernel.diagonal(points).mean())
    stored = [
        (subspace.points[s : s + POINTS_A_BLOCK], targets[s : s + POINTS_A_BLOCK])
        for s in range(0, len(subspace.points), POINTS_A_BLOCK)
    ]
    prepared = [(kernel.against(Z), kernel.weighted_gradient(Z), U) for Z, U in stored]

    def minus_explained(flat: Matrix) -> tuple[float, Matrix]:
        Y = centre + spread * flat.reshape(points.shape)
        inner = sum(values(Y) @ U for values, _, U in prepared)
        gram = kernel(Y)
        gram[np.diag_indices_from(gram)] += jitter
        C = cho_solve(cho_factor(gram, check_finite=False), inner, check_finite=False)
        slope = 2.0 * kernel.weighted_gradient(Y)(Y, C @ C.T)
        for _, gradient, U in prepared:
            slope -= 2.0 * gradient(Y, C @ U.T)
        return -float(np.vdot(inner, C)), spread * slope.ravel()

    found = minimize(
        minus_explained,
        ((points - centre) / spread).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "ftol": 1e-12, "gtol": 1e-9},
    )
    moved: Matrix = centre + spread * found.x.reshape(points.shape)
    return moved


def _projected(subspace: KernelSubspace, points: Matrix) -> ReducedSet:
    """Return the subspace of given points that lies nearest to another one."""
    basis = LandmarkBasis.from_eigen(subspace.kernel, points)
    gram = subspace.kernel(points, subspace.points)
    along = basis.transform.T @ (gram @ subspace.weights)
    mean = basis.transform.T @ (gram @ subspace.mean_weights)
    left, lengths, right = svd(along, full_matrices=False, check_finite=False)
    if len(lengths) < subspace.n_components or lengths.min(initial=1.0) < SMALLEST_SINE:
        raise ValueError(
            f"{len(points)} points span fewer directions than the {subspace.n_components} "
            "components: use more points."
        )
    frame = left @ right
    cosines = np.einsum("ij,ij->j", along, frame)
    reduced = replace(
        subspace,
        points=points,
        weights=basis.transform @ frame,
        offset=frame.T @ mean,
        mean_weights=basis.transform @ mean,
        mean_norm=float(mean @ mean),
    )
    return ReducedSet(
        reduced,
        np.sqrt(np.maximum(2.0 - 2.0 * cosines, 0.0)),
        float(np.sqrt(max(subspace.mean_norm - float(mean @ mean), 0.0))),
    )
