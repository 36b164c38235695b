"""Requests to end: held back while processes start and end, and heard while a library waits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
ENDING = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
)
"""Signals by which a user, a terminal or a batch system asks a program to end."""
# A new process ignores these; SIGTERM ends it, by which its owner stops it.
OF_TERMINALS = frozenset(ENDING) - {signal.SIGTERM}
_STEP = 0.1  # seconds between two checks of the deadline


@contextmanager
def interrupts_held(*, drop: bool = False) -> Iterator[None]:
    """Delay signals that have a handler to the end of the block, or drop them.

    Processes started in the block do not receive those of a terminal: their owner ends them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: found for number in ENDING if callable(found := signal.getsignal(number))}
    held: list[int] = []
    # The mask is for new processes to inherit; a thread of a library may still take the signal.
    for number in before:
        signal.signal(number, signal.SIG_IGN if drop else lambda number, _: held.append(number))
    has_mask = hasattr(signal, "pthread_sigmask")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, OF_TERMINALS) if has_mask else set()
    try:
        yield
    finally:
        if has_mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])


def heard_while(
    function: Callable[[], T],
    look: Callable[[], None] | None = None,
    give_up: Callable[[Future[T]], None] | None = None,
) -> T:
    """Call a function that waits for a network in a thread; an interrupt ends the wait at once.

    Python handles signals only between its own instructions, so another thread has to wait. `look`
    is called before the function and while it runs, and may end the wait by an exception. `give_up`
    gets the unfinished call of a wait that was ended.
    """
    from concurrent.futures import Future, wait  # slow to import: the command must start at once

    if look is not None:
        look()
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
