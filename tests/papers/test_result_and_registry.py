from __future__ import annotations

import pytest

from kpca_apps.errors import ConfigError
from kpca_apps.papers.data import FILES
from kpca_apps.papers.registry import all_experiments, chosen_experiments
from kpca_apps.papers.result import Claim, close_to, stated


@pytest.mark.parametrize(
    ("ours", "condition", "verdict"),
    [
        (1.05, "", "reproduced"),
        (1.05, "if smoothed", "reproduced with a condition"),
        (1.2, "", "not reproduced"),
        (0.8, "", "not reproduced"),
        (1.2, "if smoothed", "not reproduced"),
        (float("nan"), "", "not reproduced"),
    ],
)
def test_numbers_are_judged_by_their_tolerance(ours, condition, verdict):
    claim = close_to("a number", 1.0, ours, 0.1, condition=condition, reason="it differs")
    assert claim.verdict == verdict
    assert claim.why == ("it differs" if verdict == "not reproduced" else condition)


def test_statements_are_judged_by_what_holds():
    assert stated("s", "a", "b", True).verdict == "reproduced"
    assert stated("s", "a", "b", True, condition="c").why == "c"
    assert stated("s", "a", "b", False, condition="c").verdict == "not reproduced"


def test_a_value_that_is_not_the_papers_is_never_plainly_reproduced():
    for origin in ("quoted from memory", "another implementation"):
        near = close_to("a number", 1.0, 1.0, 0.1, origin=origin)
        said = stated("s", "a", "b", True, origin=origin)
        assert near.verdict == said.verdict == "reproduced with a condition"
        assert near.origin == said.origin == origin
        (told,) = near.reasons
        assert near.reasons == said.reasons and "could not be" in told and near.why == ""
        assert stated("s", "a", "b", False, origin=origin).verdict == "not reproduced"
        with pytest.raises(ValueError, match="not the paper's value"):
            Claim("a number", 1.0, 1.0, 0.1, "reproduced", origin=origin)
    assert stated("s", "a", "b", True).origin == "the paper"


def test_a_condition_is_always_told_and_that_of_the_origin_beside_it():
    both = stated("s", "a", "b", True, condition="smoothed", origin="quoted from memory")
    own, told = both.reasons
    assert own == both.why == "smoothed" and told.startswith("the paper could not be opened")
    assert stated("s", "a", "b", True, condition="smoothed").reasons == ("smoothed",)
    failed = close_to("n", 1.0, 2.0, 0.1, reason="it differs", origin="quoted from memory")
    assert failed.reasons == ("it differs",)
    with pytest.raises(ValueError, match="which condition"):
        Claim("a number", 1.0, 1.0, 0.1, "reproduced with a condition")


def test_a_value_may_be_from_another_text():
    assert close_to("n", 1.0, 1.0, 0.1, source="1998 journal").source == "1998 journal"
    assert stated("s", "a", "b", True, source="1996 report, B.2").source == "1996 report, B.2"


def test_every_experiment_can_be_found_and_names_known_data():
    known = all_experiments()
    assert len(known) >= 14
    for name, experiment in known.items():
        assert experiment.name == name == name.lower() and " " not in name
        assert experiment.paper and experiment.title
        assert set(experiment.data) <= set(FILES)
    assert chosen_experiments("all") == list(known.values())
    assert chosen_experiments("clusters") == [known["clusters"]]


def test_a_name_nobody_knows_is_answered_with_where_to_look():
    with pytest.raises(ConfigError, match=r'no experiment "fig-9"\. kpca papers list'):
        chosen_experiments("fig-9")
