"""`--method hoffmann` equals dense kernel PCA in NumPy in each interface."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel

import kpca_apps
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.compare.comparison import compare_table
from kpca_apps.novelty.detector import fit as fit_module
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.model import ScreeningOptions, load_model, save_model
from kpca_apps.report.novelty.page import render_comparison, render_screening
from kpca_apps.system.arrays import FloatArray
from tests.novelty.tables import correlated, frame_of

AS_IS, CONSTANT = 3, 4


@pytest.fixture(scope="module")
def rows() -> FloatArray:
    """Return columns of different units, an indicator and a constant."""
    X = np.random.default_rng(0).normal(size=(200, 5)) * [1.0, 50.0, 1e-3, 1.0, 0.0]
    X[:, AS_IS] = X[:, AS_IS] > 0
    X += [0.0, 7.0, 0.0, 0.0, 3.0]
    return X


def expected_errors(
    X: FloatArray, new: FloatArray, *, sigma: float | None = None, components: float = 0.8
) -> FloatArray:
    """Return reconstruction errors of `new` by kernel PCA with a dense eigendecomposition."""
    mean, sd = X.mean(axis=0), X.std(axis=0)
    mean[[AS_IS, CONSTANT]], sd[[AS_IS, CONSTANT]] = 0.0, 1.0
    X, new = (X - mean) / sd, (new - mean) / sd
    gamma = 1.0 / np.median(pdist(X, "sqeuclidean")) if sigma is None else 0.5 / sigma**2
    K, K_new = rbf_kernel(X, gamma=gamma), rbf_kernel(new, X, gamma=gamma)
    centre = np.eye(len(X)) - 1.0 / len(X)
    values, vectors = np.linalg.eigh(centre @ K @ centre)
    values, vectors = values[::-1], vectors[:, ::-1]
    q = int(components)
    if 0 < components < 1:
        q = int(np.searchsorted(np.cumsum(values) / values.sum(), components)) + 1
    projected = (K_new - K.mean(axis=0)) @ centre @ vectors[:, :q] / np.sqrt(values[:q])
    errors: FloatArray = 1.0 - 2.0 * K_new.mean(axis=1) + K.mean() - (projected**2).sum(axis=1)
    return errors


@pytest.mark.parametrize(
    "given", [{}, {"components": 0.95}, {"components": 7, "sigma": 1.5}, {"components": 0}]
)
def test_scores_are_the_errors_of_dense_kernel_pca(
    rows: FloatArray, given: dict[str, float]
) -> None:
    new = rows[:30] * 1.5
    detector = KernelPCANovelty(method="hoffmann", as_is=[AS_IS], random_state=0, **given).fit(rows)
    for X, scores in ((rows, detector.novelty_scores_), (new, detector.novelty_scores(new))):
        np.testing.assert_allclose(scores, expected_errors(rows, X, **given), rtol=0, atol=1e-10)
    assert detector.threshold_ == np.sort(detector.novelty_scores_)[-3]
    assert (detector.combined_, detector.rarity_, detector.calibration_) == (None, None, None)


def test_half_of_a_clean_reference_is_learned_from_and_half_calibrates(rows: FloatArray) -> None:
    detector = KernelPCANovelty(
        method="hoffmann", contaminated=False, as_is=[AS_IS], alpha=0.1, random_state=0
    ).fit(rows)
    learned = np.isnan(detector.novelty_p_values_)
    errors = expected_errors(rows[learned], rows)
    assert (detector.calibration_, learned.sum()) == ("split", 100)
    np.testing.assert_allclose(detector.novelty_scores_, errors, rtol=0, atol=1e-10)
    assert detector.threshold_ == pytest.approx(np.sort(errors[~learned])[91 - 1], abs=1e-10)


def test_at_least_one_direction_is_left_out() -> None:
    detector = KernelPCANovelty(method="hoffmann", components=0.999).fit([[0.0], [1.0], [5.0]])
    assert detector.subspace_.n_components == 1


def test_a_share_of_many_rows_is_found_through_landmarks(
    rows: FloatArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_module, "MOST_EIGENVALUES", 150)
    monkeypatch.setattr(fit_module, "HARD_LANDMARKS", 120)
    detector = KernelPCANovelty(method="hoffmann", as_is=[AS_IS], random_state=0).fit(rows)
    assert len(detector.detector_.landmarks) == 120
    assert np.corrcoef(detector.novelty_scores_, expected_errors(rows, rows))[0, 1] > 0.99
    assert detector.warnings_ == ()


def test_a_table_its_model_and_its_report_have_the_same_method(tmp_path: Path) -> None:
    columns = ColumnOptions(label="kind", id="name")
    options = ScreeningOptions(method="hoffmann", count=6, columns=columns, positive="odd")
    table = correlated(120, odd=6)
    result, model = screen(table, options=options)
    outlier = np.arange(120) >= 114
    assert result.run.settings["method"] == "hoffmann"
    q, kernel = result.run.settings["components"], result.run.settings["kernel"]
    assert q == model.detector.subspace.n_components
    assert result.ranked[0].reasons
    page = " ".join(render_screening(result).split())
    assert "Method: hoffmann. The score is the reconstruction error of the whole row" in page
    assert f"over {q} components, with the kernel {kernel}".replace("|", "") in page.replace(
        "|", ""
    )
    assert "Method: blocks" in render_screening(screen(table)[0])
    # The comparison lists Hoffmann's score once, with the AUROC of these scores.
    compared = compare_table(table, replace(options, method="blocks", count=None))
    (hoffmann,) = (m for m in compared.evaluations[0].methods if "Hoffmann" in m.name)
    assert hoffmann.auroc == pytest.approx(roc_auc_score(outlier, result.rows.scores), abs=1e-12)
    names = [method.name for method in result.evaluations[0].methods]
    assert names.count(hoffmann.name) == 1 and names[0] == hoffmann.name
    assert "Method: blocks" in render_comparison(compared)

    save_model(model, tmp_path / "m.kpca")
    again = load_model(tmp_path / "m.kpca")
    assert again.options.method == again.detector.parameters.method == "hoffmann"
    found = kpca_apps.screen_table(
        frame_of(120, odd=6), method="hoffmann", count=6, id="name", label="kind", positive="odd"
    )
    np.testing.assert_array_equal(found.rows.scores, result.rows.scores)
    new = frame_of(20, seed=1, odd=2)
    scores = [kpca_apps.score_table(m, new).rows.scores for m in (again, found.model)]
    np.testing.assert_array_equal(*scores)
