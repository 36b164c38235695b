"""Exact kernel PCA: rows to the one fitted form, through a Gram matrix stored or made anew.

With phi~ the images less their mean, C = 1/n sum_i phi~(x_i) phi~(x_i)' their covariance and K~
their Gram matrix (`kpca_apps.engine.gram`), the components are V = sum_i alpha_i phi~(x_i) with

    C V = lambda V,  that is  K~ alpha = n lambda alpha,  and  n lambda alpha'alpha = 1,

the last so that |V| = 1. lambda is the variance along V, n lambda the eigenvalue of K~.

Notes
-----
What differs from this in the papers, each otherwise clear:

- One name for the eigenvalues of C and of K: [1] in eq. 12 and 16, [3] in eq. 3.10-3.11; [4] calls
  lambda an eigenvalue of K, and asks 1 = a'a where 1 = a'Ka is meant. [5] scales no alpha.
- [2] divides eigenvectors by the root of the eigenvalue of K/n (eq. 17-19 and its pseudo-code):
  |V|^2 is n, and projections are sqrt(n) times ours; so they are in R's kernlab.
- [2] has the covariance for K (eq. 16): K is the Gram matrix, which shares the nonzero eigenvalues
  of n C. In its eq. 13 alpha is in R^n, not R^p, and V lies in the span of the images rather than
  being it. The vector of [1], eq. 14, is in R^M, not F.
- The pseudo-code compute_principal_components_fs of [2] and the algorithm of [3] leave the
  centring of K out; it comes first.
- [5] takes K for always invertible. K~ never is, K~ 1 = 0, and K is singular for repeated rows or
  few monomials; K alpha = n lambda alpha follows all the same, as what K maps to 0 adds nothing
  to V.
- Components are sorted by decreasing variance; [1], 4.2, and [2], IV, write ascending. That the
  first hold most mutual information with the inputs is so for Gaussian images.
- [4] knows no ranking of kernel components: lambda ranks them exactly, and all sum to the total
  variance in feature space; it only does not compare between kernels.
- [4] wants N dimensions to part N points and finds no covariance there: N - 1 are enough, and C
  exists, if large.

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, eq. 5-17 and 46-50.
.. [2] Aguilera and Antonanzas (2019), On kernel principal component analysis, eq. 11-19 and VI.
.. [3] Course notes on kernel PCA (in Spanish), eq. 3.5-3.12.
.. [4] World Heritage Encyclopedia, Kernel PCA.
.. [5] Course notes on kernel PCA (in English), section 2.2, eq. 8-12.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.blocks import one_blas_thread
from kpca_apps.engine.eigen import (
    Solver,
    block_krylov,
    block_width,
    choose_solver,
    lapack_pairs,
    lapack_vectors,
    significant,
)
from kpca_apps.engine.gram import about_mean, gram_matrix
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.memory import (
    krylov_fit_bytes,
    lapack_fit_bytes,
    require,
    resolved_budget,
    size_text,
)
from kpca_apps.engine.panels import GramPanels, centred
from kpca_apps.engine.precision import (
    Precision,
    Resolved,
    choose_precision,
    smallest_eigenvalue,
)
from kpca_apps.engine.subspace import KernelSubspace, component_signs
from kpca_apps.errors import MemoryLimitError

__all__ = ["ExactPlan", "fit_exact", "plan_exact"]

Matrix = NDArray[np.float64]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExactPlan:
    """How an exact fit goes about it, and the memory it takes.

    Attributes
    ----------
    n, q : int
        Rows, and components at most.
    solver : {"lapack", "krylov"}
    precision : {"float32", "float64"}
        Of kernel values and products.
    stored : bool
        Whether the Gram matrix is kept, or its values made anew for every product.
    n_bytes : int
        At the largest, beyond the rows.
    """

    n: int
    q: int
    solver: Solver
    precision: Resolved
    stored: bool
    n_bytes: int

    def describe(self) -> str:
        """Return the plan in one line.

        Examples
        --------
        >>> ExactPlan(9000, 50, "krylov", "float32", True, 200_000_000).describe()
        'exact, n = 9000, q = 50: krylov in float32, Gram matrix stored, 200 MB'
        """
        kept = "stored" if self.stored else "made anew for every product"
        return (
            f"exact, n = {self.n}, q = {self.q}: {self.solver} in {self.precision}, "
            f"Gram matrix {kept}, {self.n_bytes / 1e6:.0f} MB"
        )


def plan_exact(
    kernel: Kernel,
    X: Matrix,
    *,
    n_components: int | None = None,
    center: bool = True,
    solver: Solver = "auto",
    precision: Precision = "float64",
    memory_budget: int | None = None,
) -> ExactPlan:
    """Choose solver, precision and storage of an exact fit before anything is allocated.

    The Gram matrix is stored where the budget allows, else made anew for every product of the
    Krylov iteration. Parameters are those of `fit_exact`.

    Raises
    ------
    MemoryLimitError
        If no way of fitting stays within the budget.
    """
    n, d = X.shape
    q = n if n_components is None else min(n_components, n)
    resolved = choose_precision(kernel, X, q, precision, center=center)
    budget = resolved_budget(memory_budget)
    ways = list(_ways(n, d, q, solver, resolved, indefinite=not kernel.is_psd))
    for way in ways:
        if way.n_bytes <= budget:
            _log.info("%s", way.describe())
            return way
    least = min(way.n_bytes for way in ways)
    require(least, memory_budget, f"An exact fit of n = {n} rows", "use method='nystroem'")
    return ways[-1]


def _ways(
    n: int, d: int, q: int, solver: Solver, precision: Resolved, *, indefinite: bool
) -> list[ExactPlan]:
    """Return the ways to fit, the quickest first."""
    vectors = lapack_vectors(n, q, by_modulus=indefinite)
    lapack = ExactPlan(n, q, "lapack", precision, True, lapack_fit_bytes(n, vectors, precision))
    krylov = [
        ExactPlan(n, q, "krylov", precision, kept, krylov_fit_bytes(n, d, q, precision, kept))
        for kept in (True, False)
    ]
    if choose_solver(n, q, solver) == "krylov":
        return krylov
    # An iteration for many components of many rows takes less memory than LAPACK, and its time.
    return [lapack, *krylov] if solver == "auto" and 2 * q < n else [lapack]


def fit_exact(
    kernel: Kernel,
    X: Matrix,
    *,
    rng: np.random.Generator,
    n_components: int | None = None,
    center: bool = True,
    ridge: float | None = None,
    solver: Solver = "auto",
    precision: Precision = "float64",
    memory_budget: int | None = None,
    n_jobs: int | None = None,
    plan: ExactPlan | None = None,
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
        whose eigenvalue exceeds rounding (`smallest_eigenvalue`) if None. 0 keeps the mean
        alone: Hoffmann's potential.
    center : bool
        Measure from the mean of the rows in feature space; otherwise from its origin.
    ridge : float > 0, optional
        rho, an absolute variance: a soft cut with gain variance / (variance + rho).
    solver : {"auto", "lapack", "krylov"}
    precision : {"auto", "float32", "float64"}
        Of kernel values and their products. Float32 leaves out eigenvalues below 1e-3 of the
        largest: it does not have three digits of them.
    memory_budget : int, optional
        Bytes; a quarter of the available memory if None.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    plan : ExactPlan, optional
        What `plan_exact` made of the same arguments.

    Returns
    -------
    KernelSubspace
        With the rows themselves as points. For an indefinite kernel components are normalised
        by 1 / sqrt(|eigenvalue|). Its kernel takes the column means away where inner products
        would lose digits (`about_mean`).

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
    plan = plan or plan_exact(
        kernel,
        X,
        n_components=n_components,
        center=center,
        solver=solver,
        precision=precision,
        memory_budget=memory_budget,
    )
    n = len(X)
    kernel = about_mean(kernel, X) if center else kernel
    with one_blas_thread():
        solve = _by_lapack if plan.solver == "lapack" else _by_krylov
        means, values, weights = solve(kernel, X, plan, rng, center, memory_budget, n_jobs)
        weights *= component_signs(weights) / np.sqrt(np.abs(values))
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


def _by_lapack(
    kernel: Kernel,
    X: Matrix,
    plan: ExactPlan,
    rng: np.random.Generator,
    center: bool,
    memory_budget: int | None,
    n_jobs: int | None,
) -> tuple[Matrix, Matrix, Matrix]:
    """Return row means of K, eigenvalues and eigenvectors of the centred matrix."""
    gram = gram_matrix(kernel, X, plan.precision, n_jobs=n_jobs)
    means = gram.mean(axis=0, dtype=np.float64) if center else np.zeros(len(X))
    if plan.q == 0:
        return means, np.empty(0), np.empty((len(X), 0))
    values, vectors = lapack_pairs(gram, plan.q, center=center, by_modulus=not kernel.is_psd)
    return means, *_kept(values, vectors, _trace(kernel, X), kernel, plan)


def _by_krylov(
    kernel: Kernel,
    X: Matrix,
    plan: ExactPlan,
    rng: np.random.Generator,
    center: bool,
    memory_budget: int | None,
    n_jobs: int | None,
) -> tuple[Matrix, Matrix, Matrix]:
    gram = GramPanels(kernel, X, plan.precision, stored=plan.stored, n_jobs=n_jobs)
    means = np.zeros(len(X))
    if plan.q == 0:
        means = gram.row_sums / len(X) if center else means
        return means, np.empty(0), np.empty((len(X), 0))
    start = gram.sketch(rng.standard_normal((len(X), block_width(plan.q))))
    pairs = block_krylov(
        centred(gram) if center else gram.product,
        len(X),
        plan.q,
        rng,
        by_modulus=not kernel.is_psd,
        dtype=plan.precision,
        start=start - start.mean(axis=0) if center else start,
        trace=_trace(kernel, X),
    )
    if pairs is None:
        del gram
        _log.info("The Krylov iteration did not settle; LAPACK takes over.")
        lapack = _after_krylov(plan, memory_budget, indefinite=not kernel.is_psd)
        return _by_lapack(kernel, X, lapack, rng, center, memory_budget, n_jobs)
    if center:
        means = gram.row_sums / len(X)
    return means, *_kept(*pairs, _trace(kernel, X), kernel, plan)


def _after_krylov(plan: ExactPlan, memory_budget: int | None, *, indefinite: bool) -> ExactPlan:
    """Return the plan for rows whose leading eigenvalues lie too close together to iterate."""
    vectors = lapack_vectors(plan.n, plan.q, by_modulus=indefinite)
    needed = lapack_fit_bytes(plan.n, vectors, plan.precision)
    if needed > resolved_budget(memory_budget):
        raise MemoryLimitError(
            f"The {plan.q} leading eigenvalues of n = {plan.n} rows lie too close together to "
            f"iterate, and LAPACK needs {size_text(needed)}: use method='nystroem', ask for "
            "fewer components, or raise memory_budget."
        )
    return ExactPlan(plan.n, plan.q, "lapack", plan.precision, True, needed)


def _trace(kernel: Kernel, X: Matrix) -> float:
    """Return the trace of the Gram matrix before it is centred, of moduli if it is indefinite."""
    return float(np.abs(kernel.diagonal(X)).sum())


def _kept(
    values: Matrix, vectors: Matrix, trace: float, kernel: Kernel, plan: ExactPlan
) -> tuple[Matrix, Matrix]:
    """Leave out eigenpairs that are rounding, or lose too many digits to it."""
    smallest = smallest_eigenvalue(abs(float(values[0])), trace, plan.n, plan.precision)
    keep = significant(values, smallest, by_modulus=not kernel.is_psd)
    return (values, vectors) if keep.all() else (values[keep], vectors[:, keep])
