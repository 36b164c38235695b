"""Duplicate rows equal those found by comparing all pairs of rows."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.novelty.columns.parts import Execution, Sample, draw_sample
from kpca_apps.novelty.columns.plan import ColumnOptions, infer_plan
from kpca_apps.novelty.findings import duplicates as module
from kpca_apps.novelty.findings.duplicates import equal_rows, find_duplicates
from kpca_apps.novelty.result import DuplicateRows
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.encoded import LearnedEncoder, encode, hash_rows
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import parted
from tests.novelty.tables import frame_of

NUMBERS = ["1", "1.0", "1.00000001", "2.5", "2.51", "-7", "x1", "NA", ""]
WORDS = ["red", "Red", " red", "deep  red", "deep red", "blue", "?", ""]
N_COLUMNS, N_NUMERIC = 6, 3


def repeats_in(frame: pl.DataFrame, **options: tuple[str, ...]) -> DuplicateRows:
    table = table_from_frame(frame)
    plan = infer_plan(table, ColumnOptions(**options))  # type: ignore[arg-type]
    return find_duplicates(
        encode(LearnedEncoder.learn(table, plan, contaminated=True), Sample.of(table))
    )


def normalise(cell: str, numeric: bool) -> object:
    """Normalise a cell's spelling without the package's own code."""
    text = " ".join(cell.split()).lower()
    if text in ("", "na", "?"):
        return None
    try:
        return float(f"{float(text):.6g}") if numeric else text
    except ValueError:
        return text


Cells = list[tuple[str, ...]]


def by_pairs(rows: Cells) -> tuple[int, set[tuple[int, ...]], set[tuple[int, ...]], dict[str, int]]:
    """Find repeated rows by comparing all pairs.

    Returns the number of repeats, groups of equal and near-equal rows, and columns left out with
    the number of rows that differ there only.
    """
    n = len(rows)
    forms = [tuple(normalise(cell, k < N_NUMERIC) for k, cell in enumerate(row)) for row in rows]
    counts = [
        {value: sum(form[k] == value for form in forms) for value in {form[k] for form in forms}}
        for k in range(N_COLUMNS)
    ]

    def expected(row: int, without: int = -1) -> float:
        shares = [counts[k][forms[row][k]] / n for k in range(N_COLUMNS) if k != without]
        return n * math.prod(shares)

    equal: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(rows):
        equal.setdefault(row, []).append(number)
    repeated = [group for group in equal.values() if len(group) > 1]
    n_repeats = sum(len(group) - 1 for group in repeated)
    unlikely = [group for group in repeated if expected(group[0]) < 1e-3]
    if 2 * len(unlikely) < len(repeated):
        return n_repeats, set(), set(), {}
    written: dict[tuple[object, ...], list[int]] = {}
    for group in equal.values():
        written.setdefault(forms[group[0]], []).append(group[0])
    near = {
        tuple(group) for group in written.values() if len(group) > 1 and expected(group[0]) < 1e-3
    }
    kept = sorted(group[0] for group in written.values())
    common = {}
    for k in range(N_COLUMNS):
        places: dict[int, set[int]] = {row: {row} for row in kept}
        for a, b in itertools.combinations(kept, 2):
            if [j for j in range(N_COLUMNS) if forms[a][j] != forms[b][j]] == [k]:
                places[a].add(b)
                places[b].add(a)
        groups = {
            tuple(sorted(group))
            for row, group in places.items()
            if len(group) > 1 and expected(row, k) < 1e-3
        }
        n_rows = sum(map(len, groups))
        if n_rows > max(10, n // 100):
            common[f"c{k}"] = n_rows
        else:
            near |= groups
    return n_repeats, {tuple(group) for group in unlikely}, near, common


@pytest.mark.release
@settings(max_examples=50)
@given(st.data())
def test_repeats_are_those_that_a_comparison_of_all_pairs_finds(data: st.DataObject) -> None:
    n = data.draw(st.integers(40, 90))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    # Draw mostly rare cells, some common ones, and copies that differ in at most one cell or
    # spelling.
    rows: Cells = [
        (
            str(rng.choice(NUMBERS)) if rng.random() < 0.2 else f"{rng.normal():.4f}",
            f"{rng.integers(200) / 8}",
            f"{rng.integers(900)}",
            str(rng.choice(WORDS)) if rng.random() < 0.3 else f"w{rng.integers(60)} a b c",
            f"t{rng.integers(400)} x",
            str(rng.choice(WORDS)),
        )
        for _ in range(n)
    ]
    column = data.draw(st.one_of(st.none(), st.integers(0, N_COLUMNS)))
    for _ in range(data.draw(st.integers(0, 15))):
        source, target = rng.integers(n, size=2)
        copy = list(rows[source])
        k = int(rng.integers(N_COLUMNS + 1)) if column is None else column
        if k < N_COLUMNS:
            copy[k] = str(rng.choice(NUMBERS if k < N_NUMERIC else WORDS))
        rows[target] = tuple(copy)
    frame = pl.DataFrame(rows, schema=[f"c{k}" for k in range(N_COLUMNS)], orient="row")
    repeats = repeats_in(frame, numeric=("c0", "c1", "c2"), categorical=("c3", "c4", "c5"))
    n_repeats, equal, near, common = by_pairs(rows)
    # The report lists at most 20 groups.
    assert repeats.n_repeats == n_repeats and repeats.n_near == len(near)
    if len(equal) <= module.MAX_GROUPS:
        assert {tuple(row - 1 for row in group.rows) for group in repeats.equal} == {
            group[: module.MAX_PLACES] for group in equal
        }
    if len(near) <= module.MAX_GROUPS:
        assert {tuple(row - 1 for row in group.rows) for group in repeats.near} == {
            group[: module.MAX_PLACES] for group in near
        }
    assert dict(repeats.common) == common
    assert bool(repeats.statement) == bool(n_repeats or near or common)


@pytest.mark.parametrize("n_values", [1, 120, 10**9])
def test_equal_rows_of_any_hashes_are_those_of_a_dictionary(n_values: int) -> None:
    hashes = np.random.default_rng(0).integers(0, n_values, 400).astype(np.uint64)
    groups: dict[int, list[int]] = {}
    for place, value in enumerate(hashes.tolist()):
        groups.setdefault(value, []).append(place)
    repeated = [group for group in groups.values() if len(group) > 1]
    found = equal_rows(hashes, 7)
    assert (found.n_groups, found.n_repeats) == (
        len(repeated),
        sum(map(len, repeated)) - len(repeated),
    )
    assert [group.tolist() for group in found.groups] == sorted(repeated)[:7]


PLANTED = pl.concat([frame_of(300), frame_of(300)[[17, 40]].with_columns(name=pl.lit("again"))])


def test_repeats_and_near_repeats_are_reported_with_their_rows() -> None:
    other = {"black": "white", "white": "black"}[PLANTED["colour"][301]]
    frame = PLANTED.with_columns(
        colour=pl.when(pl.int_range(302) == 301).then(pl.lit(other)).otherwise("colour")
    )
    options = ScreeningOptions(columns=ColumnOptions(exclude=("kind",), hide=("colour",)))
    repeats = screen(table_from_frame(frame), options=options)[0].findings.duplicates
    # The name, unique except for one repeat, is not compared.
    assert [group.rows for group in repeats.equal] == [(18, 301)]
    assert [(group.rows, group.columns) for group in repeats.near] == [((41, 302), ("colour",))]
    assert repeats.near[0].cells == (("(hidden)",), ("(hidden)",))
    assert repeats.statement == (
        "1 row repeats an earlier one in every column the model uses (rows 18, 301). 1 group of "
        'rows is equal but for one cell, or for how it is written (rows 41, 302, "colour").'
    )
    (near,) = screen(
        table_from_frame(frame), options=ScreeningOptions(columns=ColumnOptions(exclude=("kind",)))
    )[0].findings.duplicates.near
    assert near.cells == ((PLANTED["colour"][301],), (other,))


def test_numbers_are_compared_in_single_precision_at_any_scale() -> None:
    numbers = np.array([1e-300, 5e-324, 3.0, 3.0000001, 3.000001, -3.0, 0.0, -0.0, 1e99])
    single = module._single(numbers)
    assert single[2] == single[3] != single[4]
    assert not np.signbit(single[7])
    assert single == pytest.approx(numbers, rel=1e-7, abs=0)
    # Amounts that differ by a cent, and locations some metres apart, stay different.
    assert len({*module._single(np.array([45678.91, 45678.92, 47.401059, 47.401140]))}) == 4
    # Integers are not rounded, as they may be codes; the largest float does not become infinite.
    whole = np.array([16_777_216.0, 16_777_217.0, np.finfo(float).max, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(module._single(whole), whole)


def test_long_whole_numbers_are_equal_to_the_last_digit() -> None:
    rng = np.random.default_rng(0)
    sizes = {f"size {k}": rng.normal(size=60) for k in range(4)}
    frame = pl.DataFrame({"time": 2**60 + 10**9 * np.arange(60), **sizes})
    repeats = repeats_in(pl.concat([frame, frame[7:8], frame[:1].with_columns(pl.col("time") + 1)]))
    assert [group.rows for group in repeats.equal] == [(8, 61)]
    assert [(group.rows, group.columns) for group in repeats.near] == [((1, 62), ("time",))]


def test_what_repeats_by_nature_is_one_sentence() -> None:
    rng = np.random.default_rng(0)
    repeats = repeats_in(pl.DataFrame({name: rng.choice(["a", "b", "c"], 2_000) for name in "xyz"}))
    assert (repeats.n_repeats, repeats.n_groups, repeats.equal, repeats.near) == (1_973, 27, (), ())
    assert "1,973 rows repeat" in repeats.statement and "by chance" in repeats.statement
    # Rows are visits, and the visits of one patient differ only in the day.
    wide = pl.DataFrame({f"m{k}": np.repeat(rng.normal(size=60), 4) for k in range(4)})
    repeats = repeats_in(wide.with_columns(day=np.tile([0.5, 1.5, 4.5, 9.5], 60)))
    assert (repeats.n_repeats, repeats.n_near, repeats.common) == (0, 0, (("day", 240),))
    assert '"day"' in repeats.statement


def test_nothing_is_reported_where_nothing_repeats() -> None:
    assert repeats_in(frame_of(100)) == DuplicateRows(n_compared=100)


@pytest.mark.parametrize("part_rows", [64, 128])
def test_all_rows_of_a_table_in_parts_are_compared_as_written(part_rows: int) -> None:
    whole = table_from_frame(PLANTED)
    plan = infer_plan(whole, ColumnOptions(label="kind"))
    encoder = LearnedEncoder.learn(whole, plan, contaminated=True)
    sample = draw_sample(parted(whole, part_rows=part_rows), 0, Execution())
    rows = encode(encoder, sample, n_jobs=1)
    assert rows.size_of_parts == part_rows and (rows.hashes == hash_rows(whole, encoder)).all()
    repeats = find_duplicates(rows)
    assert repeats.equal == find_duplicates(encode(encoder, Sample.of(whole))).equal
    assert [group.rows for group in repeats.equal] == [(18, 301), (41, 302)]
