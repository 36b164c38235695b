import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kpca_apps.report.denoising.page import render_trial
from kpca_apps.report.novelty.page import render_comparison, render_in_notebook
from kpca_apps.report.papers.page import render_gallery
from tests.report import denoising_examples, examples, gallery_examples
from tests.report.pages import render_denoising, rendered

pytestmark = [pytest.mark.browser, pytest.mark.release]

BATCHES = ("real", "many", "hostile", "with_dictionary", "all_failed", "counted")
SCREENINGS = ("usual", "hostile", "long_names", "two_columns", "with_labels")
PAGES = (*SCREENINGS, "comparison", "trial", "papers", "many/details/0003")
PAGES += tuple(f"{name}/report" for name in BATCHES)

SEVERE = ("serious", "critical")

Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pages = {name: rendered(name) for name in SCREENINGS}
    pages["comparison"] = render_comparison(examples.comparison())
    pages["papers"] = render_gallery(gallery_examples.usual())
    pages["trial"] = render_trial(denoising_examples.trial())
    for name in BATCHES:
        found = render_denoising(denoising_examples.BATCHES[name]())
        pages |= {f"{name}/{file.removesuffix('.html')}": html for file, html in found.items()}
    folder = tmp_path_factory.mktemp("pages")
    for name, html in pages.items():
        path = folder / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html, encoding="utf-8")
    return folder


@pytest.fixture
def opened(opened: Opened, folder: Path) -> Opened:
    def open_named(name: str | Path, width: int = 1280, height: int = 800, **options: Any) -> Any:
        return opened(folder / f"{name}.html", width, height, **options)

    return open_named


