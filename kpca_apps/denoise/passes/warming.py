"""The inner loops are compiled before work starts, and whether they are kept is known."""

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


# Functions as numba has wrapped them, of which mypy sees the plain ones: a small one, and the one
# that is compiled last.
_FIRST: Any = padded_size
_LAST: Any = smooth_groups


def is_kept() -> bool:
    """Whether compiled code is kept for later runs and for worker processes."""
    return bool(_LAST.stats.cache_path)


def warm_up(announce: Callable[[], None]) -> None:
    """Load the inner loops, or announce that they are compiled, for some 15 seconds, and do so.

    Done before work starts, they are compiled once for a machine, and not in every worker.
    """
    if not _is_compiled(_LAST):
        announce()
    flat = np.zeros((1, 24, 24), np.float32)
    denoise_planes(flat, np.array([10.0]), Options(quality="fast"))


def _is_compiled(function: Any) -> bool:
    """Whether a function is compiled, by this compiler.

    The index of a function may be there and be out of date, as after an upgrade of the compiler;
    a small function shows it, for it is compiled here if so.
    """
    if function.signatures:
        return True
    if not is_kept():
        return False
    # Numba's own reading of its index: empty where the source is another one. Dates of files do
    # not tell, for they change with every installation.
    fresh = bool(function._cache._cache_file._load_index())
    _FIRST(1)
    return fresh and not _FIRST.stats.cache_misses
