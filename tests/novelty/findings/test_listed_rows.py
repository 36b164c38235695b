"""Reason, odd cell, hint and explanation agree on the expected value of a cell."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from kpca_apps import screen_table
from kpca_apps.novelty.explain import explain_row
from kpca_apps.novelty.findings.listed_rows import OddCells
from kpca_apps.novelty.result import MISSPELT, OddCell, Reason
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import DateFormat, NumberFormat, ValueFormat
from tests.quick import quick

N = 400


def people(seed: int) -> Table:
    """Return people with correlated measures, and typing errors of every kind."""
    rng = np.random.default_rng(seed)
    is_male = rng.random(N) < 0.5
    height = 165 + 13 * is_male + 6 * rng.normal(size=N)
    columns = {
        "sex": np.where(is_male, "male", "female").tolist(),
        "height": [f"{value:.1f}" for value in height],
        "weight": [f"{value:.1f} kg" for value in 0.4 * height + 5 * rng.normal(size=N)],
        "town": rng.choice(["Amsterdam", "Rotterdam", "Utrecht"], N).tolist(),
        "born": [f"19{60 + i % 40}-0{1 + i % 9}-1{i % 9}" for i in range(N)],
    }
    rows = rng.permutation(N)
    for row in rows[:3]:
        columns["sex"][row] = str(rng.choice(["femal", "malle", "femmale", "Female"]))
    for row in rows[3:8]:
        columns["height"][row] = f"{height[row] * rng.choice([0.1, 10, 100]):.2f}"
    for row in rows[8:11]:
        columns["weight"][row] = columns["weight"][row].replace(".", "")
    columns["height"][rows[11]] = columns["height"][rows[11]].replace("1", "l")
    columns["born"][rows[12]] = columns["born"][rows[12]].replace("19", "29", 1)
    columns["town"][rows[13]] = "Amstrdam"
    return table_from_frame(pl.DataFrame(columns), "people")


@pytest.mark.parametrize("seed", quick(range(6), 0, 1))
def test_one_value_is_expected_of_a_cell(seed: int) -> None:
    table = people(seed)
    result, model = screen(table, options=ScreeningOptions(share=0.06))
    meant = {
        (row, cell.column): cell
        for cell in result.findings.odd_cells
        for row in (cell.row, *cell.more_rows)
        if cell.suggestion
    }
    assert len(meant) >= 7
    n_told = 0
    explained = {
        row.row: explain_row(model, table, row=str(row.row))[0].reasons
        for row in result.ranked[:14]
    }
    for row in result.ranked:
        for reasons in (row.reasons, explained.get(row.row, ())):
            for reason in reasons:
                cell = meant.get((row.row, reason.column))
                if cell is not None:
                    assert reason.expected == cell.suggestion
                    n_told += 1
        for hint in row.hints:
            for place, cell in meant.items():
                if place[0] == row.row and f'"{cell.column}" fit' in hint:
                    (factor,) = re.findall(r"divided by (\d+)|multiplied by (\d+)|read as", hint)
                    seen, suggested = (
                        float(text.removesuffix(" kg")) for text in (cell.seen, cell.suggestion)
                    )
                    if any(factor):
                        repaired = seen / int(factor[0]) if factor[0] else seen * int(factor[1])
                        assert repaired == pytest.approx(suggested, rel=1e-3)
    for listed in result.lists.flagged:
        for column, expected in zip(listed.columns, listed.expected, strict=True):
            if (listed.row, column) in meant:
                assert expected == meant[listed.row, column].suggestion
    assert n_told >= 6


def odd(column: str, seen: str, suggestion: str) -> OddCell:
    return OddCell(column, "far above", seen, "Far above the rest.", suggestion, 7, None)


def odd_cells(cells: list[OddCell], **formats: ValueFormat | None) -> OddCells:
    return OddCells(tuple(cells), formats, {}, {7: 1}, 100)


@pytest.mark.parametrize(
    ("seen", "meant", "expected", "is_kept"),
    [
        ("1702.5", "170.2", "168", True),
        ("1702.5", "170.2", "20", False),
        ("-44", "44", "41", True),
        ("17O.5", "170.5", "150", True),
        ("1702.5", "170.2", "(missing)", True),
    ],
)
def test_a_number_is_corrected_where_the_neighbours_agree(
    seen: str, meant: str, expected: str, is_kept: bool
) -> None:
    own = [Reason("height", 1.0, seen, expected)]
    suggestions = odd_cells([odd("height", seen, meant)], height=NumberFormat()).settled({7: own})
    (reason,) = suggestions.reasons(7, own)
    (cell,) = suggestions.cells
    assert (reason.expected, cell.suggestion) == ((meant, meant) if is_kept else (expected, ""))
    assert suggestions.numbers(7) == ({"height": float(meant)} if is_kept else {})
    other = Reason("height", 1.0, "3", "4")
    assert suggestions.reasons(8, [other]) == (other,)


def test_letters_say_more_of_a_level_than_neighbours_and_dates_are_dates() -> None:
    cells = [odd("sex", "femal", "female"), odd("born", "2923-04-05", "2023-04-05")]
    given = [Reason("sex", 0.5, "femal", "male"), Reason("born", 0.5, "2923-04-05", "2023-06-01")]
    suggestions = odd_cells(cells, sex=None, born=DateFormat()).settled({7: given})
    ranked = suggestions.reasons(7, given)
    assert [reason.expected for reason in ranked] == ["female", "2023-04-05"]
    assert ranked[0].expected_value == "female"
    assert suggestions.cells == tuple(cells)


def test_a_cell_clearer_than_the_score_comes_first() -> None:
    clear = OddCell(
        "town", MISSPELT, "Amstrdam", "Near Amsterdam.", "Amsterdam", 7, None, p_value=1e-6
    )
    small = [Reason("sex", 0.4, "f", "m"), Reason("kind", 0.3, "a", "b")]
    own = Reason("town", 0.3, "Amstrdam", "Utrecht")

    def reasons(given: list[Reason], *cells: OddCell, part: float = 0.0) -> list[Reason]:
        # By its score, the row has rank 3 of 1,000.
        formats = dict.fromkeys(("town", "sex", "kind"))
        suggestions = OddCells(cells, formats, {7: part}, {7: 3}, 1000)
        assert suggestions.hints(7) == tuple(f'"{cell.column}": {cell.sentence}' for cell in cells)
        return [*suggestions.reasons(7, given)]

    first, *others = reasons([*small, own], clear)
    assert (first.column, first.expected, first.share) == ("town", "Amsterdam", 0.3)
    assert others == small
    # The cell may contribute nothing to the score.
    assert reasons(small, clear)[0].share == 0.0
    # At this p-value, 4 of 1,000 correct rows have a cell at least as odd as this one. The row has
    # rank 3 by its score, which is stronger evidence, so the cell's column is not the first reason.
    doubtful = replace(clear, p_value=0.004)
    ranked = reasons([*small, own], doubtful)
    assert [(reason.column, reason.expected) for reason in ranked][2] == ("town", "Amsterdam")
    assert [reason.column for reason in reasons(small, doubtful)] == ["sex", "kind", "town"]
    # Half of the score comes from relations. The cell gets that half, and 0.3 of the other half.
    first, *others = reasons([*small, own], replace(clear, given=("sex",)), part=0.5)
    assert (first.column, first.share) == ("town", 0.5 + 0.5 * 0.3)
    assert [reason.share for reason in others] == [0.2, 0.15]
    far = OddCell("sex", "far above", "9", "Far above.", "", 7, None, p_value=1e-9)
    assert [reason.column for reason in reasons(small, far, clear)] == ["sex", "town", "kind"]
    assert reasons([], far)[0].expected == "less"
    assert reasons([], replace(far, kind="form"))[0].expected == "the usual form"


def test_reasons_do_not_depend_on_how_many_rows_are_requested() -> None:
    results = [
        screen(people(0), options=ScreeningOptions(count=count, explain=12))[0].ranked[:12]
        for count in (1, 12)
    ]
    assert [row.reasons for row in results[0]] == [row.reasons for row in results[1]]


def test_a_cell_that_a_formula_gives_reads_so_however_odd_it_is_by_itself() -> None:
    rng = np.random.default_rng(0)
    number, price = rng.integers(2, 12, N), np.round(rng.lognormal(2.5, 0.5, N), 2)
    columns = {"number": number, "price": price, "total": np.round(number * price, 2)}
    meant = {
        (3, "total"): columns["total"][3],
        (40, "total"): columns["total"][40],
        (90, "price"): price[90],
        (200, "number"): float(number[200]),
    }
    texts = {name: [f"{value:g}" for value in values] for name, values in columns.items()}
    texts["total"][3] = texts["total"][40] = "7654321"
    texts["price"][90], texts["number"][200] = "-" + texts["price"][7], "-" + texts["number"][8]
    result, _ = screen(table_from_frame(pl.DataFrame(texts)))
    cells = {(cell.row - 1, cell.column): cell for cell in result.findings.odd_cells}
    assert {cells[place].kind for place in meant} == {"far above", "sign"}
    assert {place: float(cells[place].suggestion) for place in meant} == meant
    # Equal cells with different suggested values are listed separately.
    assert [cells[row, "total"].more_rows for row in (3, 40)] == [(), ()]
    for (row, column), value in meant.items():
        (ranked,) = (entry for entry in result.ranked if entry.row == row + 1)
        assert (ranked.reasons[0].column, float(ranked.reasons[0].expected)) == (column, value)
        assert "total = number * price in 396 of 400 rows." in " ".join(ranked.hints)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_a_reason_names_what_differs(seed: int) -> None:
    """Reasons name only cells that differ from the expected value, so some rows have no reasons."""
    draw = np.random.default_rng(seed)
    columns = {"town": ["Rome", "Paris", "Oslo", "Bonn"], "side": ["left", "right"], "n": [0, 1, 2]}
    frame = pl.DataFrame({name: draw.choice(cells, 80).tolist() for name, cells in columns.items()})
    result = screen_table(frame, explain=80, count=3)
    reasons = [reason for row in result.ranked for reason in row.reasons]
    assert reasons and all(reason.seen != reason.expected for reason in reasons)
    assert not all(row.reasons for row in result.ranked)


def test_long_texts_are_cut_where_they_differ() -> None:
    towns = np.random.default_rng(0).choice(["Rome", "Oslo"], 120)
    texts = [f"A text of more than forty characters that ends in {town}" for town in towns]
    texts[50] = texts[int(np.argmax(towns != towns[50]))]
    result = screen_table(pl.DataFrame({"town": towns.tolist(), "text": texts}), count=1)
    seen, expected = str(result).splitlines()[1].split(": text ")[1].split(", expected ")
    assert (seen, expected) == ("...ds in Rome", "...ds in Oslo")[
        :: 1 if towns[50] == "Oslo" else -1
    ]


def months(factor: float, seed: int) -> tuple[pl.DataFrame, int, str]:
    """Return rows of one curve at various scales, with one cell wrong by a factor."""
    rng = np.random.default_rng(seed)
    sizes = np.exp(0.3 * rng.normal(size=(60, 1)) + 0.05 * rng.normal(size=(60, 12)))
    values = np.round(1000 * sizes, 1)
    row, month = int(rng.integers(60)), int(rng.integers(12))
    values[row, month] *= factor
    return pl.DataFrame({f"M{j}": values[:, j] for j in range(12)}), row + 1, f"M{month}"


@pytest.mark.parametrize(("factor", "least"), [(10.0, 3), (0.1, 2)])
def test_a_cell_that_the_rest_of_its_row_speaks_against_is_odd(factor: float, least: int) -> None:
    named = 0
    for seed in range(4):
        table, row, column = months(factor, seed)
        result = screen_table(table, explain=3)
        cells = [(cell.row, cell.column) for cell in result.findings.odd_cells]
        named += cells == [(row, column)]
        assert {*cells} <= {(row, column)}
        assert result.findings.n_odd_cells == len(cells)
    assert named >= least


def test_no_cell_of_rows_that_differ_in_size_alone_is_odd() -> None:
    clean = (months(1.0, seed)[0] for seed in range(4))
    assert not any(screen_table(table).findings.odd_cells for table in clean)
    # Temperatures near 0 have large differences in logarithms.
    rng = np.random.default_rng(7)
    warm = 12 + 9 * np.sin(np.arange(700) / 58) + 3 * rng.normal(size=700)
    days = {"low": warm - 5 + rng.normal(size=700), "high": warm + 5 + 2 * rng.normal(size=700)}
    assert not screen_table(pl.DataFrame(days).select(pl.all().round(1))).findings.odd_cells


@pytest.mark.parametrize("seed", range(4))
def test_small_values_are_not_odd_for_their_logarithms(seed: int) -> None:
    rng = np.random.default_rng([13, seed])
    sizes = rng.normal(size=(200, 1)) + 0.8 * rng.normal(size=(200, 8))
    for values in (rng.poisson(np.exp(1.8 + 0.25 * sizes)), np.abs(50 + 13 * sizes).round(1)):
        table = pl.DataFrame({f"m{j}": values[:, j] for j in range(8)})
        assert not screen_table(table, explain=20).findings.odd_cells
