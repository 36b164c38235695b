"""Exact kernel PCA: rows to the one fitted form, through a Gram matrix stored or recomputed.

With phi~ the images less their mean, C = 1/n sum_i phi~(x_i) phi~(x_i)' their covariance and K~
their Gram matrix (see `centre_in_place`), the components are V = sum_i alpha_i phi~(x_i) with

    C V = lambda V,  that is  K~ alpha = n lambda alpha,  and  n lambda alpha'alpha = 1,

the last so that |V| = 1. lambda is the variance along V, n lambda the eigenvalue of K~.
"""

# What differs from this in the papers, each otherwise clear:
#
# - One name for the eigenvalues of C and of K: [1] in eq. 12 and 16, [3] in eq. 3.10-3.11; [4]
# calls lambda an eigenvalue of K, and asks 1 = a'a where 1 = a'Ka is meant. [5] scales no alpha.
# - [2] divides eigenvectors by the root of the eigenvalue of K/n (eq. 17-19 and its pseudo-code):
#   |V|^2 is n, and projections are sqrt(n) times ours; so they are in R's kernlab.
# - [2] has the covariance for K (eq. 16): K is the Gram matrix, which shares the nonzero
# eigenvalues of n C. In its eq. 13 alpha is in R^n, not R^p, and V lies in the span of the images
# rather than being it. The vector of [1], eq. 14, is in R^M, not F.
# - The pseudo-code compute_principal_components_fs of [2] and the algorithm of [3] leave the
#   centring of K out; it comes first.
# - [5] takes K for always invertible. K~ never is, K~ 1 = 0, and K is singular for repeated rows or
#   few monomials; K alpha = n lambda alpha follows all the same, as what K maps to 0 adds nothing
#   to V.
# - Components are sorted by decreasing variance; [1], 4.2, and [2], IV, write ascending. That the
#   first hold most mutual information with the inputs is so for Gaussian images.
# - [4] knows no ranking of kernel components: lambda ranks them exactly, and all sum to the total
#   variance in feature space; it only does not compare between kernels.
# - [4] wants N dimensions to part N points and finds no covariance there: N - 1 are enough, and C
#   exists, if large.
#
# [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
#     problem, MPI technical report 44, eq. 5-17 and 46-50.
# [2] Aguilera and Antonanzas (2019), On kernel principal component analysis, eq. 11-19 and VI.
# [3] Course notes on kernel PCA (in Spanish), eq. 3.5-3.12.
# [4] World Heritage Encyclopedia, Kernel PCA.
# [5] Course notes on kernel PCA (in English), section 2.2, eq. 8-12.

from __future__ import annotations

import logging

import numpy as np

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.linalg.eigen import (
    Solver,
    block_krylov,
    block_width,
    lapack_pairs,
    significant,
)
from kpca_apps.engine.linalg.gram import about_mean, gram_matrix
from kpca_apps.engine.linalg.panels import GramPanels, centred
from kpca_apps.engine.plan import ExactPlan, lapack_after_krylov, plan_exact
from kpca_apps.engine.precision import smallest_eigenvalue
from kpca_apps.engine.subspace import KernelSubspace, component_signs
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread

Pairs = tuple[Matrix, Matrix, Matrix]
"""Row means of K, eigenvalues and eigenvectors of the centred matrix."""

_log = logging.getLogger(__name__)


def fit_exact(
    kernel: Kernel,
    X: Matrix,
    *,
    rng: np.random.Generator,
    n_components: int | None = None,
    center: bool = True,
    solver: Solver = "auto",
    n_jobs: int | None = None,
    plan: ExactPlan | None = None,
) -> KernelSubspace:
    """Fit kernel PCA on the Gram matrix of all rows, which become the points of the subspace.

    Arguments are as in `KernelPCA`; a ``plan`` that `plan_exact` made decides on components,
    solver, precision and memory. MemoryLimitError, before anything is allocated, if the estimate
    exceeds the budget.
    """
    # Components are kept by decreasing variance (modulus of it for an indefinite kernel, where they
    # are normalised by 1 / sqrt(|eigenvalue|)). 0 keeps the mean alone: Hoffmann's potential.
    # Float32 leaves out eigenvalues below 1e-3 of the largest: it does not have three digits of
    # them.
    plan = plan or plan_exact(kernel, X, n_components=n_components, center=center, solver=solver)
    n, by_modulus = len(X), not kernel.is_psd
    kernel = about_mean(kernel, X) if center else kernel
    # Of the matrix before it is centred, of moduli if it is indefinite. Where it overflows, the
    # matrix is refused.
    with np.errstate(over="ignore", invalid="ignore"):
        trace = float(np.abs(kernel.diagonal(X)).sum())
    with one_blas_thread():
        found: Pairs | None = None
        if plan.solver == "krylov":
            found = _by_krylov(kernel, X, plan, rng, trace, center, n_jobs)
            if found is None:
                _log.info("The Krylov iteration did not settle; LAPACK takes over.")
                plan = lapack_after_krylov(plan, indefinite=by_modulus)
        means, values, weights = found or _by_lapack(kernel, X, plan, center, n_jobs)
        if len(values):
            # Leave out eigenpairs that are rounding, or lose too many digits to it.
            smallest = smallest_eigenvalue(abs(float(values[0])), trace, n, plan.precision)
            keep = significant(values, smallest, by_modulus=by_modulus)
            if not keep.all():
                values, weights = values[keep], weights[:, keep]
        weights *= component_signs(weights) / np.sqrt(np.abs(values))
        if center:
            weights -= weights.mean(axis=0)
        return KernelSubspace(
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


def _by_lapack(
    kernel: Kernel, X: Matrix, plan: ExactPlan, center: bool, n_jobs: int | None
) -> Pairs:
    gram = gram_matrix(kernel, X, plan.precision, n_jobs=n_jobs)
    means = gram.mean(axis=0, dtype=np.float64) if center else np.zeros(len(X))
    if plan.q == 0:
        return means, np.empty(0), np.empty((len(X), 0))
    return means, *lapack_pairs(gram, plan.q, center=center, by_modulus=not kernel.is_psd)


def _by_krylov(
    kernel: Kernel,
    X: Matrix,
    plan: ExactPlan,
    rng: np.random.Generator,
    trace: float,
    center: bool,
    n_jobs: int | None,
) -> Pairs | None:
    """Return the same by iteration over panels of K, None where that does not settle."""
    gram = GramPanels(kernel, X, plan.precision, stored=plan.stored, n_jobs=n_jobs)
    if plan.q == 0:
        means = gram.row_sums / len(X) if center else np.zeros(len(X))
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
        trace=trace,
    )
    if pairs is None:
        return None
    return gram.row_sums / len(X) if center else np.zeros(len(X)), *pairs
