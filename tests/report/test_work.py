"""Mark rows of a report's list in a real browser; screen the table again with the marks."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kpca_apps import screen_table
from kpca_apps.names import visible
from kpca_apps.novelty.result import RowMark, ScreeningResult
from kpca_apps.report.novelty.page import render_screening
from kpca_apps.report.novelty.text import MAX_LISTED
from kpca_apps.report.page import _asset
from tests.novelty.tables import changed
from tests.report import examples, worked
from tests.report.pages import rendered
from tests.report.worked import saved
from tests.test_names import LEFT_ALONE, WRITTEN_OUT

pytestmark = [pytest.mark.browser, pytest.mark.release]

Opened = Callable[[Path], Any]


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return worked.table()


def test_notes_are_written_out_as_other_texts_are(browser: Any) -> None:
    page = browser.new_page()
    page.add_script_tag(content=_asset("marks.js"))
    texts = [*(text for text, _ in WRITTEN_OUT), *LEFT_ALONE, "\t\n\x07"]
    shown = page.evaluate("(texts) => JSON.parse(texts).map(visible)", json.dumps(texts))
    page.close()
    assert shown == list(map(visible, texts))


def test_marks_made_by_keys_are_saved_reopened_and_applied(
    opened: Opened, frame: pl.DataFrame, tmp_path: Path
) -> None:
    first = worked.screened(frame)
    path = tmp_path / "report.html"
    first.save_report(path)
    page = opened(path)
    for key in worked.KEYS:
        page.keyboard.press(key) if key in worked.PRESSED else page.keyboard.type(key)
    assert page.locator(".workbar").inner_text().startswith(worked.TALLY)
    again = saved(page, "Save page with marks", tmp_path)
    worked.check_saved(first, path, again)
    reopened = opened(again)
    marks = reopened.locator("tr[data-row]").evaluate_all("all => all.map(r => r.dataset.mark)")
    assert marks[:4] == ["fine", "known", "wrong", None]
    assert "not saved" not in reopened.locator(".workbar").inner_text()
    accepted, to_fix = (saved(reopened, name, tmp_path) for name in ("accept.csv", "to-fix.csv"))
    worked.check_screened_again(frame, first, again, accepted)
    worked.check_lists(first, accepted, to_fix)
    worked.check_nothing_hidden(again, accepted, to_fix, path)


def test_rows_are_chosen_by_kind_column_and_mark(
    opened: Opened, frame: pl.DataFrame, tmp_path: Path
) -> None:
    result = screen_table(frame, count=6)
    result.save_report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html")
    page.locator("summary", has_text="Ranked rows").press("Enter")
    rows = page.locator("tr[data-row]")
    shown = "all => all.filter(row => !row.hidden).map(row => Number(row.dataset.row))"
    columns = page.locator("label", has_text="column").locator("select")
    columns.select_option(label=columns.locator("option", has_text="size").inner_text())
    expected = [o.row for o in result.ranked if any(r.column == "size" for r in o.reasons)]
    assert rows.evaluate_all(shown) == expected
    columns.select_option("")
    page.get_by_label("one row a kind").check()
    kinds = list(dict.fromkeys(row.kind_of_reason for row in result.ranked))
    assert len(rows.evaluate_all(shown)) == len(kinds)
    page.get_by_label("one row a kind").uncheck()
    rows.first.get_by_role("button", name="fine").click()
    page.get_by_label("marked").select_option("fine")
    assert rows.evaluate_all(shown) == [result.ranked[0].row]
    page.get_by_label("marked").select_option("none")
    assert rows.evaluate_all(shown) == [r.row for r in result.ranked[1:]]
    # Sorted by mark, rows without a mark come last.
    page.get_by_label("marked").select_option("")
    page.get_by_role("button", name="mark", exact=True).click()
    assert rows.evaluate_all(shown)[0] == result.ranked[0].row


def test_a_row_opens_beside_its_usual_rows(
    opened: Opened, frame: pl.DataFrame, tmp_path: Path
) -> None:
    result = screen_table(frame, count=4, id="name")
    result.save_report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    heads = page.locator(".whole thead th").all_inner_texts()
    usual = {row.row: row for row in result.lists.usual}
    near = [usual[row].id for row in result.ranked[0].nearest]
    assert heads == [
        "column",
        "reads",
        "expected",
        *(f"like it: {n}, row {int(n[1:]) + 1}" for n in near),
    ]
    cells = dict(result.ranked[0].cells)
    for line in page.locator(".whole tbody tr").all():
        name, reads, _, first, _ = line.locator("th, td").all_inner_texts()
        assert reads == cells[name]
        assert first == dict(usual[result.ranked[0].nearest[0]].cells)[name]
    page.keyboard.press("Enter")
    assert page.locator(".whole").count() == 0


def test_all_rows_of_a_card_are_marked_at_once(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(rendered("usual"), encoding="utf-8")
    page = opened(tmp_path / "report.html")
    card = page.locator(".card").filter(has_text="rows like this").first
    rows = card.get_attribute("data-rows").split()
    assert len(rows) > 1
    card.hover()
    card.get_by_role("button", name="known").click()
    listed = page.locator("tr[data-row]")
    marked = "all => all.filter(r => r.dataset.mark === 'known').map(r => r.dataset.row)"
    assert {*listed.evaluate_all(marked)} <= {*rows}


def long_list(n: int) -> ScreeningResult:
    """Return a screening that lists the given number of rows."""
    usual = examples.SCREENINGS["usual"]()
    row = usual.ranked[0]
    ordinary = tuple(
        replace(row, rank=i, row=i, line=i + 1, cells=(("a", "1.25"),) * 20, hints=(), id=f"N{i}")
        for i in range(1, n + 1)
    )
    return replace(usual, ranked=ordinary)


def test_a_long_list_opens_a_part_at_a_time_and_soon_as_a_whole(
    opened: Opened, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_screening(long_list(900)), encoding="utf-8")
    page = opened(path)
    # Elements per row are bounded, so that a list of 2,000 opens at once.
    assert page.locator("table.ranked *").count() < 35 * 900
    laid_out = "document.querySelectorAll('table.ranked tbody tr:not(.later)').length"
    assert page.evaluate(laid_out) == 200
    page.keyboard.press("j")
    page.locator("tr.later").first.wait_for(state="detached")
    assert page.evaluate(laid_out) == 900
    assert page.locator("table.ranked tbody tr:visible").count() == 900
    # A row is found by its words whether or not it was laid out.
    again = opened(path)
    again.evaluate("document.querySelector('table.ranked').closest('details').open = true")
    again.get_by_label("Filter").first.fill("N899")
    again.locator("tr.later").first.wait_for(state="detached")
    assert again.locator("table.ranked tbody tr:visible").count() == 1


def test_two_thousand_rows_make_a_page_of_bounded_size() -> None:
    wide = examples.huge()
    marks = (RowMark(7, "fine", f"v01234567-{7:016x}"),)
    many = tuple(replace(wide.ranked[0], rank=i, row=i, nearest=()) for i in range(1, 3_001))
    # With wide cells of escaped characters, fewer rows are listed.
    page = render_screening(changed(wide, ranked=many, marks=marks))
    assert len(page.encode()) < 2_200_000
    assert 200 < page.count("<tr data-row=") < MAX_LISTED
    page = render_screening(changed(long_list(3_000), marks=marks))
    assert len(page.encode()) < 1_500_000 and page.count("<tr data-row=") == MAX_LISTED
