from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from kpca_apps.errors import ConfigError, InputError, ModelFileError
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions, load_model, save_model
from kpca_apps.novelty.screening.run import score
from kpca_apps.tables.frames import table_from_frame
from tests.novelty.tables import correlated
from tests.system.model_parts import read_parts, write_parts


@pytest.mark.parametrize(
    "options",
    [
        ScreeningOptions(alpha=0.1),
        ScreeningOptions(share=0.05, calibration="split"),
        ScreeningOptions(kernel="rbf", sigma=30.0, n_components=4),
        ScreeningOptions(kernel="linear"),
        ScreeningOptions(kernel="laplacian", gamma=0.01),
    ],
    ids=str,
)
@pytest.mark.parametrize("clean", [True, False])
def test_a_saved_model_scores_as_before_to_the_bit(
    options: ScreeningOptions, clean: bool, tmp_path: Path
) -> None:
    if not clean:
        options = replace(options, alpha=None, calibration="auto")
    model = fit_table(correlated(60), options, clean=clean)[0]
    save_model(model, tmp_path / "m.kpca")
    again = load_model(tmp_path / "m.kpca")
    new = correlated(20, seed=1, odd=3)
    before, after = score(model, new), score(again, new)
    assert before.scores.tobytes() == after.scores.tobytes()
    assert before.ranked == after.ranked
    assert before.threshold == after.threshold
    assert again.warnings == model.warnings
    assert again.options == model.options


def test_the_same_fit_saves_the_same_bytes(tmp_path: Path) -> None:
    for name, jobs in (("a", None), ("b", 2)):
        save_model(fit_table(correlated(40), ScreeningOptions(jobs=jobs))[0], tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_sigma_and_gamma_name_the_same_width() -> None:
    by_sigma = ScreeningOptions(kernel="rbf", sigma=50.0)
    by_gamma = ScreeningOptions(kernel="rbf", gamma=1 / 5000)
    a, b = (fit_table(correlated(40), options)[0] for options in (by_sigma, by_gamma))
    np.testing.assert_allclose(a.training_scores, b.training_scores, rtol=1e-12)


@pytest.mark.parametrize(
    ("n", "options", "clean", "message"),
    [
        (40, {"n_components": 20}, True, "--components 20 would span all that 20 training rows"),
        (40, {"n_components": 9, "n_landmarks": 9}, True, "would span all that 9 landmarks can"),
        (40, {"count": 40}, False, "every one of the 40 rows"),
        (40, {"calibration": "split"}, False, "needs a clean reference: give one with --reference"),
        (2, {}, True, "birds: 2 rows"),
    ],
)
def test_what_the_rows_cannot_bear_is_refused(
    n: int, options: dict[str, Any], clean: bool, message: str
) -> None:
    with pytest.raises(InputError if n == 2 else ConfigError, match=message):
        fit_table(correlated(n), ScreeningOptions(**options), clean=clean)


def test_a_count_is_checked_against_the_table_judged_not_the_reference() -> None:
    model = fit_table(correlated(20), ScreeningOptions(count=25), clean=True)[0]
    assert score(model, correlated(40, seed=1)).n_flagged == 25
    with pytest.raises(ConfigError, match="25 rows"):
        score(model, correlated(25, seed=1))


def test_too_few_clean_rows_are_said_once() -> None:
    for options in (ScreeningOptions(alpha=0.01), ScreeningOptions(share=0.1)):
        model = fit_table(correlated(15), options, clean=True)[0]
        said = [text for text in score(model, correlated(20)).warnings if "few" in text]
        assert len(said) == (options.alpha is not None), said


def test_other_versions_are_said_and_other_files_refused(tmp_path: Path) -> None:
    model = fit_table(correlated(40))[0]
    save_model(replace(model, versions={**model.versions, "numpy": "0.9"}), tmp_path / "m.kpca")
    assert "fitted with numpy 0.9 (here" in load_model(tmp_path / "m.kpca").warnings[-1]

    meta, arrays = read_parts(tmp_path / "m.kpca")
    write_parts(tmp_path / "other.kpca", {**meta, "kind": "else"}, arrays)
    with pytest.raises(ModelFileError, match=r"other\.kpca: not a novelty model"):
        load_model(tmp_path / "other.kpca")


def test_every_missing_part_is_one_line_of_damage(tmp_path: Path) -> None:
    save_model(fit_table(correlated(40))[0], tmp_path / "m.kpca")
    meta, arrays = read_parts(tmp_path / "m.kpca")
    for name in ("encoder", "detector", "rule", "options", "source", "versions", "warnings"):
        kept = {key: value for key, value in meta["model"].items() if key != name}
        write_parts(tmp_path / "bad.kpca", {**meta, "model": kept}, arrays)
        with pytest.raises(ModelFileError, match=rf"`{name}`"):
            load_model(tmp_path / "bad.kpca")
    for name in ("training_scores", "encoder.imputer.mean", "detector.calibration_scores"):
        kept_arrays = {key: value for key, value in arrays.items() if key != name}
        write_parts(tmp_path / "bad.kpca", meta, kept_arrays)
        with pytest.raises(ModelFileError):
            load_model(tmp_path / "bad.kpca")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_row_too_large_for_the_kernel_is_no_bug() -> None:
    model = fit_table(correlated(40), ScreeningOptions(kernel="poly"), clean=True)[0]
    table = correlated(20, seed=1)
    huge = table.frame.with_columns(mass=pl.lit("1e99"))
    with pytest.raises(InputError):
        score(model, replace(table, frame=huge))


@pytest.mark.release
def test_a_model_of_a_wide_table_is_no_larger_than_the_table_and_scores_as_before(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(3)
    causes = rng.normal(size=(1000, 6)) @ rng.normal(size=(6, 1500))
    X = causes + 0.4 * rng.normal(size=causes.shape)
    frame = pl.DataFrame({f"c{j}": column for j, column in enumerate(X.T)})
    model = fit_table(table_from_frame(frame, "wide"), ScreeningOptions())[0]
    save_model(model, tmp_path / "m.kpca")
    frame.write_csv(tmp_path / "table.csv")
    assert (tmp_path / "m.kpca").stat().st_size < (tmp_path / "table.csv").stat().st_size
    gaps = frame[:3].with_columns(c3=pl.lit(None, dtype=pl.Float64))
    new = table_from_frame(gaps, "wide")
    before, after = (score(kept, new) for kept in (model, load_model(tmp_path / "m.kpca")))
    assert before.scores.tobytes() == after.scores.tobytes()
