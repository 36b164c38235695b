"""Rows, kernels and numbers that leave a method nothing to find: it says so in one line."""

from __future__ import annotations

import numpy as np
import pytest

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF, Linear, Polynomial, Scaled, Sigmoid
from kpca_apps.papers.kernels.composed import iterated_gaussian
from kpca_apps.papers.methods.fewer_rows import (
    basic_pattern_components,
    basic_patterns,
    greedy_components,
)
from kpca_apps.papers.methods.iterations import hebbian_components, power_components, power_pairs
from kpca_apps.papers.methods.means_and_neighbours import (
    batch_kernel_kmeans,
    neighbourhood_components,
)
from kpca_apps.papers.methods.on_components import component_svm
from tests.papers.comparing import clouds

ZERO = Scaled(0.0, RBF(1.0))
INDEFINITE = Sigmoid(1.0, -2.0)
SAME = {
    "constant rows": (RBF(0.5), np.full((6, 3), 0.3)),
    "constant rows, products": (Linear(), np.full((6, 3), 0.3)),
    "one row": (RBF(0.5), np.ones((1, 3))),
    "rows of zeros": (Linear(), np.zeros((6, 3))),
    "zero kernel": (ZERO, clouds(12)),
}


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("method", [power_components, hebbian_components])
def test_rows_of_one_image_have_no_components(method, name):
    kernel, X = SAME[name]
    with pytest.raises(ValueError, match="no variance in feature space"):
        method(kernel, X, 1, rng())


@pytest.mark.parametrize("name", ["rows of zeros", "zero kernel"])
def test_rows_without_length_give_no_landmarks(name):
    kernel, X = SAME[name]
    with pytest.raises(ValueError, match="no row has length"):
        greedy_components(kernel, X, 3)
    with pytest.raises(ValueError):
        basic_pattern_components(kernel, X, 0.9)


class TestPowerMethod:
    def test_stops_at_the_rank(self):
        X = np.repeat(clouds(3), 4, axis=0)
        assert len(power_components(RBF(0.5), X, 2, rng()).variances) == 2
        with pytest.raises(ValueError, match="2 positive"):
            power_components(RBF(0.5), X, 3, rng())

    @pytest.mark.parametrize(
        ("K", "q", "found"),
        [
            (np.zeros((3, 3)), 1, 0),
            (-np.eye(3), 1, 0),
            (np.diag([3.0, -2.0, 1.0]), 2, 1),
            (np.ones((3, 3)), 2, 1),
        ],
    )
    def test_counts_the_positive_eigenvalues_it_has_found(self, K, q, found):
        with pytest.raises(ValueError, match=f"only {found} positive eigenvalues"):
            power_pairs(K, q, rng())

    @pytest.mark.parametrize("q", [0, 4])
    def test_refuses_more_pairs_than_rows_and_none(self, q):
        with pytest.raises(ValueError, match=r"\[1, 3\]"):
            power_pairs(np.eye(3), q, rng())


def test_sangers_rule_needs_lengths_and_fewer_directions_than_rows():
    X = clouds(12)
    with pytest.raises(ValueError, match="indefinite"):
        hebbian_components(INDEFINITE, X, 2, rng())
    with pytest.raises(ValueError, match=r"q must be in \[1, 11\]"):
        hebbian_components(RBF(0.5), X, 12, rng())
    with pytest.raises(ValueError, match="passes"):
        hebbian_components(RBF(0.5), X, 2, rng(), passes=0)


def test_greedy_choice_needs_finite_rows_and_a_number():
    X = clouds(12)
    with pytest.raises(ValueError, match=r"^m "):
        greedy_components(RBF(0.5), X, 0)
    X[3, 0] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        greedy_components(RBF(0.5), X, 3)
    with pytest.raises(ValueError):
        greedy_components(Polynomial(3), 1e150 * clouds(12), 3)


def test_numbers_out_of_range_are_refused():
    X = clouds(12)
    with pytest.raises(ValueError, match="most"):
        basic_patterns(np.eye(3), 0.5, most=0)
    for n in (0, 1, 13):
        with pytest.raises(ValueError, match="n_neighbours"):
            neighbourhood_components(RBF(0.5), X, X[0], n)
    with pytest.raises(ValueError, match="max_iter"):
        batch_kernel_kmeans(RBF(0.5), X, np.arange(12) % 2, max_iter=0)
    with pytest.raises(ValueError, match="gamma"):
        iterated_gaussian(0.0, 2)
    with pytest.raises(ValueError, match="factor"):
        iterated_gaussian(1e-9, 1000)


def test_a_machine_needs_components():
    kernel, X = SAME["constant rows"]
    with pytest.raises(ValueError, match="no components"):
        component_svm(fit_exact(kernel, X, rng=rng()), X, np.arange(6) % 2)
