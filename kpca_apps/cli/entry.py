"""Run the console script; signals end it at any time."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from contextlib import suppress

from kpca_apps.system.interrupts import ENDING

# Threshold of the garbage collector. At CPython's default of 700, collections take a tenth of the
# time of a short command.
NEW_OBJECTS = 1_000_000
# Seconds from a signal until the process is killed; further seconds if it is already exiting.
PATIENCE, FAREWELL = 1.2, 0.4


def main() -> int:
    """Run the ``kpca`` command and return its exit code."""
    gc.set_threshold(NEW_OBJECTS)
    codes = list[int]()
    if threading.current_thread() is threading.main_thread():
        _handle_signals(codes)
    from kpca_apps.cli.main import main as run

    codes.append(run())
    # Skip garbage collections at exit, which are slow.
    gc.freeze()
    # A signal during exit would disturb the shutdown of workers.
    for number in ENDING if threading.current_thread() is threading.main_thread() else ():
        signal.signal(number, signal.SIG_IGN)
    return codes[0]


def _handle_signals(codes: list[int]) -> None:
    """End the process at a signal: at once during imports, later within `PATIENCE` seconds.

    Signals that are ignored remain ignored, as required by ``nohup`` and background jobs.
    """
    for number in ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end_at_once)
    if not hasattr(signal, "pthread_sigmask"):
        return
    # The parent may have blocked these signals in this process.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    # ``kpca papers`` gets no deadline, as writing finished experiments may exceed `PATIENCE`.
    if sys.argv[1:2] != ["papers"]:
        receiver, sender = os.pipe()
        os.set_blocking(sender, False)
        signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
        threading.Thread(target=_kill_after_patience, args=(receiver, codes), daemon=True).start()


def _kill_after_patience(receiver: int, codes: list[int]) -> None:
    while (number := os.read(receiver, 1)[0]) not in ENDING:
        pass
    time.sleep(PATIENCE)
    if codes:
        time.sleep(FAREWELL)
        os._exit(codes[0])
    _say(b"interrupted; the next run removes what is unfinished")
    os._exit(128 + number)


def _end_at_once(number: int, _: object) -> None:
    _say(b"interrupted; nothing was written")
    os._exit(128 + number)


def _say(message: bytes) -> None:
    """Write an error without taking locks, which other threads may hold."""
    with suppress(OSError):
        os.write(2, b"\r\x1b[K\x1b[?25h" * os.isatty(2) + b"error: %b\n" % message)
