import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.detector.threshold import (
    Rule,
    conformal_p_values,
    discovery_limit,
    rate_threshold,
    smallest_rate,
    top_count,
)

scores_strategy = st.lists(
    st.floats(0, 1e6, allow_nan=False, allow_subnormal=False), min_size=1, max_size=60
).map(np.array)


@given(scores_strategy, st.floats(0.001, 0.999), scores_strategy)
def test_threshold_and_p_values_decide_alike(calibration, alpha, scores):
    threshold = rate_threshold(calibration, alpha)
    p_values = conformal_p_values(calibration, scores)
    # At p = alpha exactly, rounding decides; elsewhere threshold and p-values must agree.
    clear = ~np.isclose(p_values, alpha, rtol=0, atol=1e-7)
    assert np.array_equal((scores > threshold)[clear], (p_values < alpha)[clear])


@given(scores_strategy, st.floats(0.01, 0.99))
def test_threshold_flags_at_most_alpha_of_exchangeable_rows(scores, alpha):
    # Each row in turn is the new row, and all others calibrate, as in the proof of the rate.
    flagged = [
        scores[i] > rate_threshold(np.delete(scores, i), alpha)
        for i in range(len(scores))
        if len(scores) > 1
    ]
    assert np.mean(flagged or [0]) <= alpha + 1e-9


def test_threshold_is_infinite_where_too_few_rows_calibrate():
    scores = np.arange(1.0, 20.0)
    assert rate_threshold(scores, smallest_rate(19)) == 19.0
    assert math.isinf(rate_threshold(scores, 0.049))


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=50).map(np.array), st.floats(0.01, 0.5))
def test_benjamini_hochberg_equals_scipy(p_values, rate):
    adjusted = false_discovery_control(p_values)
    clear = ~np.isclose(adjusted, rate, rtol=1e-9)
    listed = np.log(p_values) <= discovery_limit(np.log(p_values), len(p_values), rate)
    assert np.array_equal(listed[clear], (adjusted <= rate)[clear])


@pytest.mark.parametrize(
    ("n_rows", "share", "expected"), [(344, 0.01, 3), (3, 0.01, 1), (10, 0.99, 9), (1000, 0.05, 50)]
)
def test_top_count(n_rows, share, expected):
    assert top_count(n_rows, share) == expected


def test_the_estimator_flags_by_the_rule_that_tables_are_screened_by():
    rows = np.random.default_rng(0).normal(size=(80, 3))
    choice = KernelPCANovelty(share=0.05, random_state=0).fit(rows)
    assert choice.threshold_ == Rule("share", 0.05).threshold(choice.novelty_scores_)
    assert choice.threshold_ == Rule("count", 4).threshold(choice.novelty_scores_)
    rate = KernelPCANovelty(contaminated=False, alpha=0.1, random_state=0).fit(rows)
    found = Rule("alpha", 0.1).threshold(rate.novelty_scores_, rate.calibration_scores_)
    assert rate.threshold_ == found
    for detector in (choice, rate):
        flagged = detector.novelty_scores_ > detector.threshold_
        assert np.array_equal(detector.training_labels_ == -1, flagged)
