from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.errors import ModelFileError
from kpca_apps.novelty.detector.threshold import Rarity
from kpca_apps.novelty.explain import explain_row
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions, load_model, save_model
from tests.novelty.tables import correlated
from tests.system.model_parts import model_from, parts_of, read_parts, write_parts

SCORES = np.random.default_rng(0).exponential(2.0, 500)
N_KNOTS = len(Rarity.fit(SCORES).knots)


@st.composite
def scores_to_fit(draw: st.DrawFn) -> np.ndarray:
    """Draw scores of any size, with light or heavy tails, with or without ties."""
    n, seed = draw(st.integers(2, 700)), draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    values = draw(
        st.sampled_from([
            rng.exponential(size=n), rng.lognormal(sigma=3.0, size=n), rng.uniform(1, 1.1, n),
            rng.standard_cauchy(n), np.ones(n), np.zeros(n), rng.integers(0, 3, n).astype(float),
        ])
    )  # fmt: skip
    return values * 10.0 ** draw(st.integers(-9, 9))


@given(scores=scores_to_fit(), seed=st.integers(0, 10**6))
def test_a_higher_score_is_never_less_rare(scores, seed):
    rarity, n = Rarity.fit(scores), len(scores)
    spread = np.ptp(scores) or abs(scores[0]) or 1.0
    beyond = scores.max() + spread * np.geomspace(1e-6, 1e9, 60)
    within = np.random.default_rng(seed).uniform(scores.min() - spread, scores.max(), 200)
    shares = rarity.share(np.unique(np.concatenate([within, scores, beyond])))
    assert np.all((shares >= 1 / (n + 1)) & (shares < 1)) and np.all(np.diff(shares) <= 0)
    np.testing.assert_array_equal(rarity.share(beyond), 1 / (n + 1))


@given(scores=scores_to_fit())
def test_shares_are_counted(scores):
    rarity, n = Rarity.fit(scores), len(scores)
    counted = (scores >= scores[:, None]).sum(axis=1) / (n + 1)
    at_knots = np.isin(scores, rarity.knots)
    assert at_knots[np.argsort(scores)[-128:]].all()
    np.testing.assert_allclose(rarity.share(scores)[at_knots], counted[at_knots])
    if len(np.unique(scores)) == n:
        np.testing.assert_allclose(rarity.share(scores), counted, atol=1 / 127 + 2 / n)


@given(first=scores_to_fit(), second=scores_to_fit())
def test_groups_are_pooled_by_their_rows(first, second):
    # Without ties and below 128 rows each, every score is a knot and the pooled count is exact.
    first, second = np.unique(first)[:100], np.setdiff1d(second, first)[:100]
    if min(len(first), len(second)) < 2:
        return
    parts = [(Rarity.fit(scores), float(len(scores))) for scores in (first, second)]
    together = np.concatenate([first, second])
    pooled = Rarity.pooled(parts)
    assert pooled.n_rows == len(together)
    beyond = np.array([together.max() + abs(together.max()) + 1.0])
    np.testing.assert_allclose(pooled.share(beyond), 1 / (len(together) + 1))
    counted = (together >= together[:, None]).sum(axis=1)
    # Counts are interpolated between the scores of a group, with an error of at most one row.
    assert np.abs(pooled.count(together) - counted).max() <= 1 + 1e-9


def test_words_go_as_far_as_the_rows():
    rarity = Rarity.fit(SCORES)
    shares = (1.0, 0.5, 0.1, 0.034, 2 / 501, 1 / 500, 1 / 501)
    assert [rarity.describe(share).words for share in shares] == [
        "99 in 100", "50 in 100", "10 in 100", "1 in 29", "1 in 250", "1 in 500", "< 1 in 500",
    ]  # fmt: skip
    assert rarity.describe(0.034).share == 0.034
    assert rarity.describe(1 / 501).in_prose == "fewer than 1 in 500"


@given(scores=scores_to_fit())
def test_marks_are_increasing_scores(scores):
    scale = Rarity.fit(scores).scale_of_scores
    ranked = [mark.score for mark in scale.marks]
    assert ranked == sorted(ranked)
    assert f"the {len(scores):,} rows that the model" in scale.statement


