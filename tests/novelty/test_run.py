import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.errors import ConfigError
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.run import inherit_options, score, screen
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.opening import read_table
from tests.novelty.tables import correlated, frame_of

LABELLED = ColumnOptions(label="kind", id="name")


def test_planted_rows_lead_the_list_with_the_column_that_was_changed() -> None:
    options = ScreeningOptions(count=5, columns=LABELLED)
    result = screen(correlated(200, odd=5), options=options)[0]
    assert {row.id for row in result.ranked[:5]} == {f"bird {i:04d}" for i in range(195, 200)}
    assert [row.reasons[0].column for row in result.ranked[:5]].count("bill") >= 4
    assert [row.rank for row in result.ranked] == list(range(1, 101))
    assert result.n_flagged == 5
    top = result.ranked[0]
    assert (top.row, top.score) == (int(top.id[5:]) + 1, result.rows.scores.max())  # type: ignore[index]
    assert dict(top.cells)["name"] == top.id
    assert math.isclose(sum(c.reason_share for c in result.columns), 1.0)
    assert max(result.columns, key=lambda c: c.reason_share).name == "bill"


@pytest.mark.parametrize("rule", [{"share": 0.003}, {"count": 2}])
def test_screen_score_and_estimator_flag_the_same_rows_when_outliers_tie(
    rule: dict[str, float],
) -> None:
    rows = np.vstack([np.random.default_rng(0).normal(size=(594, 3)), np.full((6, 3), 9.0)])
    table = table_from_frame(pl.DataFrame(rows, schema=["a", "b", "c"]), "ties")
    copy = table_from_frame(pl.DataFrame(rows, schema=["a", "b", "c"]), "copy of ties")
    copy = replace(copy, source=replace(copy.source, sha256="0" * 64))
    screened, model = screen(table, options=ScreeningOptions(**rule))  # type: ignore[arg-type]
    estimator = KernelPCANovelty(share=0.003, random_state=0).fit(rows)
    again, as_new = score(model, table), score(model, copy)
    for flagged, scores, threshold in (
        *((r.rows.is_flagged, r.rows.scores, r.threshold.value) for r in (screened, again, as_new)),
        (estimator.training_labels_ == -1, estimator.novelty_scores_, estimator.threshold_),
        (estimator.predict(rows) == -1, -estimator.score_samples(rows), -estimator.offset_),
    ):
        assert np.flatnonzero(flagged).tolist() == list(range(594, 600))
        np.testing.assert_array_equal(flagged, scores > threshold)
        assert threshold == screened.threshold.value
    assert [row.flagged for row in screened.ranked[:8]] == [True] * 6 + [False] * 2
    assert "the 2 rows of 600 that score highest, and 4 more" in screened.threshold.statement


def test_a_reference_gives_p_values_and_a_rate_that_flags_by_them() -> None:
    result = screen(correlated(80, seed=1, odd=4), reference=correlated(150))[0]
    assert result.rows.p_values is not None and result.reference is not None
    assert result.threshold.calibration == "leave-one-out" and result.threshold.n_calibration == 150
    np.testing.assert_array_equal(result.rows.is_flagged, result.rows.p_values <= 0.05)
    assert result.rows.is_flagged[-4:].all() and result.ranked[0].p_value == pytest.approx(1 / 151)


@pytest.mark.parametrize("is_new", [True, False])
def test_rows_too_far_out_to_score_differently_are_ranked_by_distance(is_new: bool) -> None:
    row = pl.int_range(pl.len())
    times = pl.when(row == 3).then(1e7).when(row == 8).then(1e9).otherwise(1.0)
    columns = ["wing", "bill", "mass"]
    table = table_from_frame(frame_of(120).select(pl.col(columns) * times))
    if is_new:
        result = score(fit_table(table_from_frame(frame_of(120).select(columns)))[0], table)
    else:
        result = screen(table, options=ScreeningOptions(count=2))[0]
    assert [row.row for row in result.ranked if row.row in (4, 9)] == [9, 4]


