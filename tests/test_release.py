"""Releases state their version, the origin of their files and the platforms tested."""

import re
import tomllib
from pathlib import Path

import pytest

from kpca_apps import __version__


def test_the_version_is_the_same_wherever_it_stands(repository: Path) -> None:
    citation = (repository / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
    changelog = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(.+?)\]", changelog, flags=re.MULTILINE)[0] == __version__


@pytest.mark.parametrize("folder", ["datasets", "tests/oracles"])
def test_the_notes_name_every_file_that_came_from_elsewhere(repository: Path, folder: str) -> None:
    notes = (repository / folder / "README.md").read_text(encoding="utf-8")
    files = [
        path for path in (repository / folder).rglob("*.*") if path.suffix not in {".pyc", ".md"}
    ]
    assert len(files) > 5
    assert [path.name for path in files if f"`{path.stem}" not in notes] == []


def test_the_documented_platforms_are_those_declared(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pythons = re.findall(r":: (3\.\d+)", "\n".join(project["classifiers"]))
    page = (repository / "docs/reference/versions.md").read_text(encoding="utf-8")
    assert f"| Python | {', '.join(pythons)} |" in page
    assert project["requires-python"] == f">={pythons[0]}"
