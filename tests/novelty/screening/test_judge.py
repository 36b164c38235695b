import math
import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps import fit_model, score_table
from kpca_apps.novelty.columns.parts import Execution, Sample
from kpca_apps.novelty.detector.threshold import Rule, flag, top_count
from kpca_apps.novelty.ranks import novelty_ranks
from kpca_apps.novelty.run import inherit_options, rows_to_score, score, screen
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.judge import Verdict, judge
from kpca_apps.novelty.screening.model import NoveltyModel, ScreeningOptions
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import Table
from tests.novelty.tables import correlated, frame_of

SCORES = np.array([0.1, 0.9, 0.3, 0.8, 0.2])
NINE, MANY = np.arange(9.0), np.arange(1.0, 1000.0)
TIED = np.where(np.arange(200) == 17, 9.0, 1.0)


@pytest.mark.parametrize(
    ("rule", "scores", "clean", "n_flagged", "words"),
    [
        (Rule("count", 2), SCORES, None, 2, "2 rows of 5.*no false-alarm rate"),
        (Rule("count", 2), SCORES, NINE, 2, "; p-values say how rare each score is among normal"),
        (Rule("share", 0.01), SCORES, None, 1, "^The share of 1 % flags the 1 row of 5"),
        (Rule("share", 0.01), TIED, None, 1, "2 rows of 200, but 199 of them score alike: only "),
        (Rule("fdr", 0.1), np.array([2000.0, 1999.0, 5.0, 6.0]), MANY, 2, "are expected to be"),
        (Rule("fdr", 0.1), np.full(4, 2000.0), MANY, 4, "are expected to be false alarms"),
        (Rule("fdr", 0.1), np.full(4, 0.5), MANY, 0, "^The list is empty: no p-value of the 4 row"),
        (Rule("fdr", 0.1), SCORES, MANY, 0, r"^The list is empty.*held back \(guaranteed\).$"),
    ],
)
def test_a_threshold_parts_the_rows_and_says_what_it_means(
    rule: Rule, scores: np.ndarray, clean: np.ndarray | None, n_flagged: int, words: str
) -> None:
    flagged, info, warnings = flag(rule, scores, clean, None if clean is None else "split")
    np.testing.assert_array_equal(flagged, scores > info.value)
    assert (flagged.sum(), warnings) == (n_flagged, ())
    assert re.search(words, info.statement)


@st.composite
def scores_with_ties(draw: st.DrawFn) -> np.ndarray:
    """Draw few distinct scores, some of which differ by rounding only."""
    n, n_values = draw(st.integers(2, 300)), draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    size = 10.0 ** draw(st.integers(-12, 12))
    scores = size * rng.choice(rng.lognormal(sigma=0.1, size=n_values), n)
    return scores * (1 + rng.choice([0.0, 1e-12, -1e-13], n))


@given(scores=scores_with_ties(), share=st.floats(0.001, 0.999))
def test_ties_are_flagged_together_and_the_threshold_parts_the_rows(
    scores: np.ndarray, share: float
) -> None:
    count = top_count(len(scores), share)
    flagged, info, _ = flag(Rule("share", share), scores)
    np.testing.assert_array_equal(flagged, scores > info.value)
    by_count, other, _ = flag(Rule("count", count), scores)
    assert (by_count.tolist(), other.value) == (flagged.tolist(), info.value)
    # By brute force: rows above the last requested score, or equal to it up to rounding (distinct
    # values differ by far more).
    last = np.sort(scores)[-count]
    wanted = scores > last * (1 - 1e-11)
    if wanted.all():
        # Only rows above the last score are flagged, because all other rows tie with it.
        wanted = scores > last * (1 + 1e-11)
        text = " of them score alike: only the other " if wanted.any() else "all score alike: none "
        assert text in info.statement
    np.testing.assert_array_equal(flagged, wanted)
    # The flagged rows come first in the ranking, whatever breaks ties.
    assert novelty_ranks(scores, scores[::-1])[flagged].max(initial=0) == flagged.sum()
    assert (" more that score" in info.statement) == (flagged.sum() > count)


def test_alpha_flags_by_the_conformal_quantile() -> None:
    calibration = np.arange(1.0, 100.0)
    flagged, info, warnings = flag(
        Rule("alpha", 0.05), np.array([94.0, 95.0, 95.5]), calibration, "leave-one-out"
    )
    assert (flagged.tolist(), info.value, warnings) == ([False, False, True], 95.0, ())
    assert "About 5 %" in info.statement and "approximate" in info.statement


