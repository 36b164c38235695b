import numpy as np
import pytest

from kpca_apps.novelty.compare import baselines
from kpca_apps.novelty.compare.baselines import BASELINES, Baseline


@pytest.mark.parametrize("baseline", BASELINES, ids=lambda baseline: baseline.name)
def test_every_baseline_ranks_a_far_row_highest_and_new_rows_alike(baseline: Baseline) -> None:
    rng = np.random.default_rng(0)
    usual = rng.normal(size=(200, 3)) @ np.diag([1.0, 1.0, 0.2])
    far = np.array([[0.0, 0.0, 6.0]])
    for scored in (np.vstack([usual, far]), np.vstack([rng.normal(size=(9, 3)) * 0.2, far])):
        fit = scored if len(scored) > 200 else usual
        scores = baseline.scores(fit, scored, 0)
        assert scores.shape == (len(scored),) and scores.argmax() == len(scored) - 1


def test_linear_pca_is_the_residual_of_the_leading_directions() -> None:
    fit = np.random.default_rng(1).normal(size=(50, 4)) * np.array([5.0, 3.0, 0.5, 0.1])
    q = 2  # the first two directions hold 34 of the variance of 34.26
    centred = fit - fit.mean(axis=0)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:q]
    residual = ((centred - centred @ directions.T @ directions) ** 2).sum(axis=1)
    scores = next(r for r in BASELINES if r.name == "Linear PCA").scores(fit, fit, 0)
    np.testing.assert_allclose(scores, residual, atol=1e-10)


def test_quadratic_baselines_are_fitted_on_drawn_rows_and_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(baselines, "MAX_FIT_ROWS", 40)
    rows = np.random.default_rng(3).normal(size=(60, 2))
    for baseline in BASELINES:
        scores, note = baseline.run(rows, rows, 0)
        assert scores.shape == (60,)
        assert note.endswith("; fitted on 40 drawn rows") == baseline.quadratic


def test_one_class_svm_survives_distances_whose_square_is_denormal() -> None:
    rows = np.repeat([0.0, 1e-155, 1.0], [20, 20, 1])[:, None]
    scores = next(r for r in BASELINES if r.name == "One-class SVM").scores(rows, rows, 0)
    assert np.isfinite(scores).all()
    assert scores.argmax() == 40
