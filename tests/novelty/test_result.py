import numpy as np
import pytest

from kpca_apps.novelty.relations.rule import WHOLE_TABLE
from kpca_apps.novelty.result import COMPARING, ScoreDistribution


def summary(scores: np.ndarray, n_flagged: int) -> ScoreDistribution:
    return ScoreDistribution.of(scores, n_flagged)


@pytest.mark.parametrize("n_flagged", [0, 1, 60, 999, 1_000])
@pytest.mark.parametrize("digits", [1, 12])
def test_every_number_is_that_of_all_scores(n_flagged: int, digits: int) -> None:
    scores = np.round(np.random.default_rng(0).beta(2, 9, 1_000), digits)
    found, falling = summary(scores, n_flagged), np.sort(scores)[::-1]
    assert (found.n_rows, found.n_flagged) == (1_000, n_flagged)
    np.testing.assert_array_equal(found.scores, falling[found.ranks - 1])
    np.testing.assert_array_equal(found.n_above, (scores > found.scores[:, None]).sum(axis=1))
    np.testing.assert_array_equal(found.counts, np.histogram(scores, found.edges)[0])
    assert {1, 1_000} <= {*found.ranks.tolist()}
    assert {n_flagged // 2 + 1, min(2 * n_flagged, 999) + 1} <= {*found.ranks.tolist()}
    assert len(found.flagged_scores) == min(n_flagged, 200)
    assert np.isin(found.flagged_scores, falling[:n_flagged]).all()


def test_short_lists_are_kept_whole_and_wide_ones_get_bins_by_a_factor() -> None:
    found = summary(np.geomspace(1e-6, 10.0, 40), 3)
    assert found.ranks.tolist() == list(range(1, 41)) and found.logarithmic
    assert found.edges[1] / found.edges[0] == pytest.approx(found.edges[-1] / found.edges[-2])


@pytest.mark.parametrize("value", [0.0, 0.5, -3.0])
def test_scores_all_alike_lie_in_one_bin_amid_others(value: float) -> None:
    histogram = summary(np.full(50, value), 1)
    assert (histogram.counts.max(), histogram.counts.sum()) == (50, 50)
    assert (histogram.n_above == 0).all()


def test_kinds_that_compare_rows_are_those_of_rules() -> None:
    assert tuple(rule.__struct_config__.tag for rule in WHOLE_TABLE) == COMPARING
