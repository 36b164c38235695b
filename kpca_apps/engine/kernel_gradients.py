"""Gradients of the kernels in their first argument, as descending to a pre-image needs them.

What is needed is never the gradient of one kernel value but the weighted sum over stored points,
sum_j c_j grad_x k(x, z_j), and for most kernels that is one product with the points: a kernel of
the squared distance s has the gradient 2 k'(s) (x - z), a kernel of the inner product p has
k'(p) z. Kernels of one's own are added with ``weighted_gradient.register`` and
``diagonal_gradient.register``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from kpca_apps.engine.image_kernels import OverRegions
from kpca_apps.engine.iterated import Iterated
from kpca_apps.engine.kernel_algebra import Kernel, OnColumns, Scaled, ScaledInputs, Sum
from kpca_apps.engine.kernels import (
    RBF,
    Cosine,
    Laplacian,
    Linear,
    MultiscaleRBF,
    Polynomial,
    Sigmoid,
)
from kpca_apps.engine.mapped_inputs import LinearlyMapped
from kpca_apps.engine.products import LOWEST_EXPONENT, rbf_exponents, squared_lengths, unit_rows

__all__ = ["diagonal_gradient", "is_differentiable", "weighted_gradient"]

Matrix = NDArray[np.float64]
WeightedGradient = Callable[[Matrix, Matrix], Matrix]


@singledispatch
def weighted_gradient(kernel: Kernel, Z: Matrix) -> WeightedGradient:
    """Fix the points of sum_j c_j grad_x k(x, z_j).

    Parameters
    ----------
    kernel : Kernel
    Z : ndarray of shape (m, d)

    Returns
    -------
    callable
        Maps rows ``(b, d)`` and coefficients ``(b, m)`` to gradients ``(b, d)``. Where a kernel
        has a kink (`Laplacian` at z_j, `Cosine` at 0) the term counts as 0.

    Raises
    ------
    ValueError
        If the gradient of the kernel is not known.

    Examples
    --------
    >>> Z = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> weighted_gradient(Linear(), Z)(np.zeros((1, 2)), np.array([[1.0, 3.0]]))
    array([[1., 6.]])
    """
    raise ValueError(f"No gradient is known for {kernel.describe()}: use preimage='ridge'.")


@singledispatch
def diagonal_gradient(kernel: Kernel, X: Matrix) -> Matrix:
    """Return the gradient of k(x, x) at each row of ``X``, shape ``(n, d)``.

    Zeros, as for every kernel of the distance, unless registered otherwise.
    """
    return np.zeros_like(X)


def is_differentiable(kernel: Kernel) -> bool:
    """Return whether `weighted_gradient` knows the kernel and all it is made of."""
    if isinstance(kernel, Sum):
        return all(is_differentiable(part) for part in kernel.kernels)
    if isinstance(kernel, (Scaled, OnColumns, ScaledInputs, LinearlyMapped, OverRegions, Iterated)):
        return is_differentiable(kernel.kernel)
    return weighted_gradient.dispatch(type(kernel)) is not weighted_gradient.dispatch(object)


def _radial(Z: Matrix, slopes: Callable[[Matrix], Matrix]) -> WeightedGradient:
    """Return the sum for a kernel of the squared distance s, from k'(s) at rows ``(b, m)``."""
    centre = Z.mean(axis=0)
    stacked = np.column_stack([Z - centre, np.ones(len(Z))])

    def rows(X: Matrix, C: Matrix) -> Matrix:
        sums = (C * slopes(X)) @ stacked
        gradients: Matrix = 2.0 * (sums[:, -1:] * (X - centre) - sums[:, :-1])
        return gradients

    return rows


@weighted_gradient.register
def _rbf(kernel: RBF, Z: Matrix) -> WeightedGradient:
    values = kernel.against(Z)
    return _radial(Z, lambda X: -kernel.gamma * values(X))


@weighted_gradient.register
def _multiscale(kernel: MultiscaleRBF, Z: Matrix) -> WeightedGradient:
    exponents = rbf_exponents(Z, kernel.gamma, LOWEST_EXPONENT / kernel.powers[-1])
    n = len(kernel.powers)

    def slopes(X: Matrix) -> Matrix:
        e = exponents(X)
        total = np.zeros_like(e)
        for p in kernel.powers:
            total -= p * kernel.gamma / n * np.exp(p * e)
        return total

    return _radial(Z, slopes)


@weighted_gradient.register
def _laplacian(kernel: Laplacian, Z: Matrix) -> WeightedGradient:
    values = kernel.against(Z)
    if kernel.distance == "manhattan":

        def rows(X: Matrix, C: Matrix) -> Matrix:
            weights = -kernel.gamma * C * values(X)
            signs = (np.sign(X[:, [j]] - Z[:, j]) for j in range(X.shape[1]))
            return np.column_stack([np.einsum("ij,ij->i", weights, s) for s in signs])

        return rows

    def slopes(X: Matrix) -> Matrix:
        distances = cdist(X, Z)
        apart = distances > 0.0
        return np.where(apart, -0.5 * kernel.gamma * values(X) / np.where(apart, distances, 1), 0)

    return _radial(Z, slopes)


@weighted_gradient.register
def _linear(kernel: Linear, Z: Matrix) -> WeightedGradient:
    return lambda X, C: C @ Z


@diagonal_gradient.register
def _linear_diagonal(kernel: Linear, X: Matrix) -> Matrix:
    return 2.0 * X


@weighted_gradient.register
def _polynomial(kernel: Polynomial, Z: Matrix) -> WeightedGradient:
    return lambda X, C: (C * _polynomial_slope(kernel, X @ Z.T)) @ Z


