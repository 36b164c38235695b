"""Interrupts for tests: sent to this process, or received by a subprocess."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Lets a subprocess receive interrupts even if its parent ignores them.
HEARS_INTERRUPTS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "pthread_sigmask"):
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
"""


@contextmanager
def interrupt_after(seconds: float) -> Iterator[None]:
    """Send SIGINT to this process after some seconds, unless the block has ended before."""
    timer = threading.Timer(seconds, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
