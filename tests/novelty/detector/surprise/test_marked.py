from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from kpca_apps.novelty.detector.surprise.marked import FARTHEST, PENALTY, factors_by_marks


def marked(n: int, wrong: list[int], fine: list[int]) -> tuple[np.ndarray, np.ndarray]:
    masks = np.zeros((2, n), dtype=bool)
    masks[0, wrong], masks[1, fine] = True, True
    return masks[0], masks[1]


def loss(logs: np.ndarray, terms: np.ndarray, wrong: list[int], fine: list[int]) -> float:
    """What is minimised, pair by pair."""
    scores = [np.log(sum(np.exp(of + logs))) for of in terms.T]
    pairs = [np.log1p(np.exp(scores[k] - scores[i])) for i in wrong for k in fine]
    m = 2 * len(wrong) * len(fine) / (len(wrong) + len(fine))
    return float(m * np.mean(pairs) + PENALTY / 2 * np.sum(logs**2))


def test_factors_are_the_minimum_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    terms, wrong, fine = rng.normal(size=(4, 30)) * 3, [0, 3, 4, 9], [1, 2, 5]
    found = factors_by_marks(terms, *marked(30, wrong, fine))
    # Without gradients, and from elsewhere.
    other = minimize(
        loss, np.full(4, 0.3), (terms, wrong, fine), "Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 4_000},
    )  # fmt: skip
    assert np.log(found) == pytest.approx(other.x, abs=1e-4)


def test_the_part_that_tells_wrong_rows_gains_and_the_other_loses() -> None:
    terms = np.zeros((2, 40))
    wrong, fine = [*range(10)], [*range(10, 20)]
    terms[0, wrong], terms[1, fine] = 2.0, 2.0
    telling, other = factors_by_marks(terms, *marked(40, wrong, fine))
    assert telling > 1.05 and other < 0.95
    swapped = factors_by_marks(terms, *marked(40, fine, wrong))
    assert swapped == pytest.approx([other, telling], rel=1e-3)
    assert (np.abs(np.log([telling, other])) <= FARTHEST).all()


@pytest.mark.parametrize(("n_wrong", "n_fine"), [(4, 0), (0, 9), (2, 2)])
def test_few_marks_or_those_of_one_kind_change_nothing(n_wrong: int, n_fine: int) -> None:
    terms = np.random.default_rng(1).normal(size=(3, 20))
    masks = marked(20, [*range(n_wrong)], [*range(10, 10 + n_fine)])
    assert factors_by_marks(terms, *masks).tolist() == [1.0, 1.0, 1.0]


def test_a_row_of_which_relations_say_nothing_has_no_such_term() -> None:
    terms = np.zeros((2, 12))
    terms[1] = -np.inf
    assert np.isfinite(factors_by_marks(terms, *marked(12, [0, 1, 2], [3, 4, 5]))).all()
