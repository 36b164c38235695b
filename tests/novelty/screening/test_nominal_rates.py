"""New rows from the distribution of the reference are flagged at the nominal rate."""

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import betabinom

from kpca_apps import fit_model, load_model, save_model, score_table
from kpca_apps.novelty.detector.fit import half_of
from tests.quick import quick

ALPHA, N, N_NEW, SEEDS = 0.05, 1_500, 1_500, 3
# Confidence of each of six bounds: chance breaks any of them in less than 1 of 1,000 runs.
LEVEL = 1 - 1e-4
FIRST_DAY = np.datetime64("2024-01-01")


def linked_dates(n: int, rng: np.random.Generator) -> pl.DataFrame:
    """Return two dependent dates, which also serve as levels because each day recurs."""
    first = FIRST_DAY + rng.integers(0, 280, n).astype("timedelta64[D]")
    later = first + rng.integers(0, 12, n).astype("timedelta64[D]")
    numbers = {name: rng.normal(size=n) for name in "xyz"}
    return pl.DataFrame({"ordered": first, "shipped": later, **numbers})


def panel(n: int, rng: np.random.Generator) -> pl.DataFrame:
    """Return weights near each person's mean weight, with about six rows per person."""
    person = rng.integers(0, n // 6, n)
    own = np.random.default_rng(7).normal(70, 12, n)[person]
    return pl.DataFrame({"person": [f"id{i}" for i in person], "weight": own + rng.normal(size=n)})


def orders(n: int, rng: np.random.Generator) -> pl.DataFrame:
    """Return orders, amount = quantity x price, from customers who may be new."""
    product, quantity = rng.integers(0, 40, n), rng.integers(1, 13, n)
    price = (5 + 3.5 * product).round(2)
    return pl.DataFrame(
        {
            "customer": [f"C{i:04}" for i in rng.zipf(1.3, n) % 5000],
            "quantity": quantity,
            "price": price,
            "amount": (quantity * price).round(2),
        }
    )


@pytest.mark.parametrize(
    ("calibration", "draw"),
    quick(
        [*product(("leave-one-out", "split"), (linked_dates, panel, orders))],
        ("leave-one-out", panel),
        ("split", linked_dates),
        ("split", orders),
    ),
)
def test_new_rows_like_the_reference_are_flagged_at_the_rate_requested(
    draw, calibration, tmp_path: Path
) -> None:
    counts, n_calibrating = [], 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        model = fit_model(draw(N, rng), alpha=ALPHA, calibration=calibration, seed=seed)
        n_calibrating = len(model.detector.calibration_scores)
        save_model(model, tmp_path / "m.kpca")
        scored = score_table(load_model(tmp_path / "m.kpca"), draw(N_NEW, rng), explain=0)
        counts.append(scored.n_flagged)
    assert n_calibrating == (N if calibration == "leave-one-out" else N - N // 2)
    # Given the reference, the rate of a conformal threshold is Beta distributed.
    rank = int((n_calibrating + 1) * ALPHA)
    of_fit = betabinom(N_NEW, rank, n_calibrating + 1 - rank)
    of_all = np.ones(1)
    for _ in range(SEEDS):
        of_all = np.convolve(of_all, of_fit.pmf(np.arange(N_NEW + 1)))
    most = int(np.searchsorted(np.cumsum(of_all), LEVEL))
    assert 0 < sum(counts) <= most


def test_nothing_is_learned_from_rows_that_calibrate_a_split() -> None:
    n, rng = 300, np.random.default_rng(0)
    first, other = orders(n, rng), orders(n, rng)
    # The tables differ only in the half of the rows that calibrates.
    held = ~np.isin(np.arange(n), half_of(n, 0))
    second = first.with_columns(
        pl.when(pl.Series(held)).then(other[name]).otherwise(first[name]).alias(name)
        for name in first.columns
    )
    models = [fit_model(frame, calibration="split", seed=0) for frame in (first, second)]
    one, two = (model.encoder for model in models)
    assert (one.plan, one.summaries, one.coders) == (two.plan, two.summaries, two.coders)
    assert one.relations.rules == two.relations.rules
    one, two = (model.detector for model in models)
    np.testing.assert_array_equal(one.subspace.points, two.subspace.points)
    np.testing.assert_array_equal(one.subspace.weights, two.subspace.weights)
    np.testing.assert_array_equal(one.neighbours.rows, two.neighbours.rows)
    assert (one.calibration_scores != two.calibration_scores).any()
