"""Interrupts before the command has started."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interrupts import HEARS_INTERRUPTS

# A module that reports an interrupt as its own failure, as some C extensions do.
SWALLOWS = f"""
{HEARS_INTERRUPTS}
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "kpca_apps.cli.main":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("no interrupt")
sys.meta_path.insert(0, Finder())
from kpca_apps.cli.entry import main
sys.exit(main())
"""
# Work that ignores signals, like a long call into a library.
DEAF = f"""
{HEARS_INTERRUPTS}
import sys, time
import kpca_apps.cli.main
from kpca_apps.system.interrupts import interrupts_held
def deaf():
    with interrupts_held():
        signal.raise_signal(signal.SIGTERM)
        time.sleep(600)
kpca_apps.cli.main.main = deaf
from kpca_apps.cli.entry import main
sys.exit(main())
"""
# A library that generates code while the signal arrives, as dataclasses do.
IN_EXEC = f"""
{HEARS_INTERRUPTS}
import sys
import kpca_apps.cli.main
def wrong(word):
    exec("import signal; signal.raise_signal(signal.SIGTERM)")
sys.argv = ["kpca", "--version"]
kpca_apps.cli.main._show_version.__code__ = wrong.__code__
from kpca_apps.cli.entry import main
sys.exit(main())
"""
BLOCKED = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
sys.argv = ["kpca", "--version"]
from kpca_apps.cli.entry import main
code = main()
assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
sys.exit(code)
"""


def test_an_interrupt_while_modules_are_loaded_is_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130 and done.stderr == "error: interrupted; nothing was written\n"


def test_a_signal_in_code_that_is_made_has_its_own_exit_code(tmp_path: Path) -> None:
    (tmp_path / "in_exec.py").write_text(IN_EXEC, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "in_exec"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "error: interrupted; nothing was written\n"
    assert done.returncode == 128 + signal.SIGTERM


@pytest.mark.skipif(sys.platform == "win32", reason="no mask of signals")
def test_work_that_ignores_signals_ends_in_time() -> None:
    done = subprocess.run([sys.executable, "-c", DEAF], capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stderr == "error: interrupted; the next run removes what is unfinished\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no mask of signals")
def test_a_blocked_interrupt_is_handled() -> None:
    assert hasattr(signal, "pthread_sigmask")
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_objects_are_not_looked_through_at_the_end() -> None:
    at_end = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 10_000))"
    code = f"{at_end}; import sys; from kpca_apps.cli.entry import main; sys.exit(main())"
    assert subprocess.run(
        [sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True
    ).stdout.endswith("\nTrue\n")
