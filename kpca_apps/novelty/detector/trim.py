"""Choose the densest rows of a table with outliers, to fit a model to these rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.landmarks import residual_landmarks, uniform_landmarks
from kpca_apps.engine.nystroem import LandmarkBasis
from kpca_apps.engine.plan import require_nystroem
from kpca_apps.engine.precision import MEAN_ROWS, agreeing_precision, evenly_drawn
from kpca_apps.engine.rows import map_row_blocks
from kpca_apps.engine.subspace import Resolved
from kpca_apps.novelty.detector.large_groups import of_each_group
from kpca_apps.novelty.detector.views import SCORED_BLOCK, ViewedRows
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray

# Shares of the typical density: a row is sparse below the first, dense above the second, and counts
# in part in between.
AS_DENSE = (0.6, 0.8)
# Let s be the share of rows about as dense as the densest half. If s is at most .7, half of all
# rows are kept; if s is at least .9, the share s. In between, the kept share is interpolated.
EVEN = (0.7, 0.9, 1.0)


@dataclass(frozen=True, eq=False)
class KernelDensity:
    """Kernel density of each row: weighted sum of its kernel values with the `points`."""

    kernel: Kernel
    points: FloatArray  # (m, d)
    weights: FloatArray  # (m,)
    precision: Resolved = "float64"

    purpose = "Finding the dense half"

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the function that computes the density of rows."""
        kernel_rows = self.kernel.against(self.points, self.precision)
        weights = self.weights.astype(self.precision)
        return lambda rows, in_use: map_row_blocks(
            lambda block: kernel_rows(block) @ weights, rows, block=SCORED_BLOCK
        )


def trim(
    source: ViewedRows,
    kernel: Kernel,
    *,
    n_landmarks: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
    place: IntArray | None = None,
) -> BoolArray:
    """Mark the rows (n,) with the highest kernel density <z, zbar>, as `densest` defines.

    Landmarks and the mean feature vector zbar come from the source's sample. If `place` (n,) gives
    the group of each row, the densest of each group are marked.
    """
    # Features are not centred: the density is a product with their mean, which centring removes.
    sample = source.sample
    require_nystroem(min(n_landmarks, len(sample)), sample.shape[1])
    landmarks = residual_landmarks(kernel, sample, n_landmarks, rng, n_jobs=n_jobs)
    basis = LandmarkBasis.from_cholesky(kernel, sample[landmarks])
    typical = uniform_landmarks(len(sample), MEAN_ROWS, rng)
    probe = sample[np.setdiff1d(evenly_drawn(len(sample)), landmarks)]

    def features(seen: FloatArray, precision: Resolved) -> FloatArray:
        return map_row_blocks(basis.features(precision), seen, block=SCORED_BLOCK, n_jobs=n_jobs)

    def density_of(z: FloatArray, typical: FloatArray) -> FloatArray:
        # Sums are explicit: a matrix product rounds a row depending on its position in a block.
        mean = typical.mean(axis=0, dtype=np.float64).astype(z.dtype)
        density: FloatArray = np.einsum("ij,j->i", z, mean).astype(np.float64, copy=False)
        return density

    def of_probe(precision: Resolved) -> FloatArray:
        z = features(probe, precision)
        return density_of(z, z)

    precision = agreeing_precision(of_probe, source.n_rows)
    kept = source.features(basis, precision)
    if kept is not None:
        found = density_of(kept.z, kept.z[typical])
    else:
        mean = features(sample[typical], precision).mean(axis=0, dtype=np.float64)
        weights = basis.transform @ mean
        found = source.map(KernelDensity(kernel, basis.points, weights, precision))
    return of_each_group(place, found, densest)


def densest(density: FloatArray) -> BoolArray:
    """Mark the densest half of the rows, or more than half if the density (n,) varies little.

    If most rows are about as dense as the densest half, there is no sparse half: a ring, say, would
    lose an arc that is as good as the rest. At least two rows are marked, and all that are as dense
    as the last of them: equal rows are marked together.

    >>> densest(np.array([5.0, 1.0, 4.0, 3.0, 3.0])).tolist()
    [True, False, True, True, True]
    >>> densest(np.r_[np.full(19, 2.0), 0.1]).sum()
    np.int64(19)
    """
    # If more rows are dense, more rows are marked: the share `kept` grows without a jump.
    n, half = len(density), (len(density) + 1) // 2
    ordered = np.sort(density)
    typical = float(ordered[n - half :].sum()) / half
    dense = np.interp(ordered, np.multiply(AS_DENSE, typical), (0.0, 1.0)) if typical > 0 else 0.0
    kept = np.interp(np.mean(dense), EVEN, (0.5, *EVEN[1:]))
    least = ordered[n - max(2, math.ceil(n * float(kept) - 1e-9))]
    marked: BoolArray = np.asarray(density) >= least
    return marked
