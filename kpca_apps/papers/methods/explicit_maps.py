"""The maps behind the homogeneous polynomial kernel, written out: C_d and c_d."""

# (x.y)^d = C_d(x).C_d(y) = c_d(x).c_d(y). Either shows what the kernel spares: at N = 256 and d = 5
# there are 9,525,431,552 monomials. Scholkopf, Smola and Muller (1996), eq. 19-22 and B.1, where
# some slips are put right here: section 3 writes p for d in the dimension; B.1 gives the
# coefficient of a monomial with n equal factors as sqrt((d - n + 1)!), which holds where all
# factors differ or all are equal; x1^2 x2 has sqrt(3) and not sqrt(2), and monomials of d different
# factors weigh sqrt(2) times those of d - 1, not sqrt(d).

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations_with_replacement, product

import numpy as np

from kpca_apps.system.arrays import Matrix


def ordered_products(X: Matrix, degree: int) -> Matrix:
    """Return C_d: the products of d entries in every order, shape ``(n, N^d)``."""
    chosen = product(range(X.shape[1]), repeat=degree)
    return np.column_stack([np.prod(X[:, factors], axis=1) for factors in map(list, chosen)])


def monomials(X: Matrix, degree: int) -> Matrix:
    """Return c_d: each monomial of degree d, weighted, shape ``(n, C(N + d - 1, d))``."""
    # sqrt(d! / (n_1! ... n_N!)) x_1^n_1 ... x_N^n_N over all n_1 + ... + n_N = d: the root is that
    # of the number of orders of its factors.
    columns = []
    for factors in combinations_with_replacement(range(X.shape[1]), degree):
        repeats = math.prod(math.factorial(count) for count in Counter(factors).values())
        orders = math.factorial(degree) // repeats
        columns.append(math.sqrt(orders) * np.prod(X[:, list(factors)], axis=1))
    return np.column_stack(columns)


def monomial_count(n_features: int, degree: int) -> int:
    """Return C(N + d - 1, d), the dimension of the feature space of (x.y)^d."""
    return math.comb(n_features + degree - 1, degree)
