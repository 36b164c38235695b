"""Pre-images by gradient descent, for differentiable kernels."""
# Minimise rho(z) = |phi(z) - P phi(x)|^2 along
#
#     grad rho(z) = grad k(z, z) - 2 sum_i g_i grad_z k(z, z_i),
#
# with g the coefficients of P phi(x), including the mean. Step lengths are those of Barzilai and
# Borwein (1988, Two-point step size gradient methods, IMA Journal of Numerical Analysis 8,
# 141-148), shortened by Armijo's rule. So a row never ends farther from its projection than its
# start. See also Scholkopf, Smola and Muller (1996), MPI technical report 44, section 4.6; Aguilera
# and Antonanzas (2019), On kernel principal component analysis, eq. 24-25.

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kpca_apps.engine.kernels.base import squared_lengths
from kpca_apps.engine.preimage.fixed_point import (
    PreImages,
    batch_of,
    map_blocks,
    nearest_points,
    projection_norms,
)
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.system.arrays import Index, Matrix

Objective = Callable[[Matrix, Index], Matrix]

TOLERANCE = 1e-6  # step length, relative to the spread of the stored points, that ends a descent
# Share of the decrease predicted by the gradient that a step must achieve (Armijo).
SUFFICIENT = 1e-4
HALVINGS = 40  # largest number of times that a step is halved


def gradient_descent(
    subspace: KernelSubspace,
    T: Matrix,
    start: Matrix | None = None,
    *,
    tolerance: float = TOLERANCE,
    max_iter: int = 300,
    n_jobs: int | None = None,
) -> PreImages:
    """Return local minima of rho(z) = |phi(z) - P phi(x)|^2 by gradient descent.

    Starts are those of `fixed_point`; ``tolerance`` is the length of the last step relative to the
    spread of the stored points. Raises ValueError if the kernel's gradient is unknown.
    """
    if start is None:
        start = subspace.points[nearest_points(subspace, T, n_jobs=n_jobs)[:, 0]]
    begin = np.asarray(start, dtype=np.float64)
    about = subspace.points - subspace.points.mean(axis=0)
    length = tolerance * float(np.sqrt(squared_lengths(about).mean()))
    gradient = subspace.kernel.weighted_gradient(subspace.points)
    kernel_rows = subspace.kernel.against(subspace.points)

    def descend(rows: slice) -> PreImages:
        batch = batch_of(np.arange(len(begin[rows])))
        g = subspace.expansion(T[rows][batch])
        norms = projection_norms(subspace, T[rows])

        def objective(z: Matrix, index: Index) -> Matrix:
            inner = np.einsum("ij,ij->i", kernel_rows(z), g[index])
            return np.asarray(subspace.kernel.diagonal(z) - 2.0 * inner + norms[index])

        def slope(z: Matrix, index: Index) -> Matrix:
            return subspace.kernel.diagonal_gradient(z) - 2.0 * gradient(z, g[index])

        return _descend(_batched(objective), _batched(slope), begin[rows], length, max_iter)

    return PreImages.joined(map_blocks(descend, len(T), n_jobs=n_jobs))


def _batched(function: Objective) -> Objective:
    """Return a function that pads its rows to full batches (see `batch_of`)."""

    def call(z: Matrix, index: Index) -> Matrix:
        batch = batch_of(np.arange(len(index)))
        return function(z[batch], index[batch])[: len(index)]

    return call


def _descend(
    objective: Objective, slope: Objective, start: Matrix, length: float, max_iter: int
) -> PreImages:
    """Descend from every row of ``start`` until its steps are at most ``length`` long."""
    n = len(start)
    z, active = start.copy(), np.arange(n)
    value, downhill = objective(z, active), slope(z, active)
    # The first step is Polyak's: it would lower a linear objective to 0.
    step = np.abs(value) / np.maximum(squared_lengths(downhill), np.finfo(np.float64).tiny)
    iterations, converged = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    for iteration in range(1, max_iter + 1):
        new, new_value = _line_search(objective, z, value, downhill, step, active)
        new_slope = slope(new, active)
        move = new - z[active]
        step_lengths = np.linalg.norm(move, axis=1)
        step[active] = _barzilai_borwein(move, new_slope - downhill[active], step[active])
        z[active], value[active], downhill[active] = new, new_value, new_slope
        iterations[active] = iteration
        converged[active] = step_lengths <= length
        active = active[step_lengths > length]
        if not active.size:
            break
    unmoved = np.zeros(n, dtype=bool)
    return PreImages(z, iterations, converged, unmoved, np.maximum(value, 0.0))


def _line_search(
    objective: Objective, z: Matrix, value: Matrix, downhill: Matrix, step: Matrix, active: Index
) -> tuple[Matrix, Matrix]:
    """Halve the steps of active rows until they lower the objective enough."""
    new, new_value = z[active], value[active]
    lengths = step[active]
    promised = squared_lengths(downhill[active])
    open_ = np.arange(len(active))
    for _ in range(HALVINGS):
        rows = active[open_]
        trial = z[rows] - lengths[open_, None] * downhill[rows]
        trial_value = objective(trial, rows)
        enough = trial_value < value[rows] - SUFFICIENT * lengths[open_] * promised[open_]
        new[open_[enough]], new_value[open_[enough]] = trial[enough], trial_value[enough]
        open_ = open_[~enough]
        if not open_.size:
            break
        lengths[open_] *= 0.5
    return new, new_value


def _barzilai_borwein(move: Matrix, change: Matrix, step: Matrix) -> Matrix:
    """Return |s|^2 / s.y (s: move, y: change of slope), or twice the step if s.y <= 0."""
    curvature = np.einsum("ij,ij->i", move, change)
    usable = curvature > 0.0
    lengths = squared_lengths(move) / np.where(usable, curvature, 1.0)
    return np.where(usable, lengths, 2.0 * step)
