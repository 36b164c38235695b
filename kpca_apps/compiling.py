"""Inner loops as machine code, kept on disk where there is a place for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

__all__ = ["machine_code"]

Function = TypeVar("Function", bound=Callable[..., object])


def machine_code(**options: Any) -> Callable[[Function], Function]:
    """Compile a function when it is first called, and keep the result for later runs.

    Where no folder can be written to, neither the package's own nor the user's, the function is
    compiled anew in each process: slower to start, and the same otherwise.

    Parameters
    ----------
    **options
        Of `numba.njit`.

    Returns
    -------
    callable
        A decorator.

    Examples
    --------
    >>> @machine_code(nogil=True)
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """

    def decorate(function: Function) -> Function:
        try:
            return cast(Function, njit(cache=True, **options)(function))
        except RuntimeError:
            # What numba raises where there is no place for its files.
            return cast(Function, njit(**options)(function))

    return decorate
