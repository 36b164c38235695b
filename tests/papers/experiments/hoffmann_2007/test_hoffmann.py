"""Novelty detection on Hoffmann's sets, where ``KPCA_PAPERS`` names their folder."""

from __future__ import annotations

import numpy as np
import pytest

from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments.hoffmann_2007 import rates, sets
from tests.engine.examples import ORACLES


def test_hoffmanns_sets_have_the_errors_of_another_implementation(papers_folder):
    outcome = sets.run(PaperData(papers_folder))
    assert {claim.verdict for claim in outcome.claims} == {"reproduced with a condition"}
    assert all(claim.origin != "the paper" for claim in outcome.claims)
    rows = {row[0]: row for row in outcome.tables[0].rows}
    with np.load(ORACLES / "hoffmann_train_reconstruction_errors.npz") as oracle:
        for name, row in rows.items():
            known = oracle[f"{name}|sigma{row[2]}|q{row[3]}"]
            assert row[4:6] == (f"{known.max():.4f}", f"{known.mean():.4f}")


def test_novelty_rates_are_those_of_another_implementation(papers_folder):
    outcome = rates.run(PaperData(papers_folder))
    assert {claim.verdict for claim in outcome.claims} == {"reproduced with a condition"}
    areas = {row[:2]: float(row[2]) for row in outcome.tables[0].rows}
    assert areas["digit 0", "one-class SVM, best of 12"] == pytest.approx(0.9875, abs=2e-4)
    assert areas["digit 0", "linear PCA, best"] == pytest.approx(0.9861, abs=2e-4)
    X, malignant = PaperData(papers_folder).cancer()
    X = X + np.random.default_rng(0).uniform(-0.05, 0.05, X.shape)
    train = X[~malignant][:200]
    far = (((X - train.mean(axis=0)) / train.std(axis=0)) ** 2).sum(axis=1)
    higher = far[malignant][:, None] > far[~malignant][200:]
    assert areas["cancer", "distance to the mean"] == pytest.approx(higher.mean(), abs=1e-4)
    for method in (rates.CANCER, rates.SCALED_BY_ALL):
        assert areas["cancer", method] == pytest.approx(0.9963, abs=rates.EQUAL)
