"""Normal scores of ranks against those of each value by itself."""

import numpy as np
import pytest
from scipy.special import ndtri

from kpca_apps.novelty.detector.views import ColumnScales


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "few values", "one value"])
@pytest.mark.parametrize("n", [2, 300])
def test_scores_are_those_of_midranks(n, kind):
    rng = np.random.default_rng(n)
    values = rng.normal(size=n)
    if kind == "heavy tails":
        values = np.exp(9.0 * values)
    elif kind == "few values":
        values = np.round(values)
    elif kind == "one value":
        values[:] = 3.0
    ordered = np.sort(values)
    x = np.append(ordered, ordered[0] + (ordered[-1] - ordered[0]) * rng.random(50))
    x = np.clip(x, ordered[0], ordered[-1])
    both = np.column_stack([ordered, -ordered[::-1]])
    scales = ColumnScales(*[np.ones(2)] * 8, order_statistics=both)
    scores = scales._normal_scores(np.stack([x, -x]))
    ranks = (np.searchsorted(ordered, x, "left") + np.searchsorted(ordered, x, "right")) / 2
    np.testing.assert_allclose(scores[0], ndtri((ranks + 0.5) / (n + 1)), atol=1e-12)
    np.testing.assert_allclose(scores[1], -scores[0], atol=1e-12)
