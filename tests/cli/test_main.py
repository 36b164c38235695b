import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
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
def test_help_shows_the_whole_summary_of_a_command_in_80_columns(group: list[str]) -> None:
    shown = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*group, "--help"]).output
    assert "..." not in shown.split("Commands")[1]


# The words of each group and command.
COMMANDS = sorted({(*words.split(),)[:n] for words, _ in each_command() for n in range(3)})
FLAGS = {
    words: [flag for option in command.params for flag in (*option.opts, *option.secondary_opts)]
    for words, command in each_command()
}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_explains_every_option(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(app, [*words, "--help"]).output
    assert "Usage" in shown and "\x1b[" not in shown
    assert max(map(len, shown.splitlines())) <= 80 and not re.search("<[a-z]+[>[]", shown)
    some = " ".join(shown.replace("\u2502", " ").split())
    for flag in FLAGS.get(" ".join(words), ()):
        if flag.startswith("--"):
            assert re.search(rf"^\u2502 .*{flag}\b", shown, re.MULTILINE), flag
    # The example of a config file in the help works.
    examples = re.findall(r"--config FILE .*?: (\w+ = \w+)", some)
    assert len(examples) == some.count("--config")
    for example in examples:
        (tmp_path / "c.toml").write_text(example, encoding="utf-8")
        main([*words, "--config", str(tmp_path / "c.toml")])
        assert "Missing argument" in capsys.readouterr().err


def test_usage_errors_are_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["novelty", "screen"])
    message = "error: Missing argument 'TABLE...'. (kpca novelty screen --help)"
    assert_refused(Done(code, *capsys.readouterr()), 2, message)


@pytest.mark.parametrize(
    ("words", "offered"),
    [("--out ", ""), ("--out --meth", "--method"), ("--method ", "blocks hoffmann")],
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
        (MemoryError(), 4, "error: not enough memory"),
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

    # Import all users of `resolve_rule` first: imported while it is `fail`, they would keep `fail`.
    for module in ("cli.novelty.run", "novelty.run"):
        import_module(f"kpca_apps.{module}")
    monkeypatch.setattr("kpca_apps.novelty.screening.model.resolve_rule", fail)
    monkeypatch.delenv("KPCA_DEBUG", raising=False)
    assert_refused(Done(main(["novelty", "screen", "x.csv"]), *capsys.readouterr()), code, message)
    if isinstance(error, ZeroDivisionError):
        monkeypatch.setenv("KPCA_DEBUG", "1")
        with pytest.raises(ZeroDivisionError):
            main(["novelty", "screen", "x.csv"])


SCREEN = ["novelty", "screen", "birds.csv", "--dry-run"]
NO_READER = "exec 3> >(true); wait $!; {} "  # file descriptor 3 is a pipe without a reader


FULL = (SCREEN, "{} > /dev/full", 3, "output cannot be written: No space left")
CLOSED = (SCREEN, "{} >&- 2>&-", 0, "")
STREAMS = [
    (["--help"], NO_READER + ">&3", 0, ""),
    (["--version"], NO_READER + ">&3 2>&3", 0, ""),
    (SCREEN, NO_READER + ">&3 2>&3", 0, ""),
    CLOSED,
    (SCREEN, "{} 2> /dev/full", 0, ""),
    FULL,
    (["novelty", "screen", "-"], "{} <&-", 3, "standard input: is closed; name a file, or pipe"),
]


@pytest.mark.parametrize(("words", "shell", "code", "message"), quick(STREAMS, CLOSED, FULL))
def test_streams_that_lead_nowhere_are_no_bug(
    words: list[str], shell: str, code: int, message: str, folder: Path
) -> None:
    done = in_a_process(*words, shell=shell, cwd=folder)
    assert done.returncode == code, done.stderr
    assert f"error: {message}" in done.stderr if message else "error" not in done.stderr


@pytest.mark.parametrize("number", ENDING)
def test_a_request_to_end_is_an_interrupt_and_leaves_nothing(
    number: int, folder: Path, kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask_to_end(*_: object, **__: object) -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        signal.raise_signal(ENDING[0])  # further signals change nothing
        raise KeyboardInterrupt

    monkeypatch.setattr("kpca_apps.novelty.run.screen", ask_to_end)
    before, handlers = sorted(folder.iterdir()), [*map(signal.getsignal, ENDING)]
    done = kpca("screen", "birds.csv")
    assert (done.err, done.code) == ("error: interrupted; nothing was written\n", 128 + number)
    assert sorted(folder.iterdir()) == before
    assert [*map(signal.getsignal, ENDING)] == handlers


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
        ["novelty", "screen", "birds.csv", "--encoding", "BAD"],
        ["novelty", "fit", "birds.csv", "--model", "no/BAD"],
        ["denoise", "run", "BAD"],
        ["papers", "run", "usps", "--data", "BAD"],
    ],
    ids=" ".join,
)
def test_an_invalid_character_is_reported_in_one_line(
    words: list[str], bad: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([word.replace("BAD", bad) for word in words])
    done = Done(code, *capsys.readouterr())
    assert_refused(done, 2 if code == 2 else 3, "")
    assert done.err.strip().isprintable()


def test_an_invalid_matplotlib_backend_is_not_used() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from kpca_apps.cli.main import main; print(main(['--version']));"
         "import matplotlib; print(matplotlib.get_backend())"],
        env={**os.environ, "MPLBACKEND": "nonsense"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout.split()[-2:] == ["0", "agg"], done.stderr
