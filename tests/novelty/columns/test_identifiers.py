"""Which columns of numbers name rows, and which measures that happen not to repeat do not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.novelty.columns.plan import ColumnOptions, ColumnSpec, infer_plan, inferred_spec
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.values import Column

RNG = np.random.default_rng(0)
SPARSE = RNG.choice(10**9, 60, replace=False)
DENSE = RNG.choice(900, 300, replace=False)


def spec_of(values: object, name: str = "x") -> ColumnSpec:
    texts = [str(value) for value in values]  # type: ignore[attr-defined]
    return inferred_spec(Column(pl.Series(name, texts)), None, False)


@pytest.mark.parametrize(
    ("values", "name", "reason"),
    [
        (range(7, 47), "x", "in steps of 1"),
        (range(0, 400, 10), "x", "chance gives 19 repeats"),
        (DENSE, "x", "chance gives"),
        (DENSE * 1000 + 77, "x", "chance gives"),
        ([*DENSE, DENSE[5]], "x", "repeat 1 times, where chance gives"),
        (SPARSE, "PID", "named as an identifier"),
        (SPARSE, "customerId", "named as an identifier"),
        (10**9 + SPARSE, "order no", "named as an identifier"),
        ([f"{value:010d}" for value in SPARSE], "x", "leading zeros"),
        ([4 * 10**17 + int(value) for value in SPARSE], "x", "16 digits"),
    ],
)
def test_identifiers_are_left_out_and_say_how_to_keep_them(
    values: object, name: str, reason: str
) -> None:
    spec = spec_of(values, name)
    assert (spec.role, spec.used) == ("identifier", False)
    assert reason in spec.why and "--numeric keeps it" in spec.why
    # A run of row numbers is no loss; all else is said, for it might be a measure.
    assert bool(spec.notes) == ("steps of 1" not in reason)
    assert all("--numeric" in note and reason in note for note in spec.notes)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (SPARSE, "population"),
        (SPARSE, "number"),
        (SPARSE, "number of rooms"),
        (SPARSE, "Reynolds number"),
        (10**9 + SPARSE, "number"),
        (SPARSE, "paid"),
        (np.round(np.exp(RNG.normal(8, 1.5, 60))).astype(int), "income"),
        (DENSE, "year"),
        (DENSE, "finishing rank"),
        (DENSE - 400, "change"),
        (DENSE + 0.5, "x"),
        ([f"{value}%" for value in DENSE], "x"),
        (range(0, 90, 10), "dose"),
    ],
)
def test_measures_that_do_not_repeat_stay_in_the_model(values: object, name: str) -> None:
    assert spec_of(values, name).role == "numeric"


def test_a_kept_identifier_is_used() -> None:
    frame = pl.DataFrame({"x": DENSE, "y": RNG.normal(size=300)})
    plan = infer_plan(table_from_frame(frame), ColumnOptions(numeric=("x",)))
    assert [spec.role for spec in plan.specs] == ["numeric", "numeric"]


@given(st.integers(0, 2**32 - 1), st.integers(30, 400), st.floats(0.3, 3), st.floats(3, 14))
def test_measures_drawn_by_chance_are_kept_even_where_none_happens_to_repeat(
    seed: int, n: int, spread: float, size: float
) -> None:
    values = np.exp(np.random.default_rng(seed).normal(size, spread, n)).astype(np.int64)
    # One repeat may be left out by chance; ten that are expected are not.
    assert spec_of(np.unique(values) if len(np.unique(values)) > 0.99 * n else values).role in {
        "numeric",
        "categorical",
        "constant",
    }