@pytest.mark.parametrize("name", PAGES)
def test_no_page_scrolls_sideways_or_complains(opened: Opened, name: str) -> None:
    page = opened(name, 1280, 740)
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", PAGES)
def test_no_page_has_a_serious_fault_of_accessibility(opened: Opened, name: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for width, scheme in ((1280, "light"), (360, "dark")):
        page = opened(name, width, 740, color_scheme=scheme, bypass_csp=True)
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        if (more := page.locator(".more")).count():
            more.first.click()
        found = axe.run(page).response["violations"]
        assert [(f["id"], f["nodes"][0]["html"]) for f in found if f["impact"] in SEVERE] == []


def test_the_first_screen_holds_the_answer(opened: Opened) -> None:
    page = opened("usual")
    # The first screen shows the oddest rows, and the cells that are odd on their own.
    cells = "document.getElementById('odd-cells').closest('section')"
    assert page.evaluate(f"{cells}.getBoundingClientRect().bottom") <= 800
    assert (
        page.locator(".card").count()
        == len(examples.SCREENINGS["usual"]().oddest_of_each_kind)
        == 4
    )


@pytest.mark.parametrize("width", [640, 900, 1280])
def test_a_short_identifier_is_not_cut_on_its_card(opened: Opened, width: int) -> None:
    page = opened("usual", width)
    names, tags = page.locator(".card .who bdi"), page.locator(".card .tag")
    names.evaluate_all("all => all.forEach((one) => { one.textContent = 'MW00742' })")
    tags.evaluate_all("all => all.forEach((one) => { one.textContent = '1,217 rows like this' })")
    widths = names.evaluate_all("all => all.map((one) => [one.scrollWidth, one.clientWidth])")
    assert widths
    assert all(needed <= there for needed, there in widths)
    # A long name is truncated and stays beside its rank.
    names.evaluate_all("all => all.forEach((one) => { one.textContent = 'MW'.repeat(60) })")
    tops = "all => all.map((one) => Math.round(one.getBoundingClientRect().bottom))"
    assert names.evaluate_all(tops) == page.locator(".card .who .rank").evaluate_all(tops)


def test_tables_sort_and_filter_by_keyboard(opened: Opened) -> None:
    page = opened("usual")
    page.locator("summary", has_text="Ranked rows").press("Enter")
    heading = page.get_by_role("button", name="row", exact=True)
    heading.press("Enter")
    rows = page.locator("table[data-tools]").first.locator("tbody tr")
    numbers = "all => all.map(r => Number(r.querySelector('.row').textContent.replace(',', '')))"
    places = rows.evaluate_all(numbers)
    assert len(places) == 100 and places == sorted(places)
    heading.press("Enter")
    assert heading.locator("..").get_attribute("aria-sort") == "descending"
    places = rows.evaluate_all(numbers)
    assert places == sorted(places, reverse=True)
    page.get_by_label("Filter").first.fill("N262A1")
    assert rows.evaluate_all("all => all.filter(row => !row.hidden).length") == 1
    assert page.get_by_role("status").first.inner_text() == "1 of 100 rows"


def test_a_phone_shows_rows_and_columns_without_scrolling_sideways(opened: Opened) -> None:
    page = opened("usual", 360, 740)
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert page.locator(".scroll").count() == 5
    for box in page.locator(".scroll").all():
        assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    why = page.locator("td.why")
    assert min(why.evaluate_all("all => all.map(cell => cell.clientWidth)")) > 250
    warning = page.locator(".warnings .cut").first
    assert warning.evaluate("box => box.scrollHeight <= box.clientHeight")
    page.get_by_label("Filter").first.fill("N262A1")
    assert page.locator(".ranked tbody tr:visible").count() == 1


def test_all_is_readable_without_script(opened: Opened) -> None:
    page = opened("usual", java_script_enabled=False)
    assert page.locator("button, input").count() == 0
    page.locator("summary", has_text="Ranked rows").click()
    assert page.get_by_text("Flipper Length (mm) reads 1950").first.is_visible()


def test_dark_and_light_differ_by_the_readers_choice(opened: Opened) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = opened("usual", color_scheme=scheme)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(254, 254, 254)", "rgb(23, 23, 27)"]


def test_paper_shows_the_folds_and_no_controls(opened: Opened) -> None:
    page = opened("usual", color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(254, 254, 254)"
    assert page.locator("figure").first.is_visible()
    assert not page.get_by_role("button", name="Copy").first.is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".ranked tbody tr:visible").count() == 25
    assert page.get_by_text("On paper only the first 25").is_visible()


def clip_of(page: Any) -> str:
    return str(page.locator(".under").first.evaluate("box => getComputedStyle(box).clipPath"))


def test_the_line_between_before_and_after_moves_by_keyboard(opened: Opened) -> None:
    page = opened("real/report")
    name = denoising_examples.real().images[1].name
    slider = page.get_by_label(f"before left of the line, after right of it: {name}")
    assert slider.evaluate("input => input.type") == "range"
    assert clip_of(page) == "inset(0px 50% 0px 0px)"
    slider.focus()
    outline = "box => getComputedStyle(box).outlineStyle"
    assert page.locator(".stage").first.evaluate(outline) == "solid"
    slider.press("ArrowLeft")
    assert clip_of(page) == "inset(0px 51% 0px 0px)"
    assert slider.get_attribute("aria-valuetext") == "49 % before"
    slider.press("End")
    assert clip_of(page) == "inset(0px 0% 0px 0px)"
    slider.press("Home")
    assert clip_of(page) == "inset(0px 100% 0px 0px)"


def test_the_line_follows_the_pointer(opened: Opened) -> None:
    page = opened("real/report")
    stage = page.locator(".stage").first
    stage.scroll_into_view_if_needed()
    box = stage.bounding_box()
    page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + 0.3 * box["height"])
    assert abs(float(page.locator(".stage input").first.input_value()) - 80) <= 1


def test_before_and_after_stand_side_by_side_without_script(opened: Opened) -> None:
    page = opened("real/report", java_script_enabled=False)
    assert page.locator("input").count() == 0
    before, after = (page.locator(place).first.bounding_box() for place in (".under", ".over"))
    assert before["x"] + before["width"] <= after["x"]
    assert before["y"] == after["y"]
    assert page.locator(".under figcaption").first.inner_text() == "before"


def test_before_and_after_stand_side_by_side_on_paper(opened: Opened) -> None:
    page = opened("real/report", 700, 900)
    page.emulate_media(media="print")
    before, after = (page.locator(place).first.bounding_box() for place in (".under", ".over"))
    assert before["x"] + before["width"] <= after["x"]
    assert clip_of(page) == "none" and not page.locator(".stage input").first.is_visible()


def test_pictures_load_and_keep_their_form(opened: Opened) -> None:
    page = opened("real/report", 360, 740)
    sizes = page.locator("img").evaluate_all(
        "all => all.map(i => [i.naturalWidth / i.naturalHeight, i.clientWidth / i.clientHeight])"
    )
    assert len(sizes) > 20
    for natural, shown in sizes:
        assert shown == pytest.approx(natural, rel=0.08)


