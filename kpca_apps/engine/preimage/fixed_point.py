"""Pre-images of the RBF kernel: points whose feature vectors are near given projections."""
# The projection P phi(x) = sum_i g_i phi(z_i) of a row is seldom the feature vector of a point. A
# pre-image is a point z that minimises
#
#     rho(z) = |phi(z) - P phi(x)|^2 = k(z, z) - 2 sum_i g_i k(z, z_i) + |P phi(x)|^2.
#
# For the RBF kernel the gradient vanishes where
#
#     z = sum_i g_i k(z, z_i) z_i / sum_i g_i k(z, z_i),
#
# which is iterated here (Mika et al. 1998, eq. 10); `gradient_descent` and `learn_preimage` are for
# other kernels. The weights g_i = mean_i + sum_a t_a(x) W_ia contain the mean in feature space and
# may have either sign.
#
# [1] Mika, Scholkopf, Smola, Muller, Scholz and Ratsch (1998), Kernel PCA and de-noising in feature
#     spaces, NIPS 11, eq. 10.
# [2] Kwok and Tsang (2004), The pre-image problem in kernel methods, IEEE Transactions on Neural
#     Networks 15, 1517-1525.
# [3] Aguilera and Antonanzas (2019), On kernel principal component analysis, eq. 23-25.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.kernels.base import LOWEST_EXPONENT, rbf_exponents, squared_lengths
from kpca_apps.engine.rows import in_order, map_row_blocks
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.system.arrays import Index, Mask, Matrix
from kpca_apps.system.blas import one_blas_thread

Part = TypeVar("Part")

TOLERANCE = 1e-6  # step length, in kernel widths, at which an iteration has converged
VANISHING = 1e-12  # denominators below this share of their terms' absolute sum are rounding errors
FAR_EXPONENT = -300.0  # a row is far from all points if its largest exponent is below this
RESTARTS = 3  # number of stored points tried as starts after a failed iteration
BLOCK = 1152  # number of rows per block, a multiple of `STEP`
STEP = 24  # number of rows iterated at a time; fixed, as rounding depends on it


