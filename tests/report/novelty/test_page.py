import re
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest

from kpca_apps.report.drawing import PALETTE
from kpca_apps.report.novelty.page import render_comparison, render_screening
from kpca_apps.report.novelty.text import verdict
from kpca_apps.report.text import count
from tests.novelty.tables import changed
from tests.quick import quick
from tests.report import examples
from tests.report.pages import Page, check_isolated, check_sound, rendered


@pytest.mark.parametrize(
    "name", quick(examples.SCREENINGS, "usual", "hostile", "hidden", "with_reference", "none")
)
def test_every_result_becomes_a_sound_page(name: str) -> None:
    html = rendered(name)
    assert len(html.encode()) < 1_000_000
    assert not {"img", "a"} & set(check_sound(html).tags)


@pytest.mark.release
def test_a_million_rows_with_wide_hostile_cells_make_a_page_of_bounded_size() -> None:
    html = render_screening(examples.huge())
    assert len(html.encode()) < 1_400_000
    page = Page(html)
    assert "1,000 of 1,000,000 rows stand out" in page.text
    assert "999,900 more in the scored table" in page.text
    assert "306 more columns in result.json" in page.text


@pytest.mark.release
def test_the_same_result_gives_the_same_bytes() -> None:
    assert render_screening(examples.with_labels()) == rendered("with_labels")


def test_hostile_text_stays_text() -> None:
    html = rendered("hostile")
    assert "<script>alert" not in html
    assert "49" not in re.findall(r"&#39;&amp;(\d+)", html)  # {{7*7}} is not evaluated
    assert "<script>alert(1)</script>" in Page(html).text
    check_isolated(html)


def test_repeated_rows_are_listed_with_their_lines_and_what_differs() -> None:
    html = rendered("usual")
    fold = html[html.index("<h2>Repeated rows</h2>") :].split("</details>")[0]
    assert "Rows repeat earlier ones" in fold
    cells = re.findall(r"<td[^>]*>(.*?)</td>", fold)
    assert [re.sub(r"<[^>]*>", "", cell) for cell in cells] == [
        *("equal", "N8A1", "1, 9", "2, 10", "", ""),
        *("nearly equal", "", "2, 3 and 1,998 more", "2, 3 and 1,998 more"),
        *("Flipper Length (mm)", "1950 / 195"),
    ]
    assert "Repeated rows" not in rendered("three_rows")


def test_values_of_hidden_columns_do_not_reach_the_page() -> None:
    html, text = rendered("hidden"), Page(rendered("hidden")).text
    assert "1950" not in html and "N262A1" not in html
    assert "values hidden" in html and "Flipper Length (mm)" in html
    assert text.count("odd by hidden values") == 2
    assert text.count('3 rows: odd by hidden values of "Flipper Length (mm)".') == 1
    assert "3 rows read Gentoo." in text


def first_screen(html: str) -> str:
    return Page(html[: html.index('<section class="folds"')] + "</main></body></html>").text


def test_odd_cells_and_hints_are_on_the_first_screen_and_many_are_folded() -> None:
    first = first_screen(rendered("usual"))
    found = first.index("9 cells, by their columns or the rest of their rows; the clearest first.")
    assert found < first.index("Next steps")
    assert "suggested value" in first and "Also on lines 20, 31, 1,041, 1,052 and 2 more." in first
    assert '"Flipper Length (mm)" fits if divided by 10.' in first
    text = Page(rendered("hostile")).text
    assert "the clearest 10, by their columns or the rest of their rows" in text
    assert "2,000 cells in all" in text


def test_columns_that_are_odd_together_are_one_reason() -> None:
    text = Page(rendered("together")).text
    assert "together 75 %" in text and text.count("included above") > 1 and "farthest off" in text
    assert text.count("14 rows: ") == 8


