"""Work through a report's list in Firefox, driven by Marionette, as in Chromium."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.report import worked
from tests.report.watching import COMPLAINTS, WATCH, WITH_FIREFOX, watched

pytestmark = [pytest.mark.browser, pytest.mark.release, *WITH_FIREFOX]

SECONDS = 30.0


def type_keys(firefox: Any, text: str) -> None:
    keys = firefox.actions.sequence("key", "keyboard")
    for key in ["\ue00c"] if text == "Escape" else text:
        keys.key_down(key).key_up(key)
    keys.perform()


def text_of(firefox: Any, selector: str) -> str:
    return str(firefox.execute_script(f"return document.querySelector({selector!r}).innerText"))


def saved(firefox: Any, button: str, downloads: Path) -> Path:
    """Press a button of the bar, and wait for the file it saves."""
    before = {*downloads.iterdir()}
    for element in firefox.find_elements("css selector", ".workbar button"):
        if element.text == button:
            element.click()
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        new = {*downloads.iterdir()} - before
        if len(new) == 1 and not any(path.suffix == ".part" for path in new):
            (path,) = new
            if path.stat().st_size:
                return path
        time.sleep(0.05)
    raise AssertionError(f"{button} made no file: {sorted(downloads.iterdir())}")


def test_forbidden_behaviour_of_pages_is_detected(firefox: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(
        "<!DOCTYPE html><meta http-equiv='Content-Security-Policy' content=\"style-src 'none'\">"
        "<p style='color: red'>x</p><img src='http://127.0.0.1:39999/x.png'>"
        "<script>setTimeout(() => { throw new Error('slip'); });</script>"
    )
    watched(firefox, WATCH)
    firefox.navigate(path.as_uri())
    requested, *errors = watched(firefox, COMPLAINTS)
    assert requested == "http://127.0.0.1:39999/x.png"
    assert any("slip" in error for error in errors)
    assert any("Content-Security-Policy" in error for error in errors)


def test_marks_made_in_firefox_are_saved_reopened_and_applied(
    firefox: Any, downloads: Path, tmp_path: Path
) -> None:
    frame = worked.table()
    first = worked.screened(frame)
    path = tmp_path / "report.html"
    first.save_report(path)
    watched(firefox, WATCH)
    firefox.navigate(path.as_uri())
    for key in worked.KEYS:
        type_keys(firefox, key)
    assert text_of(firefox, ".workbar").startswith(worked.TALLY)
    again = saved(firefox, "Save page with marks", downloads)
    worked.check_saved(first, path, again)
    firefox.navigate(again.as_uri())
    marks = "return [...document.querySelectorAll('tr[data-row]')].map(r => r.dataset.mark ?? '')"
    assert firefox.execute_script(marks)[:4] == ["fine", "known", "wrong", ""]
    assert "not saved" not in text_of(firefox, ".workbar")
    accepted, to_fix = (saved(firefox, name, downloads) for name in ("accept.csv", "to-fix.csv"))
    worked.check_screened_again(frame, first, again, accepted)
    worked.check_lists(first, accepted, to_fix)
    worked.check_nothing_hidden(again, accepted, to_fix, path)
    assert watched(firefox, COMPLAINTS) == []
