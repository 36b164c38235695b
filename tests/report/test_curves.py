from __future__ import annotations

from dataclasses import replace

from kpca_apps.report.curves import standing, verdict
from tests.report import examples


def test_rivals_ahead_are_named_as_readily_as_those_behind() -> None:
    (evaluation,) = examples.evaluations()
    text = verdict(evaluation)
    assert "kernel PCA (0.833) is 2nd of 6: behind Parzen (0.857), " in text
    assert "level with one-class SVM (0.833), " in text
    assert "ahead of isolation forest (0.800), local outlier factor (0.750) and " in text
    assert standing(evaluation) == (
        "Kernel PCA comes 2nd of 6 by area under the ROC curve, and 2nd by average precision."
    )


def test_best_and_worst() -> None:
    (evaluation,) = examples.evaluations()
    ours, *rivals = evaluation.methods
    best = replace(evaluation, methods=(replace(ours, auroc=1.0), *rivals))
    worst = replace(evaluation, methods=(replace(ours, auroc=0.1), *rivals))
    assert "is 1st of 6: ahead of Parzen" in verdict(best).split(";")[0]
    assert "behind" not in verdict(best).split(";")[0]
    assert "ahead of" not in verdict(worst).split(";")[0]
    assert "is 6th of 6: behind Parzen" in verdict(worst)


def test_without_rivals_there_is_no_verdict() -> None:
    (evaluation,) = examples.evaluations()
    alone = replace(evaluation, methods=evaluation.methods[:1])
    assert verdict(alone) == ""
    assert standing(alone) == "There is no rival to compare with."