def test_the_first_screen_answers() -> None:
    result = examples.screening()
    first = first_screen(rendered("usual"))
    assert "12 of 344 rows stand out" in first
    for row in result.oddest_of_each_kind[:5]:
        assert f"line {row.line} of the file" in first
    kinds = [row.kind_of_reason for row in result.oddest_of_each_kind if row.reasons]
    assert len(kinds) == len(set(kinds)) < 5
    assert result.threshold.statement in first
    for sentence, command in result.run.next_steps:
        assert sentence in first
        assert command in first
    assert result.run.warnings[0] in first
    assert not re.search(r"(?i)kernel|component|eigen|calibrat|p-value", first)


@pytest.mark.parametrize(("form", "noun"), [("csv", "lines"), ("excel", "rows")])
def test_lines_without_data_are_reported_at_the_top(form: str, noun: str) -> None:
    result = examples.screening()
    left_out = (("title", ((1, 4),)), ("units", ((6, 6),)), ("total", ((90, 90), (184, 185))))
    source = replace(result.source, format=form, left_out=left_out)
    html = render_screening(replace(result, source=source))
    note = f"Left out as not data: {noun} 1-4 (title), 6 (units), 90, 184-185 (3 totals)."
    assert note in first_screen(html)
    alone = replace(source, left_out=(("units", ((2, 2),)),))
    note = f"Left out as not data: {noun[:-1]} 2 (units)."
    assert note in Page(render_screening(replace(result, source=alone))).text
    assert "Left out as not data" not in render_screening(result)


def test_all_settings_are_listed() -> None:
    result = examples.with_reference()
    text = Page(rendered("with_reference")).text
    assert result.source.sha256 in text and result.run.command in text
    for key, version in result.run.versions.items():
        assert key in text and version in text
    for column in result.columns:
        assert column.name in text and column.why in text
    for warning in result.run.warnings:
        assert warning in text
    assert "p-value" in text


@pytest.mark.parametrize("name", ["usual", "with_reference"])
def test_the_scale_people_read_stands_before_the_score(name: str) -> None:
    result, html = examples.SCREENINGS[name](), rendered(name)
    assert result.rows.scale is not None
    assert html.index(f">{result.rows.scale.name}</th>") < html.index(">score</th>")
    assert (">p-value</th>" in html) == ("p-value" in html) == (name == "with_reference")
    text = Page(html).text
    assert result.rows.scale.statement in text
    for row in result.oddest_of_each_kind[:5]:
        card = text[text.index(f"line {row.line} of the file") :]
        shown = f"{row.rarity.words} usual rows" if row.rarity else "p-value 0.0"
        assert 0 < card.index(shown) < card.index("score")


def test_without_a_scale_the_score_stands_alone() -> None:
    result = examples.screening()
    ranked = tuple(replace(row, rarity=None) for row in result.ranked)
    plain = changed(result, scale=None, rarity_of=None, ranked=ranked)
    html = render_screening(replace(plain, threshold=replace(result.threshold, rarity=None)))
    assert "how rare" not in html and "1 in " not in Page(html).text and ">score</th>" in html


def test_a_table_without_threshold_lines_or_ids_says_so() -> None:
    text = Page(rendered("infinite_threshold")).text
    assert "threshold none" in text and "not flagged" in text
    assert "infinite" not in text
    html = rendered("no_reasons")
    assert ">line</th>" not in html and ">id</th>" not in html
    assert "No column differs from what similar rows suggest." in html
    assert "Reasons were computed for the first rows only (--explain)." in html


def test_every_ranked_row_stands_in_the_page_without_script() -> None:
    result = examples.screening()
    html = rendered("usual")
    table = html[html.index('<table class="ranked') :]
    for row in result.ranked:
        assert f">{row.id}</bdi>" in table
    assert f"{count(244)} more in the scored table" in html