def test_same_input_and_seed_give_the_same_result() -> None:
    results = [
        screen(correlated(90, odd=2), options=ScreeningOptions(seed=3, jobs=jobs))[0]
        for jobs in (1, 2)
    ]
    assert results[0].rows.scores.tobytes() == results[1].rows.scores.tobytes()
    assert results[0].ranked == results[1].ranked
    assert results[0].run.settings == results[1].run.settings


def test_labels_judge_the_list_and_name_the_positive_value() -> None:
    options = ScreeningOptions(columns=LABELLED, positive="odd")
    (evaluation,) = screen(correlated(120, odd=10), options=options)[0].evaluations
    assert (evaluation.positive, evaluation.n_positive, evaluation.n_rows) == ("odd", 10, 120)
    assert [m.ours for m in evaluation.methods] == [True] + [False] * 6
    assert evaluation.methods[0].auroc > 0.95
    with_reference = screen(
        correlated(60, seed=1, odd=5), reference=correlated(100), options=options
    )[0]
    assert "Fitted on 100 rows of birds" in with_reference.evaluations[0].setting
    assert len(with_reference.evaluations[0].methods) == 7


def test_a_reference_may_lack_what_only_the_table_has() -> None:
    clean = table_from_frame(frame_of(100).drop("kind", "name"))
    columns = ColumnOptions(label="kind", id="name", exclude=("name2",), hide=("name",))
    table = table_from_frame(frame_of(60, seed=1, odd=5).with_columns(name2=pl.col("name")))
    options = ScreeningOptions(columns=columns, positive="odd")
    result = screen(table, reference=clean, options=options)[0]
    assert result.evaluations[0].methods[0].auroc > 0.95 and result.ranked[0].id is None
    assert dict(result.ranked[0].cells)["name2"] == f"bird {result.ranked[0].row - 1:04d}"
    with pytest.raises(ConfigError, match="wnig"):
        screen(
            table,
            reference=clean,
            options=ScreeningOptions(columns=ColumnOptions(exclude=("wnig",))),
        )


def test_a_label_the_model_uses_cannot_judge_it() -> None:
    model = fit_table(correlated(60))[0]
    options = ScreeningOptions(columns=ColumnOptions(label="colour"))
    with pytest.raises(ConfigError, match='"colour" is a column the model itself uses'):
        score(model, correlated(20), options=options)


@pytest.mark.parametrize(("name", "value"), [("bill", 777.125), ("owner", "Ada Byron")])
def test_values_hidden_at_scoring_stay_out_whether_the_model_uses_them_or_not(
    name: str, value: object
) -> None:
    table = table_from_frame(frame_of(30, seed=1).with_columns(pl.lit(value).alias(name)))
    model = fit_table(correlated(60))[0]
    result = score(model, table, options=ScreeningOptions(columns=ColumnOptions(hide=(name,))))
    assert str(value) not in repr(result) and str(value) in repr(score(model, table))
    unused = [text for text in result.run.warnings if 'left unused: "owner"' in text]
    assert len(unused) == (name == "owner")


def test_hidden_labels_judge_the_list_and_are_not_named() -> None:
    table = correlated(80, odd=3)
    columns = ColumnOptions(label="kind")
    shown = screen(table, options=ScreeningOptions(columns=columns))[0]
    result = screen(table, options=ScreeningOptions(columns=replace(columns, hide=("kind",))))[0]
    aurocs = [[method.auroc for method in data.evaluations[0].methods] for data in (shown, result)]
    assert aurocs[0] == aurocs[1]
    assert (shown.evaluations[0].positive, result.evaluations[0].positive) == ("odd", "(hidden)")
    assert any("one value is taken to mean outlier" in text for text in result.run.warnings)


def test_the_table_fitted_on_is_recognised() -> None:
    table = correlated(80, odd=2)
    screened, model = screen(table)
    again = score(model, table)
    np.testing.assert_array_equal(again.rows.scores, screened.rows.scores)
    assert again.ranked == screened.ranked
    (note,) = (text for text in again.run.warnings if "model was fitted on this very table" in text)
    assert "p-value" not in note


def test_rows_of_the_reference_are_reported_that_they_count_themselves() -> None:
    reference = correlated(99)
    result = score(fit_table(reference)[0], reference)
    assert result.rows.p_values is not None and result.rows.p_values.min() == 2 / 100
    assert any(
        text.endswith("in its p-value, which is at least 0.02.") for text in result.run.warnings
    )
    np.testing.assert_array_equal(result.rows.is_flagged, result.rows.p_values <= 0.05)


