"""The built site has a place for every public name, method and result."""

import dataclasses
import inspect
import zlib
from pathlib import Path
from typing import Any

import pytest

import kpca_apps
from kpca_apps.novelty import result

BUILT = Path(__file__).parents[1] / "docs" / "_build" / "objects.inv"
# What a screening holds that is more than a number.
RESULTS = ("RankedRow", "Reason", "OddCell", "ColumnProfile", "ThresholdInfo", "DuplicateRows")


@pytest.fixture(scope="module")
def anchors() -> set[str]:
    """Full names of the site's Python objects."""
    if not BUILT.exists():
        pytest.skip("the site is not built: sphinx-build docs docs/_build")
    # Sphinx's inventory, version 2: four lines, then compressed lines "name domain:role ...".
    lines = zlib.decompress(BUILT.read_bytes().split(b"\n", 4)[4]).decode().splitlines()
    return {line.split()[0] for line in lines if line.split()[1].startswith("py:")}


def test_every_public_name_and_method_has_a_place(anchors: set[str]) -> None:
    asked = set()
    for name in {*kpca_apps.__all__} - {"__version__"}:
        found = getattr(kpca_apps, name)
        asked.add(f"kpca_apps.{name}")
        if inspect.isclass(found) and not issubclass(found, Exception):
            asked |= {
                f"kpca_apps.{name}.{method}"
                for method, value in vars(found).items()
                if inspect.isfunction(value) and not method.startswith("_")
            }
    assert asked - anchors == set()


CUT = """Array.from(document.querySelectorAll(
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
def test_no_title_and_no_formula_is_cut(browser: Any, anchors: set[str], width: int) -> None:
    pages = [
        page
        for page in sorted(BUILT.parent.rglob("*.html"))
        if not page.relative_to(BUILT.parent).parts[0].startswith("_")
    ]
    shown = browser.new_page(viewport={"width": width, "height": 800})
    cut = {}
    for page in pages:
        shown.goto(page.as_uri())
        cut[page.stem] = shown.evaluate(CUT)
    shown.close()
    assert len(pages) > 50
    assert {name: found for name, found in cut.items() if found} == {}


def test_every_field_of_a_result_is_described(anchors: set[str]) -> None:
    asked = {
        f"kpca_apps.novelty.result.{name}.{field.name}"
        for name in RESULTS
        for field in dataclasses.fields(getattr(result, name))
    }
    assert asked - anchors == set()
