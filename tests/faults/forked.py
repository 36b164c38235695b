"""Run the command in a forked process that dies when a test requests it.

A fork of a process that has imported the package behaves like a fresh one, without the seconds of
importing. The fork leads a process group, so that its children can be killed with it.
"""

import atexit
import importlib
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kpca_apps.system.interrupts import ENDING

PATIENCE = 600.0  # seconds until a command counts as hung
ORPHANS = 60.0  # seconds until the children of a killed process must have exited
_FILE_STEPS = ("os.", "shutil.", "open", "ctypes.", "sqlite3.")
LAST_ANSWER = b'"id":1,'  # part of a server's last answer
_STEP = 0.002
_IDLE = ("jemalloc_bg_thd", "polars-ooc-clea")  # background threads of memory allocators


@dataclass(frozen=True)
class Command:
    pid: int
    out: Path
    err: Path
    began: float
    stdin: int | None = None  # pipe to a server, kept open while the server answers requests

    def children(self) -> list[int]:
        """Return the live processes that the command started."""
        return [pid for pid in group_processes(self.pid) if pid != self.pid]

    def workers(self) -> list[int]:
        """Return the child processes except for the resource tracker of multiprocessing."""
        return [pid for pid in self.children() if b"resource_tracker" not in _command_line(pid)]

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the command and its children."""
        ticks = 0
        for pid in group_processes(self.pid):
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def kill(self, *, alone: bool = False) -> None:
        """Kill the command and its children, or the command alone."""
        with suppress(ProcessLookupError):
            (os.kill if alone else os.killpg)(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Return the exit code; kill the command if it hangs, or a server once it has answered."""
        if self.stdin is not None:
            code = self.wait_until(
                lambda: self.out.exists() and LAST_ANSWER in self.out.read_bytes()
            )
            os.close(self.stdin)
            if code is not None:
                return code
        if (code := self.wait_until(lambda: False)) is None:
            self.kill()
            os.waitpid(self.pid, 0)
            raise TimeoutError(f"it hangs; stderr: {self.err.read_text()[-500:]!r}")
        return code

    def wait_until(self, is_enough: Callable[[], bool]) -> int | None:
        """Return the exit code, or None if the command is still running or seems to hang."""
        while time.monotonic() < self.began + PATIENCE:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if is_enough():
                break
            time.sleep(_STEP)
        return None

    def wait_for_children(self) -> None:
        """Wait until all processes that the command started have exited by themselves."""
        end = time.monotonic() + ORPHANS
        while left := self.children():
            if time.monotonic() > end:
                self.kill()
                raise TimeoutError(f"left by it and alive: {left}")
            time.sleep(0.02)


def _command_line(pid: int) -> bytes:
    """Return the command line of a process, empty once it has exited."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def start(
    words: Sequence[str],
    folder: Path,
    temporary: Path,
    *,
    number: int = 0,
    prepare: Iterable[Callable[[], object]] = (),
    step: int = 0,
    note: Path | None = None,
    requests: bytes = b"",
) -> Command:
    """Start a command in a folder, with a separate folder for temporary files.

    `number` names the output files of simultaneous commands. The functions `prepare` are called in
    the process before the command. All processes are killed before disk step `step` (from 1; 0:
    never). The file `note` gets the number of disk steps and the imported modules. A server that
    answers `requests` exits when its standard input is closed.
    """
    reads, writes = os.pipe() if requests else (os.open(os.devnull, os.O_RDONLY), None)
    out, err = (temporary / f"{name}{number}" for name in ("stdout", "stderr"))
    out.unlink(missing_ok=True)  # remove output of an earlier command
    sys.stdout.flush()
    # Block signals until the command can handle them.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        os.close(reads)
        if writes is not None:
            os.write(writes, requests)
        return Command(pid, out, err, time.monotonic(), writes)
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        # Set the temporary folder: Python tests the default by writing a file, which a kill would
        # leave behind.
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(reads, 0)
        if writes is not None:
            os.close(writes)
        for change in prepare:
            change()
        count = _watch_steps(step)
        from kpca_apps.cli.entry import main

        sys.argv = ["kpca", *words]
        code = main()
        if note is not None:
            note.write_text("\n".join([str(count[0]), *sys.modules]))
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
        code = 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _watch_steps(last: int) -> list[int]:
    """Count disk operations; kill all processes before operation number `last`."""
    count, owner = [0], os.getpid()

    def see(event: str, arguments: tuple[object, ...]) -> None:
        if event.startswith(_FILE_STEPS) and os.getpid() == owner:
            count[0] += 1
            if count[0] == last:
                os.killpg(0, signal.SIGKILL)

    sys.addaudithook(see)
    return count


def import_modules(modules: Iterable[str]) -> None:
    """Import modules before forking; fail if they start threads, which would prevent forking."""
    for name in modules:
        with suppress(Exception):
            importlib.import_module(name)
    threads = {path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}
    working = threads - {Path("/proc/self/comm").read_text().strip(), *_IDLE}
    assert not working, f"loading has started {working}"


def group_processes(leader: int) -> list[int]:
    """Return the live processes of a group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, ValueError):
                state, _, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(group) == leader and state != "Z":
                    found.append(int(entry.name))
    return found
