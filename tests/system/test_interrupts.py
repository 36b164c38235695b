from __future__ import annotations

import signal
import threading
from concurrent.futures import Future

import pytest

from kpca_apps.system.interrupts import ENDING, heard_while, interrupts_held


def test_an_interrupt_before_the_wait_abandons_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt arrives when the thread has started, before the caller waits for it."""
    start, may_end = threading.Thread.start, threading.Event()
    given_up: list[Future[bool]] = []

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        heard_while(may_end.wait, give_up=given_up.append)
    (call,) = given_up
    assert not call.done()
    may_end.set()
    assert call.result()


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_is_held_to_the_end_of_a_block(number: int) -> None:
    heard: list[int] = []
    before = signal.signal(number, lambda number, _: heard.append(number))
    try:
        with interrupts_held():
            signal.raise_signal(number)
            assert not heard
        assert heard == [number]
        with interrupts_held(drop=True):
            signal.raise_signal(number)
        assert heard == [number]
    finally:
        signal.signal(number, before)
