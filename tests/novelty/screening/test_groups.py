from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.errors import ConfigError, KpcaError
from kpca_apps.novelty.columns import parts
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.detector.threshold import Rule
from kpca_apps.novelty.explain import explain_row
from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.novelty.run import score, screen
from kpca_apps.novelty.screening import fit, judge
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import (
    MIN_ROWS,
    ScreeningOptions,
    load_model,
    rows_needed,
    save_model,
)
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import parted
from tests.quick import quick

ODD = 7  # index of a row of group a with values like group b


def two_kinds(n: int = 160, rest: int = 9, seed: int = 0) -> pl.DataFrame:
    """Return two groups with opposite correlations, a small one, and an odd row."""
    rng = np.random.default_rng(seed)
    size, sign = rng.normal(size=2 * n + rest), np.repeat([1.0, -1.0, 0.0], [n, n, rest])
    columns = np.outer(size, [1.0, 1.0, 1.0]) + 0.15 * rng.normal(size=(len(size), 3))
    columns[:, 1:] *= np.where(sign == 0, 0.0, sign)[:, None]
    columns[:, 1:] += 0.1 * rng.normal(size=(len(size), 2))
    columns[ODD] = [1.5, -1.5, -1.5]
    frame = pl.DataFrame({f"c{j}": column for j, column in enumerate(columns.T)})
    return frame.with_columns(kind=pl.Series(["a"] * n + ["b"] * n + ["few"] * rest))


def by(*names: str, **others: object) -> ScreeningOptions:
    hide = others.pop("hide", ())
    return ScreeningOptions(columns=ColumnOptions(by=names, hide=hide), **others)  # type: ignore[arg-type]


def screened(frame: pl.DataFrame, options: ScreeningOptions) -> ScreeningResult:
    return screen(table_from_frame(frame, "kinds"), options=options)[0]


def test_a_row_that_is_ordinary_in_the_table_is_found_odd_in_its_group() -> None:
    frame = two_kinds()
    result = screened(frame, by("kind", count=1))
    (flagged,) = np.flatnonzero(result.rows.is_flagged)
    assert (flagged, result.ranked[0].row, result.ranked[0].group) == (ODD, ODD + 1, "kind a")
    # Without groups, the row is not even in the top tenth of the table.
    assert screened(frame.drop("kind"), ScreeningOptions(count=1)).rows.ranks[ODD] > 33


def test_groups_of_few_rows_are_judged_by_the_model_of_the_table_and_it_is_stated() -> None:
    frame = two_kinds()
    result = screened(frame, by("kind"))
    sizes = {group.name: (group.n_rows, group.n_fitted) for group in result.groups}
    assert sizes == {"kind a": (160, 160), "kind b": (160, 160), "": (9, 329)}
    assert sum(group.n_flagged for group in result.groups) == result.n_flagged
    (note,) = [text for text in result.run.warnings if "no model of its own" in text]
    assert '("few")' in note and "9 rows are" in note
    whole = screened(frame, ScreeningOptions(columns=ColumnOptions(categorical=("kind",))))
    np.testing.assert_array_equal(result.rows.scores[320:], whole.rows.scores[320:])


@pytest.mark.release
def test_a_group_scores_as_a_table_of_its_rows_alone() -> None:
    frame = two_kinds()
    result = screened(frame, by("kind"))
    for place, kind in ((slice(0, 160), "a"), (slice(160, 320), "b")):
        alone = screened(frame.filter(pl.col("kind") == kind), ScreeningOptions())
        np.testing.assert_array_equal(result.rows.scores[place], alone.rows.scores)
    # Interleaved rows of other groups change nothing.
    mixed = frame[np.random.default_rng(1).permutation(329)]
    in_order = pl.concat([mixed.filter(pl.col("kind") == kind) for kind in ("a", "b", "few")])
    alternating = np.argsort(np.concatenate([2 * np.arange(160), 2 * np.arange(160) + 1]))
    order = np.concatenate([alternating, np.arange(320, 329)])
    found = screened(in_order[order], by("kind")).rows.scores
    expected = screened(in_order, by("kind")).rows.scores[order]
    np.testing.assert_array_equal(found[:320], expected[:320])


@pytest.mark.release
def test_each_group_has_the_rate_requested_on_clean_rows() -> None:
    # Group b has far heavier tails: a threshold for both groups would flag almost only its rows.
    def clean(seed: int) -> pl.DataFrame:
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(900, 3)), 5 + rng.standard_t(2, size=(900, 3))
        frame = pl.DataFrame({f"c{j}": column for j, column in enumerate(np.vstack([a, b]).T)})
        return frame.with_columns(kind=pl.Series(["a"] * 900 + ["b"] * 900))

    reference = table_from_frame(clean(0), "clean")
    result, _ = screen(table_from_frame(clean(1), "new"), reference=reference, options=by("kind"))
    for group in result.groups:
        # 0.04 is four standard errors of 900 rows at 5 %, with a threshold learned from 900 rows.
        assert 0.05 - 0.04 < group.n_flagged / group.n_rows < 0.05 + 0.04
    assert result.rows.p_values is not None
    np.testing.assert_array_equal(result.rows.is_flagged, result.rows.p_values <= 0.05)
    np.testing.assert_array_equal(
        result.rows.is_flagged, result.rows.scores > result.threshold.value
    )
    assert len({group.threshold for group in result.groups}) == 2


