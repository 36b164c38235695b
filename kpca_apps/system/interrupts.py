"""Interrupts: held back while processes start and end, and heard while a library waits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
_STEP = 0.1  # seconds from one look for an interrupt to the next


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


def heard_while(
    function: Callable[[], T],
    look: Callable[[], None] | None = None,
    give_up: Callable[[Future[T]], None] | None = None,
) -> T:
    """Return what a function does that waits for a network; an interrupt ends the wait at once.

    Python hears it only between steps of its own, so that another thread has to wait. `look` is
    called meanwhile, and may end the wait by an exception. `give_up` is called where the wait has
    ended too early, with the call that may still go on.
    """
    call = Future[T]()

    def work() -> None:
        try:
            call.set_result(function())
        except BaseException as error:
            call.set_exception(error)

    # Not of a pool, whose threads the end of the program waits for.
    worker = threading.Thread(target=work, daemon=True)
    try:
        # It may be interrupted as soon as the thread goes on, still in here.
        worker.start()
        # A wait without an end goes on after an interrupt, once polars has a handler of its own.
        while not wait((call,), _STEP).done:
            if look is not None:
                look()
    except BaseException:
        if give_up is not None:
            give_up(call)
        raise
    return call.result()
