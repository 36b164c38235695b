from pathlib import Path

import polars as pl
import pytest

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.explain import Line, explain_row
from kpca_apps.novelty.run import score, screen
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import NoveltyModel, ScreeningOptions
from kpca_apps.tables.opening import read_table
from kpca_apps.tables.table import Table
from tests.novelty.tables import correlated, frame_of

HIDDEN = ScreeningOptions(columns=ColumnOptions(hide=("name",)))


@pytest.fixture
def new(tmp_path: Path) -> Table:
    frame_of(30, seed=1, odd=1).write_csv(tmp_path / "new.csv")
    return read_table(tmp_path / "new.csv")


@pytest.fixture(scope="module")
def model() -> NoveltyModel:
    return fit_table(correlated(80), ScreeningOptions(columns=ColumnOptions(label="kind")))[0]


def test_a_row_is_found_by_number_line_or_id(model: NoveltyModel, new: Table) -> None:
    by_id = ScreeningOptions(columns=ColumnOptions(id="name"))
    rows = [
        explain_row(model, new, row="30")[0],
        explain_row(model, new, row=Line(31))[0],
        explain_row(model, new, row="bird 0029", options=by_id)[0],
    ]
    assert {(row.row, row.line, row.rank, row.score) for row in rows} == {
        (30, 31, 1, score(model, new).rows.scores.max())
    }
    assert [row.id for row in rows] == ["bird 0029"] * 3
    assert rows[0].reasons == rows[1].reasons and rows[0].reasons[0].column == "bill"


def test_a_row_of_the_list_is_explained_as_on_the_list() -> None:
    table = correlated(90, odd=3)
    screened, model = screen(table)
    for listed in screened.ranked[:5]:
        alone, _ = explain_row(model, table, row=str(listed.row))
        assert (alone.rank, alone.score, alone.cells) == (listed.rank, listed.score, listed.cells)
        assert [r.column for r in alone.reasons] == [r.column for r in listed.reasons]
        assert [r.expected for r in alone.reasons] == [r.expected for r in listed.reasons]
        shares = [r.share for r in alone.reasons]
        assert shares == pytest.approx([r.share for r in listed.reasons], abs=1e-9)


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ({"row": "31"}, "row numbers go from 1 to 30"),
        ({"row": "0"}, "row numbers go from 1 to 30"),
        ({"row": "bird"}, '"name" = "bird", and row numbers go from 1 to 30$'),
        ({"row": "x", "options": HIDDEN}, "from 1 to 30; or name the column of ids with --id$"),
        ({"row": 1}, "no row starts on line 1; give another line, or --row from 1 to 30"),
    ],
)
def test_no_such_row(
    model: NoveltyModel, new: Table, which: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=f"new.csv: no row.*{message}|{message}"):
        explain_row(model, new, **which)  # type: ignore[arg-type]


def test_an_id_that_names_several_rows_is_refused_with_their_lines(
    model: NoveltyModel, new: Table
) -> None:
    options = ScreeningOptions(columns=ColumnOptions(id="kind"))
    with pytest.raises(
        InputError,
        match=r'29 rows with "kind" = "usual": lines 2, 3, .*, 21 and 9 more; name one.* --line 2$',
    ):
        explain_row(model, new, row="usual", options=options)
    pairs = Table(
        new.frame.with_columns(ring=pl.Series([f"r{i // 2}" for i in range(30)])),
        new.lines,
        new.source,
    )
    options = ScreeningOptions(columns=ColumnOptions(id="ring"))
    with pytest.raises(
        InputError, match=r'2 rows with "ring" = "r3": lines 8, 9; name one, as with --line 8'
    ):
        explain_row(model, pairs, row="r3", options=options)


def test_a_number_that_is_no_id_is_the_number_of_the_row(model: NoveltyModel, new: Table) -> None:
    options = ScreeningOptions(columns=ColumnOptions(id="name"))
    listed, _ = explain_row(model, new, row="30", options=options)
    assert (listed.row, listed.id) == (30, "bird 0029")
    with pytest.raises(InputError, match='"31"'):
        explain_row(model, new, row="31", options=options)


def test_tables_without_lines_have_none_to_explain(model: NoveltyModel) -> None:
    with pytest.raises(ConfigError, match="has no lines"):
        explain_row(model, correlated(10), row=Line(2))
