import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from kpca_apps.novelty.detector.views import NormalScores


def searched(ordered, x):
    ranks = (np.searchsorted(ordered, x, "left") + np.searchsorted(ordered, x, "right")) / 2
    return ndtri((ranks + 0.5) / (len(ordered) + 1))


def looked_up(ordered, x, guess):
    """Return the scores of `x` in `ordered`; check that negated values get the negated scores."""
    both = np.column_stack([ordered, -ordered[::-1]])
    table = NormalScores.fit(both, guess(both))
    values = np.stack([x, -x])
    scores = table(values, guess(values))
    np.testing.assert_allclose(scores[1], -scores[0], atol=1e-12)
    return scores[0]


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 300),
    st.sampled_from(["normal", "heavy tails", "few values", "one far out", "one value"]),
)
def test_scores_are_those_of_a_search(seed, n, kind):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n)
    if kind == "heavy tails":
        values = np.exp(9.0 * values)
    elif kind == "few values":
        values = np.round(values)
    elif kind == "one far out":
        values[0] = 1e300
    elif kind == "one value":
        values[:] = 3.0
    ordered = np.sort(values)
    inside = ordered[0] + (ordered[-1] - ordered[0]) * rng.random(50)
    x = np.concatenate([ordered, np.clip(inside, ordered[0], ordered[-1])])
    guesses = [np.arcsinh, lambda v: np.arcsinh(v) * (1.0 + 1e-15 * rng.normal(size=v.shape))]
    for guess in guesses[: 2 if ordered[0] < ordered[-1] else 1]:
        np.testing.assert_allclose(looked_up(ordered, x, guess), searched(ordered, x), atol=1e-12)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_values_that_crowd_into_one_cell_are_found(share):
    rng = np.random.default_rng(0)
    values = np.where(rng.random(1000) < share, 1e-9 * rng.normal(size=1000), rng.normal())
    ordered = np.sort(np.append(values, 1e6))
    np.testing.assert_allclose(
        looked_up(ordered, values, np.arcsinh), searched(ordered, values), atol=1e-12
    )
