"""Inner loops as machine code, kept on disk where there is a place for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

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
    return cast(Function, dispatcher)


def _uninterrupted(compile_for: Callable[[Any], object]) -> Callable[[Any], object]:
    """Hold interrupts back until a function is compiled: LLVM calls back, and one is lost there."""

    @functools.wraps(compile_for)
    def held(signature: Any) -> object:
        with interrupts_held():
            return compile_for(signature)

    return held
