"""Run work in other processes (Linux): monitored commands, and workers that may be killed."""

import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-c", "from kpca_apps.cli.main import main; raise SystemExit(main())")
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Usage:
    seconds: float
    cpu_seconds: float
    peak_bytes: int  # peak of the resident memory summed over the command's processes
    first_thread_seconds: float  # CPU seconds of the main thread, which runs the serial part


def run_kpca(*words: object, root: Path = ROOT) -> Usage:
    """Run the ``kpca`` of the checkout ``root`` with arguments; exit if it fails."""
    began, peak, cpu, first = time.perf_counter(), 0, children_cpu(), 0.0
    with tempfile.TemporaryFile() as errors:
        # Run in the checkout: Python searches the working folder first.
        command = subprocess.Popen(
            [*COMMAND, *map(str, words)], stdout=subprocess.DEVNULL, stderr=errors, cwd=root
        )
        while command.poll() is None:
            peak = max(peak, sum(map(resident_bytes, [command.pid, *children(command.pid)])))
            first = max(first, first_thread_cpu(command.pid))
            time.sleep(POLL_SECONDS)
        if command.returncode:
            errors.seek(0)
            sys.exit(errors.read().decode() or "the command failed")
    return Usage(time.perf_counter() - began, children_cpu() - cpu, peak, first)


def children_cpu() -> float:
    """Return the CPU seconds of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def first_thread_cpu(process: int) -> float:
    """Return the CPU seconds of the main thread of a process so far."""
    try:
        words = Path(f"/proc/{process}/task/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def children(process: int) -> list[int]:
    """List the descendants of a process."""
    try:
        tasks = Path(f"/proc/{process}/task").glob("*/children")
        direct = [int(word) for task in tasks for word in task.read_text().split()]
    except OSError:
        return []
    return [found for child in direct for found in (child, *children(child))]


def resident_bytes(process: int) -> int:
    """Return the resident memory of a process, including mapped file pages."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


class Worker:
    """A process that answers messages and is restarted after being killed.

    ``work(*arguments, channel)`` sends one answer when it is ready, and one to each message.
    """

    def __init__(self, work: Callable[..., None], *arguments: object) -> None:
        self._work, self._arguments = work, arguments
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._channel, other = context.Pipe()
        self._process = context.Process(
            target=self._work, args=(*self._arguments, other), daemon=True
        )
        self._process.start()
        other.close()
        self._channel.recv()

    def send(self, message: object) -> None:
        self._channel.send(message)

    def answer(self, seconds: float) -> Any:
        """Return the answer, or "killed" or "late" if there is none."""
        try:
            if self._channel.poll(seconds):
                return self._channel.recv()
            lost = "late"
        except (EOFError, ConnectionResetError):
            lost = "killed"
        self.restart()
        return lost

    def restart(self) -> None:
        self.end()
        self._start()

    def end(self) -> None:
        self._process.kill()
        self._process.join()


@dataclass(frozen=True)
class Outcome:
    """Outcome for one item: "killed" or "late" if the worker died or took too long."""

    outcome: str
    seconds: float
    peak_bytes: int


def run_each(
    prepare: Callable[[], Callable[[Any], str]], items: Iterable[Any], memory: int, patience: float
) -> Iterator[Outcome]:
    """Run the function returned by ``prepare`` on each item, in a process of limited memory."""
    worker = Worker(_serve, prepare, memory)
    for item in items:
        worker.send(item)
        answer = worker.answer(patience)
        yield Outcome(answer, patience, 0) if isinstance(answer, str) else Outcome(*answer)
    worker.end()


def _serve(prepare: Callable[[], Callable[[Any], str]], memory: int, channel: Connection) -> None:
    work = prepare()
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    channel.send("ready")
    while True:
        item = channel.recv()
        Path("/proc/self/clear_refs").write_text("5")  # reset the peak
        began = time.perf_counter()
        outcome = work(item)
        seconds = time.perf_counter() - began
        status = Path("/proc/self/status").read_text()
        channel.send((outcome, seconds, int(status.partition("VmHWM:")[2].split()[0]) << 10))
