"""What a run of kpca novelty writes to be sent on: a PDF, and a page without whole rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from kpca_apps.system import browser
from tests.cli.conftest import Run
from tests.report.pages import Page, check_sound

MARKED = "a remark that stands in no reason"


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Pages that are printed; each to a file that says so."""
    pages: list[str] = []

    def print_page(page: Path, pdf: Path) -> str:
        assert page.is_file()
        pages.append(page.relative_to(page.parents[1]).as_posix())
        pdf.write_bytes(b"%PDF-")
        return ""

    monkeypatch.setattr(browser, "print_page", print_page)
    return pages


@pytest.mark.parametrize("command", ["screen", "score"])
def test_what_is_to_send_holds_no_whole_row(command: str, kpca: Run, printed: list[str]) -> None:
    # A constant is no reason, so it is only in whole rows.
    pl.read_csv("birds.csv").with_columns(remark=pl.lit(MARKED)).write_csv("birds.csv")
    assert kpca("fit", "birds.csv", "--model", "m.kpca").code == 0
    model = ("m.kpca",) if command == "score" else ()
    done = kpca(command, *model, "birds.csv", "--out", "out", "--to-send", "--pdf")
    assert done.code == 0
    assert "to-send holds a page and its figures" in " ".join(done.err.split())
    assert MARKED in Path("out/report.html").read_text("utf-8")
    written = [path for path in Path("out/to-send").rglob("*") if path.is_file()]
    assert {path.suffix for path in written} <= {".html", ".pdf", ".png"}
    html = Path("out/to-send/report.html").read_text("utf-8")
    assert MARKED not in html
    page = check_sound(html)
    assert page.blocks == {}
    assert "Made to be sent on" in page.text
    assert "beside this report" not in page.text and "What to do next" not in page.text
    whole = Page(Path("out/report.html").read_text("utf-8"))
    assert len(page.all("tr")) == len(whole.all("tr"))
    assert [one.rpartition("/")[2] for one in printed] == ["report.html"] * 2
    assert Path("out/to-send/report.pdf").is_file() and Path("out/report.pdf").is_file()


def test_a_run_without_a_browser_is_done_and_says_so(
    kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "find_browser", lambda: None)
    words = ("birds.csv", "--pdf")
    done = kpca("screen", *words)
    assert done.code == 0
    said = " ".join(done.err.split())
    assert "Note: report.pdf is not written: neither Chromium nor Chrome is found" in said
    assert not Path("kpca-novelty-birds/report.pdf").exists()


def test_comparisons_are_printed_as_well(kpca: Run, printed: list[str]) -> None:
    label = ("--label", "kind", "--positive", "odd")
    assert kpca("compare", "birds.csv", *label, "--out", "compared", "--pdf").code == 0
    for name in ("one", "two"):
        assert kpca("screen", "birds.csv", "--out", name).code == 0
    assert kpca("diff", "one", "two", "--out", "diff", "--pdf").code == 0
    for name in ("compared", "diff"):
        assert Path(name, "report.pdf").read_bytes() == b"%PDF-"
    assert len(printed) == 2