@diagonal_gradient.register
def _polynomial_diagonal(kernel: Polynomial, X: Matrix) -> Matrix:
    return 2.0 * _polynomial_slope(kernel, squared_lengths(X))[:, None] * X


def _polynomial_slope(kernel: Polynomial, products: Matrix) -> Matrix:
    base = kernel.gamma * products + kernel.coef0
    slope: Matrix = kernel.degree * kernel.gamma * base ** (kernel.degree - 1)
    return slope


@weighted_gradient.register
def _sigmoid(kernel: Sigmoid, Z: Matrix) -> WeightedGradient:
    values = kernel.against(Z)
    return lambda X, C: (C * kernel.gamma * (1.0 - values(X) ** 2)) @ Z


@diagonal_gradient.register
def _sigmoid_diagonal(kernel: Sigmoid, X: Matrix) -> Matrix:
    return 2.0 * kernel.gamma * (1.0 - kernel.diagonal(X) ** 2)[:, None] * X


@weighted_gradient.register
def _cosine(kernel: Cosine, Z: Matrix) -> WeightedGradient:
    directions = unit_rows(Z)

    def rows(X: Matrix, C: Matrix) -> Matrix:
        lengths = np.sqrt(squared_lengths(X))[:, None]
        own = unit_rows(X)
        pull = C @ directions
        along = np.einsum("ij,ij->i", pull, own)[:, None]
        return np.where(lengths > 0.0, (pull - along * own) / np.where(lengths > 0, lengths, 1), 0)

    return rows


@weighted_gradient.register
def _sum(kernel: Sum, Z: Matrix) -> WeightedGradient:
    parts = [weighted_gradient(part, Z) for part in kernel.kernels]
    return lambda X, C: np.sum([part(X, C) for part in parts], axis=0)


@diagonal_gradient.register
def _sum_diagonal(kernel: Sum, X: Matrix) -> Matrix:
    total: Matrix = np.sum([diagonal_gradient(part, X) for part in kernel.kernels], axis=0)
    return total


@weighted_gradient.register
def _scaled(kernel: Scaled, Z: Matrix) -> WeightedGradient:
    inner = weighted_gradient(kernel.kernel, Z)
    return lambda X, C: kernel.factor * inner(X, C)


@diagonal_gradient.register
def _scaled_diagonal(kernel: Scaled, X: Matrix) -> Matrix:
    return kernel.factor * diagonal_gradient(kernel.kernel, X)


@weighted_gradient.register
def _on_columns(kernel: OnColumns, Z: Matrix) -> WeightedGradient:
    seen = slice(kernel.start, kernel.stop)
    inner = weighted_gradient(kernel.kernel, Z[:, seen])

    def rows(X: Matrix, C: Matrix) -> Matrix:
        gradients = np.zeros_like(X)
        gradients[:, seen] = inner(X[:, seen], C)
        return gradients

    return rows


@diagonal_gradient.register
def _on_columns_diagonal(kernel: OnColumns, X: Matrix) -> Matrix:
    seen = slice(kernel.start, kernel.stop)
    gradients = np.zeros_like(X)
    gradients[:, seen] = diagonal_gradient(kernel.kernel, X[:, seen])
    return gradients


@weighted_gradient.register
def _scaled_inputs(kernel: ScaledInputs, Z: Matrix) -> WeightedGradient:
    root = np.sqrt(kernel.scale)
    inner = weighted_gradient(kernel.kernel, Z * root)
    return lambda X, C: inner(X * root, C) * root


@diagonal_gradient.register
def _scaled_inputs_diagonal(kernel: ScaledInputs, X: Matrix) -> Matrix:
    root = np.sqrt(kernel.scale)
    return diagonal_gradient(kernel.kernel, X * root) * root


@weighted_gradient.register
def _mapped(kernel: LinearlyMapped, Z: Matrix) -> WeightedGradient:
    inner = weighted_gradient(kernel.kernel, kernel.map_rows(Z))
    return lambda X, C: kernel.pull_back(inner(kernel.map_rows(X), C))


@diagonal_gradient.register
def _mapped_diagonal(kernel: LinearlyMapped, X: Matrix) -> Matrix:
    return kernel.pull_back(diagonal_gradient(kernel.kernel, kernel.map_rows(X)))


@weighted_gradient.register
def _over_regions(kernel: OverRegions, Z: Matrix) -> WeightedGradient:
    parts = [(part, weighted_gradient(kernel.kernel, Z[:, part])) for part in kernel.regions()]

    def rows(X: Matrix, C: Matrix) -> Matrix:
        gradients = np.zeros_like(X)
        for part, inner in parts:
            gradients[:, part] += inner(X[:, part], C)
        return gradients

    return rows


@diagonal_gradient.register
def _over_regions_diagonal(kernel: OverRegions, X: Matrix) -> Matrix:
    gradients = np.zeros_like(X)
    for part in kernel.regions():
        gradients[:, part] += diagonal_gradient(kernel.kernel, X[:, part])
    return gradients


@weighted_gradient.register
def _iterated(kernel: Iterated, Z: Matrix) -> WeightedGradient:
    points = np.array(kernel.points)
    inner, known = weighted_gradient(kernel.kernel, points), kernel.kernel(Z, points)
    return lambda X, C: inner(X, C @ known / len(points))


@diagonal_gradient.register
def _iterated_diagonal(kernel: Iterated, X: Matrix) -> Matrix:
    points = np.array(kernel.points)
    inner = weighted_gradient(kernel.kernel, points)
    return inner(X, 2.0 / len(points) * kernel.kernel(X, points))
