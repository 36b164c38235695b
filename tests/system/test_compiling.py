"""Compilation that is interrupted."""

import ctypes
import signal
from typing import Any

import pytest
from numba.core.registry import CPUDispatcher

from kpca_apps.system.compiling import compiled


def plus_one(value: float) -> float:
    return value + 1


def test_an_interrupt_in_a_callback_of_the_compiler_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiles: list[Any] = []

    def interrupted(dispatcher: Any, signature: Any) -> None:
        # What is raised in a callback of C is printed, and lost.
        ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()
        compiles.append(signature)

    with monkeypatch.context() as patch:
        patch.setattr(CPUDispatcher, "compile", interrupted)
        function = compiled(plus_one)
        with pytest.raises(KeyboardInterrupt):
            function(1.0)
    assert len(compiles) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if hasattr(signal, "pthread_sigmask"):
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert compiled(plus_one)(1.0) == 2