def test_too_few_clean_rows_flag_nothing_and_say_the_smallest_rate() -> None:
    flagged, info, warnings = flag(Rule("alpha", 0.05), np.array([1e9]), np.arange(9.0), "split")
    assert not flagged.any()
    assert math.isinf(info.value)
    assert info.statement == "Nothing can be flagged at 5 %: 9 reference rows allow 10 % at best."
    assert warnings == (
        "9 reference rows are too few for alpha 0.05: give at least 19, or a larger --alpha.",
    )
    _, info, warnings = flag(Rule("alpha", 0.05), SCORES, np.arange(19.0), "split")
    assert (math.isinf(info.value), warnings) == (False, ())


def test_fdr_says_when_no_single_row_can_be_listed() -> None:
    _, info, warnings = flag(Rule("fdr", 0.1), SCORES, np.arange(9.0), "split")
    assert math.isinf(info.value)
    # A fiftieth of the rate is reserved for single cells.
    assert "the smallest p-value they allow is 0.1, which is above the 9.8 % that scores have" in (
        info.statement
    )
    assert len(warnings) == 1 and "--alpha" in warnings[0]
    calibration = np.arange(199.0)
    _, info, _ = flag(Rule("fdr", 0.05), np.full(1_000, 0.5), calibration, "split")
    assert "is 0.005, and among 1,000 rows it takes 103 that have it." in info.statement
    # Confirm the message: 103 rows beyond all reference rows are listed, but 102 are not.
    for n_far, listed in ((103, 103), (102, 0)):
        scores = np.array([9e9] * n_far + [0.5] * (1_000 - n_far))
        flagged, _, _ = flag(Rule("fdr", 0.05), scores, calibration, "split")
        assert flagged.sum() == listed


def test_fdr_guarantees_no_row_that_is_listed_for_a_cell() -> None:
    of_cells = np.arange(4) == 2
    scores = np.array([2000.0, 1999.0, 5.0, 6.0])
    flagged, info, _ = flag(Rule("fdr", 0.1), scores, MANY, "split", listed=of_cells)
    assert flagged.tolist() == [True, True, True, False]
    assert info.statement.endswith(
        "2 rows are listed by score, calibrated on 999 reference rows held back (guaranteed); and "
        "1 row is listed for one cell, by the tail of its column."
    )


UNEXPLAINED = ScreeningOptions(explain=0)
HOFFMANN = ScreeningOptions(explain=0, method="hoffmann")


@st.composite
def mixed_frames(draw: st.DrawFn) -> pl.DataFrame:
    """Draw columns of rounded numbers, some multiplied by up to 10^8, and a category."""
    n, seed = draw(st.integers(12, 60)), draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, draw(st.integers(1, 4)))).round(draw(st.integers(0, 3)))
    far = rng.random(numbers.shape) < draw(st.sampled_from([0.0, 0.05, 0.2]))
    numbers[far] *= 10.0 ** rng.integers(1, 9, far.sum())
    frame = pl.DataFrame(numbers, schema=[f"x{i}" for i in range(numbers.shape[1])])
    return frame.with_columns(kind=pl.Series(rng.choice(["a", "b", "c"], n)), y=rng.normal(size=n))


@settings(max_examples=15, deadline=None)
@given(frame=mixed_frames(), options=st.sampled_from([UNEXPLAINED, HOFFMANN]), split=st.booleans())
def test_no_rank_contradicts_a_score(frame, options, split):
    reference = frame[::2] if split else None
    clean = None if reference is None else table_from_frame(reference)
    result, _ = screen(table_from_frame(frame), reference=clean, options=options)
    assert sorted(result.rows.ranks.tolist()) == list(range(1, len(frame) + 1))
    listed = np.argsort(result.rows.ranks)
    # A row with an odd cell may precede others in the list.
    has_cell = np.isin(listed + 1, [row for cell in result.findings.odd_cells for row in cell.rows])
    by_score = listed[~has_cell]
    assert np.all(np.diff(result.rows.scores[by_score]) <= 0)
    assert not np.any(np.diff(result.rows.is_flagged[by_score].astype(int)) > 0)
    assert not np.any(np.diff((result.rows.is_flagged[listed] | has_cell).astype(int)) > 0)
    if result.rows.rarities is not None:
        assert np.all(np.diff(result.rows.rarities[by_score]) >= 0)


