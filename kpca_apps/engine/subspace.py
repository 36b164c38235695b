"""A fitted kernel PCA: mean and components in feature space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeVar, cast

import numpy as np
from msgspec import Meta

from kpca_apps.engine.kernels import Kernel, MeanRBF
from kpca_apps.engine.linalg.triangular import WIDTH, squared_norms
from kpca_apps.engine.rows import BLOCK, SMALL, STEP, map_row_blocks
from kpca_apps.system.arrays import Matrix, Uncached

Prepared = TypeVar("Prepared")
Resolved = Literal["float32", "float64"]  # precision of kernel values and their products
SQUARABLE = Meta(ge=-1e150, le=1e150)  # bounds of numbers in a model file that are squared
# Up to this number of points, errors use a triangular factor of the weights.
TRIANGULAR_POINTS = 2_000
MANY_POINTS = 10_000  # above this number of points, blocks have half as many rows


@dataclass(frozen=True, eq=False)
class KernelSubspace(Uncached):
    """A mean and q orthonormal directions in feature space, expanded in stored points.

    ::

        project               t(x) = W' k_Z(x) - b
        reconstruction error  E(x) = k(x,x) - 2 beta' k_Z(x) + c - sum_a g_a t_a(x)^2
        expansion of P phi(x)        W (g * t(x)) + beta
    """

    # With V_a = sum_j W_ja phi(z_j) and phi~ the centred feature vector, t_a(x) = <V_a, phi~(x)>
    # [2], and P phi(x) = mean + sum_a t_a V_a [3]. Subtracting the offset is the same as centring
    # the kernel matrix of new and fitted rows by the mean of the fitted rows (eq. 54 of [2]).
    #
    # [1] Scholkopf, Smola and Muller (1998), Nonlinear component analysis as a kernel eigenvalue
    #     problem, Neural Computation 10, 1299-1319.
    # [2] Scholkopf, Smola and Muller (1996), an earlier version of [1], MPI technical report 44,
    #     eq. 17, 24, 51-54.
    # [3] Aguilera and Antonanzas (2019), On kernel principal component analysis, eq. 20-25.
    # [4] Hoffmann (2007), Kernel PCA for novelty detection, Pattern Recognition 40, 863-874.

    kernel: Kernel
    points: Annotated[Matrix, "p d", SQUARABLE]  # Z, the expansion points
    # W; column a holds the coefficients of component a, which has length 1 in feature space.
    weights: Annotated[Matrix, "p q", SQUARABLE]
    offset: Annotated[Matrix, "q", SQUARABLE]  # b, projections of the mean
    # beta, coefficients of the mean; zeros for an uncentred fit.
    mean_weights: Annotated[Matrix, "p", SQUARABLE]
    mean_norm: float  # c, squared length of the mean in feature space
    # Variance along each component in feature space, decreasing (in modulus).
    variances: Annotated[Matrix, "q"]
    n: int  # number of fitted rows
    # g in [0, 1]; all 1 for Hoffmann's truncation [4], smaller for a Tikhonov filter.
    gain: Annotated[Matrix, "q", SQUARABLE]

    @property
    def n_components(self) -> int:
        """Number of components q."""
        return int(self.weights.shape[1])

    @property
    def _block(self) -> int:
        """Number of rows scored at once."""
        return BLOCK if len(self.points) <= MANY_POINTS else BLOCK // 2

    def project(
        self, X: Matrix, *, precision: Resolved = "float64", n_jobs: int | None = None
    ) -> Matrix:
        """Return the coordinates of rows on the components, shape ``(n, q)``."""
        kernel_rows = self.prepared(
            f"kernel {precision}", lambda: self.kernel.against(self.points, precision)
        )
        weights, block = self.weights.astype(precision, copy=False), self._block
        least = self.least_rows(block) if weights.flags.c_contiguous else block

        def project(rows: Matrix) -> Matrix:
            return np.asarray(kernel_rows(rows) @ weights - self.offset)

        return map_row_blocks(project, X, block=block, least=least, n_jobs=n_jobs)

    def least_rows(self, block: int) -> int:
        """Return the smallest known number of rows that are rounded as in a `block`."""
        (p, q), kernel = self.weights.shape, self.kernel
        if not isinstance(kernel, MeanRBF):
            return block
        # Numbers of elements of the matrices by which rows are multiplied, parts of a factor last.
        sizes = [p * (self.points.shape[1] // kernel.n_views + 2), p * q, p * (q + 1)]
        sizes += ((p - k) * (min(WIDTH, q - k) + (k == 0)) for k in range(0, q, WIDTH))
        smallest = min((size for size in sizes if block * size > SMALL), default=SMALL)
        return min(block, STEP * (SMALL // (STEP * smallest) + 1))

    def reconstruction_error(
        self, X: Matrix, *, precision: Resolved = "float64", n_jobs: int | None = None
    ) -> Matrix:
        """Return the squared feature-space distance of rows to the subspace, shape ``(n,)``.

        Small negative errors become 0. Raises ValueError if the kernel is indefinite.
        """
        # Errors are accurate to about 1e-13 of k(x, x), in float32 to 5e-5.
        error = map_row_blocks(self.errors(precision), X, block=self._block, n_jobs=n_jobs)
        return np.asarray(np.maximum(error, 0.0, out=error))

    def errors(self, precision: Resolved = "float64") -> Callable[[Matrix], Matrix]:
        """Return the map from rows ``(b, d)`` to reconstruction errors ``(b,)``."""
        q, p = self.n_components, len(self.points)
        if p <= 2 * q and p <= TRIANGULAR_POINTS:
            return self.prepared(f"errors {precision}", lambda: self._errors_by_factor(precision))
        products = self._products(np.sqrt(self.gain), precision)

        def errors(rows: Matrix) -> Matrix:
            t, rest = products(rows)
            rest -= np.einsum("ij,ij->i", t, t)
            return rest

        return errors

    def _errors_by_factor(self, precision: Resolved) -> Callable[[Matrix], Matrix]:
        """Return `errors`, computed by a triangular factor of the weights."""
        self.kernel.require_psd("A reconstruction error")
        factors = np.sqrt(self.gain)
        order, norms = squared_norms(
            self.weights * factors, self.offset * factors, self.mean_weights, precision
        )
        kernel_rows = self.kernel.against(self.points[order], precision)

        def errors(rows: Matrix) -> Matrix:
            squares, along = norms(kernel_rows(rows))
            error: Matrix = self.kernel.diagonal(rows) + self.mean_norm
            error -= 2.0 * along
            error -= squares
            return error

        return errors

    def _products(
        self, factors: Matrix, precision: Resolved
    ) -> Callable[[Matrix], tuple[Matrix, Matrix]]:
        """Return the map from rows to factors * projections and to squared distances from the mean.

        The distances, k(x,x) - 2 beta' k_Z + c, are float64.
        """
        self.kernel.require_psd("A reconstruction error")
        kernel_rows = self.kernel.against(self.points, precision)
        stacked = np.column_stack([self.weights * factors, self.mean_weights]).astype(
            precision, copy=False
        )
        shift = np.append(self.offset * factors, 0.0).astype(precision)

        def products(rows: Matrix) -> tuple[Matrix, Matrix]:
            values = kernel_rows(rows) @ stacked
            values -= shift
            from_mean: Matrix = self.kernel.diagonal(rows) + self.mean_norm
            from_mean -= 2.0 * values[:, -1]
            return values[:, :-1], from_mean

        return products

    def project_and_error(
        self, X: Matrix, *, precision: Resolved = "float64"
    ) -> tuple[Matrix, Matrix]:
        """Return projections ``(n, q)`` and reconstruction errors ``(n,)`` in one pass."""
        products = self._products(np.ones(self.n_components), precision)

        def score(rows: Matrix) -> Matrix:
            t, rest = products(rows)
            rest -= np.einsum("ij,ij->i", t, t * self.gain)
            return np.column_stack([t, rest])

        scored = map_row_blocks(score, X, block=self._block)
        return scored[:, :-1], np.maximum(scored[:, -1], 0.0)

    def prepared(self, name: str, prepare: Callable[[], Prepared]) -> Prepared:
        """Return a value that depends on the subspace alone, computed on first use.

        The value is not copied, pickled or written to model files.
        """
        value = self.__dict__.get(name)
        if value is None:
            value = self.__dict__[name] = prepare()
        return cast(Prepared, value)

    def expansion(self, T: Matrix) -> Matrix:
        """Return gamma ``(n, p)`` with P phi(x_i) = sum_j gamma_ij phi(z_j), from projections."""
        return np.asarray((T * self.gain) @ self.weights.T + self.mean_weights)

    def leading(self, n_components: int) -> KernelSubspace:
        """Return the subspace of the first ``n_components`` components."""
        q = n_components
        return replace(
            self,
            weights=np.ascontiguousarray(self.weights[:, :q]),
            offset=self.offset[:q],
            variances=self.variances[:q],
            gain=self.gain[:q],
        )

    def with_soft_cut(self, rho: float) -> KernelSubspace:
        """Return the subspace with gain variance / (variance + rho), rho an absolute variance."""
        self.kernel.require_psd("A Tikhonov filter")
        return replace(self, gain=self.variances / (self.variances + rho))


def component_signs(columns: Matrix) -> Matrix:
    """Return the sign of each column's largest entry by modulus; +1 for a column of zeros."""
    if columns.size == 0:
        return np.ones(columns.shape[1])
    low, high = columns.min(axis=0), columns.max(axis=0)
    signs = np.where(-low > high, -1.0, 1.0)
    # On a tie between opposite signs, the first entry decides.
    for k in np.flatnonzero(-low == high):
        signs[k] = -1.0 if columns[np.abs(columns[:, k]).argmax(), k] < 0.0 else 1.0
    return signs
