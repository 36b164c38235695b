import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kpca_apps.cli.console import Console, say_error, say_line
from kpca_apps.cli.novelty.lines import odd_cell_lines, summary_lines
from kpca_apps.novelty.result import OddCell
from kpca_apps.novelty.run import screen
from kpca_apps.tables.frames import table_from_frame
from tests.cli.conftest import Run
from tests.novelty.tables import changed, frame_of

HOSTILE = "\x1b[31mred\x07\nnew\u202eline"


def test_an_error_is_one_line_whatever_it_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    say_error(f"file {HOSTILE} " + "x" * 5000)
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1 and "\x1b" not in stderr and len(stderr) < 2100


def test_empty_columns_are_dropped_and_scores_distinguished() -> None:
    frame = frame_of(40, odd=2)
    result = screen(table_from_frame(frame.drop("name")))[0]
    head = next(line for line in summary_lines(result) if line.startswith("rank"))
    assert head.split()[:4] == ["rank", "flagged", "row", "how"]
    named = summary_lines(screen(table_from_frame(frame))[0])
    assert "id" in next(line for line in named if line.startswith("rank")).split()
    top = [replace(row, score=1.0 + 1e-7 * row.rank) for row in result.ranked]
    lines = summary_lines(replace(result, ranked=tuple(top)))
    lines = lines[lines[0].startswith("The oddest") :]
    n_kinds = min(len(result.oddest_of_each_kind), 5)
    assert len({line.split()[-1] for line in lines[1::2]}) == n_kinds
    assert lines[2].split()[0] == f"{top[0].reasons[0].column}:"


def test_ranks_that_skip_some_are_announced() -> None:
    result = screen(table_from_frame(frame_of(40, odd=2)))[0]
    assert summary_lines(replace(result, ranked=result.ranked[:1]))[0].startswith("rank")
    head, titles, *_ = summary_lines(replace(result, ranked=result.ranked[1:2]))
    assert head == "The oddest row of each kind of reason:"
    assert titles.startswith("rank")


def test_hints_are_printed_below_the_reason() -> None:
    result = screen(table_from_frame(frame_of(40, odd=2)))[0]
    hint = '"bill" fits if divided by 10, ' * 4
    first = replace(result.oddest_of_each_kind[0], hints=(hint,))
    lines = summary_lines(replace(result, ranked=(first, *result.ranked[1:])))
    below = [line for line in lines if line.startswith(" " * 6)][1:3]
    assert " ".join(" ".join(below).split()) == hint.strip()
    assert max(map(len, below)) <= 80


def test_a_short_value_leaves_its_room_to_the_other() -> None:
    result = screen(table_from_frame(frame_of(40, odd=2)))[0]
    row = result.oddest_of_each_kind[0]
    for seen, expected, shown in (
        ("2009-11-31 (not a date)", "2009-11-15", "2009-11-31 (not a date), expected 2009-11-15"),
        ("a" * 50, "b" * 50, f"{'a' * 17}..., expected {'b' * 17}..."),
    ):
        reason = replace(row.reasons[0], seen=seen, expected=expected, together=())
        only = replace(row, reasons=(reason,), hints=())
        lines = summary_lines(replace(result, ranked=(only, *result.ranked[1:])))
        assert f"      {reason.column}: {shown}" in lines


def test_odd_cells_are_listed_with_suggestions() -> None:
    result = screen(table_from_frame(frame_of(40)))[0]
    cell = OddCell("bill", "sign", "-4\x1b", "Why.", "4", row=3, line=4, n_cells=3)
    bare = OddCell("wing", "zero", "0", "Why.", "", row=9, line=10)
    shown = changed(result, odd_cells=(cell, bare), n_odd_cells=4)
    head, *rows = odd_cell_lines(shown)
    assert head == "4 cells are odd:"
    assert rows[0].split() == ["line", "column", "reads", "suggested"]
    assert rows[1].split()[:2] == ["4", "bill"]
    assert rows[1].split()[-4:] == ["(and", "2", "more)", "4"] and "\x1b" not in rows[1]
    assert rows[2] == "      Why."
    assert [line.split() for line in odd_cell_lines(changed(shown, odd_cells=(bare,)))[1:]] == [
        ["line", "column", "reads"],
        ["10", "wing", "0"],
        ["Why."],
        "... and 3 more in the report, each with why.".split(),
    ]
    of_binary = changed(shown, odd_cells=(replace(bare, line=None),), n_odd_cells=1)
    assert [line.split() for line in odd_cell_lines(of_binary)] == [
        "1 cell is odd:".split(),
        ["row", "column", "reads"],
        ["9", "wing", "0"],
        ["Why."],
    ]
    either = replace(bare, column="start", others=("end",))
    assert "start or end" in odd_cell_lines(changed(shown, odd_cells=(either,)))[2]


def test_hostile_names_of_files_and_columns_end_to_end(kpca: Run) -> None:
    name = "\x1b[31m<b>&\u202e.csv"
    frame_of(40).rename({"bill": HOSTILE, "wing": '=cmd("x")'}).write_csv(name)
    done = kpca("screen", name).ok()
    assert "\x1b" not in done.err + done.out
    assert Path(done.out.strip()).exists()


@contextmanager
def stderr_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    read, write = os.pipe()
    os.close(read)
    stream = open(write, "w", encoding="utf-8")  # noqa: PTH123
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        yield
    with suppress(OSError):
        stream.close()


def test_output_without_a_reader_does_not_end_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    with stderr_nobody_reads(monkeypatch):
        Console().say("a paragraph")
        Console().lines(["a", "b"])
        say_line("a line")
        sys.stderr.flush()


def test_a_terminal_that_is_closed_does_not_end_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(self: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("rich.progress.Progress.start", closed)
    with Console().stage("Reading"):
        pass


@pytest.mark.parametrize("terminal", [True, False])
def test_a_path_is_data_and_steers_no_terminal(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    Console().data_path(Path("t/\x1b[31mred"))
    assert capsys.readouterr().out == ("t/\\x1b[31mred\n" if terminal else "t/\x1b[31mred\n")
