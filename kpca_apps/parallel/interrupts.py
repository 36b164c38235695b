"""Interrupts that must not come between: while processes start, and while they are ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["IGNORED_INTERRUPT", "interrupts_ignored"]

IGNORED_INTERRUPT = (signal.SIGINT, signal.SIG_IGN)
"""What a process is told that leaves interrupts to the one that started it."""


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Ignore interrupts here, and in processes started here, which this one ends."""
    before = signal.getsignal(signal.SIGINT)
    # Without one, as where the interpreter is ending, there would be nothing to go back to.
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(*IGNORED_INTERRUPT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
