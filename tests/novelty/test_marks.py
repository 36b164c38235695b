"""Marks are matched to rows by the visible cells only."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem

import kpca_apps.novelty.accepted as of_marks
from kpca_apps import screen_table
from kpca_apps.errors import InputError
from kpca_apps.novelty.accepted import (
    LARGEST,
    Accepted,
    Marks,
    find_marked,
    marks_of,
    read_marks,
    row_keys,
)
from kpca_apps.novelty.columns.parts import Execution
from kpca_apps.report.novelty.page import render_screening
from kpca_apps.system.stores.buckets import Place
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import Table, parted

PLACES = ("Oslo", "Rome", "Kiel")


def table(frame: pl.DataFrame) -> Table:
    return table_from_frame(frame, "table.csv")


def marks(**columns: object) -> Marks:
    return marks_of(table(pl.DataFrame(columns, strict=False)), "marks.csv")


def found(given: Marks, rows: Table, hidden: tuple[str, ...] = ()) -> Accepted:
    return find_marked(given, rows, Execution(), hidden)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, -0.0, 1.5, 1e300, -2.0, None]), st.sampled_from(PLACES)),
        min_size=1,
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
@settings(deadline=None, max_examples=40)
def test_keys_are_equal_where_the_visible_cells_are(rows: list[tuple], random: object) -> None:
    frame = pl.DataFrame(rows, schema={"size": pl.Float64, "place": pl.String}, orient="row")
    keys = row_keys(table(frame), ())
    for first, left in zip(rows, keys, strict=True):
        for second, right in zip(rows, keys, strict=True):
            assert (left == right) == (first == second)
    secret = frame.with_columns(secret=pl.Series(range(len(rows))))
    order = list(range(len(rows)))
    random.shuffle(order)  # type: ignore[attr-defined]
    again = row_keys(table(secret.select("place", "secret", "size")[order]), ("secret",))
    # Compare keys without the first letter, which marks hidden columns.
    assert [key[1:] for key in again] == [keys[place][1:] for place in order]


def test_numbers_are_known_again_however_they_are_written() -> None:
    written = table(pl.DataFrame({"x": ["0.1", "1e3", "5", "", "n/a word"]}))
    held = table(pl.DataFrame({"x": ["0.10", "1000.0", "5.00", None, "n/a word"]}))
    assert row_keys(written, ()) == row_keys(held, ())
    exact = table(pl.DataFrame({"x": [0.1, 1000.0, 5.0, None]}))
    assert row_keys(exact, ()) == row_keys(written, ())[:4]
    rounded = table(pl.DataFrame({"x": [0.1 + 1e-15, 1000.0 - 1e-12]}))
    assert row_keys(rounded, ()) == row_keys(exact, ())[:2]
    assert not {*row_keys(table(pl.DataFrame({"x": [0.1001, 999.0]})), ())} & {*row_keys(exact, ())}


def test_long_identifiers_and_codes_are_distinguished() -> None:
    for first in (4_006_381_333_931, 1_700_000_000_000, 10**15, 2**60):
        ids = [first + i for i in range(200)]
        held, written = (table(pl.DataFrame({"x": column})) for column in (ids, [*map(str, ids)]))
        keys = row_keys(held, ())
        assert len({*keys}) == 200 and keys == row_keys(written, ())
        if first < 2**53:
            floats = table(pl.DataFrame({"x": pl.Series(ids, dtype=pl.Float64)}))
            assert row_keys(floats, ()) == keys
    assert len({*row_keys(table(pl.DataFrame({"x": ["0012", "12", "007", "7", "0"]})), ())}) == 5


def test_marks_hold_in_parts_and_for_every_row_that_shows_the_same() -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 2.0, 5.0], "y": ["a", "b", "c", "b", "e"]})
    keys = row_keys(table(frame), ())
    of = marks(row_key=[keys[0], keys[1], keys[4]], row=[1, 2, 5], mark=["wrong", "fine", "known"])
    for rows in (table(frame), parted(table(frame), part_rows=2)):
        got = found(of, rows)  # type: ignore[arg-type]
        assert got.is_wrong is not None and got.is_known is not None
        assert got.is_accepted.tolist() == [False, True, False, True, True]
        assert got.is_fine.tolist() == [False, True, False, True, False]
        assert got.is_wrong.tolist() == [True, False, False, False, False]
        assert [(item.row, item.mark) for item in got.marks] == [
            *((1, "wrong"), (2, "fine"), (4, "fine"), (5, "known"))
        ]
        assert got.notes == ()


def test_a_mark_made_without_hidden_cells_accepts_no_more_than_was_seen() -> None:
    frame = pl.DataFrame({"x": [1.0, 1.0, 2.0], "secret": ["a", "b", "c"]})
    keys = row_keys(table(frame), ("secret",))
    assert keys[0] == keys[1]
    given = marks(row_key=[keys[1]], row=[2], mark=["fine"])
    assert found(given, table(frame), ("secret",)).is_accepted.tolist() == [False, True, False]
    assert not found(given, table(frame[[1, 2, 0]]), ("secret",)).is_accepted.any()
    # A visible identifier names its row, wherever the row stands.
    named = frame.with_columns(id=pl.Series(["p", "q", "r"]))
    key = row_keys(table(named), ("secret",))[1]
    given = marks(row_key=[key], row=[2], id=["q"], mark=["fine"])
    got = found(given, table(named[[1, 0, 2]]), ("secret",))
    assert got.is_accepted.tolist() == [True, False, False]


def test_marks_of_other_columns_are_refused_and_those_of_changed_rows_reported() -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0]})
    given = marks(row_key=row_keys(table(frame), ()), row=[1, 2, 3])
    with pytest.raises(InputError, match=r"other columns than table\.csv shows"):
        found(given, table(frame.rename({"x": "y"})))
    got = found(given, table(pl.DataFrame({"x": [1.0, 2.5, 3.5]})))
    assert got.is_accepted.tolist() == [True, False, False]
    assert "2 marked rows match no row of table.csv (row 2, row 3)" in got.notes[0]


def damaged(block: str) -> str:
    return f'<!DOCTYPE html><script type="application/json" id="marks">{block}</script>'


KEY = "v0123abcd-0123456789abcdef"


def test_a_page_with_entities_in_its_texts_is_read(tmp_path: Path) -> None:
    mark = f'{{"key":"{KEY}","mark":"fine","row":1,"id":"Bolt 3&quot;"}}'
    path = tmp_path / "page.html"
    whole = f'{{"format":1,"columns":[],"marks":[{mark}]}}'
    for text, name in ((whole, "Bolt 3&quot;"), (whole.replace('"', "&quot;"), None)):
        path.write_text(damaged(text), encoding="utf-8")
        if name is None:
            # Decoding turns every &quot; into a quotation mark, and the one in the id ends the id.
            with pytest.raises(InputError, match="damaged"):
                read_marks(path)
        else:
            assert read_marks(path).marks[0].id == name
    path.write_text(damaged(whole.replace(" 3&quot;", "").replace('"', "&quot;")), encoding="utf-8")
    assert read_marks(path).marks[0].id == "Bolt"


DAMAGED = {
    "no page with marks": ("<!DOCTYPE html><p>hello", "no page of a screening with marks"),
    "two blocks": (2 * damaged('{"format":1,"columns":[]}'), "no page of a screening with marks"),
    "no JSON": (damaged("{"), "its marks are damaged"),
    "a later format": (damaged('{"format":9,"columns":[]}'), "have format 9"),
    "another key": (
        damaged('{"format":1,"columns":[],"marks":[{"key":"k","mark":"fine","row":1}]}'),
        "its marks are damaged",
    ),
    "another mark": (
        damaged(f'{{"format":1,"columns":[],"marks":[{{"key":"{KEY}","mark":"odd","row":1}}]}}'),
        "its marks are damaged",
    ),
    "nothing marked": (
        damaged('{"format":1,"columns":[]}'),
        r"it holds no marks; .* give the saved file, report-marked\.html",
    ),
    "a report of denoising": (
        '<!DOCTYPE html><script type="application/json" id="redo">{}</script>',
        "this is a report of kpca denoise; give one of kpca novelty",
    ),
    "a table without keys": ("a,b\n1,2\n", "not a list of marks"),
    "a key cut short": ("row_key,row\nv0123,1\n", "line 2: no mark that a page wrote"),
    "no row": (f"row_key,row\n{KEY},0\n", "line 2: no mark that a page wrote"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_of_marks_are_reported_in_one_line(name: str, tmp_path: Path) -> None:
    text, message = DAMAGED[name]
    path = tmp_path / "marks.html"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as error:
        read_marks(path)
    assert "\n" not in str(error.value) and "marks.html" in str(error.value)


def test_a_file_of_marks_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "marks.html"
    with path.open("wb") as file:
        file.write(b"<!DOCTYPE html>")
        file.truncate(LARGEST + 1)
    with pytest.raises(InputError, match="a plain file of less than 64 MB"):
        read_marks(path)
    with pytest.raises(InputError, match="no such file"):
        read_marks(tmp_path / "none.html")


def test_of_marks_in_a_store_only_a_page_is_downloaded_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, downloads = tmp_path / "marks", list[Place]()

    class Watched(Place):
        def chunks(self) -> Iterator[bytes]:
            downloads.append(self)
            return super().chunks()

    def store_of(address: str | Path) -> Place:
        return Watched(str(address), str(path), LocalFileSystem())

    rows = table(pl.DataFrame({"row_key": [KEY], "row": [1]}))
    monkeypatch.setattr(of_marks, "place_of", store_of)
    monkeypatch.setattr(of_marks, "read_table", lambda address: rows)
    whole = f'{{"format":1,"columns":[],"marks":[{{"key":"{KEY}","mark":"fine","row":1}}]}}'
    path.write_text(damaged(whole) + " " * 10_000, encoding="utf-8")
    assert read_marks("s3://birds/marks.html").marks[0].key == KEY
    assert len(downloads) == 1
    path.write_text("row_key,row\n", encoding="utf-8")
    assert read_marks("s3://birds/marks.csv").marks[0].key == KEY
    with path.open("r+b") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(InputError, match="at most 64,000,000 bytes"):
        read_marks("s3://birds/marks.csv")
    assert len(downloads) == 1


def page(columns: list[str], marked: list[dict[str, object]]) -> str:
    return damaged(json.dumps({"format": 1, "columns": columns, "marks": marked}))


def test_a_forged_page_cannot_ask_what_hidden_cells_read(tmp_path: Path) -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0], "secret": ["a", "b", "c"]})
    guesses = row_keys(table(pl.DataFrame({"secret": ["b", "z"]})), ())
    path = tmp_path / "forged.html"
    forged = [{"key": key, "mark": "fine", "row": 1} for key in guesses]
    path.write_text(page(["secret"], forged), encoding="utf-8")
    with pytest.raises(InputError, match="other columns"):
        find_marked(read_marks(path), table(frame), Execution(), ["secret"])


def test_pages_made_to_take_long_are_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    sign = '<script type="application/json" id="marks">'
    path.write_text("<!DOCTYPE html>" + 100_000 * sign, encoding="utf-8")
    with pytest.raises(InputError, match="no page of a screening"):
        read_marks(path)
    frame = pl.DataFrame({"x": [1.0] * 3_000})
    key = row_keys(table(frame.head(1)), ())[0]
    found = [{"key": key, "mark": "fine", "row": n + 1} for n in range(3_000)]
    path.write_text(page(["x"] * 100_000, [*found, found[0] | {"mark": "known"}]), encoding="utf-8")
    got = find_marked(read_marks(path), table(frame), Execution())
    assert got.is_known is not None and got.is_known.all()


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    x = rng.normal(size=150)
    return pl.DataFrame(
        {"x": x.round(3), "y": (x + 0.1 * rng.normal(size=150)).round(3), "z": [*PLACES] * 50}
    )


def test_marked_rows_leave_the_list_or_stay_on_top(frame: pl.DataFrame, tmp_path: Path) -> None:
    first = screen_table(frame, count=6)
    top = first.ranked[:6]
    kinds = dict(zip((entry.row for entry in top), ["fine", "known", "wrong"] * 2, strict=True))
    block = {
        "format": 1,
        "columns": frame.columns,
        "marks": [{"key": o.key, "mark": kinds[o.row], "row": o.row, "note": "<b>"} for o in top],
    }
    page = render_screening(first)
    empty = json.dumps({"format": 1, "columns": frame.columns, "marks": []}, separators=(",", ":"))
    assert page.count(empty) == 1
    path = tmp_path / "marked.html"
    written = json.dumps(block).replace("<", "\\u003c")
    path.write_text(page.replace(empty, written), encoding="utf-8")
    again = screen_table(frame, count=6, marks=path)
    wrong = [row for row, kind in kinds.items() if kind == "wrong"]
    assert sorted(entry.row for entry in again.ranked[:2]) == sorted(wrong)
    assert again.rows.is_flagged[np.array(wrong) - 1].all()
    left = [row for row, kind in kinds.items() if kind != "wrong"]
    assert not again.rows.is_flagged[np.array(left) - 1].any()
    assert (again.rows.ranks[np.array(left) - 1] > len(frame) - 4 - 1).all()
    assert again.lists.accepted is not None
    assert again.lists.accepted.statement == (
        "Rows marked in marked.html: 2 fine and learned as normal, 2 known and not listed and "
        "2 wrong and first on the list."
    )
    # The next page includes the marks, too.
    (tmp_path / "next.html").write_text(render_screening(again), encoding="utf-8")
    assert [(m.row, m.mark, m.note) for m in read_marks(tmp_path / "next.html").marks] == [
        (row, kinds[row], "<b>") for row in sorted(kinds)
    ]


def test_known_rows_set_no_threshold_for_later_tables(frame: pl.DataFrame) -> None:
    top = screen_table(frame, count=8).ranked[:8]
    known = {"row_key": [o.key for o in top], "row": [o.row for o in top], "mark": ["known"] * 8}
    again = screen_table(frame, share=0.05, marks=known)
    assert again.model.detector.threshold == pytest.approx(again.threshold.value)
    assert again.threshold.value < min(row.score for row in top)


def test_usual_rows_beside_a_row_are_the_nearest_that_are_not_flagged(frame: pl.DataFrame) -> None:
    result = screen_table(frame.select("x", "y"), count=5)
    usual = {row.row: row for row in result.lists.usual}
    rows = frame.select("x", "y").to_numpy()
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    for entry in result.ranked[:5]:
        distances = np.abs(rows - rows[entry.row - 1]).sum(axis=1)
        distances[result.rows.is_flagged] = np.inf
        # The detector scales columns by robust measures instead of the mean and standard deviation,
        # so its order of rows may differ slightly.
        assert {*entry.nearest} <= {*(np.argsort(distances)[:4] + 1).tolist()}
        assert dict(usual[entry.nearest[0]].cells)["x"] == str(frame["x"][entry.nearest[0] - 1])
