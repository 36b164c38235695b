"""A report made with --to-send contains no whole rows."""

from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Run
from tests.report.pages import Page, check_sound

MARKED = "a remark that stands in no reason"


@pytest.mark.parametrize("command", ["screen", "score"])
def test_the_page_to_send_holds_no_whole_row(command: str, kpca: Run) -> None:
    # A constant column is never a reason, so it appears only in whole rows.
    pl.read_csv("birds.csv").with_columns(remark=pl.lit(MARKED)).write_csv("birds.csv")
    assert kpca("fit", "birds.csv", "--model", "m.kpca").code == 0
    model = ("m.kpca",) if command == "score" else ()
    done = kpca(command, *model, "birds.csv", "--out", "out", "--to-send")
    assert done.code == 0
    assert "to-send holds a page and its figures" in done.heard
    assert MARKED in Path("out/report.html").read_text("utf-8")
    written = [path for path in Path("out/to-send").rglob("*") if path.is_file()]
    assert {path.suffix for path in written} <= {".html", ".png"}
    html = Path("out/to-send/report.html").read_text("utf-8")
    assert MARKED not in html
    page = check_sound(html)
    assert page.blocks == {} and "Made for sharing" in page.text
    assert "beside this report" not in page.text and "Next steps" not in page.text
    whole = Page(Path("out/report.html").read_text("utf-8"))
    assert len(page.all("tr")) == len(whole.all("tr"))
