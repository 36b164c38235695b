"""The console script: nothing is imported before an interrupt can be answered."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# Imports and figures make some hundred thousand objects that stay; with CPython's default of 700,
# looking for cycles among them takes a tenth of the time of a command on a small table.
NEW_OBJECTS = 1_000_000


def main() -> int:
    """Run the ``kpca`` command and return its exit code."""
    gc.set_threshold(NEW_OBJECTS)
    with _ends_at_once():
        from kpca_apps.cli.main import main as run
    code = run()
    # At its end Python looks through all objects for cycles, several times, which takes a fifth of
    # the time of a command on a small table. There is nothing to find that must be tidied away.
    gc.freeze()
    # All is said; an interrupt now would only disturb how workers are tidied away.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


@contextmanager
def _ends_at_once() -> Iterator[None]:
    """End at an interrupt while modules are loaded: some take it for an error of their own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Ignored, as for work in the background, is meant; blocked, as a caller's thread may have been
    # when this process was started, is not.
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end_at_once(*_: object) -> None:
    with suppress(OSError):
        os.write(2, b"error: interrupted; nothing was written\n")
    os._exit(130)
