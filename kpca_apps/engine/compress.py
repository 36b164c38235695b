"""Reduced sets: approximate a fitted subspace with fewer points, to score rows faster.

Each component V = sum_i alpha_i phi(x_i) over n points is approximated by
V~ = sum_j beta_j phi(z_j) over m < n points so that

    rho = |V - V~|^2 = |V|^2 + |V~|^2 - 2 sum_ij alpha_i beta_j k(x_i, z_j)

is small. Points are selected greedily from the stored points, so that they explain most of
components and mean, and are then moved together by L-BFGS. For fixed points, the best coefficients
are a projection in feature space, in closed form. For the kernel (x.y)^2 the approximation can be
exact: components and mean are symmetric matrices, and their eigenvectors serve as points.

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

CANDIDATES = 10_000  # number of stored points to select from
POINTS_A_BLOCK = 4096  # number of stored points computed at once
JITTER = 1e-10  # share of the mean diagonal added to the Gram matrix for stability
SMALLEST_SINE = 1e-6  # smaller singular values count as zero


@dataclass(frozen=True, eq=False)
class ReducedSet:
    """A subspace with few points, and its distance from the original subspace."""

    # The approximation changes a row's projection by at most component_distances times the row's
    # distance from the mean in feature space, plus mean_distance.

    subspace: KernelSubspace  # its directions are orthonormal
    component_distances: Matrix  # (q,), distance of each new component from the original component
    mean_distance: float

    def describe(self) -> str:
        """Return the number of points and the distances in one line."""
        worst = self.component_distances.max(initial=0.0)
        mean = self.component_distances.mean() if self.component_distances.size else 0.0
        return (
            f"{len(self.subspace.points)} points, components off by {mean:.2g} in the mean and "
            f"{worst:.2g} at worst, the mean by {self.mean_distance:.2g}"
        )


def reduced_set(
    subspace: KernelSubspace, n_points: int, *, max_iter: int = 100, n_jobs: int | None = None
) -> ReducedSet:
    """Approximate a subspace by a subspace of at most ``n_points`` points.

    L-BFGS moves the points for at most ``max_iter`` steps if the kernel's gradient is known. Raises
    ValueError if the kernel is indefinite, ``n_points`` is out of range, or the points span fewer
    directions than there are components.
    """
    # The points Y minimise s^2 sum_a |v_a - P v_a|^2 + |mu - P mu|^2, with v_a the components, s^2
    # the sum of their variances, mu the mean, and P the projection on the span of Y, all in feature
    # space. The new components are the orthonormal vectors in that span nearest to v_a (polar
    # factor).
    q, n = subspace.n_components, len(subspace.points)
    subspace.kernel.require_psd("A smaller set of points")
    if not max(q, 1) <= n_points <= n:
        raise ValueError(
            f"n_points must be at least the number of components and at most the number of "
            f"points, here from {max(q, 1)} to {n}; got {n_points}."
        )
    with one_blas_thread():
        eigenvectors = _exact_points(subspace)
        if eigenvectors is not None and len(eigenvectors) <= n_points:
            return _project_on_points(
                subspace, _select_points(subspace, eigenvectors, n_points, n_jobs)
            )
        stored = subspace.points
        some = np.unique(np.linspace(0, len(stored) - 1, max(CANDIDATES, n_points)).astype(np.intp))
        points = _select_points(subspace, stored[some], n_points, n_jobs)
        if max_iter > 0 and subspace.kernel.is_differentiable:
            points = _move_points(subspace, points, max_iter)
        return _project_on_points(subspace, points)


def _targets(subspace: KernelSubspace) -> Matrix:
    """Return coefficients of the scaled components, then of the mean."""
    spread = np.sqrt(subspace.variances.sum())
    return np.column_stack([spread * subspace.weights, subspace.mean_weights])


def _exact_points(subspace: KernelSubspace) -> Matrix | None:
    """Return points that represent the subspace exactly if the kernel is (x.y)^2, else None."""
    kernel = subspace.kernel
    if not (isinstance(kernel, Polynomial) and kernel.degree == 2 and kernel.coef0 == 0.0):
        return None
    expansions = (square_expansion(subspace.points, alpha) for alpha in _targets(subspace).T)
    return np.vstack([directions for directions, _ in expansions])


def square_expansion(points: Matrix, alpha: Matrix) -> tuple[Matrix, Matrix]:
    """Return u_j, beta_j with sum_j beta_j (u_j.y)^2 = sum_i alpha_i (x_i.y)^2 for every y.

    The u_j ``(m, d)`` are orthonormal, m <= d, ordered by decreasing |beta_j|.
    """
    # (x.y)^2 is the inner product of the symmetric matrices phi(x) = xx'. So an expansion over
    # points is a symmetric matrix, and its eigenvectors are points of input space [1, 3]:
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


def _select_points(subspace: KernelSubspace, pool: Matrix, m: int, n_jobs: int | None) -> Matrix:
    """Select up to m points greedily from the pool."""
    # Orthogonal matching pursuit for all targets at once. F is the partial Cholesky factor of the
    # selected points, and G the candidates' inner products with the targets' residuals. Then
    # candidate j explains |G_j|^2 / (k_jj - |F_j|^2) of the targets' squared length.
    kernel, targets = subspace.kernel, _targets(subspace)
    kernel_rows = kernel.against(subspace.points)
    residual = map_row_blocks(lambda rows: kernel_rows(rows) @ targets, pool, n_jobs=n_jobs)
    lengths = subspace.n_components * subspace.variances.sum() + subspace.mean_norm
    factor = PartialCholesky(kernel, pool, m)
    smallest = 1e-10 * factor.residual
    while len(factor.pivots) < m:
        explained = np.einsum("ij,ij->i", residual, residual)
        usable = factor.residual > smallest
        explained[usable] /= factor.residual[usable]
        explained[~usable] = 0.0
        best = int(explained.argmax())
        if explained[best] <= np.finfo(np.float64).eps * lengths:
            break
        factor.extend(np.array([best]))
        column = factor.rows[len(factor.pivots) - 1]
        residual -= np.outer(column, residual[best] / column[best])
    return np.asarray(pool[factor.pivots])


def _move_points(subspace: KernelSubspace, points: Matrix, max_iter: int) -> Matrix:
    """Move points by L-BFGS to explain more of the components and the mean."""
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

    result = minimize(
        minus_explained,
        ((points - centre) / spread).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "ftol": 1e-12, "gtol": 1e-9},
    )
    return np.asarray(centre + spread * result.x.reshape(points.shape))


def _project_on_points(subspace: KernelSubspace, points: Matrix) -> ReducedSet:
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
