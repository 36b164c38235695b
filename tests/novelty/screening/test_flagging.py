from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.errors import ConfigError
from kpca_apps.novelty.detector.threshold import top_count
from kpca_apps.novelty.screening.flagging import flag_above, flag_by_choice, flag_by_rate
from kpca_apps.novelty.screening.options import Rule
from kpca_apps.novelty.screening.ranking import novelty_ranks

SCORES = np.array([0.1, 0.9, 0.3, 0.8, 0.2])


def test_a_count_flags_that_many_rows_and_the_threshold_lies_just_below_them() -> None:
    flagged, info = flag_by_choice(Rule("count", 2), SCORES)
    np.testing.assert_array_equal(flagged, SCORES > info.value)
    assert (flagged.sum(), info.value, info.calibration) == (2, 0.3, None)
    assert "2 rows of 5" in info.statement
    assert "no false-alarm rate" in info.statement


def test_a_small_share_still_flags_one_row() -> None:
    flagged, info = flag_by_choice(Rule("share", 0.01), SCORES)
    assert flagged.tolist() == [False, True, False, False, False]
    assert info.statement.startswith("A choice: a share of 1 % flags the 1 row of 5")


def test_a_row_above_others_that_all_score_alike_is_flagged_alone() -> None:
    scores = np.ones(200)
    scores[17] = 9.0
    flagged, info = flag_by_choice(Rule("share", 0.01), scores)
    assert np.flatnonzero(flagged).tolist() == [17]
    assert info.statement.startswith(
        "A choice: a share of 1 % asks for 2 rows of 200, but 199 of them score alike: only the "
        "other 1 is flagged"
    )


@st.composite
def scores_with_ties(draw: st.DrawFn) -> np.ndarray:
    """Few different scores, some of which differ by rounding only."""
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
    flagged, info = flag_by_choice(Rule("share", share), scores)
    np.testing.assert_array_equal(flagged, scores > info.value)
    by_count, other = flag_by_choice(Rule("count", count), scores)
    assert (by_count.tolist(), other.value) == (flagged.tolist(), info.value)
    # By comparing each row with each: those above the last row asked for, and those equal to it
    # but for rounding (values drawn apart differ by far more).
    last = np.sort(scores)[-count]
    wanted = scores > last * (1 - 1e-11)
    if wanted.all():
        # Those above the last, which all others are equal to.
        wanted = scores > last * (1 + 1e-11)
        said = " of them score alike: only the other " if wanted.any() else "all score alike: none "
        assert said in info.statement
    np.testing.assert_array_equal(flagged, wanted)
    # A list by rank begins with the flagged rows, in whatever order ties are.
    ranks = novelty_ranks(scores, lambda rows: scores[::-1][rows])
    assert ranks[flagged].max(initial=0) == flagged.sum()
    assert (" more that score" in info.statement) == (flagged.sum() > count)


def test_a_count_of_the_whole_table_is_refused() -> None:
    with pytest.raises(ConfigError, match="every one of the 5 rows"):
        flag_by_choice(Rule("count", 5), SCORES)


def test_a_threshold_of_an_earlier_table_is_called_a_choice() -> None:
    flagged, info = flag_above(Rule("share", 0.01), SCORES, 0.25)
    assert flagged.tolist() == [False, True, True, True, False]
    assert (info.value, info.n_calibration) == (0.25, 0)


def test_alpha_flags_by_the_conformal_quantile() -> None:
    calibration = np.arange(1.0, 100.0)
    flagged, info, warnings = flag_by_rate(
        Rule("alpha", 0.05), np.array([94.0, 95.0, 95.5]), calibration, "leave-one-out"
    )
    assert (flagged.tolist(), info.value, warnings) == ([False, False, True], 95.0, ())
    assert "About 5 %" in info.statement
    assert "approximate" in info.statement


def test_too_few_clean_rows_flag_nothing_and_say_the_smallest_rate() -> None:
    flagged, info, warnings = flag_by_rate(
        Rule("alpha", 0.05), np.array([1e9]), np.arange(9.0), "split"
    )
    assert not flagged.any()
    assert math.isinf(info.value)
    assert info.statement == "Nothing can be flagged at 5 %: 9 reference rows allow 10 % at best."
    assert warnings == (
        "9 reference rows are too few for alpha 0.05: give at least 19, or a larger --alpha.",
    )
    _, info, warnings = flag_by_rate(Rule("alpha", 0.05), SCORES, np.arange(19.0), "split")
    assert (math.isinf(info.value), warnings) == (False, ())


def test_fdr_flags_the_list_of_benjamini_and_hochberg() -> None:
    calibration = np.arange(1.0, 1000.0)
    scores = np.array([2000.0, 1999.0, 5.0, 6.0, 7.0])
    flagged, info, warnings = flag_by_rate(Rule("fdr", 0.1), scores, calibration, "split")
    np.testing.assert_array_equal(flagged, scores > info.value)
    assert (flagged.sum(), warnings) == (2, ())


@pytest.mark.parametrize(("score", "n_flagged"), [(0.5, 0), (2000.0, 4)])
def test_fdr_threshold_parts_the_rows_where_none_or_all_are_listed(
    score: float, n_flagged: int
) -> None:
    scores = np.full(4, score)
    flagged, info, _ = flag_by_rate(Rule("fdr", 0.1), scores, np.arange(1.0, 1000.0), "split")
    np.testing.assert_array_equal(flagged, scores > info.value)
    assert flagged.sum() == n_flagged


def test_fdr_says_when_no_single_row_can_be_listed() -> None:
    _, info, warnings = flag_by_rate(Rule("fdr", 0.1), SCORES, np.arange(9.0), "split")
    assert math.isinf(info.value)
    assert "from 9 reference rows: the smallest p-value they allow is 0.1, and" in info.statement
    assert "among 5 rows it takes 5 that have it." in info.statement
    assert len(warnings) == 1
    assert "--alpha" in warnings[0]
    # So it is: five rows beyond all reference rows make a list, four and a usual one do not.
    for n_far, listed in ((5, 5), (4, 0)):
        scores = np.array([9e9] * n_far + [0.5] * (5 - n_far))
        flagged, _, _ = flag_by_rate(Rule("fdr", 0.1), scores, np.arange(9.0), "split")
        assert flagged.sum() == listed
    _, info, _ = flag_by_rate(Rule("fdr", 0.05), SCORES, np.arange(9.0), "split")
    assert "which is above the rate itself" in info.statement


def test_an_empty_list_says_why() -> None:
    _, info, warnings = flag_by_rate(Rule("fdr", 0.1), SCORES, np.arange(1.0, 1000.0), "split")
    assert (math.isfinite(info.value), warnings) == (True, ())
    assert info.statement.startswith("The list is empty: no p-value of the 5 rows is small enough")
    assert info.statement.endswith("held back (guaranteed).")


def test_a_choice_beside_a_reference_points_to_the_p_values() -> None:
    _, info = flag_by_choice(Rule("count", 2), SCORES, clean=True)
    assert info.statement.endswith("; p-values say how rare each score is among normal rows.")
