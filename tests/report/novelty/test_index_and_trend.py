"""Pages over many tables and over many runs: sound, hostile names harmless, sizes bounded."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kpca_apps.novelty.result import (
    MovedColumn,
    RunSummary,
    ScreenedTable,
    ScreenedTables,
    ScreeningTrend,
    TrendRun,
)
from kpca_apps.report.drawing import to_svg
from kpca_apps.report.novelty.figures import trend_drawings
from kpca_apps.report.novelty.page import (
    render_index,
    render_screening,
    render_to_send,
    render_trend,
)
from kpca_apps.report.novelty.text import index_headline, trend_headline
from kpca_apps.report.result_json import result_to_json
from tests.report import examples
from tests.report.examples import HOSTILE
from tests.report.pages import Page, check_isolated, check_sound

MOVED = MovedColumn("mass", "distribution", 0.4, "median 9, was 5")
BEFORE = RunSummary("may", "may.csv", 50, 1, "1 of 50 rows stands out.")


def an_index(*tables: ScreenedTable) -> ScreenedTables:
    return ScreenedTables(tables, {"share": 0.01}, {"kpca": "1"}, "kpca novelty screen data --each")


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
    assert len(page.all("tr")) == 1 + len(tables)
    assert len(page.all("a")) == len(index.screened)


def hostile_trend(n: int = 3) -> ScreeningTrend:
    moved = (replace(MOVED, column=HOSTILE, words=HOSTILE),)
    run = TrendRun(HOSTILE, HOSTILE, HOSTILE, 100, 5, HOSTILE, "share", 1, 2, moved)
    changed = replace(run, settings_changed=((HOSTILE, HOSTILE, HOSTILE),))
    return ScreeningTrend((run,) * (n - 1) + (changed,), moved, {}, {"kpca": "1"}, (HOSTILE,), "k")


def test_hostile_names_stay_text() -> None:
    table = a_table(
        HOSTILE,
        oddest=HOSTILE,
        before=BEFORE,
        moved=(replace(MOVED, column=HOSTILE, words=HOSTILE),) * 5,
    )
    bad = replace(FAILED, name=HOSTILE, error=HOSTILE)
    index = an_index(table, replace(table, before=None, not_compared=HOSTILE), bad)
    trend = hostile_trend()
    for html in (
        render_index(index),
        render_trend(trend, trend_drawings(trend)),
        render_to_send(examples.hostile()),
    ):
        assert "<script>alert" not in html
        page = check_sound(html)
        assert "<script>alert(1)</script>" in page.text
        check_isolated(html)
    for result in (index, trend):
        json.loads(result_to_json(result))


def test_a_thousand_tables_are_a_page_of_bounded_size() -> None:
    table = a_table("x" * 300, oddest="y" * 5_000, moved=(MOVED,) * 300, before=BEFORE)
    assert len(render_index(an_index(*[table] * 1_000)).encode()) < 1_500_000


def a_trend(*flagged: int, rule: str = "alpha") -> ScreeningTrend:
    runs = [
        TrendRun(f"r{n}", f"r{n}", "t.csv", 100, k, "s", rule, 0, 0, (MOVED,) * (n == 1))
        for n, k in enumerate(flagged)
    ]
    return ScreeningTrend(tuple(runs), (MOVED,), {}, {})


def test_the_sentence_of_a_trend_names_where_it_went() -> None:
    assert trend_headline(a_trend(1, 9, 4)) == (
        "Over 3 runs the flagged share went from 1 % to 4 %, and was most in r1 (9 %); 1 column "
        "moved, mass most, in r1."
    )
    level = trend_headline(a_trend(2, 2, 2))
    assert level.startswith("Over 3 runs the flagged share is 2 % in the last as in the first;")
    still = a_trend(0, 0, 0)
    still = replace(still, runs=tuple(replace(run, moved=()) for run in still.runs))
    assert trend_headline(still).endswith("; no column moved.")
    assert [drawing.name for drawing in trend_drawings(still)] == ["flagged"]


def test_a_share_that_was_chosen_is_no_finding() -> None:
    for rule, is_said in (("share", True), ("count", True), ("alpha", False), ("fdr", False)):
        first, *_ = trend_drawings(a_trend(1, 1, 1, rule=rule))
        assert ("was chosen" in first.caption) is is_said


def test_figures_of_many_runs_name_some_of_them_and_the_moves_drawn() -> None:
    trend = a_trend(*range(60))
    columns = tuple(replace(MOVED, column=f"c{n:02}", size=n / 40) for n in range(30))
    runs = (*trend.runs[:2], replace(trend.runs[2], moved=columns), *trend.runs[3:])
    flagged, moved = trend_drawings(replace(trend, runs=runs))
    labels = [label.get_text() for label in flagged.figure.axes[0].get_xticklabels()]
    assert len(labels) == 8 and (labels[0], labels[-1]) == ("r0", "r59")
    drawn = [label.get_text() for label in moved.figure.axes[0].get_yticklabels()]
    assert drawn == [f"c{n:02}" for n in range(29, 17, -1)]
    assert "19 more columns moved less." in moved.caption
    assert "c29" in to_svg(moved)


@pytest.mark.parametrize("name", ["usual", "hidden", "with_reference", "none"])
def test_a_page_to_send_is_the_report_without_its_data(name: str) -> None:
    result = examples.SCREENINGS[name]()
    html = render_to_send(result)
    page, whole = check_sound(html), Page(render_screening(result))
    assert page.blocks == {} != whole.blocks
    assert len(page.all("tr")) == len(whole.all("tr"))
    assert not any(row.key in html for row in result.ranked if row.key)
