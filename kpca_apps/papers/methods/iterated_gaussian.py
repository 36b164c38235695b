"""The Gaussian kernel iterated over all of space: a Gaussian again, sqrt(2) times as wide.

    int exp(-g |x - z|^2) exp(-g |z - y|^2) dz = (pi / (2 g))^(d/2) exp(-g/2 |x - y|^2).

Prefer ``RBF`` with half the gamma: components do not change with the factor, and projections by its
root alone. Over the rows' own distribution in place of all of space the iterated kernel is no
longer Gaussian: that one is `Iterated`, in the engine.

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, eq. 73.
"""

from __future__ import annotations

import math
from contextlib import suppress

from kpca_apps.engine.kernels import RBF, Scaled
from kpca_apps.engine.kernels.base import as_number

__all__ = ["iterated_gaussian"]


def iterated_gaussian(gamma: float, n_features: int) -> Scaled:
    """Return the iterated kernel of exp(-gamma |x - y|^2) over R^d, d = ``n_features``.

    Raises
    ------
    ValueError
        If gamma is not a number > 0, or the factor before the kernel overflows.

    Examples
    --------
    >>> iterated_gaussian(0.5, 2).describe()
    '3.14159 (exp(-0.25 |x - y|^2))'
    """
    gamma = as_number("gamma", gamma, above=0.0)
    factor = math.inf
    with suppress(OverflowError):
        factor = (math.pi / (2.0 * gamma)) ** (0.5 * n_features)
    return Scaled(factor, RBF(0.5 * gamma))
