"""Large tables on the command line: the same results from all schedulers, and clear errors."""

import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kpca_apps.cli.console import Console, row_progress
from kpca_apps.novelty.columns.parts import Execution
from tests.cli.conftest import Run, Terminal, assert_refused

WORDS = ("--exclude", "kind", "--explain", 3)


@pytest.mark.usefixtures("small_limit")
def test_fit_score_explain_and_plan_in_parts(kpca: Run, folder: Path) -> None:
    assert kpca("fit", "clean.csv", "--model", "m.kpca", "--id", "name").code == 0
    assert kpca("score", "m.kpca", "birds.csv", "--jobs", 2, "--out", "scored").code == 0
    explained = kpca("explain", "m.kpca", "birds.csv", "--row", "bird 0058")
    assert explained.out.startswith("Row 59 (bird 0058), line 60: ")
    planned = kpca("screen", "birds.csv", "--dry-run")
    assert (planned.code, "wing" in planned.out) == (0, True)


@pytest.mark.usefixtures("small_limit")
def test_a_bar_is_shown_on_a_terminal_only_and_leaves_nothing(
    kpca: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    done = kpca("screen", "birds.csv", *WORDS)
    assert (done.code, done.out.count("\n")) == (0, 1)


def test_a_bar_shows_rows_per_second_in_two_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with row_progress(Console(), "Scoring rows", 1_000_000) as advance:
        for _ in range(3):
            advance(83_456)
            time.sleep(0.01)
    assert re.search(r"Scoring rows.* [1-9][,0-9][0-9]?[,0]* rows/s", terminal.getvalue())
    assert "0:00:" in terminal.getvalue()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--jobs", 2, "--scheduler", "tcp://127.0.0.1:9"), 2, "has its own: leave one"),
        (("--work-dir", "lost", "--workers", "dask"), 3, "lost: no such folder; make it"),
    ],
)
def test_workers_that_cannot_be_are_refused_in_one_line(
    kpca: Run, folder: Path, words: tuple[object, ...], code: int, message: str
) -> None:
    for command in (("screen", "birds.csv"), ("fit", "clean.csv", "--model", "m")):
        assert_refused(kpca(*command, *words), code, message)
    assert {p.name for p in folder.iterdir()} == {"birds.csv", "clean.csv"}


COMMANDS = {
    "screen": ("screen", "birds.csv"),
    "reference": ("screen", "birds.csv", "--reference", "clean.csv"),
    "plan": ("screen", "birds.csv", "--dry-run"),
    "fit": ("fit", "clean.csv", "--model", "new.kpca"),
    "score": ("score", "m.kpca", "birds.csv"),
    "explain": ("explain", "m.kpca", "birds.csv", "--row", 3),
    "compare": ("compare", "birds.csv"),
}
ROW_OPTIONS = ("--label", "--id", "--hide")
COLUMN_OPTIONS = ("--exclude", "--categorical", "--numeric")
CASES = [
    *((command, option) for command in ("screen", "reference", "plan", "fit") for option in
      (*ROW_OPTIONS, *COLUMN_OPTIONS)),
    *(("score", option) for option in ROW_OPTIONS),
    *(("explain", option) for option in ("--id", "--hide")),
    *(("compare", option) for option in (*ROW_OPTIONS, *COLUMN_OPTIONS)),
]  # fmt: skip


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record each pass over the rows of tables in parts."""
    done: list[str] = []
    over = Execution.over

    def noted_over(self: Execution, what: str, *rest: Any) -> Any:
        done.append(what)
        return over(self, what, *rest)

    monkeypatch.setattr(Execution, "over", noted_over)
    return done


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize(("command", "option"), CASES)
def test_a_wrong_column_name_is_refused_before_any_pass(
    kpca: Run, folder: Path, passes: list[str], command: str, option: str
) -> None:
    if command in ("score", "explain"):
        assert kpca("fit", "clean.csv", "--model", "m.kpca").code == 0
        assert passes
        passes.clear()
    needed = ("--label", "kind") if command == "compare" and option != "--label" else ()
    refused = kpca(*COMMANDS[command], option, "wnig", *needed)
    assert (refused.code, refused.out) == (2, "")
    # The name after --hide may be that of a field inside a record that a cell holds, so the command
    # first searches the cells for records.
    assert not passes or (option == "--hide" and passes[0] == "Looking for records")
    assert f'.csv: {option} names a column "wnig" that the table does not have.' in refused.heard
    assert 'Did you mean "wing"?' in refused.heard


@pytest.mark.usefixtures("small_limit")
def test_labels_that_the_model_learned_from_are_refused_before_any_pass(
    kpca: Run, passes: list[str]
) -> None:
    assert kpca("fit", "clean.csv", "--model", "m.kpca").code == 0
    passes.clear()
    refused = kpca("score", "m.kpca", "birds.csv", "--label", "colour")
    assert (refused.code, passes) == (2, [])
    assert "a column the model itself uses" in refused.heard
