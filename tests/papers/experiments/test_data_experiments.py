"""Experiments on data that are not in the repository, where ``KPCA_SEEDS`` names their folder."""

from __future__ import annotations

import numpy as np
import pytest

from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments import segmentation, virtual_examples
from kpca_apps.papers.experiments.usps import smoothed_digits
from kpca_apps.papers.registry import all_experiments


def claims_of(name, seeds):
    outcome = all_experiments()[name].run(PaperData(seeds))
    return {claim.what: claim for claim in outcome.claims}, outcome


def test_the_published_table_of_segmentation_comes_out(seeds):
    small, small_names, large, large_names = PaperData(seeds).segmentation()
    split = segmentation._Split(large, large_names, small, small_names)
    for name, count, paper in (("linear", None, 8 / 210), ("Laplace", 50, 7 / 210)):
        features = split.features(segmentation.KERNELS[name])
        assert split.error(features, count) == pytest.approx(paper, abs=1e-9)
    known = {row.tobytes() for row in large}
    assert all(row.tobytes() in known for row in small)


def test_hoffmanns_sets_have_their_errors(seeds):
    claims, outcome = claims_of("novelty-sets", seeds)
    assert {claim.verdict for claim in claims.values()} == {"reproduced"}
    rows = {row[0]: row for row in outcome.tables[0].rows}
    assert rows["ring-line-square"][2:4] == ("0.0847", "0.0140")
    assert float(rows["sine-noise"][4]) == pytest.approx(0.9701, abs=1e-4)


def test_novelty_rates_are_those_of_the_inventory(seeds):
    claims, _ = claims_of("novelty-rates", seeds)
    assert all(claim.verdict.startswith("reproduced") for claim in claims.values())


def test_smoothing_leaves_an_empty_image_empty():
    assert np.allclose(smoothed_digits(np.full((2, 256), -1.0)), -1.0)
    one = np.full((1, 256), -1.0)
    one[0, 8 * 16 + 8] = 1.0
    smooth = smoothed_digits(one)
    assert smooth.sum() == pytest.approx(one.sum())
    assert smooth.argmax() == 8 * 16 + 8


def test_a_moved_digit_comes_back():
    rng = np.random.default_rng(0)
    image = np.full((1, 16, 16), -1.0)
    image[0, 3:12, 4:13] = rng.uniform(-1.0, 1.0, (9, 9))
    rows = image.reshape(1, 256)
    for down, right in virtual_examples.SHIFTS:
        there = virtual_examples.moved(rows, down, right)
        assert np.array_equal(there.reshape(16, 16), np.roll(image[0], (down, right), axis=(0, 1)))
        assert np.array_equal(virtual_examples.moved(there, -down, -right), rows)
