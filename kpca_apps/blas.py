"""One thread for the linear algebra libraries: sums are then added in one order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

import scipy.linalg  # noqa: F401  (its library must be there to be found)
from threadpoolctl import OpenBLASController, ThreadpoolController

__all__ = ["one_blas_thread"]

# How many rely on the limit, and what restores the number of threads before it. The libraries keep
# one number for the process, whichever thread sets it, so these are one for the process too.
_lock = Lock()
_users = 0
_restore: Callable[[], object] = int  # does nothing


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold the linear algebra libraries to one thread, so that sums are added in one order.

    The limit holds for the whole process until the last who asked for it, in whatever thread, has
    left; then the number of threads is again what the first found.
    """
    global _users, _restore
    with _lock:
        if _users == 0:
            with _any_thread_may_set():
                limiter = _linear_algebra().limit(limits=1, user_api="blas")
            _restore = limiter.restore_original_limits
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                with _any_thread_may_set():
                    _restore()


@contextmanager
def _any_thread_may_set() -> Iterator[None]:
    """Let this thread set the limit, and any other afterwards."""
    # Newer versions of threadpoolctl listen to one thread only, until that one is done; but the
    # last to leave need not be the first who came.
    release = getattr(OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
    yield
    if release is not None:
        release(force=True)


@cache
def _linear_algebra() -> ThreadpoolController:
    """Return the libraries of numpy and scipy; to look for them takes longer than a block."""
    return ThreadpoolController()
