import re
from importlib.resources import files

import pytest

from kpca_apps.errors import ConfigError
from kpca_apps.papers import claims, experiments
from kpca_apps.papers.claims import compare, judge
from kpca_apps.papers.data import FILES
from kpca_apps.papers.registry import all_experiments, chosen_experiments
from kpca_apps.papers.result import Claim
from kpca_apps.papers.tables import read_table


def test_a_claim_with_a_condition_names_it():
    with pytest.raises(ValueError, match="which condition"):
        Claim("a number", 1.0, 1.0, 0.1, "reproduced with a condition")


def test_every_experiment_can_be_found_and_names_known_data():
    known = all_experiments()
    assert len(known) >= 14
    for name, experiment in known.items():
        assert experiment.name == name == name.lower() and " " not in name
        assert experiment.paper and experiment.title
        assert set(experiment.data) <= set(FILES)
    assert chosen_experiments("all") == list(known.values())
    assert chosen_experiments("clusters") == [known["clusters"]]


def test_an_unknown_name_gives_a_pointer_to_the_list():
    with pytest.raises(
        ConfigError, match=r'no experiment "fig-9"\. For the names, run: kpca papers list'
    ):
        chosen_experiments("fig-9")


def one_claim(monkeypatch, condition="", reason="it differs"):
    row = {"claim": "c", "what": "what", "paper": "1.0", "ours": "{0}", "tolerance": "0.1"}
    row |= {"condition": condition, "reason": reason, "source": "1998 journal"}
    monkeypatch.setattr(claims, "read_table", lambda name: (row,))


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
def test_numbers_are_judged_by_their_tolerance(monkeypatch, ours, condition, verdict):
    one_claim(monkeypatch, condition)
    claim, statement = compare("c", ours, ours), judge("c", verdict != "not reproduced", ours)
    why = "it differs" if verdict == "not reproduced" else condition
    assert claim == Claim("what", 1.0, ours, 0.1, verdict, why, "1998 journal") or ours != ours
    assert statement == Claim("what", "1.0", str(ours), None, verdict, why, "1998 journal")


def test_without_a_reason_the_condition_says_why(monkeypatch):
    one_claim(monkeypatch, "if smoothed", "")
    assert judge("c", False, "").why == "if smoothed"


def test_every_row_of_the_table_is_judged_once_by_a_name_of_its_own():
    texts = [
        path.read_text("utf-8")
        for path in files(experiments.__name__).iterdir()
        if path.name.endswith(".py")
    ]
    called = re.findall(r'(?:judge|compare)\(\s*f?"([^"]+)"', "\n".join(texts))
    called.remove("best {task}")
    rows = [row["claim"] for row in read_table("claims")]
    assert sorted(rows) == sorted([*called, "best cancer", "best digit 0"])
    assert {row["experiment"] for row in read_table("claims")} < set(all_experiments())


def test_measured_values_fill_the_texts_of_a_claim():
    claim = judge("elbow", True, 0.98, 7.25, 20)
    assert claim.ours.startswith("the first two carry at least 0.980 of the variance")
    number = compare("all components", 0.04, "linear", 0.038)
    assert (number.what, number.paper, number.tolerance) == ("linear, all components", 0.038, 0.005)
