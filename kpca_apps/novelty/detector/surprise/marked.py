"""Weights of the parts of a score, fitted to a few rows that a reader marked as wrong or fine.

The score of a row is the logarithm of a sum of terms, s = log sum_j f_j t_j; all factors f_j are 1
before anything is marked. With d_j = log f_j, wrong rows i and fine rows k, they minimise

    m mean_ik log(1 + exp(s_k - s_i)) + (L/2) |d|^2,    m = 2 n_wrong n_fine / (n_wrong + n_fine)

the logistic loss of ordering pairs, as of m rows of each kind, and a penalty that holds the factors
near 1 as long as few rows are marked. A factor that all terms have in common changes no order, and
costs; so it stays 1.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.system.arrays import BoolArray, FloatArray

FEWEST = 5  # rows that are marked, for any change
PENALTY = 10.0  # L
FARTHEST = np.log(10.0)  # |d_j|


def factors_by_marks(terms: FloatArray, wrong: BoolArray, fine: BoolArray) -> FloatArray:
    """Return factors (j,) of the terms (j, n), which are logarithms; 1 where too few are marked."""
    none = np.ones(len(terms))
    if wrong.sum() + fine.sum() < FEWEST or not (wrong.any() and fine.any()):
        return none
    # Loaded here: few screenings have marks.
    from scipy.optimize import minimize

    of_wrong, of_fine = terms[:, wrong], terms[:, fine]
    n_pairs = of_wrong.shape[1] * of_fine.shape[1]
    m = 2.0 * n_pairs / (of_wrong.shape[1] + of_fine.shape[1])

    def scored(of: FloatArray, logs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return scores (n,), and how much of each every term is (j, n): their gradient."""
        shifted = of + logs[:, None]
        scores = np.logaddexp.reduce(shifted, axis=0)
        return scores, np.exp(shifted - scores)

    def loss(logs: FloatArray) -> tuple[float, FloatArray]:
        (up, of_up), (down, of_down) = scored(of_wrong, logs), scored(of_fine, logs)
        gaps = down[None, :] - up[:, None]
        # The derivative of log(1 + exp(x)).
        slopes = np.exp(-np.logaddexp(0.0, -gaps)) * (m / n_pairs)
        gradient = of_down @ slopes.sum(axis=0) - of_up @ slopes.sum(axis=1)
        value = m * float(np.logaddexp(0.0, gaps).mean())
        return value + PENALTY / 2 * float(logs @ logs), gradient + PENALTY * logs

    bounds = [(-FARTHEST, FARTHEST)] * len(terms)
    found = minimize(loss, np.zeros(len(terms)), jac=True, method="L-BFGS-B", bounds=bounds)
    factors: FloatArray = np.exp(found.x)
    return factors
