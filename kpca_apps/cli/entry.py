"""The console script: it can be ended from its first line to its last."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from contextlib import suppress

from kpca_apps.system.interrupts import ENDING

# Imports and figures make some hundred thousand objects that stay; with CPython's default of 700,
# looking for cycles among them takes a tenth of the time of a command on a small table.
NEW_OBJECTS = 1_000_000
# Seconds from a signal until the process ends, whatever it does; and those of its exit handlers.
PATIENCE, FAREWELL = 1.2, 0.4


def main() -> int:
    """Run the ``kpca`` command and return its exit code."""
    gc.set_threshold(NEW_OBJECTS)
    codes = list[int]()
    if threading.current_thread() is threading.main_thread():
        _hear_signals(codes)
    from kpca_apps.cli.main import main as run

    codes.append(run())
    # At its end Python looks through all objects for cycles, several times, which takes a fifth of
    # the time of a command on a small table. There is nothing to find that must be tidied away.
    gc.freeze()
    # All is said; a signal now would only disturb how workers are tidied away.
    for number in ENDING if threading.current_thread() is threading.main_thread() else ():
        signal.signal(number, signal.SIG_IGN)
    return codes[0]


def _hear_signals(codes: list[int]) -> None:
    """End at once while modules are loaded, which some take for an error; later in time.

    What is ignored, as ``nohup`` and shells do for work in the background, stays ignored.
    """
    for number in ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end_at_once)
    if not hasattr(signal, "pthread_sigmask"):
        return
    # The thread of a caller may have blocked them.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    # An interrupted run of papers writes what is done, which takes longer.
    if sys.argv[1:2] != ["papers"]:
        heard, hears = os.pipe()
        os.set_blocking(hears, False)
        signal.set_wakeup_fd(hears, warn_on_full_buffer=False)
        threading.Thread(target=_end_in_time, args=(heard, codes), daemon=True).start()


def _end_in_time(heard: int, codes: list[int]) -> None:
    """Wait for a signal, and end some time after it what is still in a long call or cleaning up.

    This is as if it were killed: the next run removes what is unfinished.
    """
    while (number := os.read(heard, 1)[0]) not in ENDING:
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
    """Write an error without a lock that another thread may hold; a terminal shows its cursor."""
    with suppress(OSError):
        os.write(2, b"\r\x1b[K\x1b[?25h" * os.isatty(2) + b"error: %b\n" % message)
