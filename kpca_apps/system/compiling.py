"""Inner loops as machine code, kept on disk where there is a place for it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

from kpca_apps.system.interrupts import interrupts_held

Function = TypeVar("Function", bound=Callable[..., object])

# Sums may be vectorised. The order is fixed when the code is compiled, so every thread, and every
# run on one machine, adds in the same order. NaN and infinity keep their meaning.
REASSOCIATING = {"reassoc", "contract", "nsz"}


def compiled(function: Function) -> Function:
    """Compile plain loops over arrays, when first called; the interpreter's lock is released.

    The result is kept for later runs. Where no folder can be written to, neither the package's own
    nor the user's, the function is compiled again in each process: slower to start, and the same
    otherwise.
    """
    # Each function is compiled into all that call it. With copies of its own, the one that runs,
    # and so the order of its sums, would depend on whether this process has compiled the code or
    # read it: the first run after an installation gave other last bits than all later ones.
    return _dispatcher(function, forceinline=True)


def compiled_as_written(function: Function) -> Function:
    """Compile as `compiled` does, with operations in the order they are written in.

    So a - n b - n c stays two steps where b + c is a number that one does not hold.
    """
    return _dispatcher(function, forceinline=True, fastmath={"contract"})


def inlined(function: Function) -> Function:
    """Let a function be written into the only one that calls it, before that is compiled.

    What is called at one place is compiled once so, and not once more by itself; called from
    Python, as by tests, it is as if `compiled`.
    """
    return _dispatcher(function, inline="always")


def _dispatcher(function: Function, **how: Any) -> Function:
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": REASSOCIATING,
        "no_cfunc_wrapper": True,
        **how,
    }
    try:
        dispatcher: Any = njit(cache=True, **options)(function)
    except RuntimeError:
        # What numba raises where there is no place for its files.
        dispatcher = njit(**options)(function)
    dispatcher.compile = _uninterrupted(dispatcher.compile)
    kept = getattr(dispatcher._cache, "_cache_file", None)
    if kept is not None:
        kept._source_stamp = _stamp(function, kept._source_stamp)
    return cast(Function, dispatcher)


def _stamp(function: Function, own: object) -> str:
    """Return what is another once code compiled for a function is out of date.

    Numba's `own` stamp is of the function's file alone, but what its module takes from others is
    compiled in: functions, numbers, and the instructions of this folder.
    """
    here = Path(__file__)
    files = [path.stat() for path in (here, here.with_name("registers.py"))]
    used: list[object] = [own, *((file.st_mtime, file.st_size) for file in files)]
    for name, value in function.__globals__.items():
        if isinstance(value, int | float | np.generic):
            used.append((name, value))
        elif isinstance(value, Dispatcher):
            kept = getattr(cast(Any, value)._cache, "_cache_file", None)
            used.append((name, kept and kept._source_stamp))
    return hashlib.sha256(repr(used).encode()).hexdigest()


def _uninterrupted(compile_for: Callable[[Any], object]) -> Callable[[Any], object]:
    """Hold interrupts back until a function is compiled: LLVM calls back, and one is lost there."""

    @functools.wraps(compile_for)
    def held(signature: Any) -> object:
        with interrupts_held():
            return compile_for(signature)

    return held
