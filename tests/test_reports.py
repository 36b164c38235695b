"""The sample reports in ``reports/`` match what their commands write now, except for numbers."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

LARGEST = 400_000  # bytes; small enough to open at once and to send by mail


@pytest.fixture(scope="module")
def make(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("make", repository / "reports" / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words_of(page: str) -> list[str]:
    """Return the words of a page without drawings, scripts, styles, numbers and paths."""
    text = re.sub(r"<(svg|script|style).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    return [word for word in text.split() if not re.search(r"[\d/]", word)]


@pytest.mark.release
@pytest.mark.parametrize("name", ["penguins_faults", "noisy_text"])
def test_a_sample_report_is_of_this_version(
    name: str, make: ModuleType, repository: Path, tmp_path: Path
) -> None:
    published = (repository / "reports" / f"{name}.html").read_text(encoding="utf-8")
    assert len(published.encode()) < LARGEST
    page = make.run(name, tmp_path).read_text(encoding="utf-8")
    assert words_of(published) == words_of(page), "run reports/make.py"
