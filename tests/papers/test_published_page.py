"""``reports/papers.html`` matches its command's current output, except times and rounding."""

import os
import re
from pathlib import Path

import pytest

from kpca_apps.errors import KpcaError
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.registry import all_experiments, gathered, reproduce
from kpca_apps.report.papers.page import render_gallery

TIMED = "complexity"
FOLDER = os.environ.get("KPCA_PAPERS")


def words_of(page: str, name: str) -> list[str]:
    """Return the words of an experiment's section, without drawings and rounding-dependent text."""
    section = re.search(rf'<article class="experiment" id="{name}".*?</article>', page, re.DOTALL)
    assert section, f"{name} is not on the page"
    text = re.sub(r"<svg.*?</svg>|<[^>]+>", " ", section[0], flags=re.DOTALL)
    return re.sub(r"\b\d(\.\d+)?e-(0[7-9]|1\d)\b", "rounding", text).split()


@pytest.mark.release
@pytest.mark.parametrize("name", sorted(all_experiments().keys() - {TIMED}))
def test_the_published_page_is_current(name: str, repository: Path) -> None:
    experiment, data = all_experiments()[name], PaperData(FOLDER and Path(FOLDER))
    try:
        for needed in experiment.data:
            data.require(needed)
    except KpcaError as error:
        pytest.skip(str(error))
    found = reproduce(experiment, data)
    assert all(claim.why or claim.verdict == "reproduced" for claim in found.outcome.claims)
    page = render_gallery(gathered([found]))
    published = (repository / "reports" / "papers.html").read_text(encoding="utf-8")
    assert words_of(published, name) == words_of(page, name), "run reports/make.py"


def test_the_package_holds_code_and_templates_only(repository: Path) -> None:
    package = repository / "kpca_apps"
    files = [path for path in package.rglob("*") if path.is_file()]
    # Compiled files of Python, numba and jinja are excluded from the wheel.
    kinds = {path.suffix for path in files if path.parent.name != "__pycache__"}
    # The YAML file is napari's plugin manifest, the text file is source that exported pandera
    # schemas include, and the tables hold the papers' figures, not data.
    assert kinds == {".py", ".j2", ".css", ".js", ".typed", ".yaml", ".csv", ".txt"}
    tables = {path.parent for path in files if path.suffix == ".csv"}
    assert tables == {package / "papers" / "tables"}
