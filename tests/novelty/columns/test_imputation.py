"""Imputation by conditional means equals the textbook formula, solved row by row."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from kpca_apps.errors import MemoryLimitError, ModelFileError
from kpca_apps.novelty.columns import imputation
from kpca_apps.novelty.columns.imputation import ConditionalMeanImputer, LowRankPrecision
from tests.system.model_parts import from_file, model_from, parts_of


def gappy(n: int = 400, d: int = 6, share: float = 0.2) -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d))
    x = 100 + 10 * x
    holes = x.copy()
    holes[rng.random(x.shape) < share] = np.nan
    return x, holes


def dense(imputer: ConditionalMeanImputer) -> NDArray:
    if isinstance(imputer.precision, LowRankPrecision):
        factor = imputer.precision.factor
        return np.eye(factor.shape[1]) / imputer.precision.rest - factor.T @ factor
    return imputer.precision


def by_regression(z: NDArray, covariance: NDArray) -> NDArray:
    """Fill the gaps of a row of z-scores by regression on its other columns."""
    gaps, z = np.isnan(z), z.copy()
    inner = covariance[np.ix_(~gaps, ~gaps)]
    z[gaps] = covariance[np.ix_(gaps, ~gaps)] @ np.linalg.solve(inner, z[~gaps])
    return z


# Numbers of training rows and columns, for a full and a low-rank precision matrix.
@pytest.mark.parametrize(("n", "d"), [(400, 6), (1, 40), (5, 40), (39, 40)])
def test_a_row_is_filled_by_regression_on_its_observed_columns(n: int, d: int) -> None:
    """Rows have 1 to d gaps; each row is filled independently of the other rows."""
    x, _ = gappy(n=n + d, d=d)
    z = (x[:n] - x[:n].mean(axis=0)) / np.where(n > 1, x[:n].std(axis=0), 1)
    z = np.clip(z, -4, 4)
    covariance = 0.95 * z.T @ z / n + 0.05 * np.eye(d)
    imputer = ConditionalMeanImputer.fit(x[:n])
    np.testing.assert_allclose(dense(imputer), np.linalg.inv(covariance), atol=1e-8)
    later, rng = x[n:].copy(), np.random.default_rng(n)
    for m in range(1, d + 1):
        later[m - 1, rng.permutation(d)[:m]] = np.nan
    later = np.vstack([later, later + 1.0])  # two rows for each number of gaps
    filled = imputer.fill(later)
    for row, values in zip(later, filled, strict=True):
        own = np.clip((row - imputer.mean) / imputer.scale, -4, 4)
        expected = imputer.mean + imputer.scale * by_regression(own, covariance)
        gaps = np.isnan(row)
        np.testing.assert_allclose(values[gaps], expected[gaps], rtol=1e-9)
        np.testing.assert_array_equal(values[~gaps], row[~gaps])
    np.testing.assert_array_equal(np.vstack([imputer.fill(row[None]) for row in later]), filled)
    np.testing.assert_array_equal(from_file(imputer).fill(later), filled)


def test_fill_is_much_nearer_than_the_mean() -> None:
    x, holes = gappy()
    gaps = np.isnan(holes)
    error = np.sqrt(np.mean((ConditionalMeanImputer.fit(holes).fill(holes) - x)[gaps] ** 2))
    assert error < 0.5 * np.sqrt(np.mean((np.nanmean(holes, axis=0) - x)[gaps] ** 2))


def test_columns_whose_pairs_exceed_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imputation, "available_bytes", lambda: 4 * 8 * 100**2 - 1)
    with pytest.raises(MemoryLimitError, match="100 columns of values need about"):
        ConditionalMeanImputer.fit(np.zeros((100, 100)))
    assert ConditionalMeanImputer.fit(np.zeros((99, 100))).fill(np.zeros((1, 100))).shape == (
        1,
        100,
    )


def test_sweeps_over_few_rows_with_gaps_equal_those_of_the_dense_formula() -> None:
    _, holes = gappy(n=20, d=30, share=0.3)
    imputer = ConditionalMeanImputer.fit(holes)
    z = np.clip((holes - imputer.mean) / imputer.scale, -4, 4)
    complete = np.where(np.isnan(z), 0.0, z)
    for _ in range(2):
        covariance = 0.95 * complete.T @ complete / 20 + 0.05 * np.eye(30)
        complete = np.array([by_regression(row, covariance) for row in z])
    covariance = 0.95 * complete.T @ complete / 20 + 0.05 * np.eye(30)
    np.testing.assert_allclose(np.linalg.inv(dense(imputer)), covariance, atol=1e-10)


def test_few_rows_of_many_columns_take_memory_of_their_cells_alone() -> None:
    _, holes = gappy(n=5, d=3000)
    holes[0] = np.nan  # a row with no observed cell
    tracemalloc.start()
    imputer = ConditionalMeanImputer.fit(holes)
    imputer.fill(holes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 3000**2 / 10
    assert sum(array.nbytes for array in parts_of(imputer)[1].values()) == (5 + 2) * 3000 * 8


@pytest.mark.parametrize("damage", ["lacks", "large", "indefinite", "rows", "nan", "type"])
def test_a_factor_that_makes_no_precision_is_refused(damage: str) -> None:
    model, arrays = parts_of(ConditionalMeanImputer.fit(gappy(n=5, d=12)[0]))
    factor = arrays.pop("precision.factor")
    bad = {
        "large": factor * 1e200,
        "indefinite": factor * 1.5,
        "rows": np.zeros((12, 12)),
        "nan": factor * np.nan,
        "type": factor.astype(np.float32),
    }
    if damage in bad:
        arrays["precision.factor"] = bad[damage]
    with pytest.raises(ModelFileError):
        model_from(ConditionalMeanImputer, model, arrays)


@pytest.mark.parametrize("value", [np.nan, 7.0])
def test_columns_without_spread_or_values(value: float) -> None:
    _, holes = gappy()
    holes[:, 2] = value
    filled = ConditionalMeanImputer.fit(holes).fill(np.full((1, 6), np.nan))
    assert np.isfinite(filled).all()
    assert filled[0, 2] == (0.0 if np.isnan(value) else value)


def test_pairs_never_seen_together_still_give_a_finite_fill() -> None:
    x, _ = gappy(d=3)
    x[::2, 0] = np.nan
    x[1::2, 1] = np.nan
    assert np.isfinite(ConditionalMeanImputer.fit(x).fill(x)).all()


FILL_A_WIDE_TABLE = """
import hashlib
import numpy as np
from kpca_apps.novelty.columns.imputation import ConditionalMeanImputer
rng = np.random.default_rng(0)
x = rng.normal(size=(1500, 300))
x[rng.random(x.shape) < 0.05] = np.nan
imputer = ConditionalMeanImputer.fit(x)
print(hashlib.sha256(imputer.precision.tobytes() + imputer.fill(x).tobytes()).hexdigest())
"""


@pytest.mark.release
def test_bytes_do_not_depend_on_the_threads_of_the_linear_algebra() -> None:
    digests = set()
    for threads in ("1", "2"):
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        done = subprocess.run(
            [sys.executable, "-c", FILL_A_WIDE_TABLE],
            env={**os.environ, **dict.fromkeys(names, threads)},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def test_one_absurd_cell_does_not_spoil_what_gaps_are_filled_with():
    x = np.random.default_rng(0).normal(1980.0, 30.0, size=(300, 2))
    x[:, 1] = x[:, 0] + 1.0
    x[7, 0] = np.nan
    sound = ConditionalMeanImputer.fit(x).fill(x)[7, 0]
    x[5, 0] = 1_998_000.0
    assert ConditionalMeanImputer.fit(x).fill(x)[7, 0] == pytest.approx(sound, abs=3.0)


def test_many_columns_keep_their_leading_directions_and_fill_nearly_as_well() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=(700, 5)) @ rng.normal(size=(5, 600)) + 0.3 * rng.normal(size=(700, 600))
    holes = np.where(rng.random(x.shape) < 0.02, np.nan, x)
    imputer = ConditionalMeanImputer.fit(holes)
    assert isinstance(imputer.precision, LowRankPrecision)
    assert imputer.precision.factor.shape == (128, 600)
    imputer.precision.validate()
    gaps = np.isnan(holes)
    errors = (imputer.fill(holes) - x)[gaps]
    # The residual is little more than the noise of a cell; the column mean would leave 2.3.
    assert errors.std() < 0.45
    # The covariance of z-scores explains all variance: its trace is the number of columns.
    assert np.trace(np.linalg.inv(dense(imputer))) == pytest.approx(600, rel=0.02)