def _scores_of_equal_rows(frame, reference):
    frame = frame.drop("y")
    clean = None if reference is None else table_from_frame(reference)
    result, _ = screen(table_from_frame(frame), reference=clean, options=UNEXPLAINED)
    groups = frame.with_columns(score=pl.Series(result.rows.scores)).group_by(frame.columns)
    return groups.agg(pl.col("score").n_unique())["score"]


@settings(max_examples=10, deadline=None)
@given(frame=mixed_frames())
def test_equal_rows_share_a_score(frame):
    assert (_scores_of_equal_rows(frame, frame[::2].drop("y")) == 1).all()


def test_equal_rows_that_were_learned_from_share_a_score():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50), "y": 0.0})
    frame = pl.concat([frame, frame[:20]])
    assert (_scores_of_equal_rows(frame, None) == 1).all()


@pytest.mark.release
@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(20, 150),
    n_columns=st.integers(1, 6),
    spread=st.sampled_from([1.0, 5.0, 20.0]),
    common=st.sampled_from([0.0, 10.0]),
    seed=st.integers(0, 10**6),
)
def test_a_value_ten_times_off_ranks_above_one_twice_off(n, n_columns, spread, common, seed):
    rng = np.random.default_rng(seed)
    rows = 100 + common * rng.normal(size=(n, 1)) + spread * rng.normal(size=(n, n_columns))
    column, slipped = rng.integers(n_columns), rng.integers(n)
    pair = rows[[slipped, slipped]]
    pair[:, column] *= (2.0, 10.0)
    kinds = rng.choice(["a", "b"], n)
    frame = pl.DataFrame(np.vstack([rows, pair])).with_columns(
        kind=pl.Series([*kinds, kinds[slipped], kinds[slipped]])
    )
    *_, twice, ten_times = screen(table_from_frame(frame), options=UNEXPLAINED)[0].rows.ranks
    assert ten_times < twice


def verdict_by(model: NoveltyModel, table: Table, options: ScreeningOptions) -> Verdict:
    model, rows = rows_to_score(model, Sample.of(table), options, Execution())
    return judge(model, rows, options)


def test_a_threshold_chosen_on_one_table_is_kept_for_the_next() -> None:
    model = fit_table(correlated(100, odd=3), ScreeningOptions(share=0.05), clean=False)[0]
    for n in (5, 50):
        new = correlated(n, seed=9)
        verdict = verdict_by(model, new, inherit_options(model, new))
        assert verdict.threshold.value == model.detector.flags_above
        assert (
            verdict.scored.is_flagged == (verdict.scored.scores > verdict.threshold.value)
        ).all()
    new = correlated(50, seed=9)
    chosen = verdict_by(model, new, inherit_options(model, new, count=4))
    assert chosen.scored.is_flagged.sum() == 4 and not chosen.rows.are_training


def test_warnings_of_the_reference_are_distinguished_from_those_of_the_table() -> None:
    gaps = frame_of(60).with_columns(bill=None)
    gaps = gaps.with_columns(frame_of(60)["bill"].scatter([3], [float("nan")]).alias("bill"))
    model = fit_table(table_from_frame(gaps, "clean.csv"), ScreeningOptions(alpha=0.1))[0]
    verdict = verdict_by(model, correlated(20, seed=1), ScreeningOptions(alpha=0.1))
    assert any(text.startswith("In clean.csv, the reference: ") for text in verdict.warnings)


def test_p_values_come_with_the_scores_of_round_ones() -> None:
    model = fit_table(correlated(99), ScreeningOptions(alpha=0.1))[0]
    scale = verdict_by(model, correlated(20, seed=1), ScreeningOptions()).scored.scale
    assert scale is not None
    assert scale.statement == (
        "p-value: the share of rows like the reference that would score so high; 99 of them show "
        "no share below 0.01."
    )
    calibration = np.sort(model.detector.calibration_scores)
    assert [(mark.score, mark.words) for mark in scale.marks] == [
        (calibration[89], "0.1"),
        (calibration[98], "0.01"),
    ]


