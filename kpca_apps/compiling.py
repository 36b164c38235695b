"""Inner loops as machine code, kept on disk where there is a place for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

__all__ = ["machine_code"]

Function = TypeVar("Function", bound=Callable[..., object])


def machine_code(**options: Any) -> Callable[[Function], Function]:
    """Compile a function with options of `numba.njit` when first called, and keep the result.

    Where no folder can be written to, neither the package's own nor the user's, the function is
    compiled again in each process: slower to start, and the same otherwise.
    """

    def decorate(function: Function) -> Function:
        try:
            return cast(Function, njit(cache=True, **options)(function))
        except RuntimeError:
            # What numba raises where there is no place for its files.
            return cast(Function, njit(**options)(function))

    return decorate
