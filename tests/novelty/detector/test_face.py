from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from kpca_apps import KernelPCA, KernelPCANovelty, KpcaWarning

ROWS = np.random.default_rng(0).normal(size=(120, 4)) * (np.arange(480).reshape(120, 4) % 3 > 0)


def test_sparse_rows_are_scored_as_dense_ones() -> None:
    dense = KernelPCANovelty(random_state=0).fit(ROWS)
    sparse = KernelPCANovelty(random_state=0).fit(csr_array(ROWS))
    np.testing.assert_array_equal(sparse.novelty_scores_, dense.novelty_scores_)
    np.testing.assert_array_equal(
        sparse.score_samples(csr_array(ROWS[:9])), dense.score_samples(ROWS[:9])
    )


@pytest.mark.parametrize("convert", [np.asarray, csr_array, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("contaminated", [True, False])
def test_rows_of_float32_are_judged_as_in_float64_and_scored_in_float32(
    convert: Callable[[Any], Any], contaminated: bool
) -> None:
    """The dtypes are as in scikit-learn's `test_lof_input_dtype_preservation`."""
    detector = KernelPCANovelty(contaminated=contaminated, random_state=0)
    rows = ROWS.astype(np.float32)
    wide = detector.fit(convert(rows.astype(np.float64)))
    labels, scores = wide.training_labels_, wide.novelty_scores_
    new = np.concatenate([rows, rows + 3])
    wide_scores = wide.score_samples(convert(new.astype(np.float64)))
    wide_labels = wide.predict(convert(new.astype(np.float64)))
    assert wide_scores.dtype == np.float64
    detector.fit(convert(rows))
    np.testing.assert_array_equal(detector.training_labels_, labels)
    np.testing.assert_array_equal(detector.novelty_scores_, scores)
    np.testing.assert_array_equal(detector.predict(convert(new)), wide_labels)
    for actual, expected in (
        (detector.score_samples(convert(new)), wide_scores),
        (detector.decision_function(convert(new)), wide_scores - detector.offset_),
    ):
        assert actual.dtype == np.float32
        np.testing.assert_array_equal(actual, expected.astype(np.float32))
    assert detector.novelty_scores(convert(new)).dtype == np.float64


@pytest.mark.parametrize("preimage", ["fixed-point", "ridge"])
def test_projections_and_what_comes_of_them_are_as_wide_as_the_rows(preimage: Any) -> None:
    for dtype in (np.float32, np.float64):
        rows = ROWS.astype(dtype)
        model = KernelPCA(3, preimage=preimage, random_state=0).fit(rows)
        projected = model.transform(rows)
        arrays = (projected, model.inverse_transform(projected), model.reconstruction_error(rows))
        assert {array.dtype for array in arrays} == {np.dtype(dtype)}


@pytest.mark.parametrize(
    ("options", "name"),
    [({"alpha": 0.1}, "alpha=0.1"), ({"contaminated": False, "share": 0.1}, "share=0.1")],
)
def test_a_parameter_without_effect_is_reported(options: dict[str, float], name: str) -> None:
    with pytest.warns(KpcaWarning, match=f"^{name} has no effect"):
        KernelPCANovelty(random_state=0, **options).fit(ROWS)  # type: ignore[arg-type]


def test_parameters_with_an_effect_are_not() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelPCANovelty(random_state=0, share=0.05).fit(ROWS)
        KernelPCANovelty(random_state=0, contaminated=False, alpha=0.2).fit(ROWS)


WRONG = """
import kpca_apps
from kpca_apps import KernelPCA, KernelPCANovelty

kpca_apps.screen_tabel
KernelPCA(kernel="rbff")
KernelPCA(preimage="fixedpoint")
KernelPCANovelty(calibration="splitt")
"""


@pytest.mark.release
def test_a_type_checker_finds_slips(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(WRONG)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(tmp_path / "wrong.py")],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error" in line}
    assert lines == {5, 6, 7, 8}, done.stdout
