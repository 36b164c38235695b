"""Alternatives to exact kernel PCA: iterations, fewer rows or features, parametrised points."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import minimize
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import Pipeline, make_pipeline

from kpca_apps.engine.compress import JITTER
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.kernels.base import unit_rows
from kpca_apps.engine.linalg.eigen import significant
from kpca_apps.engine.linalg.gram import about_origin, gram_matrix
from kpca_apps.engine.precision import smallest_eigenvalue
from kpca_apps.engine.subspace import KernelSubspace, component_signs
from kpca_apps.papers.data import Labels
from kpca_apps.papers.measuring import centred
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread


class PowerPairs(NamedTuple):
    """Eigenpairs, and the number of matrix products that the power method needed for each pair."""

    values: Matrix  # (q,), decreasing
    vectors: Matrix  # (n, q)
    products: NDArray[np.int64]  # (q,)


def power_pairs(
    K: Matrix, q: int, rng: np.random.Generator, *, tolerance: float = 1e-6, max_iter: int = 20_000
) -> PowerPairs:
    """Return ``q`` leading eigenpairs of a positive semi-definite matrix by the power method.

    A pair is accepted if |K v - lambda v| <= tolerance lambda.
    """
    # v <- Kv / |Kv|, lambda = v'Kv, then K <- K - lambda vv'. The rate of convergence is the ratio
    # of neighbouring eigenvalues, so nearly equal eigenvalues cost thousands of products.
    # Diamantaras and Kung (1996), Principal component neural networks, cited in Scholkopf, Smola
    # and Muller (1996), 4.4.
    deflated = K.copy()
    values, vectors = np.empty(q), np.empty((len(K), q))
    products = np.zeros(q, dtype=np.int64)
    with one_blas_thread():
        for a in range(q):
            image = rng.normal(size=len(K))
            for products[a] in range(1, max_iter + 1):
                v = image / np.linalg.norm(image)
                image = deflated @ v
                values[a] = v @ image
                if np.linalg.norm(image - values[a] * v) <= tolerance * values[a]:
                    break
            else:
                raise ValueError(f"Eigenpair {a + 1} has not settled; use KernelPCA.")
            vectors[:, a] = v
            deflated -= values[a] * np.outer(v, v)
    return PowerPairs(values, vectors, products)


def power_components(kernel: Kernel, X: Matrix, q: int, rng: np.random.Generator) -> KernelSubspace:
    """Return the first ``q`` components by `power_pairs`."""
    gram = gram_matrix(kernel, X)
    pairs = power_pairs(centred(gram), q, rng)
    coefficients, n = pairs.vectors / np.sqrt(pairs.values), len(X)
    return assembled(kernel, X, gram, coefficients, np.full(n, 1.0 / n), pairs.values / n, n)


def hebbian_components(
    kernel: Kernel, X: Matrix, q: int, rng: np.random.Generator, *, passes: int
) -> KernelSubspace:
    """Return ``q`` components learned by Sanger's rule in feature space, one row at a time."""
    # With y = A k~(x_t) the projections of row t on the current directions (rows of A hold their
    # coefficients over centred feature vectors) and LT the lower triangle,
    #     A <- A + eta (y e_t' - LT[y y'] A):
    # each direction moves towards the row, minus the part that earlier directions explain. For the
    # linear kernel this is the Hebbian network of Oja and Sanger. Kim, Franz and Scholkopf (2005),
    # Iterative kernel principal component analysis for image modeling, IEEE Transactions on
    # Pattern Analysis and Machine Intelligence 27, 1351-1366; Sanger (1989), Optimal unsupervised
    # learning in a single-layer linear feedforward neural network, Neural Networks 2, 459-473.
    n = len(X)
    gram = gram_matrix(kernel, X)
    K = centred(gram)
    A = rng.normal(size=(q, n))
    A /= np.sqrt(np.einsum("ai,ij,aj->a", A, K, A))[:, None]
    # Learning rates are relative to 1 / (mean of the centred k(x, x)).
    first_rate = 0.1 * n / float(np.trace(K))
    for turn in range(passes):
        eta = first_rate / (1.0 + turn / 10.0)
        for t in rng.permutation(n):
            y = A @ K[t]
            A -= eta * np.tril(np.outer(y, y)) @ A
            A[:, t] += eta * y
    lengths = np.sqrt(np.einsum("ai,ij,aj->a", A, K, A))
    coefficients = (A / lengths[:, None]).T
    variances = ((K @ coefficients) ** 2).mean(axis=0)
    return assembled(kernel, X, gram, coefficients, np.full(n, 1.0 / n), variances, n)


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

    ``gram`` (p, p) is not centred; ``mean_weights`` (p,) define the mean and sum to 1.
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


