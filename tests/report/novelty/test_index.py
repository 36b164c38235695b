"""Index pages that list many tables are valid, escape hostile names and have a maximum size."""

import json
from dataclasses import replace

import pytest

from kpca_apps.novelty.result import MovedColumn, RunInfo, RunSummary, ScreenedTable, ScreenedTables
from kpca_apps.report.novelty.page import render_index, render_screening
from kpca_apps.report.novelty.text import index_headline
from kpca_apps.report.result_json import result_to_json
from tests.report import examples
from tests.report.examples import HOSTILE
from tests.report.pages import Page, check_isolated, check_sound

MOVED = MovedColumn("mass", "distribution", 0.4, "median 9, was 5")
BEFORE = RunSummary("may", "may.csv", 50, 1, "1 of 50 rows stands out.")


def an_index(*tables: ScreenedTable) -> ScreenedTables:
    command = "kpca novelty screen data --each"
    return ScreenedTables(tables, RunInfo({"share": 0.01}, {"kpca": "1"}, command=command))


def a_table(name: str = "may.csv", **changes: object) -> ScreenedTable:
    usual = ScreenedTable(name, "may", 100, 2, 3, "row 7: its mass reads 9", "1 in 50", 0.02)
    return replace(usual, **changes)  # type: ignore[arg-type]


FAILED = ScreenedTable("bad.csv", "", error="it is empty")


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ([a_table()], "2 of 100 rows stand out in 1 table, and 3 cells are odd."),
        (
            [a_table(before=BEFORE), a_table(n_flagged=0, n_odd_cells=0), FAILED],
            "2 of 200 rows stand out in 2 tables, and 3 cells are odd; no column moved; 1 table "
            "could not be screened.",
        ),
        (
            [a_table(f"{n}.csv", before=BEFORE, moved=(MOVED,), n_odd_cells=0) for n in range(5)],
            "10 of 500 rows stand out in 5 tables; columns moved in 0.csv, 1.csv, 2.csv and 2 "
            "more.",
        ),
        (
            [a_table(before=BEFORE, hidden_columns=("pay",), n_odd_cells=0)],
            "2 of 100 rows stand out in 1 table; no column moved (hidden columns are not "
            "compared).",
        ),
        ([FAILED], "The table could not be screened."),
        ([FAILED] * 2, "None of 2 tables could be screened."),
    ],
)
def test_the_sentence_of_an_index_counts_what_is_in_it(
    tables: list[ScreenedTable], sentence: str
) -> None:
    index = an_index(*tables)
    assert index_headline(index) == sentence
    page = check_sound(render_index(index))
    assert sentence in page.text
    assert len(page.all("tr")) == 1 + len(tables) and len(page.all("a")) == len(index.screened)


def test_hostile_names_stay_text() -> None:
    table = a_table(
        HOSTILE,
        oddest=HOSTILE,
        before=BEFORE,
        moved=(replace(MOVED, column=HOSTILE, words=HOSTILE),) * 5,
    )
    bad = replace(FAILED, name=HOSTILE, error=HOSTILE)
    index = an_index(table, replace(table, before=None, not_compared=HOSTILE), bad)
    for html in (render_index(index), render_screening(examples.hostile(), is_to_send=True)):
        assert "<script>alert" not in html and "<script>alert(1)</script>" in check_sound(html).text
        check_isolated(html)
    json.loads(result_to_json(index))


def test_a_thousand_tables_are_a_page_of_bounded_size() -> None:
    table = a_table("x" * 300, oddest="y" * 5_000, moved=(MOVED,) * 300, before=BEFORE)
    assert len(render_index(an_index(*[table] * 1_000)).encode()) < 1_500_000


@pytest.mark.parametrize("name", ["usual", "hidden", "with_reference", "none"])
def test_a_page_to_send_is_the_report_without_its_data(name: str) -> None:
    result = examples.SCREENINGS[name]()
    html = render_screening(result, is_to_send=True)
    page, whole = check_sound(html), Page(render_screening(result))
    assert page.blocks == {} != whole.blocks and len(page.all("tr")) == len(whole.all("tr"))
    assert not any(row.key in html for row in result.ranked if row.key)
