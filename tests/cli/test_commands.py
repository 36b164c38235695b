"""Commands in a report work when pasted where the report's own command was run."""

import io
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from kpca_apps.cli.commands import command_line
from tests.cli.conftest import Run, result
from tests.quick import quick


def steps(folder: str) -> dict[str, tuple[str, list[str]]]:
    """Map the subcommand of each suggested next step to the sentence and arguments of the step."""
    found = {}
    for sentence, command in result(folder)["run"]["next_steps"]:
        words = shlex.split(command)
        assert words[:2] == ["kpca", "novelty"]
        if "--marks" in words:  # --marks needs a page saved by hand
            continue
        found[words[2]] = (sentence, words[2:])
    return found


@pytest.mark.parametrize(
    ("out", "reference"), quick([(None, True), ("runs/a", False)], (None, True))
)
def test_next_steps_are_commands_that_run(kpca: Run, out: str | None, reference: bool) -> None:
    Path("runs").mkdir()
    words = ["--id", "name", "--numeric", "bill", "--numeric", "wing"]
    words += ["--reference", "clean.csv"] if reference else ["--exclude", "kind"]
    words += [] if out is None else ["--out", out]
    assert kpca("screen", "birds.csv", *words, "--quiet").code == 0
    folder = out or "kpca-novelty-birds"
    offered = steps(folder)
    assert list(offered) == ["score", "screen", "explain"]
    score, screen, explain = (offered[name][1] for name in offered)
    assert kpca(*[word.replace("NEW_TABLE", "clean") for word in score]).code == 0
    done = kpca(*screen).ok()
    column = result(folder)["ranked"][0]["reasons"][0]["column"]
    assert done.out == f"{folder}-without-{column}/report.html\n"
    explained = kpca(*explain)
    assert (explained.code, "rank 1 of 60" in explained.out) == (0, True)
    assert not any("full path" in sentence for sentence, _ in offered.values())
    again = kpca(*shlex.split(result(folder)["run"]["command"])[2:])
    assert (again.code, again.out) == (0, f"{folder}/report.html\n"), again.err


def test_a_row_without_a_line_is_explained_by_its_id_not_by_the_row_of_that_number(
    kpca: Run,
) -> None:
    birds = pl.read_csv("birds.csv").drop("name")
    birds.with_columns(tag=60 - pl.int_range(birds.height)).write_parquet("birds.parquet")
    assert kpca("screen", "birds.parquet", "--quiet").code == 0
    top = result("kpca-novelty-birds")["ranked"][0]
    assert (top["line"], top["id"]) == (None, str(61 - top["row"]))
    explained = kpca(*steps("kpca-novelty-birds")["explain"][1])
    assert (explained.code, "rank 1 of 60" in explained.out) == (0, True)


def test_paths_from_elsewhere_are_cut_and_the_sentence_tells_it(
    kpca: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    assert kpca("screen", folder / "birds.csv", "--out", folder / "run", "--quiet").code == 0
    assert str(folder) not in (folder / "run" / "result.json").read_text(encoding="utf-8")
    offered = steps(str(folder / "run"))
    assert offered["score"][1][:2] == ["score", "run/model.kpca"]
    assert offered["score"][0].endswith("; put the full path of run in place of the name")
    assert "; put the full path of run and of birds.csv in place" in offered["explain"][0]
    monkeypatch.chdir(folder)
    assert kpca(*offered["explain"][1]).code == 0 and kpca(*offered["screen"][1]).code == 0


def test_a_path_below_the_working_folder_is_shown_from_there(kpca: Run, folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "birds.csv").rename(folder / "data" / "birds.csv")
    assert kpca("screen", folder / "data" / "birds.csv", "--quiet").code == 0
    assert shlex.split(result("kpca-novelty-birds")["run"]["command"])[3] == "data/birds.csv"
    assert kpca(*steps("kpca-novelty-birds")["explain"][1]).code == 0


@pytest.mark.release
def test_scoring_offers_no_step_that_its_command_cannot_do(kpca: Run) -> None:
    kpca("fit", "clean.csv", "--model", "m.kpca")
    kpca("score", "m.kpca", "birds.csv", "--delimiter", ",", "--quiet").ok()
    offered = steps("kpca-novelty-birds")
    assert list(offered) == ["score", "explain"]
    assert offered["explain"][1][-2:] == ["--delimiter", ","]
    assert kpca(*offered["explain"][1]).code == 0


def test_the_only_column_is_not_offered_to_be_left_out(kpca: Run) -> None:
    kpca("screen", "birds.csv", *(f"--exclude={c}" for c in ("bill", "mass", "colour", "kind")))
    assert list(steps("kpca-novelty-birds")) == ["score", "explain"]


def test_a_name_stands_for_a_table_from_a_pipe(kpca: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("birds.csv").read_bytes())))
    assert kpca("screen", "-", "--quiet").code == 0
    offered = steps("kpca-novelty-stdin")
    assert offered["explain"][1][:3] == ["explain", "kpca-novelty-stdin/model.kpca", "TABLE.csv"]
    assert offered["explain"][0].endswith("TABLE.csv stands for the table that was piped in")
    assert shlex.split(result("kpca-novelty-stdin")["run"]["command"])[2:4] == [
        "screen",
        "TABLE.csv",
    ]


def test_commands_with_control_characters_are_read_back_by_bash_and_show_none() -> None:
    words = ["printf", "%s|", "body mass", "\x03touch x\n", "it's \\ \u202eevil\x1b", "caf\u00e9"]
    line = command_line(words)
    assert line.isprintable()
    echoed = subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout
    assert echoed.decode() == "".join(f"{word}|" for word in words[2:])
