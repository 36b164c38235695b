"""Defer signals that end a program, and notice them while a library waits for a network."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
# Signals by which a user, a terminal or a batch system asks a program to end.
ENDING = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
)
# Signals that child processes ignore, since their parent ends them with SIGTERM.
OF_TERMINALS = frozenset(ENDING) - {signal.SIGTERM}
_STEP = 0.1  # seconds between two checks for signals


@contextmanager
def interrupts_held(*, drop: bool = False) -> Iterator[None]:
    """Until the end of the block, defer signals that have a handler; with `drop`, ignore them.

    Child processes started in the block ignore a terminal's signals: their parent ends them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: handler for number in ENDING if callable(handler := signal.getsignal(number))}
    held: list[int] = []
    # Child processes inherit this thread's mask. Other threads lack it: replace handlers, too.
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
    """Call, in a thread, a function that waits for a network, so that interrupts end the wait.

    Without a thread, Python would handle a signal only after the library returns. `look` is called
    before and during the wait, and may end the wait by raising an error. `give_up` receives the
    pending call if the wait ends early.
    """
    from concurrent.futures import Future, wait  # slow; the command's help must start quickly

    if look is not None:
        look()
    call = Future[T]()

    def work() -> None:
        try:
            call.set_result(function())
        except BaseException as error:
            call.set_exception(error)

    # A pool's threads would block the interpreter's exit until the call returns.
    worker = threading.Thread(target=work, daemon=True)
    try:
        # An interrupt may arrive as early as during start().
        worker.start()
        # Wait in short steps, since polars' signal handler makes a long wait ignore interrupts.
        while not wait((call,), _STEP).done:
            if look is not None:
                look()
    except BaseException:
        if give_up is not None:
            give_up(call)
        raise
    return call.result()
