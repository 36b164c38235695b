"""Denoise one group of similar patches in numpy, to compare with the compiled code."""

from dataclasses import dataclass

import numpy as np

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.groups.operator import (
    EDGE_FACTOR,
    RIDGE_FACTOR,
    STEPS,
    count_components,
    is_narrow,
    noise_in_kernel,
)
from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.plan import FitOptions
from kpca_apps.engine.preimage.fixed_point import fixed_point
from kpca_apps.system.arrays import Matrix


@dataclass(frozen=True)
class GroupEstimate:
    """Denoised patches of a group."""

    patches: Matrix  # (k, N)
    weight: Matrix  # (k,), proportional to 1 / leverage
    leverage: Matrix  # (k,), variance of each estimate divided by the noise variance
    n_components: int  # all components for the Tikhonov filter
    residual: float  # noise variance estimated from the residual, per degree of freedom


def denoise_group(
    patches: Matrix,
    variance: float,
    *,
    pilot: Matrix | None = None,
    bandwidth: float = np.inf,
    excess: float = 1.0,
) -> GroupEstimate:
    """Denoise k >= 2 similar patches (k, N) with noise variance > 0.

    With a `pilot` (k, N), a first estimate of the patches, a Tikhonov filter of infinite bandwidth
    is learned on the pilot; without, components are truncated. `bandwidth` is c / (2 N v). The
    truncation edge follows the group's residual variance up to `excess` (at least 1) times the
    given variance.
    """
    points = patches if pilot is None else pilot
    k, n = points.shape
    rng, mean = np.random.default_rng(0), patches.mean(axis=0)
    spread = float(np.square(points - points.mean(axis=0)).sum(axis=1).mean())
    c = bandwidth * 2.0 * n * variance
    is_finite = pilot is None and is_narrow(c, spread)
    kernel, unit = (RBF(1.0 / c), c / 2.0) if is_finite else (Linear(), 1.0)
    subspace = fit_exact(kernel, points, rng=rng, options=FitOptions(solver="lapack"))
    if pilot is None:
        slope, floor = noise_in_kernel(bandwidth, c) if is_finite else (1.0, 0.0)
        values = (unit * k * subspace.variances - floor) / slope
        diagonal = float(subspace.kernel.diagonal(points).sum())
        trace = (unit * (diagonal - k * subspace.mean_norm) - (k - 1) * floor) / slope
        edge = EDGE_FACTOR * (np.sqrt(k) + np.sqrt(n)) ** 2
        q, residual = count_components(values, trace, (k, n), variance, excess, edge)
        subspace = subspace.leading(q)
        leverage = np.full(k, (1 + q) / k)
    else:
        q, residual = subspace.n_components, 0.0
        subspace = subspace.with_soft_cut(RIDGE_FACTOR * n * variance / k)
    T = subspace.project(points)
    if is_finite:
        # Start at the patches, as Mika et al. do.
        estimates = fixed_point(subspace, T, points, tolerance=0.0, max_iter=STEPS).points
    else:
        expansion = subspace.expansion(T)
        if pilot is not None:
            leverage = np.diag(expansion)
        # The weights sum to 1, so the mean can be subtracted first and added back.
        estimates = expansion @ (patches - mean) + mean
    return GroupEstimate(estimates, 1.0 / (k * leverage), leverage, q, float(residual))