@pytest.mark.parametrize(
    "rule", quick([{"fdr": 0.3}, {"fdr": 1e-6}, {"alpha": 0.002}, {"share": 0.1}], {"fdr": 0.3})
)
def test_flagged_rows_are_those_above_the_threshold_and_first_in_the_list(
    rule: dict[str, float],
) -> None:
    reference, new = two_kinds(700, 60), two_kinds(300, 60, seed=1)
    result, _ = screen(
        table_from_frame(new, "new"),
        reference=table_from_frame(reference, "clean"),
        options=by("kind", **rule),
    )
    np.testing.assert_array_equal(
        result.rows.is_flagged, result.rows.scores > result.threshold.value
    )
    assert set(result.rows.ranks[result.rows.is_flagged]) == set(range(1, result.n_flagged + 1))
    assert result.rows.p_values is not None
    if "fdr" in rule:  # by definition: the largest k with p_(k) <= rate k / n
        ordered = np.sort(result.rows.p_values)
        good = np.flatnonzero(ordered <= rule["fdr"] * np.arange(1, 661) / 660)
        assert result.n_flagged == (good[-1] + 1 if len(good) else 0)
    for group in result.groups:
        assert group.n_fitted == (1460 if not group.name else 700 if group.n_rows == 300 else 60)


def test_a_group_needs_rows_enough_to_calibrate_its_rate() -> None:
    assert rows_needed(Rule("share", 0.01)) == rows_needed(Rule("fdr", 0.1))
    assert rows_needed(Rule("share", 0.01)) == MIN_ROWS
    assert rows_needed(Rule("alpha", 0.01)) == 99
    options = by("kind", alpha=0.01)
    model, _ = fit_table(table_from_frame(two_kinds(150, 98), "clean"), options)
    assert [group.values for group in model.groups] == [("a",), ("b",)]
    model, _ = fit_table(table_from_frame(two_kinds(150, 99), "clean"), options)
    assert [group.values for group in model.groups] == [("a",), ("b",), ("few",)]


@pytest.mark.release
def test_a_group_too_small_for_a_rate_requested_later_flags_nothing_and_it_is_stated() -> None:
    reference = pl.concat([two_kinds(150, 0), two_kinds(400, 0, seed=5).filter(kind="b")])
    model, _ = fit_table(table_from_frame(reference, "clean"), by("kind"))
    new = two_kinds(100, 0, seed=6).with_columns(pl.col("c0").cast(pl.Float64) + 9)
    result = score(model, table_from_frame(new, "new"), options=by("kind", alpha=0.005))
    assert {group.name: group.n_flagged for group in result.groups} == {"kind a": 0, "kind b": 100}
    (note,) = [text for text in result.run.warnings if "nothing can be flagged" in text]
    assert note.startswith('In "kind a" nothing')


@pytest.mark.release
def test_a_saved_model_scores_as_before_and_threads_change_nothing(tmp_path: Path) -> None:
    table = table_from_frame(two_kinds(), "kinds")
    new = table_from_frame(two_kinds(70, 30, seed=3), "new")
    result, model = screen(table, options=by("kind", share=0.02, jobs=1))
    threaded, other = screen(table, options=by("kind", share=0.02, jobs=3))
    np.testing.assert_array_equal(result.rows.scores, threaded.rows.scores)
    for name, saved in (("a.kpca", model), ("b.kpca", other)):
        save_model(saved, tmp_path / name)
    assert (tmp_path / "a.kpca").read_bytes() == (tmp_path / "b.kpca").read_bytes()
    loaded = load_model(tmp_path / "a.kpca")
    for rows in (new, table):
        before, after = score(model, rows), score(loaded, rows)
        np.testing.assert_array_equal(before.rows.scores, after.rows.scores)
        np.testing.assert_array_equal(before.rows.is_flagged, after.rows.is_flagged)
        assert before.groups == after.groups and before.ranked == after.ranked
    # New tables get the chosen threshold, too.
    assert score(loaded, new).threshold.value == result.threshold.value
    listed, _ = explain_row(loaded, table, row=str(ODD + 1))
    assert (listed.row, listed.group, listed.rank) == (ODD + 1, "kind a", result.rows.ranks[ODD])


