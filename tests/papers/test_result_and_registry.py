from __future__ import annotations

import re
from importlib.resources import files

import pytest

from kpca_apps.errors import ConfigError
from kpca_apps.papers.claims import Claims
from kpca_apps.papers.data import FILES
from kpca_apps.papers.registry import all_experiments, chosen_experiments
from kpca_apps.papers.result import Claim, close_to, stated
from kpca_apps.papers.tables import read_table


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


def test_a_claim_with_a_condition_names_it():
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


def test_every_row_of_the_table_is_judged_by_the_experiment_it_names():
    rows = [(row["experiment"], row["claim"]) for row in read_table("claims")]
    room, judged = files("kpca_apps.papers.experiments"), []
    for name in all_experiments():
        text = room.joinpath(f"{name.replace('-', '_')}.py").read_text("utf-8")
        called = re.findall(r'judged(?:\.near)?\(\s*f?"([^"]+)"', text)
        judged += [(name, claim) for claim in called]
    both = ("novelty-rates", "best {task}")
    judged.remove(both)
    assert sorted(rows) == sorted(
        [*judged, ("novelty-rates", "best cancer"), ("novelty-rates", "best digit 0")]
    )


def test_measured_values_fill_the_texts_of_a_claim():
    claim = Claims("half-moons")("elbow", True, 0.98, 7.25, 20)
    assert claim.ours.startswith("the first two carry at least 0.980 of the variance")
    number = Claims("segmentation").near("all components", 0.04, "linear", 0.038)
    assert (number.what, number.paper, number.tolerance) == ("linear, all components", 0.038, 0.005)
    assert number.verdict == "reproduced with a condition"
    assert (
        Claims("segmentation").near("all components", 0.05, "linear", 0.038).verdict
        == "not reproduced"
    )
