"""Faults: each function runs a command of `scenes.py` and disturbs it, for example kills it.

A function returns whether the command was disturbed before its end; LossError says what was lost.
"""

import json
import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from kpca_apps.system.memory import claimed_addresses
from tests.faults.forked import Command
from tests.faults.scenes import MOMENTS
from tests.faults.stage import LossError, Played, Stage, check, rerun

Fault = Callable[[Stage, Played, str, random.Random], bool]
YEAR = 365 * 86400.0
IN_TIME = 2.0  # seconds in which a command must exit after a signal


def kill(stage: Stage, played: Played, kind: str, draw: random.Random) -> bool:
    """Kill the command, check its files, and run it again."""
    scene, folder = played.scene, _folder(stage, played, draw)
    step = draw.randint(1, played.n_steps) if kind == "step" else 0
    command = stage.start(scene, scene.words, folder, step=step)
    was_killed, code = _killed(stage, command, kind, draw.uniform(0, played.seconds))
    if code != -signal.SIGKILL:
        # A command that lost a worker may succeed or report the loss.
        _check_exit(command, code, (0, 3, 4, 130) if kind in ("worker", "cluster") else (0,))
    command.wait_for_children()
    rerun(played, stage, folder, check(played, stage, folder))
    return was_killed or code == -signal.SIGKILL


def _killed(stage: Stage, command: Command, kind: str, after: float) -> tuple[bool, int]:
    """Kill what `kind` names; return whether that was a worker, and the command's exit code."""
    if kind == "step":
        return False, command.wait()
    end = command.began + after
    code = command.wait_until(lambda: time.monotonic() >= end)
    find = {"worker": command.workers, "cluster": stage.workers}.get(kind)
    if code is None and find is not None:
        code = command.wait_until(lambda: bool(find()))
        if code is None:
            with suppress(ProcessLookupError, IndexError):
                os.kill(random.Random(after).choice(find()), signal.SIGKILL)
                return True, command.wait()
    elif code is None:
        command.kill(alone=kind == "driver")
    return False, command.wait() if code is None else code


def end_by_signal(stage: Stage, played: Played, kind: str, draw: random.Random) -> bool:
    """Send a signal: the command exits in time with one line, and the next run resumes.

    For a server, closing its standard input also counts as a signal.
    """
    scene, folder = played.scene, _folder(stage, played, draw)
    command = stage.start(scene, scene.words, folder)
    end = command.began + draw.uniform(0, played.seconds)
    code = command.wait_until(lambda: time.monotonic() >= end)
    if is_asked := code is None:
        before, used, sent = command.cpu_seconds(), 0.0, time.monotonic()
        expected = 0
        if command.stdin is not None and draw.random() < 0.25:
            os.close(command.stdin)
        else:
            os.kill(command.pid, signal.Signals[kind])
            expected = 128 + signal.Signals[kind]

        def watch() -> bool:
            nonlocal used
            used = max(used, command.cpu_seconds() - before)
            return False

        code = command.wait_until(watch)
        seconds = time.monotonic() - sent
        command.wait_for_children()
        _check_exit(command, -1 if code is None else code, (0, expected))
        if seconds > IN_TIME:
            raise LossError(f"it ended after {seconds:.2f} s, {used:.2f} s of them of processors")
    rerun(played, stage, folder, check(played, stage, folder))
    return is_asked and (code != 0 or command.stdin is not None)


def full_disk(stage: Stage, played: Played, _: str, draw: random.Random) -> bool:
    """Run with too little disk space, check the files, free the space, and run again."""
    scene, folder = played.scene, _folder(stage, played, draw)
    filler = stage.folder / "filler"
    free = shutil.disk_usage(stage.folder).free
    room = round(draw.uniform(0, played.n_bytes))
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(free - room, 1))
    command = stage.start(scene, scene.words, folder)
    code = command.wait()
    # Images of a batch may fail individually.
    _check_exit(command, code, (0, 3))
    command.wait_for_children()
    filler.unlink()
    rerun(played, stage, folder, check(played, stage, folder, was_killed=False))
    return code != 0


