"""The site's search finds every command, option, public name, method and result field."""

import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import kpca_apps
from kpca_apps.novelty import result
from tests.cli.tree import each_command

SITE = Path(__file__).parents[1] / "docs" / "_build"
INDEX = SITE / "searchindex.js"
# Result classes within a screening; the index lists their fields, too.
RESULTS = ("RankedRow", "Reason", "OddCell", "ColumnProfile", "ThresholdInfo", "DuplicateRows")


@pytest.fixture(scope="module")
def index() -> dict[str, Any]:
    if not INDEX.exists():
        pytest.skip("the site is not built: sphinx-build docs docs/_build")
    text = INDEX.read_text(encoding="utf-8")
    return dict(json.loads(text.removeprefix("Search.setIndex(").removesuffix(")")))


@pytest.fixture(scope="module")
def indexed(index: dict[str, Any]) -> set[str]:
    """Return the full names in the index: Python names, and options after their command."""
    entries = index["objects"].items()
    return {f"{prefix}.{entry[-1]}".lstrip(".") for prefix, some in entries for entry in some}


def test_every_command_and_option_is_found(index: dict[str, Any], indexed: set[str]) -> None:
    commands = {f"kpca {words}": command for words, command in each_command()}
    expected = {
        f"{title.replace(' ', '-')}.{flag}"
        for title, command in commands.items()
        for option in command.params
        if option.param_type_name == "option"
        for flag in (*option.opts, *option.secondary_opts)
    }
    assert len(expected) > 200
    assert expected - indexed == set()
    assert {*commands} - {*index["alltitles"]} == set()


def test_every_public_name_and_method_is_found(indexed: set[str]) -> None:
    expected = set()
    for name in {*kpca_apps.__all__} - {"__version__"}:
        public = getattr(kpca_apps, name)
        expected.add(f"kpca_apps.{name}")
        if inspect.isclass(public) and not issubclass(public, Exception):
            expected |= {
                f"kpca_apps.{name}.{method}"
                for method, value in vars(public).items()
                # A field's default may be a function with a private name.
                if inspect.isfunction(value) and not value.__name__.startswith("_")
            }
    assert expected - indexed == set()


TRUNCATED = """Array.from(document.querySelectorAll(
  '.bd-article :is(h1, h2, h3, dt, p, math, .formula), .bd-breadcrumbs *, .prev-next-area a'
)).filter(one => {
  const style = getComputedStyle(one), place = one.getBoundingClientRect();
  const scrolls = one.closest('table, pre, .highlight, .output_html');
  return place.width && !scrolls && (
    one.scrollWidth > one.clientWidth + 1 && style.overflowX !== 'visible'
    || place.right > document.documentElement.clientWidth + 1);
}).map(one => one.textContent.trim().slice(0, 60))"""


@pytest.mark.browser
@pytest.mark.release
@pytest.mark.parametrize("width", [390, 1280])
def test_no_title_and_no_formula_is_cut(browser: Any, indexed: set[str], width: int) -> None:
    pages = [
        page
        for page in sorted(SITE.rglob("*.html"))
        if not page.relative_to(SITE).parts[0].startswith("_")
    ]
    shown = browser.new_page(viewport={"width": width, "height": 800})
    cut = {}
    for page in pages:
        shown.goto(page.as_uri())
        cut[page.stem] = shown.evaluate(TRUNCATED)
    shown.close()
    assert len(pages) > 50
    assert {name: texts for name, texts in cut.items() if texts} == {}


def test_every_field_of_a_result_is_found(indexed: set[str]) -> None:
    expected = {
        f"kpca_apps.novelty.result.{name}.{field.name}"
        for name in RESULTS
        for field in dataclasses.fields(getattr(result, name))
    }
    assert expected - indexed == set()
