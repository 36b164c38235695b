"""What becomes of one group of similar patches: kernel PCA, a cut, and a pre-image.

This is Mika's denoising (1998) with the examples of the 1996 report's section B.6, a neighbourhood:
the patches of a group are the points, their images under the RBF kernel exp(-|x - y|^2 / c) are
projected on the leading components in feature space, and a fixed point brings the projections
back. Two things are particular to noise of a known variance v:

- The truncation keeps the components that noise cannot explain. Of k patches of N pixels noise
  alone makes eigenvalues of the centred Gram matrix up to v (sqrt k + sqrt N)^2, the
  Marchenko-Pastur edge (1967). Under a kernel of d^2 the noise's distances are all near 2 N v =: t
  c, so that its Gram matrix is that of the linear kernel times a slope, plus a multiple of the
  identity (El Karoui 2010): e^-t and (c / 2) (1 - e^-t (1 + t)) for (c / 2) exp(-d^2 / c), which is
  the linear kernel as c -> infinity.
- The Tikhonov filter learns on a pilot, a first estimate that has little noise, and weighs each
  component by lambda / (lambda + .85 N v), a Wiener filter; the pre-image, a weighted sum of the
  pilot's patches, is then taken of the noisy ones.

For c -> infinity the kernel factors of a pre-image are all 1, and the two cuts are linear:
principal components, and the second stage of NL-Ridge (Herbreteau & Kervrann 2022) with centring.

References
----------
S. Mika et al. (1998), "Kernel PCA and de-noising in feature spaces", NIPS 11.
V. Marchenko, L. Pastur (1967), Mathematics of the USSR-Sbornik 1(4).
N. El Karoui (2010), "The spectrum of kernel random matrices", Annals of Statistics 38(1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.linalg.small_matrices import Scalar, Vector
from kpca_apps.engine.plan import FitOptions
from kpca_apps.engine.preimage.fixed_point import fixed_point
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.compiling import inlined

EDGE_FACTOR = 0.95  # lower than the formula: losing a component costs more than keeping one
# The Tikhonov filter's ridge over the noise's energy N v, tuned as the passes are.
RIDGE_FACTOR = 0.85
ROUNDS = 5  # times at most that the edge follows the noise a group shows
# Of the fixed point. On print and rings at noise of 12 the second gains .06 dB, a third .001.
STEPS = 2
# A kernel wider than so many mean squared distances between two patches is taken as infinite.
# Measured on print, drawings, photographs and textures, at noise of 5 to 50: at 2 the photographs
# lose up to .06 dB at 12, at 1.5 and 1 at most .02; narrower yet, less print gains.
WIDEST = 1.5


@dataclass(frozen=True)
class GroupEstimate:
    """The patches of a group, denoised."""

    patches: Matrix  # (k, N)
    weight: Matrix  # (k,), of each patch where patches overlap: 1 / leverage, up to a factor
    leverage: Matrix  # (k,), variance of each estimate over that of the noise
    n_components: int  # kept by truncation; all for the Tikhonov filter
    residual: float  # variance beyond them, per degree of freedom: of the noise, as it seems


def denoise_group(
    patches: Matrix,
    variance: float,
    *,
    pilot: Matrix | None = None,
    bandwidth: float = np.inf,
    excess: float = 1.0,
) -> GroupEstimate:
    """Denoise k >= 2 patches (k, N) that look alike, whose noise has a variance > 0.

    With a pilot (k, N), a first estimate of the patches, they are learned on, a Tikhonov filter is
    used, and the width is infinite. The bandwidth is c over 2 N v, the squared distance that noise
    alone puts between two patches; above WIDEST it is taken as infinite. The edge of
    truncation follows the variance a group shows up to `excess` (at least 1) times the one given:
    with that too low the noise of every group would pass.

    >>> rng = np.random.default_rng(0)
    >>> clean = np.outer(rng.normal(0, 60, 40), np.ones(25))
    >>> found = denoise_group(clean + rng.normal(0, 10, (40, 25)), 100.0, bandwidth=np.inf)
    >>> found.n_components, bool(np.std(found.patches - clean) < 4)
    (1, True)
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
        # Begun at the patches themselves, as Mika et al. do.
        estimates = fixed_point(subspace, T, points, tolerance=0.0, max_iter=STEPS).points
    else:
        expansion = subspace.expansion(T)
        if pilot is not None:
            leverage = np.diag(expansion)
        # Less their mean, which the weights leave: they add up to 1.
        estimates = expansion @ (patches - mean) + mean
    return GroupEstimate(estimates, 1.0 / (k * leverage), leverage, q, float(residual))


@inlined
def is_narrow(c: Scalar, spread: Scalar) -> bool:
    """Whether a kernel tells patches apart whose mean squared distance from their mean is given."""
    return bool(c < WIDEST * 2.0 * spread)


@inlined
def noise_in_kernel(bandwidth: Scalar, c: Scalar) -> tuple[Scalar, Scalar]:
    """Return the factor and the offset of noise's eigenvalues under (c / 2) exp(-d^2 / c)."""
    t = 1.0 / bandwidth
    return np.exp(-t), -0.5 * c * (np.expm1(-t) + t * np.exp(-t))


@inlined
def count_components(
    values: Vector, trace: Scalar, shape: tuple[int, int], variance: Scalar, excess: Scalar,
    edge: Scalar,
) -> tuple[int, Scalar]:  # fmt: skip
    """Return how many eigenvalues of a centred Gram matrix noise cannot explain; see GroupEstimate.

    `values` are the largest, decreasing; `trace` is the sum of all. Noise of variance 1 reaches
    `edge` in a group of this shape.
    """
    # The variance beyond the components kept is an estimate of the noise's: where it exceeds the
    # one given, the edge follows it. Fine detail also raises it; so the limit is what even the
    # quietest groups of an image show.
    k, n = shape
    level, q, residual = np.float32(excess * variance), len(values) + 1, np.float32(0)
    for _ in range(ROUNDS):
        before, q, kept = q, 0, np.float32(0)
        while q < len(values) and values[q] > edge * level:
            kept += values[q]
            q += 1
        if q == before:
            break
        freedom = np.float32(max(1, (k - 1 - q) * (n - q)))
        residual = np.float32(max(np.float32(trace) - kept, np.float32(0)) / freedom)
        level = min(max(residual, np.float32(variance)), np.float32(excess * variance))
    return q, residual
