"""A column's tail includes the extremes of its distribution and nothing far beyond."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from kpca_apps.novelty.checks.tails import Tail


def fitted(values: NDArray[np.float64], times: float = 1.0) -> Tail:
    tail = Tail.fit(values, times)
    assert tail is not None
    return tail


Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
DRAWS: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.random(n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "log-normal": lambda rng, n: np.exp(2 * rng.normal(size=n)),
    "Pareto": lambda rng, n: rng.pareto(1.0, size=n),
    "rain": lambda rng, n: rng.exponential(size=n) ** 2 * (rng.random(n) < 0.07),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
@pytest.mark.parametrize("n", [300, 3000])
def test_what_a_distribution_draws_belongs_to_its_tail(draw: Draw, n: int) -> None:
    rng = np.random.default_rng(0)
    tables = [draw(rng, n) for _ in range(20)]
    tails = [(values, Tail.fit(values)) for values in tables]
    assert sum(tail is not None and bool(values.max() > tail.limit) for values, tail in tails) == 0


def test_the_tail_bound_holds_for_exponential_values() -> None:
    """The bound is 0.5 to 30 times the expected number of exponential values beyond a limit."""
    tail = fitted(np.random.default_rng(1).exponential(size=5000))
    far = np.array([8.0, 10.0])
    true = 5000 * np.exp(-far)
    assert (tail.expected(far) >= 0.5 * true).all() and (tail.expected(far) <= 30 * true).all()


@pytest.mark.parametrize("size", [1e2, 1e6, 1e150])
def test_far_values_do_not_extend_the_tail(size: float) -> None:
    values = np.random.default_rng(2).normal(size=2000)
    alone = fitted(np.append(values, [6e1] * 3))
    spoilt = fitted(np.append(values, [size, 2 * size, 3 * size]))
    assert spoilt.limit == pytest.approx(alone.limit) and spoilt.ordinary == values.max()


def test_a_value_half_as_near_makes_another_ordinary_and_more_rows_reach_farther() -> None:
    values = np.random.default_rng(3).normal(size=2000)
    tail = fitted(values)
    # A chain of values, each slightly larger than the last, belongs to the column.
    chain = np.append(values, tail.ordinary + np.arange(1, 12))
    assert fitted(chain).limit > chain.max()
    assert fitted(values, 1000.0).limit > tail.limit


@pytest.mark.parametrize(
    "values", [np.zeros(0), np.zeros(500), np.arange(5.0), np.arange(500) % 3.0]
)
def test_few_values_or_steps_have_no_tail(values: NDArray[np.float64]) -> None:
    assert Tail.fit(values) is None
