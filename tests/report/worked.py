"""Mark a list by keyboard in any browser, and check the result."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kpca_apps import screen_table
from kpca_apps.novelty.accepted import read_marks
from kpca_apps.novelty.result import ScreeningResult

HOSTILE = "</script><script>alert(1)</script>"
SECRETS = ("quince", "medlar")
NOTE = f"=1+1 {HOSTILE}"
PRESSED = {*"jkfnwuc", "Escape"}
# Mark the first row fine, the second known, with a note, and the third wrong after an undo.
KEYS = ("j", "f", "j", "n", "c", NOTE, "Escape", "j", "f", "u", "w")
TALLY = "1 wrong, 1 fine, 1 known, not saved"
POLICY = 'http-equiv="Content-Security-Policy"'


def table() -> pl.DataFrame:
    """Make a table whose first rows are odd, with hostile and hidden columns."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=200)
    columns = {
        "name": [f"n{i:03d}" for i in range(200)],
        "size": x.round(2),
        HOSTILE: (2 * x + 0.1 * rng.normal(size=200)).round(2),
        "=secret": [SECRETS[i % 2] for i in range(200)],
    }
    frame = pl.DataFrame(columns)
    return frame.with_columns(pl.Series("size", np.where(np.arange(200) < 4, 9.0, x).round(2)))


def screened(frame: pl.DataFrame, **judged: Path) -> ScreeningResult:
    return screen_table(frame, count=4, id="name", hide="=secret", **judged)


def saved(page: Any, button: str, folder: Path) -> Path:
    """Save a file with a button of a page in Chromium."""
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    path = folder / str(download.value.suggested_filename)
    download.value.save_as(path)
    return path


def names(rows: Any) -> list[str]:
    return [str(row.id) for row in rows]


def check_saved(first: ScreeningResult, path: Path, again: Path) -> None:
    """Check a page saved with marks: the command reads them, and everything else is unchanged."""
    assert again.name == "report-marked.html"
    expected = zip(first.ranked, ("fine", "known", "wrong"), ("", NOTE, ""), strict=False)
    assert {(m.id, m.mark, m.note) for m in read_marks(again).marks} == {
        (row.id, mark, note) for row, mark, note in expected
    }
    before, after = (file.read_text("utf-8").splitlines() for file in (path, again))
    policies = [line for line in before if POLICY in line]
    assert len(policies) == 1 and policies == [line for line in after if POLICY in line]


def check_screened_again(
    frame: pl.DataFrame, first: ScreeningResult, again: Path, accepted: Path
) -> None:
    """Check that rows marked fine or known are not flagged again, but the wrong row is listed."""
    top = names(first.ranked[:3])
    for judged in ({"marks": again}, {"accept": accepted}):
        result = screened(frame, **judged)
        assert not {*top[:2]} & {*names(result.lists.flagged)}
        assert top[2] in names(result.ranked[:-2])
    assert names(screened(frame, marks=again).ranked)[0] == top[2]


def check_lists(first: ScreeningResult, accepted: Path, to_fix: Path) -> None:
    """Check the list of rows to accept in the next run, and the list of cells to correct."""
    with to_fix.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["id"] for row in rows} == {str(first.ranked[2].id)}
    assert {row["column"] for row in rows} <= {"size", HOSTILE, "(hidden)", "'=secret"}
    with accepted.open(encoding="utf-8-sig", newline="") as file:
        assert f"'{NOTE}" in [row["note"] for row in csv.DictReader(file)]


def check_nothing_hidden(*written: Path) -> None:
    for path in written:
        assert not any(secret in path.read_text("utf-8") for secret in SECRETS)