def test_explain_bounds_the_reasons_and_a_hundred_rows_are_listed() -> None:
    few = screen(correlated(150), options=ScreeningOptions(explain=3))[0]
    assert [row.explained for row in few.ranked] == [True] * 3 + [False] * 97
    assert not any(row.reasons for row in few.ranked[3:])
    assert len(screen(correlated(150), options=ScreeningOptions(explain=130))[0].ranked) == 130
    assert len(screen(correlated(20), options=ScreeningOptions(explain=0))[0].ranked) == 20


def test_contours_are_drawn_for_two_numeric_columns_only() -> None:
    frame = frame_of(80).select("wing", "bill")
    result, model = screen(table_from_frame(frame))
    contours = result.pictures.contours
    assert contours is not None
    assert (contours.x_name, contours.y_name, contours.scores.shape) == ("wing", "bill", (60, 60))
    cell = pl.DataFrame({"wing": [contours.x[7]] * 3, "bill": [contours.y[50]] * 3})
    assert score(model, table_from_frame(cell)).rows.scores[0] == contours.scores[50, 7]
    assert screen(correlated(80))[0].pictures.contours is None
    gaps = frame.with_columns(pl.when(pl.col("wing") > 90).then(pl.col("wing")).alias("wing"))
    assert screen(table_from_frame(gaps))[0].pictures.contours is not None


def test_the_map_draws_a_sample_and_every_ranked_row() -> None:
    result = screen(correlated(1800), options=ScreeningOptions(explain=1))[0]
    assert result.pictures.map.n_rows == 1800
    assert 1500 <= len(result.pictures.map.x) <= 1600
    assert sorted(result.pictures.map.rank[result.pictures.map.rank > 0]) == list(range(1, 101))
    assert 0 < result.pictures.map.explained[1] <= result.pictures.map.explained[0] < 1


def test_the_planted_faults_that_no_one_could_miss_are_on_the_list(datasets: Path) -> None:
    table = read_table(datasets / "penguins_faults.csv")
    options = ScreeningOptions(share=0.05, explain=5, columns=ColumnOptions(id="Individual ID"))
    result = screen(table, options=options)[0]
    first = {row.reasons[0].column for row in result.ranked[:8]}
    assert first == {
        *("Flipper Length (mm)", "Culmen Depth (mm)", "Delta 13 C (o/oo)"),
        *("Date Egg", "Island", "Body Mass (g)"),
    }
    assert any("2009-11-31" in text for text in result.run.warnings)
    assert result.n_flagged == 17


def test_a_table_of_duplicates_is_ranked_in_its_own_order() -> None:
    table = table_from_frame(pl.concat([frame_of(30, seed=1)] * 50))
    result = score(fit_table(correlated(60))[0], table)
    first = [result.rows.ranks[i::30] for i in range(30)]
    assert all((np.diff(ranks) > 0).all() for ranks in first)


TO_INHERIT = ScreeningOptions(
    alpha=0.1, columns=ColumnOptions(label="kind", id="name"), positive="odd", seed=4
)


def test_a_model_passes_its_options_on_as_far_as_the_table_has_the_columns() -> None:
    model = fit_table(correlated(60, odd=5), TO_INHERIT)[0]
    assert inherit_options(model, correlated(10)) == TO_INHERIT
    bare = inherit_options(model, table_from_frame(frame_of(10).drop("kind", "name")))
    assert (bare.columns.label, bare.columns.id, bare.positive) == (None, None, None)
    assert (bare.alpha, bare.seed) == (0.1, 4)


def test_given_options_replace_inherited_ones() -> None:
    model = fit_table(correlated(60, odd=5), TO_INHERIT)[0]
    used = inherit_options(model, correlated(10), fdr=0.2, id="colour", hide=("bill",), share=None)
    assert (used.alpha, used.fdr, used.share) == (None, 0.2, None)
    assert (used.columns.id, used.columns.label, used.columns.hide) == ("colour", "kind", ("bill",))
