"""Learned pre-images: kernel ridge regression from projections back to rows.

Let t_i be the projections of the stored points z_i. Then

    z(t) = c + sum_i k(t, t_i) a_i,    (K_t + alpha I) A = Z - 1c',    (K_t)_ij = k(t_i, t_j).

References
----------
.. [1] Bakir, Weston and Scholkopf (2004), Learning to find pre-images, NIPS 16.
.. [2] Scholkopf, Smola and Muller (1996), MPI technical report 44, section 4.6: "a suitable
   regression method".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, solve

from kpca_apps.engine.kernels import RBF, Kernel
from kpca_apps.engine.kernels.by_name import median_distance
from kpca_apps.engine.linalg.gram import about_origin, gram_matrix
from kpca_apps.engine.rows import map_row_blocks
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread


@dataclass(frozen=True, eq=False)
class LearnedPreImage:
    """The map t -> c + sum_i k(t, t_i) a_i from projections to rows."""

    kernel: Kernel  # kernel between projections
    projections: Matrix  # t_i of the stored points (p, q)
    coefficients: Matrix  # a_i (p, d)
    # c (d,), zeros or the mean of the stored points.
    origin: Matrix

    def __call__(self, T: Matrix, *, n_jobs: int | None = None) -> Matrix:
        """Return the pre-images of projections ``T``, shape ``(n, d)``."""
        kernel_rows, coefficients = self.kernel.against(self.projections), self.coefficients
        return map_row_blocks(
            lambda rows: kernel_rows(rows) @ coefficients + self.origin, T, n_jobs=n_jobs
        )


def learn_preimage(
    subspace: KernelSubspace, alpha: float = 1.0, *, n_jobs: int | None = None
) -> LearnedPreImage:
    """Fit the regression from projections to points with ridge ``alpha``."""
    # Use the model's kernel, like scikit-learn, if it accepts vectors with any number of entries,
    # here projections; otherwise use an RBF kernel.
    projections = subspace.project(subspace.points, n_jobs=n_jobs)
    points, kernel = subspace.points, about_origin(subspace.kernel)
    origin = np.zeros(points.shape[1])
    if not kernel.takes_any_vector:
        kernel = RBF(1.0 / median_distance(projections, np.random.default_rng(0)))
        origin = points.mean(axis=0)
    gram = gram_matrix(kernel, projections, n_jobs=n_jobs)
    gram[np.diag_indices_from(gram)] += alpha
    assume = "pos" if kernel.is_psd else "sym"
    with one_blas_thread():
        try:
            # The transpose equals the matrix and has the memory order that LAPACK overwrites.
            coefficients = solve(gram.T, points - origin, assume_a=assume, overwrite_a=True)
        except LinAlgError as error:
            raise ValueError(
                f"The regression has no solution at alpha = {alpha:g}: use a larger alpha."
            ) from error
    return LearnedPreImage(kernel, projections, coefficients, origin)
