"""Columns with few values are predicted from each other."""

import numpy as np
import polars as pl
import pytest

from kpca_apps.tables.frames import table_from_frame
from tests.novelty.relations.conditional.learned import judged

Words = tuple[int, int] | tuple[str, str]


def machines(n: int = 6_000, seed: int = 0, *, digits: Words = (0, 1)) -> pl.DataFrame:
    """Return machines that fail for any of four causes, and two unrelated flags."""
    rng = np.random.default_rng(seed)
    causes = rng.random((n, 4)) < (0.01, 0.012, 0.02, 0.005)
    flags = {f"cause {j}": causes[:, j] for j in range(4)} | {"failed": causes.any(axis=1)}
    flags |= {"night": rng.random(n) < 0.4, "repaired": rng.random(n) < 0.003}
    columns = {name: np.array(digits)[flag.astype(int)] for name, flag in flags.items()}
    return pl.DataFrame({"line": rng.choice(["A", "B"], n), **columns})


@pytest.mark.parametrize("digits", [(0, 1), (1, 2), (7, 30), ("no", "yes")])
def test_a_flag_without_any_of_its_causes_is_found(digits: Words) -> None:
    frame = machines(digits=digits)
    failed = frame["failed"].to_numpy().copy()
    rows = np.flatnonzero(failed == digits[0])[:7]
    failed[rows] = digits[1]
    frame = frame.with_columns(pl.Series("failed", failed))
    learned, verdict = judged(frame)
    assert {*np.argsort(-verdict.surprise, kind="stable")[:7].tolist()} == {*rows.tolist()}
    assert {(cell.row, cell.column) for cell in verdict.cells} == {(row, "failed") for row in rows}
    alike = (frame.select(f"cause {j}" for j in range(4)).to_numpy() == digits[0]).all(axis=1)
    for item in verdict.cells:
        assert item.expected == str(digits[0]) and {*item.given} == {f"cause {j}" for j in range(4)}
        assert item.support == alike.sum() - 1
        n_agreeing = alike.sum() - len(rows)
        assert item.sentence.startswith(f"{n_agreeing:,} of the {item.support:,} other rows with")
    # The faulty rows stay odd when judged as new rows; an unknown value raises no error.
    table = table_from_frame(frame[rows.tolist()].with_columns(night=pl.lit("9")), "new")
    assert (learned.judge(table).surprise > 5).all()


@pytest.mark.parametrize("digits", [(0, 1), ("no", "yes")])
def test_a_row_with_two_flags_of_which_one_is_set_or_none_is_odd(digits: Words) -> None:
    rng = np.random.default_rng(4)
    flags = np.eye(3, dtype=np.int64)[rng.integers(0, 3, 3_000)]
    flags[7], flags[70] = (1, 1, 0), (0, 0, 0)
    _, verdict = judged(pl.DataFrame(np.array(digits)[flags], schema=["a", "b", "c"]))
    assert {cell.row for cell in verdict.cells} == {7, 70}


def test_rare_flags_that_have_nothing_to_do_with_others_are_not_odd() -> None:
    frame = machines()
    _, verdict = judged(frame)
    assert not verdict.cells
    for p in (0.1, 0.01):
        assert (verdict.surprise >= -np.log(p)).mean() <= 1.2 * p
    rng = np.random.default_rng(2)
    shuffled = frame.select(pl.Series(column.name, rng.permutation(column)) for column in frame)
    learned, verdict = judged(shuffled)
    assert not learned.flags.counts and not verdict.surprise.any()


def test_columns_that_a_hundredth_of_the_rows_contradicts_are_loose() -> None:
    rng = np.random.default_rng(3)
    kind = rng.choice(list("ABC"), 3_000, p=[0.5, 0.3, 0.2])
    coarse = np.where(rng.random(3_000) < 0.98, kind, rng.choice(list("ABC"), 3_000))
    _, verdict = judged(pl.DataFrame({"kind": kind, "coarse": np.char.add(coarse, "1")}))
    assert not verdict.cells


def test_few_rows_alike_say_nothing() -> None:
    _, verdict = judged(machines(60))
    assert not verdict.cells


@pytest.mark.parametrize("lacking", [None, "nk", "Unknown"])
def test_a_value_is_not_odd_because_other_rows_lack_theirs(lacking: str | None) -> None:
    rng = np.random.default_rng(5)
    n = 2_000
    is_filled = rng.random(n) < 0.5
    columns = {name: np.where(is_filled, rng.choice([*"pq"], n), lacking) for name in "abc"}
    columns["a"][np.flatnonzero(~is_filled)[:3]] = "p"
    assert not judged(pl.DataFrame(columns))[1].cells


def test_cells_expected_by_chance_are_not_reported() -> None:
    rng, n = np.random.default_rng(3), 4_000
    columns = {}
    for k in range(9):
        both = rng.random((2, n)) < 0.5
        is_high = both.all(axis=0) ^ (rng.random(n) < 0.003)
        columns |= {f"a{k}": both[0], f"b{k}": both[1], f"high{k}": is_high}
    found = judged(pl.DataFrame(columns))[1].cells
    assert found and max(cell.log_p for cell in found) <= np.log(0.1)
