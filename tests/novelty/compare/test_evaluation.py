from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import auc, average_precision_score, roc_auc_score

from kpca_apps.novelty.compare.evaluation import MAX_POINTS, judge


def test_areas_are_those_of_all_rows_and_curves_are_thin_but_whole() -> None:
    rng = np.random.default_rng(0)
    outlier = rng.random(5000) < 0.1
    scores = rng.normal(size=5000) + outlier
    curves = judge("any", outlier, scores)
    assert curves.auroc == pytest.approx(roc_auc_score(outlier, scores), abs=1e-12)
    assert curves.auprc == pytest.approx(average_precision_score(outlier, scores), abs=1e-12)
    for x, y in (
        (curves.false_positive_rate, curves.true_positive_rate),
        (curves.recall, curves.precision),
    ):
        assert len(x) == len(y) <= MAX_POINTS
        assert (np.diff(x) >= 0).all()
        assert (x[0], x[-1]) == (0.0, 1.0)
    thinned = auc(curves.false_positive_rate, curves.true_positive_rate)
    assert thinned == pytest.approx(curves.auroc, abs=0.005)
