"""The detector passes pyod's own tests of its detectors (its test_kpca.py, BSD-2)."""

import numpy as np
import pytest
from pyod.models.base import BaseDetector
from pyod.utils.data import generate_data
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from kpca_apps import KernelPCANovelty
from kpca_apps.novelty.detector.pyod import PyodNovelty

ROWS, NEW, LABELS, NEW_LABELS = generate_data(
    n_train=200, n_test=100, n_features=5, contamination=0.1, random_state=42
)


@pytest.fixture(scope="module")
def fitted() -> BaseDetector:
    return PyodNovelty(contamination=0.1).fit(ROWS)


def test_scores_and_labels(fitted: BaseDetector) -> None:
    assert roc_auc_score(LABELS, fitted.decision_scores_) >= 0.9
    assert roc_auc_score(NEW_LABELS, fitted.decision_function(NEW)) >= 0.9
    assert fitted.labels_.sum() == round(0.1 * len(ROWS))
    np.testing.assert_array_equal(fitted.labels_, fitted.decision_scores_ > fitted.threshold_)


def test_what_pyod_makes_of_the_scores(fitted: BaseDetector) -> None:
    order = np.argsort(fitted.decision_function(NEW))
    for method in ("linear", "unify"):
        assert (np.diff(fitted.predict_proba(NEW, method=method)[order, 1]) >= 0).all()
    labels, confidence = fitted.predict(NEW, return_confidence=True)
    assert set(labels) == {0, 1}
    assert ((confidence >= 0) & (confidence <= 1)).all()


def test_fit_predict_and_clone(fitted: BaseDetector) -> None:
    np.testing.assert_array_equal(clone(fitted).fit(ROWS).labels_, fitted.labels_)
    given = KernelPCANovelty(n_landmarks=50, random_state=1)
    assert PyodNovelty(0.2, detector=given).fit(ROWS).detector_.n_landmarks == 50
    assert given.share == KernelPCANovelty().share  # not changed


@pytest.mark.parametrize("contamination", [0, 0.6, -0.1])
def test_contamination_is_a_share_of_at_most_half(contamination: float) -> None:
    with pytest.raises(ValueError, match="contamination"):
        PyodNovelty(contamination)
