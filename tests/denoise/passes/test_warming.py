"""The inner loops are compiled once per machine, and a message announces this."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from kpca_apps.denoise.passes import warming
from kpca_apps.system import compiling
from kpca_apps.system.compiling import compiled

# Compiling everything in an empty folder takes a minute; these checks take a second.
QUESTIONS = """
from kpca_apps.denoise.passes import warming
print(warming.is_kept(), warming._is_compiled(warming._LAST))
"""
# Call a compiled function that calls others, and print its sums to the last bit.
BITS = """
import numpy as np
from kpca_apps.engine.groups.compiled import truncate_rows
z = np.zeros((41, 48), np.float32)
z[:40, :36] = np.random.default_rng(0).normal(size=(40, 36))
z[:, :2] *= 50
arguments = z, z[40], 40, 36, np.float32(1), np.float32(1.25), np.inf
print(truncate_rows(*arguments)[0][:40].tobytes().hex())
"""


def answers(question: str = QUESTIONS, **environment: str) -> list[str]:
    return subprocess.run(
        [sys.executable, "-c", question],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()


def test_what_was_compiled_before_is_not_announced() -> None:
    warming.warm_up(lambda: None)
    announced: list[int] = []
    warming.warm_up(lambda: announced.append(1))
    assert announced == []
    assert answers() == ["True", "True"]


def test_compilation_is_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers(NUMBA_CACHE_DIR=str(tmp_path)) == ["True", "False"]
    monkeypatch.setattr(warming, "_is_compiled", lambda function: False)
    announced: list[int] = []
    warming.warm_up(lambda: announced.append(1))
    assert announced == [1]


@pytest.mark.release
def test_an_unusable_cache_folder_is_ignored() -> None:
    assert answers(NUMBA_CACHE_DIR="/dev/null/numba")[0] == "True"


@pytest.mark.release
def test_fresh_and_cached_code_give_the_same_bits(tmp_path: Path) -> None:
    folder = {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, later = (answers(BITS, **folder) for _ in range(2))
    assert first == later


def test_code_is_compiled_even_if_it_cannot_be_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_a_folder(**options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    monkeypatch.setattr(compiling, "njit", without_a_folder)

    def double(x: float) -> float:
        return 2 * x

    made: Any = compiled(double)
    assert (made(4.0), len(made.signatures)) == (8.0, 1)
    monkeypatch.setattr(warming, "_LAST", made)
    assert not warming.is_kept()
