"""Categories given all other columns: the pooled probabilities, their weights, and silence."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.novelty.relations.conditional.counts import distinct_keys
from kpca_apps.novelty.relations.conditional.levels import LevelRelations
from kpca_apps.tables.frames import table_from_frame

SIZES = ["small", "middle", "large"]


def judged(frame: pl.DataFrame) -> tuple[LevelRelations, np.ndarray]:
    """Learn from all rows; the surprise of their least likely categories, each left out."""
    table = table_from_frame(frame, "table")
    learned = LevelRelations.learn(table, infer_plan(table))
    cells = [column.cells(table) for column in learned.columns]
    own = np.ones(frame.height, dtype=bool)
    surprise, _ = learned.categories.judge(table, learned.columns, cells, own)
    return learned, surprise


def parcels(n: int = 1_500, seed: int = 0) -> pl.DataFrame:
    """Parcels: their weight says the size, and three columns a little of the tariff each."""
    rng = np.random.default_rng(seed)
    weight = rng.lognormal(0, 1, n)
    tariff = rng.integers(0, 4, n)
    hints = {
        f"hint{place}": [
            f"h{h}" for h in np.where(rng.random(n) < 0.6, tariff, rng.integers(0, 4, n))
        ]
        for place in range(3)
    }
    size = np.digitize(weight, [0.5, 2.0])
    return pl.DataFrame(
        {
            "weight": weight.round(4),
            "size": [SIZES[place] for place in size],
            "tariff": [f"t{place}" for place in tariff],
            "clerk": rng.choice(["Ann", "Bob", "Cy"], n),
            **hints,
        }
    )


def test_a_category_that_a_number_contradicts_is_found() -> None:
    frame = parcels().select("weight", "size")
    weight, sizes = frame["weight"].to_numpy(), frame["size"].to_list()
    rows = np.flatnonzero(weight > 4)[:3]
    for row in rows.tolist():
        sizes[row] = "small"
    _, surprise = judged(frame.with_columns(size=pl.Series(sizes)))
    assert {*np.argsort(-surprise)[:3].tolist()} == {*rows.tolist()}


def test_several_columns_that_say_little_say_much_together() -> None:
    frame = parcels()
    hints = frame.select("hint0", "hint1", "hint2").to_numpy()
    agree = (hints == hints[:, [0]]).all(axis=1) & (frame["tariff"].str.slice(1) == "0").to_numpy()
    row = int(np.flatnonzero(agree & (hints[:, 0] == "h0"))[0])
    tariff = frame["tariff"].to_list()
    tariff[row] = "t3"
    _, surprise = judged(frame.with_columns(tariff=pl.Series(tariff)))
    assert (surprise >= surprise[row]).mean() < 0.02


def test_probabilities_are_those_of_brute_force() -> None:
    frame = parcels(400)
    table = table_from_frame(frame, "table")
    learned, _ = judged(frame)
    columns, of = learned.columns, learned.categories.categories[0]
    value = columns[of.target].cells(table).codes
    codes = [np.where((c := x.cells(table).codes) < x.missing, c, -1) for x in columns]
    codes += [interval.codes(table) for interval in learned.categories.intervals]
    own = np.ones(len(value), dtype=bool)
    log_p = of.pooled(columns[of.target], codes, value, own).log_p
    log_q = columns[of.target].log_q
    for row in range(0, 400, 37):
        pooled = log_q.copy()
        for given in of.given:
            key = np.column_stack([codes[place] for place in given.places])
            alike = np.flatnonzero((key == key[row]).all(axis=1))
            others = value[alike[alike != row]]
            counts = np.bincount(others, minlength=len(log_q))
            d, m = given.discount, given.shrinkage
            share = np.maximum(counts - d, 0) + (m + d * len({*others})) * np.exp(log_q)
            pooled += given.weight * (np.log(share / (len(others) + m)) - log_q)
        p = np.exp(pooled) / np.exp(pooled).sum()
        expected = p[p <= p[value[row]] * (1 + 1e-6)].sum()
        assert log_p[row] == pytest.approx(np.log(expected), abs=1e-9)


def test_what_is_shuffled_says_nothing_and_chance_is_not_surprising() -> None:
    rng = np.random.default_rng(1)
    frame = parcels()
    learned, surprise = judged(
        pl.DataFrame({name: rng.permutation(frame[name].to_numpy()) for name in frame.columns})
    )
    assert learned.categories.categories == () and not surprise.any()
    _, surprise = judged(frame)
    for s in (1.0, 2.0, 3.0):
        assert (surprise > s).mean() <= np.exp(-s) + 0.01


def test_new_rows_are_judged_alike_whatever_columns_they_lack() -> None:
    frame = parcels()
    learned, _ = judged(frame)
    new = table_from_frame(frame.drop("weight", "hint0"), "table")
    found = learned.judge(new)
    alone = learned.judge(table_from_frame(frame.drop("weight", "hint0")[:1], "table"))
    assert np.isfinite(found.surprise).all() and alone.surprise[0] == found.surprise[0]


@pytest.mark.parametrize("n_rows", [5, 500])  # fewer than there are keys, and more
def test_keys_are_numbered_as_by_sorting(n_rows: int) -> None:
    key = np.random.default_rng(6).integers(-1, 100, n_rows)
    for found, sorted_ in zip(distinct_keys(key), np.unique(key, return_inverse=True), strict=True):
        np.testing.assert_array_equal(found, sorted_)


def test_a_category_is_named_where_several_columns_contradict_it() -> None:
    rng = np.random.default_rng(3)
    n = 2_000
    kind = rng.integers(0, 4, n)
    columns = {"kind": [f"k{place}" for place in kind]}
    for name in ("shelf", "hall", "clerk"):
        other = np.where(rng.random(n) < 0.97, kind, rng.integers(0, 4, n))
        columns[name] = [f"{name[0]}{2 * place + rng.integers(2)}" for place in other]
    # Exceptions that are there by right contradict one column; the wrong rows, all of them.
    wrong = rng.choice(n, 4, replace=False).tolist()
    meant = {row: columns["kind"][row] for row in wrong}
    for row in wrong:
        columns["kind"][row] = f"k{(kind[row] + 1) % 4}"
    frame = pl.DataFrame(columns)
    table = table_from_frame(frame, "table")
    learned = LevelRelations.learn(table, infer_plan(table))
    named = learned.judge(table, own=np.ones(n, dtype=bool)).cells
    assert {*wrong} <= {cell.row for cell in named}
    for cell in named:
        if cell.row in wrong:
            assert (cell.column, cell.expected) == ("kind", meant[cell.row])
        said = re.sub(r'"[^"]*"|[a-z]+[0-9]+', "", cell.sentence).replace(",", "")
        numbers = [int(number) for number in re.findall(r"[0-9]+", said)]
        counts = []
        for n_shared in (1, 2):  # columns of the first set
            same = pl.all_horizontal(
                pl.col(name) == frame[name][cell.row] for name in cell.given[:n_shared]
            )
            alike = frame.filter(same)[cell.column]
            counts.append([(alike == cell.expected).sum(), len(alike) - 1])
        assert sorted(numbers[:2]) in counts and cell.support == max(numbers[:2])
    assert len(named) < 1.2 * len(wrong) + 1
