"""Smoothed counts of levels equal kernel ridge regression on explicit delta features."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from kpca_apps.novelty.relations.conditional.counts import gain_of, joint_counts


def test_without_a_discount_counts_are_ridge_regression_on_delta_features():
    """The gain in log likelihood equals that of leave-one-out ridge regressions."""
    rng = np.random.default_rng(0)
    given = rng.integers(0, 4, 120)
    value = np.where(rng.random(120) < 0.7, given % 3, rng.integers(0, 3, 120))
    q = (np.bincount(value) + 0.5) / (120 + 2)
    log_q, counts = np.log(np.append(q, 1 - q.sum())), np.bincount(value)
    column = SimpleNamespace(log_q=log_q, counts=counts, nats=-counts @ log_q[:-1] / 120)
    pairs = joint_counts(given, value, 4, 3)
    gain, shrinkage, discount = gain_of(*pairs, column, missing=4)
    assert discount == 0.0
    G, V = np.eye(4)[given], np.eye(3)[value] - q
    likelihood = 0.0
    for i in range(120):
        others = np.arange(120) != i
        model = Ridge(alpha=shrinkage, fit_intercept=False).fit(G[others], V[others])
        p = q + model.predict(G[[i]])[0]
        likelihood += np.log(p[value[i]]) - np.log(q[value[i]])
    assert gain == pytest.approx(likelihood / 120, rel=1e-9)
