"""Denoise one group of similar patches: kernel PCA, a cutoff or filter, and pre-images.

This is Mika's denoising (1998) on a neighbourhood, as in section B.6 of the 1996 report. The
group's patches are points; their feature vectors under the RBF kernel exp(-|x - y|^2 / c) are
projected on the leading components, and a fixed-point iteration returns pre-images. The known noise
variance v determines both cuts:

- Truncation keeps the components that noise cannot explain. For k patches of N pixels, noise alone
  gives eigenvalues of the centred Gram matrix up to v (sqrt k + sqrt N)^2, the edge of Marchenko
  and Pastur (1967). Under a kernel of d^2, noise distances are all near 2 N v =: t c. So its Gram
  matrix is that of the linear kernel times a slope, plus a multiple of the identity (El Karoui
  2010). For (c / 2) exp(-d^2 / c), which tends to the linear kernel as c -> infinity, the slope is
  e^-t and the multiple (c / 2) (1 - e^-t (1 + t)).
- The Tikhonov filter learns on a pilot, a first estimate with little noise, and weights each
  component by lambda / (lambda + .85 N v), a Wiener filter. Its pre-image is a weighted sum of the
  pilot's patches; the same weights are then applied to the noisy patches.

For c -> infinity, both are linear: principal components, and the second stage of NL-Ridge
(Herbreteau & Kervrann 2022) with centring.

References
----------
S. Mika et al. (1998), "Kernel PCA and de-noising in feature spaces", NIPS 11.
B. Scholkopf, A. Smola, K.-R. Muller (1996), MPI technical report 44.
V. Marchenko, L. Pastur (1967), Mathematics of the USSR-Sbornik 1(4).
N. El Karoui (2010), "The spectrum of kernel random matrices", Annals of Statistics 38(1).
"""

from __future__ import annotations

import numpy as np

from kpca_apps.engine.linalg.small_matrices import Scalar, Vector
from kpca_apps.system.compiling import inlined

EDGE_FACTOR = 0.95  # multiplies noise's largest eigenvalue; below 1, to keep doubtful components
RIDGE_FACTOR = 0.85  # Tikhonov ridge divided by a patch's noise energy (pixels times variance)
ROUNDS = 5  # maximum number of rounds in which a group's noise variance is estimated again
STEPS = 2  # fixed-point steps; a third gains .001 dB (test pictures print and rings, sigma 12)
# A kernel exp(-d^2 / c) counts as linear if c exceeds this multiple of the mean d^2 of patches.
# With a multiple of 2, photographs lose up to .06 dB at sigma 12; with 1.5, they lose at most .02.
WIDEST = 1.5


@inlined
def is_narrow(c: Scalar, spread: Scalar) -> bool:
    """Whether a kernel of width c is too narrow to count as linear."""
    return bool(c < WIDEST * 2.0 * spread)


@inlined
def noise_in_kernel(bandwidth: Scalar, c: Scalar) -> tuple[Scalar, Scalar]:
    """Return slope and offset that map noise eigenvalues of the linear kernel to the RBF kernel."""
    t = 1.0 / bandwidth
    return np.exp(-t), -0.5 * c * (np.expm1(-t) + t * np.exp(-t))


@inlined
def count_components(
    values: Vector, trace: Scalar, shape: tuple[int, int], variance: Scalar, excess: Scalar,
    edge: Scalar,
) -> tuple[int, Scalar]:  # fmt: skip
    """Return the number of eigenvalues that noise cannot explain, and the residual variance.

    `values` are the largest eigenvalues of a centred Gram matrix, decreasing; `trace` is the sum of
    all. `edge` is the largest eigenvalue of noise with variance 1 in a group of `shape` (k, n).
    """
    # The noise variance is taken to be `residual`, the variance beyond the kept components, but at
    # least `variance` and at most `excess * variance`, as fine detail also raises `residual`.
    k, n = shape
    level, q, residual = np.float32(excess * variance), len(values) + 1, np.float32(0)
    for _ in range(ROUNDS):
        previous, q, kept_variance = q, 0, np.float32(0)
        while q < len(values) and values[q] > edge * level:
            kept_variance += values[q]
            q += 1
        if q == previous:
            break
        freedom = np.float32(max(1, (k - 1 - q) * (n - q)))
        residual = np.float32(max(np.float32(trace) - kept_variance, np.float32(0)) / freedom)
        level = min(max(residual, np.float32(variance)), np.float32(excess * variance))
    return q, residual
