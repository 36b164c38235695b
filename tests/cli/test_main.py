from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from kpca_apps import __version__
from kpca_apps.cli.console import Console
from kpca_apps.cli.main import app, main
from kpca_apps.errors import InputError, MemoryLimitError
from kpca_apps.system.interrupts import ENDING
from tests.cli.conftest import Done, Run, assert_refused, in_a_process
from tests.cli.tree import each_command
from tests.quick import quick


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["novelty", "screen", "--help"],
        ["denoise", "run", "--help"],
        ["papers", "run", "--help"],
        ["--version"],
    ],
)
def test_help_and_version_load_no_heavy_library(words: list[str]) -> None:
    code = (
        "import sys; from kpca_apps.cli.main import main\n"
        f"code = main({words!r})\n"
        "heavy = {'sklearn', 'scipy', 'numpy', 'numba', 'matplotlib', 'polars', 'jinja2'}\n"
        "print(code, sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr
    if words == ["--version"]:
        assert done.stdout.startswith(f"kpca {__version__}\n")


@pytest.mark.parametrize("group", [[], ["novelty"], ["denoise"], ["papers"]])
def test_what_a_command_does_is_told_whole_in_80_columns(group: list[str]) -> None:
    shown = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*group, "--help"]).output
    assert "..." not in shown.split("Commands:")[1]


# In the order of the help; a command names those it has of its group's, so a slip would lose one.
READING = "delimiter encoding sheet skip-rows bad-lines layout as-of query table timeout"
OPTIONS = {
    "novelty screen": (
        "reference share count alpha fdr accept marks label positive id exclude categorical "
        "numeric by hide dayfirst monthfirst explain method sigma components ridge landmarks "
        "calibration learn-from seed jobs workers scheduler work-dir out force each to-send "
        "format keep-hidden flagged write-to "
        f"{READING} json quiet dry-run config"
    ),
    "novelty fit": (
        "model share count alpha fdr label id exclude categorical numeric by hide dayfirst "
        "monthfirst method sigma components ridge landmarks calibration learn-from seed "
        f"jobs workers scheduler work-dir force {READING} json quiet dry-run config"
    ),
    "novelty score": (
        "share count alpha fdr accept marks label positive id hide explain jobs workers "
        "scheduler work-dir out force to-send format keep-hidden flagged write-to "
        f"{READING} json quiet config"
    ),
    "novelty explain": f"row line accept marks id hide {READING} json quiet config",
    "novelty compare": (
        "label positive id exclude categorical numeric hide dayfirst monthfirst "
        f"ridge landmarks seed jobs out force {READING} json quiet dry-run "
        "config"
    ),
    "novelty rules": (
        "rules out format id exclude categorical numeric hide dayfirst monthfirst seed jobs force "
        f"{READING} json quiet dry-run config"
    ),
    "novelty diff": "out force json quiet config",
    "denoise run": (
        "sigma noise data-range same-noise profile quality luma chroma strength content method "
        "bandwidth per-image stack mask region model out format raw-out reference compare force "
        "preview jobs workers scheduler json quiet dry-run config"
    ),
    "denoise fit": (
        "model patch-size stride max-examples seed sigma examples-sigma components bandwidth "
        "force jobs json quiet dry-run config"
    ),
    "denoise noise": "save data-range force json quiet config",
    "papers list": "json",
    "papers run": "data out force json quiet",
    "papers fetch": "quiet",
    "schema": "",
    "mcp": "root hide largest",
}


def test_each_command_has_its_options() -> None:
    found = {
        name: " ".join(
            flag.removeprefix("--")
            for parameter in command.params
            for flag in (*parameter.opts, *parameter.secondary_opts)
            if flag.startswith("--")
        )
        .removesuffix("help")
        .removesuffix("help-all")
        .strip()
        for name, command in each_command()
    }
    assert found == OPTIONS