@dataclass(frozen=True, eq=False)
class PreImages:
    """Pre-images and convergence, by row."""

    points: Matrix  # (n, d)
    iterations: NDArray[np.int64]
    converged: Mask  # whether the last step was negligible
    # Whether the iteration was restarted at a stored point.
    restarted: Mask
    residual: Matrix  # rho(z), squared distance of phi(z) from the projection P phi(x)

    @classmethod
    def joined(cls, parts: list[PreImages]) -> PreImages:
        """Return the rows of all parts, in order."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in names})

    def put(self, index: Index, other: PreImages, chosen: Mask | slice = slice(None)) -> None:
        """Replace the rows ``index`` by the chosen rows of ``other``."""
        for field in fields(self):
            getattr(self, field.name)[index] = getattr(other, field.name)[chosen]


def fixed_point(
    subspace: KernelSubspace,
    T: Matrix,
    start: Matrix | None = None,
    *,
    tolerance: float = TOLERANCE,
    max_iter: int = 300,
    n_jobs: int | None = None,
) -> PreImages:
    """Return pre-images for the RBF kernel by fixed-point iteration.

    Start at ``start`` (for denoising, the noisy rows), by default at the stored point whose feature
    vector is nearest to each projection of ``T``.
    """
    assert isinstance(subspace.kernel, RBF)
    if start is None:
        start = subspace.points[nearest_points(subspace, T, n_jobs=n_jobs)[:, 0]]
    gamma = subspace.kernel.gamma
    step = subspace.prepared("_fixed_point_step", lambda: _rbf_step(subspace.points, gamma))
    length = tolerance / np.sqrt(2.0 * gamma)

    def attempt(T: Matrix, start: Matrix) -> tuple[PreImages, Mask]:
        return _Iteration(step, subspace, T, start).run(length, max_iter, n_jobs)

    best, failed = attempt(T, np.asarray(start, dtype=np.float64))
    remaining = np.flatnonzero(failed)
    if remaining.size:
        best.restarted[remaining] = True
        nearest = nearest_points(subspace, T[remaining], RESTARTS, n_jobs=n_jobs)
        for rank in range(nearest.shape[1]):
            retry, failed = attempt(T[remaining], subspace.points[nearest[:, rank]])
            retry.restarted[:] = True
            better = ~failed | (retry.residual < best.residual[remaining])
            best.put(remaining[better], retry, better)
            remaining, nearest = remaining[failed], nearest[failed]
            if not remaining.size:
                break
    return best


def nearest_points(
    subspace: KernelSubspace, T: Matrix, count: int = 1, *, n_jobs: int | None = None
) -> Index:
    """Return the stored points whose feature vectors are nearest to projections, nearest first."""
    directions, constant = subspace.prepared(
        "_point_distances", lambda: _point_distances(subspace, n_jobs)
    )
    gain, count = subspace.gain, min(count, len(subspace.points))

    def rank(rows: Matrix) -> Matrix:
        half = constant - (rows * gain) @ directions
        order = np.argpartition(half, count - 1, axis=1)[:, :count]
        distances = np.take_along_axis(half, order, axis=1)
        first = np.lexsort((order, distances), axis=1)
        return np.take_along_axis(order, first, axis=1).astype(np.float64)

    return map_row_blocks(rank, T, block=STEP, n_jobs=n_jobs).astype(np.intp)


def _point_distances(subspace: KernelSubspace, n_jobs: int | None) -> tuple[Matrix, Matrix]:
    """Return D and c: c - (gain * t) D ranks the stored points by distance from projection t."""
    kernel, points = subspace.kernel, subspace.points
    kernel_rows = kernel.against(points)
    stacked = np.column_stack([subspace.weights, subspace.mean_weights])
    images = map_row_blocks(lambda rows: kernel_rows(rows) @ stacked, points, n_jobs=n_jobs)
    directions = np.ascontiguousarray(images[:, :-1].T)
    return directions, 0.5 * kernel.diagonal(points) - images[:, -1]


def projection_norms(subspace: KernelSubspace, T: Matrix) -> Matrix:
    """Return the squared norms |P phi(x)|^2, shape ``(n,)``, of rows with projections ``T``."""
    along = T * subspace.gain
    # A product with the offset would round differently depending on the number of rows.
    explained = np.einsum("ij,ij->i", along, along + 2.0 * subspace.offset)
    return np.asarray(subspace.mean_norm + explained)


def map_blocks(
    function: Callable[[slice], Part], n: int, *, n_jobs: int | None = None
) -> list[Part]:
    """Apply a function to fixed blocks of row numbers."""
    with one_blas_thread():
        starts = range(0, max(n, 1), BLOCK)
        return list(in_order(lambda s: function(slice(s, min(s + BLOCK, n))), starts, n_jobs))


def batch_of(index: Index) -> Index:
    """Return ``index`` padded to a multiple of `STEP` by repeating its last entry."""
    return np.pad(index, (0, -len(index) % STEP), mode="edge")


Step = Callable[[Matrix, Matrix, Matrix, Index], tuple[Matrix, Matrix, Mask]]


def _rbf_step(points: Matrix, gamma: float) -> Step:
    """Return a function that does one step of the fixed-point iteration for an RBF kernel."""
    # The step maps z, weights g, bounds of sum |g| and row numbers (the last row may be repeated)
    # to the next z, the inner products <phi(z), P phi(x)>, and a mask of vanished denominators.
    clipped, unclipped = (rbf_exponents(points, gamma, low) for low in (LOWEST_EXPONENT, -np.inf))
    centre = points.mean(axis=0)
    stacked = np.column_stack([points - centre, np.ones(len(points))])

    def few(z: Matrix, g: Matrix, size: Matrix) -> tuple[Matrix, Matrix, Mask]:
        terms = clipped(z)
        highest = terms.max(axis=1)
        # Far from all points, subtract the largest exponent so that the others do not underflow.
        shift = np.zeros(len(z))
        far = highest < FAR_EXPONENT
        if far.any():
            exponents = unclipped(z)[far]
            shift[far] = exponents.max(axis=1)
            terms[far] = np.maximum(exponents - shift[far, None], LOWEST_EXPONENT)
            highest[far] = 0.0
        np.exp(terms, out=terms)
        terms *= g
        sums = terms @ stacked
        denominator = sums[:, -1]
        # `size * exp(highest)` bounds the sum of absolute terms; compute that sum only if needed.
        vanished: Mask = np.abs(denominator) <= VANISHING * size * np.exp(highest)
        if vanished.any():
            exact = np.abs(terms[vanished]).sum(axis=1)
            vanished[vanished] = np.abs(denominator[vanished]) <= VANISHING * exact
        following = centre + sums[:, :-1] / np.where(vanished, 1.0, denominator)[:, None]
        vanished |= ~np.isfinite(following).all(axis=1)
        following[vanished] = z[vanished]
        return following, denominator * np.exp(shift), vanished

    def step(z: Matrix, g: Matrix, size: Matrix, batch: Index) -> tuple[Matrix, Matrix, Mask]:
        chunks = [_as_slice(batch[s : s + STEP]) for s in range(0, len(batch), STEP)]
        parts = [few(z[chunk], g[chunk], size[chunk]) for chunk in chunks]
        following, inner, vanished = zip(*parts, strict=True)
        return np.concatenate(following), np.concatenate(inner), np.concatenate(vanished)

    return step


def _as_slice(index: Index) -> Index | slice:
    """Return consecutive row numbers as a slice, to avoid a copy."""
    consecutive = index[-1] - index[0] == len(index) - 1 and index[-2] < index[-1]
    return slice(index[0], index[-1] + 1) if consecutive else index


class _Iteration:
    """The fixed-point iteration of all rows from given starts."""

    # Each block iterates until half of its rows have finished. The remaining rows form new blocks.

    def __init__(self, step: Step, subspace: KernelSubspace, T: Matrix, start: Matrix) -> None:
        n = len(T)
        self.step, self.subspace, self.T = step, subspace, T
        self.z, self.iterations = start.copy(), np.zeros(n, dtype=np.int64)
        self.converged, self.vanished = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        self.first = np.empty(n)

    def run(self, length: float, max_iter: int, n_jobs: int | None) -> tuple[PreImages, Mask]:
        """Iterate; return the pre-images, and a mask of the rows that failed."""
        n = len(self.T)
        remaining: Index = np.arange(n)
        while remaining.size:
            iterate = partial(self._iterate_block, remaining, length, max_iter)
            remaining = np.concatenate(map_blocks(iterate, len(remaining), n_jobs=n_jobs))
        inner = np.concatenate(map_blocks(self._inner_products, n, n_jobs=n_jobs))
        norms = projection_norms(self.subspace, self.T)
        residual = 1.0 - 2.0 * inner + norms
        farther = residual > 1.0 - 2.0 * self.first + norms + 1e-9
        restarted, residual = np.zeros(n, dtype=bool), np.maximum(residual, 0.0)
        found = PreImages(self.z, self.iterations, self.converged, restarted, residual)
        return found, self.vanished | farther

    def _weights(self, index: Index) -> tuple[Index, Matrix, Matrix]:
        """Return a padded batch of rows, their weights g and bounds of sum |g|."""
        batch = batch_of(np.arange(len(index)))
        g = self.subspace.expansion(self.T[index][batch])
        # Bound |g|_1 by p^(1/2) |g|_2.
        return batch, g, np.sqrt(g.shape[1] * squared_lengths(g))

    def _iterate_block(self, remaining: Index, length: float, max_iter: int, block: slice) -> Index:
        """Iterate one block of the remaining rows; return the rows that have not finished."""
        index = remaining[block]
        batch, g, size = self._weights(index)
        active = np.arange(len(index))
        while 2 * len(active) > len(index):
            count = len(active)
            rows = index[active]
            parts = self.step(self.z[index], g, size, batch)
            following, inner, vanished = parts[0][:count], parts[1][:count], parts[2][:count]
            fresh = self.iterations[rows] == 0
            self.first[rows[fresh]] = inner[fresh]
            step_lengths = np.linalg.norm(following - self.z[rows], axis=1)
            self.z[rows] = following
            self.iterations[rows] += 1
            self.converged[rows] = (step_lengths <= length) & ~vanished
            self.vanished[rows] = vanished
            is_active = (step_lengths > length) & ~vanished & (self.iterations[rows] < max_iter)
            if not is_active.all():
                active = active[is_active]
                batch = batch_of(active)
        return index[active]

    def _inner_products(self, rows: slice) -> Matrix:
        """Return <phi(z), P phi(x)> at the current points."""
        index = np.arange(len(self.T))[rows]
        if not index.size:
            return np.empty(0)
        batch, g, size = self._weights(index)
        return self.step(self.z[index], g, size, batch)[1][: len(index)]