def test_a_comparison_is_a_page() -> None:
    page = Page(render_comparison(examples.comparison()))
    assert "kernel PCA shares 2nd place of 6 with one-class SVM in both tests" in page.text
    assert "Test 1: " in page.text and "Test 2: " in page.text
    assert "share of reasons" not in page.text and "share of all reasons" not in page.text
    assert page.text.count("behind Parzen") == 4  # in 2 tests, by AUROC and AUPRC
    assert "1.25" not in page.text  # no timings
    assert page.csp
    (evaluation,) = examples.evaluations()
    assert (
        verdict(evaluation) in page.text
        and verdict(evaluation) in Page(rendered("with_labels")).text
    )


def test_light_colours_are_those_of_the_figures() -> None:
    css = resources.files("kpca_apps.report").joinpath("templates/report.css").read_text("utf-8")
    light, dark = css.split("prefers-color-scheme: dark", 1)
    for name, colour in PALETTE.items():
        assert f"--{name}: {colour};" in light
        assert f"--{name}: #" in dark.split("color-scheme: dark")[0]


def test_text_stands_out_from_the_paper() -> None:
    css = resources.files("kpca_apps.report").joinpath("templates/report.css").read_text("utf-8")
    for theme in css.split("prefers-color-scheme: dark", 1):
        found = dict(re.findall(r"--(paper|ink|muted|accent): #([0-9a-f]{6})", theme))
        parts = np.array([[*bytes.fromhex(value)] for value in found.values()]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        lights = dict(zip(found, linear @ [0.2126, 0.7152, 0.0722] + 0.05, strict=True))
        paper, inks = lights.pop("paper"), [*lights.values()]
        assert len(inks) == 3
        assert all(max(paper / ink, ink / paper) >= 4.5 for ink in inks)  # WCAG 2.1


def test_a_card_lists_the_rows_like_its_own() -> None:
    result = examples.together()
    cards = re.findall(r'(?s)<li class="card.*?</li>', rendered("together"))
    assert len(cards) == len(result.kinds_of_reason[:5])
    for card, rows in zip(cards, result.kinds_of_reason, strict=False):
        text = " ".join(Page(card).text.split())
        named = [f"{row.id} (line {row.line})" for row in rows]
        assert text.startswith(f"{rows[0].rank} {rows[0].id} ")
        assert (f"{len(rows)} rows like this" in text) == (len(rows) > 1 and rows[0].flagged)
        for name in named[1:4]:
            assert name in text
        assert ("and 2 more." in text) == (len(rows) == 6)
    sentence = '"Flipper Length (mm)" is about 10 times what the rest suggests.'
    assert sentence in Page(cards[0]).text
    assert not any(sentence in Page(card).text for card in cards[1:])


def test_flagged_rows_without_a_card_are_counted() -> None:
    result = examples.screening(n_flagged=9)
    reasons = examples.REASONS[0]
    rows = tuple(
        replace(row, reasons=(replace(reasons, column=f"column {row.rank}"),))
        for row in result.ranked
    )
    text = Page(render_screening(replace(result, ranked=rows))).text
    assert "4 more rows of the list are odd in other ways" in text
    assert "of the list are odd" not in Page(rendered("usual")).text


def test_columns_stand_by_their_part_in_the_reasons() -> None:
    html = rendered("usual")
    fold = html[html.index("<h2>Columns</h2>") :].split("<h2>")[1]
    names = re.findall(r'<td class="lead"><bdi[^>]*>([^<]*)', fold)
    parts = {column.name: column.reason_share for column in examples.screening().columns}
    assert sorted(names) == sorted(parts)
    assert [parts[name] for name in names] == sorted(parts.values(), reverse=True)
    folded = fold[fold.index('<details class="rest">') :]
    n_without = sum(not part for part in parts.values())
    assert f"{n_without} columns with no part in the reasons" in folded
    assert folded.count('<td class="lead">') == n_without


@pytest.mark.release
def test_common_properties_of_tables_are_no_warning_at_the_top() -> None:
    result = examples.screening()
    top = '<ul class="warnings"'
    assert top in rendered("usual")
    html = render_screening(changed(result, n_doubts=0))
    assert top not in html
    assert result.run.warnings[0] in Page(html).text
