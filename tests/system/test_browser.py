"""A page is printed where there is a browser, without a network; else a note says why not."""

from __future__ import annotations

import http.server
import os
import re
import threading
from pathlib import Path

import pytest

from kpca_apps.system import browser
from kpca_apps.system.browser import print_page
from tests.conftest import CHROMIUM

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@needs_chromium
@pytest.mark.browser
def test_a_page_is_printed_alike_twice_and_asks_nobody(tmp_path: Path) -> None:
    asked: list[str] = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)

    server = http.server.HTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = tmp_path / "d é#.html"
    # A host of its own: only addresses of this machine's own number could reach the server.
    page.write_text(
        f'<p>Hello<img src="http://localhost:{server.server_port}/x.png">'
        f'<img src="http://example.invalid/y.png"></p>',
        "utf-8",
    )
    assert [print_page(page, tmp_path / name) for name in ("a.pdf", "b.pdf")] == ["", ""]
    server.shutdown()
    server.server_close()
    content = (tmp_path / "a.pdf").read_bytes()
    assert content.startswith(b"%PDF-") and re.search(rb"/Type ?/Page\b", content)
    assert content == (tmp_path / "b.pdf").read_bytes()
    assert asked == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pdf", "b.pdf", page.name]


def script(folder: Path, text: str) -> str:
    path = folder / "browser"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("exit 7", "the browser ended with code 7"),
        ("exec sleep 30", "the browser took more than 0.5 seconds"),
        (None, "neither Chromium nor Chrome is found"),
    ],
)
def test_a_browser_that_is_not_there_or_fails_is_a_note(
    text: str | None, note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = None if text is None else script(tmp_path, text)
    monkeypatch.setattr(browser, "find_browser", lambda: found)
    (tmp_path / "page.html").write_text("<p>x</p>")
    said = print_page(tmp_path / "page.html", tmp_path / "page.pdf", seconds=0.5)
    assert said.startswith("page.pdf is not written: ") and note in said
    assert not (tmp_path / "page.pdf").exists()
