"""Which of three ways a fit takes: a stored matrix, one made anew, or landmarks."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.eigen import Solver, choose_solver
from kpca_apps.engine.exact import ExactPlan, plan_exact
from kpca_apps.engine.kernels import RBF, Kernel, Laplacian, MultiscaleRBF, Scaled, Sum
from kpca_apps.engine.landmarks import drawing_bytes
from kpca_apps.engine.memory import nystroem_fit_bytes, require, require_nystroem
from kpca_apps.engine.precision import Precision, Resolved, choose_precision
from kpca_apps.errors import MemoryLimitError

__all__ = [
    "LARGEST_EXACT",
    "LARGEST_ITERATED",
    "NystroemPlan",
    "choose_landmarks",
    "choose_regime",
]

Matrix = NDArray[np.float64]

LARGEST_EXACT = 5000
"""Rows up to which a fit of many components is exact, memory permitting: seconds on one core."""

LARGEST_ITERATED = 100_000
"""Rows up to which a fit of few components is exact: minutes on one core."""

FEW_COLUMNS = 5
"""Columns up to which rows serve better than centres of clusters.

Of 3,000 normal rows with 500 landmarks, so many leading eigenvalues are right to a thousandth with
centres and with rows drawn by what others miss: 20 and 100 in 2 columns, 34 and 255 in 3, 21 and 56
in 5, but 10 and 0 in 10.
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NystroemPlan:
    """How a fit through landmarks goes about it, and the memory it takes.

    Attributes
    ----------
    n : int
        Rows.
    n_landmarks : int
        At most.
    landmarks : str
        How they are drawn: one of `LANDMARKS`, or "given".
    precision : {"float32", "float64"}
        Of kernel values; sums are float64.
    n_bytes : int
        At the largest, beyond the rows.
    """

    n: int
    n_landmarks: int
    landmarks: str
    precision: Resolved
    n_bytes: int

    def describe(self) -> str:
        """Return the plan in one line.

        Examples
        --------
        >>> NystroemPlan(10**6, 500, "kmeans", "float32", 40_000_000).describe()
        'nystroem, n = 1000000, 500 landmarks (kmeans), kernel values in float32, 40 MB'
        """
        return (
            f"nystroem, n = {self.n}, {self.n_landmarks} landmarks ({self.landmarks}), kernel "
            f"values in {self.precision}, {self.n_bytes / 1e6:.0f} MB"
        )


def choose_landmarks(kernel: Kernel, n_features: int, landmarks: str = "auto") -> str:
    """Return the way of drawing landmarks that ``"auto"`` stands for.

    Where alike means near, centres of clusters, for a centre is like the rows about it; but rows
    drawn by what the others miss where columns are so few that landmarks span nearly all. Rows
    themselves for other kernels, for which a mean of rows may be like none of them.

    Examples
    --------
    >>> from kpca_apps.engine.kernels import Linear
    >>> choose_landmarks(RBF(1.0), 20), choose_landmarks(RBF(1.0), 2)
    ('kmeans', 'rpcholesky')
    >>> choose_landmarks(RBF(1.0) + Linear(), 20)
    'residual'
    """
    if landmarks != "auto":
        return landmarks
    if not _falls_with_distance(kernel):
        return "residual"
    return "rpcholesky" if n_features <= FEW_COLUMNS else "kmeans"


def _falls_with_distance(kernel: Kernel) -> bool:
    if isinstance(kernel, Sum):
        return all(_falls_with_distance(part) for part in kernel.kernels)
    if isinstance(kernel, Scaled):
        return _falls_with_distance(kernel.kernel)
    return isinstance(kernel, (RBF, MultiscaleRBF, Laplacian))


def choose_regime(
    kernel: Kernel,
    X: Matrix,
    *,
    method: str = "auto",
    n_components: int | None = None,
    n_landmarks: int = 1000,
    landmarks: str = "auto",
    center: bool = True,
    solver: Solver = "auto",
    precision: Precision = "auto",
    memory_budget: int | None = None,
) -> ExactPlan | NystroemPlan:
    """Choose how to fit, from the rows, the components and the budget; log the choice.

    Exact where the budget allows up to 5,000 rows, and up to 100,000 where the components are so
    few that an iteration finds them (the Gram matrix is stored if the budget holds it); through
    landmarks otherwise. Indefinite kernels have no landmarks.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray of shape (n, d)
    method : {"auto", "exact", "nystroem"}
    n_components, center, solver, precision, memory_budget
        As in `fit_exact`.
    n_landmarks : int
        Landmarks of a fit that has them.
    landmarks : str
        How they are drawn: one of `LANDMARKS`, "auto" or "given".

    Raises
    ------
    MemoryLimitError
        If no way, or the one asked for, stays within the budget.
    """
    n, d = X.shape
    q = n if n_components is None else min(n_components, n)
    few = n <= LARGEST_ITERATED and choose_solver(n, q, solver) == "krylov"
    if method == "exact" or (method == "auto" and (not kernel.is_psd or n <= LARGEST_EXACT or few)):
        try:
            return plan_exact(
                kernel,
                X,
                n_components=n_components,
                center=center,
                solver=solver,
                precision=precision,
                memory_budget=memory_budget,
            )
        except MemoryLimitError:
            if method == "exact" or not kernel.is_psd:
                raise
    m, way = min(n_landmarks, n), choose_landmarks(kernel, d, landmarks)
    require_nystroem(m, d, memory_budget)
    drawing = drawing_bytes(way, n, m, d)
    require(drawing, memory_budget, f"Drawing {m} landmarks ({way})", "use landmarks='uniform'")
    resolved = choose_precision(kernel, X, min(q, m), precision, center=center)
    plan = NystroemPlan(n, m, way, resolved, max(nystroem_fit_bytes(m, d), drawing))
    _log.info("%s", plan.describe())
    return plan