def test_a_table_of_few_rows_is_held_to_what_the_reference_allows() -> None:
    rng = np.random.default_rng(0)
    names = ("height", "weight")

    def people(n: int) -> pl.DataFrame:
        values = np.array([170.0, 70.0]) + rng.normal(size=(n, 2)) * np.array([9.0, 8.0])
        return pl.DataFrame(dict(zip(names, values.round(1).T, strict=True)))

    model, _ = fit_table(table_from_frame(people(400)), ScreeningOptions())
    new = people(12).with_row_index()
    odd = new.with_columns(
        height=pl.when(pl.col("index") == 3).then(14000.0).otherwise("height"),
        weight=pl.when(pl.col("index") == 5).then(-64.5).otherwise("weight"),
    ).drop("index")
    cells = score(model, table_from_frame(odd)).findings.odd_cells
    assert {(cell.column, cell.row, cell.kind) for cell in cells} == {
        ("height", 4, "far above"),
        ("weight", 6, "sign"),
    }
    (above,) = (cell for cell in cells if cell.kind == "far above")
    assert above.sentence.startswith("Far above the numbers of the reference, whose largest is 19")
    # A column that moved as a whole has no odd cells.
    moved = new.with_columns(height=pl.col("height") * 100).drop("index")
    assert score(model, table_from_frame(moved)).findings.odd_cells == ()


@pytest.mark.parametrize("by", [(), ("place",)])
def test_a_false_discovery_rate_lists_one_cell_that_is_far_out(by: tuple[str, ...]) -> None:
    # At a rate of 10 %, a single row of 1,000 is listed if it has a p-value below 1 in 10,000. With
    # 400 calibration rows, the p-value of its score is at least 1 in 401; that of its far cell is
    # smaller.
    def draw(n: int, seed: int) -> pl.DataFrame:
        rng = np.random.default_rng(seed)
        pressure = rng.normal(140, 12, n).round()
        frame = {"pressure": pressure, "age": rng.integers(20, 80, n), "x": rng.normal(size=n)}
        return pl.DataFrame({**frame, "place": rng.choice(["u", "v"], n)})

    model = fit_model(draw(400, 0), fdr=0.1, by=by)
    clean = draw(1_000, 1)
    assert score_table(model, clean, explain=0).n_flagged == 0
    column = clean["pressure"].to_list()
    column[7] = 14_020.0
    result = score_table(model, clean.with_columns(pl.Series("pressure", column)), explain=0)
    assert np.flatnonzero(result.rows.is_flagged).tolist() == [7]
    assert result.rows.ranks[7] == 1


def test_columns_that_follow_one_another_with_exceptions_fill_no_list() -> None:
    # In some correct rows the town contradicts the ZIP code, and no number is odd.
    towns = np.random.default_rng(100).integers(0, 12, (5, 40))

    def draw(n: int, seed: int) -> pl.DataFrame:
        rng = np.random.default_rng(seed)
        code = rng.integers(0, 40, n)
        frame = {"zip": [f"{10_000 + 137 * n}" for n in code], "x": rng.normal(size=n)}
        for name, town in zip("abcde", towns, strict=True):
            own = np.where(rng.random(n) < 0.002, rng.integers(0, 12, n), town[code])
            frame[name] = [f"{name}{code:02}" for code in own]
        return pl.DataFrame(frame)

    kinds = set[str]()
    for seed in range(3):
        model = fit_model(draw(600, 2 * seed), fdr=0.1, calibration="split")
        result = score_table(model, draw(600, 2 * seed + 1), explain=0)
        kinds |= {cell.kind for cell in result.findings.odd_cells}
        assert result.n_flagged == 0
    assert kinds == {"contradicted"}


def test_no_right_number_is_listed_for_the_tail_of_its_column() -> None:
    n_listed = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        both = {"t": rng.standard_t(4, 1_000), "price": rng.lognormal(3, 1, 1_000).round(2)}
        frame = pl.DataFrame({**both, "x": rng.normal(size=1_000), "count": rng.poisson(9, 1_000)})
        result = score_table(fit_model(frame[:400], fdr=0.1), frame[400:], explain=0)
        n_listed += int(
            (result.rows.is_flagged & (result.rows.scores <= result.threshold.value)).sum()
        )
    assert n_listed == 0


@pytest.mark.parametrize("seed", range(3))
def test_right_numbers_that_are_rarely_large_are_listed_for_no_tail(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = np.where(rng.random(2_000) < 0.004, 10, 1) * rng.normal(100, 12, 2_000)
    frame = pl.DataFrame({"size": size, "x": rng.normal(size=2_000)})
    model, new = fit_model(frame[:1_000], fdr=0.1), frame[1_000:]
    result = score_table(model, new, explain=0)
    assert any(cell.kind == "far above" for cell in result.findings.odd_cells)
    assert result.n_flagged == 0
