"""Kernels of the papers for images (resampled, smoothed, by region), and feature maps.

A row contains the pixels of an image, row by row. `sampled` and `smoothed` are linear maps, so a
kernel of mapped rows is again a kernel of images. Equations refer to Scholkopf, Smola and Muller
(1996), MPI technical report 44.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np
from scipy.linalg import eigvalsh

from kpca_apps.engine.kernels import RBF, Kernel, Scaled
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread


def sampled(X: Matrix, height: int, width: int, q: int) -> Matrix:
    """Return images (n, height width) resampled at q x q points, ``(n, q^2)``.

    Inner products keep their size as q changes. If height = width = q, they equal those of pixels.
    """
    # A row x becomes a function f_x on the unit square, linear between pixel centres. The inner
    # product f_x.f_y is the midpoint sum of the integral (eq. 66-68, B.5; eq. 68 omits the factor):
    #     height width / q^2  sum_ij f_x((i - 1/2)/q, (j - 1/2)/q) f_y((i - 1/2)/q, (j - 1/2)/q).
    # The kernel Polynomial(d) of two results is the power d of this inner product.
    return _mapped(X, _sampling(height, q), _sampling(width, q))


def smoothed(X: Matrix, height: int, width: int, sigma: float) -> Matrix:
    """Return smoothed images: inner products become sum_uv x_u c(u, v) y_v.

    ``sigma`` is the standard deviation of c in pixels. Filtering the images with a Gaussian
    of width s is the case sigma = s sqrt(2).
    """
    # c is a Gaussian of the distance between pixels u and v, scaled so that the weights of a pixel
    # sum to 1 far from the border (eq. 70).
    return _mapped(X, _smoothing_root(height, sigma), _smoothing_root(width, sigma))


def over_regions(
    kernel: Kernel, X: Matrix, Z: Matrix, height: int, width: int, *, size: int, step: int
) -> Matrix:
    """Return the sum of a kernel over square regions, k = sum_i k(x_i, z_i), shape ``(n, m)``.

    x_i are the pixels of x in region i: `Polynomial(d)` relates d pixels of one region (eq. 71-72).
    """
    pixels = np.arange(height * width).reshape(height, width)
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (size, size))[::step, ::step]
    regions = windows.reshape(-1, size * size)
    return np.asarray(np.sum([kernel(X[:, region], Z[:, region]) for region in regions], axis=0))


def iterated(kernel: Kernel, points: Matrix, X: Matrix, Z: Matrix) -> Matrix:
    """Return the mean over points p (m, d) of k(x, p) k(p, z), a kernel if k is symmetric."""
    # sum_ij c_i c_j k2(x_i, x_j) is the integral of (sum_i c_i k(x_i, p))^2, so k2 is positive
    # semi-definite (the report says positive). Eq. 73-74.
    return np.asarray(kernel(X, points) @ kernel(Z, points).T / len(points))


def iterated_gaussian(gamma: float, n_features: int) -> Scaled:
    """Return exp(-gamma |x - y|^2) iterated over all of R^d: a Gaussian with half the gamma.

    The factor in front does not change components; it scales projections by its square root.
    """
    # int exp(-g |x - z|^2) exp(-g |z - y|^2) dz = (pi / (2 g))^(d/2) exp(-g/2 |x - y|^2), eq. 73.
    # A mean over rows in place of R^d, as in `iterated`, is not Gaussian.
    return Scaled((np.pi / (2.0 * gamma)) ** (0.5 * n_features), RBF(0.5 * gamma))


def _mapped(X: Matrix, rows: Matrix, columns: Matrix) -> Matrix:
    """Map each image F to R F C', with R (r, height) and C (c, width)."""
    images = X.reshape(len(X), rows.shape[1], columns.shape[1])
    return np.asarray((rows @ images @ columns.T).reshape(len(X), -1))


