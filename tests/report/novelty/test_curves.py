from dataclasses import replace

import pytest

from kpca_apps.report.novelty.text import standing, verdict
from tests.report import examples


def test_baselines_ahead_are_named_as_readily_as_those_behind() -> None:
    (evaluation,) = examples.evaluations()
    assert verdict(evaluation).startswith(
        "By area under the ROC curve kernel PCA (0.833) shares 2nd place of 6 with one-class SVM "
        "(0.833): behind Parzen (0.857), ahead of isolation forest (0.800), local outlier factor "
        "(0.750) and "
    )


def test_the_standing_names_the_tests_and_the_ties() -> None:
    (first,) = examples.evaluations()
    ours, *baselines = first.methods
    second = replace(first, methods=(replace(ours, auroc=0.99, auprc=0.1), *baselines))
    shared = "shares 2nd place of 6 with one-class SVM"
    assert standing([first], "auroc") == f"By area under the ROC curve, kernel PCA {shared}."
    assert standing([first, first], "auroc") == (
        f"By area under the ROC curve, kernel PCA {shared} in both tests."
    )
    assert standing([first, second], "auroc") == (
        f"By area under the ROC curve, kernel PCA {shared} in test 1 and comes 1st of 6 in test 2."
    )
    assert standing([second], "auprc") == "By average precision, kernel PCA comes 6th of 6."


@pytest.mark.parametrize(("area", "is_hinted"), [(0.2, True), (0.48, False), (0.9, False)])
def test_an_area_well_below_chance_asks_about_the_label(area: float, is_hinted: bool) -> None:
    (evaluation,) = examples.evaluations()
    ours, *baselines = evaluation.methods
    for others in (baselines, []):
        judged = replace(evaluation, methods=(replace(ours, auroc=area), *others))
        assert ("well below 0.5" in verdict(judged)) == is_hinted


def test_best_and_worst_and_alone() -> None:
    (evaluation,) = examples.evaluations()
    ours, *baselines = evaluation.methods
    best = verdict(replace(evaluation, methods=(replace(ours, auroc=1.0), *baselines)))
    worst = verdict(replace(evaluation, methods=(replace(ours, auroc=0.1), *baselines)))
    assert "is 1st of 6: ahead of Parzen" in best.split(";")[0]
    assert "behind" not in best.split(";")[0]
    assert "ahead of" not in worst.split(";")[0] and "is 6th of 6: behind Parzen" in worst
    alone = replace(evaluation, methods=evaluation.methods[:1])
    assert verdict(alone) == standing([alone], "auroc") == ""
