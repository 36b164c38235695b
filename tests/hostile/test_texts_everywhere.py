"""Hostile texts do no harm in any output, whichever input they come from.

Each place gets all texts at once, by the commands that read it (`everywhere.py`); every file is
checked by its kind (`outputs.py`), and the pages are opened, used and saved in browsers.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.everywhere import PLACES, reached, visited
from tests.hostile.outputs import faults_of, hidden_in
from tests.hostile.texts import TEXTS
from tests.report.watching import COMPLAINTS, WATCH, WITH_FIREFOX, watched

pytestmark = [pytest.mark.release, *WITH_FIREFOX]

Opened = Callable[[Path], Any]
MIN_TEXTS = 60  # minimum number of texts that must appear in an output folder
MOST_PAGES = 40  # maximum number of pages to open per output folder
SHOWN = """() => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
    const titles = [...document.querySelectorAll("*")].flatMap((one) =>
        ["title", "aria-label", "alt", "placeholder"].map((name) => one.getAttribute(name) ?? ""));
    return [document.title, document.body.innerText, ...titles].join(" ");
}"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return an empty dictionary; `place_of` adds the output folder of each entry of `PLACES`."""
    return {}


@pytest.fixture(scope="module")
def place_of(
    folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return a function that puts all texts into, say, "cells" and returns the output folder."""

    def out_of(place: str) -> Path:
        if place not in folders:
            folder = tmp_path_factory.mktemp("hostile") / place.replace(" ", "-")
            with visited(place, folder) as out:
                folders[place] = out
        return folders[place]

    return out_of


def pages(out: Path) -> list[Path]:
    pages_found = sorted(out.rglob("*.html"))
    return pages_found[:: max(1, -(-len(pages_found) // MOST_PAGES))]


@pytest.mark.parametrize("place", PLACES)
def test_nothing_runs_asks_hides_or_steers(
    place: str, place_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KPCA_DEBUG", raising=False)
    out = place_of(place)
    assert [*faults_of(out)] == []
    assert reached(out) >= MIN_TEXTS


@pytest.fixture
def opened(browser: Any) -> Iterator[Opened]:
    """Open pages in Chromium; fail at the end if one ran code, logged errors or made requests."""
    contexts, complaints = [], list[str]()

    def open_page(path: Path) -> Any:
        context = browser.new_context(accept_downloads=True)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("popup", lambda other: complaints.append(f"opens {other.url}"))
        page.on("request", lambda request: complaints.append(request.url))
        page.goto(path.as_uri())
        assert complaints.pop(0) == path.as_uri()
        contexts.append(context)
        return page

    yield open_page
    for context in contexts:
        assert all(page.evaluate("window.pwned") is None for page in context.pages)
        context.close()
    assert [url for url in complaints if not url.startswith("blob:")] == []


@pytest.mark.browser
@pytest.mark.parametrize("place", PLACES)
def test_pages_show_in_chromium_what_texts_are(
    place: str, place_of: Callable[[str], Path], opened: Opened
) -> None:
    for path in pages(place_of(place)):
        page = opened(path)
        assert hidden_in(page.evaluate(SHOWN)) == [], path
        assert page.evaluate("window.pwned") is None, path
        page.context.close() if len(page.context.pages) > 1 else None


@pytest.mark.browser
def test_a_list_is_worked_through_with_hostile_notes(
    place_of: Callable[[str], Path], opened: Opened, tmp_path: Path
) -> None:
    page = opened(place_of("cells") / "screened/report.html")
    page.keyboard.press("j")
    notes = [text for text in TEXTS if not {*"\r\n"} & {*text}][::2]
    for place, note in enumerate(notes):
        for key in ("fw"[place % 2], "c"):
            page.keyboard.press(key)
        page.locator("tr[aria-current] + tr input").fill(note[:300])
        page.keyboard.press("Escape")
        page.keyboard.press("j")
    assert hidden_in(page.evaluate(SHOWN)) == []
    for name in ("Save page with marks", "to-fix.csv", "accept.csv"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        download.value.save_as(tmp_path / download.value.suggested_filename)
    assert [*faults_of(tmp_path)] == []
    assert hidden_in(opened(tmp_path / "report-marked.html").evaluate(SHOWN)) == []


@pytest.mark.browser
@pytest.mark.parametrize("place", PLACES)
def test_pages_run_and_ask_nothing_in_firefox(
    place: str, place_of: Callable[[str], Path], firefox: Any
) -> None:
    for path in pages(place_of(place))[::4]:
        watched(firefox, WATCH)
        firefox.navigate(path.as_uri())
        assert hidden_in(firefox.execute_script(f"return ({SHOWN})()")) == [], path
        assert firefox.execute_script("return window.wrappedJSObject.pwned === undefined"), path
        assert watched(firefox, COMPLAINTS) == [], path