def mean_components(
    kernel: Kernel, means: Matrix, sizes: ArrayLike, *, n_components: int | None = None
) -> KernelSubspace:
    """Return the components of cluster means weighted by cluster ``sizes`` (m,).

    Equal sizes give the unweighted version of the encyclopedia article on kernel PCA.
    """
    # The components are those of the covariance of cluster means in feature space, each weighted by
    # its cluster's share of rows: Zhang and Kwok (2010), Clustered Nystrom method for large scale
    # manifold learning and dimension reduction, IEEE Transactions on Neural Networks 21, 1576-1587.
    counts = np.asarray(sizes, dtype=np.float64)
    share = counts / counts.sum()
    gram = gram_matrix(kernel, means)
    with one_blas_thread():
        rows = gram @ share
        centred = gram - rows - rows[:, None] + share @ rows
        root = np.sqrt(share)
        values, vectors = eigh(root[:, None] * centred * root, check_finite=False)
        values, vectors = values[::-1], vectors[:, ::-1]
        trace = float(share @ np.abs(np.diag(gram)))
        smallest = smallest_eigenvalue(float(values[0]), trace, len(values), "float64")
        keep = significant(values, smallest, by_modulus=False)
        if n_components is not None:
            keep[n_components:] = False
        coefficients = root[:, None] * vectors[:, keep] / np.sqrt(values[keep])
        n = round(float(counts.sum()))
        return assembled(kernel, means, gram, coefficients, share, values[keep], n)


def basic_patterns(K: Matrix, threshold: float) -> Labels:
    """Return rows whose columns of K are not nearly parallel.

    ``threshold``, in (0, 1], is the largest cosine between the columns of two patterns.
    """
    # Rows whose columns of K are nearly parallel are redundant: row i becomes a pattern if
    # |K_i'K_p| / (|K_i| |K_p|) < threshold for all earlier patterns p. Fan, Wang, Xu and Tang
    # (2014), An efficient KPCA algorithm based on feature correlation evaluation, Neural Computing
    # and Applications 24, 1795-1806; the order of the rows and the threshold are ours, as only the
    # abstract is available.
    directions = unit_rows(K)
    nearest = np.zeros(len(K))
    chosen: list[int] = []
    for row in range(len(K)):
        if nearest[row] < threshold:
            chosen.append(row)
            np.maximum(nearest, np.abs(directions @ directions[row]), out=nearest)
    return np.array(chosen, dtype=np.intp)


def random_feature_pca(
    gamma: float, n_features: int, n_components: int, random_state: int
) -> Pipeline:
    """Return unfitted linear PCA on random Fourier features of exp(-gamma |x - y|^2)."""
    # exp(-gamma |x - y|^2) = E[2 cos(w.x + b) cos(w.y + b)], w ~ N(0, 2 gamma I), b ~ U(0, 2 pi):
    # the columns sqrt(2/m) cos(w_j.x + b_j) have inner products that approximate it to order
    # 1/sqrt(m) for any rows. Lopez-Paz, Sra, Smola, Ghahramani and Scholkopf (2014), Randomized
    # nonlinear component analysis, ICML 2014; Rahimi and Recht (2007), Random features for
    # large-scale kernel machines, NIPS 20.
    features = RBFSampler(gamma=gamma, n_components=n_features, random_state=random_state)
    return make_pipeline(features, PCA(n_components, svd_solver="full"))


class ParametrisedSet(NamedTuple):
    """Points of a parametrised family whose feature vectors approximate the components."""

    parameters: Matrix  # (m, p)
    points: Matrix  # (m, d)
    coefficients: Matrix  # (m, q): V_a ~ sum_j beta_ja phi(z_j)
    rho: Matrix  # (q,), unexplained share of the squared length of V_a


def parametrised_set(
    subspace: KernelSubspace,
    family: Callable[[Matrix], Matrix],
    start: Matrix,
    *,
    max_iter: int = 200,
) -> ParametrisedSet:
    """Return parameters of a smooth family whose points best explain the components.

    The search finds the local minimum nearest to ``start`` (m, p), whose rows should differ.
    """
    # Approximate each component V_a by a sum over few interpretable points z(theta_j), such as an
    # image moved by theta_j or a curve of slope theta_j. Minimise over theta and beta
    #     sum_a rho_a,  rho_a = |V_a - sum_j beta_ja phi(z(theta_j))|^2.
    # For given points, beta solves linear equations, so L-BFGS searches over theta alone, with
    # numerical gradients. Scholkopf, Smola and Muller (1996), 4.5 and eq. 25-27.
    # If the fit centred the kernel, use the kernel without centring.
    kernel = about_origin(subspace.kernel)
    prepared = kernel.against(subspace.points)

    def solve_coefficients(parameters: Matrix) -> tuple[Matrix, Matrix]:
        """Return the coefficients, and the unexplained part of each component."""
        points = family(parameters)
        inner = prepared(points) @ subspace.weights
        gram = kernel(points)
        gram[np.diag_indices_from(gram)] += JITTER * (np.trace(gram) / len(gram) or 1.0)
        coefficients = cho_solve(cho_factor(gram), inner)
        return coefficients, 1.0 - np.einsum("ja,ja->a", inner, coefficients)

    with one_blas_thread():
        result = minimize(
            lambda flat: float(solve_coefficients(flat.reshape(start.shape))[1].sum()),
            start.ravel(),
            method="L-BFGS-B",
            options={"maxiter": max_iter, "ftol": 1e-12, "gtol": 1e-8},
        )
        parameters: Matrix = result.x.reshape(start.shape)
        coefficients, residual = solve_coefficients(parameters)
    return ParametrisedSet(parameters, family(parameters), coefficients, np.maximum(residual, 0.0))
