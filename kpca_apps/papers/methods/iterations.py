"""Components by iteration: the power method with deflation, and the kernel Hebbian algorithm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.linalg.gram import centre_in_place, gram_matrix
from kpca_apps.engine.subspace import KernelSubspace, component_signs
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread


class PowerPairs(NamedTuple):
    """Eigenpairs, and the products each of them took."""

    values: Matrix  # (q,), decreasing
    vectors: Matrix  # (n, q)
    products: NDArray[np.int64]  # (q,)


def power_pairs(
    K: Matrix, q: int, rng: np.random.Generator, *, tolerance: float = 1e-6, max_iter: int = 20_000
) -> PowerPairs:
    """Return the ``q`` leading eigenpairs of a positive semi-definite matrix, by products with it.

    A pair is accepted where |K v - lambda v| <= tolerance lambda.
    """
    # v <- Kv / |Kv|, lambda = v'Kv, then K <- K - lambda vv'. Convergence goes with the ratio of
    # neighbouring eigenvalues, so that nearly equal ones cost thousands of products. Diamantaras
    # and Kung (1996), Principal component neural networks, named in Scholkopf, Smola and Muller
    # (1996), 4.4.
    left = K.copy()
    values, vectors = np.empty(q), np.empty((len(K), q))
    products = np.zeros(q, dtype=np.int64)
    with one_blas_thread():
        for a in range(q):
            image = rng.normal(size=len(K))
            for products[a] in range(1, max_iter + 1):
                v = image / np.linalg.norm(image)
                image = left @ v
                values[a] = v @ image
                if np.linalg.norm(image - values[a] * v) <= tolerance * values[a]:
                    break
            else:
                raise ValueError(f"Eigenpair {a + 1} has not settled; use KernelPCA.")
            vectors[:, a] = v
            left -= values[a] * np.outer(v, v)
    return PowerPairs(values, vectors, products)


def power_components(
    kernel: Kernel, X: Matrix, q: int, rng: np.random.Generator, *, tolerance: float = 1e-6
) -> KernelSubspace:
    """Return the first ``q`` components by `power_pairs`."""
    gram, centred = _both_grams(kernel, X)
    pairs = power_pairs(centred, q, rng, tolerance=tolerance)
    coefficients, n = pairs.vectors / np.sqrt(pairs.values), len(X)
    return assembled(kernel, X, gram, coefficients, np.full(n, 1.0 / n), pairs.values / n, n)


def hebbian_components(
    kernel: Kernel,
    X: Matrix,
    q: int,
    rng: np.random.Generator,
    *,
    passes: int = 100,
    rate: float = 0.1,
) -> KernelSubspace:
    """Return ``q`` components learned by Sanger's rule in feature space, one row at a time.

    ``rate`` is eta at the start, in units of one over the mean of the centred k(x, x).
    """
    # With y = A k~(x_t) the projections of row t on the current directions (rows of A are their
    # coefficients over the centred images) and LT the lower triangle,
    #     A <- A + eta (y e_t' - LT[y y'] A):
    # each direction is pulled towards the row, less what those before it explain; with the linear
    # kernel this is the Hebbian network of Oja and Sanger. Kim, Franz and Scholkopf (2005),
    # Iterative kernel principal component analysis for image modeling, IEEE Transactions on
    # Pattern Analysis and Machine Intelligence 27, 1351-1366; Sanger (1989), Optimal unsupervised
    # learning in a single-layer linear feedforward neural network, Neural Networks 2, 459-473.
    n = len(X)
    gram, centred = _both_grams(kernel, X)
    A = rng.normal(size=(q, n))
    A /= np.sqrt(np.einsum("ai,ij,aj->a", A, centred, A))[:, None]
    first_rate = rate * n / float(np.trace(centred))
    for turn in range(passes):
        eta = first_rate / (1.0 + turn / 10.0)
        for t in rng.permutation(n):
            y = A @ centred[t]
            A -= eta * np.tril(np.outer(y, y)) @ A
            A[:, t] += eta * y
    # Directions are brought to unit length; the variances are those of the projections on them.
    lengths = np.sqrt(np.einsum("ai,ij,aj->a", A, centred, A))
    coefficients = (A / lengths[:, None]).T
    variances = ((centred @ coefficients) ** 2).mean(axis=0)
    return assembled(kernel, X, gram, coefficients, np.full(n, 1.0 / n), variances, n)


def _both_grams(kernel: Kernel, X: Matrix) -> tuple[Matrix, Matrix]:
    """Return the Gram matrix, and the centred one."""
    gram = gram_matrix(kernel, X)
    centred = gram.copy()
    centre_in_place(centred)
    return gram, centred


def assembled(
    kernel: Kernel,
    points: Matrix,
    gram: Matrix,
    coefficients: Matrix,
    mean_weights: Matrix,
    variances: Matrix,
    n: int,
) -> KernelSubspace:
    """Return the subspace of the unit vectors V_a = sum_j A_ja (phi(x_j) - mean), A (p, q).

    ``gram`` (p, p) is not centred; ``mean_weights`` (p,), those of the mean, sum to 1.
    """
    weights = coefficients - np.outer(mean_weights, coefficients.sum(axis=0))
    weights *= component_signs(weights)
    mean_rows = gram @ mean_weights
    return KernelSubspace(
        kernel=kernel,
        points=points,
        weights=weights,
        offset=mean_rows @ weights,
        mean_weights=mean_weights,
        mean_norm=float(mean_weights @ mean_rows),
        variances=variances,
        n=n,
        gain=np.ones(len(variances)),
    )
