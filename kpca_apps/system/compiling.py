"""Compile inner loops with numba, cached on disk if possible."""

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

# These flags let the compiler reorder and vectorise sums. The order is fixed at compile time, so
# all threads and runs on one machine agree. NaN and infinity keep their meaning.
REASSOCIATING = {"reassoc", "contract", "nsz"}


def compiled(function: Function) -> Function:
    """Compile loops over arrays on the first call; the compiled code releases the GIL.

    Machine code is cached on disk; without a writable folder, each process compiles again.
    """
    # Callers are not forced to inline the function: that would optimise it again at each call.
    return _dispatcher(function)


def compiled_as_written(function: Function) -> Function:
    """Compile as `compiled` does, but keep the order of operations.

    For example, a - n b - n c must stay two steps if b + c is not representable.
    """
    return _dispatcher(function, fastmath={"contract"})


def inlined(function: Function) -> Function:
    """Inline a function into its only caller before the caller is compiled.

    A call from Python behaves as with `compiled`.
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
        # numba raises RuntimeError if no cache folder is writable.
        dispatcher = njit(**options)(function)
    dispatcher.compile = _uninterrupted(dispatcher.compile)
    cache = getattr(dispatcher._cache, "_cache_file", None)
    if cache is not None:
        cache._source_stamp = _stamp(function, cache._source_stamp)
    return cast(Function, dispatcher)


def _stamp(function: Function, own: object) -> str:
    """Return a stamp that changes when the cached machine code of a function is out of date.

    numba's `own` stamp covers only the function's file, but the machine code also includes
    functions and numbers of other modules, and the instructions in `registers.py`.
    """
    here = Path(__file__)
    files = [path.stat() for path in (here, here.with_name("registers.py"))]
    used: list[object] = [own, *((file.st_mtime, file.st_size) for file in files)]
    for name, value in function.__globals__.items():
        if isinstance(value, int | float | np.generic):
            used.append((name, value))
        elif isinstance(value, Dispatcher):
            cache = getattr(cast(Any, value)._cache, "_cache_file", None)
            used.append((name, cache and cache._source_stamp))
    return hashlib.sha256(repr(used).encode()).hexdigest()


def _uninterrupted(compile_for: Callable[[Any], object]) -> Callable[[Any], object]:
    """Defer interrupts during compilation: an exception inside LLVM's callbacks would be lost."""

    @functools.wraps(compile_for)
    def compile_uninterrupted(signature: Any) -> object:
        with interrupts_held():
            return compile_for(signature)

    return compile_uninterrupted
