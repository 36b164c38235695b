import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path
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
        # An exception in a C callback is printed and dropped.
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


# Python's bytecode cache overlooks a change within a second if the file's size stays the same.
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
CALLED = """
from kpca_apps.system.compiling import compiled

@compiled
def double(x):
    return {} * x
"""
CONSTANT = "SHIFT = {}"
BETWEEN = """
from called import double
from constant import SHIFT
from kpca_apps.system.compiling import compiled

@compiled
def shifted(x):
    return double(x) + SHIFT
"""
CALLING = """
from between import shifted
from kpca_apps.system.compiling import compiled

@compiled
def shifted_again(x):
    return shifted(x)

print(shifted_again(1.0), len(shifted_again.stats.cache_hits))
"""


def test_a_change_in_another_file_triggers_compilation(tmp_path: Path) -> None:
    def run(factor: float, shift: float) -> str:
        texts = {
            "called": CALLED.format(factor),
            "constant": CONSTANT.format(shift),
            "between": BETWEEN,
            "calling": CALLING,
        }
        for name, text in texts.items():
            file = tmp_path / f"{name}.py"
            # Keep the date of unchanged files, as an upgrade does.
            if not file.exists() or file.read_text() != text:
                file.write_text(text)
        command = [sys.executable, str(tmp_path / "calling.py")]
        return subprocess.check_output(command, env=ENVIRONMENT, text=True).strip()

    assert run(2.0, 0.0) == "2.0 0" and run(2.0, 0.0) == "2.0 1" and run(2.0, 1.0) == "3.0 0"
    assert run(3.0, 1.0) == "4.0 0"
