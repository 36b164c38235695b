"""Exact kernel PCA from a Gram matrix that is stored or recomputed in panels.

Let phi~ be the feature vectors minus their mean, C = 1/n sum_i phi~(x_i) phi~(x_i)' their
covariance and K~ their Gram matrix (`centre_in_place`). The components V = sum_i alpha_i phi~(x_i)
satisfy

    C V = lambda V,  that is  K~ alpha = n lambda alpha,  with  n lambda alpha'alpha = 1,

so that |V| = 1. lambda is the variance along V, and n lambda is the eigenvalue of K~.

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, eq. 5-17 and 46-50.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.linalg.eigen import block_krylov, block_width, lapack_pairs, significant
from kpca_apps.engine.linalg.gram import about_mean, gram_matrix
from kpca_apps.engine.linalg.panels import GramPanels, centred
from kpca_apps.engine.plan import ExactPlan, FitOptions, lapack_after_krylov, plan_exact
from kpca_apps.engine.precision import smallest_eigenvalue
from kpca_apps.engine.subspace import KernelSubspace, component_signs
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread

# Row means of K, and eigenvalues and eigenvectors of the centred matrix.
Pairs = tuple[Matrix, Matrix, Matrix]
_log = logging.getLogger(__name__)


def fit_exact(
    kernel: Kernel,
    X: Matrix,
    *,
    rng: np.random.Generator,
    options: FitOptions = FitOptions(),  # noqa: B008 (it cannot change)
    plan: ExactPlan | None = None,
) -> KernelSubspace:
    """Fit kernel PCA on the Gram matrix of all rows.

    A ``plan`` from `plan_exact` sets components, solver, precision and storage; the default is a
    float64 plan. Raises MemoryLimitError, before allocating, if the estimate exceeds the budget.
    """
    # Components are ordered by decreasing variance, by modulus if the kernel is indefinite.
    plan = plan or plan_exact(kernel, X, replace(options, precision="float64"))
    center, n_jobs = options.center, options.n_jobs
    n, by_modulus = len(X), not kernel.is_psd
    kernel = about_mean(kernel, X) if center else kernel
    # If the trace overflows, building the Gram matrix raises an error.
    with np.errstate(over="ignore", invalid="ignore"):
        trace = float(np.abs(kernel.diagonal(X)).sum())
    with one_blas_thread():
        pairs: Pairs | None = None
        if plan.solver == "krylov":
            pairs = _by_krylov(kernel, X, plan, rng, trace, center, n_jobs)
            if pairs is None:
                _log.info("The Krylov iteration did not settle; LAPACK takes over.")
                plan = lapack_after_krylov(plan, indefinite=by_modulus)
        means, values, weights = pairs or _by_lapack(kernel, X, plan, center, n_jobs)
        if len(values):
            # Drop eigenpairs that are rounding errors.
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
    """Return eigenpairs by block Krylov over panels of K; None if it does not converge."""
    gram = GramPanels(kernel, X, plan.precision, stored=plan.stored, n_jobs=n_jobs)
    if plan.q == 0:
        means = gram.row_sums / len(X) if center else np.zeros(len(X))
        return means, np.empty(0), np.empty((len(X), 0))
    start = gram.sketch(rng.standard_normal((len(X), block_width(plan.q))))
    pairs = block_krylov(
        centred(gram) if center else gram.product,
        start - start.mean(axis=0) if center else start,
        plan.q,
        rng,
        by_modulus=not kernel.is_psd,
        trace=trace,
    )
    if pairs is None:
        return None
    return gram.row_sums / len(X) if center else np.zeros(len(X)), *pairs
