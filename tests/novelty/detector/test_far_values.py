"""A far-out value in a small table always ranks near the top."""

import numpy as np
import pytest

from kpca_apps.novelty.detector.estimator import KernelPCANovelty

DISTRIBUTIONS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "uniform": lambda rng, shape: rng.uniform(size=shape),
    "t5": lambda rng, shape: rng.standard_t(5, size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "log-normal": lambda rng, shape: rng.lognormal(0.0, 0.5, size=shape),
    "counts": lambda rng, shape: rng.poisson(8.0, size=shape).astype(float),
    "related": lambda rng, shape: 0.9 * rng.normal(size=(shape[0], 1)) + rng.normal(0, 0.3, shape),
    "two kinds": lambda rng, shape: rng.normal(size=shape) + 6 * (rng.random((shape[0], 1)) < 0.4),
}
FROM_ZERO = ("exponential", "log-normal", "counts")


def drawn_table(seed):
    """Draw a table with one value 11 to 1,000 robust standard deviations from the median."""
    rng = np.random.default_rng([seed, 45])
    shape = int(rng.integers(30, 201)), int(rng.integers(1, 9))
    kind = str(rng.choice(list(DISTRIBUTIONS)))
    X = DISTRIBUTIONS[kind](rng, shape)
    row, column = (int(rng.integers(size)) for size in shape)
    low, median, high = np.quantile(X[:, column], (0.25, 0.5, 0.75))
    side = 1.0 if kind in FROM_ZERO else float(rng.choice([-1.0, 1.0]))
    far = float(np.exp(rng.uniform(np.log(11.0), np.log(1000.0))))
    X[row, column] = median + side * far * (high - low) / 1.349
    return X


def place_of_largest_z(X):
    """Return how many rows score at least as high as the row with the largest robust z."""
    low, median, high = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
    row = (np.abs(X - median) / (high - low)).max(axis=1).argmax()
    scores = KernelPCANovelty(random_state=0).fit(X).novelty_scores_
    return int((scores >= scores[row]).sum())


@pytest.mark.parametrize(("n", "d"), [(60, 1), (200, 2), (200, 4), (1000, 4), (1000, 8)])
@pytest.mark.parametrize("seed", [0, 80, 95])
def test_thirty_among_standard_normal_values_is_first(seed, n, d):
    X = np.random.default_rng(seed).normal(size=(n, d))
    X[42, seed % d] = 30.0
    assert place_of_largest_z(X) == 1


@pytest.mark.release
def test_a_value_ten_robust_deviations_out_is_in_the_first_three():
    assert max([place_of_largest_z(drawn_table(seed)) for seed in range(200)]) <= 3