def every_command(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the words that call each group and command."""
    yield words
    for name, below in getattr(command, "commands", {}).items():
        yield from every_command(below, (*words, name))


COMMANDS = sorted(every_command(get_command(app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_is_two_screens_long_and_names_every_option(words: tuple[str, ...]) -> None:
    shown = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(app, [*words, "--help"])
    lines = shown.output.splitlines()
    assert "Usage" in shown.output and "\x1b[" not in shown.output
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 60
    assert sum(line.startswith("  --") for line in lines) <= 14
    assert not re.search(r"<\w+>", shown.output)  # a type, not what to type
    for option in OPTIONS.get(" ".join(words), "").split():
        assert re.search(rf"--{option}\b", shown.output)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_all_explains_every_option(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(app, [*words, "--help"]).output
    if "--help-all" in some:
        main([*words, "--help-all"])
        some = capsys.readouterr().out
        assert "More options" not in some
    for option in OPTIONS.get(" ".join(words), "").split():
        assert re.search(rf"^  (-\w, )?(--\w+ / )?--{option}\b", some, re.MULTILINE), option
    # The example of a config file can be used.
    examples = re.findall(r"--config FILE .*?: (\w+ = \w+)", " ".join(some.split()))
    assert len(examples) == some.count("--config")
    for example in examples:
        (tmp_path / "c.toml").write_text(example, encoding="utf-8")
        main([*words, "--config", str(tmp_path / "c.toml")])
        assert "Missing argument" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["novelty", "scren"], "No such command 'scren'"),
        (["novelty", "screen"], "Missing argument 'TABLE...'. (kpca novelty screen --help)"),
        (["novelty", "screen", "x.csv", "--share", "many"], "Invalid value for '--share'"),
        (["novelty", "compare", "x.csv"], "Missing option '--label'"),
        (
            ["denoise", "run", "in", "--quality", "best"],
            "Invalid value for '--quality': 'best' is not one of 'draft', 'fast', 'balanced', "
            "'high'",
        ),
    ],
)
def test_usage_errors_are_one_line_and_exit_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(words)
    assert_refused(Done(code, *capsys.readouterr()), 2, f"error: {message}")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("--out ", ""),
        ("--out --meth", "--method"),
        ("--method ", "blocks hoffmann"),
    ],
)
def test_a_shell_completes_a_line_that_is_not_yet_whole(
    words: str, offered: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_KPCA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"kpca novelty screen {words}")
    monkeypatch.setenv("COMP_CWORD", "4")
    with suppress(SystemExit):
        main([])
    done = capsys.readouterr()
    assert (done.out.split(), done.err) == (offered.split(), "")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError("a.csv, line 3:\nno number"), 3, "error: a.csv, line 3: no number"),
        (MemoryLimitError("too big"), 4, "error: too big"),
        (MemoryError(), 4, "error: the memory of this machine"),
        (KeyboardInterrupt(), 130, "error: interrupted; nothing was written"),
        (ZeroDivisionError("oh"), 1, "error: a bug in kpca, ZeroDivisionError: oh"),
    ],
)
def test_every_ending_is_one_line_and_its_code(
    error: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    # Who takes the name from there is loaded before, or would keep the one that fails.
    for module in ("cli.novelty.run", "novelty.screening.run"):
        import_module(f"kpca_apps.{module}")
    monkeypatch.setattr("kpca_apps.novelty.screening.model.resolve_rule", fail)
    monkeypatch.delenv("KPCA_DEBUG", raising=False)
    ended = main(["novelty", "screen", "x.csv"])
    assert_refused(Done(ended, *capsys.readouterr()), code, message)
    if isinstance(error, ZeroDivisionError):
        monkeypatch.setenv("KPCA_DEBUG", "1")
        with pytest.raises(ZeroDivisionError):
            main(["novelty", "screen", "x.csv"])


SCREEN = ["novelty", "screen", "birds.csv", "--dry-run"]
GONE = "exec 3> >(true); wait $!; {} "  # 3 is a pipe whose reader has gone away


FULL = (SCREEN, "{} > /dev/full", 3, "output cannot be written: No space left")
CLOSED = (SCREEN, "{} >&- 2>&-", 0, "")
STREAMS = [
    (["--help"], GONE + ">&3", 0, ""),
    (["--version"], GONE + ">&3 2>&3", 0, ""),
    (SCREEN, GONE + ">&3 2>&3", 0, ""),
    CLOSED,
    (SCREEN, "{} 2> /dev/full", 0, ""),
    FULL,
    (["novelty", "screen", "-"], "{} <&-", 3, "standard input: is closed; name a file, or pipe"),
]


@pytest.mark.parametrize(("words", "shell", "code", "said"), quick(STREAMS, CLOSED, FULL))
def test_streams_that_lead_nowhere_are_no_bug(
    words: list[str], shell: str, code: int, said: str, folder: Path
) -> None:
    done = in_a_process(*words, shell=shell, cwd=folder)
    assert done.returncode == code, done.stderr
    assert f"error: {said}" in done.stderr if said else "error" not in done.stderr


@pytest.mark.parametrize("number", ENDING)
def test_a_request_to_end_is_an_interrupt_and_leaves_nothing(
    number: int, folder: Path, kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask_to_end(*_: object, **__: object) -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        signal.raise_signal(ENDING[0])  # an impatient one disturbs nothing
        raise KeyboardInterrupt

    monkeypatch.setattr("kpca_apps.novelty.screening.run.screen", ask_to_end)
    before, handlers = sorted(folder.iterdir()), [*map(signal.getsignal, ENDING)]
    done = kpca("screen", "birds.csv")
    assert (done.err, done.code) == ("error: interrupted; nothing was written\n", 128 + number)
    assert sorted(folder.iterdir()) == before
    assert [*map(signal.getsignal, ENDING)] == handlers


@pytest.mark.parametrize("target", ["birds.csv", "link", "/dev/null"])
def test_force_replaces_a_model_and_nothing_else(folder: Path, kpca: Run, target: str) -> None:
    (folder / "link").symlink_to("birds.csv")
    before = (folder / "birds.csv").read_bytes()
    done = kpca("fit", "birds.csv", "--model", target, "--force")
    assert_refused(done, 4, "is not a model, so it is never replaced")
    assert (folder / "birds.csv").read_bytes() == before


def test_a_path_that_looks_like_markup_is_no_markup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Console().stage("Reading q[/b].csv"):
        pass
    assert "Reading q[/b].csv" in capsys.readouterr().err


@pytest.mark.parametrize("bad", ["a\0b", "\ud800", "\udcff"])
@pytest.mark.parametrize(
    "words",
    [
        ["novelty", "screen", "BAD"],
        *(
            ["novelty", "screen", "birds.csv", option, "BAD"]
            for option in ("--encoding", "--delimiter", "--label", "--reference")
        ),
        ["novelty", "score", "BAD", "birds.csv"],
        ["novelty", "fit", "birds.csv", "--model", "no/BAD"],
        ["novelty", "rules", "birds.csv", "--rules", "BAD"],
        ["novelty", "rules", "birds.csv", "--out", "no/BAD"],
        ["denoise", "run", "BAD"],
        ["denoise", "noise", "BAD"],
        ["denoise", "run", "birds.csv", "--model", "BAD"],
        ["papers", "run", "BAD"],
        ["papers", "run", "usps", "--data", "BAD"],
        ["papers", "run", "usps", "--data", "no", "--out", "no/BAD"],
    ],
    ids=" ".join,
)
def test_what_is_no_character_is_told_in_one_line(
    words: list[str], bad: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([word.replace("BAD", bad) for word in words])
    done = Done(code, *capsys.readouterr())
    assert_refused(done, 2 if code == 2 else 3, "")
    assert done.err.strip().isprintable()


def test_a_nonsense_backend_of_matplotlib_is_not_asked() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from kpca_apps.cli.main import main; print(main(['--version']));"
         "import matplotlib; print(matplotlib.get_backend())"],
        env={**os.environ, "MPLBACKEND": "nonsense"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout.split()[-2:] == ["0", "agg"], done.stderr
