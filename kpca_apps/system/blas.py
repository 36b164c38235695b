"""One thread for the linear algebra libraries: sums are then added in one order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, get_ident
from typing import Any

import scipy.linalg  # noqa: F401  (its library must be there to be found)
from threadpoolctl import OpenBLASController, ThreadpoolController

from kpca_apps.system.interrupts import interrupts_held

# The libraries keep one number of threads for the process, whichever thread sets it; so the limit
# is one for the process, too: there while anyone relies on it, who are listed with their thread.
_LOCK, _LIMIT = Lock(), list[Any]()
_INSIDE: dict[object, int] = {}


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold the linear algebra libraries to one thread, so that sums are added in one order.

    The limit holds for the whole process until the last who asked for it, in whatever thread, has
    left; then the number of threads is again what the first found.
    """
    me = object()
    try:
        with _LOCK:
            if not _LIMIT:
                # Interrupted on the way, it would leave the limit to all that comes after.
                with interrupts_held():
                    _let_any_thread_set()
                    _LIMIT.append(_linear_algebra().limit(limits=1, user_api="blas"))
                    _let_any_thread_set()
            _INSIDE[me] = get_ident()
        yield
    finally:
        try:
            _leave(me)
        except BaseException:  # an interrupt on the way: to hold each back would cost too much
            _leave(me)
            raise


def _leave(me: object) -> None:
    _INSIDE.pop(me, None)
    if not _INSIDE:
        _lift()


def _lift() -> None:
    """Set the number of threads that the first found, if nobody relies on the limit any more."""
    with interrupts_held(), _LOCK:
        if _LIMIT and not _INSIDE:
            _let_any_thread_set()
            _LIMIT.pop().restore_original_limits()
            _let_any_thread_set()


def _keep_own_thread() -> None:
    """Have a forked child go on as the thread that forked it, which alone it has."""
    _LOCK.release()
    for one, thread in [*_INSIDE.items()]:
        if thread != get_ident():
            del _INSIDE[one]
    if not _INSIDE:
        _lift()


if hasattr(os, "register_at_fork"):
    # Forked while another thread holds the lock, a child would wait for a thread that it has not.
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_keep_own_thread
    )


def _let_any_thread_set() -> None:
    """Let this thread set the number of threads, or any other."""
    # Newer versions of threadpoolctl listen to one thread only, until that one is done; but the
    # last to leave need not be the first who came.
    release = getattr(OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


@cache
def _linear_algebra() -> ThreadpoolController:
    """Return the libraries of numpy and scipy; to look for them takes longer than a block."""
    return ThreadpoolController()
