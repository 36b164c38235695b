"""The built site has a place for every public name, method and result."""

import dataclasses
import inspect
import zlib
from pathlib import Path

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


def test_every_field_of_a_result_is_described(anchors: set[str]) -> None:
    asked = {
        f"kpca_apps.novelty.result.{name}.{field.name}"
        for name in RESULTS
        for field in dataclasses.fields(getattr(result, name))
    }
    assert asked - anchors == set()
