"""How the inner loops are compiled: once, without the interpreter's lock, and to the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from kpca_apps.compiling import machine_code

__all__ = ["Scalar", "compiled"]

Scalar = float | np.float32

Function = TypeVar("Function", bound=Callable[..., object])

REASSOCIATING = {"reassoc", "contract", "nsz"}
"""Sums may be vectorised. The order is fixed when the code is compiled, so every thread, and
every run on one machine, adds in the same order. NaN and infinity keep their meaning."""


def compiled(function: Function) -> Function:
    """Compile a function with numba and cache the machine code on disk.

    Parameters
    ----------
    function : callable
        Plain loops over arrays.

    Returns
    -------
    callable
        Takes the same arguments; compiled when first called, and released from the
        interpreter's lock while it runs.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": REASSOCIATING}
    return machine_code(**options)(function)