def little_memory(stage: Stage, played: Played, _: str, draw: random.Random) -> bool:
    """Run with too little memory, check the files, restore the limit, and run again."""
    scene, folder = played.scene, _folder(stage, played, draw)
    limit = round(draw.uniform(0.5, 1.5) * claimed_addresses())

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    command = stage.start(scene, scene.words, folder, prepare=(bound,))
    code = command.wait()
    _check_exit(command, code, (0, 3, 4))
    command.wait_for_children()
    rerun(played, stage, folder, check(played, stage, folder, was_killed=False))
    return code != 0


def start_twice(stage: Stage, played: Played, _: str, draw: random.Random) -> bool:
    scene, folder = played.scene, _folder(stage, played, draw)
    first = stage.start(scene, scene.words, folder)
    end = first.began + draw.uniform(0, played.seconds)
    ended = first.wait_until(lambda: time.monotonic() >= end)
    second = stage.start(scene, scene.words, folder, number=1)
    codes = [first.wait() if ended is None else ended, second.wait()]
    for command, code in zip((first, second), codes, strict=True):
        _check_exit(command, code, (0, 3, 4))
        command.wait_for_children()
    if 0 not in codes:
        raise LossError(f"neither came to its end: {codes}")
    if check(played, stage, folder, was_killed=False).units != played.whole:
        raise LossError("what both left is not whole")
    shutil.rmtree(folder)
    return ended is None


def jumping_clock(stage: Stage, played: Played, _: str, draw: random.Random) -> bool:
    """Kill the command while its clock jumps by years, shift its file times, and run again."""
    scene, folder = played.scene, _folder(stage, played, draw)
    jumps = random.Random(draw.random())

    def jump() -> None:
        true, off = time.time, [0.0]

        def shifted_time() -> float:
            if jumps.random() < 0.3:
                off[0] = jumps.choice((-YEAR, 0, YEAR))
            return true() + off[0]

        time.time = shifted_time

    command = stage.start(
        scene, scene.words, folder, prepare=(jump,), step=draw.randint(1, played.n_steps)
    )
    code = command.wait()
    if code != -signal.SIGKILL:
        _check_exit(command, code, (0,))
    command.wait_for_children()
    now = time.time()
    for path in folder.rglob("*"):
        moment = now + jumps.choice((-YEAR, 0, YEAR))
        os.utime(path, (moment, moment))
    rerun(played, stage, folder, check(played, stage, folder), prepare=(jump,), then=_check_times)
    return code == -signal.SIGKILL


def _check_times(folder: Path) -> None:
    for path in folder.rglob("run.json"):
        record = json.loads(path.read_text())
        began, ended = (datetime.fromisoformat(record[name]) for name in ("started", "finished"))
        if ended < began or min(record["seconds"].values()) < 0:
            raise LossError(f"{path} tells of time that went back")


def _folder(stage: Stage, played: Played, draw: random.Random) -> Path:
    shutil.rmtree(stage.temporary, ignore_errors=True)
    return stage.create_folder(played.scene, f"run-{draw.getrandbits(40):010x}")


def _check_exit(command: Command, code: int, allowed: tuple[int, ...]) -> None:
    """Check the exit code, and that failures print one line."""
    lines = command.err.read_text().splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    is_reported = not code or (len(errors) == 1 and lines[-1] == errors[0])
    if code not in allowed or not is_reported or any("Traceback" in line for line in lines):
        raise LossError(f"exit code {code}, stderr: {lines[-12:]}")


FAULTS: dict[str, tuple[Fault, tuple[str, ...]]] = {
    "kill": (kill, ()),
    "signals": (end_by_signal, ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")),
    "disk": (full_disk, MOMENTS[:1]),
    "memory": (little_memory, MOMENTS[:1]),
    "twice": (start_twice, MOMENTS[:1]),
    "clock": (jumping_clock, MOMENTS[:1]),
}
"""Name -> function and kinds of moments; without kinds, those of the scene."""
