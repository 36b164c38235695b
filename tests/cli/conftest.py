import io
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from markupsafe import Markup

from kpca_apps.cli.main import main
from kpca_apps.tables.opening import open_table
from tests.novelty.tables import frame_of


class Done(NamedTuple):
    """Exit code and terminal output of a command."""

    code: int
    out: str
    err: str

    @property
    def heard(self) -> str:
        """Return the standard error without its line breaks."""
        return " ".join(self.err.split())

    def ok(self) -> "Done":
        """Assert that the command succeeded, and return itself."""
        assert self.code == 0, self.err
        return self


Run = Callable[..., Done]


def assert_refused(done: Done, code: int, message: str) -> None:
    """Assert the exit code, an empty stdout and a one-line error."""
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done
    assert done.err.startswith("error: ")
    assert message in done.err


def result(folder: str = "kpca-novelty-birds") -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path(folder, "result.json").read_text(encoding="utf-8"))
    return loaded


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="session")
def compiled() -> None:
    """Compile the inner loops of denoising first, so that no test sees the message about it."""
    from kpca_apps.denoise.passes.warming import warm_up

    warm_up(lambda: None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a working folder with a table of 60 rows, 3 of them odd, and a clean one of 80."""
    monkeypatch.chdir(tmp_path)
    frame_of(60, odd=3).write_csv("birds.csv")
    frame_of(80, seed=1).drop("kind").write_csv("clean.csv")
    return tmp_path


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read every table of more than 50 rows in parts of 32."""
    small = partial(open_table, in_memory_rows=50, part_rows=32)
    monkeypatch.setattr("kpca_apps.cli.novelty.run.open_table", small)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the figures, which take longest; tests/report tests them."""
    for table in ("SCREENING", "EVALUATION"):
        monkeypatch.setattr(f"kpca_apps.report.novelty.figures.{table}", ())
    monkeypatch.setattr("kpca_apps.report.novelty.figures.column_plane", lambda result: None)
    monkeypatch.setattr("kpca_apps.report.drawing.to_svg", lambda drawing: Markup("<svg/>"))
    monkeypatch.setattr("kpca_apps.report.drawing.to_png", lambda drawing: b"")
    monkeypatch.setattr("kpca_apps.report.denoising.figures.denoising_figures", lambda result: {})


@pytest.fixture
def kpca(whole_kpca: Run, undrawn: None) -> Run:
    """Run ``kpca novelty ...`` without drawing."""
    return whole_kpca


@pytest.fixture
def run_kpca(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs ``kpca`` with the given words."""
    monkeypatch.delenv("KPCA_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: object) -> Done:
        capsys.readouterr()
        return Done(main([*map(str, words)]), *capsys.readouterr())

    return run


@pytest.fixture
def whole_kpca(folder: Path, run_kpca: Run) -> Run:
    """Run ``kpca novelty ...`` in the working folder, and draw its figures."""
    return partial(run_kpca, "novelty")


@pytest.fixture
def papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_kpca: Run) -> Run:
    """Run ``kpca papers ...`` in a temporary folder."""
    monkeypatch.chdir(tmp_path)
    return partial(run_kpca, "papers")


def in_a_process(*words: object, shell: str = "{}", **options: Any) -> Any:
    """Run ``kpca`` in a subprocess, with its streams redirected by a line of bash."""
    code = "import sys; from kpca_apps.cli.entry import main; sys.exit(main())"
    line = shell.replace("{}", shlex.join([sys.executable, "-c", code, *map(str, words)]))
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, **options)
