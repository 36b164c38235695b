from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.errors import ConfigError, InputError, ModelFileError
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.detector.threshold import Rule
from kpca_apps.novelty.run import score
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions, load_model, resolve_rule, save_model
from kpca_apps.tables.frames import table_from_frame
from tests.novelty.tables import correlated
from tests.system.model_parts import from_file, read_parts, write_parts

HARD: dict[str, Any] = {"method": "hoffmann"}


@pytest.mark.parametrize(
    "options",
    [
        ScreeningOptions(alpha=0.1),
        ScreeningOptions(share=0.05, calibration="split"),
        ScreeningOptions(method="hoffmann"),
        ScreeningOptions(method="hoffmann", sigma=2.0, components=4),
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
    assert before.rows.scores.tobytes() == after.rows.scores.tobytes()
    assert before.ranked == after.ranked and before.threshold == after.threshold
    assert again.warnings == model.warnings and again.options == model.options


def test_the_same_fit_saves_the_same_bytes(tmp_path: Path) -> None:
    for name, jobs in (("a", None), ("b", 2)):
        save_model(fit_table(correlated(40), ScreeningOptions(jobs=jobs))[0], tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("n", "options", "clean", "message"),
    [
        (40, HARD | {"components": 20}, True, "^--components 20 is too much for 20 training rows"),
        (40, {"count": 40}, False, "every one of the 40 rows"),
        (
            40,
            {"calibration": "split"},
            False,
            "--calibration split needs rows known to be normal: give a clean reference",
        ),
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


def test_too_few_clean_rows_are_stated_once() -> None:
    for options in (ScreeningOptions(alpha=0.01), ScreeningOptions(share=0.1)):
        model = fit_table(correlated(15), options, clean=True)[0]
        notes = [text for text in score(model, correlated(20)).run.warnings if "few" in text]
        assert len(notes) == (options.alpha is not None), notes


def test_other_versions_are_stated_and_other_files_refused(tmp_path: Path) -> None:
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
    new = table_from_frame(frame[:3].with_columns(c3=pl.lit(None, dtype=pl.Float64)), "wide")
    before, after = (score(kept, new) for kept in (model, load_model(tmp_path / "m.kpca")))
    assert before.rows.scores.tobytes() == after.rows.scores.tobytes()


def test_without_a_rule_a_table_gets_a_share_and_a_clean_model_a_rate() -> None:
    assert resolve_rule(ScreeningOptions(), clean=False) == Rule("share", 0.01)
    assert resolve_rule(ScreeningOptions(), clean=True) == Rule("alpha", 0.05)
    assert resolve_rule(ScreeningOptions(), clean=True, default=Rule("count", 3)).name == "count"
    assert resolve_rule(ScreeningOptions(fdr=0.1), clean=True) == Rule("fdr", 0.1)


@pytest.mark.parametrize("rule", [{"alpha": 0.1}, {"fdr": 0.1}])
def test_a_rate_without_clean_rows_is_refused_with_the_reason(rule: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="needs rows known to be normal"):
        resolve_rule(ScreeningOptions(**rule), clean=False)


@pytest.mark.parametrize("rule", [{"share": 0.0}, {"share": 1.0}, {"count": 0}, {"alpha": 1.5}])
def test_a_rule_outside_its_range_is_refused(rule: dict[str, float]) -> None:
    name = next(iter(rule))
    with pytest.raises(ConfigError, match=f"^--{name} must be"):
        resolve_rule(ScreeningOptions(**rule), clean=True)  # type: ignore[arg-type]


def test_two_rules_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="--share and --fdr cannot be combined"):
        resolve_rule(ScreeningOptions(share=0.1, fdr=0.1), clean=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (HARD | {"components": 2.5}, "--components must be a whole number, or a share .* got 2.5"),
        ({"seed": 10**6000}, "--seed must be at most .* got a number of thousands"),
        ({"seed": 1.5}, "--seed must be a whole number"),
        ({"jobs": 10**9}, "--jobs must be at most 1,000"),
        ({"ridge": 1e308}, "--ridge must be at most 1e[+]12"),
        ({"ridge": float("inf")}, "--ridge must be at most"),
        ({"ridge": float("nan")}, "--ridge must be a number, got nan"),
        ({"ridge": "x"}, "--ridge must be a number, got 'x'"),
        (HARD | {"sigma": 1e200}, "--sigma must be at most"),
        ({"method": "hofman"}, '--method must be blocks, hoffmann, .* Did you mean "hoffmann"'),
        ({"calibration": "loo"}, "--calibration must be auto, leave-one-out, split"),
        ({"positive": "x"}, "give --label too"),
    ],
)
def test_contradicting_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ScreeningOptions(**options)  # type: ignore[arg-type]


def test_options_survive_a_file() -> None:
    columns = ColumnOptions(label="y", exclude=("a", "b"), dayfirst=True)
    options = ScreeningOptions(fdr=0.1, columns=columns, positive="yes", seed=7)
    assert from_file(options) == options


def test_an_estimator_is_not_taken_for_a_model(tmp_path):
    with pytest.raises(TypeError, match=r"joblib\.dump"):
        save_model(KernelPCA(), tmp_path / "m.kpca")
    assert not any(tmp_path.iterdir())
