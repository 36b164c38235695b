"""Novelty detection on Hoffmann's data, if ``KPCA_PAPERS`` names its folder."""

import numpy as np
import pytest

from kpca_apps.engine.kernels import RBF
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments import hoffmann
from kpca_apps.papers.measuring import components


def test_every_claim_on_the_sets_is_reproduced_and_can_fail(papers_folder):
    data = PaperData(papers_folder)
    assert {claim.verdict for claim in hoffmann.run_novelty_sets(data).claims} == {"reproduced"}
    X = data.hoffmann("square")
    far = np.vstack([X, [[9.0, 9.0]]])  # a row with the largest error, which widens the boundary
    wide = components(RBF.from_sigma(0.4), far, 1)
    assert hoffmann._shape("square", wide, far).verdict == "not reproduced"
    noisy = data.hoffmann("square-noise")
    few = components(RBF.from_sigma(5.0), noisy, 0)
    assert hoffmann._noise("square-noise", few, noisy).verdict == "not reproduced"


def test_rates_are_those_of_the_paper_or_say_why(papers_folder):
    outcome = hoffmann.run_novelty_rates(PaperData(papers_folder))
    verdicts = {claim.what: claim.verdict for claim in outcome.claims}
    failing = [what for what, verdict in verdicts.items() if verdict == "not reproduced"]
    assert failing == ["cancer: largest AUC of linear PCA"]
    areas = {row[:2]: float(row[2]) for row in outcome.tables[0].rows}
    # The expected areas are those of an independent implementation.
    assert areas["digit 0", hoffmann.ONE_CLASS] == pytest.approx(0.9875, abs=2e-4)
    assert areas["digit 0", hoffmann.LINEAR_PCA] == pytest.approx(0.9861, abs=2e-4)
    assert areas["cancer", hoffmann.KERNEL_PCA] == pytest.approx(0.9971, abs=2e-4)


def test_cancer_is_scaled_and_split_as_the_paper_says(papers_folder):
    train, test, malignant = hoffmann._cancer(PaperData(papers_folder))
    assert len(train) == 200 and np.bincount(malignant.astype(int)).tolist() == [244, 239]
    assert np.vstack([train, test]).std(axis=0) == pytest.approx(np.ones(9), abs=2e-3)
