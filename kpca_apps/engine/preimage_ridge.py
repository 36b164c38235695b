"""Learned pre-images: kernel ridge regression from projections back to the rows.

From the projections t_i of the stored points z_i,

    z(t) = sum_i k(t, t_i) a_i,    (K_t + alpha I) A = Z,    (K_t)_ij = k(t_i, t_j).

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

from kpca_apps.engine.blocks import map_row_blocks, one_blas_thread
from kpca_apps.engine.gram import gram_matrix
from kpca_apps.engine.image_kernels import OverRegions
from kpca_apps.engine.iterated import Iterated
from kpca_apps.engine.kernel_algebra import Kernel, OnColumns, Scaled, ScaledInputs, Sum
from kpca_apps.engine.mapped_inputs import LinearlyMapped
from kpca_apps.engine.subspace import KernelSubspace

__all__ = ["LearnedPreImage", "learn_preimage"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LearnedPreImage:
    """The map t -> sum_i k(t, t_i) a_i from projections to rows.

    Parameters
    ----------
    kernel : Kernel
        Between projections.
    projections : ndarray of shape (p, q)
        t_i, of the stored points.
    coefficients : ndarray of shape (p, d)
        a_i.
    """

    kernel: Kernel
    projections: Matrix
    coefficients: Matrix

    def __call__(self, T: Matrix, *, n_jobs: int | None = None) -> Matrix:
        """Return the pre-images of projections ``T``, shape ``(n, d)``."""
        kernel_rows, coefficients = self.kernel.against(self.projections), self.coefficients
        return map_row_blocks(lambda rows: kernel_rows(rows) @ coefficients, T, n_jobs=n_jobs)


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
        With the kernel of the subspace itself, as scikit-learn's ``inverse_transform`` has it.

    Raises
    ------
    ValueError
        If the kernel reads certain columns of a row, which projections do not have; if the
        regression has no solution at this ``alpha``.

    Examples
    --------
    >>> from kpca_apps.engine.exact import fit_exact
    >>> from kpca_apps.engine.kernels import Linear
    >>> X = np.array([[-1.0, -1.0], [1.0, 1.0], [-3.0, -3.0], [3.0, 3.0]])
    >>> subspace = fit_exact(Linear(), X, rng=np.random.default_rng(0))
    >>> learn_preimage(subspace, 1e-9)(subspace.project(X[:1])).round(6)
    array([[-1., -1.]])
    """
    if _reads_columns(subspace.kernel):
        raise ValueError(
            f"The kernel {subspace.kernel.describe()} reads the columns of a row, and projections "
            "have none: use preimage='gradient'."
        )
    projections = subspace.project(subspace.points, n_jobs=n_jobs)
    gram = gram_matrix(subspace.kernel, projections, n_jobs=n_jobs)
    gram[np.diag_indices_from(gram)] += alpha
    assume = "pos" if subspace.kernel.is_psd else "sym"
    with one_blas_thread():
        try:
            # The transpose of a symmetric matrix is itself, and in the order LAPACK overwrites.
            coefficients = solve(gram.T, subspace.points, assume_a=assume, overwrite_a=True)
        except LinAlgError as error:
            raise ValueError(
                f"The regression has no solution at alpha = {alpha:g}: use a larger alpha."
            ) from error
    return LearnedPreImage(subspace.kernel, projections, coefficients)


def _reads_columns(kernel: Kernel) -> bool:
    if isinstance(kernel, Sum):
        return any(_reads_columns(part) for part in kernel.kernels)
    if isinstance(kernel, Scaled):
        return _reads_columns(kernel.kernel)
    return isinstance(kernel, (OnColumns, ScaledInputs, LinearlyMapped, OverRegions, Iterated))
