from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import expon, gamma, genpareto

from kpca_apps.errors import ModelFileError
from kpca_apps.novelty.detector.rarity import Rarity
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions, load_model, save_model
from kpca_apps.novelty.screening.run import explain_row, screen
from tests.novelty.tables import correlated
from tests.system.model_parts import from_file, model_from, parts_of, read_parts, write_parts

SCORES = np.random.default_rng(0).exponential(2.0, 500)


@st.composite
def scores_to_fit(draw: st.DrawFn) -> np.ndarray:
    """Scores of any size, light and heavy tails, with ties and without."""
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
def test_a_higher_score_is_rarer_without_end(scores, seed):
    rarity = Rarity.fit(scores)
    spread = np.ptp(scores) or abs(scores[0]) or 1.0
    beyond = scores.max() + spread * np.geomspace(1e-6, 1e9, 60)
    within = np.random.default_rng(seed).uniform(scores.min() - spread, scores.max(), 200)
    asked = np.unique(np.concatenate([within, scores, beyond]))
    shares = rarity.share(asked)
    assert np.all((shares > 0) & (shares < 1))
    assert np.all(np.diff(shares) <= 1e-15)
    # Strictly, where scores differ by more than rounding.
    apart = np.diff(asked) > 1e-9 * spread
    assert np.all(np.diff(shares)[apart] < 0)
    # The same for a row alone as among others.
    np.testing.assert_array_equal(shares[::7], [rarity.share(asked[[i]])[0] for i in
                                                range(0, len(asked), 7)])  # fmt: skip


@given(scores=scores_to_fit())
def test_most_shares_are_those_counted(scores):
    rarity, n = Rarity.fit(scores), len(scores)
    body = scores[scores <= rarity.knots[-1]]
    counted = (scores >= body[:, None]).sum(axis=1) / (n + 1)
    # Of at most 256 knots: between two of them lie n / 255 rows and what ties with them.
    at_knots = np.isin(body, rarity.knots)
    np.testing.assert_allclose(rarity.share(body)[at_knots], counted[at_knots])
    if len(np.unique(scores)) == n:
        np.testing.assert_allclose(rarity.share(body), counted, atol=1 / 255 + 2 / n)


@pytest.mark.release
@pytest.mark.parametrize("truth", [expon(), gamma(3.0), genpareto(0.3)], ids=["exp", "gamma", "gp"])
@pytest.mark.parametrize("n", [60, 400, 5_000])
def test_the_tail_holds_for_rows_never_seen(truth, n):
    rng = np.random.default_rng(n)
    fits = [Rarity.fit(truth.rvs(n, random_state=rng)) for _ in range(200)]
    # One sample is off, by more the further out; most of the shares said must be right in size.
    for rows, most in ((1.0, 4.0), (3.0, 8.0)):
        share = 1.0 / (rows * n)
        said = np.array([fit.share(np.array([truth.isf(share)]))[0] for fit in fits]) / share
        assert 0.8 < np.median(said) < 3.5
        assert np.quantile(said, 0.9) < most
        assert np.quantile(said, 0.1) > 1 / most


def test_the_tail_is_that_of_scipy():
    rarity = Rarity.fit(SCORES)
    beyond = np.array([0.1, 1.0, 30.0])
    tail = genpareto(rarity.shape, scale=rarity.scale)
    expected = rarity.tail_share * tail.sf(beyond)
    np.testing.assert_allclose(rarity.share(rarity.knots[-1] + beyond), expected)


def test_words_go_as_far_as_the_rows():
    rarity = Rarity.fit(SCORES)
    shares = (1.0, 0.5, 0.1, 0.034, 1 / 499, 1 / 1234, 1 / 5001)
    assert [rarity.describe(share).words for share in shares] == [
        "99 in 100", "50 in 100", "10 in 100", "1 in 29", "1 in 500", "about 1 in 1,200",
        "< 1 in 5,000",
    ]  # fmt: skip
    assert rarity.describe(0.034).share == 0.034
    assert Rarity.fit(SCORES[:172]).describe(1e-9).words == "< 1 in 1,700"


