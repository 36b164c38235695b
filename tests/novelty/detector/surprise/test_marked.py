from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps import score_table, screen_table
from kpca_apps.novelty.detector.surprise.marked import (
    FARTHEST,
    PRIOR,
    log_odds_of_columns,
)


def marked(n: int, wrong: list[int], fine: list[int]) -> tuple[np.ndarray, np.ndarray]:
    masks = np.zeros((2, n), dtype=bool)
    masks[0, wrong], masks[1, fine] = True, True
    return masks[0], masks[1]


def logit(p: float) -> float:
    return float(np.log(p / (1 - p)))


@given(st.integers(0, 2**16), st.integers(1, 8), st.integers(1, 8))
def test_odds_are_those_of_the_posterior_mean(seed: int, n_wrong: int, n_fine: int) -> None:
    parts = np.random.default_rng(seed).dirichlet(np.full(4, 0.3), 30).T
    wrong, fine = [*range(n_wrong)], [*range(20, 20 + n_fine)]
    odds = log_odds_of_columns(parts, *marked(30, wrong, fine))
    if n_wrong + n_fine < 5:
        assert odds.tolist() == [0.0] * 4
        return
    usual = n_wrong / (n_wrong + n_fine)
    for column, of_column in enumerate(odds):
        w, f = sum(parts[column, i] for i in wrong), sum(parts[column, i] for i in fine)
        mean = (w + PRIOR * usual) / (w + f + PRIOR)
        assert of_column == pytest.approx(
            np.clip(logit(mean) - logit(usual), -FARTHEST, FARTHEST), abs=1e-9
        )


@pytest.mark.parametrize(("n_wrong", "n_fine"), [(9, 0), (0, 9), (2, 2)])
def test_few_marks_or_those_of_one_kind_change_nothing(n_wrong: int, n_fine: int) -> None:
    parts = np.random.default_rng(1).dirichlet(np.ones(3), 20).T
    masks = marked(20, [*range(n_wrong)], [*range(10, 10 + n_fine)])
    assert log_odds_of_columns(parts, *masks).tolist() == [0.0] * 3


def test_rows_that_are_odd_as_those_marked_wrong_move_up() -> None:
    rng = np.random.default_rng(0)
    table = {name: rng.normal(size=400) for name in ("slips", "tails", "other")}
    slips, tails = np.arange(0, 20), np.arange(20, 40)
    table["slips"][slips] += rng.uniform(3.5, 6, 20) * rng.choice([-1, 1], 20)
    table["tails"][tails] += rng.uniform(3.5, 6, 20) * rng.choice([-1, 1], 20)
    first = screen_table(table, explain=0)
    top = [entry for entry in first.ranked if entry.row <= 40][:10]
    kinds = ["wrong" if entry.row <= 20 else "fine" for entry in top]
    assert {*kinds} == {"wrong", "fine"}
    marks = {
        "row_key": [row.key for row in top], "row": [entry.row for entry in top], "mark": kinds,
    }  # fmt: skip
    again = screen_table(table, explain=0, marks=marks)
    left = [slips, tails]
    seen = {entry.row - 1 for entry in top}
    left = [np.array([row for row in rows if row not in seen]) for rows in left]
    before, after = (
        [ranks[rows].mean() for rows in left] for ranks in (first.rows.ranks, again.rows.ranks)
    )
    assert after[0] < before[0] and after[1] - after[0] > before[1] - before[0]
    # The marks shift the scores of new rows in the same direction as those of the table.
    new = {"slips": [5.0, 0.0], "tails": [0.0, 5.0], "other": [0.0, 0.0]}
    lead = [np.subtract(*score_table(result.model, new).rows.scores) for result in (first, again)]
    assert lead[1] > lead[0] + 1.0


def test_marks_of_a_large_table_teach_as_much_as_those_of_a_small_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng, n = np.random.default_rng(3), 1_500
    table = {name: rng.normal(size=n) for name in ("slips", "tails", "other")}
    wrong, fine = np.arange(0, n, 125), np.arange(60, n, 125)
    table["slips"][wrong] = 5.0
    table["tails"][fine] = 5.0
    rows = np.sort(np.r_[wrong, fine])
    keys = {entry.row: entry.key for entry in screen_table(table, explain=0, count=100).ranked}
    assert keys.keys() >= {*(rows + 1).tolist()}
    kinds = ["wrong" if row in wrong else "fine" for row in rows]
    marks = {"row_key": [keys[row + 1] for row in rows], "row": rows + 1, "mark": kinds}

    def by_marks(**options: object) -> np.ndarray:
        combined = screen_table(table, explain=0, marks=marks, **options).model.detector.combined
        assert combined is not None
        return combined.by_marks[:2]

    of_small = by_marks()
    assert of_small[0] > 2.0 and of_small[1] < -2.0
    # Results are similar if cells are learned from a sample of the rows, also for a table in parts.
    for name in ("MOST_ROWS", "FEWEST_ROWS"):
        monkeypatch.setattr(f"kpca_apps.novelty.detector.fit.{name}", 400)
    np.testing.assert_allclose(by_marks(), of_small, atol=0.6)
    for module in ("novelty.screening.model", "novelty.columns.parts", "engine.rows"):
        monkeypatch.setattr(f"kpca_apps.{module}.SAMPLE_ROWS", 600)
    for learn_from in ("sample", "all"):
        np.testing.assert_allclose(by_marks(learn_from=learn_from), of_small, atol=0.6)
