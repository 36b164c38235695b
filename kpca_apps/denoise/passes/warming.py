"""Compile the inner loops before work starts, and tell whether compiled code is kept."""

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


# Functions wrapped by numba, which mypy does not see: a small one, and the one compiled last.
_FIRST: Any = padded_size
_LAST: Any = smooth_groups


def is_kept() -> bool:
    """Whether compiled code is kept for later runs and for worker processes."""
    return bool(_LAST.stats.cache_path)


def warm_up(announce: Callable[[], None]) -> None:
    """Load the inner loops; if they must be compiled first, some 15 seconds, announce that.

    Done before work starts, they are compiled once for a machine, and not in every worker.
    """
    if not _is_compiled(_LAST):
        announce()
    flat = np.zeros((1, 24, 24), np.float32)
    denoise_planes(flat, np.array([10.0]), Options(quality="fast"))


def _is_compiled(function: Any) -> bool:
    """Whether a function was compiled by this version of the compiler.

    The index of a function may be there and be out of date, as after an upgrade of the compiler;
    a small function shows it, for it is compiled here if so.
    """
    if function.signatures:
        return True
    if not is_kept():
        return False
    # Numba's reading of its index is empty if the source has changed. Dates of files do not tell,
    # as every installation changes them.
    fresh = bool(function._cache._cache_file._load_index())
    _FIRST(1)
    return fresh and not _FIRST.stats.cache_misses