@pytest.mark.parametrize("width", [360, 1280])
def test_notes_on_a_batch_are_read_whole(opened: Opened, tmp_path: Path, width: int) -> None:
    batch = replace(denoising_examples.many(2), notes=("one of many words " * 20,))
    (tmp_path / "report.html").write_text(render_denoising(batch)["report.html"], encoding="utf-8")
    note = opened(tmp_path / "report", width).locator(".warnings .cut")
    assert note.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert note.evaluate("box => box.scrollHeight <= box.clientHeight")


def test_a_large_batch_sorts_filters_and_leads_on(opened: Opened) -> None:
    page = opened("many/report")
    rows = page.locator("table.batch tbody tr")
    page.get_by_role("button", name="removed").press("Enter")
    values = "all => all.map(r => Number(r.querySelector('[data-name=\"removed\"]').dataset.value))"
    taken = rows.evaluate_all(values)
    assert taken == sorted(taken)
    page.get_by_label("Filter").last.fill("007.png")
    assert rows.evaluate_all("all => all.filter(row => !row.hidden).length") == 1
    page.get_by_role("link", name="roll 0/007.png", exact=True).last.click()
    assert page.locator("h1").inner_text() == "roll 0/007.png"
    page.get_by_role("link", name="next").click()
    assert page.locator("h1").inner_text() == "roll 1/008.png"
    page.get_by_role("link", name="All images").click()
    assert "30 of 50 images denoised" in page.locator("h1").inner_text()


# A notebook's styles for tables and lists, which must not affect our part.
NOTEBOOK = """<!DOCTYPE html><meta charset="utf-8"><style>
body { font: 14px serif; margin: 20px; } .of-notebook h1 { margin: 3em; }
.of-notebook tbody tr:nth-child(odd) { background: rgb(1, 2, 3); }
.of-notebook td { text-align: right; padding: 2em; } .of-notebook ul:not(.x) { padding-left: 9em; }
</style><body %s><h1>mine</h1><p class="card">mine</p><div class="of-notebook">%s</div>
<table class="ranked"><tr><td>mine</td></tr></table>"""
# For each case: theme marker of the notebook, preference of the system, must our part be dark?
THEMES = {
    "jupyter light": ('data-jp-theme-light="true"', "dark", False),
    "jupyter dark": ('data-jp-theme-light="false"', "light", True),
    "vs code light": ('class="vscode-light"', "dark", False),
    "vs code dark": ('class="vscode-dark"', "light", True),
    "other light": ("", "light", False),
    "other dark": ("", "dark", True),
}
STYLES = """() => {
    const of = (place, name) => getComputedStyle(document.querySelector(place))[name];
    return [of("body > .card", "borderTopWidth"), of("body > h1", "fontSize"),
            of("body > table", "width"), of("body", "backgroundColor"), of("body", "fontFamily")];
}"""


@pytest.mark.parametrize("theme", THEMES)
def test_a_notebook_keeps_its_looks_and_lends_its_theme(
    opened: Opened, tmp_path: Path, theme: str
) -> None:
    mark, preferred, is_dark = THEMES[theme]
    part = render_in_notebook(examples.SCREENINGS["usual"]())
    styles = []
    for name, content in (("without", ""), ("with", part)):
        path = tmp_path / f"{name}.html"
        path.write_text(NOTEBOOK % (mark, content), encoding="utf-8")
        page = opened(tmp_path / name, color_scheme=preferred)
        styles.append(page.evaluate(STYLES))
    assert styles[0] == styles[1]
    ours = page.locator(".kpca-screening")
    looks = "one => [getComputedStyle(one).color, getComputedStyle(one).backgroundColor]"
    ink, paper = (
        sum(map(int, re.findall(r"\d+", text)[:3])) / 765 for text in ours.evaluate(looks)
    )
    assert (ink - paper) * (1 if is_dark else -1) > 0.7
    found = ours.locator("tbody tr:first-child, tbody td:first-child, .warnings, h1").evaluate_all(
        "all => all.map(getComputedStyle).map(s => [s.backgroundColor, s.textAlign, s.paddingLeft])"
    )
    assert len(found) >= 3
    assert {(colour, align) for colour, align, _ in found} == {("rgba(0, 0, 0, 0)", "start")}
    assert max(float(padding[:-2]) for *_, padding in found) < 15
    assert ours.locator(".card").count() == 4
    assert ours.locator(".strip .seen").first.evaluate("one => one.getBBox().width") > 5
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
