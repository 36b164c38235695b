"""Experiments that need no data: what each claims, and that it claims the same twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments import denoising_toy
from kpca_apps.papers.experiments.cassini import parity
from kpca_apps.papers.experiments.clusters import largest_angle
from kpca_apps.papers.experiments.course import separable
from kpca_apps.papers.figures import Isolines
from kpca_apps.papers.measuring import components
from kpca_apps.papers.registry import all_experiments

from ..comparing import clouds

R, C, N = "reproduced", "reproduced with a condition", "not reproduced"
VERDICTS = {
    "clusters": [R, C],
    "cassini": [R, R, N, R, R, R],
    "half-moons": [R, N, C],
    "concentric": [R, C],
    "course": [R, C, R, R, C, R],
    "parabola": [R, R, R, C, C, C, C],
    "script-runs": [R],
    "statements": [R] * 4 + [C] + [C, C, N] + [N, N, C] + [C, C, N] + [R, C, C],
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


def test_groups_are_separable_where_a_direction_parts_them():
    rng = np.random.default_rng(0)
    T, w = rng.normal(size=(80, 3)), np.array([1.0, -2.0, 0.5])
    sides = (T @ w > 0.3).astype(np.intp)
    assert separable(T, sides) and separable(1e-4 * T, sides)
    # A row between two of the other side lies on no side of its own.
    middle = T[sides == 1][:2].mean(axis=0)
    assert not separable(np.vstack([T, middle]), np.append(sides, 0))


def test_two_fits_turn_by_no_angle_or_a_right_one():
    X = clouds(60)
    subspace = components(RBF(0.3), X, 4)
    assert largest_angle(subspace, subspace, slice(1, 3)) < 1e-5
    turned = replace(subspace, weights=subspace.weights[:, ::-1])
    assert largest_angle(subspace, turned, slice(0, 2)) == pytest.approx(90.0)


def test_the_toy_ratio_is_that_of_a_plain_loop(monkeypatch):
    """Kernel PCA and its fixed point written out in numpy, linear PCA by scikit-learn."""
    monkeypatch.setattr(denoising_toy, "COUNTS", (1, 3))
    sigma = 0.2
    train, noisy, truth = (rows[::6] for rows in denoising_toy.drawn(0, sigma))
    monkeypatch.setattr(denoising_toy, "drawn", lambda draw, s: (train, noisy, truth))
    found, fixed_points, restarts = denoising_toy.ratios(0, sigma)
    assert (fixed_points, restarts) == (2 * len(noisy), 0)
    for count, ratio in zip((1, 3), found, strict=True):
        pca = PCA(count).fit(train)
        flat = pca.inverse_transform(pca.transform(noisy))
        cleaned = plain_fixed_points(train, noisy, sigma, count)
        parts = [((points - truth) ** 2).sum() for points in (flat, cleaned)]
        assert ratio == pytest.approx(parts[0] / parts[1], rel=1e-2)


def plain_fixed_points(train, noisy, sigma, count):
    """Mika's fixed point, a thousand steps from each noisy row."""
    n = len(train)

    def kernel(a, b):
        return np.exp(-((a[:, None] - b) ** 2).sum(axis=2) / (2.0 * sigma**2))

    K, H = kernel(train, train), np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(H @ K @ H)
    alphas = vectors[:, -count:] / np.sqrt(values[-count:])
    projections = (kernel(noisy, train) - K.mean(axis=0)) @ H @ alphas
    weights = projections @ alphas.T @ H + 1.0 / n
    z = noisy
    for _ in range(1000):
        terms = weights * kernel(z, train)
        z = terms @ train / terms.sum(axis=1)[:, None]
    return z


def test_the_widest_kernel_of_the_toy_is_told_as_it_is():
    """A table as the paper has it is reproduced, one that is worse for sigma .8 is not."""
    paper = np.array(list(denoising_toy.PAPER.values()), dtype=float)
    paper[2, 0] = 1.01
    *others, independent = denoising_toy._judge(paper)
    assert [claim.verdict for claim in others] == [C] * 5
    assert independent.verdict == N
    worse = paper * np.where(np.arange(5) == 4, 0.5, 1.0)[:, None]
    assert denoising_toy._judge(worse)[3].verdict == N


def test_a_ratio_that_falls_with_more_components_is_told():
    paper = np.array(list(denoising_toy.PAPER.values()), dtype=float)
    for turned in (1, 2):
        falling = paper.copy()
        falling[turned] = falling[turned][::-1]
        assert denoising_toy._judge(falling)[2].verdict == N


def test_every_experiment_says_how_it_was_done():
    for experiment in all_experiments().values():
        sentences = experiment.method.count(". ") + experiment.method.endswith(".")
        assert 1 <= sentences <= 3, experiment.name
