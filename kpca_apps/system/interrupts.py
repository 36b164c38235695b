"""Interrupts that must not come between: while processes start, and while they are ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_held(*, drop: bool = False) -> Iterator[None]:
    """Hold interrupts back to the end of the block, or drop them.

    Processes started in the block hear none: the one that started them ends them.
    """
    before = signal.getsignal(signal.SIGINT)
    # Without one, as where the interpreter is ending, there would be nothing to go back to.
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    # The mask is for processes to inherit; a thread of a library may still take the signal here.
    signal.signal(signal.SIGINT, signal.SIG_IGN if drop else lambda number, _: held.append(number))
    has_mask = hasattr(signal, "pthread_sigmask")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if has_mask else set()
    try:
        yield
    finally:
        if has_mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)
