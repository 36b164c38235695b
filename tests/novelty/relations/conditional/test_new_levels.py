"""The p-value of a new level is the share of training cells whose level occurs once."""

import numpy as np
import polars as pl
import pytest

from kpca_apps import fit_model, score_table
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.relations.conditional import levels
from kpca_apps.novelty.relations.conditional.counts import LevelColumn
from kpca_apps.novelty.relations.conditional.levels import find_new_levels
from kpca_apps.novelty.relations.conditional.writing import Writing
from kpca_apps.tables.frames import table_from_frame

N = 1_500


def orders(n: int, seed: int) -> pl.DataFrame:
    """Return orders by channel, city and customer; many customers occur once."""
    rng = np.random.default_rng(seed)
    customer = (rng.pareto(0.7, n) * 20).astype(int) % 4_000
    return pl.DataFrame(
        {
            "channel": rng.choice(["web", "shop", "phone"], n, p=[0.5, 0.3, 0.2]),
            "city": rng.choice(["London", "Paris", "Berlin", "Madrid"], n),
            "customer": [f"C{i:04}" for i in customer],
            "qty": rng.integers(1, 13, n),
            "price": (5 + rng.gamma(2, 10, n)).round(2),
        }
    )


def test_a_new_level_is_as_rare_as_levels_that_occur_once() -> None:
    levels = ["a"] * 6 + ["b", "c"] + ["d"] * 2
    column = table_from_frame(pl.DataFrame({"x": levels}), "t").column["x"]
    learned = LevelColumn.of(column, ColumnSpec("x", "categorical", ""))
    cells = learned.cells(table_from_frame(pl.DataFrame({"x": [*levels, "new", None]}), "t"))
    own = np.arange(12) < 10
    surprise, _ = find_new_levels([learned], [cells], own)
    # Two of ten cells have a unique level; with the new row, three of eleven.
    wanted = np.ones(12)
    wanted[[6, 7]], wanted[10] = 2 / 10, 3 / 11
    np.testing.assert_allclose(np.exp(-surprise), wanted)


def test_equal_new_levels_are_described_once_and_no_more_than_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    column = table_from_frame(pl.DataFrame({"x": ["London", "Paris"] * 200}), "t").column["x"]
    learned = LevelColumn.of(column, ColumnSpec("x", "categorical", ""))
    texts = ["Lodnon", "Paris", "Prais", "Lodnon", "Lodnon", "Prais", "London"]
    cells = learned.cells(table_from_frame(pl.DataFrame({"x": texts}), "t"))
    looked_up, nearest = [], Writing.nearest
    monkeypatch.setattr(
        Writing, "nearest", lambda self, seen: looked_up.append(seen) or nearest(self, seen)
    )
    _, found = find_new_levels([learned], [cells], np.zeros(7, dtype=bool))
    meant = {"Lodnon": "London", "Prais": "Paris"}
    wanted = [(row, texts[row], meant[texts[row]]) for row in (0, 2, 3, 4, 5)]
    assert sorted((cell.row, cell.seen, cell.suggestion) for cell in found) == wanted
    assert sorted(looked_up) == [*meant]
    monkeypatch.setattr(levels, "MAX_EVIDENCE", 3)
    _, found = find_new_levels([learned], [cells], np.zeros(7, dtype=bool))
    assert sorted(cell.row for cell in found) == [0, 2, 3]


@pytest.fixture(scope="module")
def scored():
    new = orders(200, 1)
    cells = {0: ("channel", "fax"), 1: ("city", "Lodnon"), 2: ("customer", "C9876")}
    for row, (name, text) in cells.items():
        column = new[name].to_list()
        column[row] = text
        new = new.with_columns(pl.Series(name, column))
    return score_table(fit_model(orders(N, 0), alpha=0.05), new, explain=20)


def test_a_level_never_seen_is_odd_where_none_is_new(scored) -> None:
    assert (scored.rows.p_values[:2] < 4 / N).all() and scored.rows.is_flagged[:2].all()
    (fax,) = [cell for cell in scored.findings.odd_cells if cell.column == "channel"]
    assert (fax.kind, fax.seen, fax.suggestion, fax.row) == ("new", "fax", "", 1)
    # The p-value of a new level in one column, 1 / (N + 1), times the number of such columns, 3.
    assert fax.p_value == pytest.approx(3 / (N + 1))
    of_row = {row.row: row.reasons for row in scored.ranked}
    assert of_row[1][0].column == "channel" and of_row[1][0].share > 0.8


def test_a_level_misspelt_is_named_with_the_one_it_is_written_like(scored) -> None:
    (cell,) = [cell for cell in scored.findings.odd_cells if cell.column == "city"]
    assert (cell.seen, cell.suggestion, cell.row) == ("Lodnon", "London", 2)
    (row,) = [row for row in scored.ranked if row.row == 2]
    assert (row.reasons[0].column, row.reasons[0].expected) == ("city", "London")


def test_a_new_customer_is_not_odd_where_many_are_new(scored) -> None:
    assert not [cell for cell in scored.findings.odd_cells if cell.column == "customer"]
    assert scored.rows.p_values[2] > 0.1 and not scored.rows.is_flagged[2]