def test_rows_of_groups_never_seen_are_judged_by_the_model_of_the_table() -> None:
    _, model = screen(table_from_frame(two_kinds(), "kinds"), options=by("kind"))
    new = two_kinds(60, 5, seed=2).with_columns(
        kind=pl.when(pl.col("kind") == "a").then(pl.lit("never seen")).otherwise(pl.col("kind"))
    )
    result = score(model, table_from_frame(new, "new"))
    assert [(group.name, group.n_rows) for group in result.groups] == [("kind b", 60), ("", 65)]
    assert any('"never seen", "few"' in text for text in result.run.warnings)
    alone = score(model, table_from_frame(new[60:61], "new"))
    assert alone.rows.scores[0] == result.rows.scores[60]


@pytest.mark.release
def test_two_columns_make_groups_of_their_pairs_and_missing_is_one() -> None:
    frame = two_kinds().with_columns(
        site=pl.Series([None if i % 2 else "east" for i in range(329)], dtype=pl.String)
    )
    names = {group.name for group in screened(frame, by("kind", "site")).groups}
    assert names == {
        f"kind {kind}, site {site}" for kind in "ab" for site in ("east", "(missing)")
    } | {""}


@pytest.mark.release
@pytest.mark.parametrize("n_rows", [None, 40])
def test_a_table_in_parts_has_the_groups_of_the_whole(
    n_rows: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_from_frame(two_kinds(), "kinds")
    whole, _ = screen(table, options=by("kind", share=0.02))
    if n_rows is not None:  # groups with more rows than this are in parts, too
        monkeypatch.setattr(parts, "SAMPLE_ROWS", n_rows)
    screened, model = screen(parted(table, part_rows=100), options=by("kind", share=0.02))
    np.testing.assert_allclose(screened.rows.scores, whole.rows.scores, rtol=1e-6)
    assert [group.name for group in screened.groups] == [group.name for group in whole.groups]
    assert screened.ranked[0].row == whole.ranked[0].row == ODD + 1
    first, second = (result.ranked[0].reasons[0] for result in (screened, whole))
    assert (first.column, first.seen) == (second.column, second.seen)
    again = score(model, parted(table_from_frame(two_kinds(seed=4), "new"), part_rows=100))
    assert np.isfinite(again.rows.scores).all()


def test_a_column_that_does_not_vary_in_a_group_is_left_out_there() -> None:
    frame = two_kinds().with_columns(
        only_b=pl.Series([None] * 160 + list(range(169)), dtype=pl.Float64),
        same=pl.Series(["x"] * 160 + ["y", "z"] * 84 + ["y"]),
    )
    result = screened(frame, by("kind"))
    assert np.isfinite(result.rows.scores).all() and result.rows.ranks[ODD] < 10


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (two_kinds(20, 0), by("kind"), 'none of the 2 groups by "kind" has the 50 rows'),
        (two_kinds().with_columns(kind=pl.lit("a")), by("kind"), "makes one group only"),
        (two_kinds(), by("kind", method="hoffmann"), "--method hoffmann gives scores that cannot"),
    ],
)
def test_what_cannot_be_grouped_is_refused_in_one_line(
    frame: pl.DataFrame, options: ScreeningOptions, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        screened(frame, options)
    assert "\n" not in str(refused.value)


def test_an_identifier_of_a_table_in_parts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_KEYS", 20)
    frame = two_kinds().with_columns(name=pl.Series([f"n{i}" for i in range(329)]))
    with pytest.raises(KpcaError, match='--by "name" makes more than 20 groups'):
        screen(parted(table_from_frame(frame, "t"), part_rows=100), options=by("name"))


@pytest.mark.release
def test_at_most_so_many_groups_have_models_and_many_have_fewer_landmarks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fit, "MAX_GROUPS", 3)
    monkeypatch.setattr(judge, "MAX_GROUPS", 3)
    monkeypatch.setattr(fit, "FULL_LANDMARKS", 1)
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({f"c{j}": rng.normal(size=2000) for j in range(2)})
    frame = frame.with_columns(kind=pl.Series([f"k{i % 5}" for i in range(2000)]))
    model, _ = fit_table(table_from_frame(frame, "many"), by("kind"), clean=False)
    assert [group.values for group in model.groups] == [("k0",), ("k1",), ("k2",)]
    # The matrices of three groups use as much memory as those of one table: 3 m^2 = 300^2.
    assert {len(group.detector.landmarks) for group in model.groups} == {173}
    result = score(model, table_from_frame(frame[:400], "new"))
    assert any("at most 3 groups have one" in text for text in result.run.warnings)


def test_a_choice_by_groups_of_a_clean_reference_is_read_back(tmp_path: Path) -> None:
    model, _ = fit_table(table_from_frame(two_kinds(), "clean"), by("kind", share=0.02))
    save_model(model, tmp_path / "m.kpca")
    new = table_from_frame(two_kinds(70, 30, seed=3), "new")
    before, after = (score(fitted, new) for fitted in (model, load_model(tmp_path / "m.kpca")))
    assert before.rows.scores.tobytes() == after.rows.scores.tobytes()
    assert before.n_flagged == after.n_flagged == round(0.02 * 170)
