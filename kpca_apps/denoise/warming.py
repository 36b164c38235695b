"""Compiling the inner loops before work starts: once for a machine, and not in every worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kpca_apps.denoise.algebra import padded_size
from kpca_apps.denoise.local import denoise_plane
from kpca_apps.denoise.wiener import wiener_band

__all__ = ["KEPT_NOWHERE", "is_kept", "warm_up"]

KEPT_NOWHERE = (
    "The compiled code can be kept nowhere, so every run compiles it again: set NUMBA_CACHE_DIR to "
    "a folder that can be written to."
)
_SIDE = 24
# Functions as numba has wrapped them, of which mypy sees the plain ones.
_FIRST: Any = padded_size
_LAST: Any = wiener_band


def is_kept() -> bool:
    """Whether compiled code is kept for later runs and for worker processes."""
    return bool(_LAST.stats.cache_path)


def warm_up(announce: Callable[[], None]) -> None:
    """Load the compiled inner loops, or compile them.

    Parameters
    ----------
    announce : callable
        Called before compiling, which takes about a minute; not if it was done before.

    Examples
    --------
    >>> warm_up(lambda: None)
    >>> warm_up(lambda: print("never twice in a process"))
    """
    if not _is_compiled():
        announce()
    denoise_plane(np.zeros((_SIDE, _SIDE), np.float32), 10.0, quality="fast")


def _is_compiled() -> bool:
    """Whether all is compiled: the function that is compiled last, by this compiler.

    The index of a function may be there and be out of date, as after an upgrade of the compiler;
    a small function tells, for it is compiled here if so.
    """
    if _LAST.signatures:
        return True
    if not is_kept():
        return False
    source = Path(_LAST.py_func.__code__.co_filename)
    indexes = list(Path(_LAST.stats.cache_path).glob(f"{source.stem}.{_LAST.__name__}-*.nbi"))
    _FIRST(1)
    written = source.stat().st_mtime
    fresh = any(index.stat().st_mtime >= written for index in indexes)
    return fresh and not _FIRST.stats.cache_misses
