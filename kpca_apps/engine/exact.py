"""Exact kernel PCA: rows to the one fitted form, through the stored Gram matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.eigen import Solver, choose_solver, krylov_basis_limit, leading_eigenpairs
from kpca_apps.engine.gram import gram_matrix
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.memory import exact_fit_bytes, require
from kpca_apps.engine.subspace import KernelSubspace, component_signs

__all__ = ["bytes_needed", "fit_exact"]

Matrix = NDArray[np.float64]


def bytes_needed(
    n: int, n_components: int | None, *, solver: Solver = "auto", indefinite: bool = False
) -> int:
    """Return the bytes `fit_exact` takes at its largest, beyond the rows."""
    q = n if n_components is None else min(n_components, n)
    if choose_solver(n, q, solver) == "krylov":
        # The basis, and the leading vectors read off it.
        return exact_fit_bytes(n, (krylov_basis_limit(n) + 3 * q) // 2)
    return exact_fit_bytes(n, n if indefinite else q)


def fit_exact(
    kernel: Kernel,
    X: Matrix,
    *,
    rng: np.random.Generator,
    n_components: int | None = None,
    center: bool = True,
    ridge: float | None = None,
    solver: Solver = "auto",
    memory_budget: int | None = None,
    n_jobs: int | None = None,
) -> KernelSubspace:
    """Fit kernel PCA on the Gram matrix of all rows.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray of shape (n, d), float64, finite
    rng : numpy.random.Generator
        Where the Krylov solver starts.
    n_components : int, optional
        Components kept, by decreasing variance (modulus of it for an indefinite kernel); all
        whose eigenvalue exceeds n eps times the largest if None. 0 keeps the mean alone:
        Hoffmann's potential.
    center : bool
        Measure from the mean of the rows in feature space; otherwise from its origin.
    ridge : float > 0, optional
        rho, an absolute variance: a soft cut with gain variance / (variance + rho).
    solver : {"auto", "lapack", "krylov"}
    memory_budget : int, optional
        Bytes; a quarter of the available memory if None.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    KernelSubspace
        With the rows themselves as points. For an indefinite kernel components are normalised
        by 1 / sqrt(|eigenvalue|).

    Raises
    ------
    MemoryLimitError
        Before anything is allocated, if the estimate exceeds the budget.

    Examples
    --------
    >>> from kpca_apps.engine.kernels import Linear
    >>> X = np.array([[-1.0, 0.0], [1.0, 0.0], [-3.0, 0.0], [3.0, 0.0]])
    >>> fit_exact(Linear(), X, rng=np.random.default_rng(0)).variances
    array([5.])
    """
    n = len(X)
    q = n if n_components is None else min(n_components, n)
    needed = bytes_needed(n, q, solver=solver, indefinite=not kernel.is_psd)
    require(needed, memory_budget, f"An exact fit of n = {n} rows", "use method='nystroem'")
    gram = gram_matrix(kernel, X, n_jobs=n_jobs)
    means = gram.mean(axis=0) if center else np.zeros(n)
    values, vectors = leading_eigenpairs(
        gram, q, rng, center=center, by_modulus=not kernel.is_psd, solver=solver
    )
    weights = vectors * (component_signs(vectors) / np.sqrt(np.abs(values)))
    if center:
        weights -= weights.mean(axis=0)
    subspace = KernelSubspace(
        kernel=kernel,
        points=X,
        weights=weights,
        offset=means @ weights,
        mean_weights=np.full(n, 1.0 / n if center else 0.0),
        mean_norm=float(means.mean()),
        variances=values / n,
        n=n,
        gain=np.ones(len(values)),
    )
    return subspace if ridge is None else subspace.with_soft_cut(ridge)
