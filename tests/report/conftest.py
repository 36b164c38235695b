from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open pages; fail if a page reports an error or requests anything outside its folder."""
    pages, complaints, known = [], list[str](), {"blob:", "data:image/"}

    def open_page(html: str | Path, width: int = 1280, height: int = 900, **options: Any) -> Any:
        path = tmp_path / "report.html" if isinstance(html, str) else html
        if isinstance(html, str):
            path.write_text(html, encoding="utf-8")
        viewport = {"width": width, "height": height}
        page = browser.new_page(viewport=viewport, accept_downloads=True, **options)
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: complaints.append(request.url))
        known.add(path.parent.as_uri())
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert [c[:200] for c in complaints if not c.startswith((*known,))] == []
