"""What a scikit-learn user meets: sparse rows, and parameters that say nothing."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from kpca_apps import KernelPCANovelty, KpcaWarning

ROWS = np.random.default_rng(0).normal(size=(120, 4)) * (np.arange(480).reshape(120, 4) % 3 > 0)


def test_sparse_rows_are_scored_as_dense_ones() -> None:
    dense = KernelPCANovelty(random_state=0).fit(ROWS)
    sparse = KernelPCANovelty(random_state=0).fit(csr_array(ROWS))
    np.testing.assert_array_equal(sparse.novelty_scores_, dense.novelty_scores_)
    np.testing.assert_array_equal(
        sparse.score_samples(csr_array(ROWS[:9])), dense.score_samples(ROWS[:9])
    )


@pytest.mark.parametrize(
    ("options", "name"),
    [({"alpha": 0.1}, "alpha=0.1"), ({"contaminated": False, "share": 0.1}, "share=0.1")],
)
def test_a_parameter_without_effect_is_told(options: dict[str, float], name: str) -> None:
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
