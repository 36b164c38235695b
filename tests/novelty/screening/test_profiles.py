import polars as pl
import pytest

from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.explain import explain_row
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.tables.frames import table_from_frame
from tests.novelty.tables import frame_of

FRAME = frame_of(40)
NUMBERS = pl.Series([10_000 + 37 * i * i for i in range(40)])
AMOUNTS = pl.Series([f"1,{i}07.30" if i % 4 else f"1.{i}07,30" for i in range(100, 140)])


@pytest.mark.parametrize(
    ("frame", "id_column", "first", "note"),
    [
        (FRAME, None, "bird 00", 'Rows are named by "name", which differs in every row'),
        (FRAME, "name", "bird 00", ""),
        (FRAME.drop("name"), None, None, ""),
        # Rows are named by the first of several identifiers, unless a column's name says that it is
        # one.
        (FRAME.with_columns(other=FRAME["name"].reverse()), None, "bird 00", 'by "name"'),
        (FRAME.with_columns(PID=NUMBERS), None, "", 'by "PID"'),
        # A repeated id identifies nothing; row numbers are shown in any case.
        (
            FRAME.with_columns(name=pl.Series(["bird 1", *FRAME["name"][1:-1], "bird 1"])),
            None,
            None,
            "",
        ),
        (FRAME.drop("name").with_columns(row=pl.int_range(40)), None, None, ""),
        # Amounts in mixed formats identify no rows, either.
        (FRAME.drop("name").with_columns(sum=AMOUNTS), None, None, ""),
        (FRAME, "colour", None, '"colour" has 2 different values in 40 rows'),
    ],
)
def test_what_names_the_rows_is_found_and_stated_once(
    frame: pl.DataFrame, id_column: str | None, first: str | None, note: str
) -> None:
    options = ScreeningOptions(explain=1, columns=ColumnOptions(id=id_column))
    result = screen(table_from_frame(frame), options=options)[0]
    notes = [
        text for text in result.run.warnings if "named by" in text or "different values" in text
    ]
    assert len(notes) == bool(note)
    assert all(note in text for text in notes)
    ids = [row.id for row in result.ranked]
    if first is not None:
        assert len(set(ids)) == 40 and all(str(name).startswith(first) for name in ids)
    elif id_column is None:
        assert set(ids) == {None}


def test_a_hidden_identifier_names_no_rows() -> None:
    options = ScreeningOptions(columns=ColumnOptions(hide=("name",)))
    assert {row.id for row in screen(table_from_frame(FRAME), options=options)[0].ranked} == {None}


def test_a_row_is_explained_by_the_name_it_was_listed_by() -> None:
    model = fit_table(table_from_frame(FRAME), clean=False)[0]
    listed, _ = explain_row(model, table_from_frame(FRAME), row="bird 0007")
    assert (listed.row, listed.id) == (8, "bird 0007")
    assert explain_row(model, table_from_frame(FRAME), row="8")[0].row == 8


def test_the_rows_of_a_wide_table_carry_the_first_cells_and_those_of_their_reasons() -> None:
    frame = frame_of(40, odd=1)
    frame = frame.select(
        *[(frame["wing"] * (i % 7) + i * frame["mass"] % 13).alias(f"w{i}") for i in range(65)],
        frame["bill"],
    )
    result = screen(table_from_frame(frame), options=ScreeningOptions(explain=40))[0]
    assert "first 60 of 66 columns" in str(result.run.settings["cells of listed rows"])
    for row in result.ranked:
        names = [name for name, _ in row.cells]
        reasons = {reason.column for reason in row.reasons}
        assert set(names) == {f"w{i}" for i in range(60)} | reasons
        assert names == [name for name in frame.columns if name in set(names)]
    narrow = screen(table_from_frame(FRAME), options=ScreeningOptions(explain=0))[0]
    assert "cells of listed rows" not in narrow.run.settings