def _sampling(side: int, q: int) -> Matrix:
    """Return weights (q, side) that interpolate `side` pixels at the midpoints of q equal parts.

    The factor sqrt(side / q) nearly keeps sums of squares. Outside the centres of the outermost
    pixels, the image is constant.
    """
    places = (np.arange(q) + 0.5) * side / q - 0.5
    weights = [np.interp(places, np.arange(side), pixel) for pixel in np.eye(side)]
    return np.asarray(np.column_stack(weights) * np.sqrt(side / q))


def _smoothing_root(side: int, sigma: float) -> Matrix:
    """Return the symmetric root (side, side) of exp(-(i - j)^2 / (2 sigma^2)) over its sum."""
    reach, lag = np.arange(-200, 201), np.arange(side, dtype=np.float64)
    mass = np.exp(-0.5 * (reach / sigma) ** 2).sum()
    with one_blas_thread():
        values, vectors = np.linalg.eigh(np.exp(-0.5 * ((lag[:, None] - lag) / sigma) ** 2) / mass)
        root: Matrix = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def ordered_products(X: Matrix, degree: int) -> Matrix:
    """Return C_d, the products of d entries in all orders, shape ``(n, N^d)``."""
    # (x.y)^d = C_d(x).C_d(y), so the kernel avoids this map. Eq. 19-22 and B.1.
    chosen = product(range(X.shape[1]), repeat=degree)
    return np.column_stack([np.prod(X[:, factors], axis=1) for factors in map(list, chosen)])


def monomials(X: Matrix, degree: int) -> Matrix:
    """Return c_d, each monomial of degree d with its weight, shape ``(n, C(N + d - 1, d))``."""
    # For n_1 + ... + n_N = d, the weight of x_1^n_1 ... x_N^n_N is sqrt(d! / (n_1! ... n_N!)), the
    # root of the number of orders of the factors.
    columns = []
    for factors in combinations_with_replacement(range(X.shape[1]), degree):
        repeats = math.prod(math.factorial(count) for count in Counter(factors).values())
        orders = math.factorial(degree) // repeats
        columns.append(math.sqrt(orders) * np.prod(X[:, list(factors)], axis=1))
    return np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class MercerCheck:
    """Eigenvalues of a Gram matrix, to test whether its kernel is positive semi-definite."""

    eigenvalues: Matrix  # (n,), increasing

    @property
    def is_psd(self) -> bool:
        """Whether no eigenvalue is negative beyond rounding."""
        size = np.abs(self.eigenvalues).max()
        tolerance = len(self.eigenvalues) * np.finfo(np.float64).eps * size
        return bool(self.eigenvalues[0] >= -tolerance)

    @property
    def negative_share(self) -> float:
        """Share of the negative eigenvalues in the sum of absolute eigenvalues, in [0, 1]."""
        size = np.abs(self.eigenvalues)
        return float(size[self.eigenvalues < 0.0].sum() / size.sum())

    def describe(self) -> str:
        """Return the result of the check in one line."""
        rows = f"on these {len(self.eigenvalues)} rows"
        if self.is_psd:
            return f"positive semi-definite {rows}"
        return f"indefinite: smallest eigenvalue {self.eigenvalues[0]:.4g} {rows}"


def mercer_check(K: Matrix) -> MercerCheck:
    """Check a symmetric Gram matrix (n, n) for positive semi-definiteness."""
    # A function k is an inner product in some feature space if and only if its Gram matrix of any
    # finite number of points is symmetric and positive semi-definite. For a finite measure on the
    # points, k is then a series of eigenfunctions phi_i with eigenvalues lambda_i >= 0 (Mercer),
    # and the feature vector has one coordinate for each term:
    #     k(x, y) = sum_i lambda_i phi_i(x) phi_i(y),  phi(x) = (sqrt(lambda_i) phi_i(x))_i.
    # No finite number of Gram matrices proves that k is such a function; one matrix with a negative
    # eigenvalue refutes it. Eq. 55-60 of the report; Aguilera and Antonanzas (2019), eq. 1-2.
    with one_blas_thread():
        return MercerCheck(eigvalsh(K))
