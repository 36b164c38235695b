"""Files of flagged rows list every flagged row with its first reason."""

import csv
import re
from pathlib import Path

import numpy as np
import openpyxl
import polars as pl
import pytest

from kpca_apps.novelty.columns.parts import AnyTable, Execution
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.findings import listed_rows
from kpca_apps.novelty.result import MAX_ODD_CELLS_A_COLUMN, ScreeningResult
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.model import NoveltyModel, ScreeningOptions
from kpca_apps.novelty.written_tables import found_columns, odd_cell_columns, write_tables
from kpca_apps.report.novelty.page import render_screening
from kpca_apps.system.workers import Workers
from kpca_apps.tables.opening import open_table, read_table
from tests.novelty.tables import changed
from tests.quick import quick
from tests.tables.whole_and_parts import in_parts

# Dask closes workers while their connections are in use, which gives the warnings ignored here.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

N_ROWS, N_ODD = 400, 16
ADDED = ["rank", "line", "flagged", "reason_column", "seen", "expected", "share", "hint"]


def parcels() -> pl.DataFrame:
    """Return parcels of matching sizes; odd parcels are too long, or have width and depth 0."""
    rng = np.random.default_rng(0)
    size = rng.uniform(20, 40, N_ROWS)
    length, width, depth = (factor * size + rng.normal(size=N_ROWS) * 0.3 for factor in (3, 2, 1))
    length[:10] += 60.0
    width[10:N_ODD], depth[10:N_ODD] = 0.0, 0.0
    return pl.DataFrame(
        {
            "id": [f"{row:05d}" for row in range(N_ROWS)],
            "length": [f"{value:.2f}" for value in length],
            "width": [f"{value:.2f}" for value in width],
            "depth": [f"{value:.2f}" for value in depth],
            "weight": [f"{value:.1f}" for value in 9 * size],
            "sent": [f"2024-03-{1 + row % 28:02d}" for row in range(N_ROWS)],
            "note": ["=1+1" if row == 3 else f"für {row % 7}" for row in range(N_ROWS)],
        }
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parcels") / "parcels.csv"
    parcels().write_csv(path)
    return path


OPTIONS = ScreeningOptions(
    count=N_ODD, columns=ColumnOptions(id="id", exclude=("note",)), explain=3
)
Screened = tuple[ScreeningResult, NoveltyModel]


@pytest.fixture(scope="module")
def screened(file: Path) -> Screened:
    return screen(read_table(file), options=OPTIONS)


def write(
    screened: Screened, table: AnyTable, path: Path, execution: Execution | None = None
) -> tuple[str, ...]:
    """Write the flagged rows to a path and the scored table beside it."""
    result, model = changed(screened[0], flagged_file=path.name), screened[1]
    return write_tables(path.parent, table, result, model.encoder.plan, execution=execution)


def test_every_flagged_row_has_the_reason_that_was_planted(screened: Screened) -> None:
    listed = screened[0].lists.flagged
    assert [row.rank for row in listed] == list(range(1, N_ODD + 1))
    assert {entry.row for entry in listed} == set(range(1, N_ODD + 1))
    for flagged in listed:
        if flagged.row <= 10:
            assert flagged.columns == ("length",)
        else:
            assert {"width", "depth"} <= {*flagged.columns}
        cells = parcels().row(flagged.row - 1, named=True)
        assert flagged.seen == tuple(cells[name] for name in flagged.columns)
        if flagged.columns == ("length",):
            assert float(flagged.expected[0]) == pytest.approx(float(cells["weight"]) / 3, 0.1)
        assert flagged.share is not None
        assert 0.5 < flagged.share <= 1.0
        assert (flagged.id, flagged.line) == (cells["id"], flagged.row + 1)


def test_rows_beyond_those_explained_in_full_have_the_same_reasons(
    file: Path, screened: Screened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_rows, "MAX_FLAGGED_EXPLAINED", 2)
    monkeypatch.setattr(listed_rows, "ROWS_A_BLOCK", 5)
    result = screen(read_table(file), options=OPTIONS)[0]
    assert result.run.settings["rows explained"] == 3
    for row, in_full in zip(result.ranked[3:16], screened[0].ranked[3:16], strict=True):
        assert row.explained and row.key == in_full.key
        first = {reason.column: reason.expected for reason in in_full.reason_sets[0]}
        assert {reason.column: reason.expected for reason in row.reasons} == first
    assert not any(row.explained for row in result.ranked[16:])
    for entry, other in zip(result.lists.flagged, screened[0].lists.flagged, strict=True):
        assert (entry.columns, entry.seen, entry.expected, entry.share, entry.id, entry.line) == (
            (other.columns, other.seen, other.expected, other.share, other.id, other.line)
        )


@pytest.mark.parametrize("executor", quick(["threads", "processes", "dask"], "threads"))
def test_any_worker_writes_the_same_bytes(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    if executor == "dask":
        pytest.importorskip("distributed")
    monkeypatch.setattr(listed_rows, "MAX_FLAGGED_EXPLAINED", 2)
    monkeypatch.setattr(listed_rows, "ROWS_A_BLOCK", 5)
    written = []
    for workers in (Workers("serial"), Workers(executor, n_workers=2)):  # type: ignore[arg-type]
        with workers:
            table, execution = in_parts(file, 64), Execution(workers)
            result = screen(table, options=OPTIONS, execution=execution)
            write(result, table, tmp_path / "flagged.csv", execution)
            written.append(
                [(tmp_path / name).read_bytes() for name in ("flagged.csv", "scored.csv")]
            )
    assert written[0] == written[1]


def test_what_is_not_listed_is_stated_and_stays_empty(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_rows, "MOST_ROWS", 4)
    result = screen(read_table(file), options=OPTIONS)[0]
    assert [row.rank for row in result.lists.flagged] == [1, 2, 3, 4]
    (note,) = (text for text in result.run.warnings if "are flagged" in text)
    assert note.startswith("16 rows are flagged or have an odd cell: only the 4 oddest are in")
    cells = found_columns(result)
    has_reason = cells["reason_column"].is_not_null().to_numpy()  # type: ignore[union-attr]
    np.testing.assert_array_equal(has_reason, result.rows.ranks <= 4)


def test_without_explaining_rows_are_listed_without_reasons(file: Path, tmp_path: Path) -> None:
    unexplained = ScreeningOptions(count=N_ODD, columns=OPTIONS.columns, explain=0)
    result, model = screen(read_table(file), options=unexplained)
    write((result, model), read_table(file), tmp_path / "flagged.csv")
    rows = read_back(tmp_path / "flagged.csv")
    assert len(rows) == N_ODD
    assert {row["reason_column"] + row["share"] for row in rows} == {""}


def test_found_columns_of_parts_make_those_of_the_whole(screened: Screened) -> None:
    def columns_in(rows: slice) -> pl.DataFrame:
        columns = found_columns(screened[0], rows)
        return pl.DataFrame({name: cells for name, cells in columns.items() if cells is not None})

    whole = columns_in(slice(None))
    assert whole.equals(pl.concat(columns_in(slice(at, at + 7)) for at in range(0, N_ROWS, 7)))
    assert whole.height == N_ROWS
    of_set = next(entry for entry in screened[0].lists.flagged if entry.row == 13)
    assert whole["reason_column"][0] == "length"
    assert whole["reason_column"][12] == ", ".join(of_set.columns)
    assert whole["seen"][12] == ", ".join(of_set.seen) and whole["seen"][12].count("0.00") == 2
    assert whole["share"][50] is None


def read_back(path: Path) -> list[dict[str, str]]:
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as handle:
        return list(csv.DictReader(handle, strict=True))


def test_the_csv_holds_the_flagged_rows_oddest_first(
    file: Path, screened: Screened, tmp_path: Path
) -> None:
    assert write(screened, read_table(file), tmp_path / "flagged.csv") == ()
    rows = read_back(tmp_path / "flagged.csv")
    given = parcels()
    others = [name for name in given.columns if name != "id"]
    assert list(rows[0]) == [*ADDED[:2], "id", *ADDED[2:], *others]
    assert [row["rank"] for row in rows] == [str(rank) for rank in range(1, N_ODD + 1)]
    for row, listed in zip(rows, screened[0].lists.flagged, strict=True):
        cells = given.row(listed.row - 1, named=True)
        assert row["line"] == str(listed.row + 1)
        assert {name: row[name] for name in ("id", *others[:-1])} == {
            name: cells[name] for name in ("id", *others[:-1])
        }
        assert row["note"] == ("'=1+1" if cells["note"] == "=1+1" else cells["note"])
        assert row["reason_column"] == ", ".join(listed.columns)
        assert row["seen"] == ", ".join(listed.seen) and float(row["share"]) == listed.share
    hinted = {entry.row: entry.hint for entry in screened[0].lists.flagged}
    assert {int(row["line"]) - 1: row["hint"] for row in rows} == hinted


def test_parts_give_the_bytes_of_the_whole(file: Path, screened: Screened, tmp_path: Path) -> None:
    for name in ("flagged.csv", "flagged.xlsx"):
        write(screened, read_table(file), tmp_path / f"whole-{name}")
        write(screened, in_parts(file, 64), tmp_path / f"parts-{name}")
        whole, parts = ((tmp_path / f"{kind}-{name}").read_bytes() for kind in ("whole", "parts"))
        assert whole == parts


def test_the_workbook_colours_the_odd_cells_and_no_other(
    file: Path, screened: Screened, tmp_path: Path
) -> None:
    write(screened, read_table(file), tmp_path / "flagged.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "flagged.xlsx")["flagged"]
    header, *rows = sheet.iter_rows()
    names = [cell.value for cell in header]
    assert names == [*ADDED[:2], "id", *ADDED[2:], *parcels().columns[1:]]
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("D2", f"A1:O{N_ODD + 1}")
    assert "odd together" in header[names.index("reason_column")].comment.text
    for cells, entry in zip(rows, screened[0].lists.flagged, strict=True):
        coloured = {
            name for name, cell in zip(names, cells, strict=True) if cell.fill.fill_type == "solid"
        }
        assert coloured == set(entry.columns)
        by_name = {name: cell.value for name, cell in zip(names, cells, strict=True)}
        given = parcels().row(entry.row - 1, named=True)
        assert by_name["id"] == given["id"]  # text, with leading zeros
        assert by_name["length"] == float(given["length"])
        assert str(by_name["sent"].date()) == given["sent"] and by_name["note"] == given["note"]
    assert {cell.data_type for row in rows for cell in row} <= {"s", "n", "d", "b", "inlineStr"}


def test_values_of_hidden_columns_reach_neither_list_nor_file(file: Path, tmp_path: Path) -> None:
    hide = ColumnOptions(id="id", exclude=("note",), hide=("length", "id"))
    table = read_table(file)
    result, model = screen(table, options=ScreeningOptions(count=N_ODD, columns=hide))
    by_length = [row for row in result.lists.flagged if row.columns == ("length",)]
    assert by_length
    assert {(*row.seen, *row.expected, row.id) for row in by_length} == {
        ("(hidden)", "(hidden)", None)
    }
    secrets = {row[name] for row in parcels()[:N_ODD].to_dicts() for name in ("length", "id")}
    write((result, model), table, tmp_path / "flagged.csv")
    write((result, model), table, tmp_path / "flagged.xlsx")
    rows = read_back(tmp_path / "flagged.csv")
    assert not {"length", "id"} & set(rows[0])
    sheet = openpyxl.load_workbook(tmp_path / "flagged.xlsx").active
    texts = {str(cell.value) for row in sheet.iter_rows() for cell in row}
    for secret in secrets:
        assert not any(secret in text for row in rows for text in row.values())
        assert not any(secret in text for text in texts)


def test_columns_with_names_of_ours_are_renamed_and_long_texts_cut(
    file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "clash.csv"
    frame = parcels().rename({"weight": "share", "id": "rank"})
    frame.with_columns(note=pl.lit("x" * 40_000)).write_csv(path)
    options = ScreeningOptions(count=3, columns=ColumnOptions(exclude=("note",), id="rank"))
    table = read_table(path)
    notes = write(screen(table, options=options), table, tmp_path / "flagged.xlsx")
    assert [text.split(" is written as ")[0] for text in notes[:2]] == [
        'The input column "rank"',
        'The input column "share"',
    ]
    assert notes[2].startswith("flagged.xlsx holds the first 32,767 characters of 3 longer texts")
    sheet = openpyxl.load_workbook(tmp_path / "flagged.xlsx").active
    names = [cell.value for cell in next(sheet.iter_rows())]
    assert names[:3] == ["rank", "line", "rank_input"] and "share_input" in names


@pytest.mark.release
def test_a_list_of_no_rows_has_a_header(file: Path, tmp_path: Path) -> None:
    clean = read_table(file)
    options = ScreeningOptions(alpha=0.0001, columns=OPTIONS.columns)
    for table in (clean, in_parts(file, 64)):
        screened = screen(table, reference=clean, options=options)
        assert screened[0].n_flagged == 0
        for name in ("flagged.csv", "flagged.xlsx"):
            write(screened, table, tmp_path / name)
        assert (tmp_path / "flagged.csv").read_text("utf-8-sig").count("\n") == 1
        sheet = openpyxl.load_workbook(tmp_path / "flagged.xlsx").active
        assert (sheet.max_row, sheet["A1"].value) == (1, "rank")


PLANTED = {("weight", 100): "2x0.1", ("sent", 120): "2024-13-45", ("weight", 7): "21O.3"} | {
    ("depth", row): "-999" for row in range(200, 230, 2)
}
# The text '=1+1' contradicts its row: all other cells of its column follow from the date.
ODD = PLANTED | {("note", 3): "'=1+1"}


def with_odd_cells() -> pl.DataFrame:
    columns = parcels().to_dict(as_series=False)
    for (name, row), text in PLANTED.items():
        columns[name][row] = text
    return pl.DataFrame(columns)


@pytest.fixture(scope="module")
def two_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("two")
    paths = [folder / "a.csv", folder / "b.csv"]
    for path, rows in zip(paths, (slice(0, 150), slice(150, None)), strict=True):
        with_odd_cells()[rows].write_csv(path)
    return paths


def test_all_odd_cells_are_listed_with_file_and_line(two_files: list[Path], tmp_path: Path) -> None:
    options = ScreeningOptions(count=N_ODD, columns=ColumnOptions(id="id"))
    table = open_table(two_files)
    result, model = screen(table, options=options)
    assert result.findings.n_odd_cells >= len(ODD) > MAX_ODD_CELLS_A_COLUMN
    write_tables(tmp_path, table, changed(result, flagged_file="flagged.csv"), model.encoder.plan)
    rows = read_back(tmp_path / "odd_cells.csv")
    reads = {(row["column"], int(row["row"]) - 1): row["reads"] for row in rows}
    assert ODD.items() <= reads.items() and result.findings.n_odd_cells == len(rows)
    # From row 10 on, widths may be odd cells, too, because other cells contradict them.
    assert {*reads} - {*ODD} <= {("width", row) for row in range(10, N_ODD)}
    for row in rows:
        at = int(row["row"]) - 1
        place = ("a.csv", at + 2) if at < 150 else ("b.csv", at - 148)
        assert (row["file"], int(row["line"]), row["id"]) == (*place, f"{at:05d}")
        assert row["why"]
    suggested = {row["suggestion"] for row in rows if row["column"] != "width"}
    assert suggested == {"", "210.3", "für 3"}
    assert {*result.lists.files.values()} == {"a.csv", "b.csv"}
    # A line number alone would be ambiguous between the files.
    assert any(
        '"weight": 2 cells are not numbers' in w and "in row 8 " in w for w in result.run.warnings
    )
    # Beside the line of an odd cell or of one of the oddest rows, the page names its file.
    page = " ".join(re.sub("<[^>]+>", " ", render_screening(result)).split())
    assert re.search(r"b\.csv\D+52", page)
    oddest = result.ranked[0]
    assert f"line {oddest.line} of {'a' if oddest.row <= 150 else 'b'}.csv" in page
    assert "of the file" not in page


@pytest.mark.parametrize("hide", [(), ("depth",)])
def test_rows_with_an_odd_cell_are_on_the_list_too(
    two_files: list[Path], tmp_path: Path, hide: tuple[str, ...]
) -> None:
    options = ScreeningOptions(count=N_ODD, columns=ColumnOptions(id="id", hide=hide))
    table = open_table(two_files)
    result, model = screen(table, options=options)
    rows_of_cells = {row + 1 for _, row in ODD}
    others = {entry.row for entry in result.lists.flagged if not entry.flagged}
    assert others == rows_of_cells - {*(np.flatnonzero(result.rows.is_flagged) + 1).tolist()}
    assert 201 in others
    write((result, model), table, tmp_path / "flagged.csv")
    rows = read_back(tmp_path / "flagged.csv")
    assert {int(row["rank"]) for row in rows if row["flagged"] == "false"} == {
        int(result.rows.ranks[row - 1]) for row in others
    }
    assert sum(row["flagged"] == "true" for row in rows) == N_ODD
    ranks = [int(row["rank"]) for row in rows]
    assert ranks == sorted(ranks)
    cells_found = {row["id"]: row for row in rows}["00200"]
    assert cells_found["reason_column"] == "depth"
    assert cells_found["seen"] == ("(hidden)" if hide else "-999")
    assert ("missing value?" in cells_found["hint"]) == (not hide)


def test_the_workbook_has_the_odd_cells_in_a_sheet(two_files: list[Path], tmp_path: Path) -> None:
    table = open_table(two_files)
    result = screen(table, options=ScreeningOptions(count=N_ODD))
    write(result, table, tmp_path / "flagged.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "flagged.xlsx")["odd cells"]
    header, *rows = sheet.iter_rows(values_only=True)
    columns = odd_cell_columns(table, result[0])
    assert list(header) == list(columns)
    assert rows == list(zip(*columns.values(), strict=True)) and len(rows) > len(ODD)
