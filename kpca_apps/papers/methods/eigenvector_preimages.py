"""Where the components lie among the rows: pre-images of eigenvectors, by learned regression.

A regression z(t) from projections back to rows (`learn_preimage`) can be asked for points whose
projection is a canonical basis vector: z(s e_a) is an approximate pre-image of mean + s V_a, the
point at the place s on the axis of component a. Two places on one axis, seen side by side, show
what the component stands for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.preimage.ridge import LearnedPreImage
from kpca_apps.engine.subspace import KernelSubspace

__all__ = ["eigenvector_preimages"]

Matrix = NDArray[np.float64]


def eigenvector_preimages(
    subspace: KernelSubspace, learned: LearnedPreImage, deviations: float | None = None
) -> Matrix:
    """Return a point of input space for each component.

    Parameters
    ----------
    subspace : KernelSubspace
        With a positive semi-definite kernel.
    learned : LearnedPreImage
        Learned from that subspace.
    deviations : float, optional
        Distance along the axis, in standard deviations of the projections; may be negative. If
        None, the unit vectors of feature space themselves, as the report has it: with kernels
        such as `RBF` these lie far from all rows, and two deviations say more.

    Returns
    -------
    ndarray of shape (q, d)
        Row a belongs to the point at that place on the axis of component a through the mean.

    References
    ----------
    .. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
       problem, MPI technical report 44, section 4.6.

    Examples
    --------
    >>> from kpca_apps.engine.exact import fit_exact
    >>> from kpca_apps.engine.kernels import Linear
    >>> from kpca_apps.engine.preimage.ridge import learn_preimage
    >>> X = np.array([[3.0, 4.0], [-3.0, -4.0]])
    >>> subspace = fit_exact(Linear(), X, rng=np.random.default_rng(0))
    >>> eigenvector_preimages(subspace, learn_preimage(subspace, 1e-9)).round(3)
    array([[0.6, 0.8]])
    """
    lengths = np.ones(subspace.n_components)
    if deviations is not None:
        lengths = deviations * np.sqrt(subspace.variances)
    return learned(np.diag(lengths))
