"""Compile the inner loops before work starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes.groups import smooth_groups
from kpca_apps.denoise.passes.planes import denoise_planes
from kpca_apps.engine.linalg.small_matrices import padded_size

KEPT_NOWHERE = (
    "The compiled code cannot be cached, so every run compiles it again: set NUMBA_CACHE_DIR to "
    "a folder that can be written to."
)


# A small function, and the function compiled last. They are Any, as mypy misses numba's wrapper.
_FIRST: Any = padded_size
_LAST: Any = smooth_groups


def is_kept() -> bool:
    """Whether numba caches compiled code for later runs and for worker processes."""
    return bool(_LAST.stats.cache_path)


def warm_up(announce: Callable[[], None]) -> None:
    """Load the inner loops; call `announce` first if they must be compiled (about 15 seconds).

    Compiling before work starts avoids compiling in every worker process.
    """
    if not _is_compiled(_LAST):
        announce()
    flat = np.zeros((1, 24, 24), np.float32)
    denoise_planes(flat, np.array([10.0]), Options(quality="fast"))


def _is_compiled(function: Any) -> bool:
    """Whether a function was compiled by the installed version of numba.

    Numba's cache index of the function may be out of date, as after an upgrade of numba. Then numba
    compiles the small function `_FIRST` again, which shows as a cache miss.
    """
    if function.signatures:
        return True
    if not is_kept():
        return False
    # Let numba tell whether the source has changed: if so, it reads the index as empty. The dates
    # of the files cannot tell, as every installation changes them.
    fresh = bool(function._cache._cache_file._load_index())
    _FIRST(1)
    return fresh and not _FIRST.stats.cache_misses