@given(scores=scores_to_fit())
def test_marks_are_where_shares_are_round(scores):
    scale = Rarity.fit(scores).scale_of_scores
    ranked = [mark.score for mark in scale.marks]
    assert ranked == sorted(ranked)
    assert f"the {len(scores):,} that the model" in scale.statement


def test_marks_read_back():
    rarity = Rarity.fit(SCORES)
    marks = rarity.scale_of_scores.marks
    assert [mark.words for mark in marks] == ["1 in 10", "1 in 100", "about 1 in 1,000"]
    shares = rarity.share(np.array([mark.score for mark in marks]))
    np.testing.assert_allclose(shares, [0.1, 0.01, 0.001])


def test_a_saved_scale_is_the_same_to_the_bit():
    rarity = Rarity.fit(SCORES)
    again = from_file(rarity)
    asked = np.linspace(-1, 90, 300)
    np.testing.assert_array_equal(again.share(asked), rarity.share(asked))


@pytest.mark.parametrize(
    "wrong",
    [
        {"scale": 0.0},
        {"scale": float("inf")},
        {"shape": -0.1},
        {"shape": True},
        {"n_rows": 1},
        {"n_rows": 2.5},
        {"tail_share": 0.9},
        {"knots": np.array([1.0])},
        {"knots": SCORES[:256]},
        {"knots": np.linspace(0, 1, 256).astype(np.float32)},
        {"knots": np.full(256, np.nan)},
        {"shares": np.linspace(0.1, 0.9, 256)},
        {"shares": np.linspace(2.0, 0.9, 256)},
        {"shares": np.full(256, -np.inf)},
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
    assert result.p_values is None
    assert result.rarities is not None
    assert result.scale is not None
    assert result.scale.name == "how rare"
    # Among the rows that the regressions between columns were learned from.
    assert detector.rarity.n_rows == detector.combined.cells.residuals.n
    np.testing.assert_array_equal(result.rarities, detector.rarity.share(result.scores))
    for row in result.ranked:
        assert row.rarity == detector.rarity.describe(result.rarities[row.row - 1])
        assert row.p_value is None
    limit = detector.rarity.share(np.array([result.threshold.value]))[0]
    assert result.threshold.rarity == detector.rarity.describe(limit)
    assert (result.is_flagged == (result.rarities < limit)).all()
    # Told the same of a row by a saved model, whatever the other rows.
    save_model(model, tmp_path / "m.kpca")
    told, _ = explain_row(load_model(tmp_path / "m.kpca"), correlated(120, odd=2), row="120")
    assert told.rarity == next(row.rarity for row in result.ranked if row.row == 120)


def test_a_clean_reference_has_p_values_and_a_hard_cut_has_neither() -> None:
    clean = screen(correlated(60), reference=correlated(80, seed=1))[0]
    assert (clean.rarities, clean.ranked[0].rarity, clean.threshold.rarity) == (None, None, None)
    assert clean.scale is not None
    assert clean.scale.name == "p-value"
    for mark in clean.scale.marks:
        assert (clean.scores > mark.score).mean() == pytest.approx(float(mark.words), abs=0.15)
    hard = screen(correlated(60), options=ScreeningOptions(kernel="rbf", n_components=2))[0]
    assert (hard.rarities, hard.ranked[0].rarity, hard.scale) == (None, None, None)


def test_a_clean_model_file_with_a_rarity_is_refused(tmp_path: Path) -> None:
    for name, clean in (("a", False), ("b", True)):
        save_model(fit_table(correlated(60), clean=clean)[0], tmp_path / name)
    (meta, arrays), (clean_meta, clean_arrays) = map(read_parts, (tmp_path / "a", tmp_path / "b"))
    clean_meta["model"]["detector"]["rarity"] = meta["model"]["detector"]["rarity"]
    extra = {name: array for name, array in arrays.items() if "rarity" in name}
    write_parts(tmp_path / "b", clean_meta, {**clean_arrays, **extra})
    with pytest.raises(ModelFileError, match=r"rarity do not fit the rest"):
        load_model(tmp_path / "b")
