"""Rows known to be normal in a contaminated table are learned from and never flagged."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.rows import ArrayRows
from kpca_apps.novelty.detector.estimator import KernelPCANovelty

FloatArray = NDArray[np.float64]
RARE, FAULTS = slice(0, 20), slice(20, 30)


def rows_with_a_rare_kind(seed: int = 0) -> FloatArray:
    """Return 20 rows of a rare kind, 10 faults, and usual rows that follow three latent factors."""
    rng = np.random.default_rng(seed)
    usual = rng.normal(size=(600, 3)) @ rng.normal(size=(3, 6)) + 0.3 * rng.normal(size=(600, 6))
    sd = usual.std(axis=0)
    rare = 0.5 * usual[RARE] + 4.0 * sd * np.array([1, -1, 1, 0, 0, 0])
    faults = usual[FAULTS].copy()
    faults[np.arange(10), np.arange(10) % 6] += np.where(np.arange(10) % 2, 6, -6) * sd.mean()
    return np.vstack([rare, faults, usual[30:]])


def marked(n_known: int, n: int = 600) -> NDArray[np.bool_]:
    return np.arange(n) < n_known


@pytest.mark.parametrize("more", [{}, {"kernel": RBF(0.1)}])
def test_rows_like_known_ones_are_no_longer_odd_but_faults_are(more: dict[str, object]) -> None:
    X, known = rows_with_a_rare_kind(), marked(14)
    before = KernelPCANovelty(share=0.05, random_state=0, **more).fit(X)
    after = KernelPCANovelty(share=0.05, random_state=0, **more).fit(X, normal=known)

    def ranks_of(detector: KernelPCANovelty, rows: slice) -> FloatArray:
        """Return, for each of `rows`, how many rows not marked as known score at least as high."""
        others = detector.novelty_scores_[~known]
        return (others >= detector.novelty_scores_[rows, None]).sum(axis=1).astype(float)

    like = slice(14, 20)
    assert np.median(ranks_of(after, like)) > 2 * np.median(ranks_of(before, like))
    assert np.median(ranks_of(after, FAULTS)) <= np.median(ranks_of(before, FAULTS)) <= 20
    # New rows of the rare kind are less novel than every fault.
    assert (after.score_samples(X[like] + 0.01) > after.score_samples(X[FAULTS]).max()).all()


def test_known_rows_are_never_flagged_and_the_share_is_of_the_others() -> None:
    X = rows_with_a_rare_kind()
    # Each of these rows lies alone in a corner, so it scores high although the fit knows it.
    X[:3] = 50.0 * np.eye(3, 6)
    known = marked(3)
    detector = KernelPCANovelty(share=0.05, random_state=0).fit(X, normal=known)
    scores = detector.novelty_scores_
    assert (scores[known] > detector.threshold_).all()
    assert (detector.training_labels_[known] == 1).all()
    assert (detector.training_labels_ == -1).sum() == round(0.05 * 597)
    assert detector.threshold_ == np.sort(scores[~known])[-round(0.05 * 597) - 1]
    # Rows known to be normal may supply expected values.
    assert set(np.flatnonzero(known)) <= set(detector.detector_.neighbours.index)
    labels = KernelPCANovelty(share=0.05, random_state=0).fit_predict(X, normal=known)
    np.testing.assert_array_equal(labels, detector.training_labels_)


def test_a_far_known_row_hides_no_fault() -> None:
    X = rows_with_a_rare_kind()[20:]
    X[20, 0] = 1e6
    known = np.arange(len(X)) == 20
    before = KernelPCANovelty(share=0.05, random_state=0).fit(X)
    after = KernelPCANovelty(share=0.05, random_state=0).fit(X, normal=known)
    np.testing.assert_allclose(after.detector_.views.scales.sd, before.detector_.views.scales.sd)
    ranks = [
        (result.novelty_scores_ >= result.novelty_scores_[:10, None]).sum(axis=1)
        for result in (before, after)
    ]
    assert np.median(ranks[1]) <= np.median(ranks[0]) + 1


def test_an_empty_mask_changes_no_bit() -> None:
    X = rows_with_a_rare_kind()
    without = KernelPCANovelty(random_state=0).fit(X)
    no_row = KernelPCANovelty(random_state=0).fit(X, normal=np.zeros(len(X), dtype=bool))
    assert no_row.novelty_scores_.tobytes() == without.novelty_scores_.tobytes()
    assert no_row.threshold_ == without.threshold_


def test_row_sources_accept_known_rows_too() -> None:
    X, known = rows_with_a_rare_kind(), marked(14)
    at_once = KernelPCANovelty(random_state=0).fit(X, normal=known)
    by_rows = KernelPCANovelty(random_state=0).fit_rows(
        ArrayRows(X, np.arange(len(X))), normal=known
    )
    assert by_rows.novelty_scores_.tobytes() == at_once.novelty_scores_.tobytes()


@pytest.mark.parametrize(
    ("normal", "contaminated", "message"),
    [
        (np.zeros(599, dtype=bool), True, "a mask of 600 booleans, got bool of shape"),
        (np.array([1, 2, 3]), True, "a mask of 600 booleans, got int64"),
        (np.ones(600, dtype=bool), True, "fit with contaminated=False"),
        (marked(3), False, "with contaminated=False all rows are normal"),
        (marked(3, 300), False, r"a mask of 600 booleans, got bool of shape \(300,\)"),
    ],
)
def test_invalid_masks_are_refused(
    normal: NDArray[np.bool_], contaminated: bool, message: str
) -> None:
    # Masks are checked before a split halves the rows.
    for calibration in ("auto",) if contaminated else ("leave-one-out", "split"):
        detector = KernelPCANovelty(contaminated=contaminated, calibration=calibration)
        with pytest.raises(ValueError, match=message):
            detector.fit(rows_with_a_rare_kind(), normal=normal)
