import base64
import hashlib
import json
import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser

from kpca_apps.denoise.result import DenoisingResult
from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.report.denoising.page import denoising_pages
from kpca_apps.report.drawing import Drawing, house_style
from kpca_apps.report.novelty.figures import ScreeningDrawings
from kpca_apps.report.novelty.page import render_screening
from tests.report import examples

VOID = {"meta", "link", "br", "img", "input", "hr"}


@cache
def rendered(name: str) -> str:
    """Render an example once for all tests, except those of reproducibility."""
    return render_screening(examples.SCREENINGS[name]())


def render_denoising(result: DenoisingResult) -> dict[str, str]:
    """Render all pages of a batch by name."""
    return dict(denoising_pages(result))


def screening_drawings(result: ScreeningResult) -> dict[str, Drawing]:
    """Draw every figure of a screening by name."""
    all_drawn = ScreeningDrawings.of(result)
    first = [all_drawn.plane] if all_drawn.plane else []
    folded = [drawing for *_, drawings in all_drawn.folds for drawing in drawings]
    return {drawing.name: drawing for drawing in (*first, *folded)}


def drawn(draw: Callable[[ScreeningResult], Drawing | None], result: ScreeningResult) -> Drawing:
    """Draw one figure of a screening in the report's style."""
    with house_style():
        drawing = draw(result)
    assert drawing is not None
    return drawing


class Page(HTMLParser):
    """Collects a page's content for tests, and checks that every tag is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.csp = ""
        self.scripts: list[str] = []
        self.blocks: dict[str, str] = {}  # data blocks by id
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)
        values = self.elements[-1][1]
        if values.get("http-equiv") == "Content-Security-Policy":
            self.csp = values["content"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            kind = self.elements[-1][1]
            if "type" in kind:
                assert kind["type"] == "application/json"
                self.blocks[kind["id"]] = data
            else:
                self.scripts.append(data)
        elif not self.open or self.open[-1] != "style":
            self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        """Return the attributes of every element of a kind."""
        return [values for name, values in self.elements if name == tag]

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        self.tags.append(tag)
        self.attributes += values.items()
        self.elements.append((tag, values))


def check_sound(html: str) -> Page:
    """Check any page: content security policy, no external addresses, no duplicate ids."""
    page = Page(html)
    (script,) = page.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert page.csp == (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert page.tags.count("h1") == page.tags.count("main") == 1
    assert page.tags.count("script") == 1 + len(page.blocks)
    for text in page.blocks.values():
        json.loads(text)
    assert not {"iframe", "form", "link", "object", "embed", "base"} & set(page.tags)
    assert not [key for key, _ in page.attributes if key.startswith("on")]
    assert not re.search(r"(?i)(https?:)?//[a-z0-9.-]+\.[a-z]{2,}", html), "an address outside"
    assert not re.search(r"(?i)\burl\((?!#)|@import", html)
    ids = [value for key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    for picture in page.all("img"):
        assert picture["src"].startswith("data:image/") and "alt" in picture
        assert int(picture["width"]) > 0 and int(picture["height"]) > 0
    for link in page.all("a"):
        assert re.match(r"#[\w-]+$|\.\./|details/\d{4}\.html$|[\w.%-]+/report\.html$", link["href"])
        if link["href"].startswith("#"):
            assert link["href"][1:] in ids
    return page


def check_isolated(html: str) -> None:
    """Check that right-to-left overrides occur only inside elements that isolate them."""
    data = r'<script type="application/json".*?</script>'  # the script puts this JSON into <bdi>
    rest = re.sub(rf"(?s){data}|<(title|code|dt)>.*?</\1>|<span>.*?</span>", "", html)
    for match in re.finditer("\u202e", rest):
        before = rest[: match.start()]
        assert any(
            before.rfind(opened) > before.rfind(closed)
            for opened, closed in (("<", ">"), ("<svg", "</svg>"), ("<bdi", "</bdi>"))
        )