def test_marks_read_back():
    rarity = Rarity.fit(SCORES)
    marks = rarity.scale_of_scores.marks
    assert [mark.words for mark in marks] == ["1 in 10", "1 in 100"]
    np.testing.assert_allclose(rarity.share(np.array([mark.score for mark in marks])), [0.1, 0.01])


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_rows": 1},
        {"n_rows": 2.5},
        {"n_rows": 99},
        {"knots": np.array([1.0])},
        {"knots": np.linspace(0, 1, N_KNOTS).astype(np.float32)},
        {"knots": np.full(N_KNOTS, np.nan)},
        {"counts": np.linspace(1.0, 500.0, N_KNOTS)},
        {"counts": np.linspace(500.0, 0.0, N_KNOTS)},
        {"counts": np.full(N_KNOTS, -np.inf)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_state_that_no_fit_leads_to_is_refused(wrong):
    model, arrays = parts_of(Rarity.fit(SCORES))
    with pytest.raises(ModelFileError):
        model_from(
            Rarity,
            model | {name: value for name, value in wrong.items() if name not in arrays},
            arrays | {name: value for name, value in wrong.items() if name in arrays},
        )


def test_a_screening_without_a_reference_says_how_rare_each_row_is(tmp_path: Path) -> None:
    result, model = screen(correlated(120, odd=2))
    detector = model.detector
    assert result.rows.p_values is None and result.rows.rarities is not None
    assert result.rows.scale is not None and result.rows.scale.name == "how rare"
    # Rarity compares scores with those of the rows that trained the regressions between columns.
    assert detector.rarity.n_rows == detector.combined.cells.columns.n
    np.testing.assert_array_equal(result.rows.rarities, detector.rarity.share(result.rows.scores))
    for row in result.ranked:
        assert row.rarity == detector.rarity.describe(result.rows.rarities[row.row - 1])
        assert row.p_value is None
    limit = detector.rarity.share(np.array([result.threshold.value]))[0]
    assert result.threshold.rarity == detector.rarity.describe(limit)
    assert (result.rows.rarities[result.rows.is_flagged] <= limit).all()
    # A saved model reports the same rarity, whatever the other rows are.
    save_model(model, tmp_path / "m.kpca")
    explained, _ = explain_row(load_model(tmp_path / "m.kpca"), correlated(120, odd=2), row="120")
    assert explained.rarity == next(row.rarity for row in result.ranked if row.row == 120)


def test_a_clean_reference_has_p_values_and_a_hard_cut_has_neither() -> None:
    clean = screen(correlated(60), reference=correlated(80, seed=1))[0]
    assert (clean.rows.rarities, clean.ranked[0].rarity, clean.threshold.rarity) == (
        None,
        None,
        None,
    )
    assert clean.rows.scale is not None and clean.rows.scale.name == "p-value"
    for mark in clean.rows.scale.marks:
        assert (clean.rows.scores > mark.score).mean() == pytest.approx(float(mark.words), abs=0.15)
    hard = screen(correlated(60), options=ScreeningOptions(method="hoffmann"))[0]
    assert (hard.rows.rarities, hard.ranked[0].rarity, hard.rows.scale) == (None, None, None)


def test_a_clean_model_file_with_a_rarity_is_refused(tmp_path: Path) -> None:
    for name, clean in (("a", False), ("b", True)):
        save_model(fit_table(correlated(60), clean=clean)[0], tmp_path / name)
    (meta, arrays), (clean_meta, clean_arrays) = map(read_parts, (tmp_path / "a", tmp_path / "b"))
    clean_meta["model"]["detector"]["rarity"] = meta["model"]["detector"]["rarity"]
    extra = {name: array for name, array in arrays.items() if "rarity" in name}
    write_parts(tmp_path / "b", clean_meta, {**clean_arrays, **extra})
    with pytest.raises(ModelFileError, match=r"rarity do not fit the rest"):
        load_model(tmp_path / "b")
