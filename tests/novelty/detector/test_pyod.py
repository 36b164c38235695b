"""The adapter against what pyod's own tests ask of its detectors (its test_kpca.py, BSD-2)."""

import math

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from kpca_apps import KernelPCANovelty, PyodNovelty


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows and labels as pyod.utils.data.generate_data makes them: 10 % uniform among Gaussian."""
    rng = np.random.default_rng(42)

    def made(n: int) -> tuple[np.ndarray, np.ndarray]:
        outliers = round(0.1 * n)
        rows = [2 + rng.normal(size=(n - outliers, 5)), rng.uniform(-4, 4, (outliers, 5))]
        return np.vstack(rows), np.repeat([0, 1], [n - outliers, outliers])

    return (*made(200), *made(100))


@pytest.fixture(scope="module")
def fitted(data: tuple[np.ndarray, ...]) -> PyodNovelty:
    return PyodNovelty(contamination=0.1).fit(data[0])


def test_parameters_and_scores(fitted: PyodNovelty, data: tuple[np.ndarray, ...]) -> None:
    rows, labels, new, new_labels = data
    for name in ("decision_scores_", "labels_", "threshold_"):
        assert getattr(fitted, name) is not None
    assert len(fitted.decision_scores_) == len(rows)
    assert roc_auc_score(labels, fitted.decision_scores_) >= 0.9
    assert roc_auc_score(new_labels, fitted.decision_function(new)) >= 0.9
    assert fitted.labels_.sum() == round(0.1 * len(rows))
    assert set(fitted.predict(new)) <= {0, 1}


def test_labels_are_what_the_threshold_makes_of_the_scores(fitted: PyodNovelty) -> None:
    np.testing.assert_array_equal(fitted.labels_, fitted.decision_scores_ > fitted.threshold_)


def test_shares(fitted: PyodNovelty, data: tuple[np.ndarray, ...]) -> None:
    shares = fitted.predict_proba(data[2])
    assert shares.min() >= 0
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    order = np.argsort(fitted.decision_function(data[2]))
    assert (np.diff(shares[order, 1]) >= 0).all()


def test_fit_predict_and_clone(fitted: PyodNovelty, data: tuple[np.ndarray, ...]) -> None:
    np.testing.assert_array_equal(clone(fitted).fit_predict(data[0]), fitted.labels_)
    given = KernelPCANovelty(n_landmarks=50, random_state=1)
    other = PyodNovelty(0.2, detector=given).fit(data[0])
    assert other.detector_.n_landmarks == 50
    assert given.share == KernelPCANovelty().share  # not changed


@pytest.mark.parametrize("contamination", [0, 0.6, -0.1])
def test_contamination_is_a_share_of_at_most_half(contamination: float) -> None:
    with pytest.raises(ValueError, match="contamination is"):
        PyodNovelty(contamination).fit(np.zeros((5, 2)))


def test_confidence_and_rejection(fitted: PyodNovelty, data: tuple[np.ndarray, ...]) -> None:
    rows, scores = data[0], fitted.decision_scores_
    labels, confidence = fitted.predict(rows, return_confidence=True)
    np.testing.assert_array_equal(confidence, fitted.predict_confidence(rows))
    n, k = len(scores), len(scores) - int(len(scores) * fitted.contamination)
    for score, label, sure in zip(fitted.decision_function(rows), labels, confidence, strict=True):
        # P(at least k of n draws are below), each with Laplace's rule of succession.
        p = (1 + np.count_nonzero(scores <= score)) / (2 + n)
        above = sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1, n + 1))
        assert sure == pytest.approx(above if label else 1 - above, abs=1e-9)
    rejected = [fitted.predict_with_rejection(rows, T=T) for T in (1.0, 5.0)]
    assert set(rejected[0]) <= {0, 1, -2}
    assert ((rejected[0] == -2) <= (rejected[1] == -2)).all()
    kept = rejected[1] != -2
    np.testing.assert_array_equal(rejected[1][kept], labels[kept])
    shares, sure = fitted.predict_proba(rows, method="unify", return_confidence=True)
    np.testing.assert_array_equal(sure, confidence)
    assert (np.diff(shares[np.argsort(fitted.decision_function(rows)), 1]) >= 0).all()
    with pytest.raises(ValueError, match="linear or unify"):
        fitted.predict_proba(rows, method="other")  # type: ignore[arg-type]


def test_rejection_costs_what_pyod_says(fitted: PyodNovelty, data: tuple[np.ndarray, ...]) -> None:
    # Of pyod 3.6.7's KPCA, whatever its scores, for 200 rows.
    for T, costs, expected in (
        (1.0, (1, 1, -1), [0.014168379749754184, 1.1275818382602285, 0.19265912432740342]),
        (6.0, (2, 3, 0.5), [0.11776125314461364, 0.35300224728019247, 0.45824413212297543]),
    ):
        labels, found = fitted.predict_with_rejection(data[2], T, True, 0.1, *costs)
        assert found == pytest.approx(expected, rel=1e-9)
        np.testing.assert_array_equal(labels, fitted.predict_with_rejection(data[2], T))
    share = fitted.compute_rejection_stats(6.0)[0]
    # Rows below which p of all lie are rejected where the tail of a binomial is no tail.
    p = np.linspace(0, 1, 100_001)
    tail = binom.cdf(19, 200, p)
    assert share == pytest.approx(((tail > np.exp(-6)) & (tail < 1 - np.exp(-6))).mean(), abs=2e-5)
    with pytest.raises(ValueError, match="delta"):
        fitted.compute_rejection_stats(delta=1.0)


def test_scores_are_judged_by_labels(data: tuple[np.ndarray, ...]) -> None:
    detector, rows = PyodNovelty(0.1), data[0]
    labels = np.zeros(len(rows), int)
    labels[np.argsort(-detector.fit(rows).decision_scores_)[:4]] = 1
    assert detector.fit_predict_score(rows, labels) == 1.0
    assert detector.fit_predict_score(rows, labels, scoring="prc_n_score") == 1.0
    with pytest.raises(NotImplementedError):
        detector.fit_predict_score(rows, labels, scoring="other")  # type: ignore[arg-type]
