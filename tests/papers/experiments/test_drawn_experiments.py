"""Experiments that need no data: what each claims, and that it claims the same twice."""

from __future__ import annotations

import numpy as np
import pytest

from kpca_apps.engine.kernels import Linear
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments import denoising_toy
from kpca_apps.papers.experiments.cassini import parity
from kpca_apps.papers.measuring import components
from kpca_apps.papers.registry import all_experiments
from kpca_apps.papers.result import Isolines

from ..comparing import clouds

VERDICTS = {
    "clusters": ["reproduced", "reproduced with a condition"],
    "cassini": ["reproduced"] * 2 + ["not reproduced"] + ["reproduced"] * 3,
    "half-moons": ["reproduced", "not reproduced", "reproduced with a condition"],
    "concentric": ["reproduced", "reproduced with a condition"],
    "course": ["reproduced", "reproduced with a condition", "reproduced", "reproduced"],
    "parabola": ["reproduced"] * 4 + ["reproduced with a condition"] * 4 + ["reproduced"],
    "script-runs": ["reproduced", "reproduced"],
    "statements": ["reproduced"] * 4 + ["reproduced with a condition"] + ["not reproduced"] * 10,
    "chairs": ["not run"],
}


@pytest.fixture(scope="module")
def outcomes():
    known = all_experiments()
    return {name: known[name].run(PaperData(None)) for name in VERDICTS}


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_verdicts_are_those_of_the_inventory(outcomes, name):
    assert [claim.verdict for claim in outcomes[name].claims] == VERDICTS[name]
    for claim in outcomes[name].claims:
        assert claim.why or claim.verdict == "reproduced" or claim.origin != "the paper"


def test_a_second_run_claims_the_same(outcomes):
    again = all_experiments()["clusters"].run(PaperData(None))
    assert again.claims == outcomes["clusters"].claims
    first, second = (o.figures[0].values for o in (again, outcomes["clusters"]))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("name", sorted(set(VERDICTS) - {"chairs", "statements"}))
def test_figures_hold_finite_numbers(outcomes, name):
    assert outcomes[name].figures
    for figure in outcomes[name].figures:
        if isinstance(figure, Isolines):
            there = [not caption.endswith("none") for caption in figure.captions]
            assert np.isfinite(figure.values[there]).all()
            assert len(figure.captions) == len(figure.values)
            assert figure.values.shape[1:] == (len(figure.y), len(figure.x))


def test_the_figures_have_as_many_panels_as_the_papers(outcomes):
    assert len(outcomes["clusters"].figures[0].values) == 8
    assert [len(f.values) for f in outcomes["cassini"].figures if isinstance(f, Isolines)] == [2, 8]
    assert [len(f.values) for f in outcomes["parabola"].figures] == [12]


def test_parity_tells_odd_from_even():
    X = clouds(80) * [1.0, 0.5]
    mirrored = np.vstack([X, X * [-1.0, 1.0]])
    subspace = components(Linear(), mirrored - mirrored.mean(axis=0))
    values = parity(subspace, mirrored - mirrored.mean(axis=0), (-1.0, 1.0))
    assert sorted(np.round(values, 6)) == [-1.0, 1.0]


def test_kernel_pca_cleans_small_noise_better_than_lines(monkeypatch):
    monkeypatch.setattr(denoising_toy, "COUNTS", (1,))
    (ratio,) = denoising_toy._ratios(0, 0.2)
    assert ratio > 10.0
