"""Learned pre-images: kernel ridge regression from projections back to the rows.

From the projections t_i of the stored points z_i,

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
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve

from kpca_apps.engine.bandwidth import median_squared_distance
from kpca_apps.engine.blocks import map_row_blocks, one_blas_thread
from kpca_apps.engine.gram import about_origin, gram_matrix
from kpca_apps.engine.kernels import (
    RBF,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    MultiscaleRBF,
    Polynomial,
    Scaled,
    Sigmoid,
    Sum,
)
from kpca_apps.engine.subspace import KernelSubspace

__all__ = ["LearnedPreImage", "learn_preimage"]

Matrix = NDArray[np.float64]

VECTOR_KERNELS = {RBF, MultiscaleRBF, Laplacian, Polynomial, Linear, Cosine, Sigmoid}
"""Kernels that compare vectors of any length, and are what they are on all of them."""


@dataclass(frozen=True, eq=False)
class LearnedPreImage:
    """The map t -> c + sum_i k(t, t_i) a_i from projections to rows.

    Parameters
    ----------
    kernel : Kernel
        Between projections: see `learn_preimage`.
    projections : ndarray of shape (p, q)
        t_i, of the stored points.
    coefficients : ndarray of shape (p, d)
        a_i.
    origin : ndarray of shape (d,)
        c, where projections come to lie that are like none: 0 as scikit-learn has it, the mean of
        the stored points for an RBF kernel that takes the place of another.
    """

    kernel: Kernel
    projections: Matrix
    coefficients: Matrix
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
    """Learn to go back from projections to the stored points they came from.

    Parameters
    ----------
    subspace : KernelSubspace
        Its points are what is learned from: all rows of an exact fit, the landmarks of a Nystrom
        fit.
    alpha : float >= 0
        The ridge.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    LearnedPreImage
        With the kernel of the subspace itself where that is a kernel of the field, as
        scikit-learn's ``inverse_transform`` has it. Others may read certain columns of a row, or
        be positive semi-definite on rows alone: between projections an RBF kernel takes their
        place, as wide as the projections lie apart.

    Raises
    ------
    ValueError
        If the regression has no solution at this ``alpha``.

    Examples
    --------
    >>> from kpca_apps.engine.exact import fit_exact
    >>> from kpca_apps.engine.kernels import Linear
    >>> X = np.array([[-1.0, -1.0], [1.0, 1.0], [-3.0, -3.0], [3.0, 3.0]])
    >>> subspace = fit_exact(Linear(), X, rng=np.random.default_rng(0))
    >>> learn_preimage(subspace, 1e-9)(subspace.project(X[:1])).round(6)
    array([[-1., -1.]])
    """
    projections = subspace.project(subspace.points, n_jobs=n_jobs)
    points, kernel = subspace.points, about_origin(subspace.kernel)
    origin = np.zeros(points.shape[1])
    if not _takes_any_vector(kernel):
        kernel = RBF(1.0 / median_squared_distance(projections, np.random.default_rng(0)))
        origin = points.mean(axis=0)
    gram = gram_matrix(kernel, projections, n_jobs=n_jobs)
    gram[np.diag_indices_from(gram)] += alpha
    assume = "pos" if kernel.is_psd else "sym"
    with one_blas_thread():
        try:
            # The transpose of a symmetric matrix is itself, and in the order LAPACK overwrites.
            coefficients = solve(gram.T, points - origin, assume_a=assume, overwrite_a=True)
        except LinAlgError as error:
            raise ValueError(
                f"The regression has no solution at alpha = {alpha:g}: use a larger alpha."
            ) from error
    return LearnedPreImage(kernel, projections, coefficients, origin)


def _takes_any_vector(kernel: Kernel) -> bool:
    if isinstance(kernel, Sum):
        return all(_takes_any_vector(part) for part in kernel.kernels)
    if isinstance(kernel, Scaled):
        return _takes_any_vector(kernel.kernel)
    return type(kernel) in VECTOR_KERNELS
