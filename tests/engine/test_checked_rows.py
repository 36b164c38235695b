"""The estimators name the column of a data frame that is not numeric."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kpca_apps import InputError, KernelPCA, KernelPCANovelty

NUMBERS = pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0) ** 2})


@pytest.mark.parametrize(
    ("cells", "held"),
    [
        (list("xyzxyzxyz"), r"text \('x'\)"),
        ([1, "two", *range(7)], r"text \('two'\)"),
        (pd.Categorical(list("xyzxyzxyz")), r"text \('x'\)"),
        (pd.date_range("2020", periods=9), "dates"),
        (pd.to_timedelta(range(9), unit="D"), "durations"),
        (pd.period_range("2020", periods=9), "a Period"),
        (pd.array([1, None, *range(7)], dtype="Int64"), "missing values"),
        ([1.0, None, *range(7)], "missing values"),
        (NUMBERS["a"] * 1j, "complex numbers"),
    ],
)
def test_the_column_at_fault_is_named_in_one_line(cells: Any, held: str) -> None:
    frame = NUMBERS.assign(b=cells)
    for estimator in (KernelPCANovelty(), KernelPCA(2)):
        words = f"^Column 'b' holds {held}; {type(estimator).__name__} takes finite numbers alone"
        with pytest.raises(InputError, match=words) as caught:
            estimator.fit(frame)
        assert "kpca_apps.screen_table" in str(caught.value) and "\n" not in str(caught.value)


def test_new_rows_and_polars_are_checked_too() -> None:
    fitted = KernelPCANovelty().fit(NUMBERS)
    with pytest.raises(InputError, match="'b'"):
        fitted.score_samples(NUMBERS.assign(b="x"))
    with pytest.raises(InputError, match="'kind'"):
        KernelPCA(2).fit(pl.DataFrame({"size": [1.0, 2, 3], "kind": ["x", "y", "z"]}))


def test_other_faults_are_reported_by_scikit_learn() -> None:
    with pytest.raises(ValueError, match="contains infinity"):
        KernelPCA(2).fit(NUMBERS.assign(b=np.inf))
    with pytest.raises(ValueError, match="feature names"):
        KernelPCA(2).fit(NUMBERS).transform(NUMBERS.rename(columns={"b": "c"}))
    with pytest.raises(ValueError):
        KernelPCA(2).fit([["x", 1.0], ["y", 2.0], ["z", 3.0]])
    assert KernelPCANovelty().fit(NUMBERS.assign(b=list("123456789"))).n_features_in_ == 2
